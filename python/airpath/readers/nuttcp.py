"""What nuttcp printed, TCP and UDP: intervals (-i), the last line, and what -v says before."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict, cast

from airpath.errors import InputError
from airpath.readers.clocks import Clock
from airpath.readers.lines import numbered
from airpath.readers.sums import total

_MEBIBYTE = 1 << 20
_ROW = re.compile(
    r"(?:^|\s)(?P<moved>\d{1,12}[.,]\d+) MB / +(?P<lasted>\d{1,9}[.,]\d+) sec = +"
    r"(?P<rate>\d{1,9}[.,]\d+) (?P<scale>[KMG]?)bps(?P<rest>.*)$"
)
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_RETRANS = re.compile(r" (\d{1,12}) (?:host-)?retrans")
_CWND = re.compile(r" (\d{1,12}) KB-cwnd")
_RTT = re.compile(r" (\d{1,9}(?:[.,]\d{1,9})?) msRTT")
_LOSS = re.compile(r" (-?\d{1,15}) / +(\d{1,15}) ~?drop/pkt")
_FINAL = re.compile(r" \d{1,3} %TX +\d{1,3} %RX")
_SAID = re.compile(r"(?:^|\s)nuttcp-(?P<end>[tr])\d*: (?P<what>.*)$")
_TEST = re.compile(r"buflen=\d+, nstream=(\d{1,6}), port=\d+ (tcp|udp)")
_ERROR = re.compile(r"(?:^|: )[Ee]rror: (\S.*)$")
_CONNECT = re.compile(r"connect to (\S+) with (?:mss=(\d{1,6}), )?RTT=(\d{1,9}(?:[.,]\d{1,9})?) ms")


class IntervalRates(TypedDict):
    """The rates of a run's intervals."""

    count: int
    min: float
    p50: float
    max: float


class NuttcpTotals(TypedDict):
    """The totals of one run, or of all runs in a file: rates in Mb/s."""

    goodput_mbps: float | None
    bytes: int
    duration_s: float
    retransmissions: int | None
    packets: int | None
    packets_lost: int | None
    error: str | None
    complete: bool
    remarks: list[str]


class NuttcpRunDocument(NuttcpTotals):
    """One run."""

    protocol: str
    reverse: bool | None
    streams: int
    remote: str | None
    mss_bytes: int | None
    handshake_ms: float | None
    rtt_ms: float | None
    interval_mbps: IntervalRates | None
    idle_intervals: int
    cwnd_bytes_max: int | None


class NuttcpDocument(NuttcpTotals):
    """The sums over all runs, and each run; a single run also has its figures at this level."""

    runs: list[NuttcpRunDocument]


@dataclass(frozen=True)
class Interval:
    """What was moved in a while. ``time_s``: when it was printed, in seconds since 1970, or None.

    ``bytes`` is rounded as nuttcp rounds it. None: not printed.
    """

    time_s: float | None
    duration_s: float
    bytes: int
    rate_bps: float
    retransmissions: int | None = None
    cwnd_bytes: int | None = None
    rtt_ms: float | None = None
    lost: int | None = None
    packets: int | None = None


