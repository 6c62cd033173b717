"""How certain the figures of ``airpath measure`` are: ramps and anytime intervals.

``ramp`` separates the start of a transfer from its steady rate. ``anytime`` is the interval of a
mean that a stopping rule may look at after each value. What treatments change is in `effects`.

    found = anytime([52.1, 48.7, 55.0, 50.2, 51.4, 49.9])
    done = narrow_enough(found, 0.05)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from airpath.analysis.statistics import Interval, student_t_quantile

Values = npt.NDArray[np.float64]

BAND = 0.05
"""A rate has settled when its mean stays within this share of the steady rate: the 5 % band of a
settling time, as control engineering defines it."""

_BIN_S = 0.1
_MOST_BINS = 100
_LEAST_BINS = 8
_LATEST = 0.9
"""Share of the phase by which a ramp has to end to be seen as ended."""
_ROUNDS = 4
_OUTLIER = 2.5
_SMALLEST_NOISE = 0.02
_LEAST_FOR_LOG = 1e-12

_SPREAD = 0.1
_CORRELATIONS = np.arange(10) / 10
_NO_CORRELATION = np.zeros(1)
_CALIBRATION = 0.25
_FARTHEST = 1e4
_DRAWS = 20_000


@dataclass(frozen=True)
class Ramp:
    """When a transfer reached its steady rate, and that rate."""

    converged_after_s: float | None
    """Time since the start of the phase after which the mean rate stays within 5 % of the steady
    rate; 0 without a ramp, None if the rate still grew when the phase ended."""
    steady_mbps: float
    """Goodput from then on. Without convergence it is that of the last quarter of the phase, and
    less than the steady rate."""
    steady_interval: Interval
    """95 % interval of ``steady_mbps`` as the rate of this phase in the long run; its bounds are
    None without convergence."""
    over_1s_after_s: float | None
    """First time at which the goodput of the preceding second is at least 90 % of
    ``steady_mbps``: ``converged_after_s`` of ``airpath run``, for comparison with simulations."""


def merged(streams: Sequence[Sequence[tuple[float, int]]]) -> list[tuple[float, int]]:
    """Add up the arrivals of parallel streams: seconds and cumulative bytes."""
    steps = []
    for stream in streams:
        before = 0
        for time_s, total in stream:
            steps.append((time_s, total - before))
            before = total
    steps.sort()
    made, total = [], 0
    for time_s, more in steps:
        total += more
        made.append((time_s, total))
    return made


def ramp(arrived: Sequence[tuple[float, int]], duration_s: float) -> Ramp:
    """Find when a transfer reached its steady rate, and its steady rate.

    ``arrived`` has seconds since the start of the phase and cumulative bytes; ``duration_s`` is
    how long the phase really took. Raises ``ValueError`` for a duration that is not positive.

    The mean rate is modelled as a ramp of some shape (linear, convex, concave, exponential as in
    slow start, or a step) from a first level to a constant one, which it may also reach after the
    end of the phase, against a constant mean. Noise is first-order autoregressive, and outliers (a
    stall and the burst after it) are weighted down (Huber 1964). Each end and shape of a ramp has
    its likelihood, with the penalty of the Bayesian information criterion (Schwarz 1978) for the
    additional level; the answer is the median over all of them. A saw-tooth of CUBIC is noise
    around a constant mean. ``airpath run`` has a plainer figure, which needs phases of 5 s and is
    about 0.5 s (of a step: 0.9 s) later, since it looks at the preceding second.

    Measured on 900 synthetic phases of 4 to 10 s (``drawn_phase`` of ``test_measure_intervals.py``,
    seeds 40000 to 40149), with up to 20 % of noise that is correlated over up to 0.5 s, stalls,
    bursts and saw-teeth: within 0.5 s or 10 % of the true end in 93 % of exponential and 87 % of
    convex ramps, and in 73 % of linear and 75 % of concave ones, whose end is flat; 99 % of phases
    without a ramp and 83 % of those that end before their ramp are recognised. In 40 simulated slow
    ramps (the study 5g-drx with uplink jitter, seeds 100 to 139) 39 ends are found.
    """
    if not duration_s > 0:
        raise ValueError("a phase has a positive duration")
    times, totals = _curve(arrived, duration_s)
    width = max(duration_s / _MOST_BINS, min(_BIN_S, duration_s / 20))
    bins = math.floor(duration_s / width + 1e-9)
    total = float(totals[-1])
    if total <= 0 or bins < _LEAST_BINS or len(times) < 3:
        rate = total * 8e-6 / duration_s
        return Ramp(None, rate, Interval(rate, None, None), None)
    at = np.searchsorted(times, np.arange(bins + 1) * width + 1e-9, side="right") - 1
    rates = np.diff(totals[at]) * 8e-6 / width
    settled, correlation = _settled(rates)
    if settled is None:
        first = bins - max(1, bins // 4)
        rate = float(rates[first:].mean())
        return Ramp(None, rate, Interval(rate, None, None), None)
    found = _steady(rates[math.ceil(settled) :], correlation)
    reached = _over_a_second(times, totals, found.mean)
    return Ramp(settled * width, found.mean, found, reached)


def anytime(
    values: Sequence[float] | Values, confidence: float = 0.95, *, drifts: bool = True
) -> Interval:
    """Mean of values and an interval that may be looked at after each value, to decide on more.

    Values are normal and equally spaced in time. With ``drifts`` they may be first-order
    autoregressive: blocks that are close in time see the same state of the radio cell. Without,
    they are independent, as what remains of paired values in a block is. Bounds are None while they
    are infinite: below three values.

    The interval is the set of means that a Bayes factor does not refute. With independent values
    it is the t confidence sequence (Lai 1976) with a normal mixture (Wang and Ramdas 2024): for a
    mean m, x = values - m, V = sum x², S = sum x and c² = 0.1,

        M = sqrt(c² / (n + c²)) (V / (V - S² / (n + c²)))^(n / 2)

    starts at 1 and is a martingale for the true m. With ``drifts``, both sides of the factor are
    averaged over the correlation of neighbours, 0 to 0.9, with prior weights that decrease
    linearly. By Ville's inequality the set of M < 1 / (1 - confidence) holds the truth at all
    times. Because measurements have tens of values and not infinitely many, this set holds it far
    more often than stated; the threshold is therefore a quarter, which was calibrated by
    simulation and is no longer a theorem.

    Measured where the half-width or the end of the measurement stops a path that is looked at from
    the third value on (6 to 40 values, correlation uniform in 0 to 0.8 of 30 to 100 % of the
    variance, stop at 5 %; seeds 301, 302, 303): the interval holds the truth in 97.8, 95.8 and
    95.3 % of 400 paths each. With a given correlation and 40 values (seed 2) it is 98 % for 0, 97
    to 98 % for 0.3, 94 to 97 % for 0.5, and only 86 to 93 % for 0.7. Without ``drifts``,
    independent values (seed 600): 96 to 98 %. All 38 looks at once, with ``drifts``: 96.9 % for
    independent values, 95.0 % for a correlation of 0.2. Median half-width in standard deviations:
    3.2 with 3 values, 1.7 with 8, 1.0 with 20. Over walks of the SINR (``airpath-dev intervals``,
    seed 51532, 200 paths) it holds the truth in 96.5, 94.0 and 97.5 % with up to 4, 8 and 16
    blocks, and half its width is 44, 31 and 22 % of the rate. A drift that is slower than
    the measurement cannot be seen in it.

    ``analysis.sequential`` looks a few times only, decides on rounds of seeds that are independent,
    and needs ten of them; ``analysis.intervals`` is right for a single look. Neither may be looked
    at after each block.
    """
    if not 0.5 <= confidence < 1:
        raise ValueError("confidence must be in [0.5, 1)")
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        raise ValueError("no values")
    mean, deviation = float(data.mean()), float(data.std())
    if len(data) < 3:
        return Interval(mean, None, None)
    if deviation <= 1e-12 * abs(mean):
        return Interval(mean, mean, mean)
    evidence = _Evidence.of((data - mean) / deviation, _CORRELATIONS if drifts else _NO_CORRELATION)
    threshold = math.log(max(1.0, _CALIBRATION / (1 - confidence)))
    high, low = (_reach(evidence, side, threshold) for side in (1, -1))
    if high is None or low is None:
        return Interval(mean, None, None)
    return Interval(mean, mean - low * deviation, mean + high * deviation)


def plausible(values: Values, generator: np.random.Generator) -> Values:
    """Draw means that the values, in the order of time, make plausible in the long run.

    Values are normal and first-order autoregressive, with a correlation of 0 to 0.9 whose prior
    weights decrease linearly, as in ``anytime``; level and logarithm of the spread have flat
    priors. Given the correlation the mean then has a t distribution about its least-squares
    estimate (Zellner 1971, 4.1). For a single look at values, two at least.
    """
    count = len(values)
    centre, spread = float(values.mean()), float(values.std())
    if spread <= 1e-12 * abs(centre) or spread == 0:
        return np.full(_DRAWS, centre)
    found = _Evidence.of((values - centre) / spread, _CORRELATIONS)
    means = found.products / found.effective
    rest = np.maximum(found.squares - found.products * means, 1e-12)
    weights = found.weights - np.log(found.effective) / 2 - (count - 1) / 2 * np.log(rest)
    chances = np.exp(weights - weights.max())
    which = generator.choice(len(chances), size=_DRAWS, p=chances / chances.sum())
    errors = np.sqrt(rest / (count - 1) / found.effective)
    drawn = means[which] + errors[which] * generator.standard_t(count - 1, size=_DRAWS)
    return centre + spread * drawn


def narrow_enough(interval: Interval, until: float) -> bool:
    """Whether half of the interval is at most this share of its mean; 0.05: 5 %."""
    bounds = interval.bounds
    return bounds is not None and (bounds[1] - bounds[0]) / 2 <= until * abs(interval.mean)


# The ramp ----------------------------------------------------------------------------------------


def _curve(arrived: Sequence[tuple[float, int]], duration_s: float) -> tuple[Values, Values]:
    kept = [(max(0.0, time_s), total) for time_s, total in arrived if time_s <= duration_s]
    times = np.array([0.0] + [time_s for time_s, _ in kept])
    totals = np.array([0.0] + [float(total) for _, total in kept])
    return np.maximum.accumulate(times), np.maximum.accumulate(totals)


class _Shapes(NamedTuple):
    """Ramps that a phase may have: from 0 to 1, which they have reached at their end."""

    rows: Values
    """Shape, one row for each."""
    ends: Values
    """End of each ramp, in bins; up to twice the phase."""
    fits: tuple[Values, ...]
    """Inverse of each shape, at thousandths of the way."""
    kinds: npt.NDArray[np.int64]
    prior: Values
    """Logarithm of the prior weight of each; that of no ramp is 0."""


_GRID = np.linspace(0, 1, 1001)


def _profiles(along: Values) -> list[Values]:
    """Shapes of a ramp, at shares of its time."""
    powers = [along**power for power in (1, 2, 3)]
    exponential = [np.expm1(growth * along) / math.expm1(growth) for growth in (2, 4, 7)]
    return [*powers, *exponential, 1 - (1 - along) ** 2, (along >= 1).astype(np.float64)]


@lru_cache(maxsize=16)
def _shapes(bins: int) -> _Shapes:
    ends = np.arange(1, 2 * bins + 1, dtype=np.float64)
    ends = ends[(ends <= bins) | (ends % 4 == 0)]
    along = np.minimum((np.arange(bins) + 0.5) / ends[:, None], 1)
    rows = _profiles(along)
    weight = np.where(ends > bins, 4.0, 1.0) / (2 * bins * len(rows))
    return _Shapes(
        np.concatenate(rows),
        np.tile(ends, len(rows)),
        tuple(_profiles(_GRID)),
        np.repeat(np.arange(len(rows)), len(ends)),
        np.tile(np.log(weight), len(rows)),
    )


def _settled(rates: Values) -> tuple[float | None, float]:
    """When the rate settles, in bins, and the correlation of neighbouring bins."""
    shapes, bins = _shapes(len(rates)), len(rates)
    weights, correlation = np.ones(bins), 0.0
    for _ in range(_ROUNDS):
        first, last, lack = _fitted(rates, shapes.rows, weights, correlation)
        level, lack_level = _constant(rates, weights, correlation)
        settles = _settling(shapes, first, last)
        falls = last < first
        wrong = (first < -0.2 * np.abs(last)) | (last <= 0)
        # A burst that a token bucket lets pass is at the start; a fall at the end is a stall.
        wrong |= falls & ((settles > bins / 2) | (shapes.ends > bins))
        likely = shapes.prior - bins / 2 * np.log(lack) - math.log(bins) / 2
        likely[wrong] = -np.inf
        without = -bins / 2 * math.log(lack_level)
        best = int(likely.argmax())
        mean = np.full(bins, level)
        if likely[best] > without:
            mean = first[best] + (last[best] - first[best]) * shapes.rows[best]
        correlation = _correlation(rates - mean)
        weights = _weights(_whitened(rates - mean, correlation), level, correlation)
    every = np.append(likely, without)
    chances = np.exp(every - every.max())
    times = np.append(settles, 0.0)
    order = np.argsort(times)
    middle = np.searchsorted(np.cumsum(chances[order]), chances.sum() / 2)
    median = float(times[order[min(int(middle), len(order) - 1)]])
    return (None if median > _LATEST * bins else median), correlation


def _fitted(
    rates: Values, rows: Values, weights: Values, correlation: float
) -> tuple[Values, Values, Values]:
    """Least squares for each shape: first level, last level, and the squares that remain."""
    y, one = _whitened(rates, correlation), _whitened(np.ones(len(rates)), correlation)
    shape = _whitened(rows, correlation)
    weighted = shape * weights
    oo, oy, yy = (float((weights * a * b).sum()) for a, b in ((one, one), (one, y), (y, y)))
    og, gg, gy = weighted @ one, (weighted * shape).sum(axis=1), weighted @ y
    determinant = oo * gg - og * og
    usable = determinant > 1e-6 * oo * gg
    rise = (oo * gy - og * oy) / np.where(usable, determinant, 1)
    first = (oy - rise * og) / oo
    lack = np.where(usable, yy - first * oy - rise * gy, yy)
    return first, first + rise, np.maximum(lack, 1e-9 * yy + _LEAST_FOR_LOG)


def _constant(rates: Values, weights: Values, correlation: float) -> tuple[float, float]:
    """Level of a constant mean, and the squares that remain."""
    y, one = _whitened(rates, correlation), _whitened(np.ones(len(rates)), correlation)
    level = float((weights * one * y).sum() / (weights * one * one).sum())
    yy = float((weights * y * y).sum())
    return level, max(float((weights * (y - level * one) ** 2).sum()), 1e-9 * yy + _LEAST_FOR_LOG)


def _settling(shapes: _Shapes, first: Values, last: Values) -> Values:
    """When each ramp comes within ``BAND`` of its last level, in bins; 0 if it is always within."""
    way = np.abs(last - first)
    share = 1 - BAND * np.abs(last) / np.maximum(way, _LEAST_FOR_LOG)
    along = np.empty(len(share))
    for kind, profile in enumerate(shapes.fits):
        of = shapes.kinds == kind
        along[of] = np.interp(share[of], profile, _GRID)
    # A step has no inverse to interpolate: it settles at its end.
    along[shapes.kinds == len(shapes.fits) - 1] = 1.0
    return np.where(share <= 0, 0.0, along * shapes.ends)


def _whitened(values: Values, correlation: float) -> Values:
    """Values less what their predecessors predict (Prais and Winsten 1954)."""
    made = values.copy()
    made[..., 1:] -= correlation * values[..., :-1]
    made[..., 0] *= math.sqrt(1 - correlation**2)
    return made


def _correlation(residuals: Values) -> float:
    power = float((residuals * residuals).mean())
    if power <= 0:
        return 0.0
    return float(np.clip((residuals[1:] * residuals[:-1]).mean() / power, 0, 0.9))


def _weights(innovations: Values, level: float, correlation: float) -> Values:
    """Weights of bins (Huber 1964): less for outliers."""
    noise = 1.4826 * float(np.median(np.abs(innovations)))
    noise = max(noise, _SMALLEST_NOISE * abs(level) * math.sqrt(1 - correlation**2), 1e-12)
    return np.minimum(1, _OUTLIER * noise / np.maximum(np.abs(innovations), 1e-12))


def _steady(rates: Values, correlation: float) -> Interval:
    """Mean rate and its interval, with the number of values that independent ones would need."""
    count = len(rates)
    mean = float(rates.mean())
    effective = count * (1 - correlation) / (1 + correlation)
    if effective < 3:
        return Interval(mean, None, None)
    error = float(rates.std(ddof=1)) / math.sqrt(effective)
    half = student_t_quantile(0.975, math.floor(effective) - 1) * error
    return Interval(mean, max(0.0, mean - half), mean + half)


def _over_a_second(times: Values, totals: Values, steady_mbps: float) -> float | None:
    ago = np.interp(times - 1, times, totals)
    rates = (totals - ago) * 8e-6
    reached = np.flatnonzero((times >= 1) & (rates >= 0.9 * steady_mbps))
    return float(times[reached[0]]) if len(reached) else None


# The anytime interval ----------------------------------------------------------------------------


class _Evidence(NamedTuple):
    """Values, seen with each correlation: sums from which a mean is judged."""

    length: int
    squares: Values
    """x' R⁻¹ x for the correlation matrix R."""
    products: Values
    """1' R⁻¹ x."""
    effective: Values
    """1' R⁻¹ 1: how many independent values say as much about the mean."""
    weights: Values
    """Logarithm of the prior weight, and of 1 / sqrt(det R)."""

    @classmethod
    def of(cls, values: Values, correlations: Values) -> _Evidence:
        """Sum up values."""
        rest = 1 - correlations**2
        later = values[1:] - correlations[:, None] * values[:-1]
        one = 1 - correlations
        count = len(values)
        prior = one / one.sum()
        return cls(
            count,
            values[0] ** 2 + (later * later).sum(axis=1) / rest,
            values[0] + one * later.sum(axis=1) / rest,
            1 + (count - 1) * one * one / rest,
            np.log(prior) - (count - 1) / 2 * np.log(rest),
        )

    def against(self, means: Values) -> Values:
        """Logarithm of the Bayes factor against each of these means."""
        mean = means[:, None]
        squares = self.squares - 2 * mean * self.products + mean * mean * self.effective
        total = self.products - mean * self.effective
        spread = self.effective + _SPREAD
        null = self.weights - self.length / 2 * np.log(squares)
        other = self.weights + np.log(_SPREAD / spread) / 2
        other = other - self.length / 2 * np.log(squares - total * total / spread)
        found: Values = np.logaddexp.reduce(other, axis=1) - np.logaddexp.reduce(null, axis=1)
        return found


def _reach(evidence: _Evidence, side: int, threshold: float) -> float | None:
    """How far from the mean the interval reaches to one side; None: to infinity."""
    low, high = 1e-6, _FARTHEST
    for _ in range(5):
        far = np.geomspace(low, high, 64)
        within = evidence.against(side * far) < threshold
        if within[-1]:
            return None
        # The farthest mean that is not refuted, should the set have gaps.
        last = int(np.flatnonzero(within)[-1]) if within.any() else 0
        low, high = float(far[last]), float(far[last + 1])
    return high
