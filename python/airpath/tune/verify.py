"""Measures the real path with and without settings, in randomised blocks, and keeps what helps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from airpath.analysis.statistics import mean_interval
from airpath.base.text import milliseconds, rate
from airpath.errors import AirpathError
from airpath.tune.apply import apply, undo
from airpath.tune.judge import HARM

if TYPE_CHECKING:
    from airpath.emulation.machine import Machine
    from airpath.measure.measurement import MeasureOptions
    from airpath.runs.results import Run
    from airpath.tune.settings import Setting

BLOCKS = 4
"""Pairs of measurements: of three, Student's t is half as wide again."""
SECONDS = 30.0
"""Of a measurement: the path MTU, round trips of the idle path, and several transfers."""


@dataclass(frozen=True)
class Seen:
    """What a measurement found."""

    steady_mbps: float
    loaded_ms: float | None
    """Median RTT beside a transfer; None if there were no probes."""


@dataclass(frozen=True)
class Verified:
    """What settings change on the real path, and whether they stay."""

    kept: bool
    lines: list[str]


def verify(
    settings: Sequence[Setting],
    device: str | None,
    measure: Callable[[], Seen],
    *,
    say: Callable[[str], None] = lambda _: None,
    machine: Machine | None = None,
    blocks: int = BLOCKS,
) -> Verified:
    """Measure with and without settings, and keep them only if they surely help.

    Each block measures both, in random order. Settings stay applied if the rate or the loaded round
    trip is surely better by 2 %, and the rate is not surely worse by that. If the measurement fails
    or is interrupted, they do not stay.
    """
    found: list[dict[bool, Seen]] = []
    # Each order as often as the other, so that a steady drift of the path cancels.
    orders = [(block % 2 == 0, block % 2 == 1) for block in range(blocks)]
    random.shuffle(orders)
    applied = False
    try:
        for block, order in enumerate(orders):
            both: dict[bool, Seen] = {}
            for wanted in order:
                if wanted != applied:
                    _switch(settings, device, machine, on=wanted)
                    applied = wanted
                both[wanted] = measure()
                state = "with the settings" if wanted else "without them"
                say(f"block {block + 1} of {blocks}, {state}: {_words(both[wanted])}")
            found.append(both)
        verified = judge(found)
        if verified.kept != applied:
            _switch(settings, device, machine, on=verified.kept)
            applied = verified.kept
    except BaseException:
        if applied:
            undo(machine)
        raise
    return verified


def judge(found: Sequence[dict[bool, Seen]]) -> Verified:
    """Compare the pairs of all blocks."""
    rates = _changes([(one[False].steady_mbps, one[True].steady_mbps) for one in found])
    trips = _changes(
        [
            (one[False].loaded_ms, one[True].loaded_ms)
            for one in found
            if one[False].loaded_ms is not None and one[True].loaded_ms is not None
        ]
    )
    lines = [f"{name}: {_change_words(change)}" for name, change in
             (("steady rate", rates), ("loaded RTT", trips)) if change]  # fmt: skip
    if rates is None:
        return Verified(kept=False, lines=[*lines, "no rate was measured in every block"])
    slower = rates[2] < 0 and rates[0] < math.log(1 - HARM)
    faster = rates[1] > 0 and rates[0] > math.log(1 + HARM)
    shorter = trips is not None and trips[2] < 0 and trips[0] < math.log(1 - HARM)
    return Verified((faster or shorter) and not slower, lines)


def _changes(
    pairs: Sequence[tuple[float | None, float | None]],
) -> tuple[float, float, float] | None:
    """Mean logarithm of the ratios and its 95 % interval; None if a pair has no ratio."""
    logs = [math.log(after / before) for before, after in pairs if before and after]
    if len(logs) < max(2, len(pairs)):
        return None
    mean, low, high = mean_interval(logs)
    return None if low is None or high is None else (mean, low, high)


def _change_words(change: tuple[float, float, float]) -> str:
    mean, low, high = (f"{100 * math.expm1(one):+.0f}" for one in change)
    return f"{mean} % (95 % confidence interval {low} to {high})"


def _words(seen: Seen) -> str:
    trips = "" if seen.loaded_ms is None else f", loaded RTT {milliseconds(seen.loaded_ms)}"
    return f"{rate(seen.steady_mbps)}{trips}"


def _switch(
    settings: Sequence[Setting], device: str | None, machine: Machine | None, *, on: bool
) -> None:
    if on:
        apply(settings, device, machine)
    else:
        undo(machine)


def measured(options: MeasureOptions) -> Seen:
    """Measure the path for some seconds; raises ``AirpathError`` if there was no transfer."""
    from dataclasses import replace

    from airpath.measure.result import measure

    with TemporaryDirectory(prefix="airpath-verify-") as folder:
        return _seen(measure(replace(options, out=Path(folder, "run"), time_s=SECONDS)))


def _seen(run: Run) -> Seen:
    """Return the means of the transfers to which nothing was done."""
    phases = run.summary["measured"]["phases"] if "measured" in run.summary else []
    figures = [
        one["figures"]
        for one in phases
        if one["treatment"] == "base" and one["figures"] is not None
    ]
    if not figures:
        raise AirpathError("the measurement has no transfer: see `airpath measure`")
    trips = [one["loaded_ms"] for one in figures if one["loaded_ms"] is not None]
    return Seen(
        sum(one["steady_mbps"] for one in figures) / len(figures),
        sum(trips) / len(trips) if trips else None,
    )
