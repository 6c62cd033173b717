"""The main figure: goodput, RTT, cwnd and queue over one shared time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airpath.plots import marks
from airpath.plots.data import Comparison, Panel, busiest_link, panel_of
from airpath.plots.figure import Figure
from airpath.plots.theme import LINKS, SERIES

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

_EVENTS = {
    "slow_start_exit": ("slow start ends", "diamond"),
    "recovery_start": ("loss", "triangle-down"),
    "retransmission_timeout": ("time-out (RTO)", "cross"),
}
_MOVES = {
    "handover_command": "handover to",
    "handover_failed": "handover failed to",
    "radio_link_failure": "link failed (T310) in",
    "radio_link_failure_rlc": "link failed (RLC) in",
    "cell_reselection": "reselects",
}
_HEIGHT = 120
_SMOOTH_S = 1.0


def timeline(runs: Comparison) -> Figure:
    """Goodput, RTT, cwnd and queue, stacked; zooming one zooms all."""
    import altair as alt

    maker = _Timeline(runs)
    panels = [
        panel for panel in (maker.goodput(), maker.rtt(), maker.cwnd(), maker.queue()) if panel
    ]
    chart = alt.vconcat(*panels, spacing=14).resolve_scale(
        x="shared", color="independent", shape="independent", fill="independent"
    )
    return Figure(
        id="timeline",
        title="What happened, over time",
        how_to_read=(
            "Read down: a queue that fills raises the RTT above it, a full one drops, the drop "
            "halves cwnd, and goodput shows whether it mattered. Drag to pan, Ctrl + wheel to "
            "zoom, double-click to reset; all panels follow."
        ),
        spec=marks.finished(chart),
        notes=tuple(maker.notes()),
        margin=marks.margin(maker.end_labels),
    )


class _Timeline:
    def __init__(self, runs: Comparison) -> None:
        self.runs = runs
        self.labels = [series.label for series in runs.series]
        self.legend = len(self.labels) > marks.FEW
        self.thinned = False
        self.end_labels: list[str] = []

    def notes(self) -> list[str]:
        """What the figure leaves out."""
        notes = []
        if self.thinned:
            notes.append(
                "Long series are thinned: lowest and highest value of each slice of time are kept."
            )
        if self.runs.left_out:
            notes.append(f"{self.runs.left_out} more flows are in the tables, not in the charts.")
        if any(len(run.seeds) > 1 for run in self.runs.runs):
            notes.append("Shown is the first seed.")
        return notes

    def goodput(self) -> Any:
        import altair as alt

        series = self.runs.of_kind("bulk", "file", "udp")
        panel = self.runs.panel("samples", ["goodput_mbps"], series, smooth_s=_SMOOTH_S)
        labels = [each.label for each in series]
        thin = alt.Chart(marks.data(panel.rows)).mark_line(strokeWidth=0.7, opacity=0.4, clip=True)
        return self._lines(
            panel,
            "smooth",
            labels,
            "Mb/s",
            "Goodput: bold over 1 s, thin each interval",
            extra=[(thin, "goodput_mbps")],
            over=self._move_marks,
            headroom=1.15,
            legend=self.legend,
        )

    def rtt(self) -> Any:
        import altair as alt

        panel = self.runs.panel("samples", ["rtt_ms"], self.runs.of_kind("bulk", "file"))
        pings = self.runs.panel("pings", ["rtt_ms"], self.runs.of_kind("ping"))
        everything = panel.rows + pings.rows
        layers = []
        if pings.rows:
            self.thinned |= pings.thinned
            dots = alt.Chart(marks.data(pings.rows)).mark_point(
                filled=True, size=9, opacity=0.55, clip=True
            )
            layers.append((dots, "rtt_ms"))
        title = "Round-trip time: lines from TCP's samples" + (
            ", dots from pings" if pings.rows else ""
        )
        combined = Panel(everything, panel.thinned)
        drawn = panel if panel.rows else pings
        return self._lines(drawn, "rtt_ms", self.labels, "ms", title, extra=layers, scale=combined)

    def cwnd(self) -> Any:
        import altair as alt

        columns = ["cwnd_segments", "inflight_segments", "ssthresh_segments"]
        series = self.runs.of_kind("bulk", "file")
        panel = self.runs.panel("samples", columns, series)
        inflight = alt.Chart(marks.data(panel.rows)).mark_line(
            strokeWidth=0.8, opacity=0.55, clip=True
        )
        ssthresh = alt.Chart(marks.data(panel.rows)).mark_line(
            strokeDash=[4, 3], strokeWidth=1, clip=True, interpolate="step-after"
        )
        return self._lines(
            panel,
            "cwnd_segments",
            [each.label for each in series],
            "segments",
            "Congestion window: solid cwnd, dashed ssthresh, thin in flight",
            extra=[(inflight, "inflight_segments"), (ssthresh, "ssthresh_segments")],
            over=self._event_marks,
            headroom=1.2,
            height=150,
        )

    def queue(self) -> Any:
        import polars as pl

        frames, labels, several = [], [], self.runs.several
        for index, run in enumerate(self.runs.runs):
            links = (
                [busiest_link(run)] if several else [link["id"] for link in run.summary["links"]]
            )
            for link in links[: marks.FEW]:
                if link is not None:
                    label = self.runs.labels[index] if several else link
                    labels.append(label)
                    frame = self.runs.table(index, "links").filter(pl.col("link") == link)
                    frames.append(frame.select("t", pl.lit(label).alias("s"), "queue_delay_ms"))
        if not frames:
            return None
        panel = panel_of(pl.concat(frames), ["queue_delay_ms"])
        title = "Queue delay" + (" of the link with the longest queue" if several else " by link")
        return self._lines(
            panel,
            "queue_delay_ms",
            labels,
            "ms",
            f"{title}; ticks along the top are drops",
            palette=[
                SERIES[index % len(SERIES)] if several else LINKS[index % len(LINKS)]
                for index in range(len(labels))
            ],
            over=self._drop_marks,
            last=True,
        )

    def _lines(
        self,
        panel: Panel,
        column: str,
        labels: Sequence[str],
        unit: str,
        title: str,
        *,
        extra: Sequence[tuple[Any, str]] = (),
        over: Any = None,
        scale: Panel | None = None,
        palette: Sequence[str] | None = None,
        headroom: float = 1.0,
        legend: bool = False,
        height: int = _HEIGHT,
        last: bool = False,
    ) -> Any:
        """One panel: lines over time, more layers below and above them, labels at the right."""
        import altair as alt

        if not panel.rows:
            return None
        self.thinned |= panel.thinned
        rows = (scale or panel).rows
        highest = max((row[column] or 0.0 for row in rows), default=0.0)
        top = marks.nice_top(highest * headroom)
        x = marks.time_axis(self.runs.duration_s, last=last)
        shades = self.runs.palette(labels) if palette is None else palette
        colour = marks.colour(labels, shades, legend=legend)

        def y(field: str) -> alt.Y:
            return alt.Y(f"{field}:Q", title=unit, scale=alt.Scale(domain=[0, top], nice=False))

        layers = [chart.encode(x=x, y=y(field), color=colour) for chart, field in extra]
        is_line = scale is None or any(row["s"] in labels for row in panel.rows)
        if is_line:
            line = alt.Chart(marks.data(panel.rows)).mark_line(strokeWidth=1.6, clip=True)
            layers.append(
                line.encode(x=x, y=y(column), color=colour).properties(name=f"zoom-{column}")
            )
        if over is not None:
            layers += over(x, y, column, colour)
        layers.append(marks.hover_rule(rows, x, column, labels, unit, column))
        if not self.legend or palette is not None:
            self.end_labels += labels
            layers += marks.end_labels(rows, column, labels, top, height, shades)
        return (
            alt.layer(*layers)
            .resolve_scale(shape="independent", fill="independent", size="independent")
            .properties(width=marks.WIDTH, height=height, title=title)
        )

    def _event_marks(self, x: alt.X, y: Any, column: str, colour: alt.Color) -> list[Any]:
        import altair as alt
        import polars as pl

        frames = [
            self._events(index).filter(pl.col("kind").is_in(list(_EVENTS)))
            for index in range(len(self.runs.runs))
        ]
        events = pl.concat(frames)
        if events.is_empty():
            return []
        words = {kind: text for kind, (text, _) in _EVENTS.items()}
        events = events.with_columns(pl.col("kind").replace_strict(words).alias("what"))
        panel = panel_of(events.select("t", "s", column, "what", "reason"), [column])
        self.thinned |= panel.thinned
        present = [pair for pair in _EVENTS.values() if pair[0] in events["what"]]
        shape = alt.Shape(
            "what:N",
            scale=alt.Scale(
                domain=[text for text, _ in present], range=[mark for _, mark in present]
            ),
            legend=alt.Legend(
                title=None,
                orient="top-right",
                direction="horizontal",
                symbolFillColor="@@muted",
                symbolStrokeColor="@@muted",
                fillColor="@@page",
                padding=2,
            ),
        )
        tips = [
            alt.Tooltip("t:Q", title="time (s)", format=".3~f"),
            alt.Tooltip("what:N", title="event"),
            alt.Tooltip("reason:N", title="reason"),
            alt.Tooltip(f"{column}:Q", title="cwnd (segments)"),
            alt.Tooltip("s:N", title="flow"),
        ]
        dots = alt.Chart(marks.data(panel.rows)).mark_point(
            filled=True, opacity=1, stroke="@@page", strokeWidth=0.8, clip=True
        )
        # A loss often ends slow start: the diamond shows behind the triangle.
        size = alt.condition("datum.what == 'slow start ends'", alt.value(150), alt.value(45))
        return [
            dots.encode(x=x, y=y(column), shape=shape, fill=_fill(colour), size=size, tooltip=tips)
        ]

    def _events(self, index: int) -> pl.DataFrame:
        """Events of a run's flows with the label of the series and a cwnd to draw them at."""
        import polars as pl

        labels = {each.flow: each.label for each in self.runs.series if each.run == index}
        cwnd = self.runs.table(index, "samples").select(
            "time_ns", "flow", pl.col("cwnd_segments").cast(pl.Float64).alias("sampled")
        )
        return (
            self.runs.table(index, "events")
            .filter(pl.col("flow").is_in(list(labels)))
            .sort("time_ns")
            .join_asof(
                cwnd.sort("time_ns"), on="time_ns", by="flow", strategy="forward",
                check_sortedness=False,
            )
            .with_columns(
                pl.col("flow").replace_strict(labels, return_dtype=pl.String).alias("s"),
                pl.col("cwnd_segments").cast(pl.Float64).fill_null(pl.col("sampled")),
            )
        )  # fmt: skip

    def _drop_marks(self, x: alt.X, _y: Any, _column: str, colour: alt.Color) -> list[Any]:
        import altair as alt
        import polars as pl

        frames = [
            self.runs.table(index, "events")
            .filter(pl.col("kind") == "drop")
            .select("t", pl.lit("").alias("s"), "packets", "reason", "link")
            for index in range(len(self.runs.runs))
        ]
        drops = pl.concat(frames)
        if drops.is_empty():
            return []
        panel = panel_of(drops, ["packets"])
        self.thinned |= panel.thinned
        tips = [
            alt.Tooltip("t:Q", title="time (s)", format=".3~f"),
            alt.Tooltip("packets:Q", title="packets dropped"),
            alt.Tooltip("reason:N", title="reason"),
            alt.Tooltip("link:N", title="at"),
        ]
        ticks = alt.Chart(marks.data(panel.rows)).mark_tick(
            color="@@bad", thickness=1.2, size=9, clip=True
        )
        del colour
        return [ticks.encode(x=x, y=alt.value(5), tooltip=tips)]

    def _move_marks(self, x: alt.X, _y: Any, _column: str, colour: alt.Color) -> list[Any]:
        """A line wherever a UE leaves a cell."""
        import altair as alt
        import polars as pl

        frames = [
            self.runs.table(index, "events")
            .filter(pl.col("kind").is_in(list(_MOVES)))
            .select("t", pl.lit("").alias("s"), "kind", "cell")
            for index in range(len(self.runs.runs))
            if "cell" in self.runs.table(index, "events").columns
        ]
        moves = pl.concat(frames) if frames else pl.DataFrame()
        if moves.is_empty():
            return []
        panel = panel_of(
            moves.with_columns(
                pl.col("kind").replace_strict(_MOVES, return_dtype=pl.String), one=pl.lit(1.0)
            ),
            ["one"],
        )
        self.thinned |= panel.thinned
        tips = [
            alt.Tooltip("t:Q", title="time (s)", format=".3~f"),
            alt.Tooltip("kind:N", title="UE"),
            alt.Tooltip("cell:N", title="cell"),
        ]
        rules = alt.Chart(marks.data(panel.rows)).mark_rule(
            color="@@muted", strokeWidth=1, strokeDash=[2, 2], clip=True
        )
        del colour
        return [rules.encode(x=x, tooltip=tips)]


def _fill(colour: alt.Color) -> alt.Fill:
    """The same scale as a line's colour, as a fill."""
    import altair as alt

    encoding: Any = colour.to_dict()
    return alt.Fill.from_dict(encoding)
