"""Whether a capture's clock tells what passed between packets: it may be coarse, or was set.

A clock that was set back shows in the report. One that was set forward, and a host that slept,
shows by the timestamps of the ends (RFC 7323 3): they go on as if no time had passed. After a
silence of the path they do not, because at least the end next to the capture point goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airpath import _core
from airpath.base.text import short
from airpath.documents import CaptureReport, FlowReport, Segments
from airpath.fitting.observed import NS, Floats, numbers
from airpath.fitting.series import MS
from airpath.readers.flows import main_sender, tcp_flows, tcp_of, total_bytes

_LEAST_S = 1.0
"""Shorter steps are not told from queues, which hold as much (Jiang et al. 2012 on bufferbloat)."""
_NO_TIMEOUT_S = 60.0
"""The longest that a sender waits before it sends again (RFC 6298 2.5); some never wait longer."""
_MOST_FLOWS = 4
"""Bound: flows that are read, those with the most bytes."""
_MOST_PACKETS = 200_000
"""Bound: packets of each flow that are read."""
_LEAST_STAMPS = 4
"""Timestamps on each side of a step."""
_TICK, _RATE = 0.2, 100.0
"""By how much a clock of 1 ms may differ from it over at least so many ms; all common systems tick
so today."""
_AGREE = 0.1
"""By how much of a step the two ends may differ about it."""
_WORD = 1 << 32
"""Unit: timestamps have 32 bits (RFC 7323 3.2)."""


@dataclass(frozen=True)
class Step:
    """The clock went forward: seconds after the capture's first packet, and by how many seconds."""

    flow: int
    at_s: float
    by_s: float

    def sentence(self) -> str:
        """What is to be said of it."""
        return (
            f"The capture's clock went forward by {short(self.by_s)} s at {short(self.at_s)} s, "
            f"while hardly any time passed at the ends of flow {self.flow}: it was set, or its "
            "host slept. Durations and rates across this step are wrong, and nothing is inferred "
            "from them."
        )


def steps(file: Path, report: CaptureReport) -> list[Step]:
    """The forward steps of a capture's clock that its largest TCP flows show.

    Raises ``OSError`` and ``ValueError`` as ``read_capture`` does.
    """
    silent = [one for one in tcp_flows(report) if tcp_of(one)["longest_silence_s"] >= _LEAST_S]
    silent = sorted(silent, key=lambda one: -total_bytes(one))[:_MOST_FLOWS]
    if not silent:
        return []
    wanted = [(one["id"], main_sender(one) == "client") for one in silent]
    read = _core.read_flows(file, [*wanted], _MOST_PACKETS)
    found: list[Step] = []
    for flow, segments in zip(silent, read, strict=True):
        step = _by_timestamps(flow, segments) or _by_silence(flow)
        # What several flows show is one step; the largest has the most packets around it.
        if step and not any(abs(step.by_s - one.by_s) <= _AGREE * one.by_s for one in found):
            found.append(step)
    return found


def _by_timestamps(flow: FlowReport, segments: Segments) -> Step | None:
    """The step in the longest silence by the clocks of both ends, as far as they are known."""
    began = tcp_of(flow)["longest_silence_at_s"]
    if began is None:
        return None
    middle = (began + tcp_of(flow)["longest_silence_s"] / 2) * MS
    ends = (
        (segments["sent_ns"], segments["timestamp"]),
        (segments["ack_ns"], segments["ack_timestamp"]),
    )
    every = (_shift(numbers(at) / NS, numbers(stamp), middle) for at, stamp in ends)
    shifts = [one for one in every if one is not None]
    if not shifts or min(shifts) < _LEAST_S * MS:
        return None
    if max(shifts) - min(shifts) > _AGREE * max(shifts):
        return None
    return Step(flow["id"], began, min(shifts) / MS)


def _shift(at: Floats, stamp: Floats, middle: float) -> float | None:
    """By how many ms the capture's clock went further than the end's; None: it is not known."""
    known = ~np.isnan(stamp)
    at, stamp = at[known], stamp[known]
    later = at > middle
    if min(later.sum(), (~later).sum()) < _LEAST_STAMPS:
        return None
    apart = (np.diff(stamp) + _WORD // 2) % _WORD - _WORD // 2
    ticks = np.concatenate(([0.0], np.cumsum(apart)))
    for part in (later, ~later):
        passed = float(np.ptp(at[part]))
        if passed >= _RATE and abs(float(np.ptp(ticks[part])) / passed - 1) > _TICK:
            return None
    late = at - ticks
    # What waited on its way carries an old timestamp; the least late one did not wait.
    return float(late[later].min() - late[~later].min())


def _by_silence(flow: FlowReport) -> Step | None:
    """A connection that goes on after a silence in which its sender should have sent again."""
    tcp = tcp_of(flow)
    again = [tcp[end]["retransmissions"]["packets"] for end in ("from_client", "from_server")]
    longest, began = tcp["stalls"]["longest_s"], tcp["stalls"]["longest_at_s"]
    if longest < _NO_TIMEOUT_S or any(again) or began is None:
        return None
    return Step(flow["id"], began, longest)


def doubts(report: CaptureReport, stepped: Sequence[Step]) -> Iterator[str]:
    """Why times of this capture do not show what limits its flows."""
    for step in stepped:
        yield step.sentence()
    if report["backward_times"] and report["largest_step_back_s"] > 0:
        times = report["backward_times"]
        often = "once" if times == 1 else f"{times} times"
        yield (
            f"The capture's clock was set back {often}, by up to "
            f"{short(report['largest_step_back_s'])} s, or files were appended. Durations and "
            "rates across this step are wrong, and nothing is inferred from them."
        )
    if report["clock_step_s"]:
        yield (
            f"The capture's clock advances in steps of {short(report['clock_step_s'] * MS)} "
            "ms: shorter times cannot be measured, and nothing is inferred from bursts, "
            "spacing or round trips."
        )
