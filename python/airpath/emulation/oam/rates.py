"""What each cell and UE carried over the last minutes, for the curves of the status page."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from airpath.pictures import Curve

INTERVAL_S = 1.0
"""Between two points; each is the rate of the second before it."""

MOST_POINTS = 300
MOST_UES = 8
"""With a curve, the first ones; the table of UEs has them all."""

WHOLE = "whole path"

Rate = tuple[float, float]
"""Downlink and uplink in Mb/s."""


@dataclass(frozen=True)
class _Point:
    time_s: float
    rates: dict[str, Rate]


class Rates:
    """The newest points; names of cells and UEs are kept apart by their kind."""

    def __init__(self) -> None:
        self._points: deque[_Point] = deque(maxlen=MOST_POINTS)

    def is_due(self, time_s: float) -> bool:
        """Whether the last point is long enough ago."""
        return not self._points or time_s - self._points[-1].time_s >= INTERVAL_S - 1e-6

    def add(self, time_s: float, rates: Mapping[str, Rate]) -> None:
        """Add a point: rates by what a curve is called."""
        self._points.append(_Point(time_s, dict(rates)))

    def curves(self) -> list[Curve]:
        """Return a curve for each name, in the order in which they were given."""
        names = list(self._points[-1].rates) if self._points else []
        return [self._curve(name) for name in names]

    def _curve(self, name: str) -> Curve:
        known = [point for point in self._points if name in point.rates]
        down, up = zip(*(point.rates[name] for point in known), strict=True)
        return Curve(name, [point.time_s for point in known], (down, up))
