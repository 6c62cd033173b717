"""How much of each link was used."""

from __future__ import annotations

from airpath.plots import marks
from airpath.plots.data import Comparison, panel_of
from airpath.plots.figure import Figure

_MOST_ROWS = 12
_HEIGHT = 80


def links(runs: Comparison) -> Figure | None:
    """Throughput over capacity, one row a link; None if no run has a link."""
    import altair as alt
    import polars as pl

    rows, thinned, left_out = [], False, 0
    places = [
        (index, str(link["id"]))
        for index, run in enumerate(runs.runs)
        for link in run.summary["links"]
    ]
    left_out = max(0, len(places) - _MOST_ROWS)
    places = places[:_MOST_ROWS]
    for place, (index, link) in enumerate(places):
        columns = ["throughput_mbps", "capacity_mbps"]
        frame = runs.table(index, "links").filter(pl.col("link") == link)
        panel = panel_of(frame.select("t", pl.lit(link).alias("s"), *columns), columns)
        thinned |= panel.thinned
        top = marks.nice_top(
            max((max(row[name] or 0.0 for name in columns) for row in panel.rows), default=0.0)
        )
        x = marks.time_axis(runs.duration_s, last=place == len(places) - 1)
        scale = alt.Scale(domain=[0, top], nice=False)
        base = alt.Chart(marks.data(panel.rows))
        tips = [
            alt.Tooltip("t:Q", title="time (s)", format=".3~f"),
            alt.Tooltip("throughput_mbps:Q", title="throughput (Mb/s)", format=".4~g"),
            alt.Tooltip("capacity_mbps:Q", title="capacity (Mb/s)", format=".4~g"),
        ]
        area = base.mark_area(color="@@capacity", interpolate="step-before", clip=True).encode(
            x=x, y=alt.Y("capacity_mbps:Q", title="Mb/s", scale=scale), tooltip=tips
        )
        line = base.mark_line(
            color=f"@@c{index % 8}", interpolate="step-before", strokeWidth=1.4, clip=True
        ).encode(x=x, y=alt.Y("throughput_mbps:Q", title="Mb/s", scale=scale))
        title = f"{link} · {runs.labels[index]}" if runs.several else link
        rows.append(
            alt.layer(area, line.properties(name=f"zoom-{place}")).properties(
                width=marks.WIDTH, height=_HEIGHT, title=title
            )
        )
    if not rows:
        return None
    chart = alt.vconcat(*rows, spacing=12).resolve_scale(x="shared")
    notes = ["Long series are thinned to their peaks."] if thinned else []
    if left_out:
        notes.append(f"{left_out} more links are in the tables, not in the chart.")
    return Figure(
        id="links",
        title="Links: throughput against capacity",
        how_to_read=(
            "Grey is what the link could carry, the line what it did: grey above the line is "
            "capacity that no one used."
        ),
        spec=marks.finished(chart),
        notes=tuple(notes),
    )
