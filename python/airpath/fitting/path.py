"""What a flow reveals about its path: delay, capacity, queue, loss, jitter, batches.

A segment's *wait* is its round trip less the smallest one. While every segment waits, the
bottleneck is always busy, and the rate at which it delivers is its capacity. A wait that the
segments ahead do not cause is jitter. Next to the receiver the wait is one-way, by the sender's
timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from airpath.base.text import short
from airpath.fitting import series
from airpath.fitting.observed import Bools, Floats, Ints, Observed, echo_trips
from airpath.fitting.series import BYTES_PER_MS, MS

_TICKS_MS = (0.001, 0.1, 0.25, 1.0, 4.0, 10.0)
"""Milliseconds that timestamps count by: of airpath, and of systems."""
_MIDDLE_HALF = (0.25, 0.75)
"""Definition: the interquartile range."""
_WRAP = 2.0**32
"""Where a timestamp starts again (RFC 7323 3)."""
_STEP_MS = 0.001
"""Unit: the microsecond of captures' times; nothing on a path is shorter."""
_HEADERS = 60
"""Bytes of a SYN with its usual options: 20 of IP, 20 of TCP, 20 of options (RFC 9293)."""
_PACKET = 1500
"""Bytes of Ethernet's MTU (IEEE 802.3): a queue below one holds no packet."""
_PART = 1 << 16
"""Segments whose waits are worked out together; their number does not change the results."""
_MOST_GAPS = 512
"""Bound: gaps that are open at the same time."""

# What counts as enough: a median of fewer is chance.
_LEAST_LOSSES = 3
"""Losses below which nothing is said of why packets are lost."""
_LEAST_PAIRS = 8
"""Round trips below which their median says nothing."""
_LEAST_PAUSES = 20
"""Pauses below which their phase may be chance."""
_SOME = 40
"""Times between acknowledgements below which a raster may be chance."""
_SOME_WAITS = 30
"""Waits below which their spread is not known."""
_LEAST_WINDOWS = 4
"""Windows of the rough rate in a short transfer."""
_FEW_WINDOWS = 6
"""Windows below which a rate is not known to vary."""

# Queues, losses and capacity (docs/adr/0045).
_FULL = 0.75
"""Losses behind packets that waited for this share of the longest wait are a full queue's."""
_LONGEST_WAIT = 0.99
"""Definition: the longest wait is the quantile above which a radio's repetitions are."""
_LEAST_QUEUE = 5
"""Segments; a queue that is never longer is a burst's own."""
_LEAST_ODDS = 2.0
"""A full queue loses twice as often behind long waits as behind others."""
_MOST_SPURIOUS = 0.5
"""Most retransmissions were not needed: they say little of what was lost."""
_LEAST_OF_FULL = 0.05
"""Losses without a queue that are fewer, beside a full queue's, are its own."""
_VARIES = 0.15
"""Capacity is given over time if it differs by this share from one window to the next."""
_WINDOW_MS = 500.0
"""Definition: of such a window."""
_ROUGH_MS = 100.0
"""Definition: the rough rate is that of a tenth of a second, or of two round trips,"""
_ROUGH = 0.95
"""and a twentieth of them are faster."""
_LONG_SPAN, _SHORT_SPAN = 20, 4
"""Packets of a busy time of which an error of one packet is a twentieth, or a fourth, at most."""
_LEAST_BUSY_MS = 300.0
"""Busy times that are shorter in sum are joined by the fastest short ones."""
_LEAST_BUSY_SEGMENTS = 20
"""An error of one segment is a twentieth of such a busy time."""
_LEAST_BUSY_BATCHES = 20
"""When a busy time began and ended is known to a batch: so long, that is a twentieth of it."""
_LONGEST_GAP_MS = 100.0
"""A bottleneck that delivers nothing for longer, or for 20 usual times, is not just busy."""
_HIGH, _NEAR_HIGH, _LEAST_NEAR = 0.75, 0.07, 0.4
"""Short spans count if 40 % of them are within 7 % of their upper quartile: noise slows them."""
_LEAST_OF_ROUGH = 0.7
"""A capacity that is less of the rough rate is that of delayed acknowledgements."""
_CLEAR_QUEUE = 20
"""Segments; an error of the rate adds up over a longer queue, and over a longer busy time."""
_SHORT_QUEUE = 5
"""Segments; behind so many a wait shows jitter."""
_CLEAR_WAIT = 2.5
"""Batches: a wait is known to half of one, which is a fifth of such a wait."""

