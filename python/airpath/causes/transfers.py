"""Causes of slow transfers: rules on what a group of TCP transfers shows.

Each rule gives what its cause would cost. A cause is named only if that is something: a transfer
that fills its path at a short round trip has none. The cuts were found on drawn cases of which the
cause is known (``make findings-captures`` draws others), and the comments say what they separate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from airpath.base.text import short
from airpath.causes.group import LEAST_EPISODES, Group
from airpath.causes.suspect import Suspect
from airpath.causes.traits import Transfer

_LEAST_COST = 0.12
_MOST_FRAMES = 5
_LEAST_LOSS = 0.0003
_LEAST_OVERFLOW = 0.001
_MOST_WINDOW = 2.0
_LEAST_TOGETHER = 1.5
_MANY_TOGETHER = 4.0
_ONE_BY_ONE = 1.2
_LEAST_HOLLOW = 0.5
_LEAST_STILLNESS = 0.6
_BITS = 12.0
"""Of a packet, in thousands."""
_LEAST_MATCH = 0.9
_DEEP = 0.9
_OFTEN_UNUSED = 0.8
_FULL = 0.9
_LEAST_RANK = 0.9
_MOST_OF_A_DEEP_QUEUE = 0.05
_LEAST_RADIO_WAIT_MS = 10.0
"""Grants and slots take less of the difference between most packets and those that wait longest."""
_LEAST_RANK_OF_A_QUEUE = 0.65
_LONG_WAIT_MS = 25.0
_LEAST_ROUNDS = 80
"""Until transfers with the same congestion control share a path."""


def suspects(group: Group) -> Iterator[Suspect]:
    """What a group of transfers is held back by, in no order."""
    for rule in (
        _windows,
        _pauses,
        _losses,
        _reordering,
        _acknowledgements,
        _silences,
        _standing_queue,
        _shaped,
        _rivals,
        _beginnings,
    ):
        yield from rule(group)


def idle_cost(group: Group) -> float:
    """Share of the path's capacity that was not used while there was something to send."""
    return max(0.0, 1 - group.busy / max(0.05, 1 - group.silent_share - group.idle_share))


def is_free(transfer: Transfer) -> bool:
    """Packets hardly wait: the path has room. A radio's grants take a little."""
    return transfer.wait_ms[1] < 0.4 * transfer.base_ms + 10


def _flows(group: Group) -> tuple[int, ...]:
    return tuple(one.seen.flow["id"] for one in group.transfers)


