"""What an importer must do with any file: tell of it or refuse it, in little time."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from airpath.diagnose.files import FileDocument, describe
from airpath.diagnose.together import Together, together
from airpath.errors import InputError
from airpath.readers.recognise import Recognised, recognise

MOST_CPU_S = 1.0
"""For each 128 KiB of a file, and for a smaller file; more is a fault."""
_SIZE = 1 << 17
COMMAND_CPU_S = 20.0
"""For one command; more is a fault."""
COMMAND_WAIT_S = 600.0
"""By the clock: who waits for a pipe uses no processor. On a busy machine others wait, too."""

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
    with bounded(MOST_CPU_S * max(1, path.stat().st_size / _SIZE), None):
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
    with bounded(MOST_CPU_S, None):
        _check(together(files))


def _check(document: FileDocument | Together | None) -> None:
    # A number that JSON has not, such as NaN, is no figure.
    json.dumps(document, allow_nan=False)
    for one in document.get("statements", []) if document else ():
        assert "\n" not in one["text"]
        assert len(one["text"]) < 4000


@contextmanager
def bounded(
    cpu_s: float | None = COMMAND_CPU_S, wait_s: float | None = COMMAND_WAIT_S
) -> Iterator[None]:
    """Raise SlowError if the block takes more processor time or wall time than these limits."""

    def slow(number: int, _: FrameType | None) -> None:
        raise SlowError(f"it did not end in time ({signal.Signals(number).name})")

    timers = (
        (signal.ITIMER_VIRTUAL, signal.SIGVTALRM, cpu_s),
        (signal.ITIMER_REAL, signal.SIGALRM, wait_s),
    )
    used = [(timer, number, seconds) for timer, number, seconds in timers if seconds is not None]
    before = [signal.signal(number, slow) for _, number, _ in used]
    for timer, _, seconds in used:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(used, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def scratch() -> Path:
    """Where files are written; in memory if there is such a place."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path("/tmp")
