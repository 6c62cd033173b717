"""What iperf printed: iperf 2 and iperf3, as text, JSON and CSV; whole, cut short, or failed.

A file has a test for each run and direction: one, or as many as a loop, cron, a server's log or
both directions at once (``--bidir``) have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict, cast

from airpath.readers.sums import total

LAST_TIME_S = 1e11
_MOST_REMARKS = 20
_STOOD_STILL_S = 2.0
"""So long without a byte is more than one RTO of a connection that moves (RFC 6298 2.4)."""
WRITES = (10 * 131_072, 131_072)
"""Bytes that a sender writes at a time: ten blocks of 128 kB in iperf3, or one."""
TWO_SEGMENTS = 2 * 1220
"""Two of the smallest segments of a path with an IPv6 MTU (RFC 8200 5), less than two others."""


SUM = -1
"""Stands for the number of a stream in a sum of all."""


class StoodStill(TypedDict):
    """The longest time in which no stream moved a byte, after one had.

    ``cwnd_bytes`` is the largest congestion window in it, where it was printed. ``to_end``: whether
    no byte moved after it.
    """

    start_s: float
    duration_s: float
    cwnd_bytes: int | None
    to_end: bool


class IperfTotals(TypedDict):
    """The totals of one test, or of all tests in a file: rates in Mb/s, times in seconds."""

    tool: str
    protocol: str
    reverse: bool | None
    """None if the file has tests of both directions."""
    streams: int
    start_time_s: float | None
    goodput_mbps: float | None
    bytes: int | None
    duration_s: float | None
    retransmissions: int | None
    packets: int | None
    packets_lost: int | None
    error: str | None
    complete: bool
    remarks: list[str]


class IperfTestDocument(IperfTotals):
    """One test."""

    sent_mbps: float | None
    sent_bytes: int | None
    jitter_ms: float | None
    answer_ms: float | None
    stood_still: StoodStill | None
    nothing_arrived: bool


class IperfDocument(IperfTotals):
    """The sums over all tests, and each test; a single test also has its figures at this level."""

    runs: int
    tests: list[IperfTestDocument]


@dataclass(frozen=True)
class Connection:
    """The two ends of a stream, as iperf's own side names them."""

    stream: int
    local: str
    local_port: int
    remote: str
    remote_port: int


@dataclass(frozen=True)
class Interval:
    """What a stream moved in a while. None: not printed.

    A window or a round trip of 0 is none: it was rounded to nothing, or not measured yet.
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
    answer_ms: float | None = None
    """The mean time to an answer, with iperf 2's --bounceback."""


class Figures(TypedDict, total=False):
    """The figures of an interval that not every output format has; see ``Interval``."""

    retransmissions: int
    cwnd_bytes: int
    rtt_us: int
    jitter_ms: float
    lost: int
    packets: int
    answer_ms: float


