"""What iperf3 printed: JSON (-J) and text, of versions 3.0 to 3.18; also cut short or failed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from airpath.errors import InputError
from airpath.readers.lines import stripped

_MOST = 1e18
_LAST_TIME_S = 1e11
_LATE_S = 2.0
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_RATES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_ROW = re.compile(
    r"^\[ *(?P<id>\d{1,9}|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])? +"
    r"(?P<start>\d{1,9}\.\d+)-(?P<end>\d{1,9}\.\d+) +sec +"
    r"(?P<bytes>\d{1,15}(?:\.\d+)?) (?P<unit>[KMGT]?)Bytes +"
    r"(?P<rate>\d{1,15}(?:\.\d+)?) (?P<scale>[KMGT]?)bits/sec(?P<rest>.*)$"
)
_UDP = re.compile(
    r"^ +(?P<jitter>\d{1,15}(?:\.\d+)?) ms +(?P<lost>-?\d{1,18})/(?P<packets>-?\d{1,18}) "
    r"\((?:[\d.e+-]+|-?nan|inf)%\)"
)
_TCP = re.compile(
    r"^ +(?P<retr>\d{1,18})(?: +(?P<cwnd>\d{1,15}(?:\.\d+)?) (?P<unit>[KMGT]?)Bytes)?"
)
_CONNECTED = re.compile(
    r"^\[ *(?P<id>\d{1,9})\] local (?P<local>\S+) port (?P<port>\d{1,5}) "
    r"connected (?:to|with) (?P<remote>\S+) port (?P<to>\d{1,5})"
)


@dataclass(frozen=True)
class Connection:
    """The two ends of a stream, as iperf3's own side names them."""

    stream: int
    local: str
    local_port: int
    remote: str
    remote_port: int


@dataclass(frozen=True)
class Interval:
    """What a stream moved in a while. None: not printed.

    ``omitted``: before the test counted (-O). ``sender``: whether the side that reports sent it;
    None where the text does not say.
    """

    stream: int
    start_s: float
    end_s: float
    bytes: int
    rate_bps: float
    omitted: bool = False
    sender: bool | None = None
    retransmissions: int | None = None
    cwnd_bytes: int | None = None
    rtt_us: int | None = None
    jitter_ms: float | None = None
    lost: int | None = None
    packets: int | None = None


@dataclass
class Iperf3Output:
    """What one run of iperf3 printed.

    ``streams`` are the intervals of single streams, in order. ``sent`` and ``received`` are the
    totals over streams as the ends report them; one of them is None if it was not printed or was
    printed as nothing, and ``remarks`` says so. ``error`` is iperf3's own word. ``start_time_s`` is
    in seconds since 1970 (JSON: whole ones), None where it was not printed.
    """

    version: str = ""
    protocol: str = "TCP"
    reverse: bool = False
    omit_s: float = 0.0
    start_time_s: float | None = None
    connections: list[Connection] = field(default_factory=list)
    streams: list[Interval] = field(default_factory=list)
    sent: Interval | None = None
    received: Interval | None = None
    error: str | None = None
    complete: bool = False
    remarks: list[str] = field(default_factory=list)

    def counted(self) -> list[Interval]:
        """The intervals that count: those that are not omitted."""
        return [one for one in self.streams if not one.omitted]

    def document(self) -> dict[str, Any]:
        """The totals, for a summary: rates in Mb/s, times in seconds.

        What was received, where that was printed; else what was sent.
        """
        total = self.received or self.sent
        counted = self.counted()
        retransmissions = self.sent.retransmissions if self.sent else None
        if total is None and counted:
            lasted = max(one.end_s for one in counted) - min(one.start_s for one in counted)
            moved = sum(one.bytes for one in counted)
            rate = 8 * moved / lasted if lasted > 0 else 0.0
            total = Interval(-1, 0.0, lasted, moved, rate)
            known = [one.retransmissions for one in counted if one.retransmissions is not None]
            retransmissions = sum(known) if known else None
        return {
            "protocol": self.protocol,
            "reverse": self.reverse,
            "streams": len({one.stream for one in self.streams}) or len(self.connections),
            "goodput_mbps": total.rate_bps / 1e6 if total else None,
            "bytes": total.bytes if total else None,
            "duration_s": total.end_s - total.start_s if total else None,
            "retransmissions": retransmissions,
            "packets": total.packets if total else None,
            "packets_lost": total.lost if total else None,
            "jitter_ms": total.jitter_ms if total else None,
            "error": self.error,
            "complete": self.complete,
            "remarks": self.remarks,
        }


