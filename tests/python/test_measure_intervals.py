"""Intervals of a measurement: how often they hold the truth, and ramps that are known.

Everything is drawn at random with the seeds that are named. Bounds of coverage allow for the
number of drawn paths: two and a half standard deviations beyond what 95 % of many would have.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from airpath import run
from airpath.analysis.statistics import Interval
from airpath.measure.intervals import anytime, merged, narrow_enough, ramp
from airpath.runs.results import Run
from airpath.scenario import STUDIES

pytestmark = pytest.mark.unhurried

Values = npt.NDArray[np.float64]
Generator = np.random.Generator


def correlated(generator: Generator, count: int, correlation: float) -> Values:
    """Standard normal values, first-order autoregressive."""
    drawn = generator.standard_normal(count)
    rest = math.sqrt(1 - correlation**2)
    for index in range(1, count):
        drawn[index] = correlation * drawn[index - 1] + rest * drawn[index]
    return drawn


def drifting(generator: Generator) -> Values:
    """Rates of blocks on a path that drifts about 50 Mb/s."""
    count = int(generator.integers(6, 41))
    share = generator.uniform(0.3, 1)
    drift = correlated(generator, count, generator.uniform(0, 0.8))
    own = generator.standard_normal(count)
    spread = math.exp(generator.uniform(math.log(0.03), math.log(0.2)))
    return 50 * (1 + spread * (math.sqrt(share) * drift + math.sqrt(1 - share) * own))


def stopped(values: Values, until: float) -> Interval:
    """The interval at which a rule stops that looks after each value."""
    found = anytime(values[:3])
    for count in range(3, len(values) + 1):
        found = anytime(values[:count])
        if narrow_enough(found, until):
            break
    return found


def holds(found: Interval, truth: float) -> bool:
    return found.low is None or found.high is None or found.low <= truth <= found.high


def test_anytime_intervals_of_drifting_paths_hold_the_truth() -> None:
    generator = np.random.default_rng(301)
    held = [holds(stopped(drifting(generator), 0.05), 50) for _ in range(200)]
    assert 0.92 <= np.mean(held) <= 0.99


def test_a_t_interval_would_not_hold_it() -> None:
    # The check above can fail: Student's t with the same rule and paths.
    from airpath.analysis.statistics import mean_interval

    generator = np.random.default_rng(301)
    held = []
    for _ in range(200):
        values = [float(value) for value in drifting(generator)]
        found = mean_interval(values[:3])
        for count in range(3, len(values) + 1):
            found = mean_interval(values[:count])
            if narrow_enough(found, 0.05):
                break
        held.append(holds(found, 50))
    assert np.mean(held) < 0.88


def test_every_interval_of_independent_values_holds_the_truth() -> None:
    generator = np.random.default_rng(12)
    held = []
    for _ in range(100):
        values = generator.standard_normal(25)
        held.append(all(holds(anytime(values[:n]), 0) for n in range(3, 26)))
    assert np.mean(held) >= 0.92


def lai(values: Values, confidence_factor: float) -> float:
    """Half-width in closed form (Wang and Ramdas 2024), for independent values."""
    n, c2 = len(values), 0.1
    g = math.exp(2 / n * (-math.log(confidence_factor) + 0.5 * math.log(c2 / (n + c2))))
    return float(values.std()) * math.sqrt((1 - g) / (g - c2 / (n + c2)))


@pytest.mark.parametrize("count", [3, 5, 10, 40])
def test_without_drift_it_is_the_t_confidence_sequence(count: int) -> None:
    values = np.random.default_rng(count).normal(7, 2, count)
    found = anytime(values, drifts=False)
    half = lai(values, 0.25 / 0.05)
    assert found.bounds == pytest.approx([found.mean - half, found.mean + half], rel=1e-6)


def test_anytime_scales_and_shifts_with_the_values() -> None:
    values = np.random.default_rng(3).normal(10, 1, 12)
    first, second = anytime(values), anytime(5 - 1000 * values)
    assert first.low is not None
    assert first.high is not None
    assert second.bounds == pytest.approx([5 - 1000 * first.high, 5 - 1000 * first.low], rel=1e-6)
    wider = anytime(values, 0.99)
    assert wider.low is not None
    assert wider.low < first.low


def test_few_values_have_no_bounds_and_equal_ones_no_width() -> None:
    assert anytime([3.0]).bounds is None
    assert anytime([3.0, 4.0]).bounds is None
    assert anytime([3.0, 3.0, 3.0]).bounds == [3.0, 3.0]
    assert anytime([0.0] * 4).bounds == [0.0, 0.0]
    with pytest.raises(ValueError, match="no values"):
        anytime([])
    with pytest.raises(ValueError, match="confidence"):
        anytime([1.0, 2.0, 4.0], 1.0)


def test_narrow_enough() -> None:
    assert narrow_enough(Interval(100, 95, 105), 0.05)
    assert not narrow_enough(Interval(100, 94, 105), 0.05)
    assert not narrow_enough(Interval(100, None, None), 0.05)


# Ramps -------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A phase whose ramp is known."""

    arrived: list[tuple[float, int]]
    duration_s: float
    rate_mbps: float
    settled_s: float | None
    """When the mean comes within 5 % of the rate; None: not within the phase."""


