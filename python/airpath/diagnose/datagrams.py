"""What a capture tells of flows without TCP, in sentences: UDP, QUIC and ICMP."""

from __future__ import annotations

from collections.abc import Iterator

from airpath.base.text import replies
from airpath.diagnose.capture import Statement
from airpath.documents import (
    CaptureReport,
    FlowReport,
    IcmpErrors,
    QuicReport,
    SequenceReport,
    UdpStreamReport,
)
from airpath.readers.flows import End

_MOST_FLOWS = 5
"""Flows of each protocol of which something is said: those with the most packets."""
_LEAST_PACKETS = 100
_LEAST_REPLIES = 5
_MESSAGES = {
    "fragmentation-needed": "a packet was larger than the MTU of a hop",
    "packet-too-big": "a packet was larger than the MTU of a hop",
    "port-unreachable": "nothing listened at a port",
    "destination-unreachable": "a destination could not be reached",
    "time-exceeded": "a packet passed too many hops (traceroute does so on purpose)",
    "parameter-problem": "a header could not be read",
    "redirect": "a router knows a better route",
}
_TOO_LARGE = ("fragmentation-needed", "packet-too-big")
_HEADERS = {
    "iperf3": "the sequence numbers of iperf3",
    "iperf3-64": "the sequence numbers of iperf3",
    "rtp": "the sequence numbers of RTP",
    "number": "the number with which each begins",
}


def statements(report: CaptureReport) -> list[Statement]:
    """What can be said of the flows of a capture that are not TCP, and of ICMP's errors."""
    said = [
        Statement("icmp-errors", flow["id"], f"Flow {flow['id']}: {_errors(errors)}")
        for flow in sorted(report["flows"], key=lambda one: -_packets(one))
        if (errors := flow["icmp_errors"])
    ][:_MOST_FLOWS]
    udp = [one for one in report["flows"] if one["udp"]]
    icmp = [one for one in report["flows"] if one["icmp"]]
    for every, tell in ((udp, _udp), (icmp, _icmp)):
        flows = {one["id"]: one for one in every}
        told: set[int] = set()
        for flow in sorted(flows.values(), key=lambda one: -_packets(one))[:_MOST_FLOWS]:
            if flow["id"] in told:
                continue
            # Of the points that it passed the one where most is known to have been lost.
            same = [flow, *(flows[one] for one in flow["same_as"] if one in flows)]
            told.update(one["id"] for one in same)
            best = max(same, key=_lost)
            said += [Statement(kind, best["id"], text) for kind, text in tell(best)]
    return said


def _lost(flow: FlowReport) -> int:
    if flow["icmp"]:
        return flow["icmp"]["unanswered"]
    return sum(one["lost"] for one in _numbered(_streams(flow)))


def _streams(flow: FlowReport) -> list[tuple[End, UdpStreamReport]]:
    """Return both directions of a UDP flow; empty for other protocols."""
    udp = flow["udp"]
    return [("client", udp["from_client"]), ("server", udp["from_server"])] if udp else []


def _numbered(streams: list[tuple[End, UdpStreamReport]]) -> list[SequenceReport]:
    return [numbers for _, one in streams if (numbers := one["sequence"])]


def figures(flow: FlowReport) -> tuple[str, str, str, str, str]:
    """Cells of the table: Mb/s, round trips of the client's and the server's side, again, late."""
    if flow["icmp"]:
        rtt = flow["icmp"]["rtt_ms"]
        return "", "", f"{rtt['p50']:.2f}" if rtt else "", "", ""
    if not flow["udp"]:
        return "", "", "", "", ""
    udp = flow["udp"]
    main = max((udp["from_client"], udp["from_server"]), key=lambda one: one["payload_bytes"])
    rate = "" if main["rate_mbps"] is None else f"{main['rate_mbps']:.2f}"
    numbered = _numbered(_streams(flow))
    late = str(sum(one["out_of_order"] for one in numbered)) if numbered else ""
    spin = udp["quic"]["spin"] if udp["quic"] else None
    sides = [spin["client_side_ms"], spin["server_side_ms"]] if spin else [None, None]
    client, server = (f"{side['p50']:.2f}" if side else "" for side in sides)
    return rate, client, server, "", late


def _errors(errors: IcmpErrors) -> str:
    """Of errors that quote packets of a flow."""
    kinds = [
        f"{kind} {_times(count)} ({_MESSAGES.get(kind, 'an error')})"
        for kind, count in errors["messages"].items()
    ]
    said = f"{errors['from']} answered its packets with {', '.join(kinds)}"
    if errors["mtu_bytes"]:
        said += f"; the next hop's MTU is {errors['mtu_bytes']} bytes"
    return f"{said}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _gtpu(flow: FlowReport, messages: dict[str, int]) -> Iterator[tuple[str, str]]:
    """GTP-U's messages besides packets (TS 29.281 7)."""
    if count := messages.get("error-indication"):
        yield (
            "gtpu-error-indication",
            f"Flow {flow['id']}: GTP-U's Error Indication was sent {_times(count)}: packets "
            "arrived with a TEID for which there is no tunnel any more (TS 29.281 7.3.1), so the "
            "two ends disagree about the UE's session.",
        )
    asked, answered = messages.get("echo-request", 0), messages.get("echo-response", 0)
    if asked > answered:
        yield (
            "gtpu-echo",
            f"Flow {flow['id']}: {asked - answered} of {asked} Echo Requests of GTP-U had no "
            "response here.",
        )


