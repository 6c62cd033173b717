"""What a flow tells of its path: delay, capacity, queue, loss, jitter, batches.

A segment's *wait* is by how much its round trip exceeds the smallest one. While every segment
waits, the bottleneck has something to send all the time, and what is delivered meanwhile is its
capacity. What waits no longer than the segments before it make it wait is jitter. Next to the
receiver the wait is that of one way, by the sender's timestamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from airpath.fitting.observed import Bools, Floats, Observed

_TICKS_MS = (0.001, 0.1, 0.25, 1.0, 4.0, 10.0)
"""Milliseconds that timestamps count by: of airpath, and of systems."""
_FULL = 0.75
"""Losses behind packets that waited for this share of the longest wait are a full queue's."""
_LEAST_LOSSES = 3
_VARIES = 0.15
"""Capacity is told by time if it differs by this share from one window to the next."""
_WINDOW_MS = 500.0
_LEAST_PAIRS = 8
_LONG_SPAN = 20
_DISAGREE = 0.3
_LEAST_BUSY_MS = 300.0
_LEAST_BUSY_SEGMENTS = 20
_LONGEST_GAP_MS = 100.0
_LEAST_JITTER_MS = 1.0
_LEAST_BATCH_MS = 3.0


@dataclass(frozen=True)
class Unknown:
    """What the capture does not tell, why, and what would."""

    what: str
    because: str
    would_tell: str

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {"what": self.what, "because": self.because, "would_tell": self.would_tell}


@dataclass
class Path:
    """The path as far as it is known; None is not identifiable."""

    base_rtt_ms: float
    capacity_mbps: float | None
    at_least_mbps: float
    """What was delivered at the most; less than the capacity where that is not known."""
    busy_s: float
    """How long the bottleneck was busy all the time, as far as it shows."""
    rates: list[tuple[float, float]]
    """Time in seconds and capacity in Mb/s, where it varies."""
    queue_bytes: float | None
    queue_at_least_bytes: float
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
    """What the flow tells of its path."""
    unknown: list[Unknown] = []
    waits, base = waits_of(seen)
    rough = _rough_rate(seen)
    batch = _batch(seen, rough)
    capacity, busy_s, rates = _capacity(seen, waits, rough, batch)
    serialisation = float(seen.size.max()) * 8 / capacity / 1000 if capacity else 0.0
    used = capacity or rough
    base_rtt = max(base - serialisation, 0.001)
    base_rtt = _handshake(seen, base_rtt, capacity)
    if batch is not None:
        base_rtt = _without_batches(seen, base_rtt, capacity, batch)
        unknown.append(
            Unknown(
                "base RTT",
                f"every packet waits for the next of the batches, which are {batch:.3g} ms apart: "
                "it may be shorter by a part of that",
                "a ping with random intervals on the idle path",
            )
        )
    if capacity is None:
        unknown.append(
            Unknown(
                "capacity",
                "packets never waited for each other at the bottleneck",
                "a longer transfer with a larger window",
            )
        )
    lost = lost_segments(seen)
    queue, at_least, full = _queue(seen, waits, lost, used, serialisation)
    if queue is None:
        unknown.append(
            Unknown(
                "queue",
                f"it never overflowed: it holds at least {at_least / 1000:.3g} kB",
                "a transfer that loses packets at its full rate",
            )
        )
    loss, burst = _random_loss(seen, lost, full)
    jitter = _jitter(seen, waits, capacity, batch)
    if jitter is None:
        unknown.append(
            Unknown(
                "jitter",
                "what packets wait for in the queue is not known well enough, or hides it",
                "a ping on the idle path",
            )
        )
    unknown += _never(seen)
    return Path(
        base_rtt_ms=base_rtt,
        capacity_mbps=capacity,
        at_least_mbps=rough,
        busy_s=busy_s,
        rates=rates,
        queue_bytes=queue,
        queue_at_least_bytes=at_least,
        lost=int(lost.sum()),
        overflowed=int(full.sum()),
        loss=loss,
        burst=burst,
        jitter_ms=jitter,
        batch_ms=batch,
        unknown=unknown,
    )


