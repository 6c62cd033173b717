"""The compiled extension as a file: its libraries are looked for where the system has them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_RPATH, DT_RUNPATH = 5, 15, 29


def _search_paths(file: Path) -> list[str]:
    """``DT_RPATH`` and ``DT_RUNPATH`` of a 64-bit ELF file (gABI 4.1, chapters 4 and 5)."""
    data = file.read_bytes()
    assert data[:5] == b"\x7fELF\x02"
    (at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, at + index * size) for index in range(count)]
    (dynamic,) = (header for header in headers if header[0] == PT_DYNAMIC)
    _, _, offset, _, _, length, _, _ = dynamic
    entries = list(struct.iter_unpack("<qQ", data[offset : offset + length]))
    (strings,) = (value for tag, value in entries if tag == DT_STRTAB)
    # The table is named by its address in memory.
    (start,) = (
        strings - address + place
        for kind, _, place, address, _, in_file, _, _ in headers
        if kind == PT_LOAD and address <= strings < address + in_file
    )
    return [
        data[start + value : data.index(0, start + value)].decode()
        for tag, value in entries
        if tag in (DT_RPATH, DT_RUNPATH)
    ]


def test_no_library_is_looked_for_outside_of_the_system(core: Any) -> None:
    """Whoever may write to a build tree would otherwise have code in every process of airpath."""
    assert _search_paths(Path(core.__file__)) == []
