"""What tool outputs show, in sentences; causes are those of docs/reference/causes.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import cast

from airpath.base.text import replies
from airpath.diagnose.capture import Statement
from airpath.readers.flent import FlentDocument, FlentOutput
from airpath.readers.flows import LEAST_BYTES
from airpath.readers.iperf_output import (
    IperfDocument,
    IperfOutput,
    IperfTestDocument,
    IperfTotals,
    has_one_segment,
)
from airpath.readers.nuttcp import NuttcpDocument, NuttcpOutput, NuttcpRunDocument, NuttcpTotals
from airpath.readers.ping import NO_ANSWER, PingDocument, PingOutput, PingRunDocument
from airpath.readers.recognise import Output
from airpath.readers.ss import ConnectionDocument, SsDocument, Unanswered

_MOST_CONNECTIONS = 5
_MOST_RUNS = 10
_MOST_ERRORS = 3
_BUFFERED_SHARE = 0.1
"""A sender's line that is higher than the receiver's by less is as good as that."""
_LIMITED_SHARE = 0.5
"""A limit that held for more of the busy time is named as a cause."""
_LEAST_BUSY_MS = 200
_LEAST_FOR_P99 = 100
"""Replies of which one is beyond the 99th percentile."""
_LEAST_SILENT = 2
"""Requests of a size without a reply: a single one may be lost."""
_MOST_TEXT = 2000
"""Characters of a sentence; names and errors of a damaged file may have any length."""
_LEAST_SNAPSHOTS = 3
_QUEUE_MS = 20.0
_LOSS_SHARE = 0.001
_BLACK_HOLE = "as in an outage or an MTU black hole (ping -M do -s 1472 shows which)"
_LIMITS = {
    "rwnd_limited": (
        "receive-window",
        "the receive window",
        "raise net.ipv4.tcp_rmem at the receiver",
    ),
    "sndbuf_limited": ("send-buffer", "its send buffer", "raise net.ipv4.tcp_wmem at the sender"),
    "cwnd_limited": ("cwnd-limited", "the congestion window", "that is how TCP finds its rate"),
}


Figures = PingDocument | IperfDocument | NuttcpDocument | FlentDocument | SsDocument


def statements(output: Output, figures: Figures | None = None) -> list[Statement]:
    """What is to be said of what a tool printed, the reader's remarks last.

    ``figures``: the output's document, where it was made before.
    """
    sentences = _sentences(output, output.document() if figures is None else figures)
    said = [Statement(name, None, text[:_MOST_TEXT]) for name, text in sentences]
    return said + [
        Statement("remark", None, f"{remark[0].upper()}{remark[1:]}.") for remark in output.remarks
    ]


def _sentences(output: Output, figures: Figures) -> Iterator[tuple[str, str]]:
    match output:
        case PingOutput():
            return _ping(cast("PingDocument", figures))
        case IperfOutput():
            return _iperf(cast("IperfDocument", figures))
        case NuttcpOutput():
            return _nuttcp(cast("NuttcpDocument", figures))
        case FlentOutput():
            return _flent(cast("FlentDocument", figures))
        case _:
            return _ss(cast("SsDocument", figures))


def _ping(document: PingDocument) -> Iterator[tuple[str, str]]:
    runs = document["runs"]
    many = f"{len(runs)} runs: " if len(runs) > 1 else ""
    text = f"{many}{replies(document['lost'], document['sent'])}{_round_trips(document)}."
    yield "ping", f"{text[0].upper()}{text[1:]}"
    if many:
        for number, run in enumerate(runs[:_MOST_RUNS], 1):
            to = f" to {run['address']}" if run["address"] else ""
            text = f"{to}{_at(run['start_time_s'])}: {run['sent']} sent, {run['lost']} lost"
            yield "ping-run", f"Run {number}{text}{_round_trips(run)}."
        yield from _further(len(runs), "run")
    errors = [
        f"{what} ({count})" for what, count in document["errors"].items() if what != NO_ANSWER
    ]
    if errors:
        yield "ping-errors", f"It printed these errors: {'; '.join(errors[:_MOST_ERRORS])}."
    if (found := _mtu(document)) is not None:
        yield found


def _mtu(document: PingDocument) -> tuple[str, str] | None:
    """What errors, or sizes that have replies and sizes that have none, tell of the path's MTU."""
    runs = [run for run in document["runs"] if run["payload_bytes"]]
    if document["mtu_bytes"] is not None:
        payload = next((run["payload_bytes"] for run in runs), None)
        asked = f"; these requests carry {payload} bytes of data" if payload else ""
        return (
            "mtu",
            f"An error names an MTU of {document['mtu_bytes']} bytes on the path{asked}.",
        )
    if large := [run for run in runs if run["too_large"]]:
        size = min(map(_packet_bytes, large))
        return "mtu", f"Packets of {size} bytes exceed an MTU on the path, according to the errors."
    passed = [_packet_bytes(run) for run in runs if run["lost"] < run["sent"]]
    silent = [run for run in runs if run["lost"] == run["sent"]]
    sizes = [_packet_bytes(run) for run in silent]
    if (
        not passed
        or max(passed) >= min(sizes, default=0)
        or len({run["address"] for run in runs}) > 1
    ):
        return None
    if sum(run["sent"] for run in silent) < _LEAST_SILENT:
        return None
    return (
        "mtu-black-hole",
        f"Packets of up to {max(passed)} bytes had replies, but packets of {min(sizes)} bytes "
        "or more had neither a reply nor an error: an MTU black hole. Allow ICMP errors on "
        "the path, or clamp the MSS.",
    )


