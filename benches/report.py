"""CPU time of a report of every shipped scenario, in a process of its own, as `airpath report` is.

.venv/bin/python benches/report.py                  # all of them
.venv/bin/python benches/report.py wire lte-20      # these only
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import airpath
from airpath import AirpathError, _core
from common import table

LIMIT = 3.0
"""Times what Python and the libraries cost that a report imports: a second where they take 0.33."""

_LIBRARIES = [sys.executable, "-c", "import jinja2, polars, typer"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios (all)")
    names = parser.parse_args().names or sorted(name for name, _ in _core.shipped())
    try:
        measured = [(name, cost(name)) for name in names]
    except AirpathError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    rows = (
        (name, f"{of.cpu_s:.2f}", f"{of.ratio:.2f}", f"{of.size / 1e6:.1f}")
        for name, of in measured
    )
    print(table(("report", "CPU s", "x libraries", "MB"), rows))
    print(f"\nThe limit is {LIMIT:g} times what Python and the libraries cost.")
    return int(any(of.ratio > LIMIT for _, of in measured))


@dataclass(frozen=True)
class Cost:
    """CPU time, user and system, each the best of three by turns; bytes of the page."""

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


if __name__ == "__main__":
    sys.exit(main())
