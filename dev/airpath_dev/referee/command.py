"""Compares the host kernel's TCP with airpath's and writes a table (root)."""

from __future__ import annotations

import json as jsonlib
import shutil
from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import progress_bar
from airpath.errors import AirpathError, InputError
from airpath.runs.results import Run
from airpath.runs.summary import write_json
from airpath.twin import runs
from airpath.twin.comparable import Comparable, make_comparable
from airpath_dev import ROOT
from airpath_dev.harness import MEASURED, say, write

from . import machine, table
from .rows import SCENARIO, Row, matrix


def main(
    only: Annotated[
        list[str] | None, typer.Option(metavar="CC", help="Rows of this congestion control.")
    ] = None,
    rate: Annotated[list[int] | None, typer.Option(metavar="MBPS")] = None,
    rtt: Annotated[list[int] | None, typer.Option(metavar="MS")] = None,
    buffer: Annotated[list[float] | None, typer.Option(metavar="BDP")] = None,
    loss: Annotated[list[float] | None, typer.Option(metavar="SHARE")] = None,
    flow: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="bulk, stock or file.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Runs of rows without loss.")] = 2,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of rows with random loss.")] = 5,
    duration: Annotated[
        float | None,
        typer.Option(metavar="S", help="Seconds a run, but for files. [default: 15 to 30]"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/referee",
    page: Annotated[Path, typer.Option(help="The table.")] = MEASURED / "referee.md",
    table_only: Annotated[bool, typer.Option(help="Only with the runs that are there.")] = False,
    again: Annotated[
        bool, typer.Option(help="Simulate with this build beside what the kernel did for another.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the selected rows as JSON.")] = False,
) -> None:
    """Run the host kernel's TCP and the simulated one over the same path, and compare them.

    Runs that are complete are kept. The table has all rows that are there, whatever was selected.
    """
    rows = matrix(duration)
    wanted = [
        row
        for row in rows
        if all(
            not allowed or value in allowed
            for value, allowed in (
                (row.congestion, only),
                (row.rate_mbps, rate),
                (row.rtt_ms, rtt),
                (row.buffer_bdp, buffer),
                (row.loss, loss),
                (row.flow, flow),
            )
        )
    ]
    if not wanted:
        raise InputError("no row is like that")
    if not table_only:
        for row in wanted:
            _run(row, seeds if row.loss else repeat, out, again=again)
    compared = [row for row in (_kept(row, out) for row in rows) if row.kernel]
    write(page, table.markdown(compared, len(rows)))
    if json:
        selected = [entry for entry in compared if entry.row in wanted]
        print(jsonlib.dumps(table.as_json(selected), indent=2))


def _run(row: Row, seeds: int, out: Path, *, again: bool) -> None:
    """The twin of a row; what a busy machine did is not averaged in."""
    comparable = make_comparable(str(SCENARIO), row.settings())
    for reason in comparable.reasons.values():
        raise AirpathError(f"{row.name} cannot be compared: {reason}")
    if again:
        _forget_simulated(out / row.name, comparable)
    with progress_bar(row.name) as progress:
        runs.run(
            comparable,
            seeds=seeds,
            out=out / row.name,
            progress=progress,
            say=say,
            judge=lambda run: machine.judge(row, run),
        )


def _forget_simulated(place: Path, comparable: Comparable) -> None:
    """Keep the kernel's runs of the same scenario, which another build may have carried."""
    plan = place / runs.PLAN
    if not plan.is_file():
        return
    found = jsonlib.loads(plan.read_text(encoding="utf-8"))
    same = (comparable.scenario.sha256, comparable.kernel)
    if (found["scenario_sha256"], found["kernel"]) != same:
        raise AirpathError(f"{place} holds another scenario or kernel: nothing of it can be kept")
    for simulated in place.glob("seed-*/simulated"):
        shutil.rmtree(simulated)
    write_json(plan, {**found, "id": runs.identifier(comparable)})


def _kept(row: Row, out: Path) -> table.Compared:
    """Both sides of the seeds that count."""
    kernel, simulated = [], []
    for place in sorted((out / row.name).glob("seed-*")):
        if (place / "emulated").is_dir() and (place / "simulated").is_dir():
            kernel.append(table.figures(Run.open(place / "emulated")))
            simulated.append(table.figures(Run.open(place / "simulated")))
    return table.Compared(row, kernel, simulated)
