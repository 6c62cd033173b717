"""Causes of slow transfers: rules on what a group of TCP transfers shows.

Each rule estimates what its cause would cost. A cause is named only if that cost is significant: a
transfer that fills its path at a short round trip has none. The thresholds were found on drawn
cases with known causes (``make findings-captures`` draws others), and the comments say what they
separate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from airpath.base.text import short
from airpath.causes.capacity import beginnings, rivals, shaped, standing_queue
from airpath.causes.costs import (
    FULL,
    LEAST_COST,
    LEAST_LOSS,
    MOST_FRAMES,
    flow_numbers,
    idle_cost,
    is_free,
    kilobytes,
)
from airpath.causes.group import LEAST_SILENCE_MS, LONG_SILENCE_MS, Group
from airpath.causes.losses import losses
from airpath.causes.suspect import Suspect
from airpath.causes.traits import Gap

_LEAST_TOGETHER = 1.5
_MANY_TOGETHER = 4.0
_ONE_BY_ONE = 1.2
_LEAST_HOLLOW = 0.5
_OFTEN_UNUSED = 0.8
_LEAST_SECONDS = 3.2
_OFTEN_FALLS = 0.1
_LONG_BATCH = 0.5
_FEW_LOST = 0.01
_LOW_TROUGH, _LOW_TROUGH_OF_FEW = 0.45, 0.6
"""Acknowledgements in long batches reach 0.5, a reader that is slow 0.59, other causes 0.6."""
_SEND_BUFFER = "Raise the send buffer: net.ipv4.tcp_wmem, SO_SNDBUF, iperf3 -w."
_USUAL_GRANT_MS = 20.0
_LEAST_OF_WINDOW = 0.4
_NEARLY_ALL = 0.95


def suspects(group: Group) -> Iterator[Suspect]:
    """What limits a group of transfers, in no order."""
    if too_large := list(_too_large(group)):
        # What is lost because of its size is lost for no other reason.
        yield from too_large
        return
    yield from _batches_first(group, [*losses(group), *_acknowledgements(group)])
    for rule in (
        _closed_windows,
        _windows,
        _pauses,
        _reordering,
        _silences,
        standing_queue,
        shaped,
        rivals,
        beginnings,
    ):
        yield from rule(group)


def _batches_first(group: Group, found: list[Suspect]) -> Iterator[Suspect]:
    """What comes at once after long batches overflows what holds it: losses follow from them."""
    long = group.main.back_ms and group.main.back_ms[2] >= _LONG_BATCH * group.base_ms
    lost = max((one.cost for one in found if one.cause == "policer"), default=0.0)
    # Of equal costs the first is ranked first.
    batches = [one for one in found if long and one.cause == "ack-batching" and one.cost < lost]
    yield from (replace(one, cost=lost) for one in batches)
    yield from (one for one in found if one not in batches)


def _too_large(group: Group) -> Iterator[Suspect]:
    """All segments above a size are lost, and all others arrive."""
    main = group.main
    if main.too_large is None:
        return
    smallest, largest = main.too_large
    joined = main.stream["larger_than_mss"] > 0
    how = (
        "which receive offload merged and nothing split afterwards" if joined else "not fragmented"
    )
    yield Suspect(
        "mtu",
        max(idle_cost(group), group.loss_share),
        f"All {len(main.loss_at)} segments of {smallest} bytes or more were lost ({how}), but none "
        f"of {largest} bytes or less: a hop drops packets of that size.",
        flow_numbers(group),
        tuple(int(main.seen.frame[index]) for index in main.loss_at[:MOST_FRAMES]),
        advice="Switch off receive offload where packets are forwarded (ethtool -K DEV gro off lro "
        "off)."
        if joined
        else (
            "Clamp the MSS, or raise the MTU; see whether ICMP's fragmentation-needed is filtered."
        ),
    )


def _closed_windows(group: Group) -> Iterator[Suspect]:
    """Silence after the receiver advertised a window smaller than a segment."""
    share = group.closed_share
    if share >= LEAST_COST:
        yield Suspect(
            "application-limited",
            share,
            f"For {share:.0%} of the time nothing arrived, after the receiver had advertised a "
            "window smaller than one segment: its application does not read.",
            flow_numbers(group),
            advice="Look at what the receiver's application does with the data.",
        )


def _windows(group: Group) -> Iterator[Suspect]:
    """One of the two ends limits the data."""
    main = group.main
    if main.window_bytes is None:
        # Without the scale nobody knows whether the window is full: neither end is blamed.
        return
    flows = flow_numbers(group)
    # Of all bytes: a short transfer's window says little of a long one beside it.
    whole = max(1, sum(one.wire_bytes for one in group.transfers))
    limited = sum(one.window_share * one.wire_bytes for one in group.transfers) / whole
    reported = sum(one.limited_share * one.wire_bytes for one in group.transfers) / whole
    share = max(limited, reported)
    lossless = group.loss_share < (LEAST_LOSS if main.at_sender else 0.002)
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
                f"For {share:.0%} of the time the receive window was full, and it shrank to "
                f"{main.window_steady:.0%} of its largest size in the median: the receiver's "
                "application reads more slowly than the path delivers.",
                flows,
                at,
                advice="Look at what the receiver's application does with the data.",
            )
        elif share >= _LEAST_OF_WINDOW:
            yield Suspect(
                "receive-window",
                share * 0.9,
                f"For {share:.0%} of the time the receive window "
                f"({kilobytes(main.window_bytes)}) had no room for another segment, while "
                f"packets hardly waited on the path ({short(main.wait_ms[1])} ms in the median).",
                flows,
                at,
                advice="Raise the receive buffer: net.ipv4.tcp_rmem, SO_RCVBUF, iperf3 -w.",
            )
        return
    if share < _LEAST_OF_WINDOW:
        yield from _send_buffers(group, share, lossless)


def _send_buffers(group: Group, share: float, lossless: bool) -> Iterator[Suspect]:
    """A limit on the bytes in flight limits the sender.

    ``share``: of the time, in which the receive window had no room.
    """
    main = group.main
    flows = flow_numbers(group)
    # A buffer may hold more than the path has room for at first, or now and then: that what is in
    # flight stays the same and the path is often not used tells that losses are no matter.
    may_lose = main.at_sender and main.is_flat
    later = group.busy < _OFTEN_UNUSED
    later &= group.late_loss_share < (_FEW_LOST if may_lose else 1e-9)
    is_used = main.grows or share >= 0.25 or not (lossless or later)
    empties = is_free(main) or _empties(group)
    # Without a loss every control lets more and more be in flight, if the path is not full.
    stays = main.is_flat and group.busy < 0.9
    held = main.ceiling_share >= 0.25 or (stays and (later or not main.episodes))
    if main.idle_share >= 0.1 or not main.has_backlog:
        return
    if main.at_sender and held and empties and not is_used:
        most = float(np.quantile(main.flight, 0.99))
        yield Suspect(
            "send-buffer",
            max(idle_cost(group), 0.5 * main.ceiling_share),
            f"Never more than {kilobytes(most)} were in flight, and {main.ceiling_share:.0%} of "
            "the segments were sent at that limit, although nothing was lost, packets hardly "
            "waited, and the receive window had room.",
            flows,
            main.ceiling_frames,
            advice=_SEND_BUFFER,
        )
    elif _runs_dry(group):
        yield Suspect(
            "send-buffer",
            _unshown(group),
            f"Within two round trips the bytes in flight fell to {main.trough:.0%} of their "
            "maximum (the median where nothing was lost), although the receive window had room: "
            "the sender waits until its buffer is nearly empty.",
            flows,
            advice=_SEND_BUFFER,
        )
    elif not main.at_sender and empties and not is_used and _idles(group):
        yield Suspect(
            "send-buffer",
            _unused(group),
            f"For {_unused(group):.0%} of the time the path was idle, although nothing was lost, "
            "the receive window had room, and the rate did not grow: the sender did not send more.",
            flows,
            advice=f"Capture at the sender. {_SEND_BUFFER}",
        )


def _unshown(group: Group) -> float:
    """The idle cost; of a path that never shows what it carries, the time without an arrival."""
    shows = group.busy < _NEARLY_ALL
    return idle_cost(group) if shows else max(idle_cost(group), group.hollow_share)


def _runs_dry(group: Group) -> bool:
    """The bytes in flight drop again and again, and not because of losses."""
    main = group.main
    if main.trough is None or group.late_loss_share >= _FEW_LOST:
        return False
    back_ms = main.back_ms[2] if main.back_ms else 0.0
    batched = back_ms >= max(0.5 * main.base_ms, _USUAL_GRANT_MS + 1)
    # Of a buffer of few segments the least is half of the most, and that stays the same.
    few = main.is_flat and is_free(main) and not main.episodes and not batched
    return main.trough < (_LOW_TROUGH_OF_FEW if few else _LOW_TROUGH)


def _empties(group: Group) -> bool:
    """The queue is empty again and again: what waits was sent at once, and the path waits then."""
    if group.main.sends_at_once:
        return group.busy < FULL
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


def _idles(group: Group) -> bool:
    """The path is not used although there was time to fill it."""
    return group.seconds >= _LEAST_SECONDS and _unused(group) >= 0.2


def _pauses(group: Group) -> Iterator[Suspect]:
    main = group.main
    if len(group.transfers) == 1 and main.idle_share >= 0.1:
        yield Suspect(
            "application-limited",
            main.idle_share,
            f"For {main.idle_share:.0%} of the time everything that was sent had arrived, and the "
            "sender had nothing more to send.",
            flow_numbers(group),
            advice="The application writes in parts, and the path waits for it.",
        )


def _reordering(group: Group) -> Iterator[Suspect]:
    late = max(one.overtaken for one in group.transfers)
    if late < 0.01:
        return
    cost = max(idle_cost(group), min(0.9, 5 * late))
    yield Suspect(
        "reordering",
        cost,
        f"{late:.1%} of the segments that were sent only once arrived after later ones.",
        flow_numbers(group),
        advice="Look for parallel paths, or for a queue that several processors share.",
    )


def _acknowledgements(group: Group) -> Iterator[Suspect]:
    """What happens to acknowledgements on their way back, by their timestamps."""
    main = group.main
    if main.back_ms is None:
        return
    low, middle, high = main.back_ms
    acks = main.stream["acks"]
    per_batch = (acks["per_batch"] if acks else 0.0) or 1.0
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
        # Of whom paces it does not show in when data leaves.
        together |= main.back_falls >= _OFTEN_FALLS
    if together and long:
        interval = batch or (acks["batch_interval_ms"] if acks else None) or middle
        if main.at_sender:
            told = (
                f"Acknowledgements arrive {per_batch:.1f} at a time, every {short(interval)} ms, "
                "and had"
            )
            advice = "Capture at the UE to see whether it sent them together."
        else:
            told = "Acknowledgements that leave here"
            advice = "Capture at the sender to see whether they arrive together, and how often."
        yield Suspect(
            "ack-batching",
            # A queue that overflows then does so because of what comes at once.
            max(min(0.95, 1 - group.busy + 0.05), high / (high + main.base_ms)),
            f"{told} waited {short(middle)} ms (median) and {short(high)} ms (p95), by their "
            f"timestamps; the path's shortest round trip is {short(main.base_ms)} ms.",
            flow_numbers(group),
            advice="Compare with the UE's timers: DRX cycle, period of scheduling requests, "
            "retxBSR-Timer. " + advice,
        )
    elif middle >= max(20.0, 0.3 * main.base_ms) or _only_back(group, per_batch):
        yield Suspect(
            "ack-starvation",
            max(idle_cost(group), middle / (middle + main.base_ms)),
            f"Acknowledgements waited {short(middle)} ms (median) and {short(high)} ms (p95) "
            f"on their way back, by their timestamps; the path's shortest round trip is "
            f"{short(main.base_ms)} ms.",
            flow_numbers(group),
            advice="Give the return path more capacity or a shorter queue, or prioritise "
            "acknowledgements.",
        )


def _only_back(group: Group, per_batch: float) -> bool:
    """Only acknowledgements wait, one by one in a standing queue, which BBR keeps short."""
    main = group.main
    if main.back_ms is None or not main.at_sender or per_batch > _ONE_BY_ONE:
        return False
    low, middle, _ = main.back_ms
    stands = low >= 0.5 * middle and middle >= 0.8 * main.wait_ms[1]
    # A radio's uplink access takes so long without any queue.
    least = _USUAL_GRANT_MS if group.is_slotted else 8.0
    return stands and middle >= max(least, 0.25 * main.base_ms)


def _silences(group: Group) -> Iterator[Suspect]:
    """The whole path is silent for a while."""
    long = group.silences
    share = group.silent_share
    episodes = sum(len(one.episodes) for one in group.transfers)
    # Losses in a row end in time-outs, which are silent too.
    loses = group.loss_share >= 0.02
    may_follow = loses and episodes >= 2 * len(long)
    if may_follow and not group.is_regular and not group.has_long_silence:
        return
    if not long or share < 0.04 or not (group.is_regular or _is_the_paths(group)):
        return
    longest = max(one.length_ms for one in long)
    # What is lost or retransmitted around a silence is its work too.
    cost = 1 - group.busy
    is_clear = group.is_regular or group.has_long_silence
    least = 0.09 if is_clear and share >= 0.08 else LEAST_COST
    at_losses = group.losses_at_silences >= (0.5 if group.is_regular else 0.6)
    explains = share >= 0.3 * cost or at_losses or (group.has_long_silence and not loses)
    if cost < least or not explains:
        return
    lengths = np.array([one.length_ms for one in long])
    at_s = tuple(one.at_ms / 1000 for one in long[:MOST_FRAMES])
    if group.is_regular:
        yield Suspect(
            "handover",
            cost,
            f"Nothing arrived for {np.median(lengths):.0f} ms (the median), {len(long)} times, "
            "while data was outstanding; each gap was about as long.",
            flow_numbers(group),
            at_s=at_s,
            advice="Compare the times with the cell's log of handovers.",
        )
    elif len(long) == 1 or (len(long) == 2 and longest >= LONG_SILENCE_MS):
        yield Suspect(
            "radio-link-failure",
            cost,
            f"Nothing arrived for {_and_then(long)}, while data was outstanding.",
            flow_numbers(group),
            at_s=at_s,
            advice="Compare the times with the UE's log: T310, re-establishment.",
        )
    else:
        yield Suspect(
            "stalling-host",
            cost,
            f"Nothing arrived {len(long)} times for {lengths.min():.0f} to {longest:.0f} ms, while "
            "data was outstanding.",
            flow_numbers(group),
            at_s=at_s,
            advice="Look at the forwarding hosts: steal time, interrupts, power saving.",
        )


def _is_the_paths(group: Group) -> bool:
    """At least one silence is known to be the path's; otherwise only the sender may have waited."""
    return any(one.is_open or one.least_ms >= LEAST_SILENCE_MS for one in group.silences)


def _and_then(silences: Sequence[Gap]) -> str:
    """Their lengths as text."""
    return ", and for ".join(
        f"{one.length_ms:.0f} ms{' or longer, at the end' if one.is_open else ''}"
        for one in silences
    )
