"""What the application did: when it wrote, where pauses show that it had nothing to send."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airpath.fitting.observed import Ints, Observed
from airpath.fitting.series import MS

_LEAST_PAUSE_MS = 40.0
"""Beyond a round trip: what delayed acknowledgements and a waking radio may add."""
_LEAST_SHARE = 0.1
"""Pauses of less of the time are left out."""
_MOST_PARTS = 400
"""Bound: parts of a scenario's file."""
_EXACT = 0.02
"""Definition: a part is that near to what was written, of all bytes."""


@dataclass(frozen=True)
class Write:
    """Bytes that the application wrote, and when after the connection's start."""

    at_s: float
    bytes: int


def writes(seen: Observed, base_rtt_ms: float) -> list[Write]:
    """What was written between pauses; empty if these are less than a tenth of the time.

    A pause ends with new data that did not have to wait: everything before it was acknowledged
    (next to the receiver: had arrived) a round trip ago, and the sender was idle since.
    """
    first = np.flatnonzero(~seen.is_again)
    at, end = seen.sent[first], (seen.offset + seen.payload)[first]
    if len(at) < 2 or at[-1] <= at[0]:
        return []
    starts = _after_pauses(seen, first, base_rtt_ms)
    paused = float(sum(at[index] - at[index - 1] for index in starts))
    if paused < _LEAST_SHARE * (at[-1] - at[0]):
        return []
    edges = [0, *starts, len(at)]
    begin = _begin(seen, base_rtt_ms)
    done = int(seen.offset[first].min())
    found = []
    for left, right in pairwise(edges):
        highest = int(end[left:right].max())
        if highest > done:
            found.append(Write(max(0.0, float(at[left] - begin) / MS), highest - done))
            done = highest
    return found


def _after_pauses(seen: Observed, first: Ints, base_rtt_ms: float) -> list[int]:
    """Which of the segments that ``first`` lists are the first ones after a pause."""
    at = seen.sent[first]
    highest = np.maximum.accumulate((seen.offset + seen.payload)[first])
    long = base_rtt_ms + max(base_rtt_ms, _LEAST_PAUSE_MS)
    again = seen.sent[seen.is_again]
    found = []
    for index in np.flatnonzero(np.diff(at) > long) + 1:
        before, now = at[index - 1], at[index]
        in_order = seen.offset[first][index] == highest[index - 1]
        quiet = not np.any((again > before) & (again < now))
        if in_order and quiet and _all_arrived(seen, highest[index - 1], now - base_rtt_ms):
            found.append(int(index))
    return found


def _all_arrived(seen: Observed, offset: int, until: float) -> bool:
    """Whether everything below this offset was known to have arrived by then."""
    if seen.place == "receiver":
        # What stands in the capture has arrived, and it has no hole.
        return True
    known = np.searchsorted(seen.ack, until, side="right") - 1
    return bool(known >= 0 and seen.ack_offset[: known + 1].max() >= offset)


def _begin(seen: Observed, base_rtt_ms: float) -> float:
    """When the connection started, on the clock by which segments leave (or arrive) here.

    Next to the end that opened it, the SYN is seen when it leaves; at the other end half a round
    trip later. Data that the opener sends is late here by as much as its SYN.
    """
    syn = seen.handshake[0]
    if syn is None:
        return float(seen.sent[0])
    if seen.opened_by_sender:
        return syn
    half = base_rtt_ms / 2
    return syn + half if seen.place == "receiver" else syn - half


def parts(found: list[Write]) -> tuple[list[float], int]:
    """Writes as equal parts: the time of each part, and the bytes of all.

    Each write has at least one part. The number of parts is the smallest that represents all
    writes to within 2 % of all bytes, and at most 400.
    """
    total = sum(one.bytes for one in found)
    edges = np.cumsum([one.bytes for one in found])
    ends = list(range(1, len(found) + 1))
    for count in range(len(found), max(_MOST_PARTS, len(found)) + 1):
        ends = _ends(edges, count, total)
        if np.all(np.abs(np.array(ends) * total / count - edges) <= _EXACT * total):
            break
    times: list[float] = []
    for write, end in zip(found, ends, strict=True):
        times += [write.at_s] * (end - len(times))
    return times, total


def _ends(edges: Ints, count: int, total: int) -> list[int]:
    """The part with which each write ends, for this number of parts."""
    ends: list[int] = []
    for index, edge in enumerate(edges):
        least, most = (ends[-1] if ends else 0) + 1, count - (len(edges) - 1 - index)
        ends.append(min(most, max(least, round(float(edge) * count / total))))
    return ends
