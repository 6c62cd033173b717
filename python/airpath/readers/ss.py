"""What ``ss -ti`` printed of TCP sockets: one snapshot or many, also one line a socket (-O)."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field
from typing import Literal, Required, TypeAlias, TypedDict, cast

from airpath.errors import InputError
from airpath.readers.clocks import Clock
from airpath.readers.lines import numbered

_MOST_CHARACTERS = 8000
"""ss fills lines with spaces up to the width of the terminal."""
_MOST_SAMPLES = 1_000_000
_MOST_LINES = 20
_LEAST_TIMEOUTS = 2
"""One happens on any path that loses; a second one means that the retransmission was lost too."""
_OPENING = ("SYN-SENT", "SYN-RECV")
STATES = (
    "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "UNCONN",
    "CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING",
)  # fmt: skip
_SOCKET = re.compile(
    rf"(?:^|[\s\]>])(?:(?P<netid>[a-z]\w*) +)?(?P<state>{'|'.join(STATES)}) +"
    r"(?P<received>\d{1,10}) +(?P<unsent>\d{1,10}) +(?P<local>\S+) +(?P<peer>\S+)"
    r"(?P<rest>(?: .*)?)$"
)
_HEAD = re.compile(r"(?:^|[\s\]>])(?:Netid +)?State +Recv-Q +Send-Q +Local Address:Port")
_INFO = re.compile(r"\b(?:cwnd|rto|wscale):\d")
_FIGURE = re.compile(r"\b[a-z_]{2,20}:[\d(]|\d[KMGT]?bps\b|\bapp_limited\b")
# From the beginning of a word only: a long one would be tried from each of its characters.
_GROUP = re.compile(r"(?<!\w)(\w+):\(((?:[^()]|\([^()]*\))*)\)")
_PART = re.compile(r"(?<![a-z])([a-z]+)(\d{1,18})")
_RATE = re.compile(
    r"\b(send|pacing_rate|delivery_rate) (\d{1,18}(?:[.,]\d+)?)([KMGT]?)bps"
    r"(?:/(\d{1,18}(?:[.,]\d+)?)([KMGT]?)bps)?"
)
_PAIR = re.compile(r"([a-z][\w-]*):(\S+)")
_SCALES = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}
_LIMITED = re.compile(r"^(\d{1,15})ms(?:\((\d{1,3}(?:[.,]\d+)?)%\))?$")
_FLAGS = ("ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited")
_COUNTS = {
    "cwnd": "cwnd_segments", "ssthresh": "ssthresh_segments", "mss": "mss_bytes",
    "pmtu": "pmtu_bytes", "advmss": "advmss_bytes", "rcvmss": "rcvmss_bytes",
    "rto": "rto_ms", "ato": "ato_ms", "backoff": "backoff", "minrtt": "minrtt_ms",
    "rcv_rtt": "rcv_rtt_ms", "lastsnd": "lastsnd_ms", "lastrcv": "lastrcv_ms",
    "lastack": "lastack_ms", "lost": "lost_segments", "sacked": "sacked_segments",
    "fackets": "fackets_segments", "unacked": "unacked_segments",
    "reordering": "reordering_segments",
    "reord_seen": "reordering_seen", "dsack_dups": "dsack_duplicates", "rehash": "rehashes",
    "bytes_sent": "bytes_sent", "bytes_acked": "bytes_acked", "bytes_retrans": "bytes_retrans",
    "bytes_received": "bytes_received", "segs_out": "segments_out", "segs_in": "segments_in",
    "data_segs_out": "data_segments_out", "data_segs_in": "data_segments_in",
    "delivered": "delivered_segments", "delivered_ce": "delivered_ce_segments",
    "notsent": "notsent_bytes", "rcv_space": "rcv_space_bytes",
    "rcv_ssthresh": "rcv_ssthresh_bytes",
    "snd_wnd": "snd_wnd_bytes", "rcv_wnd": "rcv_wnd_bytes",
    "rcv_ooopack": "rcv_out_of_order_packets",
    "rto_min": "rto_min_ms", "total_rto": "timeouts", "total_rto_recoveries": "timeout_recoveries",
    "total_rto_time": "timeout_total_ms", "rcv_wup": "rcv_wup_bytes",
}  # fmt: skip
"""ss's names of single numbers, and the names with units that they have here."""
_TIMES = ("busy", "rwnd_limited", "sndbuf_limited", "cwnd_limited")
_MEMORY = {
    "r": "receive_used", "rb": "receive_buffer", "t": "send_used", "tb": "send_buffer",
    "f": "reserved", "w": "send_queued", "o": "options", "bl": "backlog", "d": "drops",
}  # fmt: skip
_OTHERS = ("ino", "sk", "cgroup", "uid", "users", "timer", "bbr", "dctcp", "vegas", "fwmark", "dev",
           "tos", "tclass", "class_id", "ulp", "tcp-ulp-mptcp", "tcp-ulp-tls")  # fmt: skip
