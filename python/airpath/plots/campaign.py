"""Charts of a campaign: lines with intervals, heat maps, distributions, boxes, sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from airpath.base.text import digits
from airpath.campaign.figures import better, parse_figure
from airpath.campaign.summaries import first_of_each, summarise, values
from airpath.errors import InputError
from airpath.plots import vega
from airpath.plots.figure import Figure, Series, Spec, Table
from airpath.plots.names import bounds, mean_of, title_of, towards, unit_of

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign

_HEIGHT = 300
_PANELS = 3
"""Panels beside each other on a page."""
_MOST_COLOURS = 12
_WORDS = {"labelExpr": "split(datum.label, ' ')"}
"""The words of a category below each other, so that neighbours do not touch."""
_STEPS = 200
"""Points of a distribution function."""


class Places(NamedTuple):
    """Which column is where in a chart; None: the chart decides."""

    x: str | None = None
    y: str | None = None
    colour: str | None = None
    panel: str | None = None
    """It has a panel for each value; by default that is the scenario."""


_ANYWHERE = Places()


def draw(
    campaign: Campaign,
    kind: str,
    figure: str,
    places: Places = _ANYWHERE,
    *,
    where: Sequence[str] = (),
    order: Sequence[str] = (),
) -> Figure:
    """Draw a figure: ``kind`` is "lines", "dots", "heat", "cdf" or "boxes".

    ``where`` has ``NAME=VALUE`` entries, ``order`` has ``NAME=VALUE,VALUE`` entries, which say the
    order of values. Several scenarios get a panel each. A figure without ``@NAME`` is that of each
    scenario's first flow or link. Raises ``InputError`` for what was not varied.
    """
    for name in places:
        if name is not None and name not in campaign.cell_columns:
            raise InputError(
                f"`{name}` was not varied\n  available: {', '.join(campaign.cell_columns)}"
            )
    x, y, colour, panel = places
    fixed = [_condition(campaign, text) for text in where]
    found, remarks = _first(_only(values(campaign, figure), fixed))
    found = _ordered(campaign, found, order)
    columns = [name for name in campaign.cell_columns if found[name].n_unique() > 1]
    panels = _panels(columns, {x, y, colour}, kind) if panel is None else [panel]
    free = [name for name in columns if name not in panels]
    along = x or (free[-1] if free else "scenario")
    others = [name for name in free if name != along or kind == "cdf"]
    shade = colour or (others[0] if others else None)
    if kind == "heat":
        up = y or (others[0] if others else "scenario")
        means = summarise(campaign, figure, [*panels, up, along], found)
        made = _heat(means, figure, along, up, panels)
    elif kind == "lines":
        by = dict.fromkeys([*panels, *([] if shade is None else [shade]), along])
        means = summarise(campaign, figure, [*by], found)
        made = _lines(means, figure, along, shade, panels)
    elif kind == "dots":
        made = _dots(found, figure, along, colour, panels)
    elif kind == "cdf":
        made = _cdf(found, figure, shade, panels)
    else:
        made = _boxes(found, figure, along, shade if shade != along else None, panels)
    return replace(made, remarks=(*made.remarks, *remarks))


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
        title=f"What determines {title_of(figure)}",
        how_to_read=(
            "The share of the outcome's variance that each key explains, alone and with its "
            "interactions; the line is the 95 % interval."
        ),
        spec=vega.finished(spec),
        data={"indices": bars},
        table=Table(["key", "alone", "with others"], table),
        margin=vega.margin(labels, axis=20),
    )


def _lines(
    found: pl.DataFrame, figure: str, along: str, shade: str | None, panels: list[str]
) -> Figure:
    quantity = found.schema[along].is_numeric()
    data: list[Series] = []
    table = []
    for panel, label, some in _series(found, shade, panels):
        data.append(
            {
                "panel": panel,
                "s": label,
                "x": some[along].to_list() if quantity else [str(v) for v in some[along]],
                "v": some["mean"].to_list(),
                "low": some["low"].to_list(),
                "high": some["high"].to_list(),
                "n": some["n"].to_list(),
            }
        )
        for row in some.to_dicts():
            table.append(
                [
                    panel,
                    label,
                    str(row[along]),
                    digits(row["mean"]),
                    bounds(row["low"], row["high"]),
                    str(row["n"]),
                ]
            )
    labels = list(dict.fromkeys(str(series["s"]) for series in data))
    x: Spec = {"field": "x", "type": "quantitative" if quantity else "nominal", "title": along}
    line = {"type": "line", "strokeWidth": 2}
    layers: list[Spec] = [
        {"mark": {"type": "point", "filled": True, "size": 40}, "encoding": {}},
        {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": {},
         "transform": [{"filter": "isValid(datum.low)"}]},
    ]  # fmt: skip
    encoding: Spec = {"x": x}
    if quantity:
        x |= _axis(along, [found[along].to_list()])
        layers.insert(0, {"mark": line, "encoding": {}})
    else:
        # Categories have no order and nothing in between: dots beside each other, not joined.
        xs = list(dict.fromkeys(str(v) for v in found[along]))
        x |= {"sort": xs, "axis": {"labelAngle": 0, **_WORDS}}
        if shade not in (None, along):
            encoding["xOffset"] = {"field": "s", "type": "nominal", "sort": labels}
    spans = _spans(found, panels, ("mean", "low", "high"))
    y = vega.number("v", title_of(figure), **_axis(figure, spans))
    for layer in layers[:-1]:
        layer["encoding"] = {"y": y}
    layers[-2]["encoding"]["tooltip"] = vega.tips(
        s=shade or "", x=along, v="mean", low="low", high="high"
    )
    layers[-1]["encoding"] = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    encoding["color"] = vega.colour(
        labels, _palette(len(labels)), legend=shade not in (None, along)
    )
    column = parse_figure(figure).column
    return Figure(
        id="lines",
        title=f"{title_of(figure)} over {along}",
        how_to_read="Means over the seeds; the bars are 95 % confidence intervals over the seeds."
        + towards(figure),
        spec=vega.finished(_panelled("cells", encoding, layers, data, panels)),
        data={"cells": data},
        table=_table(
            [shade or "", along, mean_of(figure), "95 % interval", "seeds"], table, panels
        ),
        columns={
            **_named(panels, shade), "x": along, "v": column, "low": f"{column}_low",
            "high": f"{column}_high", "n": "seeds",
        },
    )  # fmt: skip


def _dots(
    found: pl.DataFrame, figure: str, along: str, shade: str | None, panels: list[str]
) -> Figure:
    """A dot for each run, over a key of numbers."""
    data: list[Series] = []
    table = []
    for panel, label, some in _series(found, shade, panels):
        data.append(
            {"panel": panel, "s": label, "x": some[along].to_list(), "v": some["value"].to_list()}
        )
        ends = (some[along].min(), some[along].max(), some["value"].min(), some["value"].max())
        table.append([panel, label, *(digits(float(str(end))) for end in ends), str(len(some))])
    labels = list(dict.fromkeys(str(series["s"]) for series in data))
    encoding = {
        "x": vega.number("x", along, **_axis(along, [found[along].to_list()])),
        "y": vega.number("v", title_of(figure), **_axis(figure, _spans(found, panels, ["value"]))),
        "color": vega.colour(labels, _palette(len(labels)), legend=shade is not None),
        "tooltip": vega.tips(s=shade or "", x=along, v="value"),
    }
    mark = {"type": "point", "filled": True, "size": 40}
    heads = [shade or "", f"{along}, least", f"{along}, most", "least", "most", "runs"]
    return Figure(
        id="dots",
        title=f"{title_of(figure)} over {along}",
        how_to_read=f"A dot is a run; the other keys vary from dot to dot.{towards(figure)}",
        spec=vega.finished(_panelled("dots", encoding, [{"mark": mark}], data, panels)),
        data={"dots": data},
        table=_table(heads, table, panels),
        columns={**_named(panels, shade), "x": along, "v": parse_figure(figure).column},
    )


def _heat(found: pl.DataFrame, figure: str, along: str, up: str, panels: list[str]) -> Figure:
    wide = any(map(vega.wide, _spans(found, panels, ["mean"])))
    lower = better(figure) == "lower"
    data: list[Series] = [
        {
            "panel": panel,
            "x": [str(v) for v in some[along]],
            "y": [str(v) for v in some[up]],
            "v": some["mean"].to_list(),
            "text": [digits(v) for v in some["mean"]],
            "level": _levels(some["mean"].to_list(), wide=wide),
        }
        for panel, _, some in _series(found, None, panels)
    ]
    xs = list(dict.fromkeys(str(v) for v in found[along]))
    ys = list(dict.fromkeys(str(v) for v in found[up]))
    axes = {
        "x": {"field": "x", "type": "nominal", "title": along, "sort": xs,
              "axis": {"labelAngle": 0, **_WORDS}},
        "y": {"field": "y", "type": "nominal", "title": up, "sort": ys},
    }  # fmt: skip
    # The bright end is the good one, of delays too; a panel has its own scale from 0 to 1.
    scale = {"scheme": "viridis", "reverse": lower}
    if panels:
        scale["domain"] = [0, 1]
    else:
        scale |= {"type": "log"} if wide else {"zero": True}
    legend = None if panels else vega.si_legend(*unit_of(figure))
    fill = {"field": "level" if panels else "v", "type": "quantitative",
            "title": title_of(figure), "scale": scale, "legend": legend}  # fmt: skip
    bright = {"test": f"datum.level {'<' if lower else '>'} 0.5", "value": "#111111"}
    layers: list[Spec] = [
        {"mark": "rect",
         "encoding": {"color": fill, "tooltip": vega.tips(x=along, y=up, v="mean")}},
        {"mark": {"type": "text"},
         "encoding": {"text": {"field": "text"},
                      "color": {"condition": bright, "value": "#ffffff"}}},
    ]  # fmt: skip
    spec = _panelled("cells", axes, layers, data, panels, height={"step": 34}, beside=100, own=())
    rows = [
        [str(each["panel"]), *row]
        for each in data
        for row in zip(each["y"], each["x"], each["text"], strict=True)
    ]
    return Figure(
        id="heat",
        title=f"{title_of(figure)} over {along} and {up}",
        how_to_read="Each square is a mean over the seeds and over all other varied keys."
        + (" Brighter is better." if better(figure) else ""),
        spec=vega.finished(spec),
        data={"cells": data},
        table=_table([up, along, mean_of(figure)], rows, panels),
        margin=vega.margin(ys, axis=40),
        columns={**_named(panels, None), "y": up, "x": along, "v": parse_figure(figure).column},
    )


def _levels(shown: list[float], *, wide: bool) -> list[float]:
    """Where each value is between 0 and the largest, or by logarithms between the smallest and it.

    From 0 on, values that hardly differ have colours that hardly differ.
    """
    log = wide and min(shown) > 0
    at: Callable[[float], float] = math.log if log else float
    least, most = at(min(shown)) if log else min(0.0, *shown), at(max(shown))
    return [(at(each) - least) / ((most - least) or 1.0) for each in shown]


def _cdf(found: pl.DataFrame, figure: str, shade: str | None, panels: list[str]) -> Figure:
    data: list[Series] = []
    table = []
    for panel, label, some in _series(found, shade, panels):
        ordered = some["value"].sort()
        count = len(ordered)
        picked = sorted({min(count - 1, step * count // _STEPS) for step in range(_STEPS + 1)})
        data.append(
            {
                "panel": panel,
                "s": label,
                "v": [ordered[at] for at in picked],
                "share": [(at + 1) / count for at in picked],
            }
        )
        quantiles = [ordered.quantile(at, "linear") or 0.0 for at in (0.05, 0.5, 0.95)]
        table.append([panel, label, *(digits(value) for value in quantiles), str(count)])
    labels = list(dict.fromkeys(str(series["s"]) for series in data))
    encoding = {
        "x": vega.number("v", title_of(figure), **_axis(figure, _spans(found, panels, ["value"]))),
        "y": vega.up_to("share", "share of the runs", 1),
        "color": vega.colour(labels, _palette(len(labels)), legend=shade is not None),
    }
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    spec = _panelled("cdf", encoding, [{"mark": mark}], data, panels, own=["x"])
    return Figure(
        id="cdf",
        title=f"{title_of(figure)}: distribution",
        how_to_read="The share of the runs whose value is at most the one on the axis.",
        spec=vega.finished(spec),
        data={"cdf": data},
        table=_table([shade or "", "5 %", "median", "95 %", "values"], table, panels),
        columns={
            **_named(panels, shade), "v": parse_figure(figure).column, "share": "share_of_runs",
        },
    )  # fmt: skip


def _boxes(
    found: pl.DataFrame, figure: str, along: str, shade: str | None, panels: list[str]
) -> Figure:
    data: list[Series] = []
    table = []
    names = ("low", "q1", "v", "q3", "high")
    for panel, label, some in _series(found, shade, panels):
        for value, inner in some.group_by(along, maintain_order=True):
            parts = [inner["value"].quantile(at, "linear") or 0.0 for at in (0, 0.25, 0.5, 0.75, 1)]
            boxes = {name: [part] for name, part in zip(names, parts, strict=True)}
            data.append({"panel": panel, "s": label, "x": [str(value[0])], **boxes})
            table.append([panel, label, str(value[0]), *(digits(part) for part in parts)])
    labels = list(dict.fromkeys(str(series["s"]) for series in data))
    xs = list(dict.fromkeys(str(v) for v in found[along]))
    y = vega.number("v", title_of(figure), **_axis(figure, _spans(found, panels, ["value"])))
    layers: list[Spec] = [
        {"mark": {"type": "rule"},
         "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "bar", "size": 12, "fillOpacity": 0.6},
         "encoding": {"y": {**y, "field": "q1"}, "y2": {"field": "q3"}}},
        {"mark": {"type": "tick", "size": 12, "thickness": 2},
         "encoding": {"y": y, "color": {"value": "var(--ink)"}}},
    ]  # fmt: skip
    encoding: Spec = {
        "x": {"field": "x", "type": "nominal", "title": along, "sort": xs,
              "axis": {"labelAngle": 0, **_WORDS}},
        "xOffset": {"field": "s", "type": "nominal", "sort": labels},
        "color": vega.colour(labels, _palette(len(labels)), legend=shade is not None),
    }  # fmt: skip
    heads = [shade or "", along, "smallest", "25 %", "median", "75 %", "largest"]
    return Figure(
        id="boxes",
        title=f"{title_of(figure)} by {along}",
        how_to_read="A box covers the middle half of the runs and marks their median; the line "
        "runs from the smallest to the largest value.",
        spec=vega.finished(_panelled("boxes", encoding, layers, data, panels)),
        data={"boxes": data},
        table=_table(heads, table, panels),
        columns={
            **_named(panels, shade), "x": along,
            **dict(zip(names, ("smallest", "q25", "median", "q75", "largest"), strict=True)),
        },
    )  # fmt: skip


def _panelled(
    name: str,
    encoding: Spec,
    layers: list[Spec],
    data: list[Series],
    panels: list[str],
    *,
    height: int | Spec = _HEIGHT,
    beside: int = 0,
    own: Sequence[str] = ("y",),
) -> Spec:
    """Layers in one panel, or in one per scenario, whose axes ``own`` have their own scales."""
    view: Spec = {"height": height, "encoding": encoding, "layer": layers}
    if not panels:
        return {"data": {"name": name}, "width": vega.WIDTH - beside, **view}
    labels = list(dict.fromkeys(str(series["panel"]) for series in data))
    columns = min(len(labels), _PANELS)
    if height == _HEIGHT:
        view["height"] = _HEIGHT * 2 // 3
    return {
        "data": {"name": name},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": labels,
                  "header": {"labelFontWeight": 600, "labelColor": "var(--ink)"}},
        "columns": columns,
        "spec": {"width": vega.WIDTH // columns - 70, **view},
        "resolve": {"scale": dict.fromkeys(own, "independent"), "axis": {"x": "independent"}},
    }  # fmt: skip


def _panels(columns: list[str], taken: set[str | None], kind: str) -> list[str]:
    """The column that has a panel for each value: the scenario, unless it has another place."""
    least = 3 if kind == "heat" else 1
    free = "scenario" in columns and "scenario" not in taken and len(columns) >= least
    return ["scenario"] if free and columns != ["scenario"] else []


def _named(panels: list[str], shade: str | None) -> dict[str, str]:
    """Columns of the CSV file that say which panel and colour a row is in."""
    return {**dict(zip(["panel"], panels, strict=False)), **({} if shade is None else {"s": shade})}


def _table(heads: list[str], found: list[list[str]], panels: list[str]) -> Table:
    """Rows that begin with their panel, which is left out without panels."""
    return Table([*panels, *heads], found if panels else [row[1:] for row in found])


def _first(found: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The first flow or link of each run, and what that leaves out."""
    kept, others = first_of_each(found)
    if not others:
        return kept, []
    names = ", ".join(others[:_MOST_COLOURS])
    told = f"The first flow or link of each run is shown; TABLE.COLUMN@NAME shows {names}."
    return kept, [told]