@dataclass
class NuttcpRun:
    """What one run of nuttcp printed. ``total`` is its last line, None if it was not printed.

    ``reverse``: the client received. ``handshake_ms`` is the RTT of connecting.
    """

    protocol: str = "TCP"
    reverse: bool | None = None
    streams: int = 1
    remote: str | None = None
    mss_bytes: int | None = None
    handshake_ms: float | None = None
    intervals: list[Interval] = field(default_factory=list)
    total: Interval | None = None
    error: str | None = None
    remarks: list[str] = field(default_factory=list)

    def document(self) -> NuttcpRunDocument:
        """The totals, as nuttcp has them or as sums of intervals; rates in Mb/s, in 10^6 bit/s."""
        total, parts = self.total, self.intervals
        lasted = total.duration_s if total else sum(one.duration_s for one in parts)
        moved = total.bytes if total else sum(one.bytes for one in parts)
        rate = total.rate_bps if total else (8 * moved / lasted if lasted > 0 else None)
        rates = sorted(one.rate_bps for one in parts)
        return {
            "protocol": self.protocol,
            "reverse": self.reverse,
            "streams": self.streams,
            "remote": self.remote,
            "mss_bytes": self.mss_bytes,
            "handshake_ms": self.handshake_ms,
            "goodput_mbps": rate / 1e6 if rate is not None else None,
            "bytes": moved,
            "duration_s": lasted,
            "retransmissions": self._sum(lambda one: one.retransmissions),
            "packets": self._sum(lambda one: one.packets),
            "packets_lost": self._sum(lambda one: one.lost),
            "rtt_ms": total.rtt_ms if total else None,
            "interval_mbps": {
                "count": len(rates),
                "min": rates[0] / 1e6,
                "p50": rates[(len(rates) - 1) // 2] / 1e6,
                "max": rates[-1] / 1e6,
            }
            if rates
            else None,
            "idle_intervals": sum(one.bytes == 0 for one in parts),
            "cwnd_bytes_max": max((one.cwnd_bytes or 0 for one in parts), default=0) or None,
            "error": self.error,
            "complete": self.total is not None,
            "remarks": self.remarks,
        }

    def _sum(self, count: Callable[[Interval], int | None]) -> int | None:
        """Of the last line, or else of the intervals; None where neither tells."""
        if self.total is not None and (known := count(self.total)) is not None:
            return known
        return total(map(count, self.intervals))


@dataclass
class NuttcpOutput:
    """The runs of a file, in order; at least one."""

    runs: list[NuttcpRun]
    of_file: list[str] = field(default_factory=list)
    """Remarks that belong to no run."""

    @property
    def remarks(self) -> list[str]:
        """The file's remarks and those of its runs, each once."""
        each = [*self.of_file, *(remark for run in self.runs for remark in run.remarks)]
        return list(dict.fromkeys(each))

    @property
    def error(self) -> str | None:
        """The first run's error, if every run failed."""
        return self.runs[0].error if all(run.error for run in self.runs) else None

    def document(self) -> NuttcpDocument:
        """The sums over all runs, and each run; ``goodput_mbps`` is of their time together."""
        each = [run.document() for run in self.runs]
        if len(each) == 1:
            whole = {**each[0], "runs": each, "remarks": self.remarks}
            return cast("NuttcpDocument", whole)
        moved, lasted = sum(one["bytes"] for one in each), sum(one["duration_s"] for one in each)
        return {
            "bytes": moved,
            "duration_s": lasted,
            "retransmissions": total(one["retransmissions"] for one in each),
            "packets": total(one["packets"] for one in each),
            "packets_lost": total(one["packets_lost"] for one in each),
            "goodput_mbps": 8e-6 * moved / lasted if lasted else None,
            "error": self.error,
            "complete": all(one["complete"] for one in each),
            "runs": each,
            "remarks": self.remarks,
        }


def read(text: str, name: str = "nuttcp") -> NuttcpOutput:
    """Read what nuttcp printed; InputError if this is not what nuttcp prints."""
    runs, clock = [NuttcpRun()], Clock()
    known = ended = False
    for _, line in numbered(text):
        row, said = _ROW.search(line), _SAID.search(line)
        if row is None and said is None:
            continue
        # The lines of -v and then the intervals; the last line ends a run.
        if ended and (row is not None or _TEST.search(line)):
            runs.append(NuttcpRun())
            ended = False
        known, run = True, runs[-1]
        if row is not None:
            one = _row(row, clock.now if clock.read(line[: row.start()]) else None)
            if one.packets is not None:
                run.protocol = "UDP"
            if _FINAL.search(row["rest"]):
                run.total, ended = one, True
            else:
                run.intervals.append(one)
        elif said is not None:
            _head(run, said["end"], said["what"])
            ended = ended or run.error is not None
    if not known:
        raise InputError(f"{name}: no output of nuttcp found")
    for run in runs:
        if run.total is None and run.error is None:
            run.remarks.append(
                "the last line of nuttcp is missing: the totals are sums of its intervals"
                if run.intervals
                else "it reports no interval and no total"
            )
    return NuttcpOutput(runs)


def _row(found: re.Match[str], time_s: float | None) -> Interval:
    rest = found["rest"]
    retrans, cwnd, rtt = (pattern.search(rest) for pattern in (_RETRANS, _CWND, _RTT))
    loss = _LOSS.search(rest)
    return Interval(
        time_s,
        _decimal(found["lasted"]),
        round(_decimal(found["moved"]) * _MEBIBYTE),
        _decimal(found["rate"]) * _SCALES[found["scale"]],
        int(retrans[1]) if retrans else None,
        int(cwnd[1]) * 1024 if cwnd else None,
        _decimal(rtt[1]) if rtt else None,
        int(loss[1]) if loss else None,
        int(loss[2]) if loss else None,
    )


def _head(output: NuttcpRun, end: str, what: str) -> None:
    """What -v says; the client's own lines come before the server's."""
    if output.reverse is None:
        output.reverse = end == "r"
    if found := _TEST.search(what):
        output.streams, output.protocol = int(found[1]) or 1, found[2].upper()
    elif found := _CONNECT.search(what):
        output.remote, output.handshake_ms = found[1], _decimal(found[3])
        output.mss_bytes = int(found[2]) if found[2] else None
    elif found := _ERROR.search(what):
        output.error = found[1]


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))
