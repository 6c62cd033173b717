"""Simulates and emulates scenarios, compares the two, and writes a page (root)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import progress_bar
from airpath.errors import InputError
from airpath.twin import compare, runs
from airpath.twin.comparable import make_comparable
from airpath_dev import ROOT
from airpath_dev.harness import MEASURED, heading, say, table, write

from .rows import FOUND, ROWS, Row

Done = tuple[Row, runs.Twin, list[compare.Figure], str]


def main(
    only: Annotated[
        list[str] | None, typer.Argument(metavar="[ROW]...", help="Run these rows only.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/twin",
    page: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "twin.md",
) -> None:
    """Run every scenario both simulated and emulated, and write what differs.

    Complete runs are kept. The page has all rows, so the runs of rows not named must exist.
    """
    unknown = set(only or ()) - {row.name for row in ROWS}
    if unknown:
        there = ", ".join(row.name for row in ROWS)
        raise InputError(f"no row {', '.join(sorted(unknown))}; there are {there}")
    done = [_run(row, out / row.name) for row in ROWS if not only or row.name in only]
    if not only:
        write(page, markdown(done))


def _run(row: Row, out: Path) -> Done:
    comparable = make_comparable(row.scenario, row.sets)
    with progress_bar(row.name) as progress:
        twin = runs.run(comparable, seeds=row.seeds, out=out, progress=progress, say=say)
    figures = compare.compare(twin)
    verdict = compare.overall(twin, figures)
    say(f"{row.name}: {verdict}")
    return row, twin, figures, verdict


def markdown(done: Sequence[Done]) -> list[str]:
    """The page."""
    first = done[0][1].comparable
    limited = [figure for _, _, figures, _ in done for figure in figures if figure.limit]
    agreeing = [figure for figure in limited if figure.verdict == compare.AGREES]
    replayed = [compare.parity(pair.emulated) for _, twin, _, _ in done for pair in twin.valid]
    lines = [
        heading(
            "Twins: the same scenario simulated and emulated", "twin", f"kernel {first.kernel}"
        ),
        "Each scenario below ran twice: on the virtual clock with the simulated TCP, and on the",
        "real clock with the kernel's, over the same path and cell. `airpath twin SCENARIO` does",
        "this for any scenario; [metrics](../concepts/metrics.md) defines the figures. The",
        f"simulated endpoints have the profile `{first.profile}`. Their receivers aggregate",
        "segments that arrive at one instant, as the emulation delivers them, and hosts take some",
        "tens of microseconds ([ADR 106](../adr/0106-twin-hosts-take-time.md)).",
        "",
        "Limits: goodput 5 %, median RTT 10 %, 95th percentile 20 %, the end of slow start one",
        "base RTT and 20 % in cwnd. A difference is emulated over simulated, minus one, of the",
        "means over the seeds. Emulated runs that were too late were repeated, and do not count in",
        "the means.",
        "",
        f"**{len(agreeing)} of {len(limited)} figures with a limit agree; "
        f"{sum(verdict == compare.AGREES for *_, verdict in done)} of {len(done)} scenarios agree "
        "in all of them.**",
        f"{sum(one['left'] for one in replayed)} emulated packets were replayed on the virtual",
        f"clock: {sum(not one['same'] for one in replayed)} of {len(replayed)} runs had different "
        "departure times.",
        "",
        table(
            "scenario | | verdict | late, p99 µs:",
            (
                (f"[{row.name}](#{row.name})", row.shape, verdict, _late(twin))
                for row, twin, _, verdict in done
            ),
        ),
    ]
    for row, twin, figures, _ in done:
        lines += ["", f"## {row.name}", "", *_section(row, twin, figures)]
    return lines


def _late(twin: runs.Twin) -> str:
    ways = [
        way["lateness_us"]
        for pair in twin.valid
        for way in pair.emulated.summary["emulation"]["directions"].values()
    ]
    return f"{max(way['p99'] for way in ways if way):.0f}" if any(ways) else ""


def _section(row: Row, twin: runs.Twin, figures: Sequence[compare.Figure]) -> list[str]:
    sets = "".join(f" --set {shlex.quote(key)}" for key in row.sets)
    seeds = f" --seeds {row.seeds}" if row.seeds > 1 else ""
    lines = [f"`airpath twin {row.scenario}{sets}{seeds}`", ""]
    thrown = sum(len(pair.invalid) for pair in twin.pairs)
    if thrown:
        lines += [f"{thrown} emulated runs did not count, and were repeated.", ""]
    if not twin.valid:
        return [*lines, "No run counts, because the machine was too late."]
    rows = [list(compare.row(figure)) for figure in figures]
    for figure, cells in zip(figures, rows, strict=True):
        cells[-1] += f": {figure.note}" if figure.note else ""
    head = "flow | figure | simulated: | emulated: | difference: | limit: | verdict"
    lines.append(table(head, rows))
    if any(figure.verdict == compare.DIFFERS for figure in figures):
        lines += ["", f"Found: {FOUND.get(row.name, 'not looked into yet.')}"]
    return lines
