"""Means with Student-t confidence intervals, in plain Python: samples here are a few seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class Interval(NamedTuple):
    """A mean and its confidence interval; ``low`` and ``high`` are None below two values."""

    mean: float
    low: float | None
    high: float | None

    @property
    def bounds(self) -> list[float] | None:
        """``[low, high]``, or None."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean and two-sided Student-t interval of independent values."""
    count = len(values)
    if count == 0:
        raise ValueError("no values")
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, None, None)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = student_t_quantile(0.5 + confidence / 2, count - 1) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half)


def percent_above(these: Sequence[float], those: Sequence[float]) -> Interval:
    """By how many percent one mean is above another; paired values.

    The interval is that of a ratio of means by linearisation (delta method).
    """
    ratio = math.fsum(these) / math.fsum(those)
    mean = math.fsum(those) / len(those)
    residuals = [(this - ratio * that) / mean for this, that in zip(these, those, strict=True)]
    return mean_interval([100 * (ratio - 1 + residual) for residual in residuals])


@lru_cache(maxsize=256)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t distribution, by bisection of its distribution function."""
    if not 0.5 <= probability < 1:
        raise ValueError("probability must be in [0.5, 1)")
    if degrees < 1:
        raise ValueError("at least one degree of freedom")
    low, high = 0.0, 1.0
    while _t_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_cdf(t: float, degrees: int) -> float:
    # For t >= 0: P(T <= t) = 1 - I_x(n/2, 1/2) / 2 with x = n / (n + t^2).
    x = degrees / (degrees + t * t)
    return 1 - _incomplete_beta(x, degrees / 2, 0.5) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function by its continued fraction (DLMF 8.17.22)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_front) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    # Lentz's method; d_2m and d_2m+1 are the coefficients of DLMF 8.17.22.
    tiny = 1e-300
    front, c, d = 1.0, 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    front = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            d = 1 + coefficient * d
            c = 1 + coefficient / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            front *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front
