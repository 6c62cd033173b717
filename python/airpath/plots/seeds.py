"""How much the seed matters."""

from __future__ import annotations

from airpath.base.text import digits
from airpath.plots import vega
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure, Series, Spec, Table


def seeds(runs: Comparison) -> Figure | None:
    """Goodput of every seed with mean and confidence interval; None with single seeds only."""
    dots: list[Series] = []
    means: list[Series] = []
    for series in runs.of_kind("bulk", "file", "quic", "udp"):
        flows = runs.runs[series.run].summary["flows"]
        flow = next(flow for flow in flows if flow["id"] == series.flow)
        values = (flow.get("values") or {}).get("goodput_mbps")
        values = values if isinstance(values, list) else []
        by_seed = zip(runs.runs[series.run].seeds, values, strict=False)
        present = {seed: value for seed, value in by_seed if value is not None}
        if len(present) < 2:
            continue
        dots.append({"s": series.label, "v": list(present.values()), "seed": list(present)})
        bounds = (flow.get("ci95") or {}).get("goodput_mbps")
        low, high = bounds if isinstance(bounds, list) else (None, None)
        means.append({"s": series.label, "v": [flow["goodput_mbps"]], "low": [low], "high": [high]})
    if not dots:
        return None
    labels = [each["s"] for each in dots]
    x = vega.number("v", "goodput (Mb/s)", scale={"zero": False, "nice": True}, axis={"grid": True})
    axis = {"labelColor": "var(--ink)", "labelLimit": 200}
    bar: Spec = {
        "mark": {"type": "rule", "strokeWidth": 2, "color": "var(--ink)"},
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
    }
    tick = {"type": "tick", "thickness": 2, "size": 16, "color": "var(--ink)"}
    spec = {
        "width": vega.WIDTH - 60,
        "height": {"step": 30},
        "encoding": {
            "y": {"field": "s", "type": "nominal", "title": None, "sort": labels, "axis": axis}
        },
        "layer": [
            {
                "data": {"name": "seeds"},
                "mark": {"type": "point", "size": 40, "opacity": 0.6, "filled": True},
                "encoding": {
                    "x": x,
                    "color": {**vega.colour(labels, runs.palette(labels)), "legend": None},
                    "tooltip": vega.tips(s="flow", v="goodput (Mb/s)", seed="seed"),
                },
            },
            {"data": {"name": "means"}, **bar},
            {"data": {"name": "means"}, "mark": tick, "encoding": {"x": x}},
        ],
    }
    return Figure(
        id="seeds",
        title="Goodput by seed",
        how_to_read=(
            "Each dot is one seed. The mark is their mean, and the bar is its 95 % confidence "
            "interval. If two bars do not overlap, the difference is more than chance."
        ),
        spec=vega.finished(spec),
        data={"seeds": dots, "means": means},
        table=Table(
            ["", "seed", "goodput (Mb/s)"],
            [
                [each["s"], str(seed), digits(value)]
                for each in dots
                for seed, value in zip(each["seed"], each["v"], strict=True)
            ],
        ),
        margin=vega.margin(labels, axis=20),
    )
