"""Text of iperf 2 and iperf3, and the CSV of iperf 2.

A row has an interval, an amount and a rate; what follows depends on the tool, the protocol and the
side. Rows that span all intervals of a stream before them are totals, also without a label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from airpath.errors import InputError
from airpath.readers.clocks import Clock
from airpath.readers.iperf_output import (
    SUM,
    Connection,
    Figures,
    Interval,
    IperfOutput,
    IperfTest,
    of_all_streams,
    udp_received,
)
from airpath.readers.lines import by_source

_LATE_S = 2.0
_STEP_S = 0.05
"""Ends of intervals are rounded, by iperf 2 to a tenth of a second."""
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
_ROW = re.compile(
    r"\[ *(?P<mark>\*?)(?P<id>\d{1,9}|SUM(?:-\d{1,9})?|FD\d{1,9})\](?:\[(?P<role>[TR]X)-[CS]\])? +"
    r"(?P<start>\d{1,9}\.\d{1,9})- ?(?P<end>\d{1,9}\.\d{1,9}) +sec +"
    rf"(?P<bytes>{_NUMBER}) ?(?P<unit>[KMGTP]?)Bytes? +"
    rf"(?P<rate>{_NUMBER}) ?(?P<scale>[KMGTP]?)(?P<of>bits|Bytes?)/sec(?P<rest>.*)$"
)
_CONNECTED = re.compile(
    r"\[ *\*?(?P<id>\d{1,9})\] local (?P<local>\S+) port (?P<port>\d{1,5}) "
    r"connected (?P<by>to|with) (?P<remote>\S+) port (?P<to>\d{1,5})(?P<rest>.*)$"
)
_UDP = re.compile(
    rf" (?P<jitter>{_NUMBER}) ms +(?P<lost>-?\d{{1,18}})/ *(?P<packets>-?\d{{1,18}}) \("
)
_TCP = re.compile(
    rf"^ +(?P<retr>\d{{1,18}})(?![\d/.=])(?: +(?P<cwnd>{_NUMBER}) (?P<unit>[KMGT]?)Bytes)?"
)
_DATAGRAMS = re.compile(r"^ +(\d{1,18})(?: |$)")
# iperf 2: writes, errors, retries, cwnd in KiB (also in flight, and in packets), RTT.
_WRITES = re.compile(
    r"^ +\d{1,18}/\d{1,18}(?:/\d{1,18}(?:\(\d{1,18}\))?)? +(?P<retr>\d{1,18})(?![\d.]| *pps)"
    r"(?: +(?:\d{1,15}K?(?:\(\d{1,15}\))?/)?(?P<cwnd>\d{1,15}|NA)K?(?:\(\d{1,15}\))?"
    r"/(?P<rtt>\d{1,15})(?:\(\d{1,15}\))? us)?"
)
_BOUNCED = re.compile(
    rf"^ +\d{{1,18}}=(?P<mean>{_NUMBER})/{_NUMBER}/{_NUMBER}/{_NUMBER} ms"
    r"(?: +(?P<retr>\d{1,18}) +(?:(?P<cwnd>\d{1,15})K|NA)/(?P<rtt>\d{1,15}) us)?"
)
_ERROR = re.compile(
    r"(?:^|\s|\^C)(?:(?P<three>iperf3): (?:error - )?|iperf: |"
    r"(?=(?:connect|bind|write\d?|read\d?|accept) failed: ))"
    r"(?P<what>\S.*)$"
)
_SIGNAL = re.compile(r"^interrupt - (?P<who>.*)$")
_TARGET = re.compile(r"Target Bitrate: (\d{1,15})")
_OMIT = re.compile(r"omitting (\d{1,9}) seconds")
_VERSION = re.compile(r"\biperf 3\.\d.*$")
_CLIENT = re.compile(r"(?:Connecting to host|Client connecting to) ")
_ACCEPTED = "Accepted connection from "
_LISTENING = re.compile(r"Server listening on (?P<two>(?:TCP|UDP) port )?(?P<port>\d{1,5})?")
_COLUMNS = "[ ID]"
_SERVER_OUTPUT = "Server output:"
_CSV = re.compile(
    r"^(?:[+-]\d{4}:)?\d{14}(?:\.\d{1,9})?,(?P<local>[^,]{0,60}),(?P<port>\d{1,5}),"
    r"(?P<remote>[^,]{0,60}),(?P<to>\d{1,5}),(?P<id>-?\d{1,9}),"
    r"(?P<start>\d{1,9}\.\d{1,9})-(?P<end>\d{1,9}\.\d{1,9}),(?P<bytes>\d{1,18}),(?P<rate>-?\d{1,18})"
    rf"(?:,(?P<jitter>{_NUMBER}),(?P<lost>-?\d{{1,18}}),(?P<packets>-?\d{{1,18}}),.*)?$"
)
_DIGITS = 3
"""iperf prints as many."""
_FIRST_EPHEMERAL = 32768
_MOST_AT_A_TIME = 64
_MOST_OF_A_TIME = 64


def read(text: str, name: str = "iperf3") -> IperfOutput:
    """Read what iperf printed; InputError if nothing here is."""
    readers: dict[str, _Reader] = {}
    for source, _, line in by_source(text):
        if line:
            readers.setdefault(source, _Reader()).line(line)
    known = [one for one in readers.values() if one.known]
    if not known:
        raise InputError(f"{name}: no output of iperf3 or iperf found")
    begun = [test for one in known for test in one.tests] or [_Test()]
    tests = [one for run, test in enumerate(begun) for one in test.finished(run)]
    return IperfOutput(tests, [remark for one in known for remark in one.remarks])


@dataclass
class _Test(IperfTest):
    """A run that is being read, with both of its directions."""

    totals: list[tuple[bool, Interval]] = field(default_factory=list)
    """With whether the end that received counted them."""
    sums: list[Interval] = field(default_factory=list)
    """Intervals over all streams."""
    timed: list[tuple[float, Interval]] = field(default_factory=list)
    spans: dict[tuple[int, bool | None], tuple[float, float]] = field(default_factory=dict)
    """From where to where the intervals of a stream go so far."""
    ended: set[tuple[int, bool | None]] = field(default_factory=set)
    """The streams that have a total."""
    answering: set[int] = field(default_factory=set)
    """iperf 2's streams that its other end opened (-d, -r)."""
    reported: bool = False
    """Whether iperf 2's server has sent its report."""
    over: bool = False
    interrupted: str | None = None

    @property
    def began(self) -> bool:
        """Whether there is a row."""
        return bool(self.streams or self.totals or self.sums)

    def goes_back(self, one: Interval) -> bool:
        """Whether a row without a label can only be one of the next test."""
        key = (one.stream, one.sender)
        if self.over or key in self.ended:
            return True
        span = self.spans.get(key)
        if span is None or self.is_total(one):
            return False
        return one.start_s < span[1] - _STEP_S

    def is_total(self, one: Interval) -> bool:
        """Whether a row without a label spans all intervals of its stream."""
        span = self.spans.get((one.stream, one.sender))
        return (
            span is not None and one.start_s <= span[0] + _STEP_S and one.end_s >= span[1] - _STEP_S
        )

    def add(self, one: Interval) -> None:
        """Add a row without a label: an interval or a total."""
        key = (one.stream, one.sender)
        if self.is_total(one) and not one.omitted:
            self.add_total(one)
            return
        (self.sums if one.stream == SUM else self.streams).append(one)
        if not one.omitted:
            self.spans[key] = (self.spans.get(key, (one.start_s, 0.0))[0], one.end_s)

    def add_total(self, one: Interval) -> None:
        """Add a total that does not say which end counted it."""
        self.ended.add((one.stream, one.sender))
        arrives = self.server is not self.reverse if one.sender is None else not one.sender
        arrived = udp_received(one) if self.tool == "iperf3" and not arrives else None
        if arrived is not None:
            # Up to 3.1: bytes as sent, losses as received.
            self.totals += [(False, one), (True, arrived)]
        else:
            self.totals.append((arrives or self.reported, one))

    def finished(self, run: int) -> list[IperfTest]:
        """One test, or one for each direction."""
        if self.tool == "iperf2" and not self.totals:
            # Without -i a row is a total.
            rows = [*self.streams, *self.sums]
            if len({(one.stream, one.sender) for one in rows}) == len(rows):
                for one in rows:
                    self.add_total(one)
        if self.server and not self.reverse:
            moved = [
                sum(one.bytes for by, one in self.totals if by is end) for end in (False, True)
            ]
            self.reverse = moved[0] > 0 == moved[1]
        rows = [*self.streams, *self.sums, *(one for _, one in self.totals)]
        ways = sorted({self._is_reverse(one) for one in rows}) or [self.reverse]
        return [self._direction(run, reverse, len(ways) > 1) for reverse in ways]

    def _is_reverse(self, one: Interval) -> bool:
        """Whether the data went from the server to the client."""
        return self.reverse if one.sender is None else one.sender is self.server

    def _direction(self, run: int, reverse: bool, both: bool) -> IperfTest:
        test = IperfTest(
            self.tool, self.version, self.protocol, reverse, self.server, run, self.omit_s,
            _started(self.timed) if self.start_time_s is None else self.start_time_s,
            self.connections, [one for one in self.streams if self._is_reverse(one) is reverse],
            error=self.error, remarks=list(self.remarks), target_bps=self.target_bps,
        )  # fmt: skip
        streams = {one.stream for one in test.streams}
        if both:
            test.connections = [one for one in self.connections if one.stream in streams]
        if not streams:
            test.streams = [one for one in self.sums if self._is_reverse(one) is reverse]
        for arrives, attribute in ((False, "sent"), (True, "received")):
            found = [
                one for by, one in self.totals if by is arrives and self._is_reverse(one) is reverse
            ]
            each = {one.stream for one in found if one.stream != SUM}
            test.summed_streams = max(test.summed_streams, len(each))
            whole = [one for one in found if one.stream == SUM][-1:]
            if not whole and found and len(found) >= len(streams):
                whole = [of_all_streams(found)]
            setattr(test, attribute, whole[0] if whole else None)
        if test.received is not None and not test.received.bytes and self.interrupted is not None:
            test.received = None
        if self.interrupted is not None:
            test.remarks.append(f"it was ended by a signal: {self.interrupted}")
        test.complete = test.error is None and (test.received or test.sent) is not None
        if test.error is None and not test.complete:
            test.remarks.append(
                f"{self.tool}'s totals are missing: the test or its output was cut short"
            )
        return test