def _packet_bytes(run: PingRunDocument) -> int:
    """The size of an echo request over IPv4 or IPv6 (RFC 792, RFC 4443)."""
    headers = 48 if ":" in run["address"] else 28
    return (run["payload_bytes"] or 0) + headers


def _round_trips(document: PingDocument | PingRunDocument) -> str:
    rtt = document["rtt_ms"]
    if not rtt:
        return ""
    if "p50" not in rtt:
        middle = f"mean {rtt['mean']:.4g}"
    elif document["sent"] - document["lost"] < _LEAST_FOR_P99:
        middle = f"median {rtt['p50']:.4g}"
    else:
        middle = f"median {rtt['p50']:.4g}, p99 {rtt['p99']:.4g}"
    largest = f", max {rtt['max']:.4g}" if "max" in rtt else ""
    return f"; RTT min {rtt['min']:.4g}, {middle}{largest} ms"


def _iperf(document: IperfDocument) -> Iterator[tuple[str, str]]:
    tests, runs = document["tests"], document["runs"]
    if runs > 1:
        yield "iperf-runs", f"{runs} runs{_rates(tests)}."
    for one in tests[:_MOST_RUNS]:
        yield from _iperf_test(one, _at(one["start_time_s"]) if runs > 1 else "")
    yield from _further(len(tests), "test")


def _iperf_test(document: IperfTestDocument, at: str) -> Iterator[tuple[str, str]]:
    tool = document["tool"]
    if document["error"]:
        yield f"{tool}-error", f"{tool}{at} failed: {document['error']}."
        if not document["bytes"]:
            return
    goodput = document["goodput_mbps"]
    rate = "no rate" if goodput is None else _mbps(goodput)
    direction = "to the client" if document["reverse"] else "to the server"
    text = f"{document['protocol']} {direction}{at}, {_of(document['streams'], 'stream')}: {rate}"
    yield tool, f"{text}{_lost(document)}."
    if document["nothing_arrived"]:
        yield "nothing-arrived", _nothing(document)
    else:
        yield from _written(document)
    yield from _datagrams(document)
    if document["answer_ms"] is not None:
        yield "bounceback", f"An answer took {document['answer_ms']:.4g} ms on average."
    still = document["stood_still"]
    if still is not None and not document["nothing_arrived"]:
        text = f"From {still['start_s']:.4g} s, no data moved for {still['duration_s']:.4g} s"
        if has_one_segment(still):
            text += ", with a congestion window of one segment: retransmissions do not arrive, "
            text += _BLACK_HOLE if still["to_end"] else "as in an outage"
        yield "stood-still", f"{text}."