@dataclass
class IperfTest:
    """One direction of one run of iperf.

    ``streams`` are the intervals of single streams, in order. ``sent`` and ``received`` are the
    totals over streams as the ends report them; one of them is None if it was not printed or was
    printed as nothing, and ``remarks`` says so. ``summed_streams`` counts the streams
    that have a total of their own. ``error`` is iperf's own word. ``start_time_s`` is
    in seconds since 1970 (JSON: whole ones), None where it was not printed. ``run`` counts the
    runs of the file: two tests of one run are its two directions.
    """

    tool: str = "iperf3"
    version: str = ""
    protocol: str = "TCP"
    reverse: bool = False
    server: bool = False
    run: int = 0
    omit_s: float = 0.0
    start_time_s: float | None = None
    connections: list[Connection] = field(default_factory=list)
    streams: list[Interval] = field(default_factory=list)
    sent: Interval | None = None
    received: Interval | None = None
    summed_streams: int = 0
    error: str | None = None
    complete: bool = False
    remarks: list[str] = field(default_factory=list)
    target_bps: float | None = None
    """The rate of a stream that -b asked for."""
    far: IperfTest | None = None
    """What the far end reports of the same test (--get-server-output, or a file of its own)."""
    cookie: str = ""
    """iperf3's name of the test, which both ends print."""

    def counted(self) -> list[Interval]:
        """The intervals that count: those that are not omitted."""
        return [one for one in self.streams if not one.omitted]

    @property
    def reports_writes(self) -> bool:
        """Whether its intervals are a TCP sender's: they count what was written to the socket."""
        return self.protocol == "TCP" and self.server == self.reverse

    @property
    def nothing_arrived(self) -> bool:
        """Whether the receiver of TCP has not one byte, in a time in which a path delivers some."""
        rows = self.counted()
        each = [*rows, *(one for one in (self.sent, self.received) if one is not None)]
        if self.protocol != "TCP" or self.error or not each:
            return False
        if self.reports_writes and self.received is not None and not self.server:
            moved = self.received.bytes
        elif self.reports_writes:
            moved = sum(one.bytes for one in each)
        else:
            moved = sum(one.bytes for one in each if one is not self.sent)
        lasted = max(one.end_s for one in each) - min(one.start_s for one in each)
        return not moved and lasted >= _STOOD_STILL_S

    @property
    def blocked(self) -> bool:
        """Whether a standstill is what the test shows: nothing arrived, or nothing to the end.

        It then lasted for half of the test, so that the median second carried nothing.
        """
        still, rows = self._stood_still(), self.counted()
        if still is None or not still["to_end"] or not has_one_segment(still):
            return self.nothing_arrived
        return still["duration_s"] >= (rows[-1].end_s - rows[0].start_s) / 2

    def document(self) -> IperfTestDocument:
        """The totals, for a summary: rates in Mb/s, times in seconds.

        What was received, where that was printed; else what was sent; else sums of intervals.
        """
        total = self._received or self.sent
        counted = self.counted()
        retransmissions = self.sent.retransmissions if self.sent else None
        if total is None and counted:
            total = summed(counted)
            retransmissions = total.retransmissions
        return {
            "tool": self.tool,
            "protocol": self.protocol,
            "reverse": self.reverse,
            "streams": len({one.stream for one in self.streams})
            or len(self.connections)
            or self.summed_streams
            or int(total is not None),
            "start_time_s": self.start_time_s,
            "goodput_mbps": total.rate_bps / 1e6 if total else None,
            "sent_mbps": self.sent.rate_bps / 1e6 if self.sent else None,
            "sent_bytes": self.sent.bytes if self.sent else None,
            "bytes": total.bytes if total else None,
            "duration_s": total.end_s - total.start_s if total else None,
            "retransmissions": retransmissions,
            "packets": total.packets if total else None,
            "packets_lost": total.lost if total else None,
            "jitter_ms": total.jitter_ms if total else None,
            "answer_ms": total.answer_ms if total else None,
            "stood_still": self._stood_still(),
            "nothing_arrived": self.nothing_arrived,
            "error": self.error,
            "complete": self.complete,
            "remarks": self.remarks,
        }

    @property
    def _received(self) -> Interval | None:
        """What was received; a receiver of UDP to which nothing came counts no packets."""
        sent, received = self.sent, self.received
        if self.protocol != "UDP" or sent is None or received is None or not sent.packets:
            return received
        if received.bytes or received.packets or self.error:
            return received
        return replace(received, lost=sent.packets, packets=sent.packets)

    def _stood_still(self) -> StoodStill | None:
        rows: dict[float, list[Interval]] = {}
        for one in self.counted():
            rows.setdefault(one.start_s, []).append(one)
        longest: StoodStill | None = None
        began: float | None = None
        window: int | None = None
        moved, last_s = False, max(rows, default=0.0)
        for start_s in sorted(rows):
            at = rows[start_s]
            if any(one.bytes for one in at):
                moved, began, window = True, None, None
            elif moved:
                began = start_s if began is None else began
                told = [one.cwnd_bytes for one in at if one.cwnd_bytes is not None]
                window = max([*told, window or 0]) if told else window
                lasted = max(one.end_s for one in at) - began
                if longest is None or lasted > longest["duration_s"]:
                    longest = {
                        "start_s": began, "duration_s": lasted, "cwnd_bytes": window,
                        "to_end": start_s == last_s,
                    }  # fmt: skip
        if longest is None:
            return None
        least = _STOOD_STILL_S
        if self.reports_writes and not has_one_segment(longest):
            # Then the next write only waits until the send buffer has room.
            least = max(least, 2 * WRITES[0] / self._bytes_per_second())
        return longest if longest["duration_s"] >= least else None

    def _bytes_per_second(self) -> float:
        total = self.received or summed(self.counted())
        return max(1.0, total.rate_bps / 8)


def joined(tests: Sequence[IperfTest]) -> list[IperfTest]:
    """The tests without those of a server of which the client's is there: they are its far end."""
    far = far_ends(tests)
    taken = set(far.values())
    return [
        replace(one, far=tests[far[at]]) if at in far else one
        for at, one in enumerate(tests)
        if at not in taken
    ]


