"""Whether losses depend on what was sent before them.

A policer and a short queue lose a packet when too much was sent shortly before. Both act as a
bucket that fills with each packet and drains at a rate; a packet is lost when it is full (RFC 2697
2 describes the policer's). Random losses happen at any level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airpath.fitting import series
from airpath.fitting.observed import Bools, Floats, Ints

_RATES = np.geomspace(0.5, 4.0, 25)
"""Bound: rates to try, octaves about the mean rate of what was sent and not lost."""


@dataclass(frozen=True)
class Bucket:
    """A bucket that loses about the same packets.

    ``match``: the probability that the level is higher at a lost packet than at one that was not
    lost; 0.5 is chance, 1 a perfect bucket. ``level_bytes`` is the median level at a loss.
    """

    rate_mbps: float
    level_bytes: float
    match: float
    episodes: int


def fit_bucket(
    sent_ms: Floats, size: Ints, lost: Bools, episodes: int, trip_ms: float = 0.0
) -> Bucket | None:
    """The bucket that matches best; the packets are in the order in which they were sent.

    Losses less than ``trip_ms`` apart are one event, whatever their number: when slow start fills
    a queue, hundreds of packets are lost for the same reason.
    """
    lasted_ms = sent_ms[-1] - sent_ms[0]
    if lasted_ms <= 0 or not lost.any():
        return None
    mean = float(size[~lost].sum()) / lasted_ms / series.BYTES_PER_MS
    weight = _weights(sent_ms[lost], trip_ms)
    best: Bucket | None = None
    for rate in mean * _RATES:
        level = _levels(sent_ms, np.where(lost, 0, size), rate)
        match = series.mean_rank(level[lost], np.sort(level[~lost]), weight)
        if best is None or match > best.match:
            best = Bucket(float(rate), series.weighted(level[lost], weight, 0.5), match, episodes)
    return best


def _levels(sent_ms: Floats, added: Ints, rate_mbps: float) -> Floats:
    """Bytes in the bucket before each packet: what arrived, less what drained, never below 0."""
    drained = np.diff(sent_ms, prepend=sent_ms[0]) * rate_mbps * series.BYTES_PER_MS
    steps = np.concatenate(([0.0], added[:-1])) - drained
    walk = np.cumsum(steps)
    level: Floats = walk - np.minimum(np.minimum.accumulate(walk), 0.0)
    return level


def _weights(at_ms: Floats, trip_ms: float) -> Floats:
    """The weight of each loss: those of one event together weigh as much as a single loss."""
    event = np.cumsum(np.diff(at_ms, prepend=at_ms[0]) > trip_ms)
    weight = 1.0 / np.bincount(event)[event]
    shares: Floats = weight / weight.sum()
    return shares
