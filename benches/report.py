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
from pathlib import Path

import airpath
from airpath import AirpathError, _core
from common import table

LIMIT_S = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios (all)")
    names = parser.parse_args().names or sorted(name for name, _ in _core.shipped())
    try:
        measured = [(name, *cost(name)) for name in names]
    except AirpathError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    rows = ((name, f"{cpu:.2f}", f"{size / 1e6:.1f}") for name, cpu, size in measured)
    print(f"{table(('report', 'CPU s', 'MB'), rows)}\n\nThe limit is {LIMIT_S:g} s.")
    return int(any(cpu > LIMIT_S for _, cpu, _ in measured))


def cost(scenario: str) -> tuple[float, int]:
    """CPU seconds, user and system, of the best of three; bytes of the page."""
    with tempfile.TemporaryDirectory() as directory:
        run, page = Path(directory) / "run", Path(directory) / "report.html"
        airpath.run(scenario, out=run)
        command = [sys.executable, "-m", "airpath", "report", str(run), "-o", str(page)]
        return min(cpu_of(command) for _ in range(3)), page.stat().st_size


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