TICK_S = 0.01


def drawn_phase(seed: int, kind: str) -> Drawn:
    """Draw a phase with noise, saw-teeth, stalls and bursts."""
    generator = np.random.default_rng(seed)
    duration = float(generator.choice([4, 5, 8, 10]))
    times = (np.arange(round(duration / TICK_S)) + 0.5) * TICK_S
    rate = math.exp(generator.uniform(math.log(2), math.log(800)))
    end = duration * (
        generator.uniform(1.3, 3) if kind == "longer" else generator.uniform(0.2, 0.7)
    )
    first, along = generator.uniform(0, 0.5), np.minimum(times / end, 1)
    mean = {
        "none": np.ones(len(times)),
        "linear": first + (1 - first) * along,
        "longer": first + (1 - first) * along,
        "convex": first + (1 - first) * along**3,
        "concave": first + (1 - first) * (1 - (1 - along) ** 2),
        "exponential": np.exp(-generator.uniform(2, 6) * (1 - along)),
    }[kind]
    settled = None if kind == "longer" else float(times[np.argmax(mean >= 0.95)])
    correlation = math.exp(-TICK_S / math.exp(generator.uniform(math.log(0.02), math.log(0.5))))
    noise = generator.uniform(0.02, 0.2) * correlated(generator, len(times), correlation)
    sent = mean * np.maximum(0, 1 + noise) * rate / 8e-6 * TICK_S
    if generator.random() < 0.3:
        period = generator.uniform(0.5, duration / 3)
        sent *= 1 + 0.24 * ((times + generator.uniform(0, period)) % period / period - 0.5)
    for _ in range(generator.poisson(0.5)):
        start, length = int(generator.integers(0, len(times) - 20)), int(generator.integers(5, 40))
        stop = min(len(times) - 1, start + length)
        sent[stop] += sent[start:stop].sum()
        sent[start:stop] = 0
    totals = np.cumsum(sent)
    every = int(generator.integers(1, 8))
    kept = np.flatnonzero((np.arange(len(times)) % every == every - 1) & (sent > 0))
    return Drawn([(float(times[i]), int(totals[i])) for i in kept], duration, rate, settled)


def is_right(found_s: float | None, truth_s: float | None) -> bool:
    """Within 0.5 s or 10 %."""
    if found_s is None or truth_s is None:
        return found_s is truth_s
    return abs(found_s - truth_s) <= max(0.5, 0.1 * truth_s)


@pytest.mark.parametrize(
    ("kind", "least"),
    # Measured with seeds 40000 to 40149: 93, 87, 73, 75, 99 and 83 %.
    [
        ("exponential", 0.87),
        ("convex", 0.78),
        ("linear", 0.6),
        ("concave", 0.6),
        ("none", 0.9),
        ("longer", 0.65),
    ],
)
def test_ramps_in_noise(kind: str, least: float) -> None:
    phases = [drawn_phase(30_000 + index, kind) for index in range(80)]
    found = [ramp(one.arrived, one.duration_s) for one in phases]
    right = [is_right(a.converged_after_s, b.settled_s) for a, b in zip(found, phases, strict=True)]
    assert np.mean(right) >= least
    if kind == "longer":
        return
    errors = [
        a.steady_mbps / b.rate_mbps - 1
        for a, b in zip(found, phases, strict=True)
        if a.converged_after_s is not None
    ]
    assert np.quantile(np.abs(errors), 0.9) < 0.15


@functools.cache
def slow_ramp(seed: int) -> tuple[list[tuple[float, int]], float, float]:
    """Arrivals of a simulated transfer over 5G with uplink jitter, its duration and steady rate."""
    generator = np.random.default_rng(seed)
    delay = float(generator.uniform(2, 30))
    changed: dict[str, float | str] = {
        "path.up.1.jitter_ms": float(generator.uniform(20, 80)),
        "path.up.1.delay_ms": delay,
        "path.down.2.delay_ms": delay,
        "radio.channel.sinr_db": float(generator.uniform(5, 20)),
        "flow.0.profile": str(generator.choice(["linux-4.19", "linux-6.1", "linux-6.18"])),
        "run.sample_interval_ms": 10,
    }
    if seed % 3 == 0:
        changed |= {"flow.0.direction": "up", "flow.0.opened_by": "sender"}
    study = STUDIES / "5g-drx" / "scenario.toml"
    return arrivals(run(study, set=changed, seed=seed))


