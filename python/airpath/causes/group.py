"""Transfers in one direction between the same two hosts: together they fill the path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airpath.causes.bucket import Bucket, fit_bucket
from airpath.causes.traits import BIN_MS, Gap, Transfer
from airpath.fitting import bins
from airpath.fitting.observed import Floats

_GAP_FACTOR = 8.0
_LEAST_GAP_MS = 40.0
_TRAIN = 8
_LONG_TRAIN = 24
_SLOT_MS = 0.5
_PERIODS_MS = {_SLOT_MS: (0.5, 1.0, 2.0, 2.5, 5.0, 8.0, 10.0, 20.0), 5 / 3: (5 / 3, 20 / 3, 80 / 3)}
"""By slot, after which times a radio sends again: slots, TTIs, patterns of TDD, HARQ's round trips.

The shorter slot is that of NR, of which LTE and UMTS have whole ones, the longer one EV-DO's.
"""
_ODD = 0.05
_SLOT_TOLERANCE_MS = 0.03
_LEAST_APART_MS = 0.125
_WINDOWS = 400
_SMOOTH = 0.16
_LONG_SHARE = 0.5
_ALIKE = 0.2
_MOST = 0.75
_BEGINNING = 0.3
_MOST_OF_ALL = 1 / 6
LEAST_SILENCE_MS = 150.0
"""RLC holds back what is behind a missing block for 85 to 130 ms (t-Reassembly and its like)."""
_EARLY = (
    (40, (8.0, 16.0, 32.0), 1.0, 0.99, 1.12),
    (80, (16.0,), 0.95, 0.6, 1.55),
    (20, (32.0,), 0.9, 0.5, 1.3),
)
"""Segments at the beginning, and milliseconds of a window: of all bytes, by how many more came in
one at first than later, as two quantiles, if a bucket of tokens was full at first. A radio's slots
and its retransmissions bring several packets at once, but they do so all the time."""
_SPREAD_OF_RANKS = 0.29
"""Standard deviation of a number that is anything from 0 to 1."""
GRANT_MS = 10.0
"""Delay that a radio's grants and slots add for some packets, without a queue."""
LEAST_EPISODES = 4
"""Round trips with losses below which nothing is said of why packets are lost by chance."""
LEAST_OVERFLOWS = 3
"""Round trips with losses below which nothing is said of why packets are lost."""


@dataclass(frozen=True)
class LossWait:
    """How long packets right before losses had waited.

    ``rank``: the mean rank of that wait, 0 to 1; by chance a half. ``lost_each``: packets that are
    lost in each round trip with losses.
    """

    rank: float
    lost_each: float
    episodes: int