# Jitter, batches and what comes back.
_LEAST_BACK_MS = 1.0
"""Acknowledgements that wait less on their way back do not wait: a tick of timestamps."""
_LEAST_JITTER_MS = 1.0
"""Less is a host's, and none of the path's."""
_TAIL = 0.05
"""Definition: a range leaves out this share of the values at each end."""
_LEAST_BATCH_MS = 3.0
"""Hosts send what comes within a few ms together; batches of a network are farther apart."""
_BATCH_PACKETS = 3
"""Packets of the bottleneck; batches of a network are farther apart than a delayed ACK's two."""
_TOGETHER_MS = 0.3
"""Acknowledgements of one batch are less apart."""
_MOST_TOGETHER, _SOME_TOGETHER = 0.4, 0.2
"""Shares of acknowledgements that come with the one before: of batches, and of slow flows' ones."""
_BATCH_SHARES = (0.02, 0.1, 0.25)
"""Quantiles of the times between acknowledgements that are tried as the interval."""
_MOST_STEPS = 6.5
"""Intervals; over longer times an error of the interval adds up to half of one."""
_NEAR_MS = 0.3
"""Times this near to a multiple of the interval are in its raster."""
_NEAR = 0.1
"""Share of an interval by which a multiple may differ."""
_MOST, _NEARLY_ALL, _ALL = 0.8, 0.9, 0.95
"""Shares of times that are in the raster: if few came together, more have to be."""
_NEAR_TRIP = 0.05
"""Share of an interval by which it may differ from the handshake's round trip and still be that."""


@dataclass(frozen=True)
class Unknown:
    """What the capture does not reveal, why, and what would reveal it."""

    what: str
    because: str
    would_tell: str

    def document(self) -> dict[str, str]:
        """For JSON."""
        return {"what": self.what, "because": self.because, "would_tell": self.would_tell}


@dataclass
class Path:
    """The path as far as it is known; None means not identifiable."""

    base_rtt_ms: float
    base_rtt_within_ms: tuple[float, float]
    """The path's is between these. They differ where packets only come in batches."""
    capacity_mbps: float | None
    at_least_mbps: float
    """The highest delivered rate; less than the capacity where that is not known."""
    busy_s: float
    """How long the bottleneck was busy all the time, as far as it shows."""
    rates: list[tuple[float, float]]
    """Time in seconds and capacity in Mb/s, where it varies."""
    queue_bytes: float | None
    queue_at_least_bytes: float
    queue_is_rough: bool
    """It holds so few batches that its size is not known to a fifth."""
    lost: int
    overflowed: int
    loss: float
    """Share of the packets that are lost without a full queue."""
    burst: float
    """Packets that are lost in a row, on average."""
    jitter_ms: float | None
    batch_ms: float | None
    unknown: list[Unknown]


def estimate(seen: Observed) -> Path:
    """Estimate the path from the flow."""
    waits, base = waits_of(seen)
    rough = _rough_rate(seen)
    batch = _batch(seen, rough)
    capacity, busy_s, rates = _capacity(seen, waits, rough, batch)
    serialisation = float(seen.size.max()) / capacity / BYTES_PER_MS if capacity else 0.0
    used = capacity or rough
    base_rtt = max(base - serialisation, _STEP_MS)
    base_rtt = _handshake(seen, base_rtt, capacity)
    may_differ_ms = 0.0
    if seen.place == "receiver":
        base_rtt, may_differ_ms = _without_waits_back(seen, waits, base_rtt, serialisation)
    if batch is not None:
        base_rtt, may_differ_ms = _without_batches(seen, waits, base_rtt, capacity, batch)
    lost = lost_segments(seen)
    queue, at_least, full = _queue(seen, waits, lost, used, serialisation)
    if capacity is None:
        # Where packets never waited for each other no queue was full.
        queue, full = None, np.zeros(len(lost), dtype=bool)
    loss, burst = _random_loss(seen, lost, full)
    path = Path(
        base_rtt_ms=base_rtt,
        base_rtt_within_ms=(base_rtt - may_differ_ms, base_rtt + may_differ_ms),
        capacity_mbps=capacity,
        at_least_mbps=rough,
        busy_s=busy_s,
        rates=rates,
        queue_bytes=queue,
        queue_at_least_bytes=at_least,
        queue_is_rough=bool(queue and batch and queue / used / BYTES_PER_MS < _CLEAR_WAIT * batch),
        lost=int(lost.sum()),
        overflowed=int(full.sum()),
        loss=loss,
        burst=burst,
        jitter_ms=_jitter(seen, waits, capacity, batch),
        batch_ms=batch,
        unknown=[],
    )
    return replace(path, unknown=[*_unknown(path), *_never(seen)])