def read(text: str, name: str = "iperf3") -> Iperf3Output:
    """Read what iperf3 printed; InputError if this is not what iperf3 prints, or says nothing."""
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith("{"):
        return _read_json(body, name)
    return _read_text(text, name)


def _read_json(body: str, name: str) -> Iperf3Output:
    try:
        document, end = json.JSONDecoder().raw_decode(body)
    except json.JSONDecodeError as broken:
        raise InputError(
            f"{name}: line {broken.lineno}: the JSON of iperf3 is cut short or broken: {broken.msg}"
        ) from None
    except (RecursionError, ValueError):
        raise InputError(
            f"{name}: this JSON is nested too deeply, or a number is too long"
        ) from None
    if "start" not in document and "error" not in document:
        raise InputError(
            f'{name}: this JSON is none of iperf3 (no "start", no "error"), flent or jc'
        )
    output = Iperf3Output()
    if body[end:].strip():
        output.remarks.append("there is more after the first JSON document, which was not read")
    try:
        _start(output, document.get("start") or {})
        for interval in document.get("intervals") or []:
            output.streams += [_interval(one) for one in interval.get("streams") or []]
        _totals(output, document.get("end") or {})
    except (AttributeError, OverflowError, TypeError, ValueError) as odd:
        raise InputError(f"{name}: this JSON is not built as iperf3's is: {odd}") from None
    error = document.get("error")
    output.error = None if error is None else str(error)
    total = output.received or output.sent
    output.complete = error is None and total is not None
    if error is None and not output.streams and total is None:
        output.remarks.append("iperf3 reports no interval, no total and no error")
    elif error is None and total is None:
        output.remarks.append("iperf3's totals are missing: the test was cut short")
    return output


def _start(output: Iperf3Output, start: dict[str, Any]) -> None:
    output.version = str(start.get("version") or "")
    time_s = _number((start.get("timestamp") or {}).get("timesecs"))
    output.start_time_s = time_s if time_s is not None and 0 < time_s < _LAST_TIME_S else None
    test = start.get("test_start") or {}
    output.protocol = str(test.get("protocol") or "TCP")
    output.reverse = bool(test.get("reverse"))
    output.omit_s = _number(test.get("omit")) or 0.0
    if test.get("bidir"):
        output.remarks.append("--bidir: the totals are those of the first direction")
    output.connections = [
        Connection(
            int(one.get("socket", -1)),
            str(one.get("local_host")),
            int(one.get("local_port") or 0),
            str(one.get("remote_host")),
            int(one.get("remote_port") or 0),
        )
        for one in start.get("connected") or []
    ]


def _interval(one: dict[str, Any]) -> Interval:
    return Interval(
        int(one.get("socket", -1)),
        _number(one.get("start")) or 0.0,
        _number(one.get("end")) or 0.0,
        round(_number(one.get("bytes")) or 0),
        _number(one.get("bits_per_second")) or 0.0,
        bool(one.get("omitted")),
        one.get("sender") if isinstance(one.get("sender"), bool) else None,
        _count(one.get("retransmits")),
        _count(one.get("snd_cwnd")),
        _count(one.get("rtt")),
        _number(one.get("jitter_ms")),
        _count(one.get("lost_packets")),
        _count(one.get("packets")),
    )