"""Of the socket, its owner and single congestion controls."""


Counter: TypeAlias = Literal["bytes_acked", "bytes_received", "segments_out"]
Figure: TypeAlias = Counter | Literal[
    "minrtt_ms", "rcv_rtt_ms", "rcv_space_bytes", "rcv_ssthresh_bytes", "rtt_ms"
]  # fmt: skip
_COUNTERS: tuple[Counter, ...] = ("bytes_acked", "bytes_received", "segments_out")


class Sample(TypedDict, total=False):
    """A socket at one time: the figures that airpath evaluates, and all others that ss printed.

    ``time_s`` is in seconds since 1970, or None. ``elapsed_s`` is equal to it, or has an arbitrary
    origin if the date or the time zone is missing.
    """

    time_s: Required[float | None]
    elapsed_s: Required[float | None]
    state: Required[str]
    app_limited: Required[bool]
    busy_ms: int
    bytes_acked: int
    bytes_received: int
    bytes_retrans: int
    bytes_sent: int
    cwnd_segments: int
    cwnd_limited_ms: int
    minrtt_ms: float
    mss_bytes: int
    rcv_out_of_order_packets: int
    rcv_rtt_ms: float
    rcv_space_bytes: int
    rcv_ssthresh_bytes: int
    retrans_total: int
    rtt_ms: float
    rwnd_limited_ms: int
    segments_out: int
    sndbuf_limited_ms: int


class SmoothedRtt(TypedDict):
    """The smoothed RTT over the samples, in milliseconds."""

    first: float
    min: float
    p50: float
    max: float


class Unanswered(TypedDict):
    """Timeouts in a row at the last sample: nothing answers what is sent.

    ``since_ms``: since the last acknowledgement; None if there was none. ``opening``: whether the
    connection is not open yet.
    """

    timeouts: int
    segments_out: int | None
    since_ms: float | None
    opening: bool


class ConnectionDocument(TypedDict):
    """A connection's last counters, the course of its RTT and windows, and its samples.

    ``unread_snapshots`` are those in which the receive queue has at least what its application
    reads in a round trip (``rcv_space``); ``unread_bytes`` is the median of such queues.
    """

    local: str
    peer: str
    congestion: str | None
    snapshots: int
    bytes_acked: float | None
    bytes_received: int | None
    goodput_mbps: float | None
    received_mbps: float | None
    rcv_rtt_ms: float | None
    rcv_space_bytes_max: float | None
    rcv_ssthresh_bytes_max: float | None
    rcv_out_of_order_packets: int | None
    rtt_ms: SmoothedRtt | None
    minrtt_ms: float | None
    cwnd_segments_max: int | None
    retrans_total: int
    retransmitted_share: float | None
    busy_ms: int | None
    limited_share: dict[str, float | None]
    app_limited_snapshots: int
    unread_snapshots: int
    unread_bytes: int | None
    unanswered: Unanswered | None
    samples: list[Sample]


class SsDocument(TypedDict):
    """All connections, the one with the most bytes first."""

    connections: list[ConnectionDocument]
    remarks: list[str]


