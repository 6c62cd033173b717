"""Damages tool outputs at random and reads them.

The undamaged files are in ``seeds`` and in the folder that AIRPATH_OUTPUTS names. Exit
codes: 0, each was read or refused; 1, one was not: it is in target/fuzz/importers; 2, bad use.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from airpath.readers.recognise import Recognised

from .check import read, read_together, seeds
from .faults import Attempt, Seconds, Seed, fuzz
from .mutate import damaged

_MOST_MEMORY = 2 << 30
_TOGETHER = 3


def main(seconds: Seconds = 600, seed: Seed = None) -> int:
    """Damage tool outputs at random and have them read, alone and together."""
    return fuzz("importers", seconds, seed, attempts, most_memory=_MOST_MEMORY)


def attempts(pick: Random, place: Path) -> list[Attempt]:
    """Return the attempts of one round."""
    known = list(seeds(os.environ.get("AIRPATH_OUTPUTS")).values())
    file = place / "file"
    before: list[Recognised] = []

    def attempt() -> list[str]:
        file.write_bytes(damaged(pick, known))
        kind, found = read(file)
        if found:
            before.append(found)
            del before[:-_TOGETHER]
            read_together(before)
        return [kind]

    return [(file, attempt)]
