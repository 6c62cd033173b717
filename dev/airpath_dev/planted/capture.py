"""A case becomes the capture that the server would have: of one interface of what a run writes."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

from .draw import Case

_SECTION, _INTERFACE, _PACKET, _STATISTICS = 0x0A0D0D0A, 1, 6, 5
_NAME = 2


def capture(case: Case, place: Path, *, emulated: bool, point: str = "server") -> Path:
    """Run the case in that directory; its capture at that point. Raises RuntimeError."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{case.name}.toml"
    file.write_text(case.text)
    run = place / f"{case.name}.run"
    command = ["emulate", str(file), "--flows"] if emulated else ["run", str(file)]
    done = subprocess.run(
        [
            *[sys.executable, "-m", "airpath", *command],
            *["--capture", "--explain", "off", "--out", str(run)],
        ],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    whole = run / "capture.pcapng"
    # 3: packets were late, which the captures of a real network are too.
    if done.returncode not in (0, 3) and not whole.exists():
        raise RuntimeError(f"case {case.name}: {done.stderr.strip()}")
    alone = place / f"{case.name}.pcapng"
    at_point(whole, alone, point)
    return alone


def at_point(whole: Path, alone: Path, point: str, from_packet: int = 0) -> None:
    """Write what one interface of a pcapng file saw (its name; ``ue`` is also ``ue-0`` and others).

    ``from_packet``: the first packets of the interface that are left out.
    """
    raw = whole.read_bytes()
    kept: list[bytes] = []
    names: list[str] = []
    numbers: dict[int, int] = {}
    at = seen = 0
    while at + 12 <= len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        block = raw[at : at + length]
        if kind == _SECTION:
            kept.append(block)
        elif kind == _INTERFACE:
            names.append(_name(block))
            if names[-1] == point or names[-1].startswith(f"{point}-"):
                numbers[len(names) - 1] = len(numbers)
                kept.append(block)
        elif kind in (_PACKET, _STATISTICS):
            number = struct.unpack_from("<I", block, 8)[0]
            seen += number in numbers and kind == _PACKET
            if number in numbers and (kind != _PACKET or seen > from_packet):
                kept.append(block[:8] + struct.pack("<I", numbers[number]) + block[12:])
        at += length
    if not numbers:
        raise RuntimeError(f"{whole} has no interface {point}, but {', '.join(names)}")
    alone.write_bytes(b"".join(kept))


def _name(block: bytes) -> str:
    at = 16
    while at + 4 <= len(block) - 4:
        code, length = struct.unpack_from("<HH", block, at)
        if code == _NAME:
            return block[at + 4 : at + 4 + length].decode()
        if code == 0:
            break
        at += 4 + (length + 3) // 4 * 4
    return ""