class _Reader:
    """Tests, made from one line after the other."""

    def __init__(self) -> None:
        self.tests: list[_Test] = []
        self.remarks: list[str] = []
        self.known = False
        self._clock = Clock()
        self._server = False
        self._two = False
        self._port = ""
        """Where iperf 2 listens."""
        self._version = ""
        self._told: float | None = None
        """The time, if the last line was nothing else."""
        self._ahead: float | None = None
        """The time that iperf3 -V tells before a test's first line, as it does from 3.7 on."""
        self._untimed = False
        """Whether the last test may have its time after its first line, as before 3.7."""
        self._skipping = False
        """Within what --get-server-output adds: the same test again, as its server saw it."""

    def line(self, line: str) -> None:
        """Take a line that is not empty."""
        self._take(line)
        # Of a script that writes the time, and then tests.
        alone = len(line) < _MOST_OF_A_TIME and not self._clock.strip(line)[0].strip()
        self._told = self._clock.now if alone else None

    def _take(self, line: str) -> None:
        if found := _ROW.search(line) if "/sec" in line else None:
            self.known = True
            if not self._skipping:
                self._row(found, line[: found.start()])
        elif found := _CONNECTED.search(line) if " connected " in line else None:
            self.known = True
            if not self._skipping:
                self._connected(found)
        elif found := _CSV.match(line) if "," in line else None:
            self.known = True
            self._csv(found)
        else:
            self.known |= self._said(line)

    @property
    def _test(self) -> _Test:
        """The test to which a line belongs that does not name one."""
        return self.tests[-1] if self.tests else self._begin()

    def _begin(self) -> _Test:
        test = _Test(
            tool="iperf2" if self._two else "iperf3", version=self._version, server=self._server,
            start_time_s=self._told if self._ahead is None else self._ahead,
        )  # fmt: skip
        self._untimed, self._ahead = self._ahead is None, None
        self.tests.append(test)
        return test

    def _said(self, line: str) -> bool:
        """Whether the line says what test this is, or how it went.

        Most lines do not. Words without which a pattern cannot match are looked for first, which is
        much faster than the pattern.
        """
        text = line.strip()
        if found := _CLIENT.search(line) if "onnecting to " in line else None:
            self._two, self._server = found[0].startswith("Client"), False
            self._skipping = False
            test = self._begin()
            test.protocol = "UDP" if ", UDP port" in line else "TCP"
        elif _ACCEPTED in line:
            if not self._skipping:
                self._two, self._server = False, True
                self._begin()
        elif found := _LISTENING.search(line) if "listening" in line else None:
            if not self._skipping:
                self._two = found["two"] is not None
                self._server, self._port = True, found["port"]
                self._close()
        elif _SERVER_OUTPUT in line:
            self._skipping = True
        elif text.endswith("iperf Done."):
            self._skipping = False
            self._close()
        elif self._skipping:
            return True
        elif "Reverse mode, remote host" in line:
            self._test.reverse = True
        elif _COLUMNS in line:
            self._columns(line)
        elif "Server Report" in line:
            self._test.reported = True
            self._test.ended.clear()
        elif "did not receive ack of last datagram" in line:
            self._test.remarks.append("the server's report is missing: what arrived is not known")
        elif found := _OMIT.search(line) if "omitting" in line else None:
            self._test.omit_s = float(found[1])
        elif text.startswith("Cookie: "):
            self._test.cookie = text.removeprefix("Cookie: ").strip()
        elif text.startswith("Time: ") and self._clock.read(text):
            self._timed()
        elif found := _TARGET.fullmatch(text) if text.startswith("Target") else None:
            self._test.target_bps = float(found[1]) or None
        elif found := _VERSION.search(line) if "iperf 3" in line else None:
            self._version = found[0]
        else:
            return self._error(line)
        return True

    def _timed(self) -> None:
        """A time of iperf3 -V: of the test that has begun, or of the one that follows."""
        if self._untimed and not (self._test.began or self._test.over):
            self._test.start_time_s, self._untimed = self._clock.now, False
        else:
            self._ahead = self._clock.now

    def _columns(self, line: str) -> None:
        """The names of the columns: what the side that reports does."""
        test = self._test
        datagrams = "Total Datagrams" in line
        if datagrams:
            test.protocol = "UDP"
        sends = "Retr" in line or (datagrams and "Lost/" not in line)
        if test.server and sends and not test.began:
            test.reverse = True

    def _close(self) -> None:
        if self.tests:
            self.tests[-1].over = True

    def _error(self, line: str) -> bool:
        found = _ERROR.search(line) if "iperf" in line or "failed: " in line else None
        if found is None:
            return False
        what = found["what"]
        self._two = found["three"] is None
        test = self.tests[-1] if self.tests else None
        if signal := _SIGNAL.match(what):
            if test is None or (test.over and test.server):
                self.remarks.append(f"the server was ended by a signal: {signal['who']}")
            else:
                test.interrupted = signal["who"]
                test.over = True
            return bool(self.tests)
        if test is None or test.over:
            test = self._begin()
        test.error, test.over = what, True
        return True

    def _connected(self, found: re.Match[str]) -> None:
        stream, port = int(found["id"]), found["port"]
        self._two |= found["by"] == "with"
        if not self.tests or self._test.began or self._test.over:
            heads = bool(self.tests)
            test = self._begin()
            if self._two and not heads and not self._server:
                # Neither side has said what it is: a server's port is below the ephemeral ones.
                test.server = int(port) < _FIRST_EPHEMERAL <= int(found["to"])
        test = self._test
        if self._two:
            test.tool = "iperf2"
            if port == self._port and not test.server:
                test.answering.add(stream)
        test.connections.append(
            Connection(stream, found["local"], int(port), found["remote"], int(found["to"]))
        )

    def _of_stream(self, stream: int) -> _Test:
        """The test of a row: iperf 2's server takes several at a time."""
        if self._two and stream != SUM:
            for test in self.tests[: -_MOST_AT_A_TIME - 1 : -1]:
                if any(one.stream == stream for one in test.connections):
                    return test
        return self._test

    def _row(self, found: re.Match[str], before: str) -> None:
        if found["id"].startswith("FD"):
            return
        stream = SUM if found["id"].startswith("SUM") else int(found["id"])
        test = self._of_stream(stream)
        one = _interval(test, found, stream)
        label = found["rest"].rsplit(maxsplit=1)[-1:]
        if label in (["sender"], ["receiver"]):
            arrives = label == ["receiver"]
            # A sender of UDP prints no losses, but zeros.
            test.totals.append((arrives, one if arrives else replace(one, lost=None)))
            test.ended.add((stream, one.sender))
        else:
            if not one.omitted and stream != SUM and test.goes_back(one):
                test = self._next(test)
            test.add(one)
        if before and self._clock.read(before) and self._clock.now is not None:
            test.timed.append((self._clock.now, one))

    def _next(self, test: _Test) -> _Test:
        """Another test like this one, which has no first lines of its own."""
        following = self._begin()
        following.tool, following.server = test.tool, test.server
        following.protocol = test.protocol
        return following

    def _csv(self, found: re.Match[str]) -> None:
        self._two = True
        stream = int(found["id"])
        connection = Connection(
            stream, found["local"], int(found["port"]), found["remote"], int(found["to"])
        )
        test = self._test
        test.tool = "iperf2"
        known = {one.stream: one for one in test.connections}
        # The server's report of UDP has the ends the other way round.
        report = stream in known and known[stream].local_port == connection.remote_port
        if stream != SUM and not report and known.get(stream, connection) != connection:
            test = self._begin()
        if not test.connections:
            test.server = connection.local_port < _FIRST_EPHEMERAL <= connection.remote_port
        if stream != SUM and not report and connection not in test.connections:
            test.connections.append(connection)
        udp = found["jitter"] is not None
        one = Interval(
            stream, float(found["start"]), float(found["end"]), int(found["bytes"]),
            max(0.0, float(found["rate"])), jitter_ms=float(found["jitter"]) if udp else None,
            lost=int(found["lost"]) if udp else None,
            packets=int(found["packets"]) if udp else None,
        )  # fmt: skip
        if udp:
            test.protocol = "UDP"
        if report:
            test.totals.append((True, one))
        else:
            if stream != SUM and test.goes_back(one):
                test = self._next(test)
                test.connections.append(connection)
            test.add(one)


