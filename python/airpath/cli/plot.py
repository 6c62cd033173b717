"""``airpath plot``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate
from airpath.cli.source import Source, source_or_newest

if TYPE_CHECKING:
    from airpath.plots.figure import Figure


class Kind(StrEnum):
    """Forms of charts."""

    lines = "lines"
    heat = "heat"
    cdf = "cdf"
    boxes = "boxes"


def command(
    campaign: Source = None,
    kind: Annotated[Kind, typer.Option(help="The form of the chart.")] = Kind.lines,
    figure: Annotated[
        str, typer.Option(metavar="TABLE.COLUMN[@NAME]", help="The column to plot.")
    ] = "flows.goodput_mbps",
    x: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The x axis. [default: what was varied last]",
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The y axis of a heat map. [default: what was varied first]",
        ),
    ] = None,
    colour: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column that gets a colour per value. [default: what was varied first]",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Plot only cells with this value. Repeatable.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help=("The chart's file: .html, .svg, .png or .pdf.")
        ),
    ] = Path("campaign.svg"),
) -> None:
    """Plot a campaign.

    lines: means with their 95 % intervals; heat: means over two axes; cdf: the share of the runs up
    to each value; boxes: quartiles and extremes of the runs.
    """
    from airpath.campaign.results import open_campaign
    from airpath.plots.campaign import draw

    check_picture(output)
    opened = open_campaign(source_or_newest(campaign))
    made = draw(opened, kind.value, figure, x=x, y=y, colour=colour, where=where or ())
    write_picture(made, output)


def check_picture(path: Path) -> None:
    """Fail before the work if a chart cannot be written there."""
    from airpath.errors import InputError
    from airpath.runs.directories import check_file_target

    check_file_target(path)
    if path.suffix not in (".html", ".svg", ".png", ".pdf"):
        raise InputError(f"{path}: the name of a chart must end in .html, .svg, .png or .pdf")


def write_picture(figure: Figure, path: Path, title: str | None = None) -> None:
    """Write a chart to a file; ``title`` is the title of an HTML page, by default the chart's."""
    from airpath.runs.directories import replaced_file

    if path.suffix == ".html":
        from airpath.report.render import charts_json, page

        charts = charts_json([figure])
        title = figure.title if title is None else title
        text = page("variants.html.j2", title=title, figures=[figure], charts=charts)
        with replaced_file(path) as aside:
            aside.write_text(text, encoding="utf-8", errors="backslashreplace")
    else:
        from airpath.plots.export import rendered

        with replaced_file(path) as aside:
            aside.write_bytes(rendered(figure, path.suffix[1:]))
    narrate(f"chart: {path}")
