"""What an importer must do with any file: tell of it or refuse it, in little time."""

from __future__ import annotations

import gzip
import json
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

from airpath.diagnose.files import describe
from airpath.diagnose.together import together
from airpath.errors import InputError
from airpath.readers.recognise import Recognised, recognise

MOST_CPU_S = 1.0
"""For each 128 KiB of a file, and for a smaller file; more is a fault."""
_SIZE = 1 << 17

SEEDS = Path(__file__).parent / "seeds"


class SlowError(Exception):
    """It took too long."""


def seeds(folder: str | None = None) -> dict[str, bytes]:
    """Files to begin with: those written for this, and those of a folder of real outputs."""
    found = {one.name: one.read_bytes() for one in sorted(SEEDS.iterdir())}
    if folder:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and "oracle" not in path.parent.name:
                raw = path.read_bytes()
                found[str(path)] = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    return found


def read(path: Path) -> tuple[str, Recognised | None]:
    """Read a file and tell of it; ``refused``, or the tool. Raises what is a fault."""
    with _bounded(path.stat().st_size):
        try:
            found = recognise(str(path))
        except InputError as refused:
            text = str(refused)
            assert "\n" not in text, f"more than a line: {text!r}"
            assert text, "refused without a word"
            return "refused", None
        _check(describe(found))
    return found.kind, found


def read_together(files: list[Recognised]) -> None:
    """Tell of several files of one test."""
    with _bounded(0):
        _check(together(files))


def _check(document: dict[str, Any] | None) -> None:
    # A number that JSON has not, such as NaN, is no figure.
    json.dumps(document, allow_nan=False)
    for one in (document or {}).get("statements", []):
        assert "\n" not in one["text"]
        assert len(one["text"]) < 4000


class _bounded:  # noqa: N801
    """Ends with SlowError what takes more processor time."""

    def __init__(self, size: int) -> None:
        self.seconds = MOST_CPU_S * max(1, size / _SIZE)

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGVTALRM, _slow)
        signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, self.before)


def _slow(_: int, __: FrameType | None) -> None:
    raise SlowError("more processor time than a file of its size may take")


def scratch() -> Path:
    """Where files are written; in memory if there is such a place."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path("/tmp")
