"""``airpath run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar

_SHOWN_FINDINGS = 3


def shipped_names(incomplete: str) -> list[str]:
    """Complete names of shipped scenarios in the shell."""
    from airpath.scenario import shipped_scenarios

    return [name for name in shipped_scenarios() if name.startswith(incomplete)]


Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or the name of a shipped one.",
        autocompletion=shipped_names,
        show_default=False,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a scenario key by its dotted path, e.g. flow.0.window_bytes=65536. Repeatable.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Run directory; must be new or empty. [default: runs/NAME-ID]",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Threads for several seeds. Results do not depend on it. [default: all cores]",
        show_default=False,
    ),
]


def command(
    scenario: Scenario,
    sets: Sets = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="First seed. [default: the scenario's]", show_default=False
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds: N, N+1, …")] = 1,
    workers: Workers = None,
    out: Out = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the HTML report.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Simulate a scenario and keep its tables in a run directory.

    Prints one sentence a flow and the most certain findings, or with --json one document
    with stable keys. With --repeat every figure is the mean over the seeds and has a 95 %
    confidence interval.
    """
    from airpath import describe, execute, provenance, summary
    from airpath import scenario as scenarios
    from airpath.rundir import check_file_target

    if report is not None:
        check_file_target(report)
    loaded = scenarios.load(scenario, sets)
    with progress_bar("simulating") as progress:
        run = execute.execute(
            loaded,
            seed=seed,
            repeat=repeat,
            workers=workers,
            out=out,
            default_parent=Path("runs"),
            command=provenance.command_line(),
            progress=progress,
        )
    if json:
        output(summary.to_json(run.summary))
    else:
        for sentence in describe.sentences(run.summary):
            output(sentence)
        for finding in run.findings[:_SHOWN_FINDINGS]:
            output("\n".join(describe.finding_lines(finding)))
    if loaded.programs:
        narrate(f"not simulated, `airpath emulate` runs them: {', '.join(loaded.programs)}")
    for sentence in describe.partial(run.summary):
        narrate(sentence)
    narrate(f"run directory: {run.directory}")
    if report is None:
        narrate(f"report: airpath report {run.directory} -o report.html")
    else:
        from airpath.report import write_report

        write_report([run], report)
        narrate(f"report: {report}")
    if run.partial:
        raise typer.Exit(1)
