"""``airpath scenario``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, get_args

import typer

from airpath.base.choices import Software
from airpath.cli.console import complain, narrate, output
from airpath.cli.run import AsJson, Scenario, Sets

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


@app.command("from")
def from_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Configuration files of one network; - is standard input.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the scenario to this file, which must not exist. [default: print it]",
        ),
    ] = None,
    software: Annotated[
        Software | None,
        typer.Option(
            metavar="NAME",
            help=f"Which program's files these are: {', '.join(get_args(Software))}. [default: as "
            "their content says]",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Turn a base station's configuration files into a scenario.

    airpath reads the files of srsRAN Project (gnb.yml), srsRAN 4G (enb.conf, rr.conf, rb.conf,
    sib.conf) and OpenAirInterface (gNB and eNB), and with them those of Open5GS (smf.yaml,
    pcf.yaml). A comment at each key names its file and line, or the program whose default it is,
    or says that it is assumed. Settings that airpath does not model are listed by name; identities,
    addresses and keys are never copied.
    """
    from airpath.deployed.convert import convert_files
    from airpath.errors import InputError
    from airpath.runs import summary
    from airpath.runs.directories import cannot_write, check_file_target

    if out is not None:
        check_file_target(out)
        if os.path.lexists(out):
            raise InputError(f"{out} exists already: choose another name")
    made = convert_files(files, software)
    if out is not None:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(made.scenario)
        except OSError as error:
            raise cannot_write(out, error) from None
    if json:
        output(summary.to_json(made.document()))
        return
    for line in made.summary():
        narrate(line)
    if out is None:
        output(made.scenario)


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
