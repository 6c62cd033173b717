"""Two measurements, before and after a change: differences of figures, causes that went and came.

The blocks of a measurement are close in time and see the same state of the radio cell, so that a
t interval of their differences is too narrow. The interval here is the central part of what is
known about the difference in the long run, given values that are normal and first-order
autoregressive with an unknown correlation, 0 to 0.9, as in `intervals.anytime`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from airpath.errors import InputError
from airpath.measure.analysis import IDLE, base_values
from airpath.measure.causes import CAPACITY
from airpath.measure.intervals import Values, plausible
from airpath.measure.measurement import PHASES, PLAN, Course, resumed
from airpath.runs.results import Run

if TYPE_CHECKING:
    import os

    from airpath.documents import Finding
    from airpath.measure.document import Measured

_LEAST_BLOCKS = 2
_SEED = 20261129
"""What the intervals draw is fixed, so that the same figures have the same interval."""


class FigureChange(TypedDict):
    """How much a figure of the unchanged phases (``base``) differs, in the figure's unit."""

    direction: str
    """down or up; ``idle`` for the path without a transfer."""
    figure: str
    """``steady_mbps``, ``goodput_mbps``, ``retransmitted_share``, ``rtt_ms.p50`` (of probes beside
    a transfer) or ``rtt_ms.mean`` (of an idle path, without the largest tenth)."""
    blocks_before: int
    blocks_after: int
    before: float
    """Geometric mean over the blocks; arithmetic for shares. Rates below 10 kb/s count as that."""
    after: float
    change: float
    """``after`` less ``before``."""
    low: float | None
    high: float | None
    """95 % interval of ``change``; null with a single block. For rates and round trips it is that
    of the ratio, times ``before``."""
    change_percent: float | None
    """null if ``before`` is 0."""


class CauseChange(TypedDict):
    """A cause of one measurement, or of both."""

    cause: str
    direction: str
    evidence: str
    """In the words of the measurement that names it; of the later one if both do."""


class Comparison(TypedDict):
    """A comparison of two measurements."""

    before: str
    after: str
    """Their directories."""
    paired: bool
    """Whether figures are compared block by block."""
    remarks: list[str]
    """How they were compared, and what limits the comparison."""
    figures: list[FigureChange]
    gone: list[CauseChange]
    came: list[CauseChange]
    stayed: list[CauseChange]


@dataclass(frozen=True)
class _Side:
    """One of the two measurements."""

    place: Path
    course: Course
    measured: Measured
    findings: Sequence[Finding]
    partial: Sequence[str]

    @property
    def directions(self) -> list[str]:
        """Directions in which a transfer was measured."""
        return [one["direction"] for one in self.measured["rates"]]


def is_measurement(place: str | os.PathLike[str]) -> bool:
    """Whether a directory is a measurement."""
    return all((Path(place) / name).is_file() for name in (PLAN, PHASES))


def compare(
    before: str | os.PathLike[str], after: str | os.PathLike[str], *, pairs: bool = True
) -> Comparison:
    """Compare two measurements.

    They are paired by block if both ran the same plan (``airpath measure --again``), unless
    ``pairs`` is false. Raises ``InputError`` if one is no measurement, or if they have nothing in
    common.
    """
    sides = (_open(Path(before)), _open(Path(after)))
    same = _same_plan(*sides)
    paired = pairs and same
    figures = list(_figures(sides, paired))
    if not figures:
        raise InputError(f"{before} and {after} have no metric in common: {_directions(sides)}")
    had, has = (_causes(one, sides) for one in sides)
    return {
        "before": str(sides[0].place),
        "after": str(sides[1].place),
        "paired": paired,
        "remarks": [_pairing(pairs, same), *_remarks(sides)],
        "figures": figures,
        "gone": [one for key, one in had.items() if key not in has],
        "came": [one for key, one in has.items() if key not in had],
        "stayed": [one for key, one in has.items() if key in had],
    }


def _open(place: Path) -> _Side:
    course = resumed(place)
    summary = Run.open(place).summary
    if "measured" not in summary:
        raise InputError(f"{place} is not a measurement: its summary has no section measured")
    return _Side(place, course, summary["measured"], summary["findings"], summary["run"]["partial"])


def _same_plan(before: _Side, after: _Side) -> bool:
    """Whether both ran the same phases in the same order."""
    plans = [[phase.to_json() for phase in one.course.plan.phases] for one in (before, after)]
    return plans[0] == plans[1]


def _figures(sides: tuple[_Side, _Side], paired: bool) -> Iterable[FigureChange]:
    common = [one for one in sides[0].directions if one in sides[1].directions]
    for direction in (*common, IDLE):
        tables = [base_values(one.course.pairs(), direction) for one in sides]
        for figure in tables[0]:
            before, after = (one[figure] for one in tables)
            if paired:
                blocks = sorted(before.keys() & after.keys())
                before, after = ({at: one[at] for at in blocks} for one in (before, after))
            if before and after:
                values = [[one[at] for at in sorted(one)] for one in (before, after)]
                yield _change(direction, figure, values[0], values[1], paired)