def _udp(flow: FlowReport) -> Iterator[tuple[str, str]]:
    if flow["udp"] and flow["udp"]["gtpu"]:
        yield from _gtpu(flow, flow["udp"]["gtpu"])
    if flow["udp"] and flow["udp"]["quic"]:
        yield "quic", f"Flow {flow['id']}: {_quic(flow['udp']['quic'])}"
        return
    for sender, stream in _streams(flow):
        subject = f"Flow {flow['id']}, datagrams of the {sender}"
        numbers = stream["sequence"]
        if numbers:
            yield "datagrams", f"{subject}: {_numbers(numbers)}"
        elif stream["packets"] >= _LEAST_PACKETS:
            rate = "" if stream["rate_mbps"] is None else f" at {stream['rate_mbps']:.4g} Mb/s"
            yield (
                "datagrams-without-numbers",
                f"{subject}: {stream['packets']}{rate}; airpath knows no sequence numbers in "
                "their headers, so losses are not visible here.",
            )


def _numbers(numbers: SequenceReport) -> str:
    share = numbers["lost"] / numbers["expected"]
    text = (
        f"{numbers['lost']} of {numbers['expected']} ({share:.2%}) were lost before the capture "
        f"point, by {_HEADERS.get(numbers['header'], 'their sequence numbers')}"
    )
    if numbers["lost"]:
        text += f", at most {numbers['longest_gap']} in a row"
    if numbers["out_of_order"]:
        text += f"; {numbers['out_of_order']} arrived out of order"
    if numbers["duplicates"]:
        text += f"; {numbers['duplicates']} arrived twice"
    if numbers["jitter_ms"] is not None:
        text += f"; jitter {numbers['jitter_ms']:.3g} ms (RFC 3550)"
    return f"{text}."


def _quic(quic: QuicReport) -> str:
    text = f"QUIC, version {', '.join(quic['versions'])}" if quic["versions"] else "QUIC"
    sides = [
        f"{took:.3g} ms {words}"
        for took, words in (
            (quic["client_side_ms"], "to the client"),
            (quic["server_side_ms"], "to the server"),
        )
        if took is not None
    ]
    if sides:
        text += (
            f"; in the handshake the round trip from the capture point was {' and '.join(sides)}"
        )
    spin = quic["spin"]
    if spin["state"] == "spins" and spin["rtt_ms"]:
        rtt = spin["rtt_ms"]
        text += (
            f"; by the spin bit the round trip is at least {rtt['min']:.3g} ms and "
            f"{rtt['p50']:.3g} ms in the median ({rtt['count']} samples, "
            "which include delays at the ends)"
        )
    elif spin["state"] in ("constant", "random"):
        text += "; the spin bit does not spin, so the round trip is not known"
    if quic["packets"].get("retry"):
        text += "; the server required address validation (Retry)"
    return f"{text}."


def _icmp(flow: FlowReport) -> Iterator[tuple[str, str]]:
    icmp = flow["icmp"]
    if not icmp:
        return
    if icmp["requests"]:
        due = icmp["requests"] - icmp["outstanding"] - icmp["refused"]
        text = f"{replies(icmp['unanswered'], due)} here"
        if icmp["outstanding"]:
            text += (
                f", not counting {icmp['outstanding']} sent less than the longest round trip "
                "before the capture ended"
            )
        if icmp["refused"]:
            text += f"; ICMP errors answered {icmp['refused']} more"
        rtt = icmp["rtt_ms"]
        if rtt and rtt["count"] < _LEAST_REPLIES:
            text += (
                "; the round trip between the capture point and the responder was "
                f"{rtt['min']:.4g} ms" + (f" to {rtt['max']:.4g} ms" if rtt["count"] > 1 else "")
            )
        elif rtt:
            text += (
                "; the round trip between the capture point and the responder is at least "
                f"{rtt['min']:.4g} ms, {rtt['p50']:.4g} ms in the median "
                f"and {rtt['p95']:.4g} ms at p95"
            )
        if icmp["duplicates"]:
            text += f"; {icmp['duplicates']} replies were duplicates"
        yield "echo", f"Flow {flow['id']}: {text}."
    elif icmp["unasked"]:
        yield (
            "echo",
            f"Flow {flow['id']}: {icmp['unasked']} echo replies were captured, but none of their "
            "requests: only one direction was captured, so neither losses nor round trips show.",
        )
    for kind, words in _MESSAGES.items():
        if count := icmp["messages"].get(kind):
            mtu = icmp["mtu_bytes"] if kind in _TOO_LARGE else None
            takes = f", which takes {mtu} bytes" if mtu else ""
            yield (
                f"icmp-{kind}",
                f"Flow {flow['id']}: {kind} was sent {_times(count)} between {flow['client']} and "
                f"{flow['server']}: {words}{takes}.",
            )


def _packets(flow: FlowReport) -> int:
    return flow["from_client"]["packets"] + flow["from_server"]["packets"]
