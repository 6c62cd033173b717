"""What the radio did: blocks, errors, queue and sleep of each UE over time."""

from __future__ import annotations

from typing import Any

from airpath.plots import marks
from airpath.plots.data import Comparison, panel_of
from airpath.plots.figure import Figure

_MOST_UES = 4
_HEIGHT = 70
_PANELS = (
    ("prbs", "PRBs per interval"),
    ("mcs", "MCS, mean of new blocks"),
    ("bler", "first transmissions that failed, share"),
    ("queue_bytes", "bytes that wait"),
    ("awake", "DRX Active Time, share"),
)


def radio(runs: Comparison) -> Figure | None:
    """Five panels for each UE and direction of the first run; None without a radio."""
    import altair as alt
    import polars as pl

    first = runs.runs[0]
    if not first.summary.get("radio"):
        return None
    table = runs.table(0, "radio")
    ues = table["ue"].unique(maintain_order=True).to_list()
    charts: list[Any] = []
    thinned = False
    for place, ue in enumerate(ues[:_MOST_UES]):
        for column, title in _PANELS:
            frame = table.filter(pl.col("ue") == ue).select(
                "t", pl.col("direction").alias("s"), pl.col(column).cast(pl.Float64)
            )
            if column == "awake" and frame[column].min() == 1.0:
                continue
            panel = panel_of(frame, [column])
            thinned |= panel.thinned
            chart = (
                alt.Chart(marks.data(panel.rows))
                .mark_line(interpolate="step-before", strokeWidth=1.2, clip=True)
                .encode(
                    x=marks.time_axis(runs.duration_s, last=False),
                    y=alt.Y(f"{column}:Q", title=None),
                    color=alt.Color(
                        "s:N",
                        title=None,
                        scale=alt.Scale(domain=["down", "up"], range=["@@c0", "@@c1"]),
                    ),
                    tooltip=[
                        alt.Tooltip("t:Q", title="time (s)", format=".3~f"),
                        alt.Tooltip("s:N", title="direction"),
                        alt.Tooltip(f"{column}:Q", title=title, format=".4~g"),
                    ],
                )
            )
            charts.append(
                chart.properties(
                    name=f"zoom-radio-{place}-{column}",
                    width=marks.WIDTH,
                    height=_HEIGHT,
                    title=f"{ue}: {title}",
                )
            )
    chart = alt.vconcat(*charts, spacing=10).resolve_scale(x="shared")
    notes = ["Long series are thinned to their peaks."] if thinned else []
    if len(ues) > _MOST_UES:
        notes.append(f"{len(ues) - _MOST_UES} more UEs are in the table `radio`, not in the chart.")
    if runs.several:
        notes.append("Shown is the first run.")
    return Figure(
        id="radio",
        title="Radio: what the cell gave and what it cost",
        how_to_read=(
            "Down and up share the axis. Few PRBs with bytes that wait: the UE waits for grants, "
            "sleeps, or others have the cell. PRBs without bytes: padding."
        ),
        spec=marks.finished(chart),
        notes=tuple(notes),
    )
