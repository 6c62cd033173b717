"""What a capture tells, in sentences: what the observer saw, and what that cannot decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from airpath.base.text import short
from airpath.causes.clock import Step, doubts
from airpath.documents import CaptureReport, FlowReport, LimitsReport, SlowStart, StreamReport
from airpath.readers.flows import (
    ENDS,
    End,
    limited_s,
    stream,
    tcp_flows,
    tcp_of,
    total_bytes,
    volume,
)

_MOST_FLOWS = 5
"""Flows of which something is said: those with the most bytes."""
_LEAST_DATA = 10
"""Packets with data below which rates say nothing."""
_QUEUE_MS = 20.0
_WINDOW_SHARE = 0.1
_LOSS_SHARE = 0.001
_BATCH_MS = 3.0
_LEAST_IN_FLIGHT = 20_000
_LEAST_BURSTS = 50
_PACED = 0.5
_IDLE = 0.3
_LARGE_BURST = 16
"""More than the ten segments of an initial window (RFC 6928), and what one acknowledgement adds."""
_LIMITED_SHARE = 0.1
_DELAYED_ACK_MS = 50.0
"""How long receivers delay acknowledgements: 40 ms (Linux), and a little more."""


class StatementDocument(TypedDict):
    """A statement in JSON."""

    kind: str
    flow: int | None
    text: str


@dataclass(frozen=True)
class Statement:
    """A sentence about a capture. ``kind`` is its stable name, ``flow`` a flow's id or None."""

    kind: str
    flow: int | None
    text: str

    def document(self) -> StatementDocument:
        """For JSON."""
        return {"kind": self.kind, "flow": self.flow, "text": self.text}


def statements(report: CaptureReport, stepped: Sequence[Step] = ()) -> list[Statement]:
    """What can be said of a capture's report: first of the capture itself, then of its flows.

    ``stepped``: where the capture's clock went forward (`airpath.causes.clock`). What would be
    inferred from times that are not known is not said.
    """
    said = [*_of_the_capture(report)]
    said += [Statement("clock", None, text) for text in doubts(report, stepped)]
    told: set[int] = set()
    for flow in sorted(tcp_flows(report), key=lambda flow: -total_bytes(flow))[:_MOST_FLOWS]:
        # The same packets at another point of the path say the same of the ends.
        if not told.intersection(flow["same_as"]):
            said += _of_a_flow(flow)
        told.add(flow["id"])
    is_set = bool(stepped) or report["backward_times"] > 0
    unknown = _OF_TIMES if is_set else _OF_SHORT_TIMES if report["clock_step_s"] else ()
    return [one for one in said if one.kind not in unknown]


_OF_SHORT_TIMES = ("pacing", "bursts", "ack-batches", "slow-start", "round-trip-varies", "stall")
"""Statements on times that a coarse clock does not tell."""
_OF_TIMES = (*_OF_SHORT_TIMES, "limits", "receive-window")
"""And those on times that are wrong where the clock was set."""


def _of_the_capture(report: CaptureReport) -> Iterator[Statement]:
    missed = report["missed"]
    if missed["dropped_packets"]:
        yield Statement(
            "capture-dropped",
            None,
            f"The capture itself dropped {missed['dropped_packets']} packets, by its own "
            "count: losses and retransmissions below may result from this.",
        )
    # A keep-alive repeats one byte that was sent before the capture began (RFC 9293 3.8.4).
    if missed["acks_of_unseen"] and missed["unseen_bytes"] > missed["flows"]:
        yield Statement(
            "capture-incomplete",
            None,
            f"{missed['unseen_bytes']} bytes were acknowledged that the capture does not contain "
            f"({_of(missed['flows'], 'flow')}): packets are missing in the capture, not on the "
            "path, or they took another path.",
        )
    if report["damaged"]:
        yield Statement(
            "capture-damaged", None, f"The file is incomplete or damaged: {report['damaged']}."
        )
    unread = [one for one in report["interfaces"] if one["link"] is None and one["packets"]]
    for one in unread:
        yield Statement(
            "link-type",
            None,
            (
                f"{one['packets']} packets have link type {one['link_type']}, which airpath does "
                "not read."
            ),
        )
    yield from _of_copies(report)
    cut = report["cut_headers"]
    if cut:
        yield Statement(
            "cut-headers",
            None,
            f"The headers of {_of(cut['packets'], 'packet')} were cut off, so their contents are "
            f"not known. {advice_on_length(report)} keeps all headers of such packets.",
        )
    if report["packets"] and not report["flows"] and not unread:
        why = "its headers were cut" if cut else "it has no IP packets, or none that can be read"
        yield Statement("no-flow", None, f"No packet in it belongs to an IP flow: {why}.")
    if report["incomplete_packets"]:
        yield Statement(
            "incomplete-packets",
            None,
            f"Not every fragment of {_of(report['incomplete_packets'], 'fragmented packet')} was "
            "captured. A packet is lost if any of its fragments is; packets that need no "
            "fragmentation may pass.",
        )
    if report["sorted_packets"]:
        yield Statement(
            "sorted",
            None,
            f"{_of(report['sorted_packets'], 'packet')} came later in the file than its time says, "
            "as when several processors or queues write it: packets were sorted by time.",
        )
    if report["others"]["flows"]:
        others = report["others"]
        yield Statement(
            "more-flows",
            None,
            f"{others['flows']} smaller flows with {others['packets']} packets are not listed.",
        )


