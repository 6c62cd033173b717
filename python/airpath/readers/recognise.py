"""What a file is that somebody has: a capture, or what ping or iperf3 printed."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath import _core
from airpath.errors import InputError, reason
from airpath.readers import iperf3, ping

STDIN = "-"
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
_READERS: dict[str, Callable[[str, str], iperf3.Iperf3Output | ping.PingOutput]] = {
    "ping": ping.read,
    "iperf3": iperf3.read,
}


@dataclass(frozen=True)
class Recognised:
    """A file: its name, what it is (``pcap``, ``pcapng``, ``ping`` or ``iperf3``), what it says.

    ``document`` is None if it was only to be recognised.
    """

    name: str
    kind: str
    compressed: bool
    document: dict[str, Any] | None


def recognise(name: str, *, read: bool = True) -> Recognised:
    """Recognise a file, ``-`` for standard input, and read it.

    Raises InputError for what is none of these, and for what cannot be read.
    """
    shown = "standard input" if name == STDIN else name
    try:
        head = _standard_input(4) if name == STDIN else _head(Path(name))
        inner, compressed = _expanded(name, head)
        kind = _CAPTURES.get(inner[:4]) or ("capture" if head.startswith(_ZSTD) else None)
        if kind is not None:
            document = _capture(name, head) if read or kind == "capture" else None
            kind = kind if document is None else str(document["format"])
            return Recognised(shown, kind, compressed, document if read else None)
        return _text(name, shown, head, compressed, read)
    except OSError as error:
        raise InputError(f"cannot read {shown}: {reason(error)}") from None


def _standard_input(count: int) -> bytes:
    """So many bytes of standard input, without taking more from it."""
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
        # What is inside shows when it is read; text by pipe is seldom compressed.
        return b"\xd4\xc3\xb2\xa1", True
    try:
        with gzip.open(name, "rb") as file:
            return file.read(4), True
    except (EOFError, zlib.error, gzip.BadGzipFile) as broken:
        raise InputError(f"{name}: the gzip file is damaged: {broken}") from None


def _capture(name: str, head: bytes) -> dict[str, Any]:
    try:
        if name == STDIN:
            return _core.read_capture(None, head)
        return _core.read_capture(name)
    except (ValueError, OSError) as refused:
        raise InputError(str(refused)) from None


def _text(name: str, shown: str, head: bytes, compressed: bool, read: bool) -> Recognised:
    try:
        if name == STDIN:
            data = head + sys.stdin.buffer.read(_MOST_TEXT)
        else:
            with gzip.open(name, "rb") if compressed else Path(name).open("rb") as file:
                data = file.read(_MOST_TEXT)
    except (EOFError, zlib.error) as broken:
        raise InputError(f"{shown}: the gzip file is damaged: {broken}") from None
    text = data.decode(errors="replace")
    refusals = []
    for kind, reader in _READERS.items():
        try:
            output = reader(text, shown)
        except InputError as refused:
            refusals.append(str(refused))
        else:
            return Recognised(shown, kind, compressed, output.document() if read else None)
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        raise InputError(refusals[-1])
    raise InputError(
        f"{shown}: this is neither a capture (pcap, pcapng) nor what ping or iperf3 prints"
    )
