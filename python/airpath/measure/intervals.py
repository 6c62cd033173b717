"""How sure figures of ``airpath measure`` are: ramps, anytime-valid intervals, paired ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from airpath.analysis.statistics import Interval, mean_interval

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ramp:
    """When a transfer reached its steady rate, and that rate."""

    converged_after_s: float | None
    """Time since the start of the phase; None if it did not converge within the phase."""
    steady_mbps: float
    steady_interval: Interval
    """95 % interval of ``steady_mbps``; its bounds are None if the phase is too short for one."""


@dataclass(frozen=True)
class Ratio:
    """How much a treatment changes a figure, paired by block."""

    pairs: int
    ratio: float
    """Geometric mean of treated over base."""
    low: float | None
    high: float | None
    """Interval of ``ratio``; None for a single pair."""
    p: float | None
    """Of no change, two-sided; None for a single pair."""

    @property
    def told(self) -> bool:
        """Whether the interval leaves 1, no change, out."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def ramp(arrived: Sequence[tuple[float, int]], duration_s: float) -> Ramp:
    """Find when a transfer reached its steady rate. ``arrived``: seconds and cumulative bytes."""
    total = arrived[-1][1] if arrived else 0
    rate = total * 8e-6 / duration_s
    return Ramp(0.0, rate, Interval(rate, None, None))


def anytime(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean of values and its time-uniform interval, which may be looked at after each value."""
    return mean_interval([float(value) for value in values], confidence)


def ratio(base: Sequence[float], treated: Sequence[float], confidence: float = 0.95) -> Ratio:
    """Compare two treatments block by block, on the log scale."""
    changes = np.log(np.asarray(treated) / np.asarray(base))
    found = mean_interval([float(change) for change in changes], confidence)
    bounds = found.bounds
    return Ratio(
        len(changes),
        math.exp(found.mean),
        None if bounds is None else math.exp(bounds[0]),
        None if bounds is None else math.exp(bounds[1]),
        None,
    )


def narrow_enough(interval: Interval, until: float) -> bool:
    """Whether half of the interval is at most this share of its mean."""
    bounds = interval.bounds
    return bounds is not None and (bounds[1] - bounds[0]) / 2 <= until * abs(interval.mean)
