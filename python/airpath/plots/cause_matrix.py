"""The causes that a campaign's runs have: one row a cause, one column a value of the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.base.text import percent
from airpath.plots import vega
from airpath.plots.figure import Figure, Series, Spec, Table

if TYPE_CHECKING:
    from airpath.campaign.results import Campaign

_MOST_CELLS = 40
"""Cells of the campaign that fit below each other."""


def cause_matrix(campaign: Campaign) -> Figure | None:
    """Draw in what share of a cell's runs each cause was found; None where none was sought."""
    import polars as pl

    if "findings" not in campaign.files or "runs" not in campaign.files:
        return None
    by = [name for name in campaign.cell_columns if campaign.table("runs")[name].n_unique() > 1]
    label = pl.concat_str([pl.col(name).cast(pl.String) for name in by or ["scenario"]],
                          separator=", ").alias("cell_label")  # fmt: skip
    runs = campaign.table("runs").filter(pl.col("status") == "done").select("run", label)
    cells = runs["cell_label"].unique(maintain_order=True).to_list()
    found = campaign.table("findings").join(runs, on="run")
    if found.is_empty():
        return None
    each = (
        found.group_by("cell_label", "cause")
        .agg(pl.col("run").n_unique().alias("with"),
             pl.col("run").filter(pl.col("place") == 0).n_unique().alias("first"))
        .join(runs.group_by("cell_label").len(), on="cell_label")
    )  # fmt: skip
    often = each.group_by("cause").agg(pl.col("with").sum()).sort("with", "cause", descending=True)
    causes = [str(cause) for cause in often["cause"]]
    data: list[Series] = [
        {
            "cell": row["cell_label"], "cause": str(row["cause"]),
            "v": [row["with"] / row["len"]], "first": [row["first"] / row["len"]],
            "text": [percent(row["with"] / row["len"])],
        }
        for row in each.sort("cell_label", "cause").to_dicts()
        if row["cell_label"] in cells[:_MOST_CELLS]
    ]  # fmt: skip
    left = len(cells) - _MOST_CELLS
    return Figure(
        id="causes",
        title="What limits the runs",
        how_to_read=(
            "The share of each row's runs in which a cause was found; the pointer shows in how "
            "many it was the largest. An empty field: never."
        ),
        spec=vega.finished(_spec(cells[:_MOST_CELLS], causes)),
        data={"causes": data},
        table=Table(
            ["where", "cause", "found in", "the largest in"],
            [[each["cell"], each["cause"], each["text"][0], percent(each["first"][0])]
             for each in data],
        ),
        remarks=(f"The table has {left} more rows.",) if left > 0 else (),
        margin=vega.margin(cells, axis=40),
    )  # fmt: skip


def _spec(cells: list[str], causes: list[str]) -> Spec:
    fill = {
        "field": "v", "type": "quantitative", "title": None, "legend": None,
        "scale": {"scheme": "blues", "domain": [0, 1]},
    }  # fmt: skip
    words = {"test": "datum.v > 0.55", "value": "#ffffff"}
    return {
        "width": vega.WIDTH - 160,
        "height": {"step": 26},
        "data": {"name": "causes"},
        "encoding": {
            "x": {"field": "cause", "type": "nominal", "title": None, "sort": causes,
                  "axis": {"labelAngle": 0, "domain": False, "ticks": False,
                           "labelColor": "var(--ink)",
                           "labelExpr": "split(datum.label, ' ')"}},
            "y": {"field": "cell", "type": "nominal", "title": None, "sort": cells,
                  "scale": {"domain": cells}, "axis": {"labelLimit": 300}},
        },
        "layer": [
            {"mark": {"type": "rect", "stroke": "var(--page)"},
             "encoding": {"color": fill,
                          "tooltip": vega.tips(cell="where", cause="cause", text="found in",
                                               first="the largest in (share)")}},
            {"mark": {"type": "text"},
             "encoding": {"text": {"field": "text"},
                          "color": {"condition": words, "value": "#111111"}}},
        ],
    }  # fmt: skip