@dataclass
class Connection:
    """A TCP connection: its ends and its samples, in order."""

    local: str
    peer: str
    congestion: str | None = None
    samples: list[Sample] = field(default_factory=list)

    def document(self) -> ConnectionDocument:
        """Its last counters, what round trips and windows were, and the samples."""
        last = self.samples[-1]
        rtts = _known(self.samples, "rtt_ms")
        sent, acked = last.get("bytes_sent"), _known(self.samples, "bytes_acked")
        again = last.get("bytes_retrans", 0) / sent if sent else None
        if sent is None and last.get("segments_out"):
            again = last.get("retrans_total", 0) / last["segments_out"]
        busy = last.get("busy_ms")
        unread = [
            queue
            for one in self.samples
            if (queue := int(_other(one, "recv_q_bytes") or 0))
            >= max(1, one.get("rcv_space_bytes", queue))
        ]
        return {
            "local": self.local,
            "peer": self.peer,
            "congestion": self.congestion,
            "snapshots": len(self.samples),
            "bytes_acked": acked[-1] if acked else None,
            "bytes_received": last.get("bytes_received"),
            "goodput_mbps": self._rate("bytes_acked"),
            "received_mbps": self._rate("bytes_received"),
            "rcv_rtt_ms": _median(_known(self.samples, "rcv_rtt_ms")),
            "rcv_space_bytes_max": max(_known(self.samples, "rcv_space_bytes"), default=None),
            "rcv_ssthresh_bytes_max": max(_known(self.samples, "rcv_ssthresh_bytes"), default=None),
            "rcv_out_of_order_packets": last.get("rcv_out_of_order_packets"),
            "rtt_ms": {
                "first": rtts[0], "min": min(rtts), "p50": statistics.median_low(rtts),
                "max": max(rtts),
            } if rtts else None,
            "minrtt_ms": min(_known(self.samples, "minrtt_ms"), default=None),
            "cwnd_segments_max": max(
                (one["cwnd_segments"] for one in self.samples if "cwnd_segments" in one),
                default=None,
            ),
            "retrans_total": last.get("retrans_total", 0),
            "retransmitted_share": again,
            "busy_ms": busy,
            "limited_share": {
                name: limited / busy if busy else None
                for name, limited in (
                    ("rwnd_limited", last.get("rwnd_limited_ms")),
                    ("sndbuf_limited", last.get("sndbuf_limited_ms")),
                    ("cwnd_limited", last.get("cwnd_limited_ms")),
                )
                if limited is not None
            },
            "app_limited_snapshots": sum(one["app_limited"] for one in self.samples),
            "unread_snapshots": len(unread),
            "unread_bytes": statistics.median_low(unread) if unread else None,
            "unanswered": _unanswered(last),
            "samples": self.samples,
        }  # fmt: skip

    def _rate(self, counter: Counter) -> float | None:
        """By how much a counter of bytes rose between the first and the last time, in Mb/s."""
        timed = [
            (one["elapsed_s"], one[counter])
            for one in self.samples
            if one["elapsed_s"] is not None and counter in one
        ]
        if len(timed) < 2:
            return None
        (began, first), (ended, last) = timed[0], timed[-1]
        return 8e-6 * (last - first) / (ended - began) if ended > began else None


@dataclass
class SsOutput:
    """What ss printed. ``unknown``: names of fields that are not understood."""

    connections: list[Connection] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def document(self) -> SsDocument:
        """Return all connections, the one with the most bytes first."""
        rows = [one.document() for one in self.connections]
        rows.sort(key=lambda row: -max(row["bytes_acked"] or 0, row["bytes_received"] or 0))
        return {"connections": rows, "remarks": self.remarks}


def read(text: str, name: str = "ss") -> SsOutput:
    """Read what ``ss -ti`` printed; InputError if it has no figures of TCP."""
    output, clock = SsOutput(), Clock()
    sockets: dict[tuple[str, str], Connection] = {}
    began, current, samples = False, None, 0
    for number, line in numbered(text, _MOST_CHARACTERS):
        if not line:
            continue
        if found := _SOCKET.search(line):
            samples += _add(output, sockets, current)
            clock.read(line[: found.start()])
            began = True
            of_tcp = found["netid"] in (None, "tcp", "mptcp") and found["state"] != "LISTEN"
            current = _Socket(found, clock.now, clock.elapsed) if of_tcp else None
            rest = found["rest"]
        elif _HEAD.search(line):
            samples += _add(output, sockets, current)
            clock.read(line[: line.find("State ")])
            began, current = True, None
            continue
        else:
            # The figures of the last socket, or a time.
            rest, _ = clock.strip(line)
        # A terminal or a mail may have wrapped them.
        figures = (_FIGURE if current.info else _INFO) if current else None
        if current and figures and figures.search(rest) and len(current.info) < _MOST_LINES:
            current.info.append(rest)
        if samples > _MOST_SAMPLES:
            raise InputError(
                f"{name}: line {number}: too many samples; at most {_MOST_SAMPLES} are read"
            )
    _add(output, sockets, current)
    if not began:
        raise InputError(f"{name}: no output of ss found")
    if not output.connections:
        raise InputError(
            f"{name}: this output of ss has no metrics of a TCP connection: use ss -ti"
        )
    if output.unknown:
        output.remarks.append(
            f"fields that are not understood: {', '.join(sorted(output.unknown))}"
        )
    if clock.local:
        output.remarks.append(
            "its times have no date or no known time zone: rates are known, but not the "
            "absolute time"
        )
    return output


@dataclass
class _Socket:
    """A socket that is being read: its line, when it was, and the lines of its figures."""

    found: re.Match[str]
    time_s: float | None
    elapsed_s: float | None
    info: list[str] = field(default_factory=list)


