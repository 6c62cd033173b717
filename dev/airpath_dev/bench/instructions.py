"""Counts instructions per packet, to judge changes of speed.

Times on a shared machine differ by some percent from run to run, and by half beside other work.
Instruction counts do not: callgrind (valgrind) counts them on a virtual processor, and a program
has the same count each time. Each case is simulated for a short and for a longer time. Their
difference, divided by the segments delivered in between, excludes the start. A packet is a
delivered segment, its acknowledgement included.

A count does not say how long instructions take: only bench-speed shows cache misses. Counts of
different compilers or processors are not comparable.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from airpath.errors import InputError
from airpath_dev import ROOT
from airpath_dev.harness import WRONG, install, need, say, table

from .common import Row, build, callgrind, cpu_model, first_line

RECORDED = ROOT / "benches/instructions.json"
CASES = {"wire": (4, 12), "lte": (4, 12), "nr": (2, 5)}
"""Simulated seconds, short and long; slow start ends within the first second."""
NAMES = {
    "wire": "wire, 230 Mb/s, 30 ms",
    "lte": "LTE 20 MHz (lte-20)",
    "nr": "NR 100 MHz TDD (nr-n78)",
}


@dataclass(frozen=True)
class Count:
    """callgrind's count for one process."""

    instructions: int
    segments: int


@dataclass(frozen=True)
class Case:
    """The counts of one case, short and long."""

    name: str
    short: Count
    long: Count

    @property
    def segments(self) -> int:
        """Segments that the longer run delivered beyond the short one."""
        return self.long.segments - self.short.segments

    @property
    def per_packet(self) -> float:
        """Instructions per packet."""
        return (self.long.instructions - self.short.instructions) / self.segments


def main(
    only: Annotated[list[str] | None, typer.Option(metavar="CASE", help="One or several.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every count too.")] = None,
    record: Annotated[bool, typer.Option(help="Keep them to compare with.")] = False,
) -> None:
    """Count instructions per packet, beside what benches/instructions.json has."""
    install("valgrind")
    need("valgrind", exit_code=WRONG)
    if unknown := {*(only or ())} - {*CASES}:
        raise InputError(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    cases = measure(only or list(CASES))
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    print(render(cases, known))
    if json_file:
        json_file.write_text(json.dumps([asdict(case) for case in cases], indent=2) + "\n")
    if record:
        kept = json.dumps(recorded(cases, known), indent=2)
        RECORDED.write_text(f"{kept}\n", encoding="utf-8")


def measure(names: list[str]) -> list[Case]:
    """Count the cases, one after the other."""
    program = build("packets")
    cases = []
    for name in names:
        say(f"counting {NAMES[name]}")
        cases.append(Case(name, *(count(program, name, seconds) for seconds in CASES[name])))
    return cases


def count(program: Path, name: str, seconds: int) -> Count:
    """Run one case under callgrind."""
    instructions, said = callgrind([str(program), name, str(seconds)])
    return Count(instructions, int(said))


def render(cases: list[Case], known: Row) -> str:
    """Return a Markdown table of the counts beside the recorded ones."""
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
    said = table(head, rows, padded=True)
    if before:
        said += f"\n\nRecorded at {known['commit']}, {known['rustc']}, {known['cpu']}."
    return said


def recorded(cases: list[Case], known: Row) -> Row:
    """Return the document to store; cases that were not counted keep their recorded counts."""
    counts = dict(known.get("instructions_per_packet", {}))
    counts |= {case.name: round(case.per_packet, 2) for case in cases}
    return {
        "commit": first_line(["git", "describe", "--always", "--dirty"]),
        "rustc": first_line(["rustc", "--version"]),
        "cpu": cpu_model(),
        "instructions_per_packet": counts,
    }
