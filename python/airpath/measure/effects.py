"""Effects of the treatments of a measurement: paired by block, with one pooled error.

A block runs each treatment once, so that drift of the radio is common to all of them. With ``b``
blocks and ``k`` treatments the logarithm of a figure is the sum of a block's effect, a treatment's
effect and an error, whose variance all cells together estimate with ``(b - 1)(k - 1)`` degrees of
freedom (two-way layout without interaction; Scheffe 1959, 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airpath.analysis.statistics import student_t_quantile

MATERIAL = 1 / 7
"""A cause counts if it costs a seventh of the rate or more, as in findings of captures."""
_CONFIDENCE = 0.95
_OPEN = 100.0
"""An interval that reaches this many times further than the effect says nothing."""


@dataclass(frozen=True)
class Effect:
    """By which factor a treatment changed a figure, with its 95 % interval."""

    treatment: str
    factor: float
    low: float
    """0 and infinity if a single block says nothing of the error."""
    high: float
    before: float
    """Geometric means, in the figure's unit."""
    after: float
    blocks: int
    agreeing: float
    """Share of the blocks in which the figure moved the same way as the factor says."""

    @property
    def interval(self) -> list[float] | None:
        """``[low, high]``; None if the blocks give no useful estimate of the error."""
        return [self.low, self.high] if self.high < _OPEN * self.factor else None

    @property
    def raised(self) -> bool:
        """Whether the figure rose by more than noise, and by a seventh at least."""
        return self.low > 1 and self.factor >= 1 + MATERIAL

    @property
    def lowered(self) -> bool:
        """Whether the figure fell by more than noise, and by a seventh at least."""
        return self.high < 1 and self.factor <= 1 - MATERIAL


def effects(blocks: Sequence[Mapping[str, float]], base: str, floor: float) -> dict[str, Effect]:
    """The effect of each treatment against ``base``, from its figure in each block.

    A treatment counts in the blocks in which both it and ``base`` were measured. Figures below
    ``floor`` count as ``floor``: a phase that carried nothing has no logarithm.
    """
    whole = [block for block in blocks if base in block]
    names = sorted({name for block in whole for name in block} - {base})
    logs = [{name: math.log(max(floor, value)) for name, value in one.items()} for one in whole]
    deviation, degrees = _error(logs)
    found = {}
    for name in names:
        pairs = [(one[base], one[name]) for one in logs if name in one]
        before, after = (float(np.mean([pair[at] for pair in pairs])) for at in (0, 1))
        half = math.inf
        if degrees:
            quantile = student_t_quantile(0.5 + _CONFIDENCE / 2, degrees)
            half = quantile * deviation * math.sqrt(2 / len(pairs))
        change = after - before
        low, high = (math.exp(change - half), _exp(change + half))
        agreeing = float(np.mean([(treated - plain) * change > 0 for plain, treated in pairs]))
        found[name] = Effect(
            name,
            math.exp(change),
            low,
            high,
            math.exp(before),
            math.exp(after),
            len(pairs),
            agreeing,
        )
    return found


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _error(logs: Sequence[Mapping[str, float]]) -> tuple[float, int]:
    """Standard deviation of a cell around its block's and treatment's effects; degrees of freedom.

    Least squares over the cells that are there: an interrupted measurement has an unfinished block.
    """
    names = sorted({name for one in logs for name in one})
    cells = [(row, name, one[name]) for row, one in enumerate(logs) for name in one]
    design = np.zeros((len(cells), len(logs) + len(names)))
    for at, (row, name, _) in enumerate(cells):
        design[at, row] = design[at, len(logs) + names.index(name)] = 1
    if not cells:
        return 0.0, 0
    values = np.array([value for _, _, value in cells])
    solution, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    degrees = len(cells) - int(rank)
    if not degrees:
        return 0.0, 0
    return float(np.sqrt(np.sum((values - design @ solution) ** 2) / degrees)), degrees