def _never(seen: Observed) -> list[Unknown]:
    """What no capture of one flow at one point tells."""
    place = "on which side of the bottleneck packets are lost and delayed"
    unknown = [
        Unknown(
            "order",
            f"one point of the path does not tell {place}",
            "captures at both ends at the same time",
        ),
        Unknown(
            "split",
            "round trips do not tell how much of the delay is in each direction",
            "captures at both ends with synchronised clocks",
        ),
    ]
    if seen.place != "receiver":
        unknown.append(
            Unknown(
                "acknowledgement loss",
                "a later acknowledgement says the same as one that was lost",
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
    """By timestamps; the round trip is the handshake's."""
    base = 0.0
    first, second, third = seen.handshake
    if first is not None and second is not None:
        # Its packets are small; what is taken off for a full one is not in it.
        base = max(second - first, (third or second) - first)
    elif seen.other["rtt_ms"]:
        base = seen.other["rtt_ms"]["min"]
    echoed = _echoed(seen)
    if echoed is not None:
        base = min(base, echoed) if base else echoed
    delay = np.full(len(seen.sent), np.nan)
    known = ~np.isnan(seen.timestamp)
    by_stamps = one_way_ms(seen.sent[known], seen.timestamp[known])
    if by_stamps is not None:
        delay[known] = by_stamps
    return delay, base


def one_way_ms(at: Floats, timestamps: Floats) -> Floats | None:
    """By how much each packet took longer than the fastest, by its sender's timestamps (RFC 7323).

    None if the timestamps do not tell. The clocks' rates are taken to be the same.
    """
    if len(at) < 2:
        return None
    stamps = np.unwrap(timestamps, period=2.0**32)
    ticks = stamps[-1] - stamps[0]
    if ticks <= 0:
        return None
    tick = (at[-1] - at[0]) / ticks
    tick = min(_TICKS_MS, key=lambda one: abs(np.log(one / tick)))
    delay: Floats = at - stamps * tick
    delay -= delay.min()
    return delay


def _echoed(seen: Observed) -> float | None:
    """The shortest time from an acknowledgement to data that echoes its timestamp."""
    first: dict[float, float] = {}
    for stamp, at in zip(seen.ack_timestamp, seen.ack, strict=True):
        if not np.isnan(stamp):
            first.setdefault(stamp, at)
    trips = [
        at - first[echo] for echo, at in zip(seen.echo, seen.sent, strict=True) if echo in first
    ]
    return min(trips) if trips else None


def _handshake(seen: Observed, base: float, rate: float | None) -> float:
    """A handshake has small packets and no queue of its own: it may have been faster."""
    first, _, third = seen.handshake
    if first is None or third is None:
        return base
    whole = third - first
    if rate:
        whole -= 60 * 8 / rate / 1000
    return max(min(base, whole), 0.001)


def _without_batches(seen: Observed, base: float, rate: float | None, batch: float) -> float:
    """Of packets that were sent together, some arrive just in time for a batch."""
    if rate is None:
        return base
    service = seen.size * 8 / rate / 1000
    queue = _queue_waits(seen, service)
    clean = (seen.sent_again == 0) & ~seen.is_again & ~np.isnan(seen.acked)
    clear = clean & (queue < 20 * service)
    if not clear.any():
        return base
    shortest = float((seen.acked - seen.sent - queue - service)[clear].min())
    return shortest if base - batch <= shortest <= base else base


def _queue_waits(seen: Observed, service: Floats) -> Floats:
    """What each segment would wait for those before it, in ms."""
    queue = np.zeros(len(seen.sent))
    free = -np.inf
    for index, (at, busy) in enumerate(zip(seen.sent, service, strict=True)):
        queue[index] = max(0.0, free - at)
        free = max(free, at) + busy
    return queue


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
    window = max(100.0, 2 * trip)
    window = min(window, max(1.0, (at[-1] - at[0]) / 4))
    edges = np.arange(at[0], at[-1], window)
    if len(edges) < 2:
        return float((bytes_[-1] - bytes_[0]) * 8 / (at[-1] - at[0]) / 1000)
    passed = np.interp(edges, at, bytes_)
    rates = np.diff(passed) * 8 / window / 1000
    return float(np.quantile(rates, 0.95))


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
    longest = max(_LONGEST_GAP_MS, 20 * float(np.median(apart)))
    waited = waits[known][:-1] - (batch or 0.0)
    busy = (np.diff(sent) <= waited + 1e-3) & (apart >= 0) & (apart <= longest)
    spans = [(arrived[first], arrived[last], last - first) for first, last in _spans(busy)]
    long = [span for span in spans if span[2] >= _LONG_SPAN]
    # Noise that lets a packet seem to wait makes short spans seem shorter: they have to agree.
    if sum(end - begin for begin, end, _ in long) >= _LEAST_BUSY_MS:
        spans = long
    elif not _agree([(_passed(at, bytes_, begin, end), end - begin) for begin, end, _ in spans]):
        return None, 0.0, []
    total_ms = sum(end - begin for begin, end, _ in spans)
    total_bytes = sum(_passed(at, bytes_, begin, end) for begin, end, _ in spans)
    if total_ms <= 0 or total_bytes < _LEAST_BUSY_SEGMENTS * seen.size.max():
        return None, 0.0, []
    rate = total_bytes * 8 / total_ms / 1000
    pieces = [(begin, end) for begin, end, _ in spans]
    return rate, total_ms / 1000, _varying(at, bytes_, pieces, rate)


def _agree(spans: list[tuple[float, float]]) -> bool:
    """Whether most spans (bytes, ms) have about the same rate."""
    rates = np.array([passed / lasted for passed, lasted in spans if lasted > 0 and passed > 0])
    if not len(rates):
        return False
    low, middle, high = np.quantile(rates, [0.25, 0.5, 0.75])
    return bool(high - low <= _DISAGREE * middle)


def _passed(at: Floats, bytes_: Floats, begin: float, end: float) -> float:
    """Bytes that arrived after ``begin`` until ``end``."""
    first, last = np.searchsorted(at, [begin, end], side="right") - 1
    return float(bytes_[max(last, 0)] - bytes_[max(first, 0)])


def _spans(flags: Bools) -> list[tuple[int, int]]:
    """First and last index of each run of True, the one before the run included."""
    padded = np.concatenate(([False], flags, [False])).astype(np.int8)
    edges = np.diff(padded)
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True)]


