"""Pieces that several charts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airpath.plots.theme import CONFIG

if TYPE_CHECKING:
    import altair as alt

WIDTH = 760
"""Width of a plot in pixels; the report fits it to the page."""
# Dragging pans, Ctrl + wheel zooms: the bare wheel belongs to the page.
ZOOM: dict[str, Any] = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "zoom": "wheel![event.ctrlKey || event.metaKey]",
    },
    "bind": "scales",
}
HOVER: dict[str, Any] = {
    "name": "hover",
    "select": {
        "type": "point",
        "nearest": True,
        "on": "pointermove",
        "clear": "pointerout",
        "fields": ["t"],
    },
}
_HOVERED = {"condition": {"param": "hover", "empty": False, "value": 0.8}, "value": 0}

FEW = 5
"""Up to this many series are labelled at their line, more by a legend."""


def data(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Rows as inline data."""
    import altair as alt

    return alt.InlineData(values=list(rows))


def finished(chart: Any) -> dict[str, Any]:
    """A chart as a specification that refers to nothing outside itself.

    Views whose names start with ``zoom`` or ``hover`` share that parameter.
    """
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema", None)
    names = _view_names(spec)
    params = []
    for param in (ZOOM, HOVER):
        views = [name for name in names if name.startswith(param["name"])]
        if views:
            params.append({**param, "views": views})
    return {**spec, "config": CONFIG, **({"params": params} if params else {})}


def colour(labels: Sequence[str], palette: Sequence[str], *, legend: bool = False) -> alt.Color:
    """Colour by label; both lists are in the same order."""
    import altair as alt

    shown = alt.Legend(title=None, orient="top", columns=4, labelLimit=280) if legend else None
    return alt.Color("s:N", scale=alt.Scale(domain=list(labels), range=list(palette)), legend=shown)


def time_axis(duration_s: float, *, last: bool) -> alt.X:
    """The shared time axis; only the last panel shows its numbers."""
    import altair as alt

    axis = alt.Axis(title="time (s)") if last else alt.Axis(title=None, labels=False, ticks=False)
    return alt.X("t:Q", scale=alt.Scale(domain=[0, duration_s], nice=False), axis=axis)


def hover_rule(
    rows: Sequence[dict[str, Any]],
    x: alt.X,
    column: str,
    labels: Sequence[str],
    unit: str,
    name: str,
) -> Any:
    """A line under the pointer that reads out every series."""
    import altair as alt

    # Field names may not hold dots: series are k0, k1, … here and have their labels as titles.
    keys = {label: f"k{index}" for index, label in enumerate(labels)}
    values: dict[float, dict[str, Any]] = {}
    for row in rows:
        if row.get(column) is not None and row["s"] in keys:
            values.setdefault(row["t"], {"t": row["t"]})[keys[row["s"]]] = row[column]
    tips = [alt.Tooltip("t:Q", title="time (s)", format=".3~f")]
    tips += [
        alt.Tooltip(f"{key}:Q", title=f"{label} ({unit})", format=".4~g")
        for label, key in keys.items()
    ]
    return (
        alt.Chart(data(list(values.values())))
        .mark_rule(color="@@muted", strokeWidth=1)
        .encode(x=x, opacity=alt.OpacityValue.from_dict(_HOVERED), tooltip=tips)
        .properties(name=f"hover-{name}")
    )


def end_labels(
    rows: Sequence[dict[str, Any]],
    column: str,
    labels: Sequence[str],
    top: float,
    height: int,
    palette: Sequence[str],
) -> list[Any]:
    """The name of each series beside the end of its line, moved apart where they would touch."""
    import altair as alt

    last: dict[str, float] = {}
    for row in rows:
        if row.get(column) is not None:
            last[row["s"]] = float(row[column])
    wanted = [(height * (1 - min(last[s], top) / top), s) for s in labels if s in last]
    layers = []
    for y, label in spread(wanted, 13.0, float(height)):
        shade = palette[list(labels).index(label)]
        mark = alt.Chart(data([{"s": label}])).mark_text(
            align="left", baseline="middle", dx=6, fontSize=11, color=shade, limit=150, clip=False
        )
        layers.append(
            mark.encode(
                x=alt.XValue.from_dict({"value": "width"}),
                y=alt.YValue.from_dict({"value": y}),
                text=alt.Text("s:N"),
            )
        )
    return layers


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


def still(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification without what only a pointer can use: for files and for print."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    if "vconcat" in kept:
        kept["vconcat"] = [still(view) for view in kept["vconcat"]]
    if "layer" in kept:
        views = [view for view in kept["layer"] if not view.get("name", "").startswith("hover")]
        kept["layer"] = [still(view) for view in views]
    if "datasets" in kept:
        used = _data_names(kept)
        kept["datasets"] = {name: rows for name, rows in kept["datasets"].items() if name in used}
    return kept


def _views(spec: dict[str, Any]) -> list[dict[str, Any]]:
    views = [spec]
    for group in ("vconcat", "layer"):
        for view in spec.get(group, []):
            views += _views(view)
    return views


def _view_names(spec: dict[str, Any]) -> list[str]:
    return [view["name"] for view in _views(spec) if "name" in view]


def _data_names(spec: dict[str, Any]) -> set[str]:
    return {view["data"]["name"] for view in _views(spec) if "name" in (view.get("data") or {})}
