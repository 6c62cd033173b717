"""Being stopped: put it off while results are written, and say what was kept."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from airpath.errors import AirpathError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IMPATIENT_S = 1.0


class StoppedError(AirpathError):
    """Ctrl-C, but there is a result."""

    exit_code = 128 + signal.SIGINT

    def __init__(self, directory: Path, partial: list[str], but: str = "") -> None:
        """``partial`` says what is missing; empty: nothing. ``but`` is put behind."""
        self.directory = directory
        self.partial = partial
        what = "is complete" if not partial else f"is partial, because {'; '.join(partial)}"
        what += f", {but}" if but else ""
        super().__init__(f"interrupted; finished work is kept: {directory} {what}")


@contextmanager
def deferred() -> Iterator[None]:
    """Put the first SIGINT or SIGTERM off to the end of the block; one a second later acts at once.

    Outside the main thread signals do not arrive, and nothing is put off.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[int, float]] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def note(number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if arrived and now - arrived[0][1] > _IMPATIENT_S:
            restore()
            signal.raise_signal(number)
        arrived.append((number, now))

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:  # None: not installed from Python, so not replaced either.
                signal.signal(number, handler)

    try:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, note)
        yield
    finally:
        try:
            restore()
        finally:
            # A signal may have come when only one of them was restored.
            restore()
    if arrived:
        signal.raise_signal(arrived[0][0])