def _number(value: object) -> float | None:
    """A finite number, or None where nothing was written; ValueError for anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        raise ValueError(f"{value!r:.40} is not a number")
    return float(value)


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None else round(number)


def _totals(output: Iperf3Output, end: dict[str, Any]) -> None:
    names = [("sent", "sum_sent"), ("received", "sum_received")]
    if output.protocol == "UDP" and "sum_received" not in end and "sum" in end:
        # Up to 3.10 there is one sum: bytes as sent, losses as received.
        names = [("sent", "sum")]
    for attribute, key in names:
        if not isinstance(end.get(key), dict):
            continue
        total = _interval(end[key])
        if total.bytes or total.packets:
            setattr(output, attribute, total)
        elif output.streams:
            output.remarks.append(f"{key} is 0, although intervals are not: it was not exchanged")
    if output.protocol == "UDP" and output.received is None and output.sent is not None:
        output.received = _udp_received(output.sent)
        output.remarks.append("what arrived by UDP is what was sent less what was lost")


def _udp_received(sent: Interval) -> Interval | None:
    if not sent.packets or sent.lost is None:
        return None
    share = 1 - sent.lost / sent.packets
    moved, rate = round(sent.bytes * share), sent.rate_bps * share
    return Interval(
        sent.stream, sent.start_s, sent.end_s, moved, rate,
        jitter_ms=sent.jitter_ms, lost=sent.lost, packets=sent.packets,
    )  # fmt: skip


def _read_text(text: str, name: str) -> Iperf3Output:
    output, known = Iperf3Output(), False
    totals: dict[str, list[Interval]] = {"sender": [], "receiver": []}
    timed: list[tuple[float, re.Match[str]]] = []
    for line in stripped(text):
        if not line.text:
            continue
        known |= _head(output, line.text)
        if found := _ROW.match(line.text):
            known = True
            if line.time_s is not None:
                timed.append((line.time_s, found))
            said = found["rest"].rsplit(maxsplit=1)
            end = said[-1] if said else ""
            if end in totals:
                totals[end].append(_row(output, found))
            elif found["id"] != "SUM":
                output.streams.append(_row(output, found))
    if not known:
        raise InputError(f"{name}: nothing here is what iperf3 prints")
    output.start_time_s = _started(timed)
    for end, attribute in (("sender", "sent"), ("receiver", "received")):
        # The sum of all streams comes last.
        if totals[end]:
            setattr(output, attribute, totals[end][-1])
    output.complete = output.error is None and (output.received or output.sent) is not None
    if not output.complete and output.error is None:
        output.remarks.append("iperf3's totals are missing: the test was cut short")
    return output


def _started(timed: list[tuple[float, re.Match[str]]]) -> float | None:
    """When the test began, from the times before the lines of intervals.

    None if these all have about one time: a buffer kept them until the end.
    """
    began = [at - float(found["end"]) for at, found in timed if "(omitted)" not in found["rest"]]
    if not began or max(began) - min(began) > _LATE_S:
        return None
    omitted = [at - float(found["end"]) for at, found in timed if "(omitted)" in found["rest"]]
    return omitted[0] if omitted else began[0]


def _head(output: Iperf3Output, text: str) -> bool:
    """Whether the line says what test this is."""
    text = text.strip()
    if found := _CONNECTED.match(text):
        output.connections.append(
            Connection(
                int(found["id"]),
                found["local"],
                int(found["port"]),
                found["remote"],
                int(found["to"]),
            )
        )
    elif text.startswith("iperf3: "):
        output.error = text.removeprefix("iperf3: ").removeprefix("error - ")
    elif text.startswith("Reverse mode"):
        output.reverse = True
    elif re.match(r"^iperf 3\.", text):
        output.version = text
    elif "Lost/Total Datagrams" in text:
        output.protocol = "UDP"
    elif found := re.search(r"omitting (\d{1,9}) seconds", text):
        output.omit_s = float(found[1])
    else:
        return text.startswith("Connecting to host ") or text == "iperf Done."
    return True


def _row(output: Iperf3Output, found: re.Match[str]) -> Interval:
    rest = found["rest"]
    values: dict[str, Any] = {}
    if udp := _UDP.match(rest):
        output.protocol = "UDP"
        values = {
            "jitter_ms": float(udp["jitter"]),
            "lost": int(udp["lost"]),
            "packets": int(udp["packets"]),
        }
    elif tcp := _TCP.match(rest):
        values["retransmissions"] = int(tcp["retr"])
        if tcp["cwnd"]:
            values["cwnd_bytes"] = round(float(tcp["cwnd"]) * _UNITS[tcp["unit"]])
    role = found["role"]
    return Interval(
        -1 if found["id"] == "SUM" else int(found["id"]),
        float(found["start"]),
        float(found["end"]),
        round(float(found["bytes"]) * _UNITS[found["unit"]]),
        float(found["rate"]) * _RATES[found["scale"]],
        "(omitted)" in rest,
        None if role is None else role == "TX",
        **values,
    )
