"""What a capture shows of a cause, in words: the figures that an engineer would look at.

Nothing is decided here. Which cause is likely, the model says (`airpath.causes.model`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from airpath.base.text import short
from airpath.causes.features import Features
from airpath.causes.group import Group
from airpath.causes.suspect import alike
from airpath.causes.traits import Transfer
from airpath.fitting.series import MS

_FRAMES = 5
"""Bound: packets, or times, that are named as examples."""
_FULL_SEGMENT = 1300
"""Bytes above which a packet may be fragmented in a tunnel: 1500 (IEEE 802.3) less two headers."""
_LITTLE_IDLE = 0.05
"""Of the time: pauses that explain nothing."""
MOST_OF_THE_TIME = 0.5
"""More of the time than not."""
_KILO = 1000
"""Bytes in a kilobyte."""


ADVICE: dict[str, str] = {
    "ack-starvation": (
        "Give the return path more capacity or a shorter queue, or prioritise acknowledgements."
    ),
    "application-limited": "The application writes in parts, and the path waits for it.",
    "bufferbloat": "Use AQM (CoDel), shorten the queue to the BDP, or use BBR.",
    "congestion-control": (
        "Use the same congestion control algorithm for all flows, or give each flow its own queue."
    ),
    "cross-traffic": "Measure without the datagrams, or give each flow a queue of its own.",
    "drx": (
        "Compare with the UE's timers: DRX cycle, period of scheduling requests, retxBSR-Timer; "
        "and with batching of network cards and modems on the way."
    ),
    "fragmentation": "Clamp the MSS, or raise the MTU of the transport network.",
    "handover": "Compare the times with the cell's log of handovers.",
    "mtu": (
        "Clamp the MSS, or raise the MTU; check whether a firewall drops ICMP fragmentation-needed "
        "messages. If a VPN's headers need the room, set the MTU of its device to the path's MTU "
        "minus 80 bytes (ip link set mtu 1420 dev wg0)."
    ),
    "offload": (
        "Switch off receive offload where packets are forwarded (ethtool -K DEV gro off lro off), "
        "and transmit checksums of the tunnel's device (ethtool -K DEV tx-checksum-ip-generic "
        "off)."
    ),
    "pdcp-gap": "Shorten t-Reordering, or use RLC AM; check the data forwarding of handovers.",
    "policer": "Allow a burst of the rate x 2 RTT, or a queue of that length; or use BBR.",
    "radio-link-failure": "Compare the times with the UE's log: T310, re-establishment.",
    "random-loss": "Use BBR at the sender, or repair the link; check the BLER of the radio.",
    "receive-window": (
        "Raise the receive buffer (net.ipv4.tcp_rmem, SO_RCVBUF) and, so that it is not the next "
        "limit, the sender's (net.ipv4.tcp_wmem, SO_SNDBUF); iperf3 -w sets both."
    ),
    "reordering": "Look for parallel paths, or for a queue that several processors share.",
    "rrc-promotion": (
        "Keep the UE connected (a longer inactivity timer, RRC_INACTIVE), or leave out the "
        "beginning of the test."
    ),
    "send-buffer": (
        "Raise the send buffer (net.ipv4.tcp_wmem, SO_SNDBUF) and, so that it is not the next "
        "limit, the receiver's (net.ipv4.tcp_rmem, SO_RCVBUF); iperf3 -w sets both."
    ),
    "shaper": "Check the rate of the subscription or the slice (AMBR, MBR).",
    "slow-start-exit": (
        "Use a kernel with HyStart++ or without HyStart's delay test; see "
        "docs/concepts/slow-start.md."
    ),
    "stalling-host": ("Check the forwarding hosts: steal time, interrupts, ring sizes."),
    "test-too-short": (
        "Run a longer test (iperf3 -t 30) and leave out its beginning (-O 5). If the "
        "transfer is a file, slow start takes this long: reuse a connection, or shorten the "
        "round trip."
    ),
}
"""What to do, by cause; for causes that look alike the first of them."""


@dataclass(frozen=True)
class Words:
    """``frames`` are numbers of packets in the file, from 1; ``at_s`` seconds after its first."""

    evidence: str
    frames: tuple[int, ...] = ()
    at_s: tuple[float, ...] = ()
    advice: str = ""


def describe(cause: str, group: Group, features: Features) -> Words:
    """Describe what a group of transfers shows of a cause."""
    words = _DESCRIBED[cause](group, features)
    return replace(words, advice=words.advice or ADVICE[alike(cause)[0]])


def kilobytes(count: float | None) -> str:
    """As text."""
    return "?" if count is None else f"{short(count / _KILO)} kB"


def _lost(group: Group) -> str:
    episodes = sum(len(one.episodes) for one in group.transfers)
    return f"{group.loss_share:.2%} of the packets were lost, in {episodes} round trips"


def _lost_frames(group: Group) -> tuple[int, ...]:
    every = [
        int(one.seen.frame[index]) for one in group.transfers for index in one.loss_at[:_FRAMES]
    ]
    # Behind a gap of several segments comes one and the same packet.
    return tuple(dict.fromkeys(every))[:_FRAMES]


def _waited(group: Group) -> str:
    middle = max(0.0, group.typical_wait_ms)
    return (
        f"packets waited {short(middle)} ms (median) and {short(max(middle, group.queue_ms))} "
        f"ms (p95), with a base RTT of {short(group.base_ms)} ms"
    )


def _used(group: Group) -> str:
    return f"{group.busy:.0%} of the highest rate seen was used"


def _random_loss(group: Group, _: Features) -> Words:
    rank = group.loss_wait
    told = ""
    if rank is not None:
        told = (
            f", just after packets that had waited longer than {rank:.0%} of the others (50 % "
            "would be chance)"
        )
    cut = (
        " If a tunnel on the path fragments large packets, losing one fragment loses the packet: "
        "a smaller MSS would show that."
    )
    advice = ADVICE["random-loss"] + (cut if group.main.seen.size.max() >= _FULL_SEGMENT else "")
    return Words(f"{_lost(group)}{told}; {_used(group)}.", _lost_frames(group), advice=advice)


def _fragmentation(group: Group, _: Features) -> Words:
    largest = int(group.main.seen.size.max())
    told = f"{_lost(group)}; the largest packet has {largest} bytes; {_used(group)}."
    return Words(told, _lost_frames(group))


def _policer(group: Group, _: Features) -> Words:
    bucket = group.bucket
    told = ""
    if bucket is not None:
        told = (
            f", when about {kilobytes(bucket.level_bytes)} more had been sent than "
            f"{short(bucket.rate_mbps)} Mb/s can carry; the BDP is {kilobytes(group.bdp_bytes)}"
        )
    return Words(f"{_lost(group)}{told}. On this path, {_waited(group)}.", _lost_frames(group))


def _shaper(group: Group, _: Features) -> Words:
    early = group.early_excess
    first = f"The first packets arrived at {short(group.main.first_mbps)} Mb/s"
    if early is not None:
        window, before, usual = early
        first = (
            f"Of the first packets, {short(before)} kB arrived in {short(window)} ms, and of later "
            f"ones {short(usual)} kB"
        )
    return Words(
        f"{first}; later ones at {short(group.capacity_mbps)} Mb/s, and {_waited(group)}: a "
        "shaper, not the link, limits the rate."
    )


def _bufferbloat(group: Group, _: Features) -> Words:
    told = _waited(group)
    return Words(f"{told[0].upper()}{told[1:]}, while {group.busy:.0%} of its capacity is used.")


def _reordering(group: Group, _: Features) -> Words:
    late = max(one.overtaken for one in group.transfers)
    return Words(f"{late:.1%} of the segments that were sent only once arrived out of order.")


def _too_large(group: Group) -> str:
    sizes = group.main.too_large
    if sizes is None:
        return _lost(group)
    return (
        f"All {len(group.main.loss_at)} segments of {sizes[0]} bytes or more were lost, but none "
        f"of {sizes[1]} bytes or less"
    )


def _mtu(group: Group, _: Features) -> Words:
    largest = ", the largest ones first" if group.main.too_large is None else ""
    told = f"{_too_large(group)}{largest}: a hop, or a VPN, drops packets of that size."
    return Words(told, _lost_frames(group))


def _offload(group: Group, _: Features) -> Words:
    joined = group.main.stream["larger_than_mss"]
    how = ", and receive offload had merged segments" if joined else ""
    return Words(
        f"{_too_large(group)}{how}: a device's offload breaks packets, or joins segments that "
        "nothing splits again.",
        _lost_frames(group),
    )


def _receive_window(group: Group, found: Features) -> Words:
    main = group.main
    if main.window_bytes is None:
        return _send_buffer(group, found)
    share = max(main.window_share, main.limited_share)
    return Words(
        f"For {share:.0%} of the time the receive window ({kilobytes(main.window_bytes)}) had no "
        f"room for another segment, while {_waited(group)}.",
        main.limited_frames,
    )


def _send_buffer(group: Group, _: Features) -> Words:
    main = group.main
    room = (
        "the capture lacks the window scale, so it is unknown whether the receive window had room"
        if main.window_bytes is None
        else "the receive window had room"
    )
    if not main.at_sender:
        return Words(
            f"Of the highest rate seen {group.busy:.0%} was used, {_lost(group)}, and {room}: the "
            "sender did not send more.",
            advice=f"{ADVICE['send-buffer']} A capture at the sender would show the bytes in "
            "flight.",
        )
    return Words(
        f"Never more than {kilobytes(main.ceiling_bytes)} were in flight, and "
        f"{main.ceiling_share:.0%} of the segments were sent at that limit; {_waited(group)}, and "
        f"{room}.",
        main.ceiling_frames,
    )


def closed_share(group: Group) -> float:
    """Of the time: nothing came, or there was nothing to send, behind a closed window."""
    main = group.main
    last = float(main.seen.ack[-1]) if len(main.seen.ack) else group.end_ms
    every = max(group.span_ms, last - group.begin_ms)
    return min(1.0, (group.closed_share * group.span_ms + main.shut_ms) / every)


def _own_pace(main: Transfer) -> str:
    sending = main.stream["sending"]
    alone = (sending["unprompted"] if sending else None) or 0.0
    return (
        f"{alone:.0%} of the bursts left although no acknowledgement had just arrived, nothing "
        "waited in a queue, and nothing was lost: the sender's application sets the rate, or a "
        "congestion control that paces"
    )


def held_back(group: Group) -> str:
    """Why transfers that had no backlog say nothing of the path."""
    main = group.main
    if main.is_self_paced:
        return (
            f"{_own_pace(main)}. The path did not limit the transfers, and the capture does "
            "not show how much it can carry."
        )
    return (
        "For most of the time the application had nothing to send: the path did not limit "
        "the transfers, and the capture does not show how much it can carry."
    )


def _application(group: Group, _: Features) -> Words:
    main = group.main
    closed = closed_share(group)
    share = max(main.window_share, main.limited_share)
    reader = "Find out why the receiver's application does not read."
    is_most = closed > main.idle_share - closed and closed > main.limited_share
    if closed >= MOST_OF_THE_TIME or is_most:
        return Words(
            f"For {closed:.0%} of the time nothing arrived, after the receiver had advertised a "
            "window smaller than one segment: its application does not read.",
            advice=reader,
        )
    if main.is_self_paced:
        return Words(f"{_own_pace(main)}.")
    if main.idle_share >= share and main.idle_share < _LITTLE_IDLE:
        return Words(
            f"What arrived used {group.busy:.0%} of the highest rate seen, {_lost(group)}, "
            "and the receive window had room: data arrives in parts, as if the application "
            "wrote it in parts."
        )
    if main.idle_share >= share:
        return Words(
            f"For {main.idle_share:.0%} of the time everything that was sent had arrived, and the "
            "sender had nothing more to send."
        )
    return Words(
        f"For {share:.0%} of the time the receive window was full, and its median was "
        f"{main.window_steady:.0%} of its maximum: the receiver's application reads more "
        "slowly than the path delivers.",
        main.limited_frames,
        advice=reader,
    )


def _cross_traffic(_: Group, features: Features) -> Words:
    share = features["datagram_share"]
    return Words(f"Concurrent datagrams are {share:.0%} of the bytes in the same direction.")


def _congestion_control(group: Group, _: Features) -> Words:
    rates = [one.late_mbps for one in group.transfers]
    return Words(
        f"Concurrent transfers get {short(max(rates))} and {short(min(rates))} Mb/s: they do not "
        "share the path fairly."
    )


def _slow_start_exit(group: Group, _: Features) -> Words:
    main = group.main
    ramp_s = main.ramp_share * main.seconds
    ended = "" if main.exit_bytes is None else f" ended at {kilobytes(main.exit_bytes)} in flight"
    return Words(
        f"Slow start{ended or ' ended early'} (the BDP is {kilobytes(group.bdp_bytes)}), and "
        f"it took {ramp_s:.1f} s to reach the full rate."
    )


def lasted(group: Group) -> str:
    """How long a group's transfers lasted, without a full stop."""
    rounds = group.span_ms / group.base_ms
    return f"The transfer lasted {group.seconds:.2f} s, {rounds:.0f} round trips"


