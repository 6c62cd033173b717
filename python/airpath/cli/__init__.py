"""The ``airpath`` command: stdout is data, stderr is narration."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from airpath.base.signals import end_at_once
from airpath.cli.console import guarded, open_what_is_closed

_COMMANDS = {
    "run": ("run.command", "Simulate scenarios."),
    "explore": ("explore.command", "Open the explorer in a browser."),
    "whatif": ("whatif.command", "Compare variants of a scenario on common seeds."),
    "sweep": ("sweep.command", "Run a campaign: many runs, here or on a cluster."),
    "query": ("query.query", "Query campaigns, runs and captures in SQL."),
    "plot": ("plot.command", "Plot a campaign."),
    "compare": (
        "query.compare",
        "Compare two campaigns, two variants of one, or two measurements.",
    ),
    "sensitivity": ("query.sensitivity", "Find which varied key an outcome depends on most."),
    "emulate": ("emulate.command", "Run a command inside a scenario's network."),
    "measure": ("measure.command", "Measure a real path and find what limits TCP on it."),
    "tune": ("tune.command", "Find host settings for a path, with their gain and cost."),
    "twin": ("twin.command", "Simulate and emulate a scenario and compare both."),
    "judge": (
        "judge.command",
        "Judge the kernel's congestion control algorithms on a set of paths.",
    ),
    "reproduce": ("reproduce.command", "Rerun published studies and check each published value."),
    "diagnose": ("diagnose.command", "Explain captures and the outputs of network tools."),
    "fit": ("fit.command", "Turn a capture into a scenario, and find what would improve it."),
    "export": ("export.command", "Export a run's cell or links to other emulators."),
    "report": ("report.command", "Write a self-contained HTML report."),
    "cite": ("cite.command", "Print how to cite airpath, a run, a campaign or a study."),
    "serve": ("serve.command", "Be the far end of `airpath measure`."),
    "doctor": ("doctor.command", "Check what this machine can do and what is missing."),
}
"""Where each is, below ``airpath.cli``, and its line in the list of commands."""

_GROUPS = {
    "scenario": "List, show and check scenarios; print their format.",
    "new": "Create a template for a congestion control algorithm of your own.",
    "metrics": "Dashboards for `airpath emulate --metrics PORT`.",
    "subscriber": "Edit the subscribers of an emulation's core network.",
}
"""Commands that have commands, each the ``app`` of its module, and their help."""


class _Commands(TyperGroup):
    """Knows the names and lines of all commands, and imports the one that is called.

    To import and build all of them would take each command 40 ms.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None else imported(str(name)), rest


def imported(name: str) -> Any:
    """Import a command of ``airpath`` and return it as Typer builds it."""
    only = typer.Typer(rich_markup_mode=None)
    if name in _GROUPS:
        group = import_module(f"airpath.cli.{name}").app
        only.add_typer(group, name=name, help=_GROUPS[name])
    else:
        module, function = _COMMANDS[name][0].split(".")
        only.command(name)(getattr(import_module(f"airpath.cli.{module}"), function))
    return typer.main.get_group(only).commands[name]


app = typer.Typer(
    name="airpath",
    cls=_Commands,
    help="A laboratory for TCP over mobile radio.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _listed() -> None:
    """Stand for a command in the list of all."""


for _name, (_, _line) in _COMMANDS.items():
    app.command(_name, short_help=_line)(_listed)
for _name, _help in _GROUPS.items():
    app.command(_name, help=_help)(_listed)


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

    ``emulate`` exits with its command's code, or 3 for a run that does not count; ``twin`` exits
    with 1 if the two differ, 3 if no run counts.
    """
    open_what_is_closed()
    code = guarded(lambda: app(prog_name="airpath", standalone_mode=False))
    end_at_once()
    # At its end Python would look for cycles in all that was imported, which takes 15 ms.
    gc.freeze()
    raise SystemExit(code)
