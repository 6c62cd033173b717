"""How many seeds are enough: decided in rounds, so that looking does not make the result.

An interval that is looked at after each value stops too early, where the spread happens to look
small. So there are few looks (each round has half as many values again), what stops is a somewhat
wider interval, and below ``BOOTSTRAP_FROM`` values, where Student's t is too narrow for skewed
ones, it has to be far narrower than was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airpath.analysis.intervals import BOOTSTRAP_FROM, interval

FIRST = 10
"""Values before the first look."""
_GROWTH = 1.5
_CAUTION = 0.975
"""Confidence of the interval that decides; reported intervals have 95 %."""
_FEW = 0.25
"""Share of the precision that stops below ``BOOTSTRAP_FROM`` values."""


def more_values(values: Sequence[float], precision: float, most: int) -> int:
    """How many values are wanted in all; ``len(values)`` if these are enough.

    ``precision`` is half of the interval over the mean. A figure that is always zero is known.
    """
    count = len(values)
    if count < FIRST:
        return min(FIRST, most)
    if count >= most or known(values, precision):
        return count
    growth = BOOTSTRAP_FROM if count < BOOTSTRAP_FROM else math.ceil(count * _GROWTH)
    return min(most, growth)


def known(values: Sequence[float], precision: float) -> bool:
    """Whether the mean is known to this precision, looked at with caution."""
    found = interval(values, _CAUTION)
    if found.low is None or found.high is None:
        return False
    half = (found.high - found.low) / 2
    share = _FEW if len(values) < BOOTSTRAP_FROM else 1.0
    return half <= share * precision * abs(found.mean)
