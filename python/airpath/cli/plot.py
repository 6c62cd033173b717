"""``airpath plot``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.base.choices import Legend, Log
from airpath.cli.console import narrate
from airpath.cli.source import source_or_newest

if TYPE_CHECKING:
    from airpath.plots.figure import Figure


Axes = Annotated[Log | None, typer.Option(metavar="x|y|xy", help="Axes with a logarithmic scale.")]


def command(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Folder or URL of a campaign, or a run directory. [default: the newest in "
            "campaigns]",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For a campaign: lines (the default), heat, cdf or boxes. For a run, a chart of "
            "its report: timeline (the default), rtt, links, radio and others.",
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE.COLUMN[@NAME]",
            help="The column to plot; without @NAME, of the first flow or link of each run. "
            "[default: flows.goodput_mbps]",
        ),
    ] = None,
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
            help="Plot only combinations with this value. Repeatable.",
        ),
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,VALUE",
            help="The order of a column's values; values that are not named follow. Repeatable.",
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH", help="Width of the whole chart: 84mm, also in cm, in, pt, px."
        ),
    ] = None,
    height: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Height of the whole chart.")
    ] = None,
    font: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Family and size, or one of them: 'Times 8pt'."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A title above the chart.")
    ] = None,
    xlabel: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The title of the x axis.")
    ] = None,
    ylabel: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The title of the y axis.")
    ] = None,
    log: Axes = None,
    legend: Annotated[
        Legend | None,
        typer.Option(
            metavar="PLACE", help="Where the legend is: top, bottom, left, right or none."
        ),
    ] = None,
    spec: Annotated[
        bool,
        typer.Option(
            "--spec", help="Also write the Vega-Lite specification, with its data: FILE.vl.json."
        ),
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The chart's file: .svg, .pdf, .png or .html. Its data go to FILE.csv beside it.",
        ),
    ] = Path("plot.svg"),
) -> None:
    """Plot a campaign or a run, as a report has it or as a paper wants it.

    lines: means with their 95 % intervals; heat: means over two axes; cdf: the share of the runs up
    to each value; boxes: quartiles and extremes of the runs. Several scenarios get a panel each.
    """
    from airpath.plots.chart import write_data
    from airpath.plots.plot import plot

    check_picture(output)
    made = plot(
        source_or_newest(source), kind, figure=figure, x=x, y=y, colour=colour, where=where or (),
        order=order or (), width=width, height=height, font=font, title=title, xlabel=xlabel,
        ylabel=ylabel, log=log, legend=legend,
    )  # fmt: skip
    for remark in made.remarks:
        narrate(remark)
    write_picture(made, output)
    for what, path in write_data(made, output, spec=spec):
        narrate(f"{what}: {path}")


def check_picture(path: Path) -> None:
    """Fail before the work if a chart cannot be written there."""
    from airpath.plots.chart import check_picture as check

    check(path)


def write_picture(figure: Figure, path: Path, title: str | None = None) -> None:
    """Write a chart to a file; ``title`` is the title of an HTML page, by default the chart's."""
    from airpath.plots.chart import write

    write(figure, path, title)
    narrate(f"chart: {path}")