def _only(found: pl.DataFrame, fixed: list[tuple[str, str]]) -> pl.DataFrame:
    import polars as pl

    for key, value in fixed:
        some = found.filter(pl.col(key).cast(pl.String) == value)
        if some.is_empty():
            raise InputError(f"no run has {key}={value}\n  available: {_values(found, key)}")
        found = some
    return found


def _values(found: pl.DataFrame, key: str) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in found[key]))


def _ordered(campaign: Campaign, found: pl.DataFrame, order: Sequence[str]) -> pl.DataFrame:
    """Rows in the order of ``NAME=VALUE,VALUE``; values that are not named come last."""
    import polars as pl

    for text in reversed(order):
        key, value = _condition(campaign, text, "NAME=VALUE,VALUE")
        wanted = [each.strip() for each in value.split(",")]
        there = found[key].cast(pl.String)
        for each in wanted:
            if each not in there:
                raise InputError(
                    f"--order {text}: no run has {key}={each}\n  available: {_values(found, key)}"
                )
        rank = there.replace_strict(wanted, range(len(wanted)), default=len(wanted))
        found = found.with_columns(rank.alias("rank")).sort("rank", maintain_order=True)
    return found.drop("rank", strict=False)


def _series(
    found: pl.DataFrame, shade: str | None, panels: list[str]
) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Panel, label and rows of each line."""
    if shade is not None and (count := found[shade].n_unique()) > _MOST_COLOURS:
        raise InputError(f"`{shade}` has {count} values; a chart has {_MOST_COLOURS} colours")
    by = list(dict.fromkeys([*panels, *([] if shade is None else [shade])]))
    if not by:
        yield "", "", found
        return
    for keys, some in found.group_by(by, maintain_order=True):
        names = dict(zip(by, (str(key) for key in keys), strict=True))
        yield names[panels[0]] if panels else "", names.get(shade or "", ""), some


def _condition(campaign: Campaign, text: str, form: str = "NAME=VALUE") -> tuple[str, str]:
    key, equals, value = text.rpartition("=")
    if not equals or key not in campaign.cell_columns:
        raise InputError(
            f"`{text}` is not a {form} of a varied key\n"
            f"  available: {', '.join(campaign.cell_columns)}"
        )
    return key, value


def _palette(count: int) -> list[str]:
    return [f"var(--c{index % 8})" for index in range(count)]


def _axis(name: str, spans: Sequence[Sequence[Any]]) -> Spec:
    """A figure's or a key's ticks; a logarithmic scale where a panel's values span a decade."""
    ticks = vega.si(*unit_of(name))
    if not any(map(vega.wide, spans)):
        return {"axis": ticks}
    # A panel shows those of its own range.
    known = [value for span in spans for value in span if value is not None and value > 0]
    ticks = {**ticks, "values": vega.log_ticks(min(known), max(known))}
    return {"axis": ticks, "scale": vega.LOG}


def _spans(found: pl.DataFrame, panels: list[str], columns: Sequence[str]) -> list[list[Any]]:
    """The values of each panel."""
    parts = found.partition_by(panels) if panels else [found]
    return [[value for column in columns for value in part[column]] for part in parts]
