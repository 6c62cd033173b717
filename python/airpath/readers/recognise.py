"""What a file is that somebody has: a capture, or what a tool printed."""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airpath import _core
from airpath.documents import CaptureReport
from airpath.errors import InputError, reason
from airpath.readers import flent, iperf, nuttcp, ping, ping_forms, ss, unread
from airpath.readers.lines import decoded, unlogged

STDIN = "-"
STDIN_NAME = "standard input"
"""What it is called in results."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_CAPTURES = {
    b"\xd4\xc3\xb2\xa1": "pcap",
    b"\xa1\xb2\xc3\xd4": "pcap",
    b"\x4d\x3c\xb2\xa1": "pcap",
    b"\xa1\xb2\x3c\x4d": "pcap",
    b"\x34\xcd\xb2\xa1": "pcap",
    b"\xa1\xb2\xcd\x34": "pcap",
    b"\x0a\x0d\x0d\x0a": "pcapng",
}
"""How captures begin."""
_MOST_TEXT = 64 << 20
Output = iperf.IperfOutput | ping.PingOutput | nuttcp.NuttcpOutput | ss.SsOutput | flent.FlentOutput
_READERS: tuple[tuple[str, Callable[[str, str], Output], tuple[str, ...]], ...] = (
    ("nuttcp", nuttcp.read, ("bps", "nuttcp")),
    ("ss", ss.read, ("Recv-Q", *ss.STATES)),
    (
        "ping",
        ping.read,
        ("ping", "Ping", "PING", "TTL=", "seq=", "bytes from", "SIZE", " :", "%", "Success rate"),
    ),
    ("iperf3", iperf.read, ("/sec", "iperf", "connect", "listening", "failed", ",")),
    ("ping", ping_forms.read_table, (",",)),
)
"""What reads a text, and strings of which it must have one: a large text is read by few."""
_JSON_READERS: tuple[tuple[str, str, Callable[[str, str], Output]], ...] = (
    ('"x_values"', "flent", flent.read),
    ('"packets_transmitted"', "ping", ping_forms.read_json),
    ("", "iperf3", iperf.read),
)
"""What only this tool's JSON has, and how it is read."""
_OBJECT = re.compile(r"[\ufeff \t\r\n]*\{(?!\w)")
"""How JSON begins, unlike markup such as {noformat}."""
_KNOWN_BUT_REFUSED = (
    "no metrics of a TCP connection",
    "too many samples",
    "no RTT in ms",
    "has no row",
    "ping sent nothing",
)
TOOLS = ("ping", "iperf3", "iperf 2", "nuttcp", "flent", "ss -ti")


@dataclass(frozen=True)
class Recognised:
    """A file: its name, what it is (``pcap``, ``pcapng`` or a tool's name), what it says.

    ``capture`` is the report on a capture, ``output`` the result of a text reader. Both are None
    if the file was only recognised.
    """

    name: str
    kind: str
    compressed: bool
    capture: CaptureReport | None = None
    output: Output | None = None

    @property
    def report(self) -> CaptureReport:
        """The capture's report; raises ``ValueError`` if the file was not read as a capture."""
        if self.capture is None:
            raise ValueError(f"{self.name} was not read as a capture")
        return self.capture

    @property
    def begin_s(self) -> float:
        """The time of a capture's first packet, in seconds since 1970."""
        return self.report["first_time_s"] or 0.0


