"""``airpath scenario``."""

from __future__ import annotations

from typing import Annotated

import typer

from airpath.cli.console import complain, narrate, output
from airpath.cli.run import Scenario, Sets

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_() -> None:
    """List the shipped scenarios, those of the studies, and radio presets with their titles."""
    from airpath.scenario import load, parse, radio_presets, shipped_scenarios, study_scenarios

    shipped, studies, presets = shipped_scenarios(), study_scenarios(), radio_presets()
    width = max((len(name) for name in (*shipped, *studies, *presets)), default=0)
    for name, text in shipped.items():
        output(f"{name:<{width}}  {parse(text, name).title}")
    output("\nof studies")
    for name in studies:
        output(f"{name:<{width}}  {load(name).title}")
    output('\n[radio] preset = "…"')
    for name, title in presets.items():
        output(f"{name:<{width}}  {title}")


@app.command()
def show(
    scenario: Scenario,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Include every default and every --set.")
    ] = False,
    sets: Sets = None,
) -> None:
    """Print a scenario as TOML."""
    from airpath import scenario as scenarios
    from airpath.base.secrets import redacted

    # What is no scenario is not shown: it may be a file that others must not read.
    text, name, directory = scenarios.read(scenario)
    loaded = scenarios.parse(text, name, directory, sets)
    shipped = text in scenarios.shipped_scenarios().values()
    secret = not shipped and redacted(text) != text
    if secret and not resolved:
        narrate("the scenario has subscribers' keys: it is shown resolved, with hashes of the keys")
    output(loaded.resolved_toml if resolved or sets or secret else text)


@app.command()
def check(
    scenario: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO...", help="Scenario files, or names of shipped scenarios."
        ),
    ],
    sets: Sets = None,
) -> None:
    """Check scenarios and report every error with its location.

    The exit code is 2 if there is an error.
    """
    from airpath import scenario as scenarios
    from airpath.errors import InputError

    code = 0
    for one in scenario:
        try:
            scenarios.load(one, sets)
            output(f"{one}: ok")
        except InputError as error:
            code = complain(str(error), error.exit_code)
    raise typer.Exit(code)


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors."""
    from airpath import _core

    output(_core.schema())


@app.command()
def reference() -> None:
    """Print the reference of all scenario keys as Markdown."""
    from airpath import _core

    output(_core.reference())