def _unknown(path: Path) -> Iterator[Unknown]:
    """What this flow does not reveal."""
    batches = f"batches that are {short(path.batch_ms or 0.0)} ms apart"
    if path.batch_ms is not None:
        yield Unknown(
            "base RTT",
            f"every packet waits for the next batch, and batches are {short(path.batch_ms)} ms "
            "apart: it may be shorter by up to that",
            "a ping with random intervals on the idle path",
        )
    if path.capacity_mbps is None:
        never = "packets never queued at the bottleneck"
        briefly = f"packets queued for only {short(path.busy_s * MS)} ms, and arrive in {batches}"
        yield Unknown(
            "capacity",
            briefly if path.busy_s else never,
            "a longer transfer with a larger window",
        )
    if path.queue_bytes is None:
        least = path.queue_at_least_bytes
        holds = f": it holds at least {short(least / MS)} kB" if least >= _PACKET else ""
        yield Unknown(
            "queue",
            f"it never overflowed{holds}",
            "a transfer that loses packets at its full rate",
        )
    elif path.queue_is_rough:
        wait = path.queue_bytes / (path.capacity_mbps or path.at_least_mbps) / BYTES_PER_MS
        yield Unknown(
            "queue",
            f"packets waited {short(wait)} ms in it, and arrive in {batches}",
            "a capture at the other end",
        )
    if path.jitter_ms is None:
        yield Unknown(
            "jitter",
            "the time in the queue is not known well enough, or hides it",
            "a ping on the idle path",
        )


def _never(seen: Observed) -> list[Unknown]:
    """What no capture of one flow at one point can reveal."""
    place = "on which side of the bottleneck packets are lost and delayed"
    unknown = [
        Unknown(
            "order",
            f"one capture point does not show {place}",
            "captures at both ends at the same time",
        ),
        Unknown(
            "split",
            "round trips do not show how much of the delay is in each direction",
            "captures at both ends with synchronised clocks",
        ),
    ]
    if seen.place != "receiver":
        unknown.append(
            Unknown(
                "acknowledgement loss",
                "a later acknowledgement makes up for one that was lost",
                "a capture at the receiver",
            )
        )
    return unknown


def waits_of(seen: Observed) -> tuple[Floats, float]:
    """Each segment's wait in ms (NaN: not known), and the smallest round trip."""
    if seen.place == "receiver":
        return _one_way(seen)
    clean = (seen.sent_again == 0) & ~seen.is_again & ~np.isnan(seen.acked)
    # Of those that one acknowledgement covers only the last did not wait for others.
    last = np.zeros(len(seen.sent), dtype=bool)
    indices = np.flatnonzero(clean)
    if len(indices):
        ends = np.append(np.diff(seen.acked[indices]) > 0, True)
        last[indices[ends]] = True
    trips = np.where(last, seen.acked - seen.sent, np.nan)
    full = trips[seen.is_full & ~np.isnan(trips)]
    usable = full if len(full) else trips[~np.isnan(trips)]
    base = float(usable.min()) if len(usable) else 0.0
    return np.maximum(trips - base, 0.0), base


