"""Plants causes at random, captures at the server, and counts which causes are blamed (root).

Two of three cases have a cause; every third is healthy. Judged cases are kept in ``--keep``, and
the command resumes from there. Emulations need root; without it they are left out with a message.
Exit code 1: fewer than 90 % of the causes that cost a half are named first,
or more than 5 % of the healthy paths are blamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from airpath.cli.console import progress_bar
from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, Seed, emulable, say

from .judge import Outcome, outcome

_AT_ONCE = {False: 2, True: 3}
"""Emulations of these rates leave the machine idle for most of their time."""
_WANTED = 0.9
_HEALTHY = 0.95


def main(
    seed: Seed = 1,
    simulated: int = 174,
    emulated: int = 87,
    keep: Path = ROOT / "target/planted",
) -> int:
    """Plant causes at random, capture at the server, and count how often they are blamed."""
    worst = FINE
    for count, is_emulated in ((simulated, False), (emulable(emulated), True)):
        if not count:
            continue
        kind = "emulated" if is_emulated else "simulated"
        found = _all(seed, count, keep / kind, is_emulated)
        worst = max(worst, _tell(kind, seed, found))
    return worst


def _all(seed: int, count: int, place: Path, emulated: bool) -> list[Outcome]:
    place.mkdir(parents=True, exist_ok=True)
    found = []
    label = "emulated" if emulated else "simulated"
    with ProcessPoolExecutor(_AT_ONCE[emulated]) as pool, progress_bar(label) as shown:
        jobs = [
            pool.submit(outcome, seed, number, place, emulated=emulated) for number in range(count)
        ]
        for number, job in enumerate(jobs):
            try:
                found.append(job.result())
            except RuntimeError as failed:
                say(f"case {number} is not judged: {failed}")
            shown((number + 1) / count)
    return found


def _tell(kind: str, seed: int, found: Sequence[Outcome]) -> int:
    """Print what was right and wrong; 1 if it is not enough."""
    print(f"{kind}, seed {seed}: {len(found)} cases")
    planted = [one for one in found if one.cause]
    for cause in sorted({one.cause for one in planted if one.cause}):
        print("  " + _row(cause, [one for one in planted if one.cause == cause]))
    for one in found:
        if not one.right and not one.traceless:
            print(f"  {one.case} {one.words}: {', '.join(one.named) or 'nothing'} is named")
    traceless = [one for one in planted if one.traceless]
    for why in sorted({one.traceless or "" for one in traceless}):
        same = [one for one in traceless if one.traceless == why]
        causes = ", ".join(sorted({one.cause or "" for one in same}))
        print(f"  {len(same)} leave no trace at the server ({causes}): {why}")
    seen = [one for one in planted if not one.traceless]
    severe = [one for one in seen if one.is_severe]
    healthy = [one for one in found if not one.cause]
    print(f"  {_share('first, of those that cost a half', severe)}")
    print(f"  {_share('first, of those that cost a seventh or more', seen)}")
    print(f"  {_share('first, the traceless ones included', planted)}")
    print(f"  {_share('healthy, and nothing named', healthy)}")
    enough = _part(severe) >= _WANTED and _part(healthy) >= _HEALTHY
    return FINE if enough else WRONG


def _row(cause: str, cases: Sequence[Outcome]) -> str:
    seen = [one for one in cases if not one.traceless]
    none = f", {len(cases) - len(seen)} without a trace" if len(cases) > len(seen) else ""
    return f"{cause:22} {sum(one.right for one in seen):3} of {len(seen):3}{none}"


def _part(cases: Sequence[Outcome]) -> float:
    return sum(one.right for one in cases) / len(cases) if cases else 1.0


def _share(what: str, cases: Sequence[Outcome]) -> str:
    return f"{what}: {sum(one.right for one in cases)} of {len(cases)} ({_part(cases):.1%})"