def _too_short(group: Group, _: Features) -> Words:
    if group.rounds_grown < 2:
        return Words(
            f"{lasted(group)}, and needed {group.main.ramp_share:.0%} of that time to reach "
            "its rate."
        )
    return Words(
        f"{lasted(group)}, and ended while its rate still grew: from a mean of "
        f"{short(group.rate_mbps)} Mb/s to {short(group.end_mbps)} Mb/s in the last two round "
        "trips."
    )


_SILENT = {
    "handover": "No packets passed during a handover.",
    "pdcp-gap": "Packets behind a missing PDCP PDU were held back until t-Reordering expired.",
    "radio-link-failure": "The radio link was lost and re-established.",
    "stalling-host": "A forwarding host stalled.",
}


def _silences(cause: str, group: Group, _: Features) -> Words:
    gaps = group.long_gaps
    if not gaps:
        told = f"{_lost(group)}, and {_waited(group)}. {_SILENT[cause]}"
        return Words(told, _lost_frames(group))
    longest = sorted(gaps, key=lambda one: -one.length_ms)[:_FRAMES]
    lengths = [one.length_ms for one in longest]
    span = f"{lengths[-1]:.0f} to {lengths[0]:.0f}" if len(longest) > 1 else f"{lengths[0]:.0f}"
    times = "once" if len(gaps) == 1 else f"{len(gaps)} times"
    after = " or longer, at the end" if any(one.is_open for one in longest) else ""
    return Words(
        f"Arrivals stopped {times}, for {span} ms{after}, while data was outstanding. "
        f"{_SILENT[cause]}",
        at_s=tuple(sorted(one.at_ms / MS for one in longest)),
    )