def _one_way(seen: Observed) -> tuple[Floats, float]:
    """By timestamps; the round trip is that of a full segment, or else the handshake's."""
    base = 0.0
    first, second, third = seen.handshake
    if first is not None and second is not None:
        base = max(second - first, (third or second) - first)
    elif seen.other["rtt_ms"]:
        base = seen.other["rtt_ms"]["min"]
    delay = np.full(len(seen.sent), np.nan)
    known = ~np.isnan(seen.timestamp)
    by_stamps = one_way_ms(seen.sent[known], seen.timestamp[known])
    if by_stamps is not None:
        delay[known] = by_stamps
    trips = _echoed(seen)
    trips = trips[~np.isnan(trips)]
    if len(trips):
        # The handshake's packets are small; what is taken off for a full one is not in it.
        base = float(trips.min())
    return delay, base


def _echoed(seen: Observed) -> Floats:
    return echo_trips(seen.sent, seen.echo, seen.ack, seen.ack_timestamp)


def _without_waits_back(
    seen: Observed, waits: Floats, base: float, serialisation: float
) -> tuple[float, float]:
    """The base RTT next to the receiver, and by how much it may differ.

    Where acknowledgements wait on their way back, the handshake's did too. A round trip less what
    its data waited has only their wait in it; of that the shortest is taken. Timestamps make the
    data's wait too long by up to one of their ticks.
    """
    back = _echoed(seen) - waits
    back = back[~np.isnan(back)]
    if len(back) < _LEAST_PAIRS:
        return base, 0.0
    shortest, usual = np.quantile(back, [0.0, 0.5])
    half = _tick(seen.sent, seen.timestamp) / 2
    shortest -= serialisation
    usual -= serialisation
    if usual - shortest < _LEAST_BACK_MS + 2 * half or shortest + half >= base:
        return base, 0.0
    return float(shortest) + half, half


def one_way_ms(at: Floats, timestamps: Floats) -> Floats | None:
    """By how much each packet took longer than the fastest, by its sender's timestamps (RFC 7323).

    None if the timestamps do not tell. The clocks' rates are taken to be the same.
    """
    if len(at) < 2:
        return None
    stamps = np.unwrap(timestamps, period=_WRAP)
    tick = _tick(at, timestamps)
    if not tick:
        return None
    delay: Floats = at - stamps * tick
    delay -= delay.min()
    return delay


def _tick(at: Floats, timestamps: Floats) -> float:
    """The tick of a sender's timestamps in ms; 0: not known.

    With that tick the delays of most packets differ least. The time between two packets tells less:
    the path may have held one of them back for seconds.
    """
    known = ~np.isnan(timestamps)
    if known.sum() < 2:
        return 0.0
    stamps = np.unwrap(timestamps[known], period=_WRAP)
    if stamps[-1] <= stamps[0] or at[known][-1] <= at[known][0]:
        return 0.0

    def differ(tick: float) -> float:
        low, high = np.quantile(at[known] - stamps * tick, _MIDDLE_HALF)
        return float(high - low)

    return min(_TICKS_MS, key=differ)


def _handshake(seen: Observed, base: float, rate: float | None) -> float:
    """A handshake has small packets and no queue of its own: it may have been faster."""
    first, _, third = seen.handshake
    if first is None or third is None:
        return base
    whole = third - first
    if rate:
        whole -= _HEADERS / rate / BYTES_PER_MS
    return max(min(base, whole), _STEP_MS)


def _without_batches(
    seen: Observed, waits: Floats, base: float, rate: float | None, batch: float
) -> tuple[float, float]:
    """The base RTT, and by how much it may differ.

    A packet waits for the next batch of acknowledgements, less than an interval: the path's round
    trip is between the shortest one and the longest one less an interval. The middle is taken.
    """
    if rate is not None:
        service = np.where(lost_segments(seen), 0.0, seen.size / rate / BYTES_PER_MS)
        queue, before = _queue_waits(seen, service)
        clean = (seen.sent_again == 0) & ~seen.is_again & ~np.isnan(seen.acked)
        clear = clean & (queue < _CLEAR_QUEUE * service) & (before < _CLEAR_QUEUE)
        if clear.any():
            trips = (seen.acked - seen.sent - queue - service)[clear]
            shortest = float(trips.min())
            if base - batch <= shortest <= base:
                return _middle(shortest, trips - shortest, batch)
    return _middle(base, waits[~np.isnan(waits)], batch)


