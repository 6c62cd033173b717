"""Where the time of each flow went: one stacked bar a figure."""

from __future__ import annotations

from airpath.base.text import percent
from airpath.plots import vega
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure, Series, Table
from airpath.runs import describe

_MOST_BARS = 12
_LEAST_SHARE = 0.01
_OTHERS = "others, below 1 %"


def breakdown(runs: Comparison) -> Figure | None:
    """Capacity, RTT and one-way delay of the first flows; None if no run was accounted for."""
    bars: list[Series] = []
    rows: list[list[str]] = []
    names: list[str] = []
    for run, label in zip(runs.runs, runs.labels, strict=True):
        for flow in run.summary.get("breakdowns", []):
            for what, whole, parts in describe.breakdown_parts(flow):
                of = f"{label}, {flow['id']}" if runs.several else flow["id"]
                name = f"{what} {of}"
                if len(names) == _MOST_BARS:
                    continue
                names.append(name)
                small = sum(share for _, share, _ in parts if 0 < share < _LEAST_SHARE)
                shown = [part for part in parts if part[1] >= _LEAST_SHARE]
                for part, share, text in [*shown, (_OTHERS, small, "")]:
                    if share > 0:
                        bars.append({"bar": name, "s": part, "v": [100 * share], "text": [text]})
                        rows.append([name, part, text, percent(share)])
                rows.append([name, "the whole", whole, percent(1.0)])
    if not bars:
        return None
    parts_shown = list(dict.fromkeys(str(each["s"]) for each in bars))
    palette = [f"var(--c{index % 8})" for index in range(len(parts_shown))]
    axis = {"labelColor": "var(--ink)", "labelLimit": 260}
    spec = {
        "width": vega.WIDTH - 120,
        "height": {"step": 26},
        "data": {"name": "breakdown"},
        "mark": {"type": "bar", "stroke": "var(--page)", "strokeWidth": 1},
        "encoding": {
            "y": {"field": "bar", "type": "nominal", "title": None, "sort": names, "axis": axis},
            "x": {**vega.number("v", "share (%)"), "stack": "zero", "scale": {"domain": [0, 100]}},
            "color": vega.colour(parts_shown, palette, legend=True),
            "order": {"field": "place", "type": "quantitative"},
            "tooltip": vega.tips(bar="figure", s="part", text="amount", v="share (%)"),
        },
    }
    for each in bars:
        each["place"] = parts_shown.index(str(each["s"]))
    return Figure(
        id="breakdown",
        title="Where the time goes",
        how_to_read=(
            "Each bar is one whole figure. The capacity is what the slowest link could have "
            "carried: the goodput, and what used up the rest. RTT and delay are means, split "
            "by where the time was spent."
        ),
        spec=vega.finished(spec),
        data={"breakdown": bars},
        table=Table(["figure", "part", "amount", "share"], rows),
        margin=300,
    )