def _interval(test: _Test, found: re.Match[str], stream: int) -> Interval:
    """The row's figures; the test's protocol shows by them."""
    rest = found["rest"]
    shown: Figures = {}
    if udp := _UDP.search(rest):
        test.protocol = "UDP"
        shown = {
            "jitter_ms": float(udp["jitter"]),
            "lost": int(udp["lost"]),
            "packets": int(udp["packets"]),
        }
    elif writes := _WRITES.match(rest) or _BOUNCED.match(rest):
        if writes["retr"]:
            shown["retransmissions"] = int(writes["retr"])
        if writes["cwnd"] != "NA" and (window := int(writes["cwnd"] or 0)):
            shown["cwnd_bytes"] = window * 1024
        if trip := int(writes["rtt"] or 0):
            shown["rtt_us"] = trip
        if mean := writes.groupdict().get("mean"):
            shown["answer_ms"] = float(mean)
    elif test.protocol == "UDP" and (count := _DATAGRAMS.match(rest)):
        shown["packets"] = int(count[1])
    elif tcp := _TCP.match(rest):
        shown["retransmissions"] = int(tcp["retr"])
        if window := round(float(tcp["cwnd"] or 0) * _SIZES[tcp["unit"] or ""]):
            shown["cwnd_bytes"] = window
    if "pps" in rest:
        test.protocol = "UDP"
    sender = None if found["role"] is None else found["role"] == "TX"
    if found["mark"] or stream in test.answering:
        # The data that goes from the server to the client.
        sender = test.server
    start, end = float(found["start"]), float(found["end"])
    moved = round(float(found["bytes"]) * _SIZES[found["unit"]])
    rate = float(found["rate"])
    rate *= _SCALES[found["scale"]] if found["of"] == "bits" else 8 * _SIZES[found["scale"]]
    if end > start and len(found["rate"].replace(".", "").lstrip("0")) < _DIGITS:
        # In a unit that is too large for it (-f): the amount has more digits.
        rate = 8 * moved / (end - start) if moved else rate
    if not moved:
        # An amount that is 0 only because its unit is too large.
        moved = round(rate * (end - start) / 8)
    return Interval(stream, start, end, moved, rate, "(omitted)" in rest, sender, **shown)


def _started(timed: list[tuple[float, Interval]]) -> float | None:
    """When the test began, from the times before the lines of intervals.

    None if these all have about one time: a buffer kept them until the end.
    """
    began = [at - one.end_s for at, one in timed if not one.omitted]
    if not began or max(began) - min(began) > _LATE_S:
        return None
    omitted = [at - one.end_s for at, one in timed if one.omitted]
    return omitted[0] if omitted else began[0]