def _windows(group: Group) -> Iterator[Suspect]:
    """One of the two ends holds the data back."""
    main = group.main
    flows = _flows(group)
    # Of all bytes: a short transfer's window says little of a long one beside it.
    whole = max(1, sum(one.wire_bytes for one in group.transfers))
    limited = sum(one.window_share * one.wire_bytes for one in group.transfers) / whole
    reported = sum(one.limited_share * one.wire_bytes for one in group.transfers) / whole
    share = max(limited, reported)
    lossless = group.loss_share < (_LEAST_LOSS if main.at_sender else 0.002)
    shrinks = main.window_steady < (0.45 if limited >= 0.05 else 0.33)
    # A window that stays small for a few losses at the beginning does so for its reader.
    few = lossless or (main.window_steady < 0.3 and group.loss_share < 0.015)
    reads_slowly = shrinks and few and not main.grows
    if not main.at_sender and reads_slowly and group.seconds >= 3.2:
        share = max(share, 0.25)
    shrunk = main.window_steady < 0.6 and main.wait_ms[1] < main.base_ms + 20
    if share >= 0.25 and (shrunk or is_free(main)):
        at = main.limited_frames
        if shrunk:
            yield Suspect(
                "application-limited",
                max(share * 0.9, idle_cost(group)),
                f"In {share:.0%} of the time the receive window had no room, and it shrank to "
                f"{main.window_steady:.0%} of its largest size in the median: the receiver's "
                "application reads slower than the path delivers.",
                flows,
                at,
                advice="Look at what the receiver's application does with the data.",
            )
        elif share >= 0.4:
            yield Suspect(
                "receive-window",
                share * 0.9,
                f"In {share:.0%} of the time the receive window "
                f"({_kilobytes(main.window_bytes)}) had no room for a further segment, while "
                f"packets hardly waited on the path ({short(main.wait_ms[1])} ms in the median).",
                flows,
                at,
                advice="Let the receive buffer grow: net.ipv4.tcp_rmem, SO_RCVBUF, iperf3 -w.",
            )
        return
    # A larger buffer than the path has room for at the beginning: what slow start lost is no matter.
    later = main.at_sender and group.late_loss_share == 0 and group.busy < _OFTEN_UNUSED
    if not (lossless or later) or share >= 0.25 or main.grows or main.idle_share >= 0.1:
        return
    # Without a loss every control lets more and more be in flight, if the path is not full.
    stays = main.is_flat and group.busy < 0.9
    most = float(np.quantile(main.flight, 0.99))
    held = main.ceiling_share >= 0.25 or (stays and (later or not main.episodes))
    if main.at_sender and held and (is_free(main) or _empties(group)):
        yield Suspect(
            "send-buffer",
            max(idle_cost(group), 0.5 * main.ceiling_share),
            f"Never more than {_kilobytes(most)} were in flight, "
            f"with which {main.ceiling_share:.0%} of the segments were sent, although nothing was "
            "lost, packets hardly waited, and the receive window had room.",
            flows,
            main.ceiling_frames,
            advice="Let the send buffer grow: net.ipv4.tcp_wmem, SO_SNDBUF, iperf3 -w.",
        )
    elif not main.at_sender and (is_free(main) or _empties(group)) and _unused(group) >= 0.2:
        yield Suspect(
            "send-buffer",
            _unused(group),
            f"For {_unused(group):.0%} of the time the path was not used, nothing was lost, the "
            "receive window had room, and the rate did not grow: the sender did not send more.",
            flows,
            advice="Capture at the sender. Let the send buffer grow: net.ipv4.tcp_wmem, "
            "SO_SNDBUF, iperf3 -w.",
        )


def _empties(group: Group) -> bool:
    """The queue is empty again and again: what waits was sent at once, and the path waits then."""
    if group.main.sends_at_once:
        return group.busy < _FULL
    low = group.main.wait_ms[0]
    return group.busy < _OFTEN_UNUSED and low < 0.1 * group.base_ms + (
        10 if group.is_slotted else 0
    )


def _unused(group: Group) -> float:
    """The idle cost next to the receiver, where what comes together may hide it.

    Of a few segments for each round trip none comes faster than the others, but long after them.
    """
    back = group.main.back_ms
    batched = back is not None and back[2] >= 0.3 * group.base_ms
    hollow = group.hollow_share
    return max(idle_cost(group), hollow if hollow >= _LEAST_HOLLOW and not batched else 0.0)


def _pauses(group: Group) -> Iterator[Suspect]:
    main = group.main
    if len(group.transfers) == 1 and main.idle_share >= 0.1:
        yield Suspect(
            "application-limited",
            main.idle_share,
            f"In {main.idle_share:.0%} of the time everything that was sent had arrived, and the "
            "sender had nothing more to send.",
            _flows(group),
            advice="The application writes in parts: the path waits for it.",
        )


