"""``airpath judge``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import aligned, narrate, output, progress_bar
from airpath.cli.emulate import enter_user_namespace
from airpath.cli.run import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.judge.verdicts import Fault, Range, Row

INVALID = 3


def command(
    congestion: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME|FILE...",
            help="Congestion controls: the host's by name, or BPF objects (FILE or FILE:NAME).",
        ),
    ],
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of blocks: each runs everything once.")
    ] = 2,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The judgement's directory. Complete runs in it are kept, missing ones are added. "
            "[default: a new one under runs]",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write an HTML page."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Judge the kernel's congestion controls over a fixed set of emulated paths.

    The set has a wire, LTE, NR, HSPA, a lossy, a bloated and a policed path. On each, a congestion
    control runs alone beside a ping; on some also beside CUBIC, BBR and itself. CUBIC always runs
    too, and faults are found by comparison with it. A block takes about four minutes for three
    congestion controls. The exit code is 0 whatever the verdicts are, and 3 if a run never counted
    because the host was late. Needs root.
    """
    enter_user_namespace()
    from airpath.judge import trials, verdicts
    from airpath.judge.document import document
    from airpath.runs import provenance, summary
    from airpath.runs.directories import check_file_target

    if report is not None:
        check_file_target(report)
    with progress_bar("judging") as progress:
        done = trials.judge(
            congestion,
            blocks=repeat,
            out=out,
            command_line=provenance.command_line(),
            progress=progress,
            say=narrate,
        )
    rows = verdicts.rows(done)
    faults = verdicts.faults(rows)
    told = document(done, rows, faults, repeat)
    summary.write_json(done.directory / "verdicts.json", told)
    if json:
        output(summary.to_json(told))
    else:
        output(table(rows, faults))
    if report is not None:
        from airpath.report.judge import write_judge_report

        write_judge_report(told, table_rows(rows), report)
        narrate(f"report: {report}")
    for trial in done.missing:
        narrate(f"{trial.place}: no run counts")
    narrate(f"directory: {done.directory}")
    raise SystemExit(INVALID if done.missing else 0)


HEAD = (
    "path", "congestion", "Mb/s", "RTT", "p95", "retransmitted", "ping", "p95", "lost", "by cubic",
    "by bbr", "by itself",
)  # fmt: skip
"""Head of the table. Times are in ms; the last three are shares of the goodput beside another."""


def table_rows(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the figures as text: means over the blocks."""
    return [
        (
            row["path"],
            row["congestion"],
            _text(row["goodput_mbps"], "{:.3g}"),
            *(_text(row[key], "{:.0f}") for key in ("rtt_ms", "rtt_p95_ms")),
            _share(row["retransmitted"], "{:.2g}"),
            *(_text(row[key], "{:.0f}") for key in ("ping_ms", "ping_p95_ms")),
            _share(row["ping_lost"], "{:.2g}"),
            *(_share(row["share"].get(peer), "{:.0f}") for peer in ("cubic", "bbr", "itself")),
        )
        for row in rows
    ]


def table(rows: Sequence[Row], faults: Sequence[Fault]) -> str:
    """Return the table and the faults as aligned text."""
    lines = aligned([HEAD, *table_rows(rows)], range(2, len(HEAD)))
    lines.append("")
    lines += [f"{one.congestion} {one.fault} ({one.path}): {one.because}" for one in faults]
    if not faults:
        lines.append("no faults beside CUBIC")
    return "\n".join(lines)


def _text(value: Range | None, form: str) -> str:
    return "" if value is None else form.format(value["mean"])


def _share(value: Range | None, form: str) -> str:
    return "" if value is None else f"{form.format(100 * value['mean'])} %"
