"""Alarms of an emulation: when each is raised, and when it is cleared.

Each snapshot says of each alarm and what it is about: it holds, it does not, or neither. An alarm
is raised if it held for some time, and cleared when it has not held for some time, by the run's
clock. Severities are those of ITU-T X.733 (8.1.2.3).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airpath.emulation.oam.recent import Counter, Recent, at

if TYPE_CHECKING:
    from airpath.documents import DirectionSnapshot, Snapshot
    from airpath.emulation.oam.inventory import Outage

DIRECTIONS = ("down", "up")
HOLD_S = 10.0
"""An alarm about an event stays raised for so long after the last one."""

INTERRUPTION_S = 0.5
BLOCKED_S = 3.0
STANDING_S = 3.0
STANDING_DELAY_S = 0.2
STANDING_CLEARED_S = 0.1
STANDING_PACKETS = 2
LOSS = 0.01
LOSS_CLEARED = 0.005
LOSS_PACKETS = 3
LOSS_WINDOW_S = 5.0
RATE_WINDOW_S = 1.0

BETWEEN_CELLS = "handover"
"""What a snapshot calls the state of RRC of a UE that has no cell."""

OWN_ALARM = ("queue_full", "aqm")
"""Drops that are no packet loss: the first has an alarm of its own, the second is wanted."""


@dataclass(frozen=True)
class Kind:
    """One kind of alarm; the guide's table says the same."""

    name: str
    severity: str
    raised: str
    cleared: str
    raise_after_s: float = 0.0
    clear_after_s: float = 0.0


KINDS = (
    Kind(
        "cell_out_of_service",
        "critical",
        "A cell is out of service, as the scenario says",
        "The cell is in service again",
    ),
    Kind(
        "blocked",
        "critical",
        f"Packets are waiting at a radio or a link, but none has left it for {BLOCKED_S:.0f} s",
        "A packet leaves, or none is waiting",
        raise_after_s=BLOCKED_S,
    ),
    Kind(
        "radio_link_failure",
        "major",
        "T310 expired, or RLC reached its maximum number of retransmissions",
        f"{HOLD_S:.0f} s without another",
        clear_after_s=HOLD_S,
    ),
    Kind(
        "handover_failed",
        "major",
        "T304 expired, because the target was out of sync",
        f"{HOLD_S:.0f} s without another",
        clear_after_s=HOLD_S,
    ),
    Kind(
        "long_interruption",
        "major",
        f"A UE has been without a cell for {INTERRUPTION_S:g} s",
        "The UE has a cell",
        raise_after_s=INTERRUPTION_S,
    ),
    Kind(
        "buffer_full",
        "minor",
        "A packet was dropped because a queue was full",
        f"{HOLD_S:.0f} s without another",
        clear_after_s=HOLD_S,
    ),
    Kind(
        "standing_queue",
        "minor",
        f"For {STANDING_S:.0f} s a queue has held {STANDING_PACKETS} packets or more, which at the "
        f"rate of the last second take over {1e3 * STANDING_DELAY_S:.0f} ms to drain",
        f"1 s at {1e3 * STANDING_CLEARED_S:.0f} ms or less",
        raise_after_s=STANDING_S,
        clear_after_s=1.0,
    ),
    Kind(
        "packet_loss",
        "minor",
        f"{100 * LOSS:g} % of a direction's packets in the last {LOSS_WINDOW_S:.0f} s, and at "
        f"least {LOSS_PACKETS}, were dropped; drops by full queues and by queue management do not "
        "count",
        f"Less than {100 * LOSS_CLEARED:g} % were dropped",
    ),
    Kind(
        "lateness",
        "warning",
        "1 % of all packets so far were later than the bound, so the run would be invalid",
        "Fewer packets are late",
    ),
)

EVENTS: dict[str, tuple[str, ...]] = {
    "buffer_full": ("queue_full",),
    "handover_failed": ("handover_failed",),
    "radio_link_failure": ("radio_link_failure", "radio_link_failure_rlc"),
}
"""Alarms about events, and the events or reasons of drops that raise them."""

Key = tuple[str, str]
"""Name of an alarm, and what it is about: ``phone down``; empty: the run."""

_KINDS = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True)
class Raised:
    """An alarm that is raised."""

    name: str
    subject: str
    since_s: float
    detail: str

    @property
    def severity(self) -> str:
        """That of its kind."""
        return _KINDS[self.name].severity

    def document(self) -> dict[str, object]:
        """For the page."""
        return {**vars(self), "severity": self.severity}


@dataclass(frozen=True)
class Change:
    """An alarm was raised or cleared."""

    alarm: Raised
    raised: bool
    time_s: float


@dataclass
class _Held:
    """Since when an alarm's condition has held, and when it held last."""

    since_s: float | None = None
    last_s: float = 0.0


