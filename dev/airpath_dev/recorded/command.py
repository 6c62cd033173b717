"""Draws runs, captures them at the sender, and compares the capture with what the run records.

Exit codes: 0, the number of retransmissions is equal in all runs, and the other figures are right
in nine of ten; 1, they are not; 2, bad use.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from airpath_dev.harness import Count, Seed, say

from .judge import FIGURES, judge, verdict

_FIGURES = {
    **FIGURES,
    "spurious": "spurious: as many as can be proved",
    "exit": "slow start's exit within one round",
}


def main(seed: Seed = 1, count: Count = 60) -> int:
    """Draw COUNT runs, capture them at the sender, and compare with what the run itself records."""
    say(f"the seed is {seed}")
    every = []
    for number in range(count):
        with tempfile.TemporaryDirectory() as place:
            every.append(judge(seed, number, Path(place)))
        if (judged := every[-1]).faults:
            rtts = ", ".join(f"{name} {apart:+.2%}" for name, apart in judged.rtt.items())
            print(
                f"{number} ({judged.words}): {', '.join(judged.faults)}: round trip {rtts}; sent "
                f"again {judged.again}, spurious {judged.spurious}, exit {judged.exit_round}"
            )
    again = sum(one.again[1] for one in every)
    exits = sum(one.exit_round is not None for one in every)
    told, spurious = (sum(one.spurious[side] for one in every) for side in (0, 1))
    same = sum(one.spurious[0] == one.spurious[1] for one in every)
    print(f"{count} runs, {again} segments retransmitted, {exits} exits.")
    print(f"{spurious} were spurious; {told} are proved, the same number in {same} runs.")
    return verdict(_FIGURES, [one.faults for one in every], {})
