"""``airpath report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import narrate


def command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Run directories, shown side by side, or the folder of a campaign. [default: "
            "the newest run in runs]",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The HTML file to write.")
    ] = Path("report.html"),
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write each chart to a file in DIR."),
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="LIST",
            help="Formats of the files of --figures: png, svg, pdf, separated by commas.",
        ),
    ] = "svg",
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Embed the simulator, so that a reader can change the run's scenario and run "
            "it again, offline.",
        ),
    ] = False,
) -> None:
    """Write one self-contained HTML file about a run, several runs side by side, or a campaign.

    The file loads nothing from the network and prints well.
    """
    from airpath.campaign.results import is_campaign
    from airpath.errors import InputError
    from airpath.report import write_figures, write_report
    from airpath.runs.directories import check_file_target, newest_run
    from airpath.runs.results import Run

    check_file_target(output)
    formats = _formats(format_)
    if not runs:
        runs = [newest_run(Path("runs"))]
        narrate(f"newest run: {runs[0]}")
    if any(is_campaign(path) for path in runs):
        if live:
            raise InputError("--live is for one run, not for a campaign")
        _campaign(runs, output, figures)
        return
    opened = [Run.open(path) for path in runs]
    write_report(opened, output, live)
    narrate(f"report: {output}")
    if figures is not None:
        for path in write_figures(opened, figures, formats):
            narrate(f"figure: {path}")


def _campaign(places: list[Path], output: Path, figures: Path | None) -> None:
    from airpath.campaign.results import open_campaign
    from airpath.errors import InputError
    from airpath.report.campaign import write_campaign_report

    if len(places) > 1:
        raise InputError("a report takes one campaign; `airpath compare A B` compares two")
    if figures is not None:
        raise InputError("--figures is for runs; `airpath plot` plots a campaign")
    write_campaign_report(open_campaign(places[0]), output)
    narrate(f"report: {output}")


def _formats(text: str) -> list[str]:
    from airpath.errors import InputError
    from airpath.plots.export import FORMATS

    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FORMATS:
            raise InputError(f"no figure format '{name}'; available: {', '.join(FORMATS)}")
    return names or ["svg"]