def _change(
    direction: str, figure: str, before: Sequence[float], after: Sequence[float], paired: bool
) -> FigureChange:
    is_share = figure.endswith("_share")
    first, last = (np.array(one) if is_share else np.log(one) for one in (before, after))
    low, high = difference(first, last, paired)
    middle, moved = float(first.mean()), float(last.mean())
    if not is_share:
        middle, moved = math.exp(middle), math.exp(moved)
        low, high = (None if one is None else _grown(middle, one) for one in (low, high))
    return {
        "direction": direction,
        "figure": figure,
        "blocks_before": len(before),
        "blocks_after": len(after),
        "before": middle,
        "after": moved,
        "change": moved - middle,
        "low": low,
        "high": high,
        "change_percent": 100 * (moved - middle) / middle if middle else None,
    }


def _grown(before: float, log_ratio: float) -> float:
    """How much a figure changes by this ratio; beyond e⁵⁰ an interval says nothing anyway."""
    return before * math.expm1(min(log_ratio, 50.0))


def difference(before: Values, after: Values, paired: bool) -> tuple[float | None, float | None]:
    """95 % interval of the mean of ``after`` less that of ``before`` in the long run.

    Values are in the order of time, and may drift. Measured over 1,000 pairs of drawn series each
    (2 to 20 values, correlation of neighbours uniform in 0 to 0.8 of 30 to 100 % of the variance;
    seed 9), it holds the truth in 94 to 97 % of them if paired, and in 96 to 99 % if not; Student's
    and Welch's intervals do in 84 to 96 %. With a correlation of 0.8 and 10 values it is 86 and
    89 %:
    a drift that is slower than the measurement cannot be seen in it. None below two values.
    """
    if min(len(before), len(after)) < _LEAST_BLOCKS:
        return None, None
    generator = np.random.default_rng(_SEED)
    if paired:
        likely = plausible(after - before, generator)
    else:
        likely = plausible(after, generator) - plausible(before, generator)
    low, high = (float(one) for one in np.quantile(likely, (0.025, 0.975)))
    return low, high


def sentences(found: Comparison) -> list[str]:
    """Say which causes went, came and stayed."""
    labelled = [("gone", found["gone"]), ("new", found["came"]), ("still there", found["stayed"])]
    lines = [
        f"{label} ({one['direction']}): {one['cause']}: {one['evidence']}"
        for label, causes in labelled
        for one in causes
    ]
    return lines or ["neither names a cause"]


def _causes(side: _Side, sides: tuple[_Side, _Side]) -> dict[tuple[str, str], CauseChange]:
    """Causes in the directions that both have."""
    return {
        (one["subject"], one["cause"]): {
            "cause": one["cause"],
            "direction": one["subject"],
            "evidence": one["evidence"],
        }
        for one in side.findings
        if one["cause"] != CAPACITY and all(one["subject"] in each.directions for each in sides)
    }


def _pairing(wanted: bool, same: bool) -> str:
    if same and wanted:
        return "paired by block: both ran the same plan"
    if same:
        return "not paired, as asked, although both ran the same plan"
    return (
        "not paired: their plans differ, so that their blocks are independent samples "
        "(measure --again DIR runs the plan of DIR)"
    )


def _remarks(sides: tuple[_Side, _Side]) -> Iterable[str]:
    """What a reader has to know before believing a difference."""
    servers = [one.measured["server"] for one in sides]
    if servers[0] != servers[1]:
        yield (
            f"the servers differ ({servers[0]}, {servers[1]}): differences are of the paths to them"
        )
    if set(sides[0].directions) != set(sides[1].directions):
        yield f"only what both measured is compared: {_directions(sides)}"
    limits = [one.measured["limit_mbps"] for one in sides]
    if limits[0] != limits[1]:
        yield "the servers allow different rates (--most-rate)"
    ecn = [_negotiated(one) for one in sides]
    if ecn[0] != ecn[1]:
        yield "ECN is negotiated in one of them, and not in the other"
    for one in sides:
        yield from (f"{one.place} is partial: {why}" for why in one.partial)
        if undecided := one.measured["undecided"]:
            yield f"{one.place} is undecided about causes ({' and '.join(undecided)})"
    for one, other in (sides, sides[::-1]):
        lacks = sorted(_treatments(other) - _treatments(one))
        if lacks:
            yield (
                f"{one.place} did not try {', '.join(lacks)}, so causes that only these "
                "treatments show are missing there"
            )


def _negotiated(side: _Side) -> bool:
    return any(one["negotiated"] for one in side.measured.get("ecn", []))


def _treatments(side: _Side) -> set[str]:
    return {one["treatment"] for one in side.measured["effects"]}


def _directions(sides: tuple[_Side, _Side]) -> str:
    return "; ".join(f"{one.place} has {', '.join(one.directions) or 'none'}" for one in sides)