@dataclass(frozen=True)
class LossFlight:
    """Bytes in flight when packets were lost.

    ``rank``: its mean rank among all packets that could have been the first lost one for a round
    trip, 0 to 1; by chance a half. ``far``: from there, in standard deviations.
    """

    rank: float
    far: float
    episodes: int


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
        return max(1e-3, (self.end_ms - self.begin_ms) / 1000)

    @cached_property
    def rate_mbps(self) -> float:
        """The rate of all together, in bytes of IP."""
        return sum(one.wire_bytes for one in self.transfers) * 8e-6 / self.seconds

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
    def _best_mbps(self) -> float:
        """What arrived in each fifth of a second is above this in a tenth of them."""
        at, total = self.arrivals
        rates, counts = bins.rates(at, total, self.begin_ms, self.end_ms, BIN_MS)
        return bins.quantile(rates, counts, 0.9) if len(rates) else self.rate_mbps

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
        return max(best, 1e-3)

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
        return min(1.0, closed / 1000 / self.seconds)

    def _is_closed(self, gap: Gap) -> bool:
        return any(one.is_closed(gap.at_ms) for one in self.transfers)

    @cached_property
    def _every_gap(self) -> list[Gap]:
        at, _ = self.arrivals
        if len(at) < 20:
            return []
        apart = np.diff(at)
        usual = float(np.quantile(apart, 0.95))
        # At the sender what it sends after a silence takes a round trip to be heard of.
        trip = self.base_ms if self.at_sender else 0.0
        least = max(_LEAST_GAP_MS, _GAP_FACTOR * float(np.median(apart)), 3 * usual)
        found = []
        for index in np.flatnonzero(apart > least):
            begin, end = float(at[index]), float(at[index + 1])
            waited = max(one.waited_ms(begin, end) for one in self.transfers)
            pauses = self.main.pauses if len(self.transfers) == 1 else []
            if any(low <= end and begin <= high for low, high in pauses):
                continue
            if waited - trip > least:
                silent = min(one.silent_for(begin, end) for one in self.transfers)
                found.append(Gap(begin, end - begin, silent))
        return [*found, *self._unanswered(float(at[-1]), least)]

    def _unanswered(self, begin: float, least: float) -> list[Gap]:
        """The silence at the end, in which the sender retransmitted and got no reply."""
        last = max(float(one.seen.sent.max()) for one in self.transfers)
        if not self.at_sender or last - begin <= least:
            return []
        waited = max(one.waited_ms(begin, last) for one in self.transfers)
        silent = last - begin
        return [Gap(begin, silent, silent, is_open=True)] if waited > 0.5 * silent else []

    @cached_property
    def loss_share(self) -> float:
        """Of the packets that were sent."""
        lost = sum(len(one.loss_at) for one in self.transfers)
        sent = sum(len(one.seen.sent) for one in self.transfers)
        return lost / max(1, sent + (0 if self.at_sender else lost))

    @cached_property
    def late_loss_share(self) -> float:
        """Of the packets that were sent after the first third of the time: slow start is over."""
        from_ms = self.begin_ms + (self.end_ms - self.begin_ms) / 3
        sent = lost = 0
        for one in self.transfers:
            at, _, is_lost = one.sends
            sent += int((at >= from_ms).sum())
            lost += int((is_lost & (at >= from_ms)).sum())
        return lost / max(1, sent)

    @cached_property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.capacity_mbps * 125 * self.base_ms

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
    def is_starved(self) -> bool:
        """Losses leave no more than a few segments in flight."""
        main = self.main
        if main.at_sender:
            return float(np.median(main.flight)) <= 6 * main.segment_bytes
        each = self.rate_mbps * 125 * main.typical_rtt_ms / len(self.transfers)
        return each <= 6 * main.segment_bytes and self.queue_ms < self.short_wait_ms

    @property
    def short_wait_ms(self) -> float:
        """What waits for less waits in no queue of the path's length, but for a radio's grants."""
        return 0.5 * self.base_ms + (GRANT_MS if self.is_slotted else 0.0)

    @cached_property
    def is_regular(self) -> bool:
        """Three silences or more, each about as long."""
        return _are_alike(self.silences)

    @cached_property
    def silences(self) -> list[Gap]:
        """The long ones of the gaps, unless these are nearly all of the time, as with batches."""
        gaps = self.gaps
        if not gaps or sum(one.length_ms for one in gaps) / 1000 > 0.9 * self.seconds:
            return []
        longest = max(one.length_ms for one in gaps)
        # After a loss a sender pauses, too: next to the receiver that is a silence.
        trips = 2.5 if self.at_sender else 4.0
        least = max(LEAST_SILENCE_MS, trips * self.base_ms)
        if longest < least:
            return []
        # A time-out after a silence, or after losses, may last much longer.
        known = [one.length_ms for one in gaps if one.is_known and one.length_ms >= least]
        found = [one for one in gaps if one.length_ms >= 0.5 * max(known, default=longest)]
        if not _are_alike(found):
            every = [one for one in gaps if one.length_ms >= least]
            found = every if _are_alike(every) else found
        # Now and then one follows the other at once.
        held = _are_alike(found) and np.median([one.length_ms for one in found])
        return [] if held and held < LEAST_SILENCE_MS else found

    @cached_property
    def silent_share(self) -> float:
        """Of the time."""
        return min(0.95, sum(one.length_ms for one in self.silences) / 1000 / self.seconds)

    @cached_property
    def idle_share(self) -> float:
        """Time in which the application had nothing to send, of a transfer that is alone."""
        return self.main.idle_share if len(self.transfers) == 1 else 0.0

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
        if len(at) < 50 or at[-1] - at[0] <= span:
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
        ranks = np.searchsorted(usual, around, "left") + np.searchsorted(usual, around, "right")
        return float(np.mean(ranks)) / 2 / len(usual)

    @cached_property
    def hollow_share(self) -> float:
        """Share of the time in which nothing arrived for half of the shortest round trip.

        What was sent last arrives after that time.
        """
        apart = np.diff(np.clip(self.arrivals[0], self.begin_ms, self.end_ms))
        return float(apart[apart > 0.5 * self.base_ms].sum()) / 1000 / self.seconds

    @cached_property
    def loss_wait(self) -> LossWait | None:
        """What packets right before losses had waited."""
        ranks = [(one.loss_wait_rank, len(one.episodes)) for one in self.transfers]
        known = [(rank, count) for rank, count in ranks if rank is not None]
        episodes = sum(count for _, count in known)
        if episodes < LEAST_EPISODES:
            return None
        rank = sum(rank * count for rank, count in known) / episodes
        lost = sum(len(one.loss_at) for one in self.transfers)
        every = sum(count for _, count in ranks)
        return LossWait(rank, lost / every, episodes)

    @cached_property
    def loss_flight(self) -> LossFlight | None:
        """What was under way, as far as it had been sent in the last round trip, at losses.

        A sender lets more be under way until something is lost. If that is by chance, it happens at
        any time; a queue or a bucket that is full loses when most is under way.
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
        ranks = np.searchsorted(usual, found, "left") + np.searchsorted(usual, found, "right")
        rank = float(np.mean(ranks)) / 2 / len(usual)
        return LossFlight(rank, (rank - 0.5) * np.sqrt(len(found)) / _SPREAD_OF_RANKS, len(found))

    @cached_property
    def first_mbps(self) -> float:
        """The fastest six of the first forty segments."""
        return self.main.first_mbps

    @cached_property
    def _passages(self) -> tuple[Floats, Floats]:
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
        at, added = self._passages
        total = np.cumsum(added)
        if len(at) < 4 * _TRAIN:
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
                last = np.searchsorted(at, at + window - 1e-6) - 1
                came = total[last] - total + added
                first = _weighted(came[early], added[early], at_first)
                usual = _weighted(came[later], added[later], afterwards)
                if first > factor * usual and first - usual > 1.5 * segment:
                    return window, first / 1000, usual / 1000
        return None

    @cached_property
    def _apart(self) -> Floats:
        """Milliseconds between arrivals that do not come together."""
        apart = np.diff(self.arrivals[0])
        found: Floats = apart[apart > _LEAST_APART_MS]
        return found

    @cached_property
    def is_slotted(self) -> bool:
        """Arrivals are apart by whole slots of a radio."""
        return any(_in_slots(self._apart, slot) for slot in _PERIODS_MS)

    @cached_property
    def loss_window(self) -> float:
        """The window that such a share of losses allows each transfer, over what the path holds.

        1.22 / sqrt(p) segments (Mathis et al. 1997).
        """
        allowed = 1.22 / np.sqrt(max(1e-9, self.loss_share)) * len(self.transfers)
        return float(allowed * 1500 / max(1500.0, self.bdp_bytes))

    @cached_property
    def is_smooth(self) -> bool:
        """The second half arrives as evenly as over a wire, and not in slots of a radio."""
        at, total = self.arrivals
        half = len(at) // 2
        at, total = at[half:], total[half:]
        if len(at) < 4 * _LONG_TRAIN:
            return False
        if self.is_slotted:
            return False
        return _spread(at, total, _TRAIN) <= _SMOOTH and _spread(at, total, _LONG_TRAIN) <= _SMOOTH


def _are_alike(gaps: Sequence[Gap]) -> bool:
    """Three or more, each about as long, as far as that is known."""
    if len(gaps) < 3:
        return False
    lengths = np.array([one.length_ms for one in gaps])
    if (np.abs(lengths / np.median(lengths) - 1) < _ALIKE).mean() >= _MOST:
        return True
    known = [one.length_ms for one in gaps if one.is_known]
    if len(known) < 2:
        return False
    middle = float(np.median(known))
    # Two are soon alike by chance.
    near = _ALIKE if len(known) > 2 else _ALIKE / 4
    low, high = middle * (1 - near), middle * (1 + near)
    fits = [one.is_open or (one.length_ms > low and one.least_ms < high) for one in gaps]
    alike = sum(low < length < high for length in known)
    return alike >= max(2.0, _MOST * len(known)) and sum(fits) >= _MOST * len(fits)


def _in_slots(apart: Floats, slot_ms: float) -> bool:
    """Most times are whole slots; but not all whole ones of a time that is no radio's.

    That is what a wire's packets take, which may be several slots by chance.
    """
    whole = np.round(apart / slot_ms)
    near = np.abs(apart - whole * slot_ms) < _SLOT_TOLERANCE_MS
    if not len(apart) or near.mean() <= 0.6:
        return False
    number, count = np.unique(whole[near], return_counts=True)
    usual = float(number[count.argmax()])
    is_period = np.abs(usual * slot_ms - np.array(_PERIODS_MS[slot_ms])) < _SLOT_TOLERANCE_MS
    odd = count[number % max(1.0, usual) != 0].sum() / count.sum()
    return bool(is_period.any() or odd > _ODD)


def _weighted(values: Floats, weight: Floats, share: float) -> float:
    """The value below which so much of the weight is."""
    order = np.argsort(values)
    passed = np.cumsum(weight[order])
    return float(values[order][min(np.searchsorted(passed, share * passed[-1]), len(order) - 1)])


def _spread(at: Floats, total: Floats, train: int) -> float:
    """The middle half of the rates of trains of so many arrivals, over their median."""
    passed, lasted = total[train:] - total[:-train], at[train:] - at[:-train]
    rates = passed[lasted > 0] * 8 / lasted[lasted > 0] / 1000
    if not len(rates):
        return np.inf
    low, middle, high = np.quantile(rates, [0.25, 0.5, 0.75])
    return float((high - low) / middle)
