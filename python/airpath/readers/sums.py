"""Sums of values that a tool may not have printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def total(values: Iterable[Number | None]) -> Number | None:
    """Return the sum of the known values; None if all are unknown."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