def _middle(shortest: float, waits: Floats, batch: float) -> tuple[float, float]:
    if not len(waits):
        return shortest, 0.0
    after = waits % batch
    # Whole intervals are as good as none.
    after = np.where(after > batch - max(_NEAR_MS, _NEAR_TRIP * batch), 0.0, after)
    half = (batch - float(np.quantile(after, _NEARLY_ALL))) / 2
    half = half if half > max(_NEAR_MS, _NEAR_TRIP * batch) else 0.0
    half = min(half, shortest / 2)
    return shortest - half, half


def _queue_waits(seen: Observed, service: Floats) -> tuple[Floats, Ints]:
    """What each segment would wait for those before it, in ms; how many since there was no wait."""
    queue = np.zeros(len(seen.sent))
    before = np.zeros(len(seen.sent), dtype=np.int64)
    free, waiting = -np.inf, 0
    # One after another, because rounding depends on the order. Lists are faster than arrays, but
    # larger: a part at a time.
    for first in range(0, len(queue), _PART):
        part = slice(first, first + _PART)
        waits, counts = [], []
        for at, busy in zip(seen.sent[part].tolist(), service[part].tolist(), strict=True):
            wait = free - at if free > at else 0.0
            waiting = waiting + 1 if free > at else 0
            waits.append(wait)
            counts.append(waiting)
            free = max(free, at) + busy
        queue[part], before[part] = waits, counts
    return queue, before


def arrivals(seen: Observed) -> tuple[Floats, Floats]:
    """Times, and bytes of IP that the receiver has got until then."""
    if seen.place == "receiver":
        return seen.sent, np.cumsum(seen.size).astype(np.float64)
    ratio = seen.size.sum() / max(1, seen.payload.sum())
    return seen.ack, seen.delivered * ratio


def _rough_rate(seen: Observed) -> float:
    """The most that arrived in a tenth of a second, or in a round trip, in Mb/s."""
    at, bytes_ = arrivals(seen)
    if len(at) < 2:
        return 0.0
    trip = seen.stream["rtt_ms"]["min"] if seen.stream["rtt_ms"] else 0.0
    window = max(_ROUGH_MS, 2 * trip)
    window = min(window, max(1.0, (at[-1] - at[0]) / _LEAST_WINDOWS))
    rates, counts = series.rates(at, bytes_, at[0], at[-1], window)
    if not len(rates):
        return series.between(at, bytes_, at[0], at[-1])
    return series.quantile(rates, counts, _ROUGH)


def _capacity(
    seen: Observed, waits: Floats, rough: float, batch: float | None
) -> tuple[float | None, float, list[tuple[float, float]]]:
    """Mb/s, seconds of evidence, and by time where it varies.

    From one packet to another the bottleneck is busy, if all until that one were sent while the
    first still waited.
    """
    known = np.flatnonzero(~np.isnan(waits))
    if len(known) < _LEAST_PAIRS or rough <= 0:
        return None, 0.0, []
    at, bytes_ = arrivals(seen)
    if seen.place == "receiver":
        arrived = seen.sent[known]
        sent = arrived - waits[known]
    else:
        sent, arrived = seen.sent[known], seen.acked[known]
    apart = np.diff(arrived)
    longest = max(_LONGEST_GAP_MS, _LONG_SPAN * float(np.median(apart)))
    waited = waits[known][:-1] - (batch or 0.0)
    busy = (np.diff(sent) <= waited + _STEP_MS) & (apart >= 0) & (apart <= longest)
    spans = [
        (arrived[first], arrived[last], last - first)
        for first, last in zip(*series.runs(busy), strict=True)
    ]
    long = [span for span in spans if span[2] >= _LONG_SPAN]
    if sum(end - begin for begin, end, _ in long) >= _LEAST_BUSY_MS:
        spans = long
    else:
        spans = _fastest(at, bytes_, spans)
    total_ms = sum(end - begin for begin, end, _ in spans)
    total_bytes = sum(_passed(at, bytes_, begin, end) for begin, end, _ in spans)
    if total_ms <= 0 or total_bytes < _LEAST_BUSY_SEGMENTS * seen.size.max():
        return None, 0.0, []
    rate = total_bytes / total_ms / BYTES_PER_MS
    if rate < _LEAST_OF_ROUGH * rough:
        # What waits for a delayed acknowledgement waits for no other packet.
        return None, 0.0, []
    # Of several spans the errors are as often too long as too short.
    if batch is not None and total_ms < _LEAST_BUSY_BATCHES * batch * len(spans) ** 0.5:
        return None, total_ms / MS, []
    pieces = [(begin, end) for begin, end, _ in spans]
    return rate, total_ms / MS, _varying(at, bytes_, pieces, rate)