def _varying(
    at: Floats, bytes_: Floats, pieces: list[tuple[float, float]], rate: float
) -> list[tuple[float, float]]:
    """Capacity by time, if it differs from one half second to the next."""
    rates = []
    for begin, end in pieces:
        edges = np.arange(begin, end, _WINDOW_MS)
        for left, right in pairwise(edges):
            mbps = _passed(at, bytes_, left, right) * 8 / _WINDOW_MS / 1000
            rates.append(((left + right) / 2000, mbps))
    values = np.array([value for _, value in rates])
    if len(values) < 6 or float(np.std(values)) / rate < _VARIES:
        return []
    return sorted(rates)


def lost_segments(seen: Observed) -> Bools:
    """Which segments stand for one that was lost on the way.

    Next to the sender: those that were sent again and not acknowledged before. Elsewhere also
    those that came again without having been seen.
    """
    if seen.place == "receiver":
        known: set[int] = set()
        lost = np.zeros(len(seen.sent), dtype=bool)
        for index, (offset, again) in enumerate(zip(seen.offset, seen.is_again, strict=True)):
            lost[index] = bool(again) and int(offset) not in known
            known.add(int(offset))
        return lost
    spurious = seen.stream["retransmissions"]["spurious"]
    again = seen.sent_again > 0
    sent = seen.stream["retransmissions"]["packets"]
    if spurious and sent and spurious >= 0.5 * sent:
        # Most were not needed: what was sent again says little of what was lost.
        return np.zeros(len(seen.sent), dtype=bool)
    return again


