"""A scenario made comparable: what both sides are told, and what cannot be compared.

The simulated endpoints get the profile of the running kernel. Segments that leave the path together
are handed to the kernel as one (``emulation.coalesce_bytes``), so the simulated receivers aggregate
as much of what arrives at one instant. A simulated host answers at once, a real one some tens
of microseconds later: over a radio the simulated one gets as many (``radio.host_delay_ms``,
``radio.host_jitter_ms``), and its server some before it answers; over a wire both ends get some.
Nor does a whole window leave at once: what sends over a wire has an interface.

What a radio does depends on when a flow meets its slots, so each seed starts the flows at another
moment, the same on both sides.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airpath import scenario as scenarios
from airpath.base.json import Json
from airpath.base.toml import parse_toml
from airpath.emulation.congestion import parse_all

if TYPE_CHECKING:
    from airpath import _core
    from airpath.emulation.congestion import Congestion

HOST_MS = 0.02
HOST_JITTER_MS = 0.015
"""From radio to TCP and back out, of this order on any machine; far below a slot. Not always the
same: where the kernel compares a time with a round trip of whole slots, such times decide."""

SERVER_MS = 0.03
"""From an acknowledgement to the segments that it allows, or the other way round; added to a delay
of the path. In a capture of 6.18: 35 us and 27 us."""

START_MS = 0.06
"""From the time of a flow's start to its SYN: its program is woken first. A SYN at the very edge of
a slot would be in time for a slot that no real one reaches. In captures of 6.18 it was 13 to 245
us, as the kernel's clock of timestamps tells."""

PING_MS = 0.03
"""From the time of a ping to its packet: nobody connects first. In eight emulated runs the median
was 16 to 108 us, in five of them 16 to 27. A SYN that was due together with a ping left 13 us
behind it, and over a thin link so did all of its flow."""

WAKE_MS = 0.07
"""From a handshake's end to the first data: the program is woken. So the first round trip over a
radio is a little shorter than whole slots, and HyStart's comparisons with it are no ties."""

READER_MS = 0.015
"""From the first data of a slot until the program that reads is awake. Until then a receiver whose
window stands still does not acknowledge. With 6.18 the median was 15 us over LTE, 19 over NR."""

HAND_UP_MS = 0.007
HAND_UP_SEGMENT_MS = 0.001
"""From one burst of a slot, or one acknowledgement, to the next, and more for each segment of it.
With 6.18: 12 us after two segments, 16 after six; 6 us less where the reader is awake already. So a
reader often finds two bursts at a time."""

INTERFACE_MBPS = 10_000
"""Of a simulated host that sends over a wire, before everything else: a whole window at once
would fill a buffer that a real one does not, because some of it leaves in the meantime."""

PHASES_S = 0.04
"""Starts of the seeds are spread over so long: every phase of scheduling requests and of 10 ms."""

_OF_CONGESTION = ("slow_start", "hystart.", "cubic.", "reno.", "cwnd.")
"""Keys that say what a congestion control does. If one was chosen for the kernel, it is assumed to
do so; that is what the twin then judges."""

_LINUX = re.compile(r"linux-(\d+)\.(\d+)")


@dataclass(frozen=True)
class Comparable:
    """A scenario as both sides run it."""

    scenario: _core.Scenario
    kernel: str
    """``uname -r``."""
    profile: str | None
    """Profile of the simulated endpoints; None: each flow's own."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Flows that cannot be compared, and why."""
    name: str = ""
    """Of the scenario, as it was given."""
    sets: tuple[str, ...] = ()
    """What was set, comparable included."""
    congestion: tuple[Congestion, ...] = ()
    """What the kernel uses instead of the flows' congestion controls."""

    def of_seed(self, index: int) -> tuple[_core.Scenario, _core.Scenario]:
        """The scenario of the ``index``-th seed: simulated, emulated."""
        # The golden ratio: any number of them is spread evenly.
        later = round(index * 0.6180339887 % 1.0 * PHASES_S, 6)
        document = parse_toml(self.scenario.resolved_toml)

        def starts(later: float, pings: float) -> list[str]:
            return [
                f"flow.{place}.start_s="
                f"{flow.get('start_s', 0) + (pings if flow['kind'] == 'ping' else later):.6f}"
                for place, flow in enumerate(document["flow"])
            ]

        both = [*self.sets, *(starts(later, later) if later else [])]
        woken = starts(later + START_MS / 1e3, later + PING_MS / 1e3)
        tcp = (place for place, flow in enumerate(document["flow"]) if "profile" in flow)
        wakes = [
            f"flow.{place}.{key}={time}"
            for place in tcp
            for key, time in _program_takes_time(
                document["flow"][place], radio="radio" in document
            ).items()
        ]
        host = [*hosts_take_time(document), *woken, *wakes]
        simulated = scenarios.load(self.name, [*both, *host])
        _, name, directory = scenarios.read(self.name)
        text = with_interfaces(simulated.resolved_toml, radio="radio" in document)
        return scenarios.parse(text, name, directory), scenarios.load(self.name, both)