def _losses(group: Group) -> Iterator[Suspect]:
    """By chance, or because too much was sent: docs/concepts/captures.md."""
    main = group.main
    share = group.loss_share
    bucket = group.bucket
    if share < _LEAST_LOSS or bucket is None:
        return
    cost = idle_cost(group)
    at = [one.loss_at for one in group.transfers]
    every = [
        int(one.seen.frame[index])
        for one, where in zip(group.transfers, at, strict=True)
        for index in where[:_MOST_FRAMES]
    ]
    # Behind a gap of several segments comes one and the same packet.
    frames = tuple(dict.fromkeys(every))[:_MOST_FRAMES]
    chance = max(0.68, 0.5 + 0.85 / np.sqrt(bucket.episodes))
    lost = f"{share:.2%} of the packets were lost in {bucket.episodes} round trips"
    waiting = group.loss_wait
    late = waiting is not None and waiting.is_late
    # What follows from what was sent may still be a host that stands, if nothing arrives meanwhile.
    stalls = bucket.match < (0.9 if group.stillness >= _LEAST_STILLNESS else chance)
    handed = group.is_regular and group.losses_at_silences >= 0.5
    if stalls and waiting and late and waiting.is_many and not handed and 1 - group.busy >= 0.08:
        yield Suspect(
            "stalling-host",
            1 - group.busy,
            f"{lost}, {waiting.lost_each:.1f} at a time, right behind packets that had waited "
            f"longer than {waiting.rank:.0%} of all, and not because more was sent: a host that "
            "forwards stands still for a while, and its ring overflows.",
            _flows(group),
            frames,
            advice="Look at a forwarding host: steal time, interrupts, the length of its ring.",
        )
        return
    # Next to the receiver it is known when a lost packet was sent to a part of a round trip only.
    under_way = None if group.at_sender else group.loss_flight
    overflows = bucket.match < chance and under_way is not None and under_way.is_high
    if bucket.match < chance and not overflows:
        # A queue that is managed loses packets when others have waited long.
        managed = late and waiting is not None and waiting.rank >= _LEAST_RANK
        if bucket.episodes < LEAST_EPISODES or managed:
            return
        # A radio's capacity varies, and so does the level at which its queue is full.
        usual = group.base_ms + 40 if not group.is_slotted else 0.5 * group.base_ms + 25
        full = bucket.match >= 0.6 and group.queue_ms > usual and group.busy >= 0.8
        harmless = share < 0.01 and group.loss_window > _MOST_WINDOW
        # Who has twice what the path holds under way in the median is not held back by losses.
        back = main.back_ms[1] if main.back_ms else 0.0
        if full or harmless or main.wait_ms[1] - back >= group.base_ms:
            return
        # Of what BBR sends, losses take little of the rate, but all of what was lost.
        cost = max(cost, share if share >= 0.03 and group.queue_ms < 0.3 * group.base_ms else 0.0)
        if cost >= _LEAST_COST or (share >= 0.03 and cost >= 0.06 and is_free(main)):
            yield Suspect(
                "random-loss",
                max(cost, _LEAST_COST),
                f"{lost}, whatever was sent before them: as often at a low as at a high level of "
                f"a bucket that fills with what is sent ({bucket.match:.2f}; 0.5 is chance). The "
                f"path was used to {group.busy:.0%}.",
                _flows(group),
                frames,
                advice="Use BBR at the sender, or repair the link; look at the radio's BLER.",
            )
        return
    # A queue of a path's length, or one that is managed, overflows too; it costs next to nothing.
    level = 0.0 if overflows else bucket.level_bytes / max(1.0, group.bdp_bytes)
    shallow = share >= 0.015 and level < 0.8 and group.queue_ms < 0.5 * group.base_ms
    shallow = shallow or (share >= 0.03 and group.is_starved)
    # Where nobody waits until that much has drained, it is no queue, however much it is.
    drains_ms = bucket.level_bytes * 0.008 / bucket.rate_mbps
    back_ms = main.back_ms[2] if main.back_ms else 0.0
    short_wait = group.queue_ms < 0.3 * drains_ms and back_ms < drains_ms
    polices = bucket.match >= _LEAST_MATCH and short_wait
    shallow = shallow or (share >= 0.015 and polices)
    # A managed queue drops so few that they cost nothing; one that holds as much as the path is not
    # short, and where packets wait a round trip in the median twice that is under way.
    long = group.queue_ms > group.base_ms + (40 if group.is_slotted else 0)
    after_waits = waiting is None or waiting.rank >= _LEAST_RANK_OF_A_QUEUE
    deep = level >= _DEEP and after_waits and not shallow and group.queue_ms >= 0.4 * group.base_ms
    waits = main.wait_ms[1] - (main.back_ms[1] if main.back_ms else 0.0) >= group.base_ms
    if long or deep or waits or share < _LEAST_OVERFLOW:
        return
    told = (
        f"when about {_kilobytes(bucket.level_bytes)} more had been sent than "
        f"{short(bucket.rate_mbps)} Mb/s carry (match {bucket.match:.2f}; 0.5 is chance)"
    )
    if overflows and under_way is not None:
        told = (
            f"when more was under way than before {under_way.rank:.0%} of the other packets (by "
            f"chance it is 50 %; this is {under_way.far:.1f} standard deviations away)"
        )
    if cost >= _LEAST_COST or shallow:
        yield Suspect(
            "policer",
            max(cost, min(0.9, 5 * share) if shallow else 0.0),
            f"{lost}, {told}; the path holds {_kilobytes(group.bdp_bytes)}, and packets waited "
            f"{short(group.queue_ms)} ms at most.",
            _flows(group),
            frames,
            advice="Allow a burst of the rate x 2 RTT, or a queue of that length; or use BBR.",
        )


