"""Series of packets: rates in bins of equal width, rates between times, runs, ranks.

A capture's times come from a file. A packet that is a year late must not create bins for a year, so
a run of empty bins is kept as one, with its count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpath.fitting.observed import Bools, Floats, Ints

BYTES_PER_MS = 125.0
"""What 1 Mb/s carries in a millisecond."""
MS = 1000.0
"""In a second."""


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
    return passed / (counts * width) / BYTES_PER_MS, counts


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


def weighted(values: Floats, weight: Floats, share: float) -> float:
    """The value up to which that share of the weight is."""
    order = np.argsort(values)
    upto = np.cumsum(weight[order])
    return float(values[order][min(np.searchsorted(upto, share * upto[-1]), len(order) - 1)])


def between(at: Floats, total: Floats, begin: float, end: float) -> float:
    """Mb/s that arrived between two times."""
    first, last = np.interp([begin, end], at, total)
    return float(last - first) / max(end - begin, 1 / MS) / BYTES_PER_MS


def trains(at: Floats, total: Floats, train: int) -> Floats:
    """Mb/s of each ``train`` arrivals behind another one, as far as they took time."""
    lasted = at[train:] - at[:-train]
    some = lasted > 0
    rates: Floats = (total[train:] - total[:-train])[some] / lasted[some] / BYTES_PER_MS
    return rates


def runs(flags: Bools) -> tuple[Ints, Ints]:
    """Where runs of True begin, and the index behind each."""
    edge = np.diff(np.concatenate(([False], flags, [False])).astype(np.int8))
    return np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)


def mean_rank(values: NDArray[Any], among: NDArray[Any], weight: Floats | None = None) -> float:
    """The mean share of ``among``, which are in order, that is below a value; ties count half.

    That is the probability that one of the first is above one of the second; by chance a half.
    """
    below = np.searchsorted(among, values, "left") + np.searchsorted(among, values, "right")
    return float(np.average(below, weights=weight)) / 2 / len(among)
