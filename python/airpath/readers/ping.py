"""What ping printed, of any system and in any language.

Lines are known by their structure, not by their words. A reply has a number after ``=`` or ``<``
with a unit of time, and ``seq=`` or ``TTL=``, which no system translates; statistics have two
counts and a share in percent, or three counts after ``=``. So heads and tails may be missing,
addresses may be masked, and a file may have many runs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from airpath.errors import InputError
from airpath.readers import unread
from airpath.readers.clocks import Clock
from airpath.readers.lines import by_source

_NUMBER = r"\d{1,9}(?:[.,]\d{1,9})?"
_UNIT = r"[^\d\s=<>()\[\]/,;:.%]{1,8}"
"""Of time: ms in any script, also where a code page made it unreadable."""
_HEADS = (
    # FreeBSD and macOS, IPv6
    re.compile(r"\bPING6\(\d{1,9}=40\+8\+(?P<payload>\d{1,9}) bytes\) \S+ --> (?P<address>\S+)"),
    # iputils, BusyBox, BSD, macOS, toybox, inetutils: PING HOST (ADDRESS) 56(84) bytes of data.
    re.compile(
        r"(?:^|[\s\]])P(?:ING|ing)6?\b[^(]{0,300}\((?P<address>[^\s()]{1,60})\)"
        r".*?(?:(?P<payload>\d{1,9})(?:\(\d{1,9}\))? (?:data )?bytes|$)"
    ),
    re.compile(
        r"(?:^|[\s\]])PING (?P<address>[\da-fA-F.:]+) (?P<payload>\d{1,9})\(\d{1,9}\) bytes"
    ),
    # Huawei VRP
    re.compile(r"^PING (?P<address>[\da-fA-F.:]+) ?: (?P<payload>\d{1,9}) +data bytes, press"),
    re.compile(r"(?:^|\s)HPING (?P<address>\S+) \(.* (?P<payload>\d{1,9}) data bytes"),
)
# Windows says it in the user's language: an address, and the payload before a colon at the end.
_WINDOWS_HEAD = re.compile(
    r"^.{0,200}?(?:\[(?P<named>[\da-fA-F.:]{2,45}(?:%\w{1,20})?)\]|"
    r"(?<![\w.:])(?P<address>(?:\d{1,3}\.){3}\d{1,3}|[\da-fA-F]{0,4}:[\da-fA-F:]{1,40})(?![\da-fA-F.:]))"
    r"(?P<rest>.{3,200}) ?[:\uff1a]$"
)
_LAST_NUMBER = re.compile(r"(?<!\d)(\d{1,9})\D*$")
_SEQ = re.compile(r"\b(?:(?:icmp_)?seq|Sequence)=(\d{1,10})(?![\d/])")
_TTL = re.compile(r"\b(?:ttl|hlim)=(\d{1,10})\b")
_BYTES_FROM = re.compile(r"\b\d{1,6} bytes from (?P<host>[^\s:,]\S*?(?: \([^()]{1,100}\))?)[:,] ")
_HOST = re.compile(r"(?<![^\s=])(?P<host>[^\s=]+?(?: \([^()]{1,100}\))?) ?[:,\uff1a\uff0c]? ?$")
_HUAWEI_HOST = re.compile(r" from (?P<host>\S+): bytes=")
_HUAWEI_COUNT = re.compile(r"^(\d{1,18}) packet\(s\) (transmitted|received)$")
_HPING_HOST = re.compile(r"\bip=(?P<host>\S+)")
_TIME = re.compile(rf"[=<] ?({_NUMBER}) ?({_UNIT})(?![=\w])")
_WINDOWS_REPLY = re.compile(rf"[=<] ?(?P<ms>{_NUMBER}) ?{_UNIT} +TTL=(?P<ttl>\d{{1,10}})$")
_WINDOWS_REPLY6 = re.compile(
    rf"(?P<host>[\da-fA-F.:%]{{2,60}}) ?: [^\s=<]{{1,20}} ?[=<](?P<ms>{_NUMBER}) ?{_UNIT}$"
)
"""Over IPv6 Windows names neither size nor TTL."""
_WINDOWS_HOST = re.compile(r"(?P<host>[^\s=]{1,255}?) ?[:\uff1a]\s")
_COUNTS = re.compile(
    r"(?<!\d)(?P<sent>\d{1,18}) packets transmitted, (?P<received>\d{1,18}) (?:packets )?received"
)
_TITLE = re.compile(r"-{3} \S.* -{3}$|-{3}  ping statistics -{3}$")
_ANY_COUNTS = re.compile(
    r"^\D{0,40}(?P<sent>\d{1,18})\D{1,60}(?P<received>\d{1,18})\D.*?\d(?:[.,]\d{1,9})? ?%"
)
"""In any language, after the title."""
_TIMES = re.compile(
    rf"= ?(?P<min>{_NUMBER})/(?P<mean>{_NUMBER})/(?P<max>{_NUMBER})"
    rf"(?:/(?P<mdev>{_NUMBER}|-?nan))?(?![\d/])"
)
_WINDOWS_COUNTS = re.compile(
    r"^[^=]{1,60}= ?(?P<sent>\d{1,18})[^=\d]{1,60}= ?(?P<received>\d{1,18})[^=\d]{1,60}"
    r"= ?(?P<lost>\d{1,18})(?![\d.])"
)
_WINDOWS_TIMES = re.compile(
    r"^[^=]{1,60}= ?(?P<min>\d{1,9})[^=\d]{1,60}= ?(?P<max>\d{1,9})[^=\d]{1,60}"
    r"= ?(?P<mean>\d{1,9})(?!\d)"
)
_ERROR = re.compile(r"(?:^|\s)icmp_seq[= ](?P<seq>\d{1,10}) (?P<what>[^\W\d].*)$")
_PLAIN = re.compile(
    r"(?:\[(?P<time>[1-9]\d{9}\.\d{1,9})\] )?\d{1,6} bytes from (?P<host>[^\s:,]{1,100}"
    r"(?: \([^()\s]{1,100}\))?): icmp_seq=(?P<seq>\d{1,10}) ttl=(?P<ttl>\d{1,3}) "
    r"time=(?P<ms>\d{1,9}(?:\.\d{1,9})?) ms"
)
"""Most lines of long files are such, of iputils, BSD and macOS: one pattern instead of many."""
_TIMEOUT = re.compile(
    r"(?:Request timeout for icmp_seq|no answer yet for icmp_seq=) ?(?P<seq>\d{1,10})$"
)
_OWN_ERROR = re.compile(r"(?:^|\s)ping6?: (?P<what>\S.*)$")
_ICMP_ERROR = re.compile(
    r"bytes from [^,]{1,300}?: (?P<what>.{0,100}(?:nreachable|xceeded|needed|too big|rohibited).*)$"
)
_MTU = re.compile(r"\bmtu ?[=:]? ?(\d{2,5})(?!\d)", re.IGNORECASE)
_TABLE_HEAD = re.compile(r"^(?:SEQ +)?HOST +SIZE +TTL +TIME\b")
_TABLE_ROW = re.compile(
    r"^(?:(?P<seq>\d{1,10}) +)?(?P<host>\S{1,60}) +\d{1,6} +(?P<ttl>\d{1,3}) +"
    r"(?P<time>(?:\d{1,9}(?:ms|us|s)){1,3})(?: +(?P<what>[^\W\d].*))?$"
)
_TABLE_ERROR = re.compile(r"^(?:(?P<seq>\d{1,10}) +)?.*?(?P<what>[a-zA-Z][a-zA-Z ]*)$")
_TABLE_COUNTS = re.compile(r"^sent=(?P<sent>\d{1,18}) received=(?P<received>\d{1,18})\b")
_TABLE_TIMES = re.compile(r"\b(min|avg|max)-rtt=((?:\d{1,9}(?:ms|us|s)){1,3})")
_TABLE_TIME = re.compile(r"(\d{1,9})(ms|us|s)")
"""RouterOS has a table."""
_FPING = re.compile(
    rf"(?P<host>\S{{1,255}}) +: \[(?P<seq>\d{{1,10}})\], "
    rf"(?:\d{{1,9}} bytes, (?P<ms>{_NUMBER}) ms|(?P<what>[a-zA-Z][a-zA-Z ]*))"
)
_FPING_COUNTS = re.compile(
    r"(?P<host>\S{1,255}) +: xmt/rcv/%\w{1,8} = (?P<sent>\d{1,18})/(?P<received>\d{1,18})/"
)
_FPING_ALL = re.compile(
    rf"(?:^|\s)(?P<host>[\w-]{{0,63}}[.:][\w.:%-]{{1,200}}) +:(?P<all>(?: (?:{_NUMBER}|-))+)$"
)
"""With -C: the round trip of each request, and a hyphen for none."""
_CISCO = re.compile(
    r"^Success rate is \d{1,3} percent \((?P<received>\d{1,18})/(?P<sent>\d{1,18})\)"
)
_COLONS = (":", "\uff1a")
"""The second is that of Chinese and Japanese."""
NO_ANSWER = "no answer in time"
_TOO_LARGE = re.compile(r"\bDF\b|\bfrag\w* needed|too big|message too long|фрагментац", re.I)
"""An error says that the packet is too large; no system translates DF."""
_UNITS = {"us": 1e-3, "µs": 1e-3, "usec": 1e-3, "мкс": 1e-3, "s": 1e3, "sec": 1e3}
"""All others are milliseconds."""
_MOST_ERRORS = 10
_MOST_REMARKS = 20


class PingRow(TypedDict):
    """Counts, and RTTs in milliseconds, as in a row of ``pings`` in a summary."""

    sent: int
    lost: int
    rtt_ms: dict[str, float] | None


class PingRunDocument(PingRow):
    """One run of ping. ``too_large``: an error says that its packets are, for an MTU."""

    address: str
    payload_bytes: int | None
    start_time_s: float | None
    errors: dict[str, int]
    mtu_bytes: int | None
    too_large: bool
    complete: bool


class PingDocument(PingRow):
    """The sums over all runs, and each run."""

    errors: dict[str, int]
    mtu_bytes: int | None
    runs: list[PingRunDocument]


@dataclass(frozen=True)
class Reply:
    """An answer. ``time_s``: when it was printed, in seconds since 1970, if that was printed."""

    seq: int
    rtt_ms: float
    address: str
    ttl: int | None
    time_s: float | None
    duplicate: bool


@dataclass
class PingRun:
    """One run of ping: from its head, or its first number, to its statistics.

    ``sent`` and ``received`` are ping's own counts where it printed them (``complete``), else they
    are counted from the lines. ``printed`` has ping's own min, mean, max and mdev in milliseconds,
    if there are any. ``mtu_bytes`` is the smallest MTU that an error named.
    """

    address: str = ""
    payload_bytes: int | None = None
    start_s: float | None = None
    replies: list[Reply] = field(default_factory=list)
    errors: list[tuple[int | None, str]] = field(default_factory=list)
    sent: int = 0
    received: int = 0
    printed: dict[str, float] = field(default_factory=dict)
    complete: bool = False
    mtu_bytes: int | None = None

    @property
    def lost(self) -> int:
        """Requests without an answer."""
        return max(0, self.sent - self.received)

    def document(self) -> PingRunDocument:
        """Counts, and RTTs in milliseconds."""
        return {
            "address": self.address,
            "payload_bytes": self.payload_bytes,
            "start_time_s": self.start_s,
            "sent": self.sent,
            "lost": self.lost,
            "rtt_ms": _rtts([self]),
            "errors": _most(self.errors),
            "mtu_bytes": self.mtu_bytes,
            "too_large": any(_TOO_LARGE.search(what) for _, what in self.errors),
            "complete": self.complete,
        }


@dataclass
class PingOutput:
    """What a file has of ping: one run, or as many as a loop or cron made."""

    runs: list[PingRun] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def replies(self) -> list[Reply]:
        """The replies of all runs."""
        return [reply for run in self.runs for reply in run.replies]

    @property
    def sent(self) -> int:
        """The requests of all runs."""
        return sum(run.sent for run in self.runs)

    @property
    def lost(self) -> int:
        """The requests of all runs without an answer."""
        return sum(run.lost for run in self.runs)

    def row(self) -> PingRow:
        """The row of ``pings`` in a summary: counts, and RTTs in milliseconds."""
        return {"sent": self.sent, "lost": self.lost, "rtt_ms": _rtts(self.runs)}

    def document(self) -> PingDocument:
        """The sums over all runs, and each run."""
        named = [run.mtu_bytes for run in self.runs if run.mtu_bytes is not None]
        return {
            **self.row(),
            "errors": _most(error for run in self.runs for error in run.errors),
            "mtu_bytes": min(named, default=None),
            "runs": [run.document() for run in self.runs],
        }


def read(text: str, name: str = "ping") -> PingOutput:
    """Read what ping printed; InputError if there is no reply, no error and no statistics."""
    readers: dict[str, _Reader] = {}
    for source, number, line in by_source(text):
        if line and not line.isspace():
            readers.setdefault(source, _Reader()).line(number, line)
    runs = [run for one in readers.values() for run in one.runs if run.known]
    if not runs:
        what = (
            f"ping sent nothing: {failed}"
            if (failed := next((one.failed for one in readers.values() if one.failed), ""))
            else "no line is from ping: no first line (PING HOST …), no reply, no statistics"
        )
        raise InputError(f"{name}: {what}")
    remarks = [remark for one in readers.values() for remark in one.remarks]
    output = PingOutput([run.finished() for run in runs], remarks)
    if counted := sum(not run.complete for run in runs):
        which = f" in {counted} of {len(runs)} runs" if len(runs) > 1 else ""
        output.remarks.append(
            f"ping's statistics are missing{which}: sent and lost are counted from the reply lines"
        )
    if refused := sum(run.refused for run in runs):
        output.remarks.append(
            f"Windows counts errors that routers sent as received ({refused}); here they "
            "count as lost"
        )
    return output


class _Line(NamedTuple):
    """What a reply's line says."""

    number: str | None
    rtt_ms: float
    host: str
    ttl: str | None
    before: str
    """The text before the reply, which may have a time."""
    duplicate: bool = False


