"""Children of ``fork()``: polars does not work in one that was made after its threads began.

A child has the locks of its parent's threads and not the threads, so it would wait for ever. It is
told so instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from airpath.errors import AirpathError

_THREADS = Path("/proc/self/task")


class _State:
    threads = False
    """Whether this process has threads of polars that its child will lack."""
    child = False
    """Whether this process lacks them."""


def check() -> None:
    """Raise ``AirpathError`` where polars would wait for threads that are not there."""
    if _State.child:
        raise AirpathError(
            "this process was forked after polars had started its threads, and would wait for "
            'them forever; use multiprocessing.get_context("spawn"), or fork before the first '
            "run"
        )


def _before() -> None:
    _State.threads = _State.child or _polars_runs()


def _in_the_child() -> None:
    _State.child = _State.threads


def _polars_runs() -> bool:
    if "polars" not in sys.modules:
        return False
    try:
        names = [(task / "comm").read_text() for task in _THREADS.iterdir()]
    except OSError:
        # Not known: it may.
        return True
    return any(name.startswith("polars") for name in names)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_the_child)
