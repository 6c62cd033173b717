"""A run's capture as someone would have it: at one point, damaged as captures are."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import airpath
from airpath import _core
from airpath.causes import rank
from airpath.causes.features import Features, features
from airpath.causes.group import Group
from airpath.documents import CaptureReport, Segments
from airpath.fitting.observed import numbers
from airpath_dev.planted.draft import Pick

from .draw import Drawn

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_TICK = 1000
"""Microseconds of the kernel's timestamps; the model's count microseconds."""


@dataclass(frozen=True)
class Damage:
    """What a capture lacks: ends of headers, packets, the beginning; and how coarse a clock is."""

    cut: int | None
    lose: float
    late: float
    tick: bool

    @classmethod
    def drawn(cls, pick: Pick) -> Damage:
        """At random."""
        return cls(
            cut=pick.choice([None, None, None, 96, 64]),
            lose=pick.log(1e-4, 0.01) if pick.chance(0.15) else 0.0,
            late=pick.uniform(0.05, 0.3) if pick.chance(0.15) else 0.0,
            tick=pick.chance(0.85),
        )


def views(drawn: Drawn, pick: Pick) -> Iterator[tuple[str, bool, Features]]:
    """The features of each group of transfers, next to each end, and whether it is a main one."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        scenario = Path(place) / "case.toml"
        scenario.write_text(drawn.text)
        airpath.run(scenario, out=run, capture=True, explain="off")
        raw = (run / "capture.pcapng").read_bytes()
        for interface, point in enumerate(("server", "ue")):
            damage = Damage.drawn(pick)
            file = Path(place) / f"{point}.pcapng"
            file.write_bytes(b"".join(_kept(raw, interface, damage, pick)))
            report = _core.read_capture(file)
            groups = _groups(file, report, damage)
            sizes = [sum(each.wire_bytes for each in one.transfers) for one in groups]
            for group, size in zip(groups, sizes, strict=True):
                yield f"{point} {damage}", size >= rank.MAIN * max(sizes), features(group, report)


def _groups(file: Path, report: CaptureReport, damage: Damage) -> list[Group]:
    flows = rank.transfers_of(report)
    read = rank.read(file, flows)
    if damage.tick:
        read = [cast("Segments", {**one, **_coarse(one)}) for one in read]
    return rank.groups_of(file, report, flows, read)


def _coarse(segments: Any) -> dict[str, bytes]:
    names = ("timestamp", "echo", "ack_timestamp")
    return {name: np.floor(numbers(segments[name]) / _TICK).tobytes() for name in names}


def _kept(raw: bytes, interface: int, damage: Damage, pick: Pick) -> Iterator[bytes]:
    """The blocks of one of the two interfaces, as far as the damage leaves them."""
    blocks = [
        (kind, block) for kind, block in _blocks(raw) if kind in (_SECTION, _INTERFACE, _PACKET)
    ]
    ours = struct.pack("<I", interface)
    late = damage.late * sum(kind == _PACKET and block[8:12] == ours for kind, block in blocks)
    seen = interfaces = 0
    for kind, block in blocks:
        if kind == _PACKET:
            if block[8:12] != ours:
                continue
            seen += 1
            if seen <= late or (damage.lose and pick.random() < damage.lose):
                continue
            alone = block[:8] + bytes(4) + block[12:]
            yield alone if damage.cut is None else _cut(alone, damage.cut)
        elif kind == _INTERFACE:
            interfaces += 1
            if interfaces == interface + 1:
                yield block
        else:
            yield block


def _blocks(raw: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        yield kind, raw[at : at + length]
        at += length


def _cut(block: bytes, most: int) -> bytes:
    """The block with at most this many bytes of its packet."""
    captured = struct.unpack_from("<I", block, 20)[0]
    if captured <= most:
        return block
    data = block[28 : 28 + most] + bytes(-most % 4)
    length = 28 + len(data) + 4
    head = (
        struct.pack("<II", _PACKET, length) + block[8:20] + struct.pack("<I", most) + block[24:28]
    )
    return head + data + struct.pack("<I", length)
