"""A run's capture as someone would have it: at one point, damaged as captures are."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import airpath
from airpath import _core
from airpath.causes import rank
from airpath.causes.features import Features, features
from airpath.causes.group import Group
from airpath.documents import CaptureReport, Segments
from airpath.fitting.observed import Bools, numbers
from airpath_dev.planted.draft import Pick

from .draw import Drawn
from .told import Figures, tell

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ETHERNET = 14
_HEADERS = _ETHERNET + 20 + 20
_PLACES = np.array([1 << 24, 1 << 16, 1 << 8, 1])
_SAME = [*range(_ETHERNET + 12, _ETHERNET + 24), *range(_ETHERNET + 28, _ETHERNET + 32)]
"""Bytes that are equal in segments that are joined: addresses, ports, the acknowledgement."""
_TOGETHER_NS = 100_000
_MOST_JOINED = 62_000

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
_TICK = 1000
"""Microseconds of the kernel's timestamps; the model's count microseconds."""


@dataclass(frozen=True)
class Damage:
    """What a capture lacks: ends of headers, packets, the beginning; and how coarse a clock is.

    ``noise_ms``: mean of an exponential time that a host takes for each packet.
    ``joined``: segments that left or came together are one packet, as segmentation and receive
    offload (TSO, GRO) show them.
    """

    cut: int | None = None
    lose: float = 0.0
    late: float = 0.0
    tick: bool = False
    joined: bool = False
    noise_ms: float = 0.0

    @classmethod
    def drawn(cls, pick: Pick) -> Damage:
        """At random."""
        return cls(
            cut=pick.choice([None, None, None, 96, 64]),
            lose=pick.log(1e-4, 0.01) if pick.chance(0.15) else 0.0,
            late=pick.uniform(0.05, 0.3) if pick.chance(0.15) else 0.0,
            tick=pick.chance(0.85),
            joined=pick.chance(0.5),
            noise_ms=pick.log(0.002, 0.1) if pick.chance(0.8) else 0.0,
        )


@dataclass(frozen=True)
class View:
    """What is seen of a run from one point.

    ``features`` has those of each group of transfers, and whether it is a main one. ``told``: what
    tools told at the sender.
    """

    point: str
    features: list[tuple[bool, Features]]
    told: Figures | None


def views(drawn: Drawn, pick: Pick) -> Iterator[View]:
    """A run, seen next to each end."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        scenario = Path(place) / "case.toml"
        scenario.write_text(drawn.text)
        result = airpath.run(scenario, out=run, capture=True, explain="off")
        raw = np.fromfile(run / "capture.pcapng", dtype=np.uint8)
        for point, of_point in zip(("server", "ue"), _points(raw), strict=True):
            damage = Damage.drawn(pick)
            file = Path(place) / f"{point}.pcapng"
            told = None
            if point == ("ue" if drawn.up else "server"):
                file.write_bytes(_damaged(of_point, Damage(), pick))
                told = tell(result, file)
            file.write_bytes(_damaged(of_point, damage, pick))
            report = _core.read_capture(file)
            groups = _groups(file, report, damage)
            sizes = [sum(each.wire_bytes for each in one.transfers) for one in groups]
            found = [
                (size >= rank.MAIN * max(sizes), features(group, report))
                for group, size in zip(groups, sizes, strict=True)
            ]
            yield View(f"{point} {damage}", found, told)


def _groups(file: Path, report: CaptureReport, damage: Damage) -> list[Group]:
    flows = rank.transfers_of(report)
    read = rank.read(file, flows)
    if damage.tick:
        read = [cast("Segments", {**one, **_coarse(one)}) for one in read]
    return rank.groups_of(file, report, flows, read)


def _coarse(segments: Any) -> dict[str, bytes]:
    names = ("timestamp", "echo", "ack_timestamp")
    return {name: np.floor(numbers(segments[name]) / _TICK).tobytes() for name in names}


@dataclass(frozen=True)
class _Point:
    """The blocks of one capture point: ``at`` and ``lengths`` of its packets in ``raw``."""

    raw: Bytes
    head: bytes
    at: Integers
    lengths: Integers


def _points(raw: Bytes) -> Iterator[_Point]:
    """The interfaces of a pcapng file."""
    blocks = np.array(list(_blocks(raw.tobytes())), dtype=np.int64)
    kinds, at, lengths = blocks.T
    section = at[kinds == _SECTION][0]
    own = raw[section : section + lengths[0]].tobytes()
    packet = kinds == _PACKET
    interface = _number(raw, at[packet] + 8)
    for number, place in enumerate(np.flatnonzero(kinds == _INTERFACE)):
        head = own + raw[at[place] : at[place] + lengths[place]].tobytes()
        ours = interface == number
        yield _Point(raw, head, at[packet][ours], lengths[packet][ours])


