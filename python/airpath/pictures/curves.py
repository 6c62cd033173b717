"""Rates over time as small SVGs: downlink and uplink of a cell or a UE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WAYS = ("down", "up")

_WIDTH, _HEIGHT = 340, 84
_LEFT, _TOP, _BOTTOM = 40, 18, 14


@dataclass(frozen=True)
class Curve:
    """What one cell or UE carried."""

    name: str
    times_s: Sequence[float]
    """At which there are values, in order."""
    mbps: tuple[Sequence[float], Sequence[float]]
    """Downlink and uplink, one value for each time."""


def curves(drawn: Sequence[Curve]) -> str:
    """Return an SVG for each, one after the other; all share the axis of time."""
    times = [time_s for curve in drawn for time_s in curve.times_s]
    if not times:
        return ""
    return "".join(_svg(curve, min(times), max(times)) for curve in drawn)


def nice_top(value: float) -> float:
    """Return the end of an axis: 1, 2 or 5 times a power of ten that is not below the value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value * (1 - 1e-9))


def _svg(curve: Curve, first_s: float, last_s: float) -> str:
    most = max((value for values in curve.mbps for value in values), default=0.0)
    top = nice_top(most)
    bottom_y = _HEIGHT - _BOTTOM
    span_s = max(last_s - first_s, 1e-9)

    def points(values: Sequence[float]) -> str:
        each = zip(curve.times_s, values, strict=True)
        return " ".join(
            f"{_LEFT + (_WIDTH - _LEFT - 1) * (time_s - first_s) / span_s:.1f},"
            f"{bottom_y - (bottom_y - _TOP) * value / top:.1f}"
            for time_s, value in each
        )

    lines = "".join(
        f'<polyline class="{way}" points="{points(values)}"/>'
        for way, values in zip(WAYS, curve.mbps, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="curve" role="img" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="{escape(_words(curve))}">'
        f'<text class="name" x="{_LEFT}" y="11">{escape(curve.name)}</text>'
        f'<line x1="{_LEFT}" y1="{bottom_y}" x2="{_WIDTH}" y2="{bottom_y}"/>'
        f'<line x1="{_LEFT}" y1="{_TOP}" x2="{_WIDTH}" y2="{_TOP}"/>'
        f'<text class="end" x="{_LEFT - 4}" y="{_TOP + 4}">{top:g}</text>'
        f'<text class="end" x="{_LEFT - 4}" y="{bottom_y}">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 2}">{first_s:.0f} s</text>'
        f'<text class="end" x="{_WIDTH - 1}" y="{_HEIGHT - 2}">{last_s:.0f} s</text>{lines}</svg>'
    )


def _words(curve: Curve) -> str:
    said = [
        f"{way} {values[-1]:.2f} at the end, at most {max(values):.2f}"
        for way, values in zip(WAYS, curve.mbps, strict=True)
        if values
    ]
    return f"{curve.name}, Mb/s over time: {'; '.join(said)}"
