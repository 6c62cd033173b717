"""``airpath run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar

if TYPE_CHECKING:
    from airpath import _core
    from airpath.results import Run

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
        help="Run directory; must be new or empty. [default: runs/NAME-DATE-ID]",
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


Scenarios = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO...",
        help="Scenario files, or names of shipped ones.",
        autocompletion=shipped_names,
        show_default=False,
    ),
]


def command(
    scenario: Scenarios,
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
    """Simulate scenarios and keep their tables in run directories.

    Prints one sentence a flow and the most certain findings, or with --json one document
    with stable keys; of several scenarios a document with a list of "runs". With --repeat every
    figure is the mean over the seeds and has a 95 % confidence interval. The report compares
    several scenarios.
    """
    from airpath import execute, provenance, summary
    from airpath import scenario as scenarios
    from airpath.errors import InputError
    from airpath.rundir import check_file_target

    if report is not None:
        check_file_target(report)
    if out is not None and len(scenario) > 1:
        raise InputError("--out is for one scenario; several have a directory each in runs")
    # What is wrong with the last one is said before the first one runs.
    loaded = [scenarios.load(one, sets) for one in scenario]
    runs = []
    for one in loaded:
        with progress_bar("simulating") as progress:
            run = execute.execute(
                one,
                seed=seed,
                repeat=repeat,
                workers=workers,
                out=out,
                default_parent=Path("runs"),
                command=provenance.command_line(),
                progress=progress,
            )
        runs.append(run)
        if not json:
            _say(run, scenarios.stem(one) if len(loaded) > 1 else None)
        _narrate(run, one)
    if json:
        documents = [run.summary for run in runs]
        output(summary.to_json(documents[0] if len(documents) == 1 else {"runs": documents}))
    if report is None:
        places = " ".join(str(run.directory) for run in runs)
        narrate(f"report: airpath report {places} -o report.html")
    else:
        from airpath.report import write_report

        write_report(runs, report)
        narrate(f"report: {report}")
    if any(run.partial for run in runs):
        raise typer.Exit(1)


def _say(run: Run, name: str | None) -> None:
    from airpath import describe

    if name is not None:
        output(f"{name}:")
    for sentence in describe.sentences(run.summary):
        output(sentence)
    for finding in run.findings[:_SHOWN_FINDINGS]:
        output("\n".join(describe.finding_lines(finding)))


def _narrate(run: Run, loaded: _core.Scenario) -> None:
    from airpath import describe

    if loaded.programs:
        narrate(f"not simulated, `airpath emulate` runs them: {', '.join(loaded.programs)}")
    for sentence in describe.partial(run.summary):
        narrate(sentence)
    narrate(f"run directory: {run.directory}")
