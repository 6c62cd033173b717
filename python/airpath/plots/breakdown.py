"""Where the time of each flow went: each part of a whole figure with its name and amount."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from airpath.base.text import percent
from airpath.plots import vega
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure, Series, Spec, Table
from airpath.runs import describe

_MOST_PANELS = 12
_LEAST_SHARE = 0.01
_OTHERS = "others, below 1 %"
_ROW = 30
"""Pixels for a part, whose name may take two lines."""
_NAMES = 150
"""Pixels for the names of parts."""
_ROOM = 145
"""Where the axis ends, in percent: behind a bar is room for its amount."""
_OWN = ("goodput", "propagation")
"""What reaches the application, and the time that the path itself takes."""
_LABEL = "split(replace(replace(datum.label, ' (', '\\n('), ': ', ':\\n'), '\\n')"


class _Part(NamedTuple):
    name: str
    share: float
    text: str


def breakdown(runs: Comparison) -> Figure | None:
    """Capacity, RTT and one-way delay of the first flows; None if no run was accounted for."""
    panels: dict[str, list[Series]] = {}
    wholes: dict[str, list[str]] = {}
    rows: list[list[str]] = []
    for run, label in zip(runs.runs, runs.labels, strict=True):
        again = describe.AGAIN if describe.is_resimulated(run.summary) else ""
        for flow in run.summary.get("breakdowns", []):
            for what, whole, parts in describe.breakdown_parts(flow, run.summary):
                name = f"{what} {describe.leg_name(flow['id'], run.summary)}{again}"
                if name not in panels and len(panels) == _MOST_PANELS:
                    continue
                wholes.setdefault(name, []).append(f"{label}: {whole}" if runs.several else whole)
                shown = _shown([_Part(*part) for part in parts])
                panels.setdefault(name, []).extend(
                    _bars(name, label, shown, cascade=not runs.several)
                )
                rows += [[*([label] if runs.several else []), name, part.name, part.text,
                          percent(part.share)] for part in shown]  # fmt: skip
    if not panels:
        return None
    bars = [bar for each in panels.values() for bar in each]
    shades = _shades(runs)
    made = [_panel(name, "; ".join(wholes[name]), each, shades) for name, each in panels.items()]
    return Figure(
        id="breakdown",
        title="Where the time goes",
        how_to_read=_how_to_read(several=runs.several)
        + (_AGAIN if any(describe.is_resimulated(run.summary) for run in runs.runs) else ""),
        spec=vega.finished({"vconcat": made, "spacing": 14}),
        data={"breakdown": bars},
        table=Table(
            [*(["run"] if runs.several else []), "figure", "part", "amount", "share"], rows
        ),
        margin=_NAMES + 40,
        narrow=_NAMES + 10,
    )


_AGAIN = (
    " A re-simulated figure is not of the recorded run: airpath simulated the same flows over the "
    "same path, and took that apart."
)


def _how_to_read(*, several: bool) -> str:
    layout = (
        "The bars of one part belong to the runs."
        if several
        else "The bars follow each other and add up to the whole."
    )
    return (
        "Each block is one whole figure: the capacity of the slowest link, the mean RTT or the "
        f"mean one-way delay. {layout} The capacity goes to the goodput and to what used up the "
        "rest; a delay is where packets spent it."
    )


def _shown(parts: Sequence[_Part]) -> list[_Part]:
    """Parts worth a bar; the small ones together."""
    small = sum(part.share for part in parts if 0 < part.share < _LEAST_SHARE)
    large = [part for part in parts if part.share >= _LEAST_SHARE]
    return [*large, *([_Part(_OTHERS, small, "")] if small > 0 else [])]


def _bars(name: str, label: str, parts: Sequence[_Part], *, cascade: bool) -> list[Series]:
    """One series a part; in a cascade each begins where the last ended."""
    made: list[Series] = []
    start = 0.0
    for part in parts:
        share = 100 * part.share
        text = f"{part.text}, {percent(part.share)}" if part.text else percent(part.share)
        kind = "own" if part.name in _OWN else "other"
        made.append({
            "bar": name, "s": part.name, "run": label, "kind": kind, "from": [start],
            "to": [start + share], "v": [share], "text": [text],
        })  # fmt: skip
        start += share if cascade else 0.0
    return made


def _shades(runs: Comparison) -> Spec:
    """Colour by run; of one run, what is the path's own apart from what limits it."""
    if runs.several:
        palette = [f"var(--c{index % 8})" for index in range(len(runs.labels))]
        return {**vega.colour(runs.labels, palette, legend=True), "field": "run"}
    scale = {"domain": ["own", "other"], "range": ["var(--c0)", "var(--c1)"]}
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": None}


def _panel(name: str, whole: str, bars: Sequence[Series], shades: Spec) -> Spec:
    parts = list(dict.fromkeys(str(bar["s"]) for bar in bars))
    runs = list(dict.fromkeys(str(bar["run"]) for bar in bars))
    several = len(runs) > 1
    axis = {"labelColor": "var(--ink)", "labelLimit": _NAMES, "labelExpr": _LABEL, "domain": False,
            "ticks": False, "minExtent": _NAMES, "maxExtent": _NAMES, "grid": False}  # fmt: skip
    y: Spec = {"field": "s", "type": "nominal", "title": None, "sort": parts, "axis": axis}
    scale = {"domain": [0, _ROOM], "nice": False}
    x = vega.number("from", None, scale=scale, axis=None)
    offset = {"yOffset": {"field": "run", "type": "nominal", "sort": runs}} if several else {}
    tooltip = vega.tips(run="run", bar="figure", s="part", text="amount")
    step = max(_ROW, 15 * len(runs) + 8)
    return {
        "title": {"text": name, "subtitle": whole, "offset": 4},
        "width": vega.WIDTH - 120,
        "height": step * len(parts),
        "data": {"name": "breakdown"},
        "transform": [{"filter": {"field": "bar", "equal": name}}],
        "encoding": {"y": y, **offset},
        "layer": [
            {"mark": {"type": "bar", "height": 14 if not several else 12},
             "encoding": {"x": x, "x2": {"field": "to"}, "color": shades, "tooltip": tooltip}},
            {"mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 11},
             "encoding": {"x": {**x, "field": "to"}, "text": {"field": "text"},
                          "color": {"value": "var(--ink)"}}},
        ],
    }  # fmt: skip
