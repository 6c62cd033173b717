"""What happened in an emulation, as two snapshots differ: handovers, states, alarms.

What begins and ends between two snapshots is not seen, except where a counter counts it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from airpath.emulation.oam.alarms import BETWEEN_CELLS

if TYPE_CHECKING:
    from airpath.documents import Snapshot, UeSnapshot
    from airpath.emulation.oam.alarms import Change
    from airpath.emulation.session import Session

KINDS = ("run", "session", "subscriber", "mobility", "rrc", "drx", "alarm")
MOST = 200
"""Entries of each kind that are kept, so that frequent ones do not push out others."""

CAMPING = ("idle", "inactive", "cell_pch", "cell_fach")
"""States in which a UE changes cells by itself (TS 36.304, 25.331 8.3.1)."""

_FAILURES = {
    "handover_failed": "handover failed: T304 expired",
    "radio_link_failure": "radio link failure: T310 expired",
    "radio_link_failure_rlc": "radio link failure: RLC sent something as often as it may",
}


@dataclass(frozen=True)
class Entry:
    """One thing that happened."""

    number: int
    """Counted from 1 over all kinds."""
    kind: str
    time_s: float
    subject: str
    text: str

    def document(self) -> dict[str, object]:
        """For the page."""
        return asdict(self)


class History:
    """The newest entries of each kind."""

    def __init__(self) -> None:
        self._count = 0
        self._kept: dict[str, deque[Entry]] = {kind: deque(maxlen=MOST) for kind in KINDS}

    @property
    def left_out(self) -> int:
        """How many entries are not kept any more."""
        return self._count - sum(len(kept) for kept in self._kept.values())

    def add(self, kind: str, time_s: float, subject: str, text: str) -> None:
        """Add an entry."""
        self._count += 1
        self._kept[kind].append(Entry(self._count, kind, time_s, subject, text))

    def after(self, number: int) -> list[Entry]:
        """Entries since one, in the order in which they were added."""
        found = [one for kept in self._kept.values() for one in kept if one.number > number]
        return sorted(found, key=lambda one: one.number)

    def attach(self, session: Session) -> None:
        """A UE attached and has a session; time 0 is when all have one."""
        began_s = -session.established_ms / 1e3
        attached_s = (session.attached_ms - session.established_ms) / 1e3
        self.add("session", began_s, session.ue, "attach begins")
        self.add("session", attached_s, session.ue, "attached")
        self.add("session", 0.0, session.ue, f"session established: {session.address}")

    def detach(self, time_s: float, session: Session) -> None:
        """The run is over, and with it the session."""
        self.add("session", time_s, session.ue, f"detached: {session.address} is released")

    def change(self, change: Change) -> None:
        """An alarm was raised or cleared."""
        alarm = change.alarm
        what = f"raised, {alarm.severity}" if change.raised else "cleared"
        detail = f" ({alarm.detail})" if change.raised and alarm.detail else ""
        self.add("alarm", change.time_s, alarm.subject, f"{alarm.name} {what}{detail}")

    def compare(self, before: Snapshot, now: Snapshot) -> None:
        """Add what differs between two snapshots."""
        handovers = 0
        for was, ue in zip(before["ues"], now["ues"], strict=True):
            for kind, text in _of_ue(was, ue):
                self.add(kind, now["time_s"], ue["id"], text)
            handovers += was["cell"] != ue["cell"] or was["rrc"] == BETWEEN_CELLS != ue["rrc"]
        counts, known = dict(now["mobility"]), dict(before["mobility"])
        only = now["ues"][0]["id"] if len(now["ues"]) == 1 else ""
        for event, text in _FAILURES.items():
            if (count := counts.get(event, 0) - known.get(event, 0)) > 0:
                self.add(
                    "mobility", now["time_s"], only, text + (f" ({count} of them)" * (count > 1))
                )
        complete = counts.get("handover_complete", 0) - known.get("handover_complete", 0)
        if complete > handovers:
            unseen = complete - handovers
            text = f"handover complete, {unseen} more between two snapshots"
            self.add("mobility", now["time_s"], only, text)


def _of_ue(was: UeSnapshot, ue: UeSnapshot) -> Iterator[tuple[str, str]]:
    if was["cell"] != ue["cell"]:
        camping = was["rrc"] in CAMPING and ue["rrc"] in CAMPING
        what = "cell reselection" if camping else "handover"
        under_way = ", under way" * (ue["rrc"] == BETWEEN_CELLS)
        yield "mobility", f"{what} from {was['cell']} to {ue['cell']}{under_way}"
    if was["rrc"] != ue["rrc"]:
        if was["rrc"] == BETWEEN_CELLS:
            yield "mobility", f"{ue['rrc']} in {ue['cell']}"
        elif ue["rrc"] == BETWEEN_CELLS:
            if was["cell"] == ue["cell"]:
                yield "mobility", f"without a cell, on its way to {ue['cell']}"
        else:
            yield "rrc", f"{was['rrc']} to {ue['rrc']}"
    if was["drx"] != ue["drx"] and was["drx"] and ue["drx"]:
        yield "drx", f"{was['drx']} to {ue['drx']}"