def _of_copies(report: CaptureReport) -> Iterator[Statement]:
    """Packets that were captured more than once."""
    copies = report["skipped"].get("copy", 0)
    flows = report["flows"]
    kept = sum(volume(flow, end)["packets"] for flow in flows for end, _ in ENDS)
    where = (
        "as happens with tcpdump -i any where packets pass several interfaces, or with a switch "
        "that mirrors packets both when they enter and when they leave"
    )
    if copies:
        share = copies / max(1, kept)
        said = _TIMES.get(round(share) + 1) if abs(share - round(share)) <= _ABOUT else None
        text = (
            f"Each packet was captured {said}, {where}: the {copies} copies are left out."
            if said
            else f"{_of(copies, 'packet')} were captured again at another place, {where}: copies "
            "are left out."
        )
        yield Statement("copies", None, text)
    twice = [] if copies else [flow["id"] for flow in flows if max(flow["times_captured"]) > 1]
    if twice:
        yield Statement(
            "copies-kept",
            None,
            f"Each packet of {_of(len(twice), 'flow')} was captured more than once, {where}. The "
            "copies are counted below, because standard input cannot be read twice: give airpath a "
            "file.",
        )


_TIMES = {2: "twice", 3: "three times", 4: "four times"}
_ABOUT = 0.1


def advice_on_length(report: CaptureReport) -> str:
    """How to capture the headers of all packets: with that many bytes of each."""
    cut = report["cut_headers"]
    return f"tcpdump -s {max(_SNAP_BYTES, cut['snap_bytes'] if cut else 0)}"


_SNAP_BYTES = 128
"""Ethernet with a VLAN, IPv6, and the longest header of TCP are 118 bytes."""


def _of_a_flow(flow: FlowReport) -> Iterator[Statement]:
    if not flow["from_client"]["packets"] or not flow["from_server"]["packets"]:
        yield Statement(
            "one-direction",
            flow["id"],
            f"Flow {flow['id']}: only one direction was captured, so there is no round trip.",
        )
    for kind, text in _of_the_opening(flow):
        yield Statement(kind, flow["id"], f"Flow {flow['id']}: {text}")
    for sender, receiver in ENDS:
        data = stream(flow, sender)
        if data["unanswered_keep_alives"]:
            yield Statement(
                "keep-alives",
                flow["id"],
                f"Flow {flow['id']}: the last {_of(data['unanswered_keep_alives'], 'keep-alive')} "
                f"of the {sender} had no answer: the {receiver}, the path to it, or the state of a "
                "NAT or firewall on it is gone.",
            )
        if data["data_packets"] >= _LEAST_DATA:
            subject = f"Flow {flow['id']}, data of the {sender}"
            is_main = data["data_bytes"] >= stream(flow, receiver)["data_bytes"]
            for kind, text in _of_a_stream(data, flow, receiver, is_main=is_main):
                yield Statement(kind, flow["id"], f"{subject}: {text}")
    stalls = tcp_of(flow)["stalls"]
    if stalls["count"]:
        yield Statement(
            "stall",
            flow["id"],
            f"Flow {flow['id']}: no packet for {stalls['longest_s']:.2f} s from "
            f"{stalls['longest_at_s']:.2f} s, while data was outstanding; "
            f"{_of(stalls['count'], 'such gap')}, {stalls['total_s']:.2f} s in all.",
        )


