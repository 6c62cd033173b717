"""Judges how often the intervals of measured rates hold the long-run rate of drifting paths.

The SINR of each path walks about a mean (Gauss-Markov), with a deviation of 1 to 5 dB and a
correlation time of 0.3 to 30 s that are drawn. What TCP carries at each SINR is simulated once,
over LTE with 20 MHz; a path's long-run rate is the mean over the walk's distribution. A
measurement has blocks of two treatments, with phases of 4 s, and stops when the interval is within
5 %, which is looked at after each block. Four blocks carry a third of what ten tests of 10 s do.
Exit code 1: with four blocks less than 93 % or more than 97 % of the intervals hold it.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

import airpath
from airpath import scenario
from airpath.measure.intervals import anytime, narrow_enough
from airpath_dev.harness import FINE, WRONG, Count, Seed, say, table

Values = npt.NDArray[np.float64]

_SINRS = range(-4, 32, 2)
_PATH = """
[run]
duration_s = 6
[[path.down]]
stage = "delay"
delay_ms = 10
[[path.up]]
stage = "delay"
delay_ms = 10
[radio]
preset = "lte-20"
[[radio.ue]]
[radio.ue.channel]
sinr_db = {sinr}
[[flow]]
kind = "bulk"
congestion = "bbr"
"""
_STEP_S = 0.1
_PHASE_S, _PAUSE_S, _RAMP_S = 4.0, 0.3, 0.6
_TREATMENTS = 2
_UNTIL = 0.05
_JUDGED = 4
_FAST_S = 3.0
"""A walk that is faster has forgotten its past within a phase."""


class Outcome(NamedTuple):
    """An interval when the measurement stopped."""

    holds: bool
    half: float
    """Half of its width, as a share of the rate; infinite without bounds."""
    correlation_s: float
    blocks: int


def main(
    seed: Seed,
    count: Count,
    blocks: Annotated[list[int] | None, typer.Option(min=3, help="Blocks at most.")] = None,
) -> int:
    """Judge intervals of the rates of drifting paths."""
    rates = np.array([_rate(sinr) for sinr in _SINRS])
    say("rates: " + ", ".join(f"{s} dB {r:.1f}" for s, r in zip(_SINRS, rates, strict=True)))
    rows, code = [], FINE
    for most in blocks or (_JUDGED, 8, 16):
        generator = np.random.default_rng([seed, most])
        found = [_measured(generator, rates, most) for _ in range(count)]
        held = _held(found)
        if most == _JUDGED and not 0.93 <= held <= 0.97:
            code = WRONG
        rows.append(
            (
                most,
                f"{held:.1%}",
                f"{_held([one for one in found if one.correlation_s < _FAST_S]):.1%}",
                f"{_held([one for one in found if one.correlation_s >= _FAST_S]):.1%}",
                f"{median(one.half for one in found):.0%}",
                f"{np.mean([one.blocks for one in found]) * _TREATMENTS * _PHASE_S / 100:.0%}",
            )
        )
    heads = "blocks at most|hold|of fast walks|of slow walks|half-width, median"
    print(table(f"{heads}|seconds of data, of ten tests of 10 s", rows))
    return code


def _held(found: list[Outcome]) -> float:
    return float(np.mean([one.holds for one in found])) if found else math.nan


def _rate(sinr: int) -> float:
    run = airpath.run(scenario.parse(_PATH.format(sinr=sinr), "intervals"))
    (flow,) = run.summary["flows"]
    return flow["steady_mbps"] or flow["goodput_mbps"] or 0.0


def _measured(generator: np.random.Generator, rates: Values, blocks: int) -> Outcome:
    """Draw a path, measure it, and compare the interval with the path's long-run rate."""
    mean, deviation = generator.uniform(2, 22), generator.uniform(1, 5)
    correlation_s = math.exp(generator.uniform(math.log(0.3), math.log(30)))
    block_s = _TREATMENTS * (_PHASE_S + _PAUSE_S)
    walk = _walk(generator, round(blocks * block_s / _STEP_S) + 1, correlation_s)
    carried = np.interp(mean + deviation * walk, _SINRS, rates)
    values = []
    for block in range(blocks):
        place = 0 if block == 0 else int(generator.integers(_TREATMENTS))
        begin = block * block_s + place * (_PHASE_S + _PAUSE_S)
        steady = slice(round((begin + _RAMP_S) / _STEP_S), round((begin + _PHASE_S) / _STEP_S))
        values.append(float(carried[steady].mean()))
        found = anytime(values)
        if len(values) > 2 and narrow_enough(found, _UNTIL):
            break
    truth = _long_run(mean, deviation, rates)
    if found.bounds is None:
        return Outcome(True, math.inf, correlation_s, len(values))
    low, high = found.bounds
    return Outcome(low <= truth <= high, (high - low) / 2 / found.mean, correlation_s, len(values))


def _walk(generator: np.random.Generator, count: int, correlation_s: float) -> Values:
    """Standard normal values, first-order autoregressive, 0.1 s apart."""
    drawn = generator.standard_normal(count)
    keeps = math.exp(-_STEP_S / correlation_s)
    for at in range(1, count):
        drawn[at] = keeps * drawn[at - 1] + math.sqrt(1 - keeps**2) * drawn[at]
    return drawn


def _long_run(mean: float, deviation: float, rates: Values) -> float:
    """Mean rate where the SINR is normally distributed (Gauss-Hermite quadrature)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    found = np.interp(mean + deviation * nodes, _SINRS, rates)
    return float((weights * found).sum() / weights.sum())
