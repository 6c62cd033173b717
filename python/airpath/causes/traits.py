"""Traits of a transfer in a capture, as numbers on which causes are judged.

All belong to one direction of one flow: the data that one end sent, seen at the capture point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airpath.causes.apart import begun, taken_apart
from airpath.fitting import path, series
from airpath.fitting.observed import Bools, Floats, Ints, Observed
from airpath.readers.flows import limited_s

BIN_MS = 200.0
"""Definition: a fifth of a second."""
_LEAST_PAUSE_MS = 150.0
"""Definition: shorter pauses are a host's, or a delayed acknowledgement (RFC 1122 4.2.3.2)."""
_TOGETHER_MS = 0.5
"""Timestamps have milliseconds: the same one, for a slow link takes longer for each."""
_LEAST_STAMPS = 20
"""Timestamps, waits or arrivals below which their distribution says nothing."""
_LEAST_EVENTS = 10
"""Round trips with losses below which their sizes may be chance."""
_FALL = 0.3
"""Definition: a wait falls at once by this share of the longest."""
_LOW, _HIGH, _MOST = 0.05, 0.95, 0.99
"""Definition: quantiles of waits, and of what is in flight at most."""
_LEAST_BASE_MS = 0.01
"""Bound: a round trip over loopback takes longer."""
_LEAST_EPISODES = 3
"""Round trips with losses below which nothing is said of why packets are lost."""
_PAUSE_ROUNDS = 3
"""Round trips; a sender that waits for acknowledgements pauses for less."""
_CEILING = 1.5
"""Segments; a limit in bytes need not be a whole number of them."""
_TENTHS, _REACHED, _FIRST_THIRD = 10, 0.8, 0.33
"""Definition: of a transfer; the rate is reached with four fifths of the best; slow start."""
_FIRST, _TRAIN = 40, 6
"""Definition: segments of the beginning, two usual windows, and of a train in it."""
_MOST_OF_THE_TIME = 0.5
_QUEUED = 0.25
"""Of a round trip: BBR's probes for bandwidth fill so much of a queue (a gain of 1.25)."""
_FRAMES = 5
"""Bound: packets that are named as examples."""
_MOST_REQUESTS = 8
"""Packets with data that the receiver of a download sends: a handshake of TLS, a request."""


@dataclass(frozen=True)
class Gap:
    """Nothing arrived for a while, although data was under way. Milliseconds.

    ``is_open``: nothing arrived any more, and the silence may have gone on.
    """

    at_ms: float
    length_ms: float
    is_open: bool = False


