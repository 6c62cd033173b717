"""What a run might leave on the host."""

from __future__ import annotations

import contextlib
from pathlib import Path


def host(mark: str, place: Path) -> set[str]:
    """Network namespaces and their names, devices, processes with the mark, files in ``place``."""
    found: set[str] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                found.add(f"process {entry.name}")
                found.add(f"network {(entry / 'ns/net').readlink()}")
    names = Path("/run/netns")
    found |= {f"name {entry.name}" for entry in (names.iterdir() if names.is_dir() else ())}
    found |= {f"device {entry.name}" for entry in Path("/sys/class/net").iterdir()}
    found |= {f"file {entry.name}" for entry in [*place.iterdir(), *(place / "disk").iterdir()]}
    return found
