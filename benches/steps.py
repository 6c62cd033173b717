"""The steps of ``make bench``, one after another: each runs, whatever became of those before it.

    .venv/bin/python benches/steps.py

Exit code 1 if a step failed; the last line names those that did. A step that ends with 3 could not
be measured on this machine, and has said why.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from common import ROOT

LEFT_OUT = 3
"""Exit code of a step for which this machine lacks something."""


@dataclass(frozen=True)
class Step:
    """A command, which is run in the project's directory."""

    name: str
    command: tuple[str, ...]
    tests: bool = False
    """It imports what tests share."""
    peer: bool = False
    """It builds what is compared with, which is left out where that fails."""


def _bench(name: str, *, tests: bool = False) -> Step:
    return Step(name, (sys.executable, f"benches/{name}.py"), tests=tests)


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
    _bench("bench"),
    Step("instructions", ("make", "--no-print-directory", "instructions")),
    *map(_bench, ("emulation", "report", "findings", "capture")),
    _bench("capture_page", tests=True),
    _bench("campaign"),
    _bench("explore", tests=True),
)


def main(steps: Sequence[Step] = STEPS) -> int:
    failed, left_out = [], []
    for step in steps:
        code = _run(step)
        if code == LEFT_OUT or (code and step.peer):
            left_out.append(step.name)
        elif code:
            failed.append(f"{step.name} (exit code {code})")
    if left_out:
        print(f"bench: left out: {', '.join(left_out)}", file=sys.stderr)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(step: Step) -> int:
    print(f"bench: {step.name}", file=sys.stderr, flush=True)
    environment = dict(os.environ)
    if step.tests:
        environment["PYTHONPATH"] = "tests:tests/python"
    try:
        return subprocess.run(step.command, cwd=ROOT, env=environment, check=False).returncode
    except OSError as error:
        print(f"bench: {step.command[0]} cannot run: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