@dataclass
class _Run(PingRun):
    """A run that is being read."""

    kind: str = "unix"
    """Also ``windows``, ``table`` (of RouterOS) and ``fping``."""
    known: bool = False
    """Whether there was more than a first line that anybody could have written."""
    headed: bool = False
    titled: bool = False
    refused: int = 0
    """Errors of routers, which Windows counts as received."""
    seen: set[int] = field(default_factory=set)

    @property
    def lines(self) -> int:
        return len(self.replies) + len(self.errors)

    def finished(self) -> _Run:
        """The run with what is counted from its lines."""
        answered = {reply.seq for reply in self.replies}
        if not self.complete:
            counted = answered | {seq for seq, _ in self.errors if seq is not None}
            first = min(counted, default=0)
            self.sent = max(counted, default=first - 1) - first + 1
            self.received = len(answered)
            self.refused = 0
        elif self.received == len(answered) + self.refused:
            self.received = len(answered)
        else:
            self.refused = 0
        if not self.address and self.replies:
            self.address = self.replies[0].address
        return self


class _Reader:
    """Runs, made from one line after the other."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []
        self.remarks: list[str] = []
        self.failed = ""
        self._clock = Clock()
        self._timed = False
        """Whether the line begins with a time."""
        self._foreign = ""
        """The tool that is like ping and printed the last lines, but is not read."""
        self._by_host: dict[str, _Run] = {}
        """The runs of fping, which asks many hosts at a time."""
        self._by_interval: dict[str, tuple[int, int]] = {}
        """The sums of fping's counts so far."""

    def line(self, number: int, line: str) -> None:
        """Take a line that is not empty."""
        if not self._foreign and (found := _PLAIN.fullmatch(line)):
            self._plain(found)
            return
        text, self._timed = self._clock.strip(line.strip())
        if not text or self._is_foreign(text):
            return
        if self._unix(text) or self._windows(text) or self._table(text) or self._fping(text):
            return
        if self._head(text) or self._statistics(text) or self._error(text):
            return
        run = self._current
        if run is None:
            return
        if run.kind == "windows":
            if not run.complete and not text.endswith(_COLONS):
                # In the user's language: no answer in time, or after an address what it said.
                said = _WINDOWS_HOST.search(text)
                run.refused += said is not None
                what = text[said.end() :] if said else NO_ANSWER
                if _TOO_LARGE.search(text):
                    what = what if said else text
                run.errors.append((run.lines, what))
                self._mtu(run, text)
        elif " bytes from " in text and len(self.remarks) < _MOST_REMARKS:
            self.remarks.append(f"line {number} is not understood: {text[:80]}")

    def _plain(self, found: re.Match[str]) -> None:
        """A reply in the form that is by far the most frequent."""
        self._timed = found["time"] is not None
        if self._timed:
            self._clock.tell(float(found["time"]))
        self._reply(
            self._current, "unix",
            _Line(found["seq"], float(found["ms"]), found["host"], found["ttl"], ""),
        )  # fmt: skip

    def _is_foreign(self, text: str) -> bool:
        """Whether the line is of a tool that is like ping; such a tool ends at ping's first line.

        Their counts and times are of other things than echo requests.
        """
        what = unread.like_ping(text)
        if what is None:
            if self._foreign and "PING" in text and any(one.search(text) for one in _HEADS):
                self._foreign = ""
            return bool(self._foreign)
        self._foreign = what
        remark = f"the file also has {what}, which is not read"
        if remark not in self.remarks:
            self.remarks.append(remark)
        return True

    @property
    def _current(self) -> _Run | None:
        return self.runs[-1] if self.runs else None

    def _begin(self, kind: str, known: bool = True) -> _Run:
        """Another run; one of which there was no more than a first line is none."""
        if self.runs and not self.runs[-1].known:
            self.runs.pop()
        run = _Run(kind=kind, known=known, start_s=self._clock.now)
        self.runs.append(run)
        return run

    def _unix(self, text: str) -> bool:
        """A reply with a number, in any language, or without one in English."""
        seq = _SEQ.search(text) if "seq=" in text or "Sequence=" in text else None
        named = _BYTES_FROM.search(text) if " bytes from " in text else None
        first = seq or named
        if first is None:
            return False
        time = _TIME.search(text, first.end())
        if time is None:
            return False
        ttl = _TTL.search(text)
        run = self._current
        if not (ttl or named or "icmp_seq" in text or (run and run.kind == "unix" and run.known)):
            # Any log may number its lines and tell how long something took.
            return False
        host = (
            named
            or _HPING_HOST.search(text)
            or _HUAWEI_HOST.search(text)
            or _HOST.search(text[: first.start()])
        )
        line = _Line(
            seq[1] if seq else None, _milliseconds(time[1], time[2]),
            host["host"] if host else "", ttl[1] if ttl else None,
            text[: (named or first).start()],
            duplicate="DUP" in text[time.end() :],
        )  # fmt: skip
        self._reply(run, "unix", line)
        return True

    def _windows(self, text: str) -> bool:
        """A reply that ends with its TTL, or over IPv6 one after the first line of Windows."""
        run = self._current
        found = _WINDOWS_REPLY.search(text) if "TTL=" in text else None
        if found is None:
            if run is None or run.kind != "windows" or "]" in text:
                return False
            found = _WINDOWS_REPLY6.search(text)
            if found is None:
                return False
        ttl = found.groupdict().get("ttl")
        host = _WINDOWS_HOST.search(text) if ttl else found
        before = text[: host.start("host")] if host else ""
        line = _Line(None, _decimal(found["ms"]), host["host"] if host else "", ttl, before)
        self._reply(run, "windows", line)
        return True

    def _table(self, text: str) -> bool:
        """A row, a title or the sums of RouterOS."""
        run = self._current
        if _TABLE_HEAD.match(text):
            if run is None or run.kind != "table":
                self._begin("table")
            return True
        if (found := _TABLE_ROW.match(text)) and found["what"] is None:
            line = _Line(found["seq"], _table_ms(found["time"]), found["host"], found["ttl"], "")
            self._reply(run, "table", line)
            return True
        if run is None or run.kind != "table":
            return False
        if counts := _TABLE_COUNTS.match(text):
            self._counts(run, counts)
            printed = {which: _table_ms(time) for which, time in _TABLE_TIMES.findall(text)}
            if "avg" in printed:
                printed["mean"] = printed.pop("avg")
            run.printed = printed
            return True
        error = found or _TABLE_ERROR.match(text)
        if error is None:
            return False
        if error["seq"] and run.lines and int(error["seq"]) <= self._last(run):
            run = self._begin("table")
        run.errors.append((int(error["seq"] or run.lines), error["what"]))
        run.complete = False
        return True

    def _fping(self, text: str) -> bool:
        """A line of fping: a reply, no reply, the counts of a host, or all its round trips."""
        if " :" not in text:
            return False
        found = _FPING.search(text) or _FPING_COUNTS.search(text) or _FPING_ALL.search(text)
        if found is None:
            return False
        named = found.groupdict()
        run = self._by_host.get(found["host"])
        if "sent" in named:
            self._fping_counts(run, found, text[found.end() :])
            return True
        if run is None or run.complete:
            run = self._fping_begin(found["host"])
        if "all" in named:
            for seq, told in enumerate(found["all"].split()):
                self._fping_line(run, str(seq), None if told == "-" else told, NO_ANSWER, "")
            run.sent, run.received, run.complete = run.lines, len(run.replies), True
        else:
            what = (named["what"] or "").strip().replace("timed out", NO_ANSWER)
            self._fping_line(run, named["seq"], named["ms"], what, text[: found.start()])
        return True

    def _fping_begin(self, host: str) -> _Run:
        run = self._by_host[host] = self._begin("fping")
        run.address = host
        return run

    def _fping_line(self, run: _Run, seq: str, time_ms: str | None, what: str, before: str) -> None:
        if time_ms is None:
            run.errors.append((int(seq), what))
        else:
            self._reply(run, "fping", _Line(seq, _decimal(time_ms), run.address, None, before))

    def _fping_counts(self, run: _Run | None, found: re.Match[str], times: str) -> None:
        """Counts; those of -Q are of an interval, and the last of them of all intervals."""
        host, counts = found["host"], (int(found["sent"]), int(found["received"]))
        before = self._by_interval.get(host, (0, 0))
        counted = run is not None and run.complete
        if counts == before and counted and self._clock.elapsed is not None:
            return
        self._by_interval[host] = (before[0] + counts[0], before[1] + counts[1])
        if run is None or run.complete:
            run = self._fping_begin(host)
        self._counts(run, found)
        self._times(run, times)

    def _reply(self, run: _Run | None, kind: str, line: _Line) -> None:
        """Add a reply, to another run if it cannot be one of this run."""
        printed = None if line.number is None else int(line.number)
        if run is None or run.kind != kind or self._starts(run, printed, line.duplicate):
            run = self._fping_begin(line.host) if kind == "fping" else self._begin(kind)
        if printed is None and kind == "unix" and not run.replies:
            self.remarks.append(
                "its replies have no sequence number, and it did not count requests: losses "
                "are unknown"
            )
        # 16 bits in the header; a long run begins again.
        seq = run.lines if printed is None else _unwrapped(printed, run.replies)
        timed = self._timed or (
            len(line.before) > len("00:00:00") and self._clock.read(line.before)
        )
        time_s = self._clock.now if timed else None
        ttl = int(line.ttl) if line.ttl else None
        duplicate = line.duplicate or seq in run.seen
        run.replies.append(Reply(seq, line.rtt_ms, line.host, ttl, time_s, duplicate))
        run.seen.add(seq)
        run.known, run.complete = True, False
        if run.start_s is None:
            run.start_s = time_s

    @staticmethod
    def _starts(run: _Run, printed: int | None, duplicate: bool) -> bool:
        """Whether a reply with this number is the first of another run."""
        if printed is None:
            return run.complete
        if not run.replies or duplicate:
            return run.complete and not run.replies
        last = run.replies[-1].seq
        if run.complete or run.kind == "table":
            return _unwrapped(printed, run.replies) <= last
        # Late answers to a broadcast look alike, but then there is a first line.
        return not run.headed and printed == run.replies[0].seq < last

    @staticmethod
    def _last(run: _Run) -> int:
        return max(
            run.replies[-1].seq if run.replies else -1,
            (run.errors[-1][0] or -1) if run.errors else -1,
        )

    def _head(self, text: str) -> bool:
        for pattern in _HEADS if "PING" in text or "Ping " in text else ():
            if found := pattern.search(text):
                self._clock.read(text[: found.start()])
                run = self._begin("unix")
                run.headed, run.address = True, found["address"]
                run.payload_bytes = int(found["payload"]) if found["payload"] else None
                return True
        found = _WINDOWS_HEAD.match(text) if text.endswith(_COLONS) else None
        size = _LAST_NUMBER.search(found["rest"]) if found else None
        if found is None or size is None or _TITLE.search(text):
            return False
        run = self._begin("windows", known=False)
        run.address = found["named"] or found["address"]
        run.payload_bytes = int(size[1])
        return True

    def _statistics(self, text: str) -> bool:
        """Whether the line belongs to the statistics at the end."""
        run = self._current
        if "---" in text and _TITLE.search(text):
            if run is None or run.complete:
                run = self._begin("unix", known=False)
            run.titled = True
            return True
        if run is not None and (one := _HUAWEI_COUNT.match(text)):
            # A line each.
            setattr(run, "sent" if one[2] == "transmitted" else "received", int(one[1]))
            run.known, run.complete = True, one[2] == "received"
            return True
        titled = run is not None and run.titled and not run.complete
        found = _COUNTS.search(text) if " packets " in text else None
        found = found or (_ANY_COUNTS.match(text) if titled else None)
        if found is None and (found := _CISCO.match(text)):
            run = self._begin("cisco")
        if (
            found is None
            and (found := self._windows_counts(text))
            and (run is None or run.kind != "windows" or run.complete)
        ):
            run = self._begin("windows")
        if found is not None:
            if run is None or run.complete:
                run = self._begin("unix")
            self._counts(run, found)
            if run.kind == "cisco":
                self._times(run, text)
            return True
        return run is not None and run.complete and self._times(run, text)

    def _windows_counts(self, text: str) -> re.Match[str] | None:
        """Three counts, the first the sum of the others; of an excerpt also with the share."""
        run, found = self._current, _WINDOWS_COUNTS.match(text)
        if found is None or int(found["sent"]) != int(found["received"]) + int(found["lost"]):
            return None
        within = run is not None and run.kind == "windows"
        if within and run.complete and "%" not in text:  # type: ignore[union-attr]
            return None
        return found if within or "%" in text else None

    @staticmethod
    def _counts(run: _Run, found: re.Match[str]) -> None:
        run.sent, run.received = int(found["sent"]), int(found["received"])
        run.known = run.complete = True

    @staticmethod
    def _times(run: _Run, text: str) -> bool:
        found = _WINDOWS_TIMES.match(text) if run.kind == "windows" else _TIMES.search(text)
        if found is None:
            return False
        run.printed = {
            key: _decimal(value)
            for key, value in found.groupdict().items()
            if value is not None and not value.endswith("nan")
        }
        return True

    def _error(self, text: str) -> bool:
        """An error that a router sent, or of ping itself; or that there was no answer."""
        found, own = None, None
        if "icmp_seq" in text:
            found = _TIMEOUT.search(text) or _ERROR.search(text)
        elif "bytes from" in text:
            own = _ICMP_ERROR.search(text)
        elif "ping" in text:
            own = _OWN_ERROR.search(text)
        if found is None and own is None:
            return False
        run = self._current
        if found is None and (run is None or not run.known):
            if own is None or own.start() > 0:
                # A sentence about a ping.
                return False
            self.failed = self.failed or own["what"]
            return True
        if run is None or run.kind != "unix":
            run = self._begin("unix")
        if found is not None:
            what = found.groupdict().get("what") or NO_ANSWER
            run.errors.append((int(found["seq"]), what))
            run.known = True
        else:
            run.errors.append((None, own["what"]))  # type: ignore[index]
        self._mtu(run, text)
        return True

    @staticmethod
    def _mtu(run: _Run, text: str) -> None:
        if found := _MTU.search(text):
            run.mtu_bytes = min(int(found[1]), run.mtu_bytes or int(found[1]))


