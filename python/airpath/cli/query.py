"""``airpath query``, ``airpath compare`` and ``airpath sensitivity``."""

from __future__ import annotations

import math
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airpath.cli.console import narrate, output
from airpath.cli.source import Source, source_or_newest

if TYPE_CHECKING:
    import polars as pl

_ROWS = 100


class Form(StrEnum):
    """How a table is printed."""

    table = "table"
    csv = "csv"
    json = "json"


Printed = Annotated[
    Form, typer.Option("--format", help="How to print the rows; a table shows the first 100.")
]
Picture = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also draw a chart: .html, .svg, .png or .pdf."),
]


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL")],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="Campaigns, run directories, captures. [default: the newest in campaigns]",
        ),
    ] = None,
    form: Printed = Form.table,
) -> None:
    """Query campaigns, run directories and captures in SQL (DuckDB).

    A campaign has the tables runs, flows, groups, pings, links and findings, with each varied key
    as a column: select "flow.0.congestion", avg(goodput_mbps) from flows group by 1. A run has the
    tables of its directory and findings, a measurement also phases and effects, a capture has
    flows. With several sources, the column source names
    each row's.
    """
    from airpath.campaign.query import query as ask

    show(ask(sql, *(sources or [])), form)


def compare(
    before: Annotated[str, typer.Argument(metavar="A")],
    after: Annotated[str | None, typer.Argument(metavar="[B]")] = None,
    axis: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[=X,Y]",
            help="Compare two values of a varied key within one campaign.",
        ),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Option(
            "--figure",
            metavar="TABLE.COLUMN[@NAME]",
            help="The figure to compare. Repeatable.",
        ),
    ] = None,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Treat seeds or blocks as independent samples.")
    ] = False,
    form: Printed = Form.table,
) -> None:
    """Compare two campaigns, two variants within one, or two measurements.

    Campaigns are compared seed by seed: the same seed draws the same randomness in both, so small
    differences are visible. Each row has the change with its 95 % interval over the seeds, in the
    figure's unit and in percent, the p-value of the paired test, and a verdict: same, higher,
    lower, unclear, or no interval (one seed, or seeds that all give the same value). Measurements
    (before and after a change) are compared block by block if both ran the same plan, and it is
    said which causes went and came.
    """
    from airpath.campaign.compare import compare as against
    from airpath.errors import InputError
    from airpath.measure.compare import is_measurement

    if is_measurement(before) or (after is not None and is_measurement(after)):
        if after is None or axis is not None or figures:
            raise InputError("compare two measurements, A B, without --axis and --figure")
        _compare_measurements(before, after, form, pairs=not unpaired)
        return
    if (after is None) == (axis is None):
        raise InputError("compare two campaigns, A B, or one campaign with --axis NAME=X,Y")
    found = against(before, after, figures or (), axis, pairs=not unpaired)
    show(found, form)


def _compare_measurements(before: str, after: str, form: Form, *, pairs: bool) -> None:
    import polars as pl

    from airpath.measure.compare import compare as against
    from airpath.measure.compare import sentences
    from airpath.runs.summary import to_json

    found = against(before, after, pairs=pairs)
    if form is Form.json:
        output(to_json(found))
        return
    for line in found["remarks"]:
        (output if form is Form.table else narrate)(line)
    show(pl.DataFrame(found["figures"], infer_schema_length=None), form)
    if form is Form.table:
        for line in sentences(found):
            output(line)


def sensitivity(
    campaign: Source = None,
    figure: Annotated[
        str, typer.Option(metavar="TABLE.COLUMN[@NAME]", help="The outcome to analyse.")
    ] = "flows.goodput_mbps",
    chart: Picture = None,
    form: Printed = Form.table,
) -> None:
    """Find which of the varied keys determines an outcome (Sobol indices).

    For campaigns with sampling = "saltelli". A key's first-order index is the share of the
    outcome's variance that it explains alone; its total index includes its interactions with
    other keys.
    """
    from airpath.campaign.results import open_campaign
    from airpath.campaign.sensitivity import sensitivity as indices
    from airpath.cli.plot import check_picture, write_picture

    if chart is not None:
        check_picture(chart)
    opened = open_campaign(source_or_newest(campaign))
    found = indices(opened, figure)
    show(found, form)
    if chart is not None:
        from airpath.plots.campaign import sensitivity as draw

        write_picture(draw(found, figure), chart)


def show(frame: pl.DataFrame, form: Form) -> None:
    """Print rows."""
    import polars as pl

    if form is Form.csv:
        output(_texts(frame, nested=True).write_csv())
    elif form is Form.json:
        from airpath.runs.summary import to_json

        output(to_json([_plain(row) for row in _texts(frame).to_dicts()]))
    else:
        with pl.Config(
            tbl_rows=_ROWS, tbl_cols=-1, tbl_formatting="NOTHING", tbl_hide_column_data_types=True,
            tbl_hide_dataframe_shape=True, tbl_width_chars=-1, fmt_str_lengths=80,
            float_precision=None,
        ):  # fmt: skip
            output("\n".join(line.rstrip() for line in str(_rounded(frame)).splitlines()))
        if len(frame) > _ROWS:
            narrate(f"{_ROWS} of {len(frame)} rows; --format csv prints all")


def _texts(frame: pl.DataFrame, *, nested: bool = False) -> pl.DataFrame:
    """Dates and bytes as texts; with ``nested`` lists and structs as JSON too."""
    import json

    import polars as pl
    import polars.selectors as cs

    frame = frame.with_columns(
        (cs.date() | cs.datetime() | cs.time()).dt.to_string("iso:strict"),
        cs.binary().bin.encode("hex"),
    )
    columns = [name for name, kind in frame.schema.items() if nested and kind.is_nested()]
    return frame.with_columns(
        pl.Series(
            name,
            [
                None if value is None else json.dumps(_plain(value), ensure_ascii=False)
                for value in frame[name].to_list()
            ],
            dtype=pl.String,
        )
        for name in columns
    )


def _plain(value: Any) -> Any:
    """A value as JSON has it: what is not a number is null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """Numbers with four significant digits, for people."""
    import polars as pl
    import polars.selectors as cs

    return frame.with_columns(
        cs.float().map_elements(lambda value: f"{value:.4g}", return_dtype=pl.String)
    )