def _reordering(group: Group) -> Iterator[Suspect]:
    late = max(one.overtaken for one in group.transfers)
    if late < 0.01:
        return
    cost = max(idle_cost(group), min(0.9, 5 * late))
    yield Suspect(
        "reordering",
        cost,
        f"{late:.1%} of the segments that were sent once arrived after later ones.",
        _flows(group),
        advice="Look for parallel paths, or for a queue that is shared by several processors.",
    )


def _acknowledgements(group: Group) -> Iterator[Suspect]:
    """What happens to acknowledgements on their way back, by their timestamps."""
    main = group.main
    if main.back_ms is None:
        return
    low, middle, high = main.back_ms
    acks = main.stream["acks"] or {}
    per_batch = acks.get("per_batch") or 1.0
    batch = main.path.batch_ms
    # A radio's uplink access takes 11 to 15 ms in the median anyway.
    usual = group.is_slotted and group.arrivals_apart_ms < 12
    least, most = (18.0, 30.0) if usual else (4.0, 8.0)
    long = middle >= max(least, 0.2 * main.base_ms) and high >= most
    # What waits for the next batch waits any part of the interval, and what waits in a queue never
    # little; and of a queue acknowledgements come one by one.
    if main.at_sender:
        together = per_batch >= 2.5
    else:
        spread = low < 0.18 * high and middle < 0.8 * high
        by_stamps = main.back_together or 1.0
        # Who is in step with the batches sends right after one, and waits a while for the next.
        together = (spread and by_stamps >= _LEAST_TOGETHER) or by_stamps >= _MANY_TOGETHER
    if together and long:
        interval = batch or acks.get("batch_interval_ms") or middle
        if main.at_sender:
            told = (
                f"Acknowledgements come {per_batch:.1f} at a time, every {short(interval)} ms, "
                "and had"
            )
            advice = "A capture at the UE shows whether it sent them together."
        else:
            told = "Acknowledgements that leave here"
            advice = "A capture at the sender shows whether they arrive together, and how often."
        yield Suspect(
            "ack-batching",
            # A queue that overflows then does so because of what comes at once.
            max(min(0.95, 1 - group.busy + 0.05), high / (high + main.base_ms)),
            f"{told} waited {short(middle)} ms in the median and {short(high)} ms in 5 %, by their "
            f"timestamps; the path's shortest round trip is {short(main.base_ms)} ms.",
            _flows(group),
            advice="A UE's timers tell which it is: DRX cycle, period of scheduling requests. "
            + advice,
        )
    elif middle >= max(20.0, 0.3 * main.base_ms) or _only_back(group, per_batch):
        yield Suspect(
            "ack-starvation",
            max(idle_cost(group), middle / (middle + main.base_ms)),
            f"Acknowledgements waited {short(middle)} ms in the median and {short(high)} ms in 5 % "
            f"on their way back, by their timestamps; the path's shortest round trip is "
            f"{short(main.base_ms)} ms.",
            _flows(group),
            advice="Give the way back more capacity, a shorter queue, or let acknowledgements pass "
            "first.",
        )


def _only_back(group: Group, per_batch: float) -> bool:
    """All that waits are acknowledgements, one by one in a standing queue; BBR keeps that short."""
    main = group.main
    if main.back_ms is None or not main.at_sender or per_batch > _ONE_BY_ONE:
        return False
    low, middle, _ = main.back_ms
    stands = low >= 0.5 * middle and middle >= 0.8 * main.wait_ms[1]
    return stands and middle >= max(8.0, 0.25 * main.base_ms)