def _of_the_opening(flow: FlowReport) -> Iterator[tuple[str, str]]:
    """A connection that was refused, or whose opening was not completed."""
    tcp = tcp_of(flow)
    server = tcp["from_server"]
    if not tcp["opening_seen"] or tcp["handshake_ms"] is not None:
        return
    answered = server["options"] is not None
    if tcp["state"] == "reset" and not answered and flow["from_server"]["packets"]:
        yield (
            "refused",
            f"{flow['server']} refused the connection to port {flow['server_port']} (RST): "
            "nothing listens there, or a firewall rejects it. The path carried both packets.",
        )
    elif answered and server["retransmissions"]["handshake"]:
        count = server["retransmissions"]["handshake"] + 1
        yield (
            "syn-ack-repeated",
            f"the SYN arrived here, and the SYN-ACK was sent {count} times, but the client "
            "never acknowledged it: packets from here to the client are lost.",
        )


def _of_a_stream(
    stream: StreamReport, flow: FlowReport, receiver: End, *, is_main: bool
) -> Iterator[tuple[str, str]]:
    if stream["larger_than_mss"]:
        yield (
            "offload",
            f"{stream['larger_than_mss']} packets are larger than the MSS, up to "
            f"{stream['largest_payload_bytes']} bytes: they were captured before segmentation or "
            "after reassembly, so sizes and spacing are not those on the wire.",
        )
    # Without the other direction nobody knows what set a burst off.
    if is_main and volume(flow, receiver)["packets"]:
        yield from _of_sending(stream)
    yield from _of_losses(stream)
    yield from _of_the_window(stream, flow)
    if is_main:
        yield from _of_the_limits(stream["limits"])
    yield from _of_round_trips(stream, receiver)
    yield from _of_acknowledgements(stream)
    yield from _of_slow_start(stream["slow_start"])


def _of_slow_start(slow_start: SlowStart | None) -> Iterator[tuple[str, str]]:
    ended = _ENDED.get(slow_start["ended_by"] or "") if slow_start else None
    if not slow_start or not ended:
        return
    rounds, at = slow_start["rounds_bytes"], slow_start["exit_round"] or 0
    most = max(rounds[: at + 1])
    # A sender with little to send has no slow start that says anything.
    if most < 2 * rounds[0] or most < _LEAST_IN_FLIGHT:
        return
    yield (
        "slow-start",
        f"the bytes in flight grew from {_kilobytes(rounds[0])} to {_kilobytes(most)} in "
        f"{_of(at + 1, 'round trip')} ({slow_start['exit_s']:.2f} s); growth ended "
        f"{ended}.",
    )


_ENDED = {
    "retransmission": "with a retransmission",
    "receive-window": "at the receive window",
    "no-growth": "without a retransmission and below the receive window",
}


def _of_losses(stream: StreamReport) -> Iterator[tuple[str, str]]:
    sent = stream["retransmissions"]
    share = sent["packets"] / stream["data_packets"]
    if share >= _LOSS_SHARE:
        counts = (sent["fast"], sent["tail_loss_probe"], sent["timeout"], sent["unclear"])
        kinds = [f"{n} {kind}" for n, kind in zip(counts, _KINDS, strict=True) if n]
        packets = _of(sent["packets"], "packet")
        text = f"{packets} retransmitted ({share:.2%} of those with data): {', '.join(kinds)}"
        if sent["spurious"]:
            text += f"; spurious: {sent['spurious']}"
        if sent["original_unseen"]:
            text += f"; lost before the capture point: {sent['original_unseen']}"
        yield "retransmissions", text + "."
    if stream["out_of_order_packets"]:
        yield (
            "out-of-order",
            f"{_of(stream['out_of_order_packets'], 'packet')} arrived out of order, up to "
            f"{short(stream['out_of_order_ms'] or 0.0)} ms.",
        )


_KINDS = (
    "after duplicate or selective acknowledgements",
    "as tail-loss probes",
    "after time-outs",
    "for no visible reason",
)


