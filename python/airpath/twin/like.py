"""Like with like: what both sides are told, and what cannot be compared.

The simulated endpoints get the profile of the running kernel. Segments that leave the path together
are handed to the kernel as one (``emulation.coalesce_bytes``), so the simulated receivers aggregate
as much of what arrives at one instant. A simulated host answers in no time, a real one some tens
of microseconds later: over a radio the simulated one gets as many (``radio.host_delay_ms``,
``radio.host_jitter_ms``), and its server some before it answers.

What a radio does depends on when a flow meets its slots, so each seed starts the flows at another
moment, the same on both sides.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath import scenario as scenarios
from airpath.toml import parse_toml

if TYPE_CHECKING:
    from airpath import _core

UNTOLD = (
    "slow_start",
    "slow_start_limit_segments",
    "hystart_ack_train",
    "hystart_delay",
    "hystart_falling_minimum_exits",
    "hystart_late_reset",
    "cubic_c",
    "cubic_beta",
    "reno_halves",
    "reno_grows_by",
    "initial_rto_ms",
    "max_rto_ms",
    "delayed_ack_segments",
    "delayed_ack_ms",
    "delayed_ack_max_ms",
    "delayed_ack_ticking",
    "quick_ack_segments",
    "ack_pushed_at_once",
    "rto_estimator",
    "cwnd_reduction",
    "undo_by_timestamps",
    "undo_by_dsack",
    "rack_timer_tick_ms",
    "cwnd_grows_half_used",
    "cwnd_grows_by_delivered",
    "cwnd_decays",
    "offload_bytes",
)
"""Flow keys that the kernel cannot be told: if they are not the profile's, it does otherwise."""

HOST_MS = 0.02
HOST_JITTER_MS = 0.03
"""From radio to TCP and back out, of this order on any machine; far below a slot. Not always the
same: where the kernel compares a time with a round trip of whole slots, such times decide."""

SERVER_MS = 0.03
"""From an acknowledgement to the segments that it allows; added to a delay of the path."""

PHASES_S = 0.04
"""Starts of the seeds are spread over so long: every phase of scheduling requests and of 10 ms."""

_LINUX = re.compile(r"linux-(\d+)\.(\d+)")


@dataclass(frozen=True)
class Likeness:
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
    """What was set, likeness included."""

    def of_seed(self, index: int) -> tuple[_core.Scenario, _core.Scenario]:
        """The scenario of the ``index``-th seed: simulated, emulated."""
        # The golden ratio: any number of them is spread evenly.
        later = round(index * 0.6180339887 % 1.0 * PHASES_S, 6)
        document = parse_toml(self.scenario.resolved_toml)
        starts = [
            f"flow.{place}.start_s={flow.get('start_s', 0) + later:.6f}"
            for place, flow in enumerate(document["flow"])
        ]
        both = [*self.sets, *(starts if later else [])]
        host = hosts_take_time(document)
        return scenarios.load(self.name, [*both, *host]), scenarios.load(self.name, both)


def like_with_like(
    name: str, sets: scenarios.Sets = None, *, own_profiles: bool = False, release: str = ""
) -> Likeness:
    """Load a scenario for both sides; ``release`` stands for the running kernel's."""
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
        extra.append(f"flow.{index}.aggregation_bytes={base.coalesce_bytes}")
    told = (*given, *extra)
    scenario = scenarios.load(name, told)
    reasons = {}
    for index, flow in flows:
        used = profile or str(flow["profile"])
        reason = None
        if used != nearest:
            reason = f"its profile is {used}, the kernel is {release}"
        elif not exact:
            reason = f"there is no profile of Linux {release}; {nearest} is the nearest"
        else:
            reason = _untold(parse_toml(scenario.resolved_toml)["flow"][index], used)
        if reason is not None:
            reasons[str(flow["id"])] = reason
    return Likeness(scenario, release, profile, reasons, name, told)


def hosts_take_time(document: dict[str, Any]) -> list[str]:
    """What to set of a resolved scenario, so that its simulated hosts are not faster than any.

    A server that answers on a slot's edge would be in time for a slot that a real one misses.
    """
    radio = document.get("radio")
    if not radio:
        return []
    down = document.get("path", {}).get("down", [])
    delays = [
        index for index, stage in enumerate(down) if stage["stage"] == "delay" and stage["enabled"]
    ]
    return [
        f"radio.host_delay_ms={radio.get('host_delay_ms', 0) + HOST_MS}",
        f"radio.host_jitter_ms={radio.get('host_jitter_ms', 0) + HOST_JITTER_MS}",
        *(
            f"path.down.{index}.delay_ms={down[index]['delay_ms'] + SERVER_MS}"
            for index in delays[:1]
        ),
    ]


def nearest_profile(release: str, names: Sequence[str]) -> tuple[str, bool]:
    """The newest Linux profile that is not newer than a kernel; whether it is of that version."""
    wanted = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    known = sorted(
        (int(match[1]), int(match[2])) for name in names if (match := _LINUX.fullmatch(name))
    )
    found = max((version for version in known if version <= wanted), default=known[0])
    return f"linux-{found[0]}.{found[1]}", found == wanted


def _untold(flow: dict[str, Any], profile: str) -> str | None:
    """Why the kernel does not do what a flow says."""
    reference = _profile_of(str(flow["congestion"]), profile)
    other = [
        f"{key} is {flow.get(key)}, the kernel's {reference.get(key)}"
        for key in UNTOLD
        if flow.get(key) != reference.get(key)
    ]
    return "; ".join(other) or None


def _profile_of(congestion: str, profile: str) -> dict[str, Any]:
    text = f"""
[[path.up]]
stage = "delay"
delay_ms = 1
[[flow]]
kind = "bulk"
congestion = "{congestion}"
profile = "{profile}"
"""
    plain = scenarios.parse(text, "profile")
    flow: dict[str, Any] = parse_toml(plain.resolved_toml)["flow"][0]
    return flow