def _most(errors: Iterable[tuple[int | None, str]]) -> dict[str, int]:
    """The most frequent errors, and how often each was."""
    return dict(Counter(what for _, what in errors).most_common(_MOST_ERRORS))


def _table_ms(text: str) -> float:
    """RouterOS's times: ``18ms``, ``1s20ms``, ``18ms386us``."""
    return sum(_milliseconds(number, unit) for number, unit in _TABLE_TIME.findall(text))


def _milliseconds(number: str, unit: str) -> float:
    return _decimal(number) * _UNITS.get(unit.lower(), 1.0)


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))


def _unwrapped(seq: int, before: list[Reply]) -> int:
    if not before:
        return seq
    last = before[-1].seq
    return seq + round((last - seq) / 65536) * 65536


def _rtts(runs: Iterable[PingRun]) -> dict[str, float] | None:
    """Of all replies that were printed; else ping's own figures of a run, weighted by replies.

    mdev is the standard deviation, as iputils has it; percentiles are by rank.
    """
    rtts = sorted(one.rtt_ms for run in runs for one in run.replies if not one.duplicate)
    if rtts:
        mean = math.fsum(rtts) / len(rtts)
        return {
            "min": rtts[0],
            "mean": mean,
            "mdev": math.sqrt(math.fsum((rtt - mean) ** 2 for rtt in rtts) / len(rtts)),
            **{f"p{share}": rtts[-(-share * len(rtts) // 100) - 1] for share in (50, 95, 99)},
            "max": rtts[-1],
        }
    told = [run for run in runs if {"min", "mean"} <= run.printed.keys() and run.received]
    if len(told) == 1:
        return told[0].printed
    if not told:
        return None
    return {
        "min": min(run.printed["min"] for run in told),
        "mean": math.fsum(run.printed["mean"] * run.received for run in told)
        / sum(run.received for run in told),
        "max": max(run.printed.get("max", run.printed["mean"]) for run in told),
    }
