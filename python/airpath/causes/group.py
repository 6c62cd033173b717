"""Transfers in one direction between the same two hosts: together they fill the path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from airpath.causes.bucket import Bucket, fit_bucket
from airpath.causes.traits import BIN_MS, Gap, Transfer
from airpath.fitting import series
from airpath.fitting.observed import Floats

_GAP_FACTOR = 8.0
"""Definition: a gap is so many times as long as the usual time between arrivals"""
_GAP_TAIL = 3.0
"""and so many times as long as a twentieth of them are."""
_USUAL = 0.95
"""Definition: the quantile below which times between arrivals are usual."""
_LEAST_GAP_MS = 40.0
"""Definition: shorter gaps are a radio's frames, grants and repetitions, or a delayed ACK."""
LEAST_SILENCE_MS = 150.0
"""RLC holds back what is behind a missing block for 85 to 130 ms (t-Reassembly and its like)."""
_NEARLY_ALL = 0.9
"""Definition: gaps that are more of the time are no silences, but how packets come."""
_ALIKE, _MOST = 0.2, 0.75
"""Definition: so many of the lengths differ by no more than this share from their median."""
_WINDOWS = 400
"""Bound: windows in which the longest time without an arrival is taken."""
_LONG_SHARE = 0.5
"""Definition: a bottleneck that was busy for most of the time."""
_BEST = 0.9
"""Definition: the best rate is the one that a tenth of the bins exceeds."""
_SOME = 32
"""Arrivals below which no usual time between them is known."""
_THIRDS = 3
"""Definition: slow start is over after the first third."""
_STEP_MS = 1e-6
"""Unit: the nanosecond of captures' times."""
_MORE = 1.5
"""Segments, so that one more is no excess."""
_BEGINNING = 0.3
"""Definition: the share of the time that may be slow start."""
_MOST_OF_ALL = 1 / 6
"""Definition: the share of all bytes that the first segments are at most."""
_EARLY = (
    (40, (8.0, 16.0, 32.0), 1.0, 0.99, 1.12),
    (80, (16.0,), 0.95, 0.6, 1.55),
    (20, (32.0,), 0.9, 0.5, 1.3),
)
"""Segments at the beginning, and milliseconds of a window: of all bytes, by how many more came in
one at first than later, as two quantiles, if a bucket of tokens was full at first. A radio's slots
and its retransmissions bring several packets at once, but they do so all the time."""
_SPREAD_OF_RANKS = 12**-0.5
"""Standard deviation of a number that is anything from 0 to 1."""
_MATHIS = 1.22
"""sqrt(3 / 2), the constant of the window that losses allow (Mathis et al. 1997)."""
_NO_LOSS = 1e-9
"""Definition: no loss counts as this share."""
_FULL_PACKET = 1500
"""Bytes of Ethernet's MTU (IEEE 802.3)."""
_GROWTH = 1.25
"""A round trip with less than this times the bytes of the one before has not grown."""
_MOST_ROUNDS = 32
"""Bound: round trips at the end; slow start never takes as many."""
LEAST_EPISODES = 4
"""Round trips with losses below which nothing is said of why packets are lost by chance."""
LEAST_OVERFLOWS = 3
"""Round trips with losses below which nothing is said of why packets are lost."""