class Alarms:
    """The alarms of a run. Every method may be called from any thread."""

    def __init__(self, bound_s: float, outages: Sequence[Outage] = ()) -> None:
        """``bound_s`` is what 99 % of the packets may be late."""
        self._bound_s, self._outages = bound_s, outages
        self._lock = threading.Lock()
        self._rates = Recent(RATE_WINDOW_S)
        self._losses = Recent(LOSS_WINDOW_S)
        self._before: Snapshot | None = None
        self._events = dict.fromkeys(EVENTS, 0)
        self._held: dict[Key, _Held] = {}
        self._raised: dict[Key, Raised] = {}

    def update(self, snapshot: Snapshot) -> list[Change]:
        """Judge a snapshot; what it changed: nothing, if it is not newer than the last one."""
        with self._lock:
            if not self._rates.add(snapshot):
                return []
            self._losses.add(snapshot)
            now_s = snapshot["time_s"]
            judged = {
                (name, about): (holds, detail)
                for name, about, holds, detail in self._judge(snapshot)
            }
            self._before = self._rates.newest
            changes = []
            for key in sorted({*judged, *self._held}):
                holds, detail = judged.get(key, (False, ""))
                changes += self._follow(key, holds, detail, now_s)
            return changes

    def raised(self) -> list[Raised]:
        """What is raised, the gravest first."""
        order = [kind.name for kind in KINDS]
        with self._lock:
            return sorted(
                self._raised.values(), key=lambda one: (order.index(one.name), one.subject)
            )

    def _follow(self, key: Key, holds: bool | None, detail: str, now_s: float) -> list[Change]:
        kind, held = _KINDS[key[0]], self._held.setdefault(key, _Held())
        known = self._raised.get(key)
        if holds or (holds is None and known):
            held.since_s = now_s if held.since_s is None else held.since_s
            held.last_s = now_s
            if known is None and now_s - held.since_s >= kind.raise_after_s:
                self._raised[key] = Raised(*key, now_s, detail)
                return [Change(self._raised[key], raised=True, time_s=now_s)]
            return []
        held.since_s = None
        if known is None:
            del self._held[key]
        # What has to stay away for no time is cleared at once.
        elif now_s - held.last_s > kind.clear_after_s or kind.clear_after_s == 0:
            del self._held[key], self._raised[key]
            return [Change(known, raised=False, time_s=now_s)]
        return []

    def _judge(self, snapshot: Snapshot) -> Iterator[tuple[str, str, bool | None, str]]:
        """Alarm, what it is about, whether it holds (None: neither), and a detail."""
        yield from self._new_events(snapshot)
        for outage in self._outages:
            if outage.holds(snapshot["time_s"]):
                yield "cell_out_of_service", outage.cell, True, f"until {outage.until_s:g} s"
        for ue in snapshot["ues"]:
            if ue["rrc"] == BETWEEN_CELLS:
                yield "long_interruption", ue["id"], True, f"on its way to {ue['cell']}"
        for about, packets, size, counter in _queues(snapshot):
            if packets:
                stuck = self._before is not None and counter(snapshot) == counter(self._before)
                yield "blocked", about, stuck, f"{packets} packets waiting"
            if packets >= STANDING_PACKETS and (rate := self._rates.rate(counter)) > 0:
                delay_s = size / rate
                between = STANDING_CLEARED_S < delay_s <= STANDING_DELAY_S
                stands = None if between else delay_s > STANDING_DELAY_S
                yield "standing_queue", about, stands, f"{1e3 * delay_s:.0f} ms, {size} bytes"
        for index, direction in enumerate(DIRECTIONS):
            yield "packet_loss", direction, *self._loss(index)
            late_us = snapshot["directions"][index]["late_p99_us"] or 0.0
            yield "lateness", direction, late_us / 1e6 > self._bound_s, f"{late_us:.0f} us"

    def _new_events(self, snapshot: Snapshot) -> Iterator[tuple[str, str, bool, str]]:
        counts = dict(snapshot["mobility"])
        for direction in snapshot["directions"]:
            for why, packets in direction["dropped"]:
                counts[why] = counts.get(why, 0) + packets
        # Nobody else can have had it.
        only = snapshot["ues"][0]["id"] if len(snapshot["ues"]) == 1 else ""
        for alarm, events in EVENTS.items():
            count = sum(counts.get(event, 0) for event in events)
            about = "" if alarm == "buffer_full" else only
            yield alarm, about, count > self._events[alarm], f"{count} so far"
            self._events[alarm] = max(count, self._events[alarm])

    def _loss(self, index: int) -> tuple[bool | None, str]:
        dropped = self._losses.growth(lambda one: _lost(one["directions"][index]))
        entered = self._losses.growth(lambda one: one["directions"][index]["entered"])
        share = dropped / entered if entered else 0.0
        detail = f"{dropped:.0f} of {entered:.0f} packets"
        if share >= LOSS and dropped >= LOSS_PACKETS:
            return True, detail
        return (None if share >= LOSS_CLEARED else False), detail


def _lost(direction: DirectionSnapshot) -> int:
    return sum(packets for why, packets in direction["dropped"] if why not in OWN_ALARM)


def _queues(snapshot: Snapshot) -> Iterator[tuple[str, int, int, Counter]]:
    """Where packets wait: its name, packets, bytes, and the counter of bytes that left it."""
    for number, ue in enumerate(snapshot["ues"]):
        for index, direction in enumerate(DIRECTIONS):
            radio = ue["radio"][index]
            sent = at("ues", number, "radio", index, "bytes")
            yield f"{ue['id']} {direction}", radio["queue_packets"], radio["queue_bytes"], sent
    for number, link in enumerate(snapshot["links"]):
        sent = at("links", number, "bytes")
        yield link["id"], link["queue_packets"], link["queue_bytes"], sent
