"""Confidence intervals, and paired comparison, of campaigns.

From ``BOOTSTRAP_FROM`` values on the interval of a mean is a studentised bootstrap (Efron and
Tibshirani 1993, 12.5), which is right for skewed values too; below, Student's t. What the
bootstrap draws is fixed, so that the same values have the same interval. Where many resamples have
next to no spread, because most values are the same, dividing by it says nothing: there it is
Student's t as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airpath.analysis.statistics import Interval, mean_interval, student_t_quantile

BOOTSTRAP_FROM = 20
"""Values; resampling fewer says less than Student's t."""
RESAMPLES = 2000

_AT_ONCE = 4_000_000
_NO_SPREAD = 0.1
"""A resample whose standard error is below this share of the sample's has next to no spread."""
_FEW_WITHOUT = 0.01
"""Share of resamples without spread that are left out; with more it is Student's t."""
Values = npt.NDArray[np.float64]


def interval(values: Sequence[float] | Values, confidence: float = 0.95) -> Interval:
    """Mean of independent values and its two-sided confidence interval.

    The bounds are None for a single value. Raises ``ValueError`` without any.
    """
    data = np.asarray(values, dtype=np.float64)
    if len(data) < BOOTSTRAP_FROM:
        return mean_interval([float(value) for value in data], confidence)
    mean, low, high = bootstrap(data[None, :], confidence)[0]
    return Interval(float(mean), float(low), float(high))


def bootstrap(samples: Values, confidence: float = 0.95) -> Values:
    """Mean, low and high of each row, by the studentised bootstrap; shape (rows, 3)."""
    rows, size = samples.shape
    means = samples.mean(axis=1)
    errors = samples.std(axis=1, ddof=1) / math.sqrt(size)
    draws = _draws(size)
    tail = (1 - confidence) / 2
    made = np.empty((rows, 3))
    for row in range(rows):
        drawn = samples[row][draws]
        error = drawn.std(axis=1, ddof=1) / math.sqrt(size)
        spread = error > _NO_SPREAD * errors[row]
        if np.mean(~spread) > _FEW_WITHOUT:
            upper = student_t_quantile(1 - tail, size - 1)
            lower = -upper
        else:
            t = (drawn.mean(axis=1) - means[row])[spread] / error[spread]
            lower, upper = np.quantile(t, [tail, 1 - tail])
        made[row] = (means[row], means[row] - upper * errors[row], means[row] - lower * errors[row])
    return made


@lru_cache(maxsize=8)
def _draws(size: int) -> npt.NDArray[np.int64]:
    """Which values each resample has."""
    resamples = max(200, min(RESAMPLES, _AT_ONCE // size))
    drawn: npt.NDArray[np.int64] = np.random.default_rng(size).integers(0, size, (resamples, size))
    return drawn


class Difference(NamedTuple):
    """How much a figure differs between two variants."""

    pairs: int
    """0: not paired."""
    before: float
    after: float
    change: float
    """``after`` less ``before``."""
    low: float | None
    high: float | None
    """95 % interval of ``change``; None for fewer than two values, and where all values of
    each variant are equal: runs without randomness say nothing about chance."""
    p: float | None
    """Of Student's test for pairs, or of Welch's; None where there is no interval, and without
    scipy."""

    @property
    def told(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


def paired(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Difference:
    """Compare two variants seed by seed: both saw the same randomness, which cancels.

    Raises ``ValueError`` for samples of different length, or without values.
    """
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if len(a) != len(b):
        raise ValueError("paired samples have the same length")
    change = interval(b - a, confidence)
    if not (np.ptp(a) or np.ptp(b)):
        change = Interval(change.mean, None, None)
    count, deviation = len(a), float((b - a).std(ddof=1)) if len(a) > 1 else 0.0
    p = None
    if deviation > 0:
        p = _two_sided(change.mean / (deviation / math.sqrt(count)), count - 1)
    elif change.low is not None:
        p = 0.0 if change.mean else 1.0
    return Difference(
        count, float(a.mean()), float(b.mean()), change.mean, change.low, change.high, p
    )


def unpaired(
    before: Sequence[float], after: Sequence[float], confidence: float = 0.95
) -> Difference:
    """Compare two independent samples (Welch 1947)."""
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    change = float(b.mean() - a.mean())
    low = high = p = None
    if len(a) > 1 and len(b) > 1 and (np.ptp(a) or np.ptp(b)):
        va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
        degrees = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
        error = math.sqrt(va + vb)
        half = student_t_quantile(0.5 + confidence / 2, max(1, int(degrees))) * error
        low, high = change - half, change + half
        p = _two_sided(change / error, degrees)
    return Difference(0, float(a.mean()), float(b.mean()), change, low, high, p)


def _two_sided(t: float, degrees: float) -> float | None:
    """The p-value of a t statistic; None without scipy."""
    try:
        from scipy.stats import t as student
    except ModuleNotFoundError:
        return None
    return float(2 * student.sf(abs(t), degrees))