def arrivals(found: Run) -> tuple[list[tuple[float, int]], float, float]:
    flow = found.flows.row(0, named=True)
    samples = found.samples
    start, duration = flow["start_ns"], (flow["end_ns"] - flow["start_ns"]) / 1e9
    times = (samples["time_ns"] - start) / 1e9
    arrived = list(zip(times.to_list(), samples["delivered_bytes"].to_list(), strict=True))
    return arrived, duration, float(flow["steady_mbps"])


def reached_s(arrived: list[tuple[float, int]], steady_mbps: float) -> float:
    """When the goodput over 0.3 s around a time reaches 90 % of the steady rate."""
    times, totals = np.array(arrived, dtype=np.float64).T
    around = np.arange(0.15, times[-1] - 0.15, 0.02)
    carried = np.interp(around + 0.15, times, totals) - np.interp(around - 0.15, times, totals)
    return float(around[np.argmax(carried * 8e-6 / 0.3 >= 0.9 * steady_mbps)])


def test_simulated_slow_ramps_are_found() -> None:
    right = []
    for seed in range(100, 125):
        arrived, duration, steady = slow_ramp(seed)
        truth = reached_s(arrived, steady)
        right.append(is_right(ramp(arrived, duration).converged_after_s, truth))
    assert np.mean(right) >= 0.9


def test_a_phase_that_is_too_short_for_a_slow_ramp_says_so() -> None:
    short = 0
    for seed in range(100, 125):
        arrived, _, steady = slow_ramp(seed)
        if reached_s(arrived, steady) > 5.5:
            found = ramp([one for one in arrived if one[0] <= 5], 5)
            short += 1
            # Slow growth may pause: then it looks steady, but not for long.
            assert found.converged_after_s is None or found.converged_after_s > 2
    assert short >= 10


def test_over_1s_is_the_figure_of_a_run() -> None:
    study = STUDIES / "5g-drx" / "scenario.toml"
    found = run(study, set={"run.sample_interval_ms": 10})
    arrived, duration, steady = arrivals(found)
    measured = ramp(arrived, duration)
    assert measured.steady_mbps == pytest.approx(steady, rel=0.02)
    expected = found.flows["converged_after_s"][0]
    assert measured.over_1s_after_s == pytest.approx(expected, abs=0.2)
    # Slow start takes 0.3 s here; the second before is what takes one.
    assert measured.converged_after_s is not None
    assert measured.converged_after_s < 0.5


def test_intervals_of_steady_rates_hold_the_rate() -> None:
    held = []
    for seed in range(500, 700):
        generator = np.random.default_rng(seed)
        count = round(float(generator.choice([4, 5, 8])) / TICK_S)
        lasting = math.exp(generator.uniform(math.log(0.02), math.log(0.5)))
        noise = correlated(generator, count, math.exp(-TICK_S / lasting))
        sent = np.maximum(0, 1 + generator.uniform(0.03, 0.3) * noise) * 100 / 8e-6 * TICK_S
        totals = np.cumsum(sent)
        arrived = [((i + 1) * TICK_S, int(totals[i])) for i in range(count)]
        held.append(holds(ramp(arrived, count * TICK_S).steady_interval, 100))
    assert np.mean(held) >= 0.91


def test_phases_with_nothing_to_judge() -> None:
    assert ramp([], 4).steady_mbps == 0
    assert ramp([], 4).converged_after_s is None
    once = ramp([(0.5, 1000)], 4)
    assert once.converged_after_s is None
    assert once.steady_mbps == pytest.approx(0.002)
    with pytest.raises(ValueError, match="positive"):
        ramp([], 0)


def test_a_constant_rate_is_steady_at_once() -> None:
    found = ramp([(0.01 * n, 12_500 * n) for n in range(1, 401)], 4)
    assert found.converged_after_s == 0
    assert found.steady_interval.bounds == pytest.approx([10, 10], rel=0.01)


@pytest.mark.parametrize("seed", range(30))
def test_any_arrivals_are_judged(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(0, 200))
    duration = float(generator.uniform(0.01, 20))
    times = np.sort(generator.uniform(-0.1, duration * 1.2, count))
    totals = np.cumsum(generator.pareto(1, count) * 1000).astype(int)
    found = ramp([(float(a), int(b)) for a, b in zip(times, totals, strict=True)], duration)
    assert math.isfinite(found.steady_mbps)
    assert found.steady_mbps >= 0
    assert found.converged_after_s is None or 0 <= found.converged_after_s <= duration


def test_streams_add_up() -> None:
    assert merged([[(0.1, 10), (0.3, 30)], [(0.2, 5)], []]) == [(0.1, 10), (0.2, 15), (0.3, 35)]
