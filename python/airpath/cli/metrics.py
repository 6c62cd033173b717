"""``airpath metrics``."""

from __future__ import annotations

import typer

from airpath.cli.console import output

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    # Without it the only command would be no subcommand.
    pass


@app.command("dashboard")
def dashboard() -> None:
    """Print a dashboard to import into Grafana."""
    from airpath.emulation.oam import grafana_dashboard
    from airpath.runs import summary

    output(summary.to_json(grafana_dashboard()))
