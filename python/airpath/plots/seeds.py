"""How much the seed matters."""

from __future__ import annotations

from airpath.plots import marks
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure


def seeds(runs: Comparison) -> Figure | None:
    """Goodput of every seed with mean and confidence interval; None with single seeds only."""
    import altair as alt

    dots, means, labels = [], [], []
    for series in runs.of_kind("bulk", "file", "udp"):
        flows = runs.runs[series.run].summary["flows"]
        flow = next(flow for flow in flows if flow["id"] == series.flow)
        values = (flow.get("values") or {}).get("goodput_mbps") or []
        present = [value for value in values if value is not None]
        if len(present) < 2:
            continue
        labels.append(series.label)
        dots += [
            {"s": series.label, "v": value, "seed": seed}
            for seed, value in zip(runs.runs[series.run].seeds, values, strict=False)
            if value is not None
        ]
        low, high = (flow.get("ci95") or {}).get("goodput_mbps") or [None, None]
        means.append({"s": series.label, "v": flow["goodput_mbps"], "low": low, "high": high})
    if not dots:
        return None
    palette = runs.palette(labels)
    y = alt.Y("s:N", title=None, sort=labels, axis=alt.Axis(labelColor="@@ink", labelLimit=200))
    x = alt.X(
        "v:Q", title="goodput (Mb/s)", scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(grid=True),
    )  # fmt: skip
    colour = marks.colour(labels, palette)
    tips = [
        alt.Tooltip("s:N", title="flow"),
        alt.Tooltip("v:Q", title="goodput (Mb/s)", format=".4~g"),
        alt.Tooltip("seed:Q", title="seed"),
    ]
    single = alt.Chart(marks.data(dots)).mark_point(size=40, opacity=0.6, filled=True)
    bar = alt.Chart(marks.data(means)).mark_rule(strokeWidth=2, color="@@ink")
    tick = alt.Chart(marks.data(means)).mark_tick(thickness=2, size=16, color="@@ink")
    chart = alt.layer(
        single.encode(x=x, y=y, color=colour, tooltip=tips),
        bar.encode(x=alt.X("low:Q", title="goodput (Mb/s)"), x2="high:Q", y=y),
        tick.encode(x=x, y=y),
    ).properties(width=marks.WIDTH - 60, height=alt.Step(30))
    return Figure(
        id="seeds",
        title="Goodput by seed",
        how_to_read=(
            "One dot a seed; the mark is their mean and the bar its 95 % confidence interval: "
            "bars that do not overlap differ by more than chance."
        ),
        spec=marks.finished(chart),
        margin=marks.margin(labels, axis=20),
    )
