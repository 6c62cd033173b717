"""Draws paths, captures them, fits scenarios, and compares the fits with what was drawn.

Exit code 1: a figure is wrong. Emulations need root; without it they are left out with a message.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from airpath_dev.harness import FINE, WRONG, Seed, emulable

from .draw import draw
from .judge import capture, judge


def main(
    seed: Seed = 1,
    simulated: int = 10,
    emulated: int = 5,
    keep: Path | None = None,
) -> int:
    """Draw paths, capture them, fit scenarios, and compare."""
    emulated = emulable(emulated)
    print(f"Seed {seed}: {simulated} simulated and {emulated} emulated truths.")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="airpath-fitted-") as scratch:
        place = keep or Path(scratch)
        jobs = [(number, False) for number in range(simulated)]
        jobs += [(number, True) for number in range(emulated)]
        for number, is_emulated in jobs:
            wrong += _one(seed, number, place, is_emulated)
    print(f"{wrong} figures are wrong.")
    return WRONG if wrong else FINE


def _one(seed: int, number: int, place: Path, emulated: bool) -> int:
    truth = draw(seed, number, emulated=emulated)
    kind = "emulated" if emulated else "simulated"
    home = place / kind
    home.mkdir(parents=True, exist_ok=True)
    try:
        file, dropped = capture(truth, home, emulated=emulated)
    except RuntimeError as failed:
        print(f"{kind} {number}: not run: {failed}")
        return 0
    fitted, figures = judge(truth, file, dropped)
    print(f"{kind} {number} ({truth.words}), score {fitted.score.total:.2f}")
    for one in figures:
        fit = "not identifiable" if one.fitted is None else f"{one.fitted:.5g}"
        error = "" if one.error is None else f"{one.error:+.1%}"
        print(f"  {one.name:9} {one.true:>10.5g} {fit:>17} {error:>8}  {one.verdict}")
    sys.stdout.flush()
    return sum(one.verdict == "wrong" for one in figures)