class Transfer:
    """The data of one end of a flow by segments (``seen``), and as captured (``packets``)."""

    def __init__(self, packets: Observed) -> None:
        self.packets = packets
        self.seen = seen = begun(taken_apart(packets))
        self.path = path.estimate(seen)
        self.stream = seen.stream

    @cached_property
    def at_sender(self) -> bool:
        """Captured where the bytes in flight are visible."""
        return self.seen.place != "receiver"

    @cached_property
    def begin_ms(self) -> float:
        """The first segment."""
        return float(self.seen.sent[0])

    @cached_property
    def end_ms(self) -> float:
        """The last segment or acknowledgement of one."""
        last = float(self.seen.sent.max())
        acked = self.seen.acked[~np.isnan(self.seen.acked)]
        return max(last, float(acked.max())) if len(acked) else last

    @cached_property
    def seconds(self) -> float:
        """For how long data was sent."""
        return max(1.0, self.end_ms - self.begin_ms) / series.MS

    @cached_property
    def base_ms(self) -> float:
        """The shortest round trip, from end to end."""
        return max(self.path.base_rtt_ms, _LEAST_BASE_MS)

    @cached_property
    def wire_bytes(self) -> int:
        """Bytes of IP that arrived, as far as that is known."""
        size: Ints = self.seen.size
        if self.at_sender:
            ratio = size.sum() / max(1, self.seen.payload.sum())
            arrived = self.seen.delivered[-1] if len(self.seen.delivered) else 0
            return int(arrived * ratio)
        return int(size[~self.seen.is_again].sum() + size[self.seen.is_again].sum())

    @cached_property
    def arrivals(self) -> tuple[Floats, Floats]:
        """Times in ms, and bytes of IP that the receiver has got until then."""
        at, total = path.arrivals(self.seen)
        moved = np.flatnonzero(np.diff(total, prepend=-1.0) > 0)
        return at[moved], total[moved]

    @cached_property
    def passages(self) -> tuple[Floats, Floats]:
        """When packets arrived at the receiver, and how many bytes.

        Next to the sender that is when it acknowledged them, by its own clock if timestamps tell
        it: acknowledgements that wait on their way back come together.
        """
        seen = self.seen
        at, total = path.arrivals(seen)
        if self.at_sender:
            known: Bools = seen.is_pure & ~np.isnan(seen.ack_timestamp)
            late = path.one_way_ms(seen.ack[known], seen.ack_timestamp[known])
            if known.sum() >= _LEAST_STAMPS and late is not None:
                at, total = at[known] - late, np.maximum.accumulate(total[known])
        return at, np.diff(total, prepend=0.0)

    @cached_property
    def flight(self) -> Ints:
        """Bytes in flight when each segment was sent, itself included."""
        seen = self.seen
        known = np.searchsorted(seen.ack, seen.sent, side="right") - 1
        highest = np.maximum.accumulate(seen.offset + seen.payload)
        delivered = np.concatenate(([0], np.maximum.accumulate(seen.delivered)))
        flight: Ints = np.maximum(highest - delivered[known + 1], 0)
        return flight

    @cached_property
    def waits(self) -> Floats:
        """By how much each segment's round trip exceeds the shortest; NaN: not known."""
        return path.waits_of(self.seen)[0]

    @cached_property
    def lost(self) -> Bools:
        """Segments that stand for a lost one."""
        return path.lost_segments(self.seen)

    @cached_property
    def loss_share(self) -> float:
        """Of the segments that were sent."""
        missing = int(self.lost.sum())
        return missing / (len(self.seen.sent) + (0 if self.at_sender else missing))

    @cached_property
    def sent_ms(self) -> Floats:
        """When each segment left its sender, as far as it shows: by its timestamp elsewhere."""
        seen = self.seen
        if self.at_sender:
            return seen.sent
        known = ~np.isnan(self.waits)
        if known.sum() < 2:
            return seen.sent
        sent = np.where(known, seen.sent - np.nan_to_num(self.waits), np.nan)
        filled: Floats = np.interp(np.arange(len(sent)), np.flatnonzero(known), sent[known])
        return filled

    @cached_property
    def _echoes(self) -> tuple[Floats, Floats] | None:
        """How long it took until data echoed each acknowledgement that left here; when it left.

        The first without what the data waited, the second to a constant.
        """
        seen = self.seen
        first: dict[float, float] = {}
        for stamp, at in zip(seen.ack_timestamp, seen.ack, strict=True):
            if not np.isnan(stamp):
                first.setdefault(float(stamp), float(at))
        trips, left = [], []
        last = None
        for index in np.flatnonzero(~np.isnan(seen.echo)):
            echo = float(seen.echo[index])
            # Only the first that echoes an acknowledgement was set off by it.
            if echo != last and echo in first and not np.isnan(self.waits[index]):
                left.append(float(seen.sent[index]) - float(self.waits[index]))
                trips.append(left[-1] - first[echo])
            last = echo
        if len(trips) < _LEAST_STAMPS:
            return None
        found = np.array(trips)
        return found - found.min(), np.array(left)

    @cached_property
    def back_together(self) -> float | None:
        """Next to the receiver: acknowledgements that reach the sender at about the same time."""
        if self.at_sender or self._echoes is None:
            return None
        apart = np.diff(np.sort(self._echoes[1]))
        return len(apart) / max(1.0, float((apart > _TOGETHER_MS).sum()))

    @cached_property
    def back_falls(self) -> float:
        """Next to the receiver: share of the echoes whose wait is far below that of the one before.

        Of a batch the first waited for all of its interval and the last for nothing. Behind a
        queue's acknowledgement comes one that waited about as long.
        """
        if self.at_sender or self._echoes is None:
            return 0.0
        waits = self._echoes[0]
        return float((np.diff(waits) < -_FALL * np.quantile(waits, _HIGH)).mean())

    @cached_property
    def back_ms(self) -> tuple[float, float, float] | None:
        """Quantiles 0.05, 0.5, 0.95 of what acknowledgements waited, by their timestamps.

        Next to a receiver that also sends data, what comes back answers that, and not only its
        acknowledgements: how long that took says nothing of them.
        """
        seen = self.seen
        known = seen.is_pure & ~np.isnan(seen.ack_timestamp)
        answers = not self.at_sender and seen.other["data_packets"] > _MOST_REQUESTS
        if known.sum() < _LEAST_STAMPS or answers:
            return None
        if self.at_sender:
            delay = path.one_way_ms(seen.ack[known], seen.ack_timestamp[known])
        else:
            delay = None if self._echoes is None else self._echoes[0]
        if delay is None or not len(delay):
            return None
        low, middle, high = np.quantile(delay, [_LOW, 0.5, _HIGH])
        return float(low), float(middle), float(high)

    @cached_property
    def loss_at(self) -> Ints:
        """Each lost segment: the one that it was sent as, or the first that was sent after it."""
        seen = self.seen
        index: Ints = np.flatnonzero(self.lost)
        if self.at_sender:
            return index
        first = np.flatnonzero(~seen.is_again)
        highest = np.maximum.accumulate(seen.offset[first])
        after = np.searchsorted(highest, seen.offset[index], side="right")
        known = after < len(first)
        return np.sort(first[after[known]])

    @cached_property
    def sends(self) -> tuple[Floats, Ints, Bools]:
        """Time, size and loss of what was sent, as far as it shows; the lost ones included.

        Elsewhere than at the sender a lost segment left between two that arrived.
        """
        seen = self.seen
        if self.at_sender:
            return seen.sent, seen.size, self.lost
        at, sent = self.loss_at, self.sent_ms
        missing = (sent[np.maximum(at - 1, 0)] + sent[at]) / 2
        times = np.concatenate([sent, missing])
        sizes = np.concatenate([seen.size, np.full(len(at), int(seen.size.max()))])
        lost = np.arange(len(times)) >= len(seen.sent)
        place = np.concatenate([np.arange(len(seen.sent), dtype=float), at - 0.5])
        order = np.lexsort((place, times))
        return times[order], sizes[order], lost[order]

    @cached_property
    def episodes(self) -> list[int]:
        """The first lost segment of each round trip with losses."""
        found: list[int] = []
        last = -np.inf
        trip = max(self.base_ms, self.typical_rtt_ms)
        for one in self.loss_at:
            if self.sent_ms[one] - last > trip:
                found.append(int(one))
            last = self.sent_ms[one]
        return found

    @cached_property
    def typical_rtt_ms(self) -> float:
        """The median round trip; next to the receiver as by timestamps' delay."""
        waits = self.waits[~np.isnan(self.waits)]
        return self.base_ms + (float(np.median(waits)) if len(waits) else 0.0)

    @cached_property
    def loss_wait_rank(self) -> float | None:
        """Mean rank of the wait of the segment before the first loss of each episode."""
        known = ~np.isnan(self.waits)
        if known.sum() < _LEAST_STAMPS or len(self.episodes) < _LEAST_EPISODES:
            return None
        order = np.sort(self.waits[known])
        before = path.wait_before(self.waits, np.array(self.episodes))
        ranks = np.searchsorted(order, before, side="left") + np.searchsorted(
            order, before, side="right"
        )
        return float(np.mean(ranks) / 2 / len(order))

    @cached_property
    def overtaken(self) -> float:
        """Share of segments, sent once, that arrived after later ones."""
        seen = self.seen
        if not self.at_sender:
            delay = path.waits_of(seen)[0]
            sent = (seen.sent - delay)[~np.isnan(delay)]
            # Timestamps of 1 ms.
            return float((sent < np.maximum.accumulate(sent) - 0.5).mean()) if len(sent) else 0.0
        once = (seen.sent_again == 0) & ~seen.is_again & ~np.isnan(seen.acked)
        acked = seen.acked[once]
        if len(acked) < _LEAST_STAMPS:
            return 0.0
        earliest_after = np.minimum.accumulate(acked[::-1])[::-1]
        late = acked[:-1] > earliest_after[1:]
        return float(late.mean())

    @cached_property
    def wait_ms(self) -> tuple[float, float, float]:
        """Quantiles 0.05, 0.5, 0.95 of the wait."""
        waits = self.waits[~np.isnan(self.waits)]
        if not len(waits):
            return 0.0, 0.0, 0.0
        low, middle, high = np.quantile(waits, [_LOW, 0.5, _HIGH])
        return float(low), float(middle), float(high)

    def waited_ms(self, at: float, until: float) -> float:
        """How long data was under way and nothing arrived from ``at`` to ``until``."""
        seen = self.seen
        if not self.at_sender:
            return until - at
        acked = int(np.searchsorted(seen.ack, at, side="right"))
        before = int(seen.delivered[:acked].max()) if acked else 0
        highest = np.maximum.accumulate(seen.offset + seen.payload)
        # What was under way, or was sent next.
        first = int(np.searchsorted(highest, before, side="right"))
        if first >= len(highest):
            return 0.0
        return until - max(at, float(seen.sent[first]))

    @cached_property
    def pauses(self) -> list[tuple[float, float]]:
        """Periods in which the application had nothing to send, in ms."""
        least = max(_LEAST_PAUSE_MS, _PAUSE_ROUNDS * self.base_ms)
        if self.at_sender:
            return [one for one in self._nothing_sent if one[1] - one[0] >= least]
        seen = self.seen
        apart = np.diff(self.sent_ms)
        highest = np.maximum.accumulate(seen.offset + seen.payload)
        found = [
            (float(seen.sent[index]), float(seen.sent[index + 1]))
            for index in np.flatnonzero(apart >= least)
            if not seen.is_again[index + 1] and seen.offset[index + 1] == highest[index]
        ]
        return [one for one in found if one[1] - one[0] >= least and not self._was_late(*one)]

    @cached_property
    def _nothing_sent(self) -> list[tuple[float, float]]:
        """Periods from the acknowledgement of everything to the next new data."""
        seen = self.seen
        acked = np.maximum.accumulate(seen.ack_offset)
        new = np.flatnonzero(~seen.is_again)[1:]
        begins = np.append(seen.ack, np.inf)[np.searchsorted(acked, seen.offset[new])]
        ends = seen.sent[new]
        is_idle = begins < ends
        return list(zip(begins[is_idle].tolist(), ends[is_idle].tolist(), strict=True))

    def _was_late(self, begin: float, end: float) -> bool:
        """Next to the receiver: what ended it was sent long before, and the path was silent."""
        if self.at_sender:
            return False
        index = int(np.searchsorted(self.seen.sent, end))
        wait = self.waits[index : index + _LEAST_EPISODES]
        wait = wait[~np.isnan(wait)]
        return len(wait) > 0 and float(wait.max()) > 0.5 * (end - begin)

    @cached_property
    def idle_share(self) -> float:
        """Time in which the application had nothing to send."""
        return sum(end - begin for begin, end in self.pauses) / series.MS / self.seconds

    @cached_property
    def _room(self) -> tuple[Floats, Ints]:
        """When segments were sent, and the receive window's room behind each, in bytes."""
        seen = self.seen
        window = self.stream["window"]
        if self.window_bytes is None or not window or window["scale"] is None:
            # Without the options of both SYNs nobody knows the window's scale.
            return np.zeros(0), np.zeros(0, dtype=np.int64)
        edge = np.maximum.accumulate(seen.ack_offset + (seen.window << window["scale"]))
        before = seen.sent if self.at_sender else seen.sent - self.base_ms - 1
        known = np.searchsorted(seen.ack, before, side="right") - 1
        # The window of a SYN is never scaled.
        usable = (known >= 1) & ~seen.is_again
        room: Ints = edge[known[usable]] - (seen.offset + seen.payload)[usable]
        return seen.sent[usable], room

    @cached_property
    def _is_shut(self) -> Bools:
        """Which acknowledgements advertise a window smaller than a full segment."""
        seen = self.seen
        window = self.stream["window"]
        scale = window["scale"] if window else None
        # A window of 0 is one with any scale; the window of a SYN is never scaled.
        shut = seen.window == 0 if scale is None else seen.window << scale < self.segment_bytes
        shut[:1] = False
        return shut

    def is_closed(self, at_ms: float) -> bool:
        """Whether the window last advertised before that time is smaller than a full segment."""
        last = int(np.searchsorted(self.seen.ack, at_ms, side="right")) - 1
        return last >= 1 and bool(self._is_shut[last])

    @cached_property
    def shut_ms(self) -> float:
        """How long there was nothing to acknowledge and the window was smaller than a segment."""
        ack = self.seen.ack
        if not len(ack):
            return 0.0
        # Behind the last segment only probes and what answers them follow.
        idle = [*self.pauses, (self.end_ms, max(self.end_ms, float(ack[-1])))]
        steps = np.flatnonzero(np.diff(self._is_shut, prepend=False))
        begins, ends = steps[::2], [*steps[1::2], len(ack) - 1][: len(steps[::2])]
        return sum(
            max(0.0, min(float(ack[end]), until) - max(float(ack[begin]), since))
            for begin, end in zip(begins, ends, strict=True)
            for since, until in idle
        )

    @cached_property
    def too_large(self) -> tuple[int, int] | None:
        """Of lost packets the smallest payload, of others the largest, if that is smaller.

        None: size does not tell which packets are lost.
        """
        seen, lost = self.packets, path.lost_segments(self.packets)
        acked = seen.ack_offset.max() if len(seen.ack) else 0
        arrived = ~lost & (seen.offset + seen.payload <= acked)
        few = len(self.episodes) < _LEAST_EVENTS
        if not self.at_sender or few or not arrived.any() or not lost.any():
            return None
        smallest, largest = int(seen.payload[lost].min()), int(seen.payload[arrived].max())
        return (smallest, largest) if smallest > largest else None

    @cached_property
    def has_backlog(self) -> bool:
        """There was something to send most of the time.

        Elsewhere than at the sender only what is sent late shows that: where everything has
        arrived, more may be on its way.
        """
        limits = self.stream["limits"] if self.at_sender else None
        if self.is_self_paced:
            return False
        if not limits:
            return self.idle_share <= _MOST_OF_THE_TIME
        return bool(limits["nothing_to_send_s"] <= _MOST_OF_THE_TIME * limited_s(limits))

    @cached_property
    def is_self_paced(self) -> bool:
        """Whether the sender sets its own pace: no ACK prompts it, and nothing queues."""
        sending = self.stream["sending"]
        if not self.at_sender or not sending or (sending["unprompted"] or 0.0) < _MOST_OF_THE_TIME:
            return False
        is_full = self.path.capacity_mbps is not None or self.wait_ms[2] > _QUEUED * self.base_ms
        return not is_full and not bool(self.lost.any())

    @cached_property
    def window_share(self) -> float:
        """Share of the round trips in which the receive window had no room for another segment."""
        at, room = self._room
        if not len(at):
            return 0.0
        trip = max(self.base_ms, 1.0)
        rounds = (at - self.begin_ms) // trip
        full = np.unique(rounds[room < 2 * self.segment_bytes])
        return len(full) / max(1, len(np.unique(rounds)))

    @cached_property
    def segment_bytes(self) -> int:
        """Payload of a full segment."""
        return int(self.seen.payload.max())

    @cached_property
    def window_steady(self) -> float:
        """The median window over the largest advertised one; low where it opens and closes."""
        window = self.seen.window[1:]
        return float(np.median(window) / window.max()) if len(window) and window.max() else 1.0

    @cached_property
    def ceiling_bytes(self) -> float:
        """The most in flight (p99)."""
        return float(np.quantile(self.flight, _MOST))

    @cached_property
    def _at_ceiling(self) -> Bools:
        """Which segments were sent with the most in flight, to 1.5 segments."""
        near: Bools = np.abs(self.flight - self.ceiling_bytes) <= _CEILING * self.segment_bytes
        return near

    @property
    def ceiling_share(self) -> float:
        """Share of the segments that were sent with the most in flight."""
        return float(self._at_ceiling.mean())

    @property
    def ceiling_frames(self) -> tuple[int, ...]:
        """Packets that were sent with the most in flight."""
        return tuple(self.seen.frame[self._at_ceiling][:_FRAMES].tolist())

    @cached_property
    def limited_share(self) -> float:
        """Share of the time in which the window had no room, as the flow's figures have it."""
        window = self.stream["window"]
        return min(1.0, float(window["limited_s"] or 0.0) / self.seconds) if window else 0.0

    @cached_property
    def window_bytes(self) -> float | None:
        """The largest window."""
        window = self.stream["window"]
        return float(window["max_bytes"]) if window and window["max_bytes"] else None

    @cached_property
    def limited_frames(self) -> tuple[int, ...]:
        """Packets that filled the receive window."""
        at, room = self._room
        full = at[room < 2 * self.segment_bytes][:_FRAMES]
        return tuple(int(one) for one in self.seen.frame[np.searchsorted(self.seen.sent, full)])

    def rate_between(self, begin: float, end: float) -> float:
        """Mb/s that arrived between two shares of the time."""
        span = self.end_ms - self.begin_ms
        low, high = self.begin_ms + begin * span, self.begin_ms + end * span
        return series.between(*self.arrivals, low, high)

    @cached_property
    def late_mbps(self) -> float:
        """The rate without the first third."""
        return self.rate_between(_FIRST_THIRD, 1.0)

    @cached_property
    def ramp_share(self) -> float:
        """Share of the time until a tenth of it first had four fifths of the best rate."""
        steps = [self.rate_between(at / _TENTHS, (at + 1) / _TENTHS) for at in range(_TENTHS)]
        best = max(steps)
        return next(at for at, rate in enumerate(steps) if rate >= _REACHED * best) / _TENTHS

    @cached_property
    def exit_bytes(self) -> float | None:
        """Bytes in flight when slow start ended."""
        slow_start = self.stream["slow_start"]
        if not slow_start or slow_start["exit_round"] is None:
            return None
        return float(max(slow_start["rounds_bytes"][: slow_start["exit_round"] + 1]))

    @cached_property
    def first_mbps(self) -> float:
        """The fastest train of six segments among the first forty."""
        at, total = self.arrivals
        return max(series.trains(at[:_FIRST], total[:_FIRST], _TRAIN), default=0.0)