def recognise(name: str, *, read: bool = True) -> Recognised:
    """Recognise a file, ``-`` for standard input, and read it.

    Raises InputError for what is not one of these, and for what cannot be read.
    """
    shown = STDIN_NAME if name == STDIN else name
    try:
        head = _standard_input(4) if name == STDIN else _head(Path(name))
        inner, compressed = _expanded(name, head)
        kind = _CAPTURES.get(inner[:4]) or ("capture" if head.startswith(_ZSTD) else None)
        if kind is not None:
            report = _capture(name, head) if read or kind == "capture" else None
            kind = kind if report is None else report["format"]
            return Recognised(shown, kind, compressed, report if read else None)
        return _text(name, shown, head, compressed, read)
    except IsADirectoryError:
        raise InputError(
            f"{shown} is a directory: name the files in it, e.g. {Path(name) / '*.pcap'}"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {shown}: {reason(error)}") from None


def _standard_input(count: int) -> bytes:
    """Return the first bytes of standard input, without consuming more of it."""
    data = b""
    while len(data) < count and (more := os.read(sys.stdin.fileno(), count - len(data))):
        data += more
    return data


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _expanded(name: str, head: bytes) -> tuple[bytes, bool]:
    """The first bytes without compression by gzip, and whether there is one."""
    if not head.startswith(_GZIP):
        return head, head.startswith(_ZSTD)
    if name == STDIN:
        # What is inside shows when it is read; text by pipe is rarely compressed.
        return b"\xd4\xc3\xb2\xa1", True
    try:
        with gzip.open(name, "rb") as file:
            return file.read(4), True
    except (EOFError, zlib.error, gzip.BadGzipFile) as broken:
        raise InputError(f"{name}: the gzip file is damaged: {broken}") from None


def _capture(name: str, head: bytes) -> CaptureReport:
    try:
        if name == STDIN:
            return _core.read_capture(None, head)
        return _core.read_capture(name)
    except (ValueError, OSError) as refused:
        raise InputError(str(refused)) from None


def _text(name: str, shown: str, head: bytes, compressed: bool, read: bool) -> Recognised:
    try:
        if name == STDIN:
            data = head + sys.stdin.buffer.read(_MOST_TEXT + 1 - len(head))
        else:
            with gzip.open(name, "rb") if compressed else Path(name).open("rb") as file:
                data = file.read(_MOST_TEXT + 1)
    except (EOFError, zlib.error) as broken:
        raise InputError(f"{shown}: the gzip file is damaged: {broken}") from None
    if len(data) > _MOST_TEXT:
        raise InputError(
            f"{shown}: not a capture, and as text larger than the limit of {_MOST_TEXT >> 20} MiB"
        )
    text = unlogged(decoded(data))
    if _OBJECT.match(text):
        kind, reader = next((kind, read) for mark, kind, read in _JSON_READERS if mark in text)
        if why := unread.of_json(text):
            raise InputError(f"{shown}: {why}")
        return _of_tool(shown, kind, compressed, reader(text, shown), read)
    found: list[tuple[str, Output]] = []
    for kind, reader, marks in _READERS:
        if not any(mark in text for mark in marks):
            continue
        try:
            found.append((kind, reader(text, shown)))
        except InputError as refused:
            # A tool is known by its first line; what is wrong after it is not another tool's.
            if not found and any(what in str(refused) for what in _KNOWN_BUT_REFUSED):
                raise
    if found:
        kind, output = found[0]
        others = " and ".join(other for other, _ in found[1:] if other != kind)
        return _of_tool(shown, kind, compressed, output, read, others)
    if not text.strip("\ufeff \t\r\n\0"):
        raise InputError(f"{shown}: the file is empty")
    why = unread.of_bytes(data) or unread.of_text(text)
    raise InputError(
        f"{shown}: {why}"
        if why
        else f"{shown}: this is neither a capture (pcap, pcapng) nor the output of "
        f"{', '.join(TOOLS[:-1])} or {TOOLS[-1]}: no line was recognised"
    )


def _of_tool(
    name: str, kind: str, compressed: bool, output: Output, read: bool, others: str = ""
) -> Recognised:
    if isinstance(output, iperf.IperfOutput):
        kind = output.tests[0].tool
    if others:
        of_file = getattr(output, "of_file", output.remarks)
        of_file.append(
            f"the file also has output of {others}, which was not read: give it as another file"
        )
    return Recognised(name, kind, compressed, output=output if read else None)
