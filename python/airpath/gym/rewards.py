"""Rewards: what an agent gets for an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath.congestion import Interval

Reward: TypeAlias = "Callable[[Interval], float]"
"""A function of an interval; it must return a finite number."""


def utility(interval: Interval) -> float:
    """Utility ln(throughput) - ln(delay) of an interval.

    Throughput is in Mb/s of payload, at least a segment in the interval; delay is the smoothed RTT
    over the smallest RTT. This is the objective of Winstein and Balakrishnan (TCP ex Machina,
    SIGCOMM 2013, 3.3) with δ = 1. Intervals count alike, however long they are: algorithms discount
    per decision, so with a reward per second an agent would gain by making its RTT longer.
    """
    seconds = (interval.end_ns - interval.start_ns) / 1e9
    if seconds <= 0 or interval.mss_bytes == 0 or interval.min_rtt_ns == 0:
        return 0.0
    segment_mbps = 8.0 * interval.mss_bytes / seconds / 1e6
    throughput = max(interval.delivered_bps / 1e6, segment_mbps)
    return math.log(throughput) - math.log(interval.srtt_ns / interval.min_rtt_ns)


def checked(reward: Reward) -> Reward:
    """The reward. Raises ``InputError`` unless it is a function."""
    if not callable(reward):
        raise InputError(f"reward is {reward!r}, but must be a function of an interval")
    return reward


def rewarded(reward: Reward, interval: Interval) -> float:
    """Reward of an interval. Raises ``InputError`` unless it is a finite number."""
    value = reward(interval)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"reward: the function returned {value!r}, which must be a finite number")
    return number
