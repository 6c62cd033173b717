"""``airpath new``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import narrate, output

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """Stand for the group, which has one command."""


@app.command()
def congestion(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of the algorithm and of the directory: lower-case letters, digits, - and _.",
            show_default=False,
        ),
    ],
) -> None:
    """Create a Rust crate that compiles to a congestion control library for `airpath run`.

    The template implements Reno. Prints the command that builds and runs it.
    """
    from airpath.congestion.template import write

    library = write(Path(name))
    narrate(f"{name} is new; this builds and runs it:")
    output(
        f"cargo build --release --manifest-path {shlex.quote(f'{name}/Cargo.toml')} && "
        f"airpath run wire --set {shlex.quote(f'flow.0.congestion=./{library}')}"
    )