def _nothing(document: IperfTestDocument) -> str:
    """What it means that no byte was counted where the data goes to."""
    lasted, written = document["duration_s"], document["sent_bytes"]
    time = "" if lasted is None else f" in {lasted:.4g} s"
    if written == 0 and document["retransmissions"] == 0:
        return (
            f"No data moved{time}, and nothing was retransmitted: the sender wrote nothing, "
            "or what it wrote before (-O) still filled its send buffer (-w)."
        )
    return f"No data arrived{time}, although the connection was opened, {_BLACK_HOLE}."


def _written(document: IperfTestDocument) -> Iterator[tuple[str, str]]:
    """A sender of TCP counts what it wrote, which the send buffer may still hold at the end."""
    written, arrived, rate = document["sent_bytes"], document["bytes"], document["sent_mbps"]
    if document["protocol"] != "TCP" or written is None or arrived is None or rate is None:
        return
    left = written - arrived
    if left > _BUFFERED_SHARE * written:
        yield (
            "sender-counts-writes",
            f"The sender's line, {_mbps(rate)}, counts what was written into the socket: "
            f"{left / 1e6:.3g} MB of it had not arrived when the test ended. The receiver's "
            "line is the goodput. A longer test or a smaller send buffer (-w) brings the two "
            "rates together.",
        )


def _further(count: int, what: str) -> Iterator[tuple[str, str]]:
    if count > _MOST_RUNS:
        yield "more-runs", f"{_of(count - _MOST_RUNS, f'further {what}')}: --json has each."


def _at(time_s: float | None) -> str:
    if time_s is None:
        return ""
    return datetime.fromtimestamp(time_s, UTC).strftime(" at %Y-%m-%d %H:%M:%S UTC")


def _mbps(rate: float) -> str:
    """With four digits, also where they are zeros."""
    return f"{rate:#.4g}".rstrip(".") + " Mb/s"


def _nuttcp(document: NuttcpDocument) -> Iterator[tuple[str, str]]:
    runs = document["runs"]
    if len(runs) > 1:
        yield "nuttcp-runs", f"{len(runs)} runs{_rates(runs)}."
    for run in runs[:_MOST_RUNS]:
        yield from _nuttcp_run(run)
    yield from _further(len(runs), "run")