def make_comparable(
    name: str,
    sets: scenarios.Sets = None,
    *,
    own_profiles: bool = False,
    release: str = "",
    congestion: Sequence[str] = (),
) -> Comparable:
    """Load a scenario for both sides.

    ``release`` stands for the running kernel's. ``congestion`` has the congestion controls that the
    kernel uses, as of ``airpath emulate --congestion``.
    """
    from airpath import _core

    release = release or platform.release()
    given = scenarios.set_list(sets)
    base = scenarios.load(name, given)
    flows = [(flow["index"], flow) for flow in base.flows if flow["profile"] is not None]
    nearest, exact = nearest_profile(release, _core.profiles())
    profile = None if own_profiles else nearest
    extra = ["run.ack_table=true"]
    for index, _ in flows:
        extra += [f'flow.{index}.profile="{profile}"'] if profile else []
        extra.append(f"flow.{index}.aggregation.max_bytes={base.coalesce_bytes}")
    told = (*given, *extra)
    scenario = scenarios.load(name, told)
    chosen = tuple(parse_all(congestion, scenario))
    theirs = {choice.flow for choice in chosen}
    told_flows = {flow["index"]: flow for flow in scenario.flows}
    reasons = {}
    for index, flow in flows:
        used = profile or str(flow["profile"])
        reason = None
        if used != nearest:
            reason = f"its profile is {used}, the kernel is {release}"
        elif not exact:
            reason = f"there is no profile of Linux {release}; {nearest} is the nearest"
        else:
            free = _OF_CONGESTION if theirs & {None, str(flow["id"])} else ()
            reason = _only_simulated(told_flows[index], free) or None
        if reason is not None:
            reasons[str(flow["id"])] = reason
    return Comparable(scenario, release, profile, reasons, name, told, chosen)


def _program_takes_time(flow: Json, *, radio: bool) -> dict[str, float]:
    """By key. A reader that the scenario describes stays as it is."""
    times = {"ack.wake_ms": WAKE_MS}
    if radio and flow["direction"] == "down":
        times["aggregation.hand_up_ms"] = HAND_UP_MS
        times["aggregation.hand_up_segment_ms"] = HAND_UP_SEGMENT_MS
        if "read_rate_mbps" not in flow and "read_delay_ms" not in flow.get("application", {}):
            times["application.read_delay_ms"] = READER_MS
    return times


def hosts_take_time(document: Json) -> list[str]:
    """What to set of a resolved scenario, so that its simulated hosts are not faster than any.

    A server that answers on a slot's edge would be in time for a slot that a real one misses.
    """
    radio = document.get("radio")
    if not radio:
        return _ends_take_time(document)
    down = document.get("path", {}).get("down", [])
    delays = [
        index for index, stage in enumerate(down) if stage["stage"] == "delay" and stage["enabled"]
    ]
    more = {"host_delay_ms": HOST_MS, "host_jitter_ms": HOST_JITTER_MS}
    # UEs that have values of their own.
    own = [
        f"radio.ue.{index}.{key}={ue[key] + added}"
        for index, ue in enumerate(radio.get("ue", []))
        for key, added in more.items()
        if key in ue
    ]
    return [
        *(f"radio.{key}={radio.get(key, 0) + added}" for key, added in more.items()),
        *own,
        *(
            f"path.down.{index}.delay_ms={down[index]['delay_ms'] + SERVER_MS}"
            for index in delays[:1]
        ),
    ]


def with_interfaces(resolved: str, *, radio: bool) -> str:
    """Put an interface in front of what a host's packets meet first; a UE's meet its radio."""
    stage = f'stage = "link"\nrate_mbps = {INTERFACE_MBPS}\n'
    for direction in ("down",) if radio else ("down", "up"):
        head = f"[[path.{direction}]]\n"
        resolved = resolved.replace(head, f"{head}{stage}\n{head}", 1)
    return resolved


def nearest_profile(release: str, names: Sequence[str]) -> tuple[str, bool]:
    """The newest Linux profile that is not newer than a kernel; whether it is of that version."""
    wanted = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    known = sorted(
        (int(match[1]), int(match[2])) for name in names if (match := _LINUX.fullmatch(name))
    )
    found = max((version for version in known if version <= wanted), default=known[0])
    return f"linux-{found[0]}.{found[1]}", found == wanted


def _ends_take_time(document: Json) -> list[str]:
    """Without a radio: what each end takes is added to the last delay before it."""
    settings = []
    for direction, stages in document.get("path", {}).items():
        places = [
            index
            for index, stage in enumerate(stages)
            if stage["stage"] == "delay" and stage["enabled"]
        ]
        settings += [
            f"path.{direction}.{index}.delay_ms={stages[index]['delay_ms'] + SERVER_MS}"
            for index in places[-1:]
        ]
    return settings


def _only_simulated(flow: _core.ScenarioFlow, free: tuple[str, ...]) -> str:
    """Why the kernel does not do what a flow says; empty if it does.

    Keys that begin with one of ``free`` are not the kernel's.
    """
    return "; ".join(
        f"{key} is {value or 'not given'}, the kernel's is {kernels or 'not'}"
        for key, value, kernels in flow["simulated_only"]
        if not (free and key.startswith(free))
    )
