"""Whether the place of the server limits TCP: phases with another server, in the same blocks.

The path between UE and core is common to both servers. What differs is the path beyond, and the
server itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airpath.base.text import digits, milliseconds, rate
from airpath.measure.effects import MATERIAL, Effect
from airpath.measure.plan import ALSO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airpath.documents import Metric

ADVICE = "Place the server next to the UPF."
AT_LIMIT = 0.85
"""Share of a server's limit that goodput reaches: headers and retransmissions take the rest."""
_LEAST_MS = 1.0
"""Two slots of NR at 30 kHz: below that a host's own wake-ups show."""


@dataclass(frozen=True)
class Servers:
    """The servers of a measurement: what they allow, and how they are reached."""

    limit_mbps: float | None = None
    """Rate that the server allows a session."""
    also: str | None = None
    """The other server; None: there is none."""
    also_limit_mbps: float | None = None
    families: tuple[str, str | None] = ("IPv4", None)
    """``IPv4`` or ``IPv6``, of the server and of the other one."""


@dataclass(frozen=True)
class Placement:
    """Whether the server's place costs anything in a direction."""

    verdict: Literal["cause", "none", "open"]
    """``none``: the other server gains less than a seventh; ``open``: the intervals are too wide
    to tell."""
    said: str
    effect: Effect | None
    """The effect that counts: of the rate, otherwise of the idle round trips."""
    metric: Metric


def judge(
    rates: Mapping[str, Effect], trips: Mapping[str, Effect], servers: Servers
) -> Placement | None:
    """Judge the server's place by effects on the rate and on the round trips of the idle path.

    None without phases of the other server.

    It is the cause if the other server raises the rate or shortens idle round trips by a seventh
    or more, and the 95 % interval excludes no effect.
    """
    fast, near = rates.get(ALSO), trips.get(ALSO)
    if servers.also is None or (fast is None and near is None):
        return None
    bounded = fast is not None and _is_bounded(fast, servers)
    judged = None if bounded else fast
    said = _figures(fast, near)
    if bounded:
        said += (
            " A server's own limit (--most-rate) bounds the rate, so the rates are not compared."
        )
    families = servers.families
    if families[1] not in (None, families[0]):
        said += f" The other server is reached over {families[1]}, this server over {families[0]}."
    words = f"With {servers.also} as the server {said}"
    if judged is not None and judged.raised:
        return Placement("cause", words, judged, "goodput_mbps")
    if near is not None and near.lowered and near.before - near.after >= _LEAST_MS:
        return Placement("cause", words, near, "rtt_ms.mean")
    slower = judged is None or judged.high < 1 + MATERIAL
    farther = near is None or near.low > 1 - MATERIAL or near.before - near.after < _LEAST_MS
    known = slower and farther and not (judged is None and near is None)
    return Placement("none" if known else "open", words, None, "goodput_mbps")


def _is_bounded(fast: Effect, servers: Servers) -> bool:
    sides = ((fast.before, servers.limit_mbps), (fast.after, servers.also_limit_mbps))
    return any(limit is not None and value >= AT_LIMIT * limit for value, limit in sides)


def _figures(fast: Effect | None, near: Effect | None) -> str:
    told = []
    if fast is not None:
        told.append(f"the rate is {rate(fast.after)} instead of {rate(fast.before)}{_x(fast)}")
    if near is not None:
        trips = f"{milliseconds(near.after)} instead of {milliseconds(near.before)}"
        told.append(f"round trips of the idle path take {trips}{_x(near)}")
    return " and ".join(told) + "."


def _x(effect: Effect) -> str:
    within = effect.interval
    bounds = "" if within is None else f"; 95 %: {digits(within[0])} to {digits(within[1])}"
    return f" (x {digits(effect.factor)}{bounds})"
