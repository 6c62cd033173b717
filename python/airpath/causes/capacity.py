"""What limits the rate of transfers: queues, shapers, other transfers, and how they start."""

from __future__ import annotations

from collections.abc import Iterator

from airpath.base.text import short
from airpath.causes.costs import (
    FULL,
    LEAST_COST,
    LEAST_LOSS,
    LEAST_RANK_OF_A_QUEUE,
    flow_numbers,
    idle_cost,
    kilobytes,
)
from airpath.causes.group import Group
from airpath.causes.suspect import Suspect

_BITS = 12.0
"""Of a packet, in thousands."""
_MOST_OF_A_DEEP_QUEUE = 0.05
_LEAST_RADIO_WAIT_MS = 10.0
"""Grants and slots take less of the difference between most packets and those that wait longest."""
_LONG_WAIT_MS = 25.0
_FASTER = 1.25
"""Over a wire the first packets come at most 1.04 times as fast as any later ones."""
_LEAST_ROUNDS = 80
"""Until transfers with the same congestion control share a path."""


def standing_queue(group: Group) -> Iterator[Suspect]:
    """Packets wait longer than they would in a queue of one BDP."""
    wait = group.typical_wait_ms
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
        f"while {group.busy:.0%} of its capacity is used.",
        flow_numbers(group),
        advice="Manage the queue (CoDel), shorten it to the BDP, or use BBR.",
    )


def shaped(group: Group) -> Iterator[Suspect]:
    """The first packets came faster than any later ones: a bucket of tokens was full."""
    main = group.main
    first = group.first_mbps / group.capacity_mbps
    over_wire = group.is_smooth and first >= _FASTER
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
                f"evenly at {short(group.capacity_mbps)} Mb/s and never faster. No packet waited, "
                f"and {group.loss_share:.2%} of the packets were lost: what exceeds the rate is "
                "dropped.",
                flow_numbers(group),
                advice="Allow a burst of the rate x 2 RTT, or shape instead of dropping.",
            )
        return
    if group.is_slotted and group.queue_ms < _LEAST_RADIO_WAIT_MS:
        return
    # What a shaper's queue loses has waited before, or all waits, as with BBR; a policer's has not.
    waiting = group.loss_wait
    by_chance = waiting is not None and waiting.rank < LEAST_RANK_OF_A_QUEUE
    if group.loss_share >= 0.01 and by_chance and group.typical_wait_ms < _LONG_WAIT_MS:
        return
    held = max(main.window_share, main.limited_share) >= 0.25 or main.ceiling_share >= 0.25
    if held and group.loss_share < LEAST_LOSS:
        return
    told = (
        f"The first packets arrived at {short(group.first_mbps)} Mb/s, and later ones evenly at "
        f"{short(group.capacity_mbps)} Mb/s and never faster"
    )
    if excess:
        window, early, usual = excess
        told = (
            f"Of the first packets, {short(early)} kB arrived in {short(window)} ms, and of later "
            f"ones {short(usual)} kB, at {short(group.capacity_mbps)} Mb/s, although packets waited"
        )
        first = early / usual
    yield Suspect(
        "shaper",
        min(0.9, 1 - 1 / first),
        f"{told}: a shaper, not the link, limits the rate.",
        flow_numbers(group),
        advice="Check the rate of the subscription or the slice (AMBR, MBR).",
    )


def rivals(group: Group) -> Iterator[Suspect]:
    """Concurrent transfers of which one gets much more."""
    beside = [one for one in group.transfers if one.seconds >= 0.7 * group.seconds]
    trip = max(one.typical_rtt_ms for one in beside) if beside else 0.0
    # A sender with nothing to send does not compete.
    beside = [one for one in beside if one.has_backlog]
    if len(beside) < 2 or group.seconds < max(3, _LEAST_ROUNDS * trip / 1000):
        return
    rates = [one.late_mbps for one in beside]
    if max(rates) < 3 * min(rates) or max(rates) <= 0:
        return
    # Where the path is full all that is lost is what the other took.
    weight = 0.5 if group.busy >= FULL else 0.3
    yield Suspect(
        "congestion-control",
        weight * (1 - min(rates) / (sum(rates) / len(rates))),
        f"Concurrent transfers get {short(max(rates))} and {short(min(rates))} Mb/s: they do "
        "not share the path fairly.",
        flow_numbers(group),
        advice="Use the same congestion control for both, or give each flow its own queue.",
    )


def beginnings(group: Group) -> Iterator[Suspect]:
    """A transfer that is short compared with its ramp-up."""
    main = group.main
    if len(group.transfers) > 1:
        return
    early = main.ramp_share
    if group.seconds < 3.2 and main.idle_share < 0.1 and group.is_alone:
        yield Suspect(
            "test-too-short",
            min(0.9, max(LEAST_COST, 0.6 / group.seconds, early, idle_cost(group))),
            f"The transfer lasted {group.seconds:.2f} s, {group.seconds * 1e3 / main.base_ms:.0f} "
            f"round trips, and needed {early:.0%} of them to reach its rate.",
            flow_numbers(group),
            advice="Run a longer test (iperf3 -t 30) and leave out its beginning (-O 5).",
        )
        return
    ramp_s = early * group.seconds
    # A queue that overflows when the rate is reached is another matter.
    lost = main.sent_ms[main.loss_at] < main.begin_ms + 1000 * ramp_s
    lossless = lost.sum() < 0.002 * len(main.seen.sent)
    if lossless and ramp_s >= max(1.2, 15e-3 * main.base_ms) and main.exits_early:
        yield Suspect(
            "slow-start-exit",
            max(LEAST_COST, early * 0.5),
            f"Slow start ended without a loss at {kilobytes(main.exit_bytes)} in flight (the BDP "
            f"is {kilobytes(group.bdp_bytes)}), and it took {ramp_s:.1f} s to reach the rate.",
            flow_numbers(group),
            advice="Use a kernel with HyStart++ or without HyStart's delay test; see "
            "docs/concepts/slow-start.md.",
        )
