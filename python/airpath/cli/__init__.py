"""The ``airpath`` command: stdout is data, stderr is narration."""

from __future__ import annotations

import typer

from airpath.cli import (
    diagnose,
    doctor,
    emulate,
    explore,
    fit,
    metrics,
    plot,
    query,
    report,
    reproduce,
    run,
    scenario,
    subscriber,
    sweep,
    twin,
    whatif,
)
from airpath.cli.console import guarded, narrate_warnings, open_what_is_closed

app = typer.Typer(
    name="airpath",
    help="A laboratory for TCP over mobile radio.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", short_help="Simulate scenarios.")(run.command)
app.command("explore", short_help="Open the laboratory in a browser.")(explore.command)
app.command("whatif", short_help="Compare variants of a scenario on common seeds.")(whatif.command)
app.command("sweep", short_help="Run a campaign: many runs, here or on a cluster.")(sweep.command)
app.command("query", short_help="Ask campaigns, runs and captures in SQL.")(query.query)
app.command("plot", short_help="Draw a figure of a campaign.")(plot.command)
app.command("compare", short_help="Compare two campaigns, or two variants of one.")(query.compare)
app.command("sensitivity", short_help="Say which varied key decides an outcome.")(query.sensitivity)
app.command("emulate", short_help="Run a command inside a scenario's network.")(emulate.command)
app.command("twin", short_help="Simulate and emulate a scenario and compare both.")(twin.command)
app.command("reproduce", short_help="Run published studies again and judge each figure.")(
    reproduce.command
)
app.command("diagnose", short_help="Say what captures and outputs of tools tell.")(diagnose.command)
app.command("fit", short_help="Turn a capture into a scenario, and say what would help it.")(
    fit.command
)
app.command("report", short_help="Write a self-contained HTML report.")(report.command)
app.command("doctor", short_help="Say what this machine can do and what is missing.")(
    doctor.command
)
app.add_typer(scenario.app, name="scenario")
app.add_typer(metrics.app, name="metrics")
app.add_typer(subscriber.app, name="subscriber")


def _version(value: bool) -> None:
    if value:
        from airpath import _core

        typer.echo(f"airpath {_core.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False,
        "--version",
        "-V",
        callback=_version,
        is_eager=True,
        help="Show the version and exit.",
    ),
) -> None:
    del version


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad use or bad input, 130 Ctrl-C.

    ``emulate`` has its command's code instead, or 3 for a run that does not count; ``twin`` has 1
    if the two differ, 3 if none counts.
    """
    open_what_is_closed()
    narrate_warnings()
    raise SystemExit(guarded(lambda: app(prog_name="airpath", standalone_mode=False)))