def _blocks(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, place and length."""
    at = 0
    while at + 12 <= len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        yield kind, at, length
        at += length


def _number(raw: Bytes, at: Integers) -> Integers:
    """Little-endian numbers of four bytes, as pcapng has them."""
    found: Integers = raw[at[:, None] + np.arange(4)].copy().view("<u4")[:, 0].astype(np.int64)
    return found


def _damaged(point: _Point, damage: Damage, pick: Pick) -> bytes:
    """A file of the point's packets, as far as the damage leaves them."""
    # The last packet may be shorter than the headers that are looked at.
    raw = np.concatenate((point.raw, np.zeros(_HEADERS, dtype=np.uint8)))
    keep = np.arange(len(point.at)) >= damage.late * len(point.at)
    if damage.lose:
        keep &= np.array([pick.random() >= damage.lose for _ in point.at])
    at, lengths = point.at[keep], point.lengths[keep]
    raw[at[:, None] + np.arange(8, 12)] = 0
    if damage.noise_ms and len(at):
        _blur(raw, at, damage.noise_ms, pick)
    if damage.joined and len(at):
        whole = _joined(raw, at)
        at, lengths = at[whole], lengths[whole]
    if damage.cut is not None and len(at):
        _cut(raw, at, damage.cut)
    # Of each packet's block all bytes, one block behind the other.
    ends = np.cumsum(lengths)
    every = np.arange(ends[-1] if len(ends) else 0) + np.repeat(at - ends + lengths, lengths)
    kept: bytes = raw[every].tobytes()
    return point.head + kept


def _blur(raw: Bytes, at: Integers, noise_ms: float, pick: Pick) -> None:
    """Delay each packet by some time; the order is kept, and so is what arrives together."""
    time = _number(raw, at + 12) * 2**32 + _number(raw, at + 16)
    random = np.random.default_rng(pick.randrange(2**32))
    instant = np.unique(time, return_inverse=True)[1].reshape(-1)
    later = random.exponential(noise_ms * 1e6, instant.max() + 1).astype(np.int64)[instant]
    time = np.maximum.accumulate(time + later)
    for place, part in ((12, time >> 32), (16, time & 0xFFFFFFFF)):
        raw[at[:, None] + np.arange(place, place + 4)] = (
            part.astype("<u4").view(np.uint8).reshape(-1, 4)
        )


def _cut(raw: Bytes, at: Integers, most: int) -> None:
    """Leave at most this many bytes of each packet; what follows them are no options."""
    longer = at[_number(raw, at + 20) > most]
    raw[longer[:, None] + np.arange(20, 24)] = np.frombuffer(struct.pack("<I", most), np.uint8)
    raw[longer[:, None] + 28 + np.arange(most + -most % 4, most + -most % 4 + 4)] = 0


def _joined(raw: Bytes, at: Integers) -> Bools:
    """Which packets are left where IPv4 segments that follow each other at once are joined.

    A segment is joined to the last one of its stream if both have data and acknowledge the same,
    and it comes within a tenth of a millisecond, as receive offload does.
    """
    head = raw[at[:, None] + 28 + np.arange(_HEADERS)]
    # Those of one stream, which acknowledge the same, behind each other.
    stream = np.unique(head[:, _SAME], axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(stream, kind="stable")
    at, stream = at[order], stream[order]
    wide = head[order].astype(np.int64)
    ip, tcp = wide[:, _ETHERNET:], wide[:, _ETHERNET + 20 :]
    is_tcp = (ip[:, 0] == 0x45) & (ip[:, 9] == 6)
    header = 20 + (tcp[:, 12] >> 4) * 4
    payload = np.where(is_tcp, ip[:, 2] * 256 + ip[:, 3] - header, 0)
    sequence = tcp[:, 4:8] @ _PLACES
    plain = (payload > 0) & ((tcp[:, 13] & 0x07) == 0)
    time = _number(raw, at + 12) * 2**32 + _number(raw, at + 16)
    follows = plain[1:] & plain[:-1] & (np.diff(stream) == 0) & (np.diff(time) <= _TOGETHER_NS)
    follows &= sequence[1:] == (sequence[:-1] + payload[:-1]) % 2**32
    first = np.concatenate(([True], ~follows))
    # No more than an IP packet can have.
    run = np.cumsum(first) - 1
    before = np.cumsum(payload) - payload
    part = (before - before[first][run]) // _MOST_JOINED
    first[1:] |= (run[1:] == run[:-1]) & (part[1:] != part[:-1])
    total = np.add.reduceat(payload, np.flatnonzero(first))
    longer = total > payload[first]
    joined, size = at[first][longer], header[first][longer] + total[longer]
    raw[joined + 28 + _ETHERNET + 2] = size >> 8
    raw[joined + 28 + _ETHERNET + 3] = size & 255
    original = (size + _ETHERNET).astype("<u4").view(np.uint8).reshape(-1, 4)
    raw[joined[:, None] + np.arange(24, 28)] = original
    left = np.zeros(len(at), dtype=bool)
    left[order[first]] = True
    return left