class Group:
    """One or more transfers, those with the most data first."""

    def __init__(self, transfers: Sequence[Transfer], *, is_alone: bool = True) -> None:
        """``is_alone``: hardly anything else is in the capture, as in a test."""
        self.is_alone = is_alone
        self.transfers = sorted(transfers, key=lambda one: -one.wire_bytes)
        self.main = self.transfers[0]
        self.at_sender = self.main.at_sender

    @cached_property
    def begin_ms(self) -> float:
        """When the first started."""
        return min(one.begin_ms for one in self.transfers)

    @cached_property
    def end_ms(self) -> float:
        """When the last ended."""
        return max(one.end_ms for one in self.transfers)

    @cached_property
    def seconds(self) -> float:
        """From the first to the last."""
        return self.span_ms / series.MS

    @property
    def span_ms(self) -> float:
        """From the first to the last."""
        return max(1.0, self.end_ms - self.begin_ms)

    @cached_property
    def rate_mbps(self) -> float:
        """The rate of all together, in bytes of IP."""
        every = sum(one.wire_bytes for one in self.transfers)
        return every / self.span_ms / series.BYTES_PER_MS

    def rate_between(self, begin: float, end: float) -> float:
        """Mb/s that arrived between two shares of the time."""
        span = self.end_ms - self.begin_ms
        low, high = self.begin_ms + begin * span, self.begin_ms + end * span
        return series.between(*self.arrivals, low, high)

    @cached_property
    def base_ms(self) -> float:
        """The shortest round trip."""
        return min(one.base_ms for one in self.transfers)

    @cached_property
    def arrivals(self) -> tuple[Floats, Floats]:
        """Times in ms, and bytes of IP of all that have arrived until then."""
        at = np.concatenate([one.arrivals[0] for one in self.transfers])
        added = np.concatenate([np.diff(one.arrivals[1], prepend=0.0) for one in self.transfers])
        order = np.argsort(at, kind="stable")
        return at[order], np.cumsum(added[order])

    @cached_property
    def last_rounds(self) -> Floats:
        """Bytes that arrived in each round trip, from the last one back."""
        at, total = self.arrivals
        number = ((at[-1] - at) / self.base_ms).clip(max=_MOST_ROUNDS).astype(np.int64)
        added = np.diff(total, prepend=0.0)
        return np.bincount(number, weights=added)[:_MOST_ROUNDS].astype(np.float64)

    @property
    def rounds_grown(self) -> int:
        """How many round trips up to the end each had more bytes than the one before."""
        rounds = self.last_rounds
        grew = rounds[:-1] >= _GROWTH * np.maximum(1, rounds[1:])
        return int(np.argmin(np.append(grew, False)))

    @property
    def end_mbps(self) -> float:
        """The rate of the last two round trips."""
        last = self.last_rounds[:2]
        return float(last.mean()) / self.base_ms / series.BYTES_PER_MS

    @cached_property
    def _best_mbps(self) -> float:
        """What arrived in each fifth of a second is above this in a tenth of them."""
        at, total = self.arrivals
        rates, counts = series.rates(at, total, self.begin_ms, self.end_ms, BIN_MS)
        return series.quantile(rates, counts, _BEST) if len(rates) else self.rate_mbps

    @property
    def was_full(self) -> bool:
        """Packets queued at the bottleneck, so that its capacity shows."""
        return any(one.path.capacity_mbps is not None for one in self.transfers)

    @cached_property
    def capacity_mbps(self) -> float:
        """The highest rate that the path carried."""
        best = self._best_mbps
        path = self.main.path
        if len(self.transfers) == 1 and path.capacity_mbps:
            # Where the bottleneck was busy for long, what it carried then.
            if path.busy_s >= _LONG_SHARE * self.seconds:
                return path.capacity_mbps
            return max(path.capacity_mbps, best)
        return max(best, 1 / series.MS)

    @cached_property
    def busy(self) -> float:
        """The mean rate relative to the highest."""
        return min(1.0, self.rate_mbps / self.capacity_mbps)

    @cached_property
    def bucket(self) -> Bucket | None:
        """The token bucket that loses the same packets best; None with too few losses."""
        episodes = sum(len(one.episodes) for one in self.transfers)
        if episodes < LEAST_OVERFLOWS:
            return None
        sends = [one.sends for one in self.transfers]
        sent, size, lost = (np.concatenate(each) for each in zip(*sends, strict=True))
        if lost.all():
            return None
        order = np.argsort(sent, kind="stable")
        trip = max(one.typical_rtt_ms for one in self.transfers)
        return fit_bucket(sent[order], size[order], lost[order], episodes, trip)

    @cached_property
    def gaps(self) -> list[Gap]:
        """Times without any arrival while data was under way, much longer than usual.

        Without those that began when the receive window was full: then the receiver holds back.
        """
        return [one for one in self._every_gap if not self._is_closed(one)]

    @cached_property
    def closed_share(self) -> float:
        """Share of the time without arrivals that began when the receive window was full."""
        closed = sum(one.length_ms for one in self._every_gap if self._is_closed(one))
        return min(1.0, closed / self.span_ms)

    def _is_closed(self, gap: Gap) -> bool:
        return any(one.is_closed(gap.at_ms) for one in self.transfers)

    @cached_property
    def _every_gap(self) -> list[Gap]:
        at, _ = self.arrivals
        if len(at) < _SOME:
            return []
        apart = np.diff(at)
        usual = float(np.quantile(apart, _USUAL))
        # At the sender what it sends after a silence takes a round trip to be heard of.
        trip = self.base_ms if self.at_sender else 0.0
        least = max(_LEAST_GAP_MS, _GAP_FACTOR * float(np.median(apart)), _GAP_TAIL * usual)
        found = []
        for index in np.flatnonzero(apart > least):
            begin, end = float(at[index]), float(at[index + 1])
            waited = max(one.waited_ms(begin, end) for one in self.transfers)
            pauses = self.main.pauses if len(self.transfers) == 1 else []
            if any(low <= end and begin <= high for low, high in pauses):
                continue
            if waited - trip > least:
                found.append(Gap(begin, end - begin))
        return [*found, *self._unanswered(float(at[-1]), least)]

    def _unanswered(self, begin: float, least: float) -> list[Gap]:
        """The silence at the end, in which the sender retransmitted and got no reply."""
        last = max(float(one.seen.sent.max()) for one in self.transfers)
        if not self.at_sender or last - begin <= least:
            return []
        waited = max(one.waited_ms(begin, last) for one in self.transfers)
        silent = last - begin
        return [Gap(begin, silent, is_open=True)] if waited > silent / 2 else []

    @cached_property
    def loss_share(self) -> float:
        """Of the packets that were sent."""
        lost = sum(len(one.loss_at) for one in self.transfers)
        sent = sum(len(one.seen.sent) for one in self.transfers)
        return lost / max(1, sent + (0 if self.at_sender else lost))

    @cached_property
    def late_loss_share(self) -> float:
        """Of the packets that were sent after the first third of the time: slow start is over."""
        from_ms = self.begin_ms + (self.end_ms - self.begin_ms) / _THIRDS
        sent = lost = 0
        for one in self.transfers:
            at, _, is_lost = one.sends
            sent += int((at >= from_ms).sum())
            lost += int((is_lost & (at >= from_ms)).sum())
        return lost / max(1, sent)

    @cached_property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.capacity_mbps * series.BYTES_PER_MS * self.base_ms

    @cached_property
    def queue_ms(self) -> float:
        """How long packets waited (p95), without the wait of acknowledgements."""
        back = self.main.back_ms
        return max(0.0, self.main.wait_ms[2] - (back[2] if back else 0.0))

    @cached_property
    def typical_wait_ms(self) -> float:
        """How long packets waited (median), without the wait of acknowledgements."""
        return self.main.wait_ms[1] - (self.main.back_ms[1] if self.main.back_ms else 0.0)

    @cached_property
    def long_gaps(self) -> list[Gap]:
        """Those of half of the longest one's length."""
        longest = max((one.length_ms for one in self.gaps), default=0.0)
        return [one for one in self.gaps if one.length_ms >= longest / 2]

    @cached_property
    def silences(self) -> list[Gap]:
        """Long gaps, unless they are a radio's, or nearly all of the time, as with batches."""
        lengths = [one.length_ms for one in self.gaps]
        is_long = max(lengths, default=0.0) >= LEAST_SILENCE_MS
        return self.long_gaps if is_long and sum(lengths) <= _NEARLY_ALL * self.span_ms else []

    @property
    def is_regular(self) -> bool:
        """Three silences or more, each about as long."""
        lengths = np.array([one.length_ms for one in self.silences])
        if len(lengths) < LEAST_OVERFLOWS:
            return False
        return bool((np.abs(lengths / np.median(lengths) - 1) < _ALIKE).mean() >= _MOST)

    @property
    def silent_share(self) -> float:
        """Of the time."""
        return sum(one.length_ms for one in self.silences) / self.span_ms

    @cached_property
    def losses_at_silences(self) -> float:
        """Share of the episodes of loss around a silence, to two round trips."""
        times = [one.sent_ms[at] for one in self.transfers for at in one.episodes]
        near = 2 * self.base_ms + self.main.wait_ms[1]
        silences = [(one.at_ms - near, one.at_ms + one.length_ms + near) for one in self.silences]
        if not times:
            return 0.0
        return sum(any(low <= at <= high for low, high in silences) for at in times) / len(times)

    @cached_property
    def stillness(self) -> float:
        """The mean rank of the longest time without an arrival around losses; by chance a half.

        A host that stands still lets nothing through while packets are lost behind it.
        """
        at = self.arrivals[0]
        span = 2 * max(one.typical_rtt_ms for one in self.transfers)
        if len(at) < _SOME or at[-1] - at[0] <= span:
            return 0.5
        apart = np.diff(at)

        def longest(begin: float) -> float:
            first, last = np.searchsorted(at[1:], [begin, begin + span])
            return float(apart[first : last + 1].max()) if first < len(apart) else np.nan

        usual = np.sort([longest(one) for one in np.linspace(at[0], at[-1] - span, _WINDOWS)])
        sent = [float(one.sent_ms[where]) for one in self.transfers for where in one.episodes]
        around = np.array([longest(one - (0 if self.at_sender else self.base_ms)) for one in sent])
        around = around[~np.isnan(around)]
        if not len(around):
            return 0.5
        return series.mean_rank(around, usual)

    @cached_property
    def loss_wait(self) -> float | None:
        """The mean rank of what packets right before losses had waited; by chance a half."""
        ranks = [(one.loss_wait_rank, len(one.episodes)) for one in self.transfers]
        known = [(rank, count) for rank, count in ranks if rank is not None]
        episodes = sum(count for _, count in known)
        return sum(rank * count for rank, count in known) / episodes if episodes else None

    @cached_property
    def loss_flight(self) -> tuple[float, float] | None:
        """The mean rank of what was under way at losses, and its distance from chance (a half).

        Under way is what was sent in the last round trip; the rank is among packets that could have
        been the first lost one for a round trip, and the distance in standard deviations. A sender
        lets more be under way until something is lost. If that is by chance, it happens at any
        time; a queue or a bucket that is full loses when most is under way.
        """
        trip = max(one.typical_rtt_ms for one in self.transfers)
        every = np.sort(np.concatenate([one.sends[0] for one in self.transfers]))
        others, at_losses = [], []
        for transfer in self.transfers:
            sent, _, lost = transfer.sends
            number = np.arange(len(sent))
            last = np.maximum.accumulate(np.where(lost, number, -1))
            before = np.concatenate(([-1], last[:-1]))
            since = np.where(before >= 0, sent - sent[np.maximum(before, 0)], np.inf)
            under_way = np.searchsorted(every, sent, "right")
            under_way -= np.searchsorted(every, sent - trip, "right")
            others.append(under_way[since > trip])
            at_losses.append(under_way[(since > trip) & lost])
        usual, found = np.sort(np.concatenate(others)), np.concatenate(at_losses)
        if len(found) < LEAST_EPISODES:
            return None
        rank = series.mean_rank(found, usual)
        return rank, (rank - 0.5) * np.sqrt(len(found)) / _SPREAD_OF_RANKS

    @cached_property
    def passages(self) -> tuple[Floats, Floats]:
        """When packets came to the receiver, by its clock where that shows, and how many bytes."""
        each = [one.passages for one in self.transfers]
        at = np.concatenate([times for times, _ in each])
        order = np.argsort(at, kind="stable")
        return at[order], np.concatenate([added for _, added in each])[order]

    @cached_property
    def early_excess(self) -> tuple[float, float, float] | None:
        """Milliseconds of a window, kB that came in one at first, and what comes later.

        None if no more came at first than later.
        """
        at, added = self.passages
        total = np.cumsum(added)
        if len(at) < _SOME:
            return None
        later = at > at[0] + _BEGINNING * (at[-1] - at[0])
        if not later.any():
            return None
        segment = self.main.segment_bytes
        for segments, windows, at_first, afterwards, factor in _EARLY:
            if segments * segment > _MOST_OF_ALL * total[-1]:
                continue
            early = at <= at[np.searchsorted(total, segments * segment)]
            for window in windows:
                last = np.searchsorted(at, at + window - _STEP_MS) - 1
                came = total[last] - total + added
                first = series.weighted(came[early], added[early], at_first)
                usual = series.weighted(came[later], added[later], afterwards)
                if first > factor * usual and first - usual > _MORE * segment:
                    return window, first / series.MS, usual / series.MS
        return None

    @cached_property
    def loss_window(self) -> float:
        """The window that such a share of losses allows each transfer, over what the path holds.

        1.22 / sqrt(p) segments (Mathis et al. 1997).
        """
        allowed = _MATHIS / np.sqrt(max(_NO_LOSS, self.loss_share)) * len(self.transfers)
        return float(allowed * _FULL_PACKET / max(_FULL_PACKET, self.bdp_bytes))
