"""Whether a Parquet file of somebody else can be read, by what it takes in memory.

Compression and run lengths let a few bytes stand for any number of rows, and each page says itself
how large it becomes. Here pages are walked from header to header before anything is unpacked
(https://parquet.apache.org/docs/file-format; Thrift's compact protocol).
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any, BinaryIO

_MAGIC = b"PAR1"
_TAIL = 8
"""The length of the footer, and the magic number."""
_MOST_FOOTER_BYTES = 64 << 20
_MOST_VALUES = 4_000_000
"""Of footer and page headers together: a table of 500 million rows has fewer."""
_MOST_DEPTH = 16

FREE_BYTES = 32 << 20
"""What a table may take in memory, however small its file is."""
BYTES_PER_BYTE = 2048
"""And for each byte of its file. The densest tables that airpath writes are logs of idle radios:
they take some 500."""


class DamagedError(Exception):
    """Why it is not read."""


@dataclass
class _Reader:
    """Values of Thrift's compact protocol. A structure is a dictionary by the number of a field."""

    data: Any
    at: int
    end: int
    left: int = _MOST_VALUES

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MOST_DEPTH:
            raise DamagedError("its structures are nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._signed()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise DamagedError("its headers are too long")
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._unsigned())
            case 9 | 10:
                return self._list(depth)
            case 12:
                return self.struct(depth + 1)
        raise DamagedError("its headers cannot be read")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        length = head >> 4 if head >> 4 != 15 else self._unsigned()
        if depth > _MOST_DEPTH or length > self.end - self.at:
            raise DamagedError("its headers cannot be read")
        return [self._value(head & 15, depth + 1) for _ in range(length)]

    def _byte(self) -> int:
        if self.at >= self.end:
            raise DamagedError("it is truncated")
        self.at += 1
        return int(self.data[self.at - 1])

    def _bytes(self, length: int) -> bytes:
        if length > self.end - self.at:
            raise DamagedError("it is truncated")
        self.at += length
        return bytes(self.data[self.at - length : self.at])

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise DamagedError("its headers cannot be read")
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)


def check(file: BinaryIO) -> None:
    """Raise ``DamagedError`` if a file is no Parquet, or would take too much memory to read."""
    file.seek(0, 2)
    size = file.tell()
    if size < len(_MAGIC) + _TAIL:
        raise DamagedError("it is too short to be a Parquet file")
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        footer_bytes = int.from_bytes(data[size - _TAIL : size - len(_MAGIC)], "little")
        start = size - _TAIL - footer_bytes
        if data[:4] != _MAGIC or data[-4:] != _MAGIC or start < len(_MAGIC):
            raise DamagedError("it is not a Parquet file")
        if footer_bytes > _MOST_FOOTER_BYTES:
            raise DamagedError(f"its footer is larger than {_MOST_FOOTER_BYTES >> 20} MiB")
        reader = _Reader(data, start, size - _TAIL)
        try:
            unpacked = _unpacked_bytes(reader, start)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise DamagedError("its headers are incomplete") from None
    most = FREE_BYTES + BYTES_PER_BYTE * size
    if unpacked > most:
        raise DamagedError(
            f"its {size} bytes would take {unpacked} in memory; at most {most} are allowed for "
            "its size"
        )


def _unpacked_bytes(reader: _Reader, footer: int) -> int:
    """What the table takes: its pages unpacked, and eight bytes for each value."""
    about = reader.struct()
    unpacked = packed = 0
    rows = 0
    for group in about[4]:
        rows += group[3]
        for column in group[1]:
            if 1 in column:
                raise DamagedError("a column is in another file")
            meta = column[3]
            first = min(offset for number in (9, 11) if (offset := meta.get(number)))
            if not 0 < first <= first + meta[7] <= footer:
                raise DamagedError("a column is outside the file")
            packed += meta[7]
            if packed > footer:
                raise DamagedError("columns overlap")
            values, pages = _pages(reader, first, first + meta[7])
            if not values == meta[5] == group[3] >= 0:
                raise DamagedError("its pages do not have the number of rows that it declares")
            unpacked += pages + 8 * values
    if rows != about[3]:
        raise DamagedError("its row groups do not have the number of rows that it declares")
    return unpacked


def _pages(reader: _Reader, start: int, end: int) -> tuple[int, int]:
    """Values of a column, and the bytes of its pages unpacked."""
    values = unpacked = 0
    reader.at, reader.end = start, end
    while reader.at < end:
        header = reader.struct()
        if header[2] < 0 or header[3] < 0:
            raise DamagedError("a page has a negative size")
        if (data := header.get(5) or header.get(8)) is not None:
            values += data[1]
        unpacked += header[2]
        reader.at += header[3]
    if reader.at != end:
        raise DamagedError("a page is outside its column")
    return values, unpacked
