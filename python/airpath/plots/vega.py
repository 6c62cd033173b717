"""Pieces of Vega-Lite that several charts share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from airpath.base.text import digits
from airpath.plots.figure import Series, Spec, Table
from airpath.plots.theme import CONFIG

WIDTH = 760
"""Width of a plot in pixels; the report fits it to the page."""
FEW = 5
"""Up to this many series are labelled at their line, more by a legend."""
LABEL = "label"
"""Describes views that a narrow page leaves out; it shows a legend instead."""
# Dragging pans, Ctrl + wheel zooms: the bare wheel belongs to the page.
_ZOOM: Spec = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "zoom": "wheel![event.ctrlKey || event.metaKey]",
    },
    "bind": "scales",
}
_HOVER: Spec = {
    "name": "hover",
    "select": {
        "type": "point",
        "nearest": True,
        "on": "pointermove",
        "clear": "pointerout",
        "fields": ["t"],
    },
}
_TABLE_ROWS = 20
_DECADE = 10
_FEW_DECADES = 3
"""Up to so many decades of a logarithmic axis have ticks at 2 and 5 as well."""


def finished(spec: Spec) -> Spec:
    """A chart with its style; views whose names start with zoom or hover share that parameter."""
    names = [view["name"] for view in views(spec) if "name" in view]
    params = []
    for param in (_ZOOM, _HOVER):
        shared = [name for name in names if name.startswith(param["name"])]
        if shared:
            params.append({**param, "views": shared})
    return {**spec, "config": CONFIG, "params": params}


def views(spec: Spec) -> list[Spec]:
    """The specification and every one inside it."""
    inner = [view for group in ("vconcat", "layer") for view in spec.get(group, [])]
    inner += [spec["spec"]] if "spec" in spec else []
    return [spec, *(found for view in inner for found in views(view))]


def stacked(panels: Sequence[Spec], spacing: int) -> Spec:
    """Panels over one shared axis; only the last shows its numbers."""
    for panel in panels[:-1]:
        axis = {"title": None, "labels": False, "ticks": False}
        panel["encoding"]["x"] = {**panel["encoding"]["x"], "axis": axis}
    scale = {"x": "shared", "color": "independent", "shape": "independent"}
    return finished({"vconcat": list(panels), "spacing": spacing, "resolve": {"scale": scale}})


def number(field: str, title: str | None, **more: Any) -> Spec:
    """A quantity on an axis."""
    return {"field": field, "type": "quantitative", "title": title, **more}


LOG: Spec = {"type": "log", "nice": False, "padding": 10}
"""A logarithmic scale."""


def wide(values: Sequence[float | None]) -> bool:
    """Whether positive values span a decade: a linear axis would push most of them together."""
    known = [value for value in values if value is not None]
    return bool(known) and min(known) > 0 and max(known) / min(known) >= _DECADE


def log_ticks(least: float, most: float) -> list[float]:
    """Powers of ten, with their doubles and fives where there are few."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = (1, 2, 5) if high - low <= _FEW_DECADES else (1,)
    return [float(f"{step}e{power}") for power in range(low, high + 1) for step in steps]


def si(unit: str, factor: float, form: str = "~s") -> Spec:
    """An axis whose ticks have SI prefixes: ``2 MB``, ``10 ms``; ``factor`` units are a 1."""
    if not unit:
        return {}
    # d3 puts the prefix right behind the number, and none behind 1 to 999.
    shown = (
        f"replace(format(datum.value * {factor!r}, '{form}'), regexp('([a-zA-Zµ]?)$'), '\u00a0$1')"
    )
    return {"labelExpr": f"datum.value == 0 ? '0' : {shown} + '{unit}'"}


def si_legend(unit: str, factor: float) -> Spec:
    """A legend of a quantity, its ticks as on an axis."""
    return {"gradientLength": 160, **si(unit, factor, ".3~s")}


def up_to(field: str, title: str, top: float) -> Spec:
    """A quantity on an axis from 0."""
    return number(field, title, scale={"domain": [0, top], "nice": False})


def time(duration_s: float) -> Spec:
    """The time axis."""
    return number("t", "time (s)", scale={"domain": [0, duration_s], "nice": False})


def colour(labels: Sequence[str], palette: Sequence[str], *, legend: bool = False) -> Spec:
    """Colour by label; both lists are in the same order."""
    scale = {"domain": list(labels), "range": list(palette)}
    shown = {"columns": 4, "labelLimit": 280} if legend else None
    return {"field": "s", "type": "nominal", "title": None, "scale": scale, "legend": shown}


def tips(**fields: str) -> list[Spec]:
    """What the pointer reads out: titles by field."""
    return [{"field": field, "title": title} for field, title in fields.items()]