def _silences(group: Group) -> Iterator[Suspect]:
    """The whole path is silent for a while."""
    long = group.silences
    share = group.silent_share
    episodes = sum(len(one.episodes) for one in group.transfers)
    # Losses in a row end in time-outs, which are silent too.
    if group.loss_share >= 0.02 and not group.is_regular and episodes >= 2 * len(long):
        return
    if not long or share < 0.04:
        return
    longest = max(one.length_ms for one in long)
    # What is lost or sent again around a silence is its work too.
    cost = 1 - group.busy
    least = 0.09 if group.is_regular and share >= 0.08 else _LEAST_COST
    if cost < least or (share < 0.3 * cost and group.losses_at_silences < 0.6):
        return
    lengths = np.array([one.length_ms for one in long])
    at_s = tuple(one.at_ms / 1000 for one in long[:_MOST_FRAMES])
    often = "once" if len(long) == 1 else f"{len(long)} times"
    median = " (the median)" if len(long) > 1 else ""
    told = (
        f"Nothing arrived for {np.median(lengths):.0f} ms{median}, {often}, while data was under "
        "way"
    )
    if group.is_regular:
        yield Suspect(
            "handover",
            cost,
            f"{told}; each time for about as long.",
            _flows(group),
            at_s=at_s,
            advice="Compare the times with the cell's log of handovers.",
        )
    elif len(long) == 1 or (len(long) == 2 and longest >= 500):
        yield Suspect(
            "radio-link-failure",
            cost,
            f"{told}.",
            _flows(group),
            at_s=at_s,
            advice="Compare the times with the UE's log: T310, re-establishment.",
        )
    else:
        yield Suspect(
            "stalling-host",
            cost,
            f"{told}, for different times ({lengths.min():.0f} to {longest:.0f} ms).",
            _flows(group),
            at_s=at_s,
            advice="Look at a forwarding host: steal time, interrupts, power saving.",
        )


def _standing_queue(group: Group) -> Iterator[Suspect]:
    main = group.main
    wait = main.wait_ms[1] - (main.back_ms[1] if main.back_ms else 0.0)
    # Managed queues of a radio hold 25 to 60 ms, and others what the path holds. Before LTE a UE's
    # rate varies most.
    base = group.base_ms
    least = 1.6 * base + 40 if group.is_slotted else 1.15 * base + 20
    if group.is_fine:
        least = 0.75 * base + 40
    # What waits for several round trips waits behind a busy link, whatever that carried before.
    waits_long = wait >= 4 * base + 100
    if not (group.busy >= 0.75 or waits_long) or group.seconds < 3.2 or wait < least:
        return
    # What drops one packet of twenty is no queue that is too long, unless it holds several round
    # trips or drops them when slow start fills it.
    if group.late_loss_share >= _MOST_OF_A_DEEP_QUEUE and not waits_long:
        return
    yield Suspect(
        "bufferbloat",
        wait / (wait + group.base_ms) * 0.6,
        f"Packets wait {short(wait)} ms in the median on a path of {short(group.base_ms)} ms, "
        f"while it is used to {group.busy:.0%}.",
        _flows(group),
        advice="Manage the queue (CoDel), shorten it to what the path holds, or use BBR.",
    )


