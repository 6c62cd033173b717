"""Charts of a campaign: lines with intervals, heat maps, distributions, boxes, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airpath.base.text import digits
from airpath.campaign.figures import parse_figure
from airpath.campaign.summaries import summarise, values
from airpath.errors import InputError
from airpath.plots import vega
from airpath.plots.figure import Figure, Series, Spec, Table

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign

_HEIGHT = 300
_UNITS = {"_mbps": "Mb/s", "_ms": "ms", "_s": "s", "_bytes": "bytes", "_segments": "segments"}
_QUANTILES = {
    "_p50": ", median",
    "_p95": ", 95 %",
    "_p99": ", 99 %",
    "_mean": ", mean",
    "_min": ", minimum",
}
_MOST_COLOURS = 12
_STEPS = 200
"""Points of a distribution function."""


def draw(
    campaign: Campaign,
    kind: str,
    figure: str,
    *,
    x: str | None = None,
    y: str | None = None,
    colour: str | None = None,
    where: Sequence[str] = (),
) -> Figure:
    """Draw a figure: ``kind`` is "lines", "heat", "cdf" or "boxes".

    ``where`` has ``NAME=VALUE`` entries. Raises ``InputError`` for what was not varied.
    """
    columns = [name for name in campaign.cell_columns if _varies(campaign, name)]
    for name in (x, y, colour):
        if name is not None and name not in campaign.cell_columns:
            raise InputError(
                f"`{name}` was not varied\n  available: {', '.join(campaign.cell_columns)}"
            )
    fixed = [_condition(campaign, text) for text in where]
    free = [name for name in columns if name not in {key for key, _ in fixed}]
    along = x or (free[-1] if free else "scenario")
    if kind == "heat":
        others = [name for name in free if name != along]
        up = y or (others[0] if others else "scenario")
        return _heat(_means(campaign, figure, [up, along], fixed), figure, along, up)
    others = [name for name in free if name != along or kind == "cdf"]
    shade = colour or (others[0] if others else None)
    if kind == "lines":
        by = [along] if shade is None else [shade, along]
        return _lines(_means(campaign, figure, by, fixed), figure, along, shade)
    found = _only(values(campaign, figure), fixed)
    if kind == "cdf":
        return _cdf(found, figure, shade)
    return _boxes(found, figure, along, shade if shade != along else None)


def sensitivity(found: pl.DataFrame, figure: str) -> Figure:
    """First-order and total Sobol indices of each key, with their 95 % intervals."""
    bars: list[Series] = []
    table = []
    for row in found.to_dicts():
        label = row["key"] if not row["of"] else f"{row['key']} → {row['of']}"
        for name, title in (("first", "alone"), ("total", "with others")):
            value, half = row[name], row[f"{name}_ci95"]
            bars.append(
                {
                    "k": label,
                    "s": title,
                    "v": [value],
                    "low": [value - half],
                    "high": [value + half],
                }
            )
        table.append([label, digits(row["first"]), digits(row["total"])])
    labels = list(dict.fromkeys(str(each["k"]) for each in bars))
    x = vega.number("v", "share of the variance")
    shared = {
        "y": {"field": "k", "type": "nominal", "title": None, "sort": labels},
        "yOffset": {"field": "s", "type": "nominal", "sort": ["alone", "with others"]},
        "color": vega.colour(["alone", "with others"], ["var(--c0)", "var(--c1)"], legend=True),
    }
    rule = {
        "mark": {"type": "rule", "strokeWidth": 1},
        "encoding": {
            "x": {**x, "field": "low"},
            "x2": {"field": "high"},
            "color": {"value": "var(--ink)"},
        },
    }
    layer = [{"data": {"name": "indices"}, "mark": {"type": "bar"}, "encoding": {"x": x}},
             {"data": {"name": "indices"}, **rule}]  # fmt: skip
    spec = {"width": vega.WIDTH - 120, "height": {"step": 16}, "encoding": shared, "layer": layer}
    return Figure(
        id="sensitivity",
        title=f"What determines {_title(figure)}",
        how_to_read=(
            "The share of the outcome's variance that each key explains, alone and with its "
            "interactions; the line is the 95 % interval."
        ),
        spec=vega.finished(spec),
        data={"indices": bars},
        table=Table(["key", "alone", "with others"], table),
        margin=vega.margin(labels, axis=20),
    )


def _lines(found: pl.DataFrame, figure: str, along: str, shade: str | None) -> Figure:
    quantity = found.schema[along].is_numeric()
    data: list[Series] = []
    table = []
    for label, some in _series(found, shade):
        data.append(
            {
                "s": label,
                "x": some[along].to_list() if quantity else [str(v) for v in some[along]],
                "v": some["mean"].to_list(),
                "low": some["low"].fill_null(some["mean"]).to_list(),
                "high": some["high"].fill_null(some["mean"]).to_list(),
            }
        )
        for row in some.to_dicts():
            bounds = "" if row["low"] is None else f"{digits(row['low'])} to {digits(row['high'])}"
            table.append([label, str(row[along]), digits(row["mean"]), bounds, str(row["n"])])
    labels = [str(series["s"]) for series in data]
    x: Spec = {"field": "x", "type": "quantitative" if quantity else "nominal", "title": along}
    if not quantity:
        x |= {"sort": None, "axis": {"labelAngle": 0}}
    elif _wide(found[along].to_list()):
        x["scale"] = {"type": "log", "nice": False}
    y = vega.number("v", _title(figure))
    shades = vega.colour(labels, _palette(len(labels)), legend=shade is not None)
    tip = vega.tips(s=shade or "", x=along, v="mean", low="low", high="high")
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": y}},
        {"mark": {"type": "point", "filled": True, "size": 40},
         "encoding": {"y": y, "tooltip": tip}},
        {"mark": {"type": "rule", "strokeWidth": 1.5},
         "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
    ]  # fmt: skip
    spec = {
        "width": vega.WIDTH, "height": _HEIGHT, "data": {"name": "cells"},
        "encoding": {"x": x, "color": shades},
        "layer": [{"data": {"name": "cells"}, **layer} for layer in layers],
    }  # fmt: skip
    return Figure(
        id="lines",
        title=f"{_title(figure)} over {along}",
        how_to_read="Means; the bars are 95 % confidence intervals over the seeds.",
        spec=vega.finished(spec),
        data={"cells": data},
        table=Table([shade or "", along, "mean", "95 % interval", "seeds"], table),
    )


def _heat(found: pl.DataFrame, figure: str, along: str, up: str) -> Figure:
    data: list[Series] = [
        {
            "x": [str(v) for v in found[along]],
            "y": [str(v) for v in found[up]],
            "v": found["mean"].to_list(),
            "text": [digits(v) for v in found["mean"]],
        }
    ]
    xs = list(dict.fromkeys(data[0]["x"]))
    ys = list(dict.fromkeys(data[0]["y"]))
    middle = (max(data[0]["v"]) + min(data[0]["v"])) / 2
    axes = {
        "x": {"field": "x", "type": "nominal", "title": along, "sort": xs,
              "axis": {"labelAngle": 0}},
        "y": {"field": "y", "type": "nominal", "title": up, "sort": ys},
    }  # fmt: skip
    scale = {"scheme": "viridis"}
    fill = {"field": "v", "type": "quantitative", "title": _title(figure), "scale": scale}
    test = {"test": f"datum.v > {middle}", "value": "#111111"}
    spec = {
        "width": vega.WIDTH - 100, "height": {"step": 34}, "encoding": axes,
        "layer": [
            {"data": {"name": "cells"}, "mark": "rect",
             "encoding": {"color": fill, "tooltip": vega.tips(x=along, y=up, v="mean")}},
            {"data": {"name": "cells"}, "mark": {"type": "text"},
             "encoding": {"text": {"field": "text"},
                          "color": {"condition": test, "value": "#ffffff"}}},
        ],
    }  # fmt: skip
    rows = list(zip(data[0]["y"], data[0]["x"], data[0]["text"], strict=True))
    return Figure(
        id="heat",
        title=f"{_title(figure)} over {along} and {up}",
        how_to_read="Each cell is a mean over the seeds and over all other varied keys.",
        spec=vega.finished(spec),
        data={"cells": data},
        table=Table([up, along, "mean"], [[*row] for row in rows]),
        margin=vega.margin(ys, axis=40),
    )


def _cdf(found: pl.DataFrame, figure: str, shade: str | None) -> Figure:
    data: list[Series] = []
    table = []
    for label, some in _series(found, shade):
        ordered = some["value"].sort()
        count = len(ordered)
        picked = sorted({min(count - 1, step * count // _STEPS) for step in range(_STEPS + 1)})
        data.append(
            {
                "s": label,
                "v": [ordered[at] for at in picked],
                "share": [(at + 1) / count for at in picked],
            }
        )
        quantiles = [ordered.quantile(at, "linear") or 0.0 for at in (0.05, 0.5, 0.95)]
        table.append([label, *(digits(value) for value in quantiles), str(count)])
    labels = [str(series["s"]) for series in data]
    spec = {
        "width": vega.WIDTH, "height": _HEIGHT,
        "layer": [
            {
                "data": {"name": "cdf"},
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                "encoding": {
                    "x": vega.number("v", _title(figure)),
                    "y": vega.up_to("share", "share of the runs", 1),
                    "color": vega.colour(labels, _palette(len(labels)), legend=shade is not None),
                },
            }
        ],
    }  # fmt: skip
    return Figure(
        id="cdf",
        title=f"How {_title(figure)} is distributed",
        how_to_read="The share of the runs whose value is at most the one on the axis.",
        spec=vega.finished(spec),
        data={"cdf": data},
        table=Table([shade or "", "5 %", "median", "95 %", "values"], table),
    )


def _boxes(found: pl.DataFrame, figure: str, along: str, shade: str | None) -> Figure:
    data: list[Series] = []
    table = []
    for label, some in _series(found, shade):
        for value, inner in some.group_by(along, maintain_order=True):
            parts = [inner["value"].quantile(at, "linear") or 0.0 for at in (0, 0.25, 0.5, 0.75, 1)]
            names = ("low", "q1", "v", "q3", "high")
            boxes = {name: [part] for name, part in zip(names, parts, strict=True)}
            data.append({"s": label, "x": [str(value[0])], **boxes})
            table.append([label, str(value[0]), *(digits(part) for part in parts)])
    labels = list(dict.fromkeys(str(series["s"]) for series in data))
    xs = list(dict.fromkeys(str(series["x"][0]) for series in data))
    y = vega.number("v", _title(figure))
    layers: list[Spec] = [
        {"mark": {"type": "rule"},
         "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "bar", "size": 12, "fillOpacity": 0.6},
         "encoding": {"y": {**y, "field": "q1"}, "y2": {"field": "q3"}}},
        {"mark": {"type": "tick", "size": 12, "thickness": 2},
         "encoding": {"y": y, "color": {"value": "var(--ink)"}}},
    ]  # fmt: skip
    spec = {
        "width": vega.WIDTH, "height": _HEIGHT,
        "encoding": {
            "x": {"field": "x", "type": "nominal", "title": along, "sort": xs,
                  "axis": {"labelAngle": 0}},
            "xOffset": {"field": "s", "type": "nominal", "sort": labels},
            "color": vega.colour(labels, _palette(len(labels)), legend=shade is not None),
        },
        "layer": [{"data": {"name": "boxes"}, **layer} for layer in layers],
    }  # fmt: skip
    return Figure(
        id="boxes",
        title=f"{_title(figure)} by {along}",
        how_to_read="A box covers the middle half of the runs and marks their median; the line "
        "runs from the smallest to the largest value.",
        spec=vega.finished(spec),
        data={"boxes": data},
        table=Table([shade or "", along, "smallest", "25 %", "median", "75 %", "largest"], table),
    )


def _means(
    campaign: Campaign, figure: str, by: list[str], fixed: list[tuple[str, str]]
) -> pl.DataFrame:
    """Means by these columns, of the cells that are wanted, flows of one cell together."""
    keys = list(dict.fromkeys([*by, *(key for key, _ in fixed)]))
    return _only(summarise(campaign, figure, keys), fixed)


def _only(found: pl.DataFrame, fixed: list[tuple[str, str]]) -> pl.DataFrame:
    import polars as pl

    for key, value in fixed:
        found = found.filter(pl.col(key).cast(pl.String) == value)
    names = found["of"].unique().to_list()
    if len(names) > 1:
        raise InputError(
            f"the figure is of {len(names)} flows or links: {', '.join(sorted(names))}\n"
            "  name one: TABLE.COLUMN@NAME"
        )
    return found


def _series(found: pl.DataFrame, shade: str | None) -> list[tuple[str, pl.DataFrame]]:
    if shade is None:
        return [("", found)]
    groups = [(str(key[0]), some) for key, some in found.group_by(shade, maintain_order=True)]
    if len(groups) > _MOST_COLOURS:
        raise InputError(f"`{shade}` has {len(groups)} values; a chart has {_MOST_COLOURS} colours")
    return groups


def _condition(campaign: Campaign, text: str) -> tuple[str, str]:
    key, equals, value = text.rpartition("=")
    if not equals or key not in campaign.cell_columns:
        raise InputError(
            f"`{text}` is not a NAME=VALUE of a varied key\n"
            f"  available: {', '.join(campaign.cell_columns)}"
        )
    return key, value


def _varies(campaign: Campaign, name: str) -> bool:
    return name != "scenario" or len(campaign.document["scenarios"]) > 1


def _palette(count: int) -> list[str]:
    return [f"var(--c{index % 8})" for index in range(count)]


def _wide(found: list[Any]) -> bool:
    return bool(min(found) > 0 and max(found) / min(found) >= 50)


def _title(figure: str) -> str:
    """``goodput (Mb/s) of download``."""
    name = parse_figure(figure)
    words = name.column
    for suffix, unit in _UNITS.items():
        head, found, quantile = words.partition(suffix)
        if found:
            told = _QUANTILES.get(quantile, quantile.replace("_", " "))
            words = f"{head}{told} ({unit})"
            break
    text = words.replace("_", " ")
    text = f"RTT{text[3:]}" if text.startswith("rtt") else text[:1].upper() + text[1:]
    return f"{text} of {name.of}" if name.of else text
