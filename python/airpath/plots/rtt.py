"""How round-trip times are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airpath.plots import marks
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure

_HEIGHT = 220
_MOST_STEPS = 600
_LOG_FROM = 12.0
"""Use a logarithmic axis when the longest RTT is this many times the shortest."""


def rtt_distribution(runs: Comparison) -> Figure | None:
    """Cumulative distribution of RTTs by flow; None without a sample."""
    import altair as alt

    rows, labels = _steps(runs)
    if not rows:
        return None
    lowest = min(row["rtt"] for row in rows)
    highest = max(row["rtt"] for row in rows)
    log = lowest > 0 and highest / lowest >= _LOG_FROM
    domain = [lowest * 0.95, highest * 1.05] if log else [0, marks.nice_top(highest)]
    palette = runs.palette(labels)
    few = len(labels) <= marks.FEW
    x = alt.X(
        "rtt:Q",
        title="RTT (ms)" + (", logarithmic" if log else ""),
        scale=alt.Scale(type="log" if log else "linear", domain=domain, nice=False),
        axis=alt.Axis(grid=True, format=",.3~f", tickCount=8),
    )
    y = alt.Y(
        "share:Q",
        title="share of samples",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 0.95], tickCount=10),
    )
    line = (
        alt.Chart(marks.data(rows))
        .mark_line(strokeWidth=1.6, clip=True)
        .encode(
            x=x,
            y=y,
            color=marks.colour(labels, palette, legend=not few),
            strokeDash=alt.StrokeDash("s:N", scale=_dashes(runs, labels), legend=None),
            tooltip=[
                alt.Tooltip("s:N", title="flow"),
                alt.Tooltip("rtt:Q", title="RTT (ms)", format=".4~g"),
                alt.Tooltip("share:Q", title="samples up to it", format=".1%"),
            ],
        )
    )
    layers: list[Any] = [line]
    if few:
        middle = (lowest * highest) ** 0.5 if log else highest / 2
        layers += _labels(rows, labels, palette, x, y, middle)
    chart = alt.layer(*layers).properties(width=marks.WIDTH, height=_HEIGHT)
    seeds = any(len(run.seeds) > 1 for run in runs.runs)
    return Figure(
        id="rtt",
        title="RTT: distribution",
        how_to_read=(
            "The height of a curve is the share of samples that were as fast or faster: upright "
            "is steady, a long shoulder to the right is queueing or retransmission."
        ),
        spec=marks.finished(chart),
        notes=("All seeds together.",) if seeds else (),
    )


def _dashes(runs: Comparison, labels: Sequence[str]) -> Any:
    """Pings are dashed where they share the colour of their run."""
    import altair as alt

    pings = {series.label for series in runs.of_kind("ping")} if runs.several else set()
    return alt.Scale(
        domain=labels, range=[[5, 3] if label in pings else [1, 0] for label in labels]
    )


def _steps(runs: Comparison) -> tuple[list[dict[str, Any]], list[str]]:
    import polars as pl

    rows: list[dict[str, Any]] = []
    labels: list[str] = []
    for series in runs.series:
        histogram = (
            runs.runs[series.run]
            .rtt_histogram.filter(pl.col("flow") == series.flow)
            .group_by("low_ms", "high_ms")
            .agg(pl.col("count").sum())
            .sort("low_ms")
        )
        if histogram.is_empty():
            continue
        labels.append(series.label)
        counts = histogram["count"].cast(pl.Float64)
        shares = (counts.cum_sum() / counts.sum()).to_list()
        edges = histogram["high_ms"].to_list()
        every = max(1, len(edges) // _MOST_STEPS)
        rows.append({"rtt": histogram["low_ms"][0], "share": 0.0, "s": series.label})
        rows += [
            {"rtt": round(edge, 4), "share": round(share, 5), "s": series.label}
            for index, (edge, share) in enumerate(zip(edges, shares, strict=True))
            if index % every == 0 or index == len(edges) - 1
        ]
    return rows, labels


def _labels(
    rows: Sequence[dict[str, Any]],
    labels: Sequence[str],
    palette: Sequence[str],
    x: Any,
    y: Any,
    middle: float,
) -> list[Any]:
    """Names beside the curves, each at its own height, so that they cannot touch.

    Right of a curve in the left half of the axis, left of it in the right half.
    """
    import altair as alt

    layers = []
    for index, (label, shade) in enumerate(zip(labels, palette, strict=True)):
        height = 0.84 - 0.15 * index
        at = next(row["rtt"] for row in rows if row["s"] == label and row["share"] >= height)
        left = at > middle
        mark = alt.Chart(marks.data([{"s": label, "rtt": at, "share": height}])).mark_text(
            align="right" if left else "left",
            baseline="middle",
            dx=-7 if left else 7,
            fontSize=11,
            color=shade,
        )
        layers.append(mark.encode(x=x, y=y, text="s:N"))
    return layers