def _add(
    output: SsOutput, sockets: dict[tuple[str, str], Connection], current: _Socket | None
) -> int:
    """Add a socket's figures as a sample; how many samples there are of it."""
    if current is None or not current.info:
        return 0
    found = current.found
    congestion, figures, unknown = _sample(" ".join(current.info))
    sample = {
        "time_s": current.time_s, "elapsed_s": current.elapsed_s, "state": found["state"],
        "recv_q_bytes": int(found["received"]), "send_q_bytes": int(found["unsent"]), **figures,
    }  # fmt: skip
    one = cast("Sample", sample)
    ends = (found["local"], found["peer"])
    connection = sockets.get(ends)
    if connection is None or _began_again(connection.samples[-1], one):
        connection = sockets[ends] = Connection(*ends)
        output.connections.append(connection)
    connection.congestion = congestion or connection.congestion
    connection.samples.append(one)
    if len(output.unknown) < 20:
        output.unknown |= unknown
    return 1


def _began_again(before: Sample, now: Sample) -> bool:
    """Whether counters went back: a new connection between the same ends."""
    return any(now.get(name, before.get(name, 0)) < before.get(name, 0) for name in _COUNTERS)


def _sample(info: str) -> tuple[str | None, dict[str, object], set[str]]:
    """The congestion control, the fields, and the names of those that are not understood."""
    sample: dict[str, object] = {"app_limited": False}
    unknown: set[str] = set()
    for found in _GROUP.finditer(info):
        if found[1] == "skmem":
            sample["memory_bytes"] = {
                _MEMORY[part[1]]: int(part[2])
                for part in _PART.finditer(found[2])
                if part[1] in _MEMORY
            }
        elif found[1] not in _OTHERS:
            unknown.add(found[1][:40])
    info = _GROUP.sub(" ", info)
    for found in _RATE.finditer(info):
        sample[f"{found[1]}_mbps"] = _decimal(found[2]) * _SCALES[found[3]]
        if found[4]:
            sample[f"max_{found[1]}_mbps"] = _decimal(found[4]) * _SCALES[found[5]]
    congestion = None
    for word in _RATE.sub(" ", info).split():
        if pair := _PAIR.fullmatch(word):
            if not _take(sample, pair[1], pair[2]) and pair[1] not in _OTHERS:
                unknown.add(pair[1][:40])
        elif word == "app_limited":
            sample["app_limited"] = True
        elif word not in _FLAGS and congestion is None and re.fullmatch(r"[a-z][\w-]{1,15}", word):
            congestion = word
    return congestion, sample, unknown


def _take(sample: dict[str, object], key: str, value: str) -> bool:
    """Whether the field is understood; it is then in the sample."""
    if key in _COUNTS and re.fullmatch(r"\d{1,18}(?:[.,]\d{1,9})?", value):
        number = _decimal(value)
        whole = not _COUNTS[key].endswith("_ms") and number.is_integer()
        sample[_COUNTS[key]] = int(number) if whole else number
    elif key in _TIMES and (found := _LIMITED.match(value)):
        sample[f"{key}_ms"] = int(found[1])
    elif key == "rtt" and (
        pair := re.fullmatch(r"(\d{1,9}(?:[.,]\d{1,9})?)/(\d{1,9}(?:[.,]\d{1,9})?)", value)
    ):
        sample["rtt_ms"], sample["rttvar_ms"] = _decimal(pair[1]), _decimal(pair[2])
    elif key == "retrans" and (pair := re.fullmatch(r"(\d{1,10})/(\d{1,10})", value)):
        sample["retrans_now"], sample["retrans_total"] = int(pair[1]), int(pair[2])
    elif key == "wscale" and (pair := re.fullmatch(r"(\d{1,2}),(\d{1,2})", value)):
        sample["wscale_send"], sample["wscale_receive"] = int(pair[1]), int(pair[2])
    else:
        return False
    return True


def _other(sample: Sample, name: str) -> float | None:
    """A figure that ss printed and that `Sample` does not list."""
    return cast("dict[str, float | None]", sample).get(name)


def _unanswered(last: Sample) -> Unanswered | None:
    """Timeouts in a row of a segment that is outstanding; RFC 6298 doubles the RTO at each."""
    opening = last["state"] in _OPENING
    timeouts = int(_other(last, "backoff") or 0)
    if timeouts < _LEAST_TIMEOUTS or not (opening or _other(last, "unacked_segments")):
        return None
    since = None if opening else _other(last, "lastack_ms")
    return {
        "timeouts": timeouts, "segments_out": last.get("segments_out"), "since_ms": since,
        "opening": opening,
    }  # fmt: skip


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))


def _median(values: list[float]) -> float | None:
    return statistics.median_low(values) if values else None


def _known(samples: list[Sample], key: Figure) -> list[float]:
    return [one[key] for one in samples if key in one]
