"""Damages a file as networks, disks, editors and adversaries do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

LARGEST = 1 << 15
"""Bytes of a damaged file; a larger one is cut at random."""
_NUMBERS = (
    b"0", b"-0", b"-1", b"1", b"9" * 20, b"9" * 400, b"1e308", b"1e309", b"-1e309", b"nan", b"inf",
    b"0.0000000001", b"1,5", b"1.5.2", b"18446744073709551616", b"2147483648", b"0x10", b"",
    "\u0661\u0662".encode(), "\u00b2".encode(),
)  # fmt: skip
_WORDS = (
    b"time=", b"icmp_seq=", b"[", b"]", b"{", b"}", b"\r", b"\n", b"\0", b"\xff\xfe", b"sec",
    b" ms", b"bits/sec", b"error - ", b"bytes_acked:", b"rtt:", b"[SUM]", b"omitted", b"%", b"/",
    b":", b"nan", "\u2028".encode(), b"\x1b[31m", b"T", b"Z", b"+9999", b"[9999999999.9] ",
    b"[2024-02-30T25:61:61Z] ",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 10**400, "", "x", "nan", [], {}, [[]], [None], {"": None},
    float("inf"),
)  # fmt: skip


def damaged(pick: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the files, with one to a few damages."""
    data = cut(pick, pick.choice(seeds))
    for _ in range(pick.choice((1, 1, 2, 3, 5, 9))):
        data = pick.choice(_DAMAGES)(pick, data, seeds)
        if len(data) > 2 * LARGEST:
            data = data[: 2 * LARGEST]
    return data


def cut(pick: Random, data: bytes) -> bytes:
    """A piece of a large file, mostly its beginning."""
    if len(data) <= LARGEST:
        return data
    at = pick.choice((0, 0, 0, pick.randrange(len(data) - LARGEST)))
    return data[at : at + LARGEST]


def _byte(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return b"\n"
    at = pick.randrange(len(data))
    return data[:at] + bytes([pick.randrange(256)]) + data[at + 1 :]


def _range(pick: Random, length: int) -> tuple[int, int]:
    start = pick.randrange(length + 1)
    return start, min(length, start + pick.choice((1, 2, 8, 64, 512, length)))


def _remove(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _range(pick, len(data))
    return data[:start] + data[end:]


def _repeat(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _range(pick, len(data))
    return data[:end] + data[start:end] * pick.choice((1, 2, 50)) + data[end:]


def _truncate(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: pick.randrange(len(data) + 1)]


def _lines(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    how = pick.randrange(4)
    at = pick.randrange(len(lines))
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(pick.randrange(len(lines)), lines[at])
    elif how == 2:
        pick.shuffle(lines)
    else:
        lines[at] = lines[at][::-1]
    return b"".join(lines)


def _number(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Another number where one is."""
    places = [at for at, one in enumerate(data) if 48 <= one <= 57]
    if not places:
        return data
    start = end = pick.choice(places)
    while end < len(data) and data[end] in b"0123456789.":
        end += 1
    return data[:start] + pick.choice(_NUMBERS) + data[end:]


def _word(pick: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = pick.randrange(len(data) + 1)
    return data[:at] + pick.choice(_WORDS) * pick.choice((1, 1, 1, 3000)) + data[at:]


def _splice(pick: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """The beginning of this one and the end of another."""
    other = cut(pick, pick.choice(seeds))
    return data[: pick.randrange(len(data) + 1)] + other[pick.randrange(len(other) + 1) :]


def _value(pick: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Another value somewhere in a JSON document."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _number(pick, data, seeds)
    place = document
    while isinstance(place, (dict, list)) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = pick.choice(keys)
        if not isinstance(place[key], (dict, list)) or not place[key] or pick.random() < 0.2:
            if isinstance(place, dict) and pick.random() < 0.3:
                del place[key]
            else:
                place[key] = pick.choice(_VALUES)
            break
        place = place[key]
    return json.dumps(document).encode()


_DAMAGES: tuple[Callable[[Random, bytes, Sequence[bytes]], bytes], ...] = (
    _byte, _remove, _repeat, _truncate, _lines, _lines, _number, _number, _number, _word, _splice,
    _value, _value, _value,
)  # fmt: skip