def _fastest(
    at: Floats, bytes_: Floats, spans: list[tuple[float, float, int]]
) -> list[tuple[float, float, int]]:
    """Short spans whose rates are about the highest, if most are.

    Delayed acknowledgements and noise make short spans seem slower, and nothing makes them faster.
    """
    some = [span for span in spans if span[2] >= _SHORT_SPAN and span[1] > span[0]]
    if not some:
        return []
    rates = np.array([_passed(at, bytes_, begin, end) / (end - begin) for begin, end, _ in some])
    lengths = np.array([length for _, _, length in some], dtype=float)
    near = np.abs(rates / series.weighted(rates, lengths, _HIGH) - 1) <= _NEAR_HIGH
    if lengths[near].sum() < _LEAST_NEAR * lengths.sum():
        return []
    return [span for span, is_near in zip(some, near, strict=True) if is_near]


def _passed(at: Floats, bytes_: Floats, begin: float, end: float) -> float:
    """Bytes that arrived after ``begin`` until ``end``."""
    first, last = np.searchsorted(at, [begin, end], side="right") - 1
    return float(bytes_[max(last, 0)] - bytes_[max(first, 0)])


def _varying(
    at: Floats, bytes_: Floats, pieces: list[tuple[float, float]], rate: float
) -> list[tuple[float, float]]:
    """Capacity by time, if it differs from one half second to the next."""
    rates, counts = [], []
    for begin, end in pieces:
        numbers = series.edges(at, begin, end, _WINDOW_MS)
        for first, last in pairwise(numbers.tolist()):
            left, right = begin + first * _WINDOW_MS, begin + last * _WINDOW_MS
            mbps = _passed(at, bytes_, left, right) / (right - left) / BYTES_PER_MS
            # Of several windows without an arrival the first and the last one.
            ends = (left + _WINDOW_MS / 2, right - _WINDOW_MS / 2)[: int(last - first)]
            rates += [(middle / MS, mbps) for middle in ends]
            counts += [(last - first) / len(ends)] * len(ends)
    values, weights = np.array([value for _, value in rates]), np.array(counts)
    if weights.sum() < _FEW_WINDOWS:
        return []
    mean = np.average(values, weights=weights)
    if np.sqrt(np.average((values - mean) ** 2, weights=weights)) / rate < _VARIES:
        return []
    return sorted(rates)


def lost_segments(seen: Observed) -> Bools:
    """Which segments are retransmissions of one that was lost on the path.

    Next to the sender: those that were retransmitted and not acknowledged before. Elsewhere also
    retransmissions whose original was not seen.
    """
    if seen.place == "receiver":
        return _fills_gap(seen)
    spurious = seen.stream["retransmissions"]["spurious"]
    again = seen.sent_again > 0
    sent = seen.stream["retransmissions"]["packets"]
    if spurious and sent and spurious >= _MOST_SPURIOUS * sent:
        # Most were not needed: what was retransmitted says little of what was lost.
        return np.zeros(len(seen.sent), dtype=bool)
    return again


