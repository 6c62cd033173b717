"""What the programs of this package have in common: their words, and the inputs that failed."""

from __future__ import annotations

import hashlib
import shutil
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

_LARGEST_KEPT = 1 << 30


def options(words: Sequence[str], doc: str | None, most: int = 2) -> list[int] | None:
    """Seconds of processor time, a seed, and more whole numbers; None after bad use was said."""
    if not 1 <= len(words) <= most or not all(word.isdigit() for word in words) or words[0] == "0":
        print(doc, file=sys.stderr)
        return None
    return [int(word) for word in (words if len(words) > 1 else (*words, str(int(time.time()))))]


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

    def end(self, counts: Mapping[str, int], total: str) -> int:
        """Print how often each outcome was there, and what failed; the exit code."""
        for kind, count in sorted(counts.items()):
            print(f"{kind:16} {count:10,}")
        print(f"{total} in {time.process_time():.0f} s of processor time.")
        for text in self._said.values():
            print(text)
        return 1 if self._said else 0


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """Names of pipes, and of files of a terabyte."""
    paths = [Path(folder, name) for name in names]
    return [
        path.name
        for path in paths
        if path.is_fifo() or (path.is_file() and path.stat().st_size > _LARGEST_KEPT)
    ]
