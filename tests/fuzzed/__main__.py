"""Damages outputs of tools at random and has them read: `make fuzz-importers SECONDS=600`.

    python -m fuzzed SECONDS [SEED]

For so many seconds of processor time. It begins with tests/fuzzed/seeds, and with the files of the
folder that AIRPATH_OUTPUTS names. Exit codes: 0, each was read or refused; 1, one was not: it is
in target/fuzz/importers; 2, bad use.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from airpath.readers.recognise import Recognised

from .check import read, read_together, scratch, seeds
from .mutate import damaged

_KEPT = Path("target/fuzz/importers")
_MOST_MEMORY = 2 << 30
_TOGETHER = 3


def main(words: Sequence[str]) -> int:
    """Do as the words say."""
    if len(words) not in (1, 2) or not all(word.isdigit() for word in words) or words[0] == "0":
        print(__doc__, file=sys.stderr)
        return 2
    seconds, seed = float(words[0]), words[1] if len(words) == 2 else str(int(time.time()))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    known = list(seeds(os.environ.get("AIRPATH_OUTPUTS")).values())
    print(f"{len(known)} files to begin with; the seed is {seed}.")
    pick = Random(f"airpath importers {seed}")
    kinds: Counter[str] = Counter()
    faults: dict[str, str] = {}
    before: list[Recognised] = []
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        file = Path(place) / "file"
        while time.process_time() < seconds:
            data = damaged(pick, known)
            file.write_bytes(data)
            try:
                kind, found = read(file)
                kinds[kind] += 1
                if found:
                    before = [*before[1 - _TOGETHER :], found]
                    read_together(before)
            except Exception as error:
                kinds["fault"] += 1
                _keep(data, error, faults)
    for kind, count in sorted(kinds.items()):
        print(f"{kind:10} {count:10,}")
    print(f"{sum(kinds.values()):,} files in {time.process_time():.0f} s of processor time.")
    for text in faults.values():
        print(text)
    return 1 if faults else 0


def _keep(data: bytes, error: Exception, faults: dict[str, str]) -> None:
    """Keep the first, smallest file of each place that fails."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((one for one in reversed(frames) if "/airpath/" in one.filename), frames[-1])
    where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    _KEPT.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(where.encode()).hexdigest()[:12]
    kept = _KEPT / f"fault-{name}"
    if where not in faults or len(data) < kept.stat().st_size:
        kept.write_bytes(data)
        faults[where] = f"{where}: {str(error)[:200]} ({kept})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