def _shaped(group: Group) -> Iterator[Suspect]:
    """The first packets came faster than any later ones: a bucket of tokens was full."""
    main = group.main
    first = group.first_mbps / group.capacity_mbps
    over_wire = group.is_smooth and first >= 1.45
    # Over a radio what comes at once says so little that packets must always wait for tokens.
    excess = group.early_excess if group.busy >= 0.82 and not over_wire else None
    if not (over_wire or excess) or group.busy < 0.6 or group.seconds < 3.2:
        return
    # Who is shaped waits for tokens. Nobody waits who sends as much as a window or a policer lets.
    if main.wait_ms[2] < _BITS / group.capacity_mbps:
        if over_wire and group.loss_share >= 0.015:
            yield Suspect(
                "policer",
                min(0.9, 5 * group.loss_share),
                f"The first packets arrived at {short(group.first_mbps)} Mb/s, and later ones "
                f"evenly at {short(group.capacity_mbps)} Mb/s and never faster. Nobody waited, and "
                f"{group.loss_share:.2%} of the packets were lost: what is above the rate is dropped.",
                _flows(group),
                advice="Allow a burst of the rate x 2 RTT, or shape instead of dropping.",
            )
        return
    if group.is_slotted and group.queue_ms < _LEAST_RADIO_WAIT_MS:
        return
    # What a shaper's queue loses has waited before, or all waits, as with BBR; a policer's has not.
    waiting = group.loss_wait
    by_chance = waiting is not None and waiting.rank < _LEAST_RANK_OF_A_QUEUE
    waits_ms = main.wait_ms[1] - (main.back_ms[1] if main.back_ms else 0.0)
    if group.loss_share >= 0.01 and by_chance and waits_ms < _LONG_WAIT_MS:
        return
    held = max(main.window_share, main.limited_share) >= 0.25 or main.ceiling_share >= 0.25
    if held and group.loss_share < _LEAST_LOSS:
        return
    told = (
        f"The first packets arrived at {short(group.first_mbps)} Mb/s, and later ones evenly at "
        f"{short(group.capacity_mbps)} Mb/s and never faster"
    )
    if excess:
        window, early, usual = excess
        told = (
            f"Of the first packets {short(early)} kB arrived in {short(window)} ms, and of later "
            f"ones, at {short(group.capacity_mbps)} Mb/s, {short(usual)} kB, although packets waited"
        )
        first = early / usual
    yield Suspect(
        "shaper",
        min(0.9, 1 - 1 / first),
        f"{told}: a shaper limits the rate, not the link.",
        _flows(group),
        advice="Ask for the rate that the subscription or the slice has (AMBR, MBR).",
    )


def _rivals(group: Group) -> Iterator[Suspect]:
    """Transfers beside each other of which one has much more."""
    beside = [one for one in group.transfers if one.seconds >= 0.7 * group.seconds]
    trip = max(one.typical_rtt_ms for one in beside) if beside else 0.0
    if len(beside) < 2 or group.seconds < max(3, _LEAST_ROUNDS * trip / 1000):
        return
    rates = [one.late_mbps for one in beside]
    if max(rates) < 3 * min(rates):
        return
    # Where the path is full all that is lost is what the other took.
    weight = 0.5 if group.busy >= _FULL else 0.3
    yield Suspect(
        "congestion-control",
        weight * (1 - min(rates) / (sum(rates) / len(rates))),
        f"Transfers side by side have {short(max(rates))} and {short(min(rates))} Mb/s: they do "
        "not share the path.",
        _flows(group),
        advice="Use the same congestion control for both, or a queue for each flow.",
    )


def _beginnings(group: Group) -> Iterator[Suspect]:
    """A transfer that is short against the time that it takes to begin."""
    main = group.main
    if len(group.transfers) > 1:
        return
    early = main.ramp_share
    if group.seconds < 3.2 and main.idle_share < 0.1 and group.is_alone:
        yield Suspect(
            "test-too-short",
            min(0.9, max(_LEAST_COST, 0.6 / group.seconds, early, idle_cost(group))),
            f"The transfer lasted {group.seconds:.2f} s, {group.seconds * 1e3 / main.base_ms:.0f} "
            f"round trips, of which it took {early:.0%} to reach its rate.",
            _flows(group),
            advice="Measure for longer: iperf3 -t 30, and leave out the beginning (-O 5).",
        )
        return
    lossless = main.loss_share < 0.002
    ramp_s = early * group.seconds
    if lossless and ramp_s >= max(1.2, 15e-3 * main.base_ms) and main.exits_early:
        yield Suspect(
            "slow-start-exit",
            max(_LEAST_COST, early * 0.5),
            f"Slow start ended without a loss at {_kilobytes(main.exit_bytes)} in flight (the path "
            f"holds {_kilobytes(group.bdp_bytes)}), and it took {ramp_s:.1f} s to reach the rate.",
            _flows(group),
            advice="Use a kernel with HyStart++ or without HyStart's delay test; see "
            "docs/concepts/slow-start.md.",
        )


def _kilobytes(count: float | None) -> str:
    return "?" if count is None else f"{short(count / 1000)} kB"