def _fills_gap(seen: Observed) -> Bools:
    """Which segments fill gaps, also where offload has joined some."""
    fills = np.zeros(len(seen.sent), dtype=bool)
    gaps: list[tuple[int, int]] = []
    ends = seen.offset + seen.payload
    highest = np.maximum.accumulate(ends)
    for index in np.flatnonzero(seen.after_gap | seen.is_again):
        begin, end = int(seen.offset[index]), int(ends[index])
        before = int(highest[index - 1]) if index else begin
        if begin > before:
            gaps.append((before, begin))
            continue
        left = []
        for low, high in gaps:
            if begin < high and low < end:
                fills[index] = True
                left += [(low, begin)] * (low < begin) + [(end, high)] * (end < high)
            else:
                left.append((low, high))
        gaps = left[-_MOST_GAPS:]
    return fills


def _queue(
    seen: Observed, waits: Floats, lost: Bools, rate: float, segment_ms: float
) -> tuple[float | None, float, Bools]:
    """Bytes of the queue if it overflowed, bytes that it holds at least, losses of a full queue."""
    none = np.zeros(len(lost), dtype=bool)
    known = ~np.isnan(waits)
    if not known.any() or not rate:
        return None, 0.0, none
    longest = float(np.quantile(waits[known], _LONGEST_WAIT))
    at_least = longest * rate * BYTES_PER_MS
    index = np.flatnonzero(lost)
    if seen.place == "receiver":
        # A gap shows when what comes behind it arrives.
        index = np.flatnonzero(seen.after_gap)
    if len(index) == 0 or longest < _LEAST_QUEUE * segment_ms:
        return None, at_least, none
    before = wait_before(waits, index)
    is_full = before >= _FULL * longest
    # What is lost by chance is lost behind long waits as often as elsewhere.
    others = wait_before(waits, np.flatnonzero(~lost)) >= _FULL * longest
    odds = is_full.sum() * (~others).sum(), (~is_full).sum() * others.sum()
    if odds[0] < _LEAST_ODDS * odds[1]:
        return None, at_least, none
    full = none.copy()
    full[index[is_full]] = True
    if seen.place == "receiver":
        full = lost & _at_gaps(seen, lost, index, is_full)
    if is_full.sum() < _LEAST_LOSSES and is_full.mean() < 0.5:
        return None, at_least, none
    wait = float(np.median(before[is_full]))
    return wait * rate * BYTES_PER_MS, at_least, full


def _at_gaps(seen: Observed, lost: Bools, gaps: Ints, is_full: Bools) -> Bools:
    """Which of the segments that fill gaps belong to a gap that shows a full queue.

    A gap shows with the segment behind it, and what fills it lies before that.
    """
    order = np.argsort(seen.offset[gaps], kind="stable")
    behind = np.searchsorted(seen.offset[gaps][order], seen.offset, side="right")
    belongs = lost & (behind < len(gaps))
    found = np.zeros(len(lost), dtype=bool)
    found[belongs] = is_full[order][behind[belongs]]
    return found


def wait_before(waits: Floats, index: Any) -> Floats:
    """The last known wait before each of these segments, 0 if there is none."""
    places = np.where(np.isnan(waits), -1, np.arange(len(waits)))
    last = np.maximum.accumulate(places)
    shifted = np.concatenate(([-1], last[:-1]))[index]
    return np.where(shifted >= 0, np.nan_to_num(waits)[np.maximum(shifted, 0)], 0.0)


def _random_loss(seen: Observed, lost: Bools, full: Bools) -> tuple[float, float]:
    """Share of lost packets without those of a full queue, and how many in a row."""
    random = lost & ~full
    count = int(random.sum())
    if count < _LEAST_LOSSES or (full.any() and count < _LEAST_OF_FULL * full.sum()):
        return 0.0, 1.0
    sent = len(seen.sent) + (count if seen.place == "receiver" else 0)
    # Of what was retransmitted, some was lost again.
    again = seen.sent_again[random]
    lost_again = int(np.maximum(again - 1, 0).sum()) if seen.place != "receiver" else 0
    originals = ~seen.is_again
    begins, _ = series.runs(random[originals])
    burst = count / len(begins) if len(begins) and seen.place != "receiver" else 1.0
    return (count + lost_again) / sent, burst