def _promotion(group: Group, features: Features) -> Words:
    hands = features["handshake_rounds"]
    first = features["first_wait_rounds"]
    what, rounds = ("handshake", hands - 1) if hands - 1 > first else ("first segment", first)
    return Words(
        f"The {what} took {short(max(0.0, rounds * group.base_ms))} ms longer than the shortest "
        f"round trip ({short(group.base_ms)} ms): the UE had to connect first."
    )


def _way_back(group: Group) -> str:
    back = group.main.back_ms
    if back is None:
        return ""
    return (
        f", and had waited {short(back[1])} ms (median) and {short(back[2])} ms (p95), by their "
        "timestamps"
    )


def _batches(group: Group, _: Features) -> Words:
    main = group.main
    acks = main.stream["acks"]
    if main.at_sender and acks:
        interval = main.path.batch_ms or acks["batch_interval_ms"]
        every = f", every {short(interval)} ms" if interval else ""
        told = f"Acknowledgements arrived {acks['per_batch']:.1f} at a time{every}"
        where = "Capture at the UE to see whether it sent them together."
    else:
        told = "Acknowledgements left here"
        where = "Capture at the sender to see whether they arrive together, and how often."
    return Words(
        f"{told}{_way_back(group)}; the path's shortest round trip is {short(group.base_ms)} ms.",
        advice=f"{ADVICE['drx']} {where}",
    )


def _starved(group: Group, _: Features) -> Words:
    return Words(
        f"Acknowledgements came back one by one{_way_back(group)}; the path's shortest round trip "
        f"is {short(group.base_ms)} ms."
    )


_DESCRIBED: dict[str, Callable[[Group, Features], Words]] = {
    "ack-starvation": _starved,
    "application-limited": _application,
    "bufferbloat": _bufferbloat,
    "congestion-control": _congestion_control,
    "cross-traffic": _cross_traffic,
    "drx": _batches,
    "fragmentation": _fragmentation,
    "mtu": _mtu,
    "offload": _offload,
    "policer": _policer,
    "random-loss": _random_loss,
    "receive-window": _receive_window,
    "reordering": _reordering,
    "rrc-promotion": _promotion,
    "send-buffer": _send_buffer,
    "shaper": _shaper,
    "slow-start-exit": _slow_start_exit,
    "test-too-short": _too_short,
    "vpn": _mtu,
} | {cause: partial(_silences, cause) for cause in _SILENT}
