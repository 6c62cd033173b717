"""Draws runs, captures them at the sender, and compares: `make captures-recorded`.

    python -m recorded [SEED [COUNT]]

Exit codes: 0, what was retransmitted is the same number in all, and the other figures are right in
nine of ten; 1, not; 2, bad use.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .judge import judge

_SHARE = 0.9


def main(words: Sequence[str]) -> int:
    """Do as the words say."""
    if len(words) > 2 or not all(word.isdigit() for word in words):
        print(__doc__, file=sys.stderr)
        return 2
    seed = int(words[0]) if words else 1
    count = int(words[1]) if len(words) > 1 else 60
    faults: Counter[str] = Counter()
    again = spurious = told = same = exits = 0
    for number in range(count):
        with tempfile.TemporaryDirectory() as place:
            judged = judge(seed, number, Path(place))
        faults.update(judged.faults)
        again += judged.again[1]
        told += judged.spurious[0]
        spurious += judged.spurious[1]
        same += judged.spurious[0] == judged.spurious[1]
        exits += judged.exit_round is not None
        if judged.faults:
            rtts = ", ".join(f"{name} {apart:+.2%}" for name, apart in judged.rtt.items())
            print(
                f"{number} ({judged.words}): {', '.join(judged.faults)}: round trip {rtts}; sent "
                f"again {judged.again}, spurious {judged.spurious}, exit {judged.exit_round}"
            )
    print(f"{count} runs, {again} segments retransmitted, {exits} exits.")
    print(f"{spurious} were spurious; {told} are proved, the same number in {same} runs.")
    for name, what in {
        "p50": "median round trip within 1 %", "mean": "mean within 1 %",
        "p95": "95th percentile within 1 %", "again": "retransmitted: the same number",
        "spurious": "spurious: as many as can be proved",
        "exit": "slow start's exit within one round",
    }.items():  # fmt: skip
        print(f"{what:38} {count - faults[name]} of {count}")
    most = (1 - _SHARE) * count
    return 1 if faults["again"] or any(one > most for one in faults.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