def _of_the_window(stream: StreamReport, flow: FlowReport) -> Iterator[tuple[str, str]]:
    window = stream["window"]
    if not window:
        return
    limited = window["limited_s"] or 0.0
    if flow["duration_s"] and limited / flow["duration_s"] >= _WINDOW_SHARE:
        yield (
            "receive-window",
            f"for {limited:.2f} s of {flow['duration_s']:.2f} s the receive window (at most "
            f"{_kilobytes(window['max_bytes'])}) had no room for another segment: the receiver "
            "limits the rate.",
        )
    if window["zero_windows"]:
        yield (
            "zero-window",
            f"the receiver closed its window {_of(window['zero_windows'], 'time')}: its "
            "application did not read.",
        )


def _of_sending(stream: StreamReport) -> Iterator[tuple[str, str]]:
    sending = stream["sending"]
    # Next to the receiver packets have been spread, or joined, on their way.
    if not sending or sending["bursts"] < _LEAST_BURSTS or sending["unprompted"] is None:
        return
    size, largest, alone = sending["per_burst"], sending["largest_burst"], sending["unprompted"]
    limits = stream["limits"]
    if limits and limits["nothing_to_send_s"] >= _IDLE * limited_s(limits):
        # What is written now and then leaves when it is written.
        return
    if alone >= _PACED:
        yield (
            "pacing",
            f"{alone:.0%} of the bursts ({short(size)} segments on average) left although no "
            "acknowledgement had just arrived: the sender paces, or its application writes that "
            "way.",
        )
    elif largest >= _LARGE_BURST:
        yield (
            "bursts",
            f"segments come in bursts of {short(size)} on average and {largest} at most, less than "
            "0.1 ms apart: the sender does not pace.",
        )


def _of_the_limits(limits: LimitsReport | None) -> Iterator[tuple[str, str]]:
    """Where something else than the path or the congestion window held the sender back."""
    total = limited_s(limits) if limits else 0.0
    if not limits or total <= 0:
        return
    held = (limits["receive_window_s"], limits["nothing_to_send_s"], limits["recovery_s"])
    shares = [one / total for one in held]
    if max(shares) < _LIMITED_SHARE:
        return
    parts = [f"{share:.0%} {what}" for share, what in zip(shares, _LIMITS, strict=True)
             if share >= 0.005]  # fmt: skip
    yield (
        "limits",
        f"of {total:.2f} s the sender spent {', '.join(parts)}; for the rest the path or its "
        "congestion window limited it.",
    )


_LIMITS = (
    "without room in the receive window",
    "with nothing to send",
    "recovering losses",
)


def _of_round_trips(stream: StreamReport, receiver: str) -> Iterator[tuple[str, str]]:
    rtt = stream["rtt_ms"]
    if rtt and rtt["count"] >= _LEAST_DATA and rtt["p95"] - rtt["min"] >= _QUEUE_MS:
        delayed = ", or the receiver delays acknowledgements"
        small = rtt["p95"] - rtt["min"] <= _DELAYED_ACK_MS
        yield (
            "round-trip-varies",
            f"the round trip between the capture point and the {receiver} is "
            f"at least {short(rtt['min'])} ms, {short(rtt['p50'])} ms in the median and "
            f"{short(rtt['p95'])} ms at p95: packets or acknowledgements wait there, in a queue or "
            f"for a radio"
            f"{delayed if small else ''}.",
        )


def _of_acknowledgements(stream: StreamReport) -> Iterator[tuple[str, str]]:
    acks = stream["acks"]
    interval = acks["batch_interval_ms"] if acks else None
    if (
        not acks
        or not interval
        or interval < _BATCH_MS
        or acks["per_batch"] < 2
        or acks["batches"] < 10
    ):
        return
    sending = stream["sending"]
    if sending and sending["unprompted"] is None:
        yield (
            "ack-batches",
            f"acknowledgements leave {acks['per_batch']:.1f} at a time, every {short(interval)} ms "
            "(median): data arrived in batches, or the receiver waits for more.",
        )
    else:
        yield (
            "ack-batches",
            f"acknowledgements arrive {acks['per_batch']:.1f} at a time, every {short(interval)} "
            "ms (median): uplink access of a radio, DRX, or ACK batching, which cannot be told "
            "apart here.",
        )


def _of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _kilobytes(count: float | None) -> str:
    return "unknown" if count is None else f"{short(count / 1000)} kB"
