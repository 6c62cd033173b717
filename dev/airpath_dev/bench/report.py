"""Measures the CPU time of a report for every shipped scenario, each in a separate process."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import airpath
from airpath import _core
from airpath_dev.harness import FINE, WRONG, table

LIMIT = 3.0
"""Limit as a multiple of the CPU time to start Python and import a report's libraries: 1 s on a
machine where that takes 0.33 s."""

_LIBRARIES = [sys.executable, "-c", "import jinja2, polars, typer"]


def main(
    names: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...")] = None,
) -> int:
    """Measure the processor time of a report of every shipped scenario, or of those named."""
    every = names or sorted(name for name, _ in _core.shipped())
    measured = [(name, cost(name)) for name in every]
    rows = (
        (name, f"{of.cpu_s:.2f}", f"{of.ratio:.2f}", f"{of.size / 1e6:.1f}")
        for name, of in measured
    )
    print(table("report | CPU s | x libraries | MB", rows, padded=True))
    print(f"\nThe limit is {LIMIT:g} times what Python and the libraries cost.")
    return WRONG if any(of.ratio > LIMIT for _, of in measured) else FINE


@dataclass(frozen=True)
class Cost:
    """CPU times (user + system), each the best of three in turns, and the page's size in bytes."""

    cpu_s: float
    libraries_s: float
    size: int

    @property
    def ratio(self) -> float:
        return self.cpu_s / self.libraries_s


def cost(scenario: str) -> Cost:
    with tempfile.TemporaryDirectory() as directory:
        run, page = Path(directory) / "run", Path(directory) / "report.html"
        airpath.run(scenario, out=run)
        command = [sys.executable, "-m", "airpath", "report", str(run), "-o", str(page)]
        turns = [(cpu_of(command), cpu_of(_LIBRARIES)) for _ in range(3)]
        report, libraries = (min(seconds) for seconds in zip(*turns, strict=True))
        return Cost(report, libraries, page.stat().st_size)


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
