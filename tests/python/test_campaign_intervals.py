"""Intervals cover, sequential stopping keeps what it promises, pairs find what samples miss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from airpath.analysis.intervals import Values, bootstrap, interval, paired, unpaired
from airpath.analysis.sequential import FIRST, more_values
from airpath.analysis.statistics import mean_interval
from airpath.campaign.sampling import saltelli
from airpath.campaign.sensitivity import sobol_indices

pytestmark = pytest.mark.unhurried

SAMPLES = 1200
Draw = Callable[[np.random.Generator, tuple[int, ...]], npt.NDArray[np.float64]]
DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.normal(10, 2, shape), 10.0),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
    "exponential": (lambda rng, shape: rng.exponential(1, shape), 1.0),
}


@pytest.mark.parametrize("size", [20, 40])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bootstrap_intervals_cover_the_truth(name: str, size: int) -> None:
    draw, truth = DISTRIBUTIONS[name]
    bounds = bootstrap(draw(np.random.default_rng(size), (SAMPLES, size)), 0.95)
    covered = float(np.mean((bounds[:, 1] <= truth) & (truth <= bounds[:, 2])))
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize(
    "values",
    [
        [9.1] * 17 + [9.1 + 1e-13, 9.1 - 1e-13, 9.2],
        [9.1] * 19 + [12.0],
        [106.5 + 1e-14 * index for index in range(18)] + [106.4, 70.0],
    ],
    ids=["to the last bit", "one other", "two others"],
)
def test_values_that_are_nearly_the_same_have_a_sober_interval(values: list[float]) -> None:
    """A resample of equal values has no spread to divide by; its t was 1e13."""
    found = interval(values)
    assert found.low is not None
    assert found.high is not None
    spread = max(values) - min(values)
    assert min(values) - spread <= found.low <= found.mean <= found.high <= max(values) + spread
    expected = mean_interval(values)
    assert found[:] == pytest.approx(expected[:])


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_values_of_two_kinds_are_covered(share: float) -> None:
    samples = np.random.default_rng(7).random((SAMPLES, 40)) < share
    bounds = bootstrap(samples.astype(np.float64), 0.95)
    covered = np.mean((bounds[:, 1] <= share) & (share <= bounds[:, 2]))
    # Few different means are possible, so that it is more at times.
    assert covered >= 0.93


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_students_t_covers_the_truth_with_few_values(name: str) -> None:
    draw, truth = DISTRIBUTIONS[name]
    samples = draw(np.random.default_rng(3), (4000, 10))
    found = [interval(sample) for sample in samples]
    covered = np.mean([(f.low or 0.0) <= truth <= (f.high or 0.0) for f in found])
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize(
    ("draw", "truth", "precision"),
    [
        (lambda rng, n: rng.normal(1, 0.03, n), 1.0, 0.02),
        (lambda rng, n: rng.normal(1, 0.1, n), 1.0, 0.05),
        (lambda rng, n: 1 + rng.random(n), 1.5, 0.08),
        (lambda rng, n: rng.exponential(1, n), 1.0, 0.2),
    ],
    ids=["normal, at once", "normal, in rounds", "uniform", "exponential"],
)
def test_stopping_in_rounds_costs_little_coverage(
    draw: Callable[[np.random.Generator, int], Values], truth: float, precision: float
) -> None:
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(500):
        values = draw(rng, FIRST)
        while (wanted := more_values(list(values), precision, 2000)) > len(values):
            values = np.concatenate([values, draw(rng, wanted - len(values))])
        found = interval(values)
        covered.append((found.low or 0.0) <= truth <= (found.high or 0.0))
        half = ((found.high or 0.0) - (found.low or 0.0)) / 2
        assert half <= precision * found.mean, "it stopped before it was known"
    assert np.mean(covered) >= 0.92


def test_stopping_ends_at_the_most() -> None:
    rng = np.random.default_rng(1)
    assert more_values([1.0, 2.0], 0.01, 1000) == FIRST
    noisy = [float(value) for value in rng.exponential(1, 40)]
    assert more_values(noisy, 0.001, 1000) == 60
    assert more_values(noisy, 0.001, 50) == 50
    assert more_values(noisy, 0.001, 40) == 40
    assert more_values([0.0] * 10, 0.01, 1000) == 10


def test_pairs_find_what_samples_miss() -> None:
    """2 % more, below a spread of 10 % that both variants share."""
    rng = np.random.default_rng(2)
    found = {"pairs": 0, "samples": 0}
    for _ in range(100):
        shared = rng.normal(10, 1, 20)
        before = shared + rng.normal(0, 0.1, 20)
        after = 1.02 * shared + rng.normal(0, 0.1, 20)
        found["pairs"] += paired(list(before), list(after)).told
        found["samples"] += unpaired(list(before), list(after)).told
    assert found["pairs"] >= 95
    assert found["samples"] <= 20


def test_pairs_of_the_same_are_not_told_apart() -> None:
    rng = np.random.default_rng(4)
    false = 0
    for _ in range(400):
        shared = rng.normal(10, 1, 20)
        one, other = (shared + rng.normal(0, 0.1, 20) for _ in range(2))
        false += paired(list(one), list(other)).told
    assert false / 400 <= 0.07


def test_p_is_scipys() -> None:
    from scipy import stats

    rng = np.random.default_rng(6)
    before, after = rng.normal(10, 1, 12), rng.normal(11, 1, 12)
    found = paired(list(before), list(after))
    assert found.p == pytest.approx(stats.ttest_rel(after, before).pvalue)
    welch = unpaired(list(before), list(after))
    assert welch.p == pytest.approx(stats.ttest_ind(after, before, equal_var=False).pvalue)


def test_what_does_not_vary_tells_nothing_of_chance() -> None:
    assert interval([3.0] * 25)[:] == (3.0, 3.0, 3.0)
    for compare in (paired, unpaired):
        assert compare([1.0, 1.0], [2.0, 2.0])[3:] == (1.0, None, None, None)
        assert compare([1.0, 1.0], [1.0, 1.0])[3:] == (0.0, None, None, None)
        assert compare([1.0], [2.0])[3:] == (1.0, None, None, None)


def test_sobol_indices_of_the_ishigami_function() -> None:
    """Saltelli et al. 2008: a = 7, b = 0.1."""
    points = saltelli(3, 4096, 1)
    x, y, z = (-np.pi + 2 * np.pi * points).T
    outcome = np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)
    found = sobol_indices(outcome, 3)
    assert found["S1"] == pytest.approx([0.3139, 0.4424, 0.0], abs=0.02)
    assert found["ST"] == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.02)