def _queue(
    seen: Observed, waits: Floats, lost: Bools, rate: float, segment_ms: float
) -> tuple[float | None, float, Bools]:
    """Bytes of the queue if it overflowed, bytes that it holds at least, losses of a full queue."""
    none = np.zeros(len(lost), dtype=bool)
    known = ~np.isnan(waits)
    if not known.any() or not rate:
        return None, 0.0, none
    longest = float(np.quantile(waits[known], 0.99))
    at_least = longest * rate * 1000 / 8
    index = np.flatnonzero(lost)
    if seen.place == "receiver":
        # A gap shows when what comes behind it arrives.
        index = np.flatnonzero(seen.after_gap)
    if len(index) == 0 or longest < 5 * segment_ms:
        return None, at_least, none
    before = wait_before(waits, index)
    is_full = before >= _FULL * longest
    full = none.copy()
    full[index[is_full]] = True
    if seen.place == "receiver":
        full = lost & (is_full.mean() > 0.5)
    if is_full.sum() < _LEAST_LOSSES and is_full.mean() < 0.5:
        return None, at_least, none
    wait = float(np.median(before[is_full]))
    return wait * rate * 1000 / 8, at_least, full


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
    if count < _LEAST_LOSSES or (full.any() and count < 0.05 * full.sum()):
        return 0.0, 1.0
    sent = len(seen.sent) + (count if seen.place == "receiver" else 0)
    # Of what was sent again, some was lost again.
    again = seen.sent_again[random]
    lost_again = int(np.maximum(again - 1, 0).sum()) if seen.place != "receiver" else 0
    originals = ~seen.is_again
    runs = _spans(random[originals])
    burst = count / len(runs) if runs and seen.place != "receiver" else 1.0
    return (count + lost_again) / sent, burst


def _jitter(seen: Observed, waits: Floats, rate: float | None, batch: float | None) -> float | None:
    """Range of what segments wait besides their queue, in ms; 0: none to speak of."""
    if batch is not None:
        return 0.0
    if not rate or seen.place == "receiver":
        return None
    service = seen.size * 8 / rate / 1000
    queue = _queue_waits(seen, service)
    # Where the queue was long, an error of the rate is an error of the wait.
    clear = ~np.isnan(waits) & (queue < 5 * service)
    if clear.sum() < 30:
        return None
    rest = waits[clear] - queue[clear]
    low, high = np.quantile(rest, [0.05, 0.95])
    spread = float(high - low) / 0.9
    trip = seen.stream["rtt_ms"]["min"] if seen.stream["rtt_ms"] else 0.0
    return spread if spread > max(_LEAST_JITTER_MS, 0.05 * trip) else 0.0


def _batch(seen: Observed, rate: float) -> float | None:
    """Interval at which acknowledgements come, if they come in batches."""
    if seen.place == "receiver" or not rate:
        return None
    pure = seen.ack[seen.is_pure]
    gaps = np.diff(pure)
    if len(gaps) < 40:
        return None
    alone = 2 * float(seen.size.max()) * 8 / rate / 1000
    within = gaps < 0.3
    between = gaps[gaps >= max(_LEAST_BATCH_MS, 1.5 * alone)]
    if within.mean() < 0.4 or len(between) < 20:
        return None
    interval = float(np.quantile(between, 0.25))
    multiples = between / interval
    near = np.abs(multiples - np.round(multiples)) < 0.1
    return interval if near.mean() > 0.8 else None
