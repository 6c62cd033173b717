"""Why packets are lost: at random, because too much was sent, or because a host stalls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from airpath.base.text import short
from airpath.causes.bucket import Bucket
from airpath.causes.costs import (
    LEAST_COST,
    LEAST_LOSS,
    LEAST_RANK_OF_A_QUEUE,
    MOST_FRAMES,
    flow_numbers,
    idle_cost,
    is_free,
    kilobytes,
)
from airpath.causes.group import GRANT_MS, LEAST_EPISODES, Group, LossWait
from airpath.causes.suspect import Suspect

_LEAST_OVERFLOW = 0.001
_MOST_WINDOW = 2.0
_LEAST_STILLNESS = 0.6
_LEAST_MATCH = 0.9
_LEAST_MATCH_OF_MANY = 0.8
_DEEP = 0.9
_MANY_LOST = 0.06
_HARDLY_USED = 0.6
_MANY_EPISODES = 20
"""With this many, the mean rank of an unrelated wait is below 0.65 (2 deviations)."""
_LEAST_RANK = 0.9
_LEAST_CUT = 1300
_CUT = (
    " If a tunnel on the path fragments large packets, losing one fragment loses the packet: a "
    "smaller MSS would show that."
)


def losses(group: Group) -> Iterator[Suspect]:
    """Random losses, or too much was sent: docs/adr/0056."""
    main = group.main
    share = group.loss_share
    bucket = group.bucket
    if share < LEAST_LOSS or bucket is None:
        return
    cost = idle_cost(group)
    at = [one.loss_at for one in group.transfers]
    every = [
        int(one.seen.frame[index])
        for one, where in zip(group.transfers, at, strict=True)
        for index in where[:MOST_FRAMES]
    ]
    # Behind a gap of several segments comes one and the same packet.
    frames = tuple(dict.fromkeys(every))[:MOST_FRAMES]
    chance = max(0.68, 0.5 + 0.85 / np.sqrt(bucket.episodes))
    lost = f"{share:.2%} of the packets were lost in {bucket.episodes} round trips"
    waiting = group.loss_wait
    late = waiting is not None and waiting.is_late
    # What follows from what was sent may still be a host that stands, if nothing arrives meanwhile.
    stalls = bucket.match < (0.9 if group.stillness >= _LEAST_STILLNESS else chance)
    if stalls and waiting and late and _stands(group, waiting):
        yield Suspect(
            "stalling-host",
            1 - group.busy,
            f"{lost}, {waiting.lost_each:.1f} at a time, right behind packets that had waited "
            f"longer than {waiting.rank:.0%} of all, and not because more was sent: a forwarding "
            "host stalls for a while, and its ring overflows.",
            flow_numbers(group),
            frames,
            advice=(
                "Look at the forwarding hosts: steal time, interrupts, the length of their rings."
            ),
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
        stands = group.queue_ms > usual or group.typical_wait_ms >= 0.5 * group.base_ms
        full = bucket.match >= 0.6 and stands and group.busy >= 0.8
        # If a path is not used although such losses leave room, packets wait for something else.
        unused = group.busy < 0.8 and group.queue_ms < 0.3 * group.base_ms
        harmless = share < 0.01 and group.loss_window > _MOST_WINDOW and not unused
        # Who has twice what the path holds under way in the median is not held back by losses,
        # unless many are lost and it waits for them.
        held = share >= _MANY_LOST and group.busy < _HARDLY_USED
        if full or harmless or (group.typical_wait_ms >= group.base_ms and not held):
            return
        # Of what BBR sends, losses take little of the rate, but all of what was lost.
        cost = max(cost, share if share >= 0.03 and group.queue_ms < 0.3 * group.base_ms else 0.0)
        if cost >= LEAST_COST or (share >= 0.03 and cost >= 0.06 and is_free(main)):
            yield Suspect(
                "random-loss",
                max(cost, LEAST_COST),
                f"{lost}, regardless of what was sent before them: as often at a low as at a high "
                f"level of a bucket that fills with what is sent ({bucket.match:.2f}; 0.5 is "
                f"chance). {group.busy:.0%} of the path's capacity was used.",
                flow_numbers(group),
                frames,
                advice="Use BBR at the sender, or repair the link; look at the radio's BLER."
                + (_CUT if main.seen.size.max() >= _LEAST_CUT else ""),
            )
        return
    # A queue of a path's length, or one that is managed, overflows too; it costs almost nothing.
    level = 0.0 if overflows else bucket.level_bytes / max(1.0, group.bdp_bytes)
    shallow = _is_shallow(group, bucket, waiting, level)
    # A managed queue drops so few that they cost nothing; one that holds as much as the path is not
    # short, and where packets wait a round trip in the median twice that is under way.
    long = group.queue_ms > group.base_ms + (40 if group.is_slotted else 0)
    after_waits = waiting is None or waiting.rank >= LEAST_RANK_OF_A_QUEUE
    deep = level >= _DEEP and after_waits and not shallow and group.queue_ms >= 0.4 * group.base_ms
    waits = group.typical_wait_ms >= group.base_ms
    if long or deep or waits or share < _LEAST_OVERFLOW:
        return
    told = (
        f"when about {kilobytes(bucket.level_bytes)} more had been sent than "
        f"{short(bucket.rate_mbps)} Mb/s can carry (match {bucket.match:.2f}; 0.5 is chance)"
    )
    if overflows and under_way is not None:
        told = (
            f"when more was under way than before {under_way.rank:.0%} of the other packets (by "
            f"chance it is 50 %; this is {under_way.far:.1f} standard deviations away)"
        )
    if cost >= LEAST_COST or shallow:
        yield Suspect(
            "policer",
            max(cost, min(0.9, 5 * share) if shallow else 0.0),
            f"{lost}, {told}; the BDP is {kilobytes(group.bdp_bytes)}, and packets waited "
            f"{short(group.queue_ms)} ms at most.",
            flow_numbers(group),
            frames,
            advice="Allow a burst of the rate x 2 RTT, or a queue of that length; or use BBR.",
        )


def _is_shallow(group: Group, bucket: Bucket, waiting: LossWait | None, level: float) -> bool:
    """What loses packets lets hardly anything wait; ``level`` is over what the path holds."""
    share, main = group.loss_share, group.main
    is_short = level < 0.8 and group.queue_ms < group.short_wait_ms
    # Where nobody waits until that much has drained, it is no queue, however much it is.
    drains_ms = bucket.level_bytes * 0.008 / bucket.rate_mbps
    back_ms = main.back_ms[2] if main.back_ms else 0.0
    short_wait = group.queue_ms < 0.3 * drains_ms and back_ms < drains_ms
    least = _LEAST_MATCH_OF_MANY if share >= 0.03 else _LEAST_MATCH
    polices = bucket.match >= least and short_wait
    # What loses many packets whether they wait or not is no queue either; but in one that is
    # always full all packets wait.
    unmoved = waiting is not None and waiting.rank < LEAST_RANK_OF_A_QUEUE
    hardly = group.typical_wait_ms < 0.4 * group.base_ms + GRANT_MS
    unmoved &= hardly and bucket.episodes >= _MANY_EPISODES
    return (share >= 0.015 and (is_short or polices)) or (
        share >= 0.03 and (group.is_starved or unmoved)
    )


def _stands(group: Group, waiting: LossWait) -> bool:
    """So many are lost at a time as when a host stands still, and no handover tells why."""
    # A radio's block has several packets, which are lost together.
    is_many = waiting.lost_each >= (2.5 if group.is_slotted else 2.0)
    # Of silences that are alike, or long, and take most of what was not used, losses follow.
    unused = 1 - group.busy
    takes = max(group.losses_at_silences, group.silent_share / max(1e-3, unused))
    is_silent = group.is_regular or group.has_long_silence
    return is_many and unused >= 0.08 and not (is_silent and takes >= 0.5)