def hover_rule(data: Sequence[Series], column: str, unit: str) -> Spec:
    """A line under the pointer that reads out every series but pings."""
    shown = {series["k"]: f"{series['s']} ({unit})" for series in data if "ping" not in series}
    return {
        "name": f"hover-{column}",
        "transform": [
            {"filter": f"!datum.ping && isValid(datum.{column})"},
            {"pivot": "k", "value": column, "groupby": ["t"]},
        ],
        "mark": {"type": "rule", "strokeWidth": 1},
        "encoding": {
            "color": {"value": "var(--muted)"},
            "opacity": {
                "condition": {"param": "hover", "empty": False, "value": 0.8},
                "value": 0,
            },
            "tooltip": tips(t="time (s)", **shown),
        },
    }


def moves(ue: str) -> list[Spec]:
    """A line with the cell's name wherever a UE leaves one; of all UEs without a name."""
    view: Spec = {"data": {"name": "moves"}}
    if ue:
        view["transform"] = [{"filter": {"field": "s", "equal": ue}}]
    colour = {"color": {"value": "var(--muted)"}}
    rule = {"type": "rule", "strokeWidth": 1, "strokeDash": [2, 2], "clip": True}
    text = {"type": "text", "align": "left", "dx": 3, "fontSize": 10, "clip": True}
    tooltip = tips(t="time (s)", s="UE", what="what", cell="cell")
    return [
        {**view, "mark": rule, "encoding": {**colour, "tooltip": tooltip}},
        {
            **view,
            "mark": text,
            "encoding": {**colour, "y": {"value": 6}, "text": {"field": "cell"}},
        },
    ]


def end_labels(
    data: Sequence[Series], column: str, palette: Mapping[str, str], top: float, height: int
) -> list[Spec]:
    """The name of each series beside the end of its line, moved apart where they would touch."""
    wanted = []
    for series in data:
        last = next((value for value in reversed(series[column]) if value is not None), None)
        if last is not None:
            wanted.append((height * (1 - min(last, top) / top), series["s"]))
    return [
        label(s, palette[s], {"value": "width"}, {"value": y})
        for y, s in spread(wanted, 13.0, float(height))
    ]


def label(text: str, shade: str, x: Spec, y: Spec, *, left: bool = False) -> Spec:
    """The name of a series beside its line; narrow pages have a legend instead."""
    mark = {"type": "text", "baseline": "middle", "fontSize": 11, "limit": 150, "clip": False}
    side = {"align": "right", "dx": -7} if left else {"align": "left", "dx": 6}
    encoding = {"x": x, "y": y, "color": {"value": shade}, "text": {"value": text}}
    return {
        "description": LABEL, "data": {"values": [{}]}, "mark": {**mark, **side},
        "encoding": encoding,
    }  # fmt: skip


def spread(
    wanted: Sequence[tuple[float, str]], gap: float, height: float
) -> list[tuple[float, str]]:
    """Move positions apart until neighbours are ``gap`` pixels from one another."""
    placed: list[tuple[float, str]] = []
    for y, label in sorted(wanted):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, label))
    limit = height
    for index in range(len(placed) - 1, -1, -1):
        y, label = placed[index]
        placed[index] = (min(y, limit), label)
        limit = placed[index][0] - gap
    return placed


def margin(labels: Sequence[str], *, axis: int = 80) -> int:
    """Pixels beside a plot for its axis and for labels at the ends of lines."""
    longest = max((len(label) for label in labels), default=0)
    return axis + min(150, 7 * longest + 8)


def nice_top(value: float) -> float:
    """A round number a little above a value: the end of an axis that starts at 0."""
    if value <= 0:
        return 1.0
    step = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.1
    while step > value:
        step /= 10
    for factor in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10):
        if value * 1.02 <= step * factor:
            return step * factor
    return step * 12


def highest(data: Sequence[Series], *columns: str) -> float:
    """The largest value of these columns, 0 without any."""
    values = (series.get(column, ()) for series in data for column in columns)
    return max((value for each in values for value in each if value is not None), default=0.0)


def time_table(data: Sequence[Series], end: float, **columns: str) -> Table:
    """Means of each series over slices of time; titles by column."""
    rows = []
    for series in data:
        slices: dict[int, list[int]] = {}
        for index, t in enumerate(series["t"]):
            slices.setdefault(min(_TABLE_ROWS - 1, int(t / end * _TABLE_ROWS)), []).append(index)
        for place, indices in sorted(slices.items()):
            cells = [_mean(series.get(column), indices) for column in columns]
            if any(cells):
                rows.append([series["s"], digits(place * end / _TABLE_ROWS), *cells])
    return Table(["", "from (s)", *columns.values()], rows)


def _mean(values: Sequence[float | None] | None, indices: Sequence[int]) -> str:
    present = [value for i in indices if values and (value := values[i]) is not None]
    return digits(sum(present) / len(present)) if present else ""
