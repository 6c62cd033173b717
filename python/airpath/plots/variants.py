"""Variants of a scenario beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.base.text import percent
from airpath.plots import vega
from airpath.plots.figure import Figure, Series, Spec, Table
from airpath.runs.describe import figure_name, figure_text

if TYPE_CHECKING:
    from airpath.runs.document import Variants


def variants(answer: Variants, labels: list[str]) -> Figure:
    """By how much each variant changes each figure, with the 95 % confidence interval.

    ``answer`` is what ``whatif`` returns; ``labels`` name the variants, the scenario first.
    """
    dots: list[Series] = []
    table = []
    for row in answer["rows"]:
        figure = f"{row['flow']}: {figure_name(row['metric'])}"
        for label, cell in zip(labels[1:], row["cells"][1:], strict=True):
            if cell is None or cell["change"] is None:
                continue
            low, high = (100 * bound for bound in cell["change_ci95"] or [cell["change"]] * 2)
            text = figure_text(row["metric"], cell["mean"])
            dots.append(
                {
                    "figure": figure,
                    "s": label,
                    "v": [100 * cell["change"]],
                    "low": [low],
                    "high": [high],
                    "mean": [text],
                }
            )
            table.append([figure, label, text, percent(cell["change"])])
    rows = list(dict.fromkeys(str(each["figure"]) for each in dots))
    x = vega.number("v", "change (%)", scale={"nice": True}, axis={"grid": True})
    axis = {"labelColor": "var(--ink)", "labelLimit": 260}
    palette = [f"var(--c{index % 8})" for index in range(len(labels) - 1)]
    colour = vega.colour(labels[1:], palette, legend=True)
    offset: Spec = {"field": "s", "type": "nominal", "sort": labels[1:]}
    spec = {
        "width": vega.WIDTH - 120,
        "height": {"step": 14},
        "encoding": {
            "y": {"field": "figure", "type": "nominal", "title": None, "sort": rows, "axis": axis},
            "yOffset": offset,
            "color": colour,
        },
        "layer": [
            {
                "data": {"name": "variants"},
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "data": {"name": "variants"},
                "mark": {"type": "point", "size": 60, "filled": True},
                "encoding": {
                    "x": x,
                    "tooltip": vega.tips(s="variant", figure="figure", mean="mean", v="change"),
                },
            },
        ],
    }
    return Figure(
        id="variants",
        title="What each variant changes",
        how_to_read=(
            "One dot per variant and figure, relative to the unchanged scenario; the bar is the "
            "95 % confidence interval over paired seeds. A bar that crosses 0 shows no "
            "difference."
        ),
        spec=vega.finished(spec),
        data={"variants": dots},
        table=Table(["figure", "variant", "mean", "change"], table),
        margin=vega.margin(rows, axis=20),
    )