def _jitter(seen: Observed, waits: Floats, rate: float | None, batch: float | None) -> float | None:
    """Range of the waits outside the queue, in ms; 0: negligible."""
    if batch is not None:
        return 0.0
    if not rate or seen.place == "receiver":
        return None
    service = seen.size / rate / BYTES_PER_MS
    queue, _ = _queue_waits(seen, service)
    # Where the queue was long, an error of the rate is an error of the wait.
    clear = ~np.isnan(waits) & (queue < _SHORT_QUEUE * service)
    if clear.sum() < _SOME_WAITS:
        return None
    rest = waits[clear] - queue[clear]
    low, high = np.quantile(rest, [_TAIL, 1 - _TAIL])
    spread = float(high - low) / (1 - 2 * _TAIL)
    trip = seen.stream["rtt_ms"]["min"] if seen.stream["rtt_ms"] else 0.0
    return spread if spread > max(_LEAST_JITTER_MS, _NEAR_TRIP * trip) else 0.0


def _batch(seen: Observed, rate: float) -> float | None:
    """Interval at which acknowledgements arrive, if they arrive in batches.

    Next to the receiver it shows in when data was sent, by its timestamps.
    """
    if not rate:
        return None
    service = float(seen.size.max()) / rate / BYTES_PER_MS
    if seen.place == "receiver":
        stamps = np.unwrap(seen.timestamp[~np.isnan(seen.timestamp)], period=_WRAP)
        gaps = np.diff(np.unique(stamps)) * _tick(seen.sent, seen.timestamp)
        return _grid(seen, gaps[gaps >= _LEAST_BATCH_MS], service)
    at = seen.ack[seen.is_pure]
    gaps = np.diff(at)
    if len(gaps) < _SOME:
        return None
    within = gaps < _TOGETHER_MS
    between = np.diff(at[1:][gaps >= max(_LEAST_BATCH_MS, _BATCH_PACKETS * service)])
    if within.mean() >= _MOST_TOGETHER and len(between) >= _LEAST_PAUSES:
        interval = float(np.quantile(between, _BATCH_SHARES[-1]))
        multiples = between / interval
        whole = (np.abs(multiples - np.round(multiples)) < _NEAR).mean() > _MOST
        if whole and not _is_round_trip(seen, interval):
            return interval
    return _grid(seen, gaps[gaps >= _LEAST_BATCH_MS], service, float(within.mean()))


def _is_round_trip(seen: Observed, interval: float) -> bool:
    """Whether it is the handshake's: a window that is sent at once is acknowledged each RTT."""
    first, _, third = seen.handshake
    if first is None or third is None:
        return False
    return abs(interval - (third - first)) <= _NEAR_TRIP * interval


def _keeps_phase(gaps: Floats, interval: float) -> bool:
    """Long pauses are multiples of it, too: no train of packets is in step with another."""
    long = gaps[gaps >= _MOST_STEPS * interval] / interval
    near = np.abs(long - np.round(long)) * interval < min(_NEAR_MS, _NEAR * interval)
    return len(long) >= _LEAST_PAUSES and bool(near.mean() >= _NEARLY_ALL)


def _grid(seen: Observed, gaps: Floats, service: float, together: float = 0.0) -> float | None:
    """The interval of which all times between acknowledgements of a slow flow are multiples.

    Packets that come one by one from a busy bottleneck are apart by multiples of their own time. If
    all times are the same, some acknowledgements come together with another one (``together``).
    """
    if len(gaps) < _SOME or not seen.stream["rtt_ms"]:
        return None
    for share in _BATCH_SHARES:
        interval = float(np.quantile(gaps, share))
        multiples = gaps[gaps < _MOST_STEPS * interval] / interval
        whole = np.round(multiples)
        near = np.abs(multiples - whole) * interval < _NEAR_MS
        own = interval / service
        if (
            2 * interval < seen.stream["rtt_ms"]["min"]
            and len(multiples) >= _SOME
            and near.mean() >= _ALL
            and ((whole != np.median(whole)).mean() >= _NEAR or together >= _SOME_TOGETHER)
            and (own < 0.5 or abs(own - round(own)) > _NEAR or _keeps_phase(gaps, interval))
        ):
            return float(np.median(gaps[gaps < _MOST_STEPS * interval][near] / whole[near]))
    return None
