"""What ping printed: iputils, busybox, BSD, macOS, Windows; also localised, cut short, timed."""

from __future__ import annotations

import ipaddress
import math
import re
import statistics
from dataclasses import dataclass, field
from typing import Any

from airpath.errors import InputError
from airpath.readers.lines import Line, stripped

_HEAD = re.compile(
    r"^PING6?\b.*?(?:\((?P<address>[\da-fA-F.:]+(?:%\w+)?)\)|--> (?P<to>\S+)).*?"
    r"(?:(?P<payload>\d{1,9})(?:\(\d+\))? (?:data )?bytes|$)"
)
_HEAD6 = re.compile(r"^PING6\(\d+=40\+8\+(?P<payload>\d{1,9}) bytes\) \S+ --> (?P<address>\S+)")
_HEAD_TCP = re.compile(
    r"^PING (?P<address>[\da-fA-F.:]+) (?P<payload>\d{1,9})\(\d+\) bytes of data"
)
# Windows says it in the user's language; the number before the last colon is the payload. Parts
# have a longest length, so that a line takes time by its length only.
_WINDOWS_HEAD = re.compile(
    r"^\S.*?(?:\[(?P<address>[\da-fA-F.:]{2,45}(?:%\w{1,20})?)\]"
    r"|(?P<bare>(?:\d{1,3}\.){3}\d{1,3}|[\da-fA-F]{1,4}:[\da-fA-F:]{1,40}))"
)
_WINDOWS_PAYLOAD = re.compile(r"\b(?P<payload>\d{1,9})\D*:\s*$")
_REPLY = re.compile(
    r"^(?P<bytes>\d+) bytes from (?P<host>.*?)[:,](?: (?:icmp_)?seq=(?P<seq>\d{1,10}))?"
    r"(?: (?:ttl|hlim)=(?P<ttl>\d{1,10}))? time[=<](?P<ms>\d{1,9}(?:[.,]\d+)?) ?ms(?P<rest>.*)$"
)
_WINDOWS_REPLY = re.compile(
    r"^\S.*?\b(?P<host>[\da-fA-F.:]{2,45}): (?:\S+=(?P<bytes>\d+) )?\S+?[=<](?P<ms>\d{1,9}) ?ms"
    r"(?: TTL=(?P<ttl>\d{1,10}))?\s*$"
)
_COUNTS = re.compile(
    r"^(?P<sent>\d{1,18}) packets transmitted, (?P<received>\d{1,18}) (?:packets )?received"
    r"(?:, \+(?P<first>\d+) (?P<what>\w+))?(?:, \+(?P<second>\d+) (?P<other>\w+))?"
)
_WINDOWS_COUNTS = re.compile(
    r"^\s+\S.*?= ?(?P<sent>\d{1,18}), .*?= ?(?P<received>\d{1,18}), .*?= ?\d+"
)
_TIMES = re.compile(
    r"^(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev|std-dev))? = "
    r"(?P<min>[\d.]+)/(?P<mean>[\d.]+)/(?P<max>[\d.]+)(?:/(?P<mdev>[\d.]+|nan))? ms"
)
_ERROR = re.compile(r"^(?:From \S+(?: \(\S+\))?:? )?icmp_seq[= ](?P<seq>\d{1,10}) (?P<what>\S.*)$")
_TIMEOUT = re.compile(
    r"^(?:Request timeout for icmp_seq|no answer yet for icmp_seq=)\s?(?P<seq>\d{1,10})"
)


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
class PingOutput:
    """What one run of ping printed.

    ``sent`` and ``received`` are ping's own counts where it printed them, else they are counted
    from the lines, and ``remarks`` says so. ``printed`` has ping's own min, mean, max and mdev in
    milliseconds, if there are any.
    """

    address: str = ""
    payload_bytes: int | None = None
    replies: list[Reply] = field(default_factory=list)
    errors: list[tuple[int | None, str]] = field(default_factory=list)
    sent: int = 0
    received: int = 0
    printed: dict[str, float] = field(default_factory=dict)
    complete: bool = False
    remarks: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The row of ``pings`` in a summary: counts, and RTTs in milliseconds."""
        printed = self.printed if {"min", "mean"} <= self.printed.keys() else None
        rtts = sorted(reply.rtt_ms for reply in self.replies if not reply.duplicate)
        return {
            "sent": self.sent,
            "lost": self.sent - self.received,
            "rtt_ms": _distribution(rtts) if rtts else printed,
        }


def read(text: str, name: str = "ping") -> PingOutput:
    """Read what ping printed; InputError if this is not what ping prints."""
    output, began, ended = PingOutput(), False, False
    windows = False
    seen: set[int] = set()
    for line in stripped(text):
        if not line.text.strip():
            continue
        if not began:
            began, windows = _begin(output, line.text)
            continue
        ended = _end(output, line.text, windows) or ended
        if not ended:
            _line(output, line, windows, seen)
    # Windows begins in the user's language: any line could, so that its answers have to follow.
    if not began or (windows and not ended and not output.replies):
        raise InputError(f"{name}: no line begins as ping's first line does (PING HOST …)")
    output.complete = ended
    if not ended:
        answered = {reply.seq for reply in output.replies}
        counted = answered | {seq for seq, _ in output.errors if seq is not None}
        first = min(counted, default=0)
        output.sent = max(counted, default=first - 1) - first + 1
        output.received = len(answered)
        output.remarks.append("ping's statistics are missing: sent and lost are counted from lines")
    return output


def _begin(output: PingOutput, text: str) -> tuple[bool, bool]:
    """Whether this is the first line, and whether Windows wrote it."""
    text = text.strip()
    for pattern, windows in (
        (_HEAD6, False), (_HEAD, False), (_HEAD_TCP, False), (_WINDOWS_HEAD, True)
    ):  # fmt: skip
        if found := pattern.match(text):
            named = found.groupdict()
            address = named.get("address") or named.get("to") or named.get("bare") or ""
            payload = named.get("payload")
            if windows:
                size = _WINDOWS_PAYLOAD.search(text, found.end()) if text.endswith(":") else None
                if size is None or not _is_address(address):
                    continue
                payload = size["payload"]
            output.address = address
            if payload:
                output.payload_bytes = int(payload)
            return True, windows
    return False, False


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _end(output: PingOutput, text: str, windows: bool) -> bool:
    """Whether the line belongs to the statistics at the end."""
    if found := (_WINDOWS_COUNTS if windows else _COUNTS).match(text):
        output.sent, output.received = int(found["sent"]), int(found["received"])
        return True
    if found := _TIMES.match(text):
        output.printed = {
            key: float(value)
            for key, value in found.groupdict().items()
            if value is not None and _is_number(value)
        }
        return True
    return False


def _line(output: PingOutput, line: Line, windows: bool, seen: set[int]) -> None:
    text = line.text.strip()
    if found := (_WINDOWS_REPLY if windows else _REPLY).match(text):
        rest = found.groupdict().get("rest") or ""
        number = found.groupdict().get("seq")
        if number is None and not windows and not output.replies:
            output.remarks.append(
                "its replies have no number, and it did not count what it sent: losses do not show"
            )
        printed = len(output.replies) + len(output.errors) if number is None else int(number)
        # 16 bits in the header; a long run begins again.
        seq = _unwrapped(printed, output.replies)
        output.replies.append(
            Reply(
                seq,
                float(found["ms"].replace(",", ".")),
                found["host"],
                int(found["ttl"]) if found["ttl"] else None,
                line.time_s,
                "DUP" in rest or seq in seen,
            )
        )
        seen.add(seq)
    elif found := _TIMEOUT.match(text) or _ERROR.match(text):
        what = found.groupdict().get("what") or "no answer in time"
        output.errors.append((int(found["seq"]), what))
    elif text.startswith("---") and text.endswith("---"):
        return
    elif windows:
        output.errors.append((len(output.replies) + len(output.errors), text))
    elif " bytes from " in text:
        output.remarks.append(f"line {line.number} is not understood: {text[:80]}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _unwrapped(seq: int, before: list[Reply]) -> int:
    if not before:
        return seq
    last = before[-1].seq
    return seq + round((last - seq) / 65536) * 65536


def _distribution(rtts: list[float]) -> dict[str, float]:
    """Of sorted RTTs: mdev as iputils has it, the standard deviation; percentiles by rank."""
    mean = statistics.fmean(rtts)
    return {
        "min": rtts[0],
        "mean": mean,
        "mdev": statistics.pstdev(rtts, mean),
        **{f"p{share}": rtts[-(-share * len(rtts) // 100) - 1] for share in (50, 95, 99)},
    }
