"""Shared by the programs of this package: the loop over attempts, and the inputs that failed."""

from __future__ import annotations

import hashlib
import itertools
import resource
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from airpath_dev.harness import FINE, WRONG

from .check import scratch

_LARGEST_KEPT = 1 << 30


Seconds = Annotated[int, typer.Argument(envvar="SECONDS", min=1, help="Of processor time.")]
Seed = Annotated[int | None, typer.Argument(envvar="SEED", min=0, help="[default: the time]")]
Attempt = tuple[Path, Callable[[], Iterable[str]]]
"""The input's path, and a call that writes and reads it and returns the outcomes. An exception is a
fault."""


def fuzz(
    name: str,
    seconds: int,
    seed: int | None,
    attempts: Callable[[Random, Path], Sequence[Attempt]],
    *,
    most: int = 1 << 60,
    most_memory: int | None = None,
) -> int:
    """Make attempts until the time is over; return exit code 1 if one was a fault."""
    seed = int(time.time()) if seed is None else seed
    print(f"The seed is {seed}.")
    if most_memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
    pick, ended, faults, count = Random(f"airpath {name} {seed}"), Counter[str](), Faults(name), 0
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        for given, attempt in itertools.cycle(attempts(pick, Path(folder))):
            if time.process_time() >= seconds or count >= most:
                break
            count += 1
            try:
                ended.update(attempt())
            except KeyboardInterrupt:
                raise
            # A panic in the core or in polars is a BaseException, not an Exception.
            except BaseException as error:
                ended["fault"] += 1
                faults.keep(given, error)
    return faults.end(ended, count)


class Faults:
    """Inputs that were neither read nor refused: the smallest for each place of the code."""

    def __init__(self, name: str) -> None:
        self._folder = Path("target/fuzz") / name
        self._said: dict[str, str] = {}
        self._bytes: dict[str, int] = {}

    def keep(self, given: Path, error: BaseException) -> None:
        """Keep a copy of a file or a directory that failed, unless a smaller one is there."""
        frames = traceback.extract_tb(error.__traceback__)
        last = next((one for one in reversed(frames) if "/airpath/" in one.filename), frames[-1])
        where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        size = sum(one.lstat().st_size for one in (given, *given.rglob("*")) if not one.is_dir())
        if size >= self._bytes.get(where, size + 1):
            return
        kept = self._folder / f"fault-{hashlib.sha256(where.encode()).hexdigest()[:12]}"
        shutil.rmtree(kept, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        if given.is_dir():
            shutil.copytree(given, kept, symlinks=True, ignore=_not_copied)
        else:
            shutil.copy(given, kept)
        self._bytes[where] = size
        self._said[where] = f"{where}: {str(error)[:300]} ({kept})"

    def end(self, counts: Mapping[str, int], tried: int) -> int:
        """Print how often each outcome was there, and what failed; the exit code."""
        for kind, count in sorted(counts.items()):
            print(f"{kind:16} {count:10,}")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        used = f"{time.process_time():.0f} s of processor time, at most {memory} MiB"
        print(f"{tried:,} inputs in {used}.")
        for text in self._said.values():
            print(text)
        return WRONG if self._said else FINE


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """Names of pipes, and of files of a terabyte."""
    paths = [Path(folder, name) for name in names]
    return [
        path.name
        for path in paths
        if path.is_fifo() or (path.is_file() and path.stat().st_size > _LARGEST_KEPT)
    ]