def _rates(tests: Sequence[IperfTotals | NuttcpTotals]) -> str:
    """Of several tests: their rates, and how many failed."""
    rates = sorted(rate for one in tests if (rate := one["goodput_mbps"]) is not None)
    text = ""
    if rates:
        middle = rates[(len(rates) - 1) // 2]
        text = f": {_mbps(rates[0])} to {_mbps(rates[-1])}, {_mbps(middle)} in the median"
    failed = sum(one["error"] is not None for one in tests)
    return text + (f"; {failed} failed" if failed else "")


def _nuttcp_run(document: NuttcpRunDocument) -> Iterator[tuple[str, str]]:
    if document["error"]:
        yield "nuttcp-error", f"nuttcp failed: {document['error']}."
        return
    goodput = document["goodput_mbps"]
    rate = "no rate" if goodput is None else f"{goodput:.4g} Mb/s"
    ways = {True: " to the client", False: " to the server", None: ""}
    text = (
        f"{document['protocol']}{ways[document['reverse']]}, "
        f"{_of(document['streams'], 'stream')}: {rate} in {document['duration_s']:.4g} s"
    )
    yield "nuttcp", f"{text}{_lost(document)}."
    parts, idle = document["interval_mbps"], document["idle_intervals"]
    if parts and parts["count"] > 1:
        yield (
            "rate-varies",
            f"Its {parts['count']} intervals have {parts['min']:.4g} to {parts['max']:.4g} Mb/s, "
            f"{parts['p50']:.4g} Mb/s in the median"
            + (f"; in {_of(idle, 'interval')} nothing arrived." if idle else "."),
        )
    yield from _datagrams(document)


def _datagrams(document: IperfTotals | NuttcpTotals) -> Iterator[tuple[str, str]]:
    """What the share of datagrams that did not arrive means."""
    lost, packets = document["packets_lost"] or 0, document["packets"]
    if not packets or lost / packets < _LOSS_SHARE:
        return
    if lost == packets:
        yield (
            "udp-loss",
            "No datagram arrived: something drops them all, as a firewall does. A test over "
            "TCP shows whether the path itself works.",
        )
        return
    yield (
        "udp-loss",
        f"{lost / packets:.2%} of the datagrams did not arrive: they were lost on the path, "
        "or sent faster than the path carries. A test at a lower rate shows which.",
    )


def _lost(document: IperfTotals | NuttcpTotals) -> str:
    again, lost, packets = (
        document["retransmissions"],
        document["packets_lost"],
        document["packets"],
    )
    text = "" if again is None else f", {_of(again, 'segment')} retransmitted"
    if lost is not None:
        text += f", {_of(lost, 'packet')} lost"
        if packets:
            text += f" of {packets}" + (f" ({100 * lost / packets:.3g}%)" if lost else "")
    return text


def _ss(document: SsDocument) -> Iterator[tuple[str, str]]:
    rows = document["connections"]
    for row in rows[:_MOST_CONNECTIONS]:
        subject = f"{row['local']} to {row['peer']}"
        yield "ss", f"{subject}: {', '.join(_figures(row))}."
        if (silent := row["unanswered"]) is not None:
            yield "unanswered", f"{subject}: {_unanswered(silent)}"
        elif max(row["bytes_acked"] or 0, row["bytes_received"] or 0) >= LEAST_BYTES:
            yield from ((kind, f"{subject}: {text}") for kind, text in _causes(row))
    if len(rows) > _MOST_CONNECTIONS:
        text = f"{_of(len(rows) - _MOST_CONNECTIONS, 'further connection')} with fewer bytes"
        yield "more-connections", f"{text}: --json has each."


def _unanswered(silent: Unanswered) -> str:
    if silent["opening"]:
        sent = silent["segments_out"] or silent["timeouts"]
        return (
            f"it is not open: {_of(sent, 'segment')} that should open it had no answer. The "
            "other end is down, a firewall drops them, or the path is interrupted."
        )
    since = silent["since_ms"]
    last = "" if since is None else f"; the last acknowledgement came {since / 1000:.4g} s before"
    return (
        f"{silent['timeouts']} timeouts in a row: nothing answers its retransmissions{last}. The "
        "path is interrupted, or drops full packets (an MTU black hole)."
    )


def _figures(row: ConnectionDocument) -> Iterator[str]:
    yield _of(row["snapshots"], "snapshot")
    if row["unanswered"] and row["unanswered"]["opening"]:
        return
    if row["congestion"]:
        yield row["congestion"]
    sent, received = row["goodput_mbps"], row["received_mbps"]
    if sent or (sent is not None and not received):
        yield f"{sent:.4g} Mb/s acknowledged between the first and the last"
    elif row["bytes_acked"] is not None and sent is None:
        yield f"{row['bytes_acked']} bytes acknowledged"
    if received:
        yield f"{received:.4g} Mb/s received between the first and the last"
    elif row["bytes_received"] and received is None:
        yield f"{row['bytes_received']} bytes received"
    if row["rcv_rtt_ms"] is not None and (row["bytes_received"] or 0) >= LEAST_BYTES:
        yield f"RTT {row['rcv_rtt_ms']:.4g} ms as the receiver estimates it, in the median"
    rtt = row["rtt_ms"]
    if rtt:
        least = row["minrtt_ms"]
        text = f"smoothed RTT {rtt['p50']:.4g} ms in the median"
        yield text + (f" (minimum RTT {least:.4g} ms)" if least is not None else "")
    if row["cwnd_segments_max"] is not None:
        yield f"cwnd up to {_of(row['cwnd_segments_max'], 'segment')}"
    if row["retransmitted_share"]:
        yield f"{row['retransmitted_share']:.2%} retransmitted"


def _causes(row: ConnectionDocument) -> Iterator[tuple[str, str]]:
    snapshots = row["snapshots"]
    if snapshots >= _LEAST_SNAPSHOTS and row["unread_snapshots"] > snapshots / 2:
        yield (
            "application-limited",
            f"in {row['unread_snapshots']} of {snapshots} snapshots the application here had left "
            f"more unread than it reads in a round trip ({row['unread_bytes']} bytes in the "
            "median): it reads too slowly, and a larger receive buffer only holds more.",
        )
    if (row["bytes_acked"] or 0) < LEAST_BYTES:
        return
    busy_ms = row["busy_ms"] or 0
    for name, share in row["limited_share"].items():
        if share is not None and share > _LIMITED_SHARE and busy_ms >= _LEAST_BUSY_MS:
            cause, what, advice = _LIMITS[name]
            yield (
                cause,
                f"{what} limited the connection for {share:.0%} of the {busy_ms / 1000:.4g} s "
                f"in which it had data to send; {advice}.",
            )
    if snapshots >= _LEAST_SNAPSHOTS and row["app_limited_snapshots"] > snapshots / 2:
        yield (
            "application-limited",
            f"in {row['app_limited_snapshots']} of {snapshots} snapshots the application had "
            "written too little to fill the congestion window.",
        )
    rtt, least = row["rtt_ms"], row["minrtt_ms"]
    if rtt and least and bloated(least, rtt["p50"]):
        yield (
            "bufferbloat",
            f"the median of the smoothed RTT is {rtt['p50'] - least:.4g} ms above the minimum: "
            "packets wait in a queue that is longer than the rate needs, or for a radio.",
        )
    again = row["retransmitted_share"]
    if again and again >= _LOSS_SHARE:
        yield (
            "retransmissions",
            f"{again:.2%} of what it sent was retransmitted ({row['retrans_total']} segments): "
            "packets were lost, or were so late that they seemed lost.",
        )


def _flent(document: FlentDocument) -> Iterator[tuple[str, str]]:
    figures = [
        f"{one['name']} {one['p50']:.4g} {_UNITS.get(one['unit'], one['unit'])} in the median "
        f"({one['min']:.4g} to {one['max']:.4g}, 95th percentile {one['p95']:.4g})"
        for one in document["series"]
        if one["points"] and one["unit"] in _UNITS
    ]
    others = len(document["series"]) - len(figures)
    length = f" of {document['length_s']:.4g} s" if document["length_s"] else ""
    text = f"{document['test'] or 'A test'}{length}: {'; '.join(figures) or 'no rate and no delay'}"
    yield "flent", text + (f"; and {_of(others, 'series', '')} of other units." if others else ".")
    for one in document["delays"]:
        idle, loaded = one["idle_ms"], one["loaded_ms"]
        if idle is None or loaded is None:
            continue
        text = f"{one['name']}: {idle:.4g} ms in the median before the load and {loaded:.4g} ms "
        yield "delay-under-load", f"{text}during it."
        if bloated(idle, loaded):
            yield "bufferbloat", f"{one['name']}: {bloat(idle, loaded)}"


def bloated(idle_ms: float, loaded_ms: float) -> bool:
    """Whether packets wait under load: twice the idle RTT, and 20 ms more."""
    return loaded_ms >= max(2 * idle_ms, idle_ms + _QUEUE_MS)


def bloat(idle_ms: float, loaded_ms: float) -> str:
    """The sentence for it."""
    return (
        f"under load packets wait {loaded_ms - idle_ms:.4g} ms in a queue that is longer than the "
        "rate needs, or for a radio."
    )


_UNITS = {"ms": "ms", "Mbits/s": "Mb/s", "Mbit/s": "Mb/s"}


def _of(count: int, what: str, many: str = "s") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}{many}"