def far_ends(tests: Sequence[IperfTest]) -> dict[int, int]:
    """Which tests of clients and of servers are the two ends of one, by their places.

    Both ends print the same cookie, or at least the same ports.
    """
    servers: dict[tuple[object, ...], deque[int]] = {}
    for at, one in enumerate(tests):
        for key in _keys(one) if one.server else ():
            servers.setdefault(key, deque()).append(at)
    far: dict[int, int] = {}
    taken: set[int] = set()
    for at, one in enumerate(tests):
        for key in () if one.server else _keys(one):
            others = servers.get(key, deque())
            while others and others[0] in taken:
                others.popleft()
            if others:
                far[at] = others[0]
                taken.add(others[0])
                break
    return far


def _keys(one: IperfTest) -> Iterator[tuple[object, ...]]:
    """What both ends know of a test, the surest first."""
    if one.cookie:
        yield one.cookie, one.reverse
    ports = [(each.local_port, each.remote_port) for each in one.connections]
    if ports:
        yield tuple(sorted(pair[::-1] if one.server else pair for pair in ports)), one.reverse


def has_one_segment(still: StoodStill) -> bool:
    """Whether the congestion window is that of a sender whose retransmissions time out."""
    return still["cwnd_bytes"] is not None and still["cwnd_bytes"] < TWO_SEGMENTS


@dataclass
class IperfOutput:
    """The tests of a file, in order; at least one."""

    tests: list[IperfTest]
    of_file: list[str] = field(default_factory=list)
    """Remarks that belong to no test."""

    @property
    def remarks(self) -> list[str]:
        """The file's remarks and those of its tests, each once."""
        each = [*self.of_file, *(remark for one in self.tests for remark in one.remarks)]
        return list(dict.fromkeys(each))[:_MOST_REMARKS]

    @property
    def runs(self) -> int:
        """How often iperf ran."""
        return len({one.run for one in self.tests})

    @property
    def error(self) -> str | None:
        """The first test's error, if every test failed."""
        return self.tests[0].error if all(one.error for one in self.tests) else None

    def document(self) -> IperfDocument:
        """The sums over all tests, and ``tests`` with each of them.

        ``goodput_mbps`` is of the time that the tests took together; None with both directions.
        """
        each = [one.document() for one in self.tests]
        if len(each) == 1:
            whole = {**each[0], "runs": 1, "tests": each, "remarks": self.remarks}
            return cast("IperfDocument", whole)
        one_way = len({one.reverse for one in self.tests}) == 1
        bytes_ = total(one["bytes"] for one in each)
        lasted = total(one["duration_s"] for one in each)
        rate = 8e-6 * bytes_ / lasted if one_way and bytes_ is not None and lasted else None
        return {
            "tool": self.tests[0].tool,
            "protocol": "/".join(dict.fromkeys(one.protocol for one in self.tests)),
            "reverse": self.tests[0].reverse if one_way else None,
            "streams": max(one["streams"] for one in each),
            "start_time_s": self.tests[0].start_time_s,
            "goodput_mbps": rate,
            "bytes": bytes_,
            "duration_s": lasted,
            "retransmissions": total(one["retransmissions"] for one in each),
            "packets": total(one["packets"] for one in each),
            "packets_lost": total(one["packets_lost"] for one in each),
            "error": self.error,
            "complete": all(one.complete for one in self.tests),
            "runs": self.runs,
            "tests": each,
            "remarks": self.remarks,
        }


def summed(parts: list[Interval]) -> Interval:
    """Intervals or totals of streams as one: bytes and counts are added, over the whole time."""
    start, end = min(one.start_s for one in parts), max(one.end_s for one in parts)
    moved = sum(one.bytes for one in parts)

    jitters = [one.jitter_ms for one in parts if one.jitter_ms is not None]
    answers = [one.answer_ms for one in parts if one.answer_ms is not None]
    return Interval(
        SUM,
        start,
        end,
        moved,
        8 * moved / (end - start) if end > start else 0.0,
        retransmissions=total(one.retransmissions for one in parts),
        jitter_ms=sum(jitters) / len(jitters) if jitters else None,
        lost=total(one.lost for one in parts),
        packets=total(one.packets for one in parts),
        answer_ms=sum(answers) / len(answers) if answers else None,
    )


def of_all_streams(totals: list[Interval]) -> Interval:
    """The total over streams of which each has one: their rates are added."""
    if len(totals) == 1:
        return totals[0]
    return replace(summed(totals), rate_bps=sum(one.rate_bps for one in totals))


def udp_received(sent: Interval) -> Interval | None:
    """What arrived of what was sent, by the losses that were told with it."""
    if not sent.packets or sent.lost is None:
        return None
    share = 1 - sent.lost / sent.packets
    return replace(sent, bytes=round(sent.bytes * share), rate_bps=sent.rate_bps * share)
