"""Instructions that a packet costs: the figure that speed is judged by from one commit to the next.

    .venv/bin/python benches/instructions.py            # beside what benches/instructions.json has
    .venv/bin/python benches/instructions.py --record   # writes that file

Times on a shared machine differ by some percent from run to run, and by half beside other work.
Instructions do not: callgrind (valgrind) counts them on its own processor, and the same program
has the same number each time. Each case is simulated for a short and for a longer time; the
difference, divided by the segments that arrived in between, has no start in it. A packet is a
delivered segment, its acknowledgement included.

What instructions do not say: how long each takes. What misses the caches is seen by
benches/bench.py only. Counts of different compilers or processors are not comparable.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from common import ROOT, BenchError, Row, build, cpu_model, first_line, table

RECORDED = ROOT / "benches/instructions.json"
CASES = {"wire": (4, 12), "lte": (4, 12), "nr": (2, 5)}
"""Simulated seconds: slow start is over in the first."""
NAMES = {
    "wire": "wire, 230 Mb/s, 30 ms",
    "lte": "LTE 20 MHz (lte-20)",
    "nr": "NR 100 MHz TDD (nr-n78)",
}


@dataclass(frozen=True)
class Count:
    """What callgrind counted in one process."""

    instructions: int
    segments: int


@dataclass(frozen=True)
class Case:
    """One case, short and long."""

    name: str
    short: Count
    long: Count

    @property
    def segments(self) -> int:
        """Segments that only the longer one delivered."""
        return self.long.segments - self.short.segments

    @property
    def per_packet(self) -> float:
        """Instructions a packet."""
        return (self.long.instructions - self.short.instructions) / self.segments


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=CASES, action="append", help="one case, or several")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every count too")
    parser.add_argument("--record", action="store_true", help="keep them to compare with")
    arguments = parser.parse_args()
    try:
        cases = measure(arguments.only or list(CASES))
    except BenchError as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    print(render(cases, known))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(case) for case in cases], indent=2) + "\n")
    if arguments.record:
        RECORDED.write_text(json.dumps(record(cases, known), indent=2) + "\n", encoding="utf-8")
    return 0


def measure(names: list[str]) -> list[Case]:
    """Count the cases, one after the other."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise BenchError("valgrind is missing: apt-get install valgrind")
    program = build("packets")
    cases = []
    for name in names:
        short, long = CASES[name]
        print(f"counting {NAMES[name]}", file=sys.stderr, flush=True)
        cases.append(
            Case(name, count(valgrind, program, name, short), count(valgrind, program, name, long))
        )
    return cases


def count(valgrind: str, program: Path, name: str, seconds: int) -> Count:
    """Run one case under callgrind, with nothing in its environment that could differ."""
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [valgrind, "--tool=callgrind", f"--callgrind-out-file={place}/out",
             str(program), name, str(seconds)],
            capture_output=True, text=True, check=False, cwd=place, env={},
        )  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"callgrind failed on {name}: {done.stderr.strip()}")
    return Count(collected(done.stderr), int(done.stdout))


def collected(said: str) -> int:
    """Return the instructions that callgrind says it counted."""
    found = re.search(r"Collected\s*:\s*(\d+)", said)
    if found is None:
        raise BenchError(f"callgrind says no count: {said.strip()}")
    return int(found[1])


def render(cases: list[Case], known: Row) -> str:
    """Return a Markdown table, beside what was recorded."""
    before = known.get("instructions_per_packet", {})
    rows = []
    for case in cases:
        now, then = case.per_packet, before.get(case.name)
        rows.append(
            (
                NAMES[case.name],
                f"{case.segments:,}",
                f"{now:,.1f}",
                f"{then:,.1f}" if then else "",
                f"{now / then - 1:+.2%}" if then else "",
            )
        )
    head = ("case", "packets", "instructions / packet", "recorded", "change")
    said = table(head, rows)
    if before:
        said += f"\n\nRecorded at {known['commit']}, {known['rustc']}, {known['cpu']}."
    return said


def record(cases: list[Case], known: Row) -> Row:
    """Return what to keep: cases that were not counted stay."""
    counts = dict(known.get("instructions_per_packet", {}))
    counts |= {case.name: round(case.per_packet, 2) for case in cases}
    return {
        "commit": first_line(["git", "describe", "--always", "--dirty"]),
        "rustc": first_line(["rustc", "--version"]),
        "cpu": cpu_model(),
        "instructions_per_packet": counts,
    }


if __name__ == "__main__":
    sys.exit(main())
