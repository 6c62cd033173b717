"""Measures speed in steps; a step that fails does not stop the later ones.

Exit code 1 if a step failed; the last line names the failed steps. A step with exit code 3 could
not be measured on this machine, and has printed why.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from airpath_dev import ROOT
from airpath_dev.harness import FINE, NOT_CHECKED, WRONG, say


@dataclass(frozen=True)
class Step:
    """A command, which is run in the project's directory."""

    name: str
    command: tuple[str, ...]
    peer: bool = False
    """The step builds a program for comparison, which is left out if the build fails."""


def _bench(name: str) -> Step:
    return Step(name, (sys.executable, "-m", "airpath_dev", name))


STEPS = (
    Step(
        "BBR's tests",
        (
            *("cargo", "test", "--quiet", "--release", "-p", "airpath-sim"),
            *("--test", "bbr", "--", "--ignored"),
        ),
    ),
    Step("ns-3's source", ("benches/peers/install.sh",), peer=True),
    Step("peers", ("make", "--no-print-directory", "-C", "benches/peers", "all"), peer=True),
    *map(_bench, ("bench-speed", "instructions")),
    *map(_bench, ("bench-emulation", "bench-report", "bench-findings", "bench-capture")),
    *map(_bench, ("bench-capture-page", "bench-campaign", "bench-explore")),
)


def main() -> int:
    """Measure speed, beside htsim and ns-3, step by step."""
    return every(STEPS)


def every(steps: Sequence[Step]) -> int:
    failed, left_out = [], []
    for step in steps:
        code = _run(step)
        if code == NOT_CHECKED or (code and step.peer):
            left_out.append(step.name)
        elif code:
            failed.append(f"{step.name} (exit code {code})")
    if left_out:
        say(f"left out: {', '.join(left_out)}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return WRONG if failed else FINE


def _run(step: Step) -> int:
    say(step.name)
    try:
        return subprocess.run(step.command, cwd=ROOT, check=False).returncode
    except OSError as error:
        say(f"{step.command[0]} cannot run: {error.strerror}")
        return WRONG
