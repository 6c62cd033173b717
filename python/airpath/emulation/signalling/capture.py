"""Packets of one more interface in a capture: pcapng as ``crates/capture`` writes it."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_MAGIC = 0x1A2B3C4D
_ETHERNET = 1
_IF_NAME, _IF_TSRESOL = 2, 9
_NANOSECONDS = 9
_COPIED_BYTES = 1 << 20

Packets = Iterable[tuple[int, bytes]]
"""Times in nanoseconds since 1970, and packets, in order."""


def add(file: Path, interface: str, before: Packets, after: Packets) -> None:
    """Add an interface with packets from before all others and from after them.

    The file is replaced as a whole; its other packets are copied piece by piece. Raises OSError,
    and then leaves it as it was.
    """
    whole = file.with_name(f".airpath-{file.name}")
    try:
        with file.open("rb") as old, _private(whole) as new:
            interfaces = 0
            while (block := _description(old)) is not None:
                new.write(block)
                interfaces += block[:4] == _INTERFACE.to_bytes(4, "little")
            new.write(_described(interface))
            new.writelines(_captured(interfaces, before))
            shutil.copyfileobj(old, new, _COPIED_BYTES)
            new.writelines(_captured(interfaces, after))
        whole.replace(file)
    except OSError:
        with suppress(OSError):
            whole.unlink()
        raise


def create(file: Path, interface: str, packets: Packets) -> None:
    """Write a capture with one interface. Raises OSError."""
    # Version 1.0; the length of the section is not given.
    section = _block(_SECTION, struct.pack("<IHHq", _MAGIC, 1, 0, -1))
    with _private(file) as new:
        new.write(section + _described(interface))
        new.writelines(_captured(0, packets))


def _private(file: Path) -> BinaryIO:
    """Open a new file that only its owner may read."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _description(file: BinaryIO) -> bytes | None:
    """Read a block about the section or an interface; None: packets follow."""
    head = file.read(8)
    kind, length = struct.unpack("<II", head) if len(head) == 8 else (_PACKET, 0)
    if kind not in (_SECTION, _INTERFACE):
        file.seek(-len(head), os.SEEK_CUR)
        return None
    return head + file.read(length - len(head))


def _described(interface: str) -> bytes:
    name = interface.encode()
    options = [
        struct.pack("<HH", _IF_NAME, len(name)) + name + bytes(-len(name) % 4),
        struct.pack("<HHB3x", _IF_TSRESOL, 1, _NANOSECONDS),
        bytes(4),
    ]
    return _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0) + b"".join(options))


def _captured(interface: int, packets: Packets) -> Iterable[bytes]:
    for time_ns, packet in packets:
        high, low = divmod(time_ns, 1 << 32)
        head = struct.pack("<IIIII", interface, high, low, len(packet), len(packet))
        yield _block(_PACKET, head + packet + bytes(-len(packet) % 4))


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length
