"""``airpath run``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.base.choices import Explain
from airpath.cli.console import narrate, output, progress_bar

if TYPE_CHECKING:
    from airpath import _core
    from airpath.runs.results import Run

_FIRST_SENTENCES = 4
"""Flows that are told before the causes; the others follow."""
_USUAL_RUNS = 25


def shipped_names(incomplete: str) -> list[str]:
    """Complete names of shipped scenarios in the shell."""
    from airpath.scenario import shipped_scenarios

    return [name for name in shipped_scenarios() if name.startswith(incomplete)]


Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or the name of a shipped scenario.",
        autocompletion=shipped_names,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a scenario key by its dotted path: flow.0.window_bytes=65536. Repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The run directory, which must be new or empty. [default: runs/NAME-DATE-ID]",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Number of threads for several seeds; results do not depend on it. [default: all "
        "cores]",
    ),
]


Scenarios = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO...",
        help="Scenario files, or names of shipped scenarios.",
        autocompletion=shipped_names,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="The first seed. [default: the scenario's]"),
]
Repeat = Annotated[
    int, typer.Option(metavar="N", min=1, help="Number of seeds, counted up from --seed.")
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write the HTML report."),
]
Capture = Annotated[
    bool,
    typer.Option(
        "--capture",
        help="Also write capture.pcapng for each seed: the headers of every packet at the "
        "server and at the UEs.",
    ),
]
Record = Annotated[
    bool,
    typer.Option(
        "--record",
        help="Also record each packet and transport block of the radio, for `airpath export` "
        "(run.radio_log).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Explaining = Annotated[
    Explain,
    typer.Option(
        help="How hard to search for what limits the run: quick tries at most 12 changes of "
        "the scenario, full all known ones, off none."
    ),
]


def command(
    scenario: Scenarios,
    sets: Sets = None,
    seed: Seed = None,
    repeat: Repeat = 1,
    workers: Workers = None,
    out: Out = None,
    report: Report = None,
    capture: Capture = False,
    record: Record = False,
    json: AsJson = False,
    explain: Explaining = "quick",
) -> None:
    """Simulate scenarios, find what limits them, and store their tables in run directories.

    Prints one line per flow, then the largest cause with advice and the measured effect of that
    advice. A cause is found by running the scenario again without it (--explain). --json prints one
    document with stable keys instead; for several scenarios it has a list "runs". With
    --set flow.0.congestion=./libmine.so a library of your own is the congestion control: airpath
    loads it and runs its code; see `airpath new congestion`. With --repeat every figure is the mean
    over the seeds, with a 95 % confidence interval, and the findings are about all seeds, up to
    ten. With several scenarios, the report compares them.
    """
    from dataclasses import replace

    from airpath import scenario as scenarios
    from airpath.congestion import libraries
    from airpath.drivers import simulate
    from airpath.drivers.options import SimulationOptions
    from airpath.errors import InputError
    from airpath.runs import provenance, summary
    from airpath.runs.directories import check_file_target

    if report is not None:
        check_file_target(report)
    if out is not None and len(scenario) > 1:
        raise InputError(
            "--out is for one scenario; each of several gets its own directory in runs"
        )
    given, own = libraries(recording(sets, record=record))
    # What is wrong with the last one is said before the first one runs.
    loaded = [scenarios.load(one, given) for one in scenario]
    unexplained = bool(own) and explain != "off"
    if unexplained:
        explain = "off"
    options = SimulationOptions(
        seed=seed,
        repeat=repeat,
        workers=workers,
        out=out,
        parent=Path("runs") if out is None else None,
        capture=capture,
        congestion=own or None,
        command_line=provenance.command_line(),
    )
    runs = []
    for one in loaded:
        with progress_bar("simulating") as progress:
            run = simulate.execute(one, replace(options, progress=progress))
        runs.append(run)
        if not json:
            _say_flows(run, scenarios.stem(one) if len(loaded) > 1 else None)
        if explain != "off":
            from airpath import diagnose

            with explaining(run) as told:
                diagnose.add(run, one, explain, workers=workers, progress=told)
        if not json:
            _say_answer(run)
        _narrate(run, one)
    if json:
        documents = [run.summary for run in runs]
        output(summary.to_json(documents[0] if len(documents) == 1 else {"runs": documents}))
    if unexplained:
        narrate("not explained: libraries are not run with the scenario changed")
    if report is None:
        places = " ".join(str(run.directory) for run in runs)
        narrate(f"report: airpath report {places} -o report.html")
    else:
        from airpath.report import write_report

        write_report(runs, report)
        narrate(f"report: {report}")
    if any(run.partial for run in runs):
        raise typer.Exit(1)


def recording(sets: list[str] | None, *, record: bool) -> list[str]:
    """Return the settings of a run, including what ``--record`` sets."""
    return [*(sets or []), *(["run.radio_log=true"] if record else [])]


def _say_flows(run: Run, name: str | None) -> None:
    from airpath.runs import describe

    if name is not None:
        output(f"{name}:")
    for sentence in describe.sentences(run.summary)[:_FIRST_SENTENCES]:
        output(sentence)
    sys.stdout.flush()


def _say_answer(run: Run) -> None:
    from airpath.runs import describe

    for line in describe.answer(run.summary) + describe.sentences(run.summary)[_FIRST_SENTENCES:]:
        output(line)
    for line in describe.breakdowns(run.summary):
        output(line)


@contextmanager
def explaining(run: Run) -> Iterator[Callable[[int], bool]]:
    """Yield a callback for the number of simulations so far; Ctrl-C keeps the run as it is."""
    from airpath.base.stopping import StoppedError

    try:
        with progress_bar("explaining") as bar:

            def told(ended: int) -> bool:
                bar(min(0.95, ended / _USUAL_RUNS))
                return True

            yield told
    except KeyboardInterrupt:
        if run.directory is None:
            raise
        raise StoppedError(run.directory, run.partial, "but was not explained") from None


def _narrate(run: Run, loaded: _core.Scenario) -> None:
    from airpath.runs import describe

    if loaded.programs:
        narrate(
            f"programs are not simulated; `airpath emulate` runs them: {', '.join(loaded.programs)}"
        )
    for sentence in describe.partial(run.summary):
        narrate(sentence)
    narrate(f"run directory: {run.directory}")
