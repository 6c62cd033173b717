"""Rates over time, in bins of equal width, with no more numbers than there are packets.

A capture's times come from a file. A packet that is a year late must not create bins for a year, so
a run of empty bins is kept as one, with its count.
"""

from __future__ import annotations

import numpy as np

from airpath.fitting.observed import Floats


def edges(at: Floats, begin: float, end: float, width: float) -> Floats:
    """Which of the edges ``begin + number * width`` before ``end`` are next to an arrival.

    They are in order, the first and the last edge included. Between two that are not neighbours
    nothing arrives. Empty if there are less than two edges.
    """
    last = np.ceil((end - begin) / width) - 1
    if not np.isfinite(last) or last < 1:
        return np.zeros(0)
    before = np.floor((at[(at >= begin) & (at <= end)] - begin) / width)
    numbers: Floats = np.unique(np.concatenate(([0.0, last], before, before + 1)))
    kept: Floats = numbers[numbers <= last]
    return kept


def rates(
    at: Floats, total: Floats, begin: float, end: float, width: float
) -> tuple[Floats, Floats]:
    """Mb/s between edges, and how many bins of ``width`` ms each stands for.

    ``total`` are the bytes that have arrived at each of the times, which are in order.
    """
    number = edges(at, begin, end, width)
    if len(at) < 2 or len(number) < 2:
        return np.zeros(0), np.zeros(0)
    counts = np.diff(number)
    passed = np.diff(np.interp(begin + number * width, at, total))
    return passed * 8 / (counts * width) / 1000, counts


def quantile(values: Floats, counts: Floats, share: float) -> float:
    """``np.quantile`` of values that each occur several times."""
    order = np.argsort(values)
    upto = np.cumsum(counts[order])
    place = share * (upto[-1] - 1)
    low, high = (
        values[order][np.searchsorted(upto, whole, side="right")]
        for whole in (np.floor(place), np.ceil(place))
    )
    return float(low + (high - low) * (place - np.floor(place)))
