"""Numbers that many commands take: of workers, and of seeds."""

from __future__ import annotations

import os

from airpath.errors import InputError, InputTypeError

MOST_WORKERS = 10_000
LARGEST_SEED = (1 << 64) - 1


def worker_count(workers: int | None) -> int:
    """How many workers are asked for; with None the cores that this process may use.

    Raises ``InputError`` for a number out of 1 to ``MOST_WORKERS``.
    """
    if workers is None:
        return len(os.sched_getaffinity(0))
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise InputTypeError(f"workers must be a whole number, not {workers!r}")
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"workers must be from 1 to {MOST_WORKERS}")
    return workers


def seeds_from(first: int, count: int = 1) -> list[int]:
    """So many seeds, counted up.

    Raises ``InputError`` if one is out of 0 to ``LARGEST_SEED``.
    """
    if first < 0 or first + count - 1 > LARGEST_SEED:
        raise InputError(f"a seed must be a whole number from 0 to {LARGEST_SEED}")
    return list(range(first, first + count))
