"""The main figure: goodput, RTT, cwnd and queue over one shared time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from airpath.base.text import count
from airpath.plots import vega
from airpath.plots.data import Comparison, busiest_link
from airpath.plots.figure import Figure, Series, Spec
from airpath.plots.theme import LINKS, SERIES

if TYPE_CHECKING:
    import polars as pl

_EVENTS = {
    "slow_start_exit": ("slow start ends", "diamond"),
    "recovery_start": ("loss", "triangle-down"),
    "retransmission_timeout": ("time-out (RTO)", "cross"),
}
_EVENT_LEGEND = {
    "title": None,
    "orient": "top-right",
    "direction": "horizontal",
    "symbolFillColor": "var(--muted)",
    "symbolStrokeColor": "var(--muted)",
    "fillColor": "var(--page)",
    "padding": 2,
}
_HEIGHT = 120


def timeline(runs: Comparison) -> Figure | None:
    """Goodput, RTT, cwnd and queue, stacked; zooming one zooms all. None without any samples."""
    maker = _Timeline(runs)
    panels = [
        panel for panel in (maker.goodput(), maker.rtt(), maker.cwnd(), maker.queue()) if panel
    ]
    if not panels:
        return None
    return Figure(
        id="timeline",
        title="What happened, over time",
        how_to_read=(
            "All panels share the time axis. A filling queue raises the RTT; a full queue drops "
            "packets; a drop reduces cwnd; goodput shows whether that mattered. Drag to pan, "
            "use Ctrl + wheel to zoom, and double-click to reset."
        ),
        spec=vega.stacked(panels, 14),
        data=maker.data,
        table=vega.time_table(
            runs.flows(), runs.duration_s, goodput_mbps="goodput (Mb/s)", rtt_ms="RTT (ms)",
            cwnd_segments="cwnd (segments)",
        ),
        remarks=tuple(maker.remarks()),
        margin=vega.margin(maker.end_labels),
    )  # fmt: skip


@dataclass(frozen=True)
class _Axis:
    """The y-axis of a panel; without a top it ends at the highest value."""

    column: str
    unit: str
    top: float | None = None


@dataclass(frozen=True)
class _Lines:
    """The labelled lines of a panel; without a palette, lines have the colours of their runs."""

    labels: Sequence[str]
    data: str = "flows"
    palette: Sequence[str] | None = None


class _Timeline:
    def __init__(self, runs: Comparison) -> None:
        self.runs = runs
        self.legend = len(runs.series) > vega.FEW
        self.end_labels: list[str] = []
        self.above: list[str] = []
        self.data: dict[str, list[Series]] = {"flows": runs.flows()}

    def remarks(self) -> list[str]:
        """What the figure leaves out."""
        remarks = []
        if self._delivers_late():
            remarks.append(
                "Goodput above the grey area is not a rate of the link: data that arrived "
                "earlier, after a lost packet, reaches the application at once when the loss is "
                "repaired."
            )
        if self.above:
            windows = ", ".join(self.above)
            remarks.append(f"Most of the time the receive window of {windows} is above the chart.")
        if self.runs.downsampled:
            remarks.append(
                "Long series are downsampled: a slice of time keeps its lowest and highest value."
            )
        if self.runs.left_out:
            remarks.append(
                f"The tables have {self.runs.left_out} more flows, which the charts leave out."
            )
        if any(len(run.seeds) > 1 for run in self.runs.runs):
            remarks.append("The chart shows the first seed.")
        return remarks

    def _delivers_late(self) -> bool:
        """Whether a second's goodput exceeds what the busiest link of a single run can carry."""
        link = self._busiest()
        if link is None:
            return False
        return 0 < vega.highest([link], "capacity_mbps") < vega.highest(self.runs.flows(), "smooth")

    def _busiest(self) -> Series | None:
        """The series of the busiest link of a single run; None if it is not drawn."""
        if self.runs.several:
            return None
        name = busiest_link(self.runs.runs[0])
        return next((each for each in self.runs.links() if each["s"] == name), None)

    def goodput(self) -> Spec | None:
        top = vega.nice_top(vega.highest(self.runs.flows(), "smooth") * 1.15)
        fine = _line("goodput_mbps", "Mb/s", top, strokeWidth=0.7, opacity=0.4)
        title = "Goodput: bold over 1 s, thin over each interval"
        arrives = self._arrives(top)
        if arrives:
            title += "; grey is what the busiest link carried"
        return self._panel(
            _Axis("smooth", "Mb/s", top), title, self._lines("bulk", "file", "quic", "udp"),
            below=[*arrives, fine], over=self._moves(), legend=self.legend,
        )  # fmt: skip

    def _arrives(self, top: float) -> list[Spec]:
        """What the busiest link of a single run carried; of several runs the areas would hide.

        After a loss is repaired, the application gets in one go what had arrived behind it, and its
        goodput exceeds the link's rate.
        """
        link = self._busiest()
        if link is None:
            return []
        self.data["links"] = self.runs.links()
        return [
            {
                "data": {"name": "links"},
                "transform": [{"filter": {"field": "s", "equal": link["s"]}}],
                "mark": {"type": "area", "clip": True, "interpolate": "step-before"},
                "encoding": {
                    "y": vega.up_to("throughput_mbps", "Mb/s", top),
                    "color": {"value": "var(--capacity)"},
                    "tooltip": vega.tips(t="time (s)", throughput_mbps="link (Mb/s)", s="link"),
                },
            }
        ]

    def rtt(self) -> Spec | None:
        top = vega.nice_top(vega.highest(self.runs.flows(), "rtt_ms"))
        pings: Spec = {
            "transform": [{"filter": "datum.ping"}],
            "mark": {"type": "point", "filled": True, "size": 9, "opacity": 0.55, "clip": True},
            "encoding": {
                "y": vega.up_to("rtt_ms", "ms", top),
                "tooltip": vega.tips(t="time (s)", rtt_ms="RTT (ms)", s="ping"),
            },
        }
        below = [pings] if self.runs.of_kind("ping") else []
        title = "Round-trip time: lines are TCP's samples" + (", dots are pings" if below else "")
        return self._panel(_Axis("rtt_ms", "ms", top), title, self._lines(), below=below)

    def cwnd(self) -> Spec | None:
        top = vega.nice_top(vega.highest(self.runs.flows(), "cwnd_segments") * 1.2)
        below = [
            _line("inflight_segments", "segments", top, strokeWidth=0.8, opacity=0.55),
            _line("ssthresh_segments", "segments", top, strokeDash=[4, 3], strokeWidth=1,
                  interpolate="step-after"),
            _line("receive_window_segments", "segments", top, strokeDash=[1, 2], strokeWidth=1.4),
        ]  # fmt: skip
        windows = {
            each["s"]: median(present)
            for each in self.runs.flows()
            if (present := [n for n in each.get("receive_window_segments", ()) if n is not None])
        }
        self.above = [f"{count(n)} segments ({s})" for s, n in windows.items() if n > top]
        return self._panel(
            _Axis("cwnd_segments", "segments", top),
            "Congestion window: solid cwnd, dashed ssthresh, thin in flight, dotted receive window",
            self._lines("bulk", "file", "quic"), below=below, over=self._events(top), height=150,
        )  # fmt: skip

    def queue(self) -> Spec | None:
        links = self.runs.link_labels()
        title = "Queue delay by link"
        if self.runs.several:
            busiest = {(index, busiest_link(run)) for index, run in enumerate(self.runs.runs)}
            links = [each for each in links if each[:2] in busiest]
            title = "Queue delay of the link with the longest queue"
        links = links[: vega.FEW]
        self.data["links"] = self.runs.links()
        palette = [
            SERIES[index % len(SERIES)] if self.runs.several else LINKS[place]
            for place, (index, _, _) in enumerate(links)
        ]
        return self._panel(
            _Axis("queue_delay_ms", "ms"),
            f"{title}; ticks along the top are drops",
            _Lines([label for _, _, label in links], "links", palette),
            over=self._drops(),
        )

    def _moves(self) -> list[Spec]:
        self.data["moves"] = self.runs.moves()
        return vega.moves("") if self.data["moves"] else []

    def _lines(self, *kinds: str) -> _Lines:
        return _Lines([each.label for each in self.runs.series if not kinds or each.kind in kinds])

    def _panel(
        self,
        axis: _Axis,
        title: str,
        lines: _Lines,
        *,
        below: Sequence[Spec] = (),
        over: Sequence[Spec] = (),
        legend: bool = False,
        height: int = _HEIGHT,
    ) -> Spec | None:
        """One panel: lines over time, more layers below and above them, labels at the right."""
        column, labels = axis.column, lines.labels
        shown = [each for each in self.data[lines.data] if each["s"] in labels and column in each]
        if not shown:
            return None
        top = vega.nice_top(vega.highest(shown, column)) if axis.top is None else axis.top
        shades = self.runs.palette(labels) if lines.palette is None else lines.palette
        line = _line(column, axis.unit, top, strokeWidth=1.6)
        line["name"] = f"zoom-{column}"
        line["transform"] = [{"filter": "!datum.ping"}]
        hover = vega.hover_rule(shown, column, axis.unit)
        beside = []
        if not self.legend or lines.palette is not None:
            self.end_labels += labels
            beside = vega.end_labels(
                shown, column, dict(zip(labels, shades, strict=True)), top, height
            )
        return {
            "title": title,
            "width": vega.WIDTH,
            "height": height,
            "data": {"name": lines.data},
            "encoding": {
                "x": vega.time(self.runs.duration_s),
                "color": vega.colour(labels, shades, legend=legend),
            },
            "layer": [*below, line, *over, hover, *beside],
        }

    def _events(self, top: float) -> list[Spec]:
        """What TCP noticed, at the height of cwnd."""
        import polars as pl

        events = self.runs.events(*_EVENTS).drop_nulls("s")
        if events.is_empty():
            return []
        words = {kind: text for kind, (text, _) in _EVENTS.items()}
        what = pl.col("kind").replace(words).alias("what")
        self.data["events"] = self.runs.compact(
            [self._at_cwnd(events).select("t", "s", "cwnd_segments", "reason", what)],
            ["cwnd_segments"],
        )
        happened = {text for series in self.data["events"] for text in series["what"]}
        present = [pair for pair in _EVENTS.values() if pair[0] in happened]
        mark = {"type": "point", "filled": True, "opacity": 1, "strokeWidth": 0.8, "clip": True}
        return [
            {
                "data": {"name": "events"},
                "mark": {**mark, "stroke": "var(--page)"},
                "encoding": {
                    "y": vega.up_to("cwnd_segments", "segments", top),
                    "shape": {
                        "field": "what",
                        "type": "nominal",
                        "scale": {
                            "domain": [text for text, _ in present],
                            "range": [shape for _, shape in present],
                        },
                        "legend": _EVENT_LEGEND,
                    },
                    # A loss often ends slow start: the diamond shows behind the triangle.
                    "size": {
                        "condition": {"test": "datum.what == 'slow start ends'", "value": 150},
                        "value": 45,
                    },
                    "tooltip": vega.tips(
                        t="time (s)", what="event", reason="reason",
                        cwnd_segments="cwnd (segments)", s="flow",
                    ),
                },
            }
        ]  # fmt: skip

    def _at_cwnd(self, events: pl.DataFrame) -> pl.DataFrame:
        """Events with a cwnd: their own, else that of the next sample."""
        import polars as pl

        samples = [
            self.runs.table(index, "samples").select(
                "t", "flow", pl.col("cwnd_segments").alias("sampled"), run=pl.lit(index)
            )
            for index in range(len(self.runs.runs))
        ]
        joined = events.sort("t").join_asof(
            pl.concat(samples).sort("t"), on="t", by=["run", "flow"], strategy="forward",
            check_sortedness=False,
        )  # fmt: skip
        return joined.with_columns(pl.col("cwnd_segments").fill_null(pl.col("sampled")))

    def _drops(self) -> list[Spec]:
        import polars as pl

        drops = self.runs.events("drop")
        if drops.is_empty():
            return []
        frame = drops.select("t", "packets", "reason", "link", s=pl.lit(""))
        self.data["drops"] = self.runs.compact([frame], ["packets"])
        return [
            {
                "data": {"name": "drops"},
                "mark": {"type": "tick", "thickness": 1.2, "size": 9, "clip": True},
                "encoding": {
                    "y": {"value": 5},
                    "color": {"value": "var(--bad)"},
                    "tooltip": vega.tips(
                        t="time (s)", packets="packets dropped", reason="reason", link="at"
                    ),
                },
            }
        ]


def _line(column: str, unit: str, top: float, **mark: Any) -> Spec:
    return {
        "mark": {"type": "line", "clip": True, **mark},
        "encoding": {"y": vega.up_to(column, unit, top)},
    }
