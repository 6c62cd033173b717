"""Damages tool outputs at random and has them read: `make fuzz-importers SECONDS=600`.

    python -m fuzzed SECONDS [SEED]

For so many seconds of processor time. It begins with tests/fuzzed/seeds, and with the files of the
folder that AIRPATH_OUTPUTS names. Exit codes: 0, each was read or refused; 1, one was not: it is
in target/fuzz/importers; 2, bad use.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from airpath.readers.recognise import Recognised

from .check import read, read_together, scratch, seeds
from .faults import Faults, options
from .mutate import damaged

_MOST_MEMORY = 2 << 30
_TOGETHER = 3


def main(words: Sequence[str]) -> int:
    """Do as the words say."""
    given = options(words, __doc__)
    if given is None:
        return 2
    seconds, seed = given
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    known = list(seeds(os.environ.get("AIRPATH_OUTPUTS")).values())
    print(f"{len(known)} files to begin with; the seed is {seed}.")
    pick = Random(f"airpath importers {seed}")
    kinds: Counter[str] = Counter()
    faults = Faults("importers")
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
                faults.keep(file, error)
    return faults.end(kinds, f"{sum(kinds.values()):,} files")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
