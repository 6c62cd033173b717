"""What HyStart saw of a slow start: its rounds, its two tests and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from airpath.analysis.downsample import POINTS_PER_SERIES
from airpath.base.text import count, digits
from airpath.plots import vega
from airpath.plots.data import Comparison, Flow
from airpath.plots.figure import Figure, Series, Spec, Table

if TYPE_CHECKING:
    import polars as pl

_REASONS = {
    "ack_train": "ACK train",
    "css": "CSS lasted five rounds",
    "falling_minimum": "falling minimum",
    "hystart": "HyStart",
}
"""Reasons that are not spelt as they are called."""
_SAMPLES = "RTT samples"
_SAMPLING = "sampling phase"
_CSS = "CSS"
_TRAIN = "ACK train"
_LIMIT = "its limit"
_COLUMNS = {"round_min_rtt_ms", "round_rtt_threshold_ms", "round_samples", "ack_train_ms"}
_AFTER = 0.12
"""Of slow start's time, how much more is drawn."""
_MOST_RUNS = 4
"""Runs side by side that have a chart each."""
_MOST_ROUNDS = 50
"""Rounds in the table."""
_HEADROOM = 0.18
"""Of the RTT axis, for the exit's reason above everything."""
_LOG_FROM = 3.0
"""Use a logarithmic axis when the longest RTT is this many times the shortest."""


@dataclass(frozen=True)
class _Terms:
    """Names of the two RTTs that are compared, and what the comparison does."""

    minimum: str
    threshold: str
    test: str


_HYSTART = _Terms(
    "the round's minimum", "smallest RTT plus threshold",
    "Delay test: slow start ends if the round's minimum, after sampling, is above the threshold",
)  # fmt: skip
_PLUS_PLUS = _Terms(
    "currentRoundMinRTT", "lastRoundMinRTT + RttThresh",
    "Delay test: CSS begins if the round's minimum, after sampling, reaches the threshold",
)  # fmt: skip
_BASELINE = "cssBaselineMinRtt"


class _Exit(NamedTuple):
    t: float
    reason: str
    cwnd_segments: float


@dataclass(frozen=True)
class _SlowStart:
    """The acknowledgements of one flow's first slow start, and a little more."""

    flow: Flow
    acks: pl.DataFrame
    start: float
    until: float
    exit: _Exit | None

    @property
    def plus_plus(self) -> bool:
        """It has HyStart++ (RFC 9406)."""
        return bool(self.acks["css"].is_not_null().any())

    def time(self) -> Spec:
        domain = [self.start, self.until]
        return vega.number("t", "time (s)", scale={"domain": domain, "nice": False})


def hystart(runs: Comparison) -> list[Figure]:
    """RTTs, trains and cwnd of each run's first flow with HyStart, if its rows show it."""
    found = [shown for run in range(len(runs.runs)) if (shown := _first(runs, run))]
    return [
        _figure(runs, shown, f"hystart-{place}" if len(found) > 1 else "hystart")
        for place, shown in enumerate(found[:_MOST_RUNS], 1)
    ]


def _first(runs: Comparison, run: int) -> _SlowStart | None:
    flows = (flow for flow in runs.of_kind("bulk", "file") if flow.run == run)
    return next((found for flow in flows if (found := _slow_start(runs, flow))), None)


def _figure(runs: Comparison, shown: _SlowStart, name: str) -> Figure:
    panels = _Panels(runs, shown, name)
    rounds = _rounds(shown.acks)
    ended = "why slow start ended" if shown.exit else "slow start did not end"
    whose = f", {shown.flow.label}" if runs.several else ""
    return Figure(
        id=name,
        title=f"{'HyStart++' if shown.plus_plus else 'HyStart'}: {ended}{whose}",
        how_to_read=_how_to_read(shown.plus_plus),
        spec=vega.stacked(panels.all(), 14),
        data=panels.data,
        table=_table(rounds[:_MOST_ROUNDS]),
        remarks=tuple(_remarks(runs, shown, len(rounds))),
    )


def _remarks(runs: Comparison, shown: _SlowStart, rounds: int) -> list[str]:
    remarks = []
    if len(runs.of_kind("bulk", "file")) > 1 and not runs.several:
        remarks.append(f"The chart shows the flow {shown.flow.label}.")
    if len(runs.runs[shown.flow.run].seeds) > 1:
        remarks.append("The chart shows the first seed.")
    if shown.acks.height > POINTS_PER_SERIES:
        remarks.append(
            "Long series are downsampled: a slice of time keeps its lowest and highest value."
        )
    if rounds > _MOST_ROUNDS:
        remarks.append(f"The table has the first {_MOST_ROUNDS} of {rounds} rounds.")
    return remarks


def _how_to_read(plus_plus: bool) -> str:
    if plus_plus:
        return (
            "Each round trip is a round. After eight RTT samples its minimum is compared with that "
            "of the round before: from lastRoundMinRTT + RttThresh on, conservative slow start "
            "(CSS) begins. Slow start resumes if the minimum falls below cssBaselineMinRtt, and "
            "ends after five rounds of CSS."
        )
    return (
        "Each round trip is a round; its first eight RTT samples are the sampling phase. Then slow "
        "start ends if even the round's minimum is above the smallest RTT plus the threshold, or, "
        "at any time, if the train of acknowledgements that began with the round is longer than "
        "its limit."
    )


def _slow_start(runs: Comparison, flow: Flow) -> _SlowStart | None:
    """The flow's acknowledgements, if they show that HyStart made its tests."""
    import polars as pl

    if not runs.has_table(flow.run, "acks"):
        return None
    acks = runs.table(flow.run, "acks").filter(pl.col("flow").cast(pl.String) == flow.flow)
    # Runs of older versions have the table, but not its last columns.
    if not _COLUMNS.issubset(acks.columns):
        return None
    tested = acks.filter(pl.any_horizontal(pl.col("round_samples", "ack_train_ms").is_not_null()))
    if tested.is_empty():
        return None
    events = runs.table(flow.run, "events").filter(
        (pl.col("flow").cast(pl.String) == flow.flow) & (pl.col("kind") == "slow_start_exit")
    )
    exits = events.sort("t").select("t", "reason", "cwnd_segments").head(1).to_dicts()
    start: float = acks["t"].to_list()[0]
    end: float = exits[0]["t"] if exits else tested["t"].to_list()[-1]
    until = max(end + _AFTER * (end - start), start + 1e-3)
    return _SlowStart(
        flow, acks.filter(pl.col("t") <= until), start, until, _Exit(**exits[0]) if exits else None
    )


class _Panels:
    def __init__(self, runs: Comparison, shown: _SlowStart, name: str) -> None:
        self.runs = runs
        self.shown = shown
        self.name = name
        self.data: dict[str, list[Series]] = {}
        if shown.exit is not None:
            reason = shown.exit.reason
            named = {
                "reason": [_REASONS.get(reason, reason.replace("_", " "))],
                "cwnd": [f"cwnd {count(shown.exit.cwnd_segments)}"],
            }
            self.data[f"{self.name}-exit"] = [{"t": [round(shown.exit.t, 6)], **named}]

    def all(self) -> list[Spec]:
        """From the top to the bottom."""
        return [panel for panel in (self.rtt(), self.train(), self.cwnd()) if panel]

    def rtt(self) -> Spec:
        """RTT samples, both sides of the delay test, and the phases of the rounds."""
        import polars as pl

        terms = _PLUS_PLUS if self.shown.plus_plus else _HYSTART
        threshold, in_css = pl.col("round_rtt_threshold_ms"), pl.col("css").fill_null(False)
        lines = {
            terms.minimum: (pl.col("round_min_rtt_ms"), "var(--c2)"),
            terms.threshold: (pl.when(~in_css).then(threshold), "var(--c1)"),
            _BASELINE: (pl.when(in_css).then(threshold), "var(--c3)"),
        }
        shades = {_SAMPLES: "var(--c0)"} | {name: shade for name, (_, shade) in lines.items()}
        rows = {name: self._series(name, column) for name, (column, _) in lines.items()}
        rows = {name: frame for name, frame in rows.items() if frame["ms"].is_not_null().any()}
        samples = self._series(_SAMPLES, pl.col("rtt_ms")).drop_nulls("ms")
        self.data[self.name] = self.runs.compact([samples, *rows.values()], ["ms"])
        phases = _phases(self.shown.acks, self.shown.until)
        self.data[f"{self.name}-phases"] = phases
        grounds = {_SAMPLING: "var(--c7)", _CSS: "var(--c4)"}
        grounds = {name: grounds[name] for name in (each["s"] for each in phases)}
        labels = [*(name for name in shades if name in rows or name == _SAMPLES), *grounds]
        colour = vega.colour(labels, [(shades | grounds)[name] for name in labels], legend=True)
        colour["legend"] |= {"symbolType": "square", "symbolOpacity": 1}
        layers = [*self._phases(colour), *self._rtts(), *self._exit("reason")]
        layers.append(vega.hover_rule(self.data[self.name], "ms", "ms"))
        return self._panel(terms.test, 200, colour, layers, self.name)

    def _phases(self, colour: Spec) -> list[Spec]:
        return [
            {
                "data": {"name": f"{self.name}-phases"},
                "mark": {"type": "rect", "opacity": 0.22, "strokeWidth": 1, "clip": True},
                "encoding": {
                    "x2": {"field": "to"},
                    # A phase that is narrower than a pixel shows by its edge.
                    "stroke": {**colour, "legend": None},
                    "tooltip": vega.tips(s="phase", t="from (s)", to="to (s)"),
                },
            }
        ]

    def _rtts(self) -> list[Spec]:
        """Points of samples, and lines of what is compared."""
        y = self._axis()
        points = {"type": "point", "filled": True, "size": 11, "opacity": 0.5, "clip": True}
        steps = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.7, "clip": True}
        samples = {"field": "s", "equal": _SAMPLES}
        return [
            {"transform": [{"filter": samples}], "mark": points, "encoding": {"y": y}},
            {
                "name": f"zoom-{self.name}",
                "transform": [{"filter": {"not": samples}}],
                "mark": steps,
                "encoding": {"y": y},
            },
        ]

    def train(self) -> Spec | None:
        """The train of each round and its limit; None without that test."""
        import polars as pl

        frames = {
            _TRAIN: self._series(_TRAIN, pl.col("ack_train_ms")),
            _LIMIT: self._series(_LIMIT, pl.col("ack_train_limit_ms")),
        }
        if frames[_TRAIN]["ms"].is_null().all():
            return None
        name = f"{self.name}-train"
        data = self.data[name] = self.runs.compact([*frames.values()], ["ms"])
        return self._lines(
            name, "ms", "ms", vega.nice_top(vega.highest(data, "ms")),
            "ACK train test: slow start ends if the train is longer than its limit",
            vega.colour([_TRAIN, _LIMIT], ["var(--c0)", "var(--c1)"], legend=True),
            self._exit(),
        )  # fmt: skip

    def cwnd(self) -> Spec:
        """The congestion window."""
        import polars as pl

        frame = self.shown.acks.select("t", "cwnd_segments", s=pl.lit("cwnd"))
        name = f"{self.name}-cwnd"
        data = self.data[name] = self.runs.compact([frame], ["cwnd_segments"])
        top = vega.nice_top(vega.highest(data, "cwnd_segments") * 1.15)
        return self._lines(
            name, "cwnd_segments", "segments", top, "Congestion window",
            vega.colour(["cwnd"], ["var(--c0)"]), self._exit("cwnd"),
        )  # fmt: skip

    def _series(self, name: str, column: pl.Expr) -> pl.DataFrame:
        import polars as pl

        return self.shown.acks.select("t", s=pl.lit(name), ms=column.cast(pl.Float64))

    def _axis(self) -> Spec:
        """RTTs: as narrow as what is drawn, with room above it for words."""
        values = [
            value for each in self.data[self.name] for value in each["ms"] if value is not None
        ]
        low, high = min(values), max(values)
        if low > 0 and high > _LOG_FROM * low:
            domain = [low * (low / high) ** 0.05, high * (high / low) ** _HEADROOM]
            scale = {"type": "log", "domain": domain, "nice": False}
            axis = {"format": ",.3~f", "tickCount": 6}
            return vega.number("ms", "ms, logarithmic", scale=scale, axis=axis)
        span = max(high - low, 0.1)
        domain = [max(0.0, low - 0.08 * span), high + _HEADROOM * span]
        return vega.number("ms", "ms", scale={"domain": domain, "nice": False, "zero": False})

    def _lines(
        self, data: str, column: str, unit: str, top: float, title: str, colour: Spec,
        over: Sequence[Spec],
    ) -> Spec:  # fmt: skip
        line = {
            "name": f"zoom-{data}",
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.6,
                     "clip": True},
            "encoding": {"y": vega.up_to(column, unit, top)},
        }  # fmt: skip
        hover = vega.hover_rule(self.data[data], column, unit)
        return self._panel(title, 110, colour, [line, *over, hover], data)

    def _panel(
        self, title: str, height: int, colour: Spec, layers: Sequence[Spec], data: str
    ) -> Spec:
        return {
            "title": title,
            "width": vega.WIDTH,
            "height": height,
            "data": {"name": data},
            "encoding": {"x": self.shown.time(), "color": colour},
            "layer": list(layers),
        }

    def _exit(self, text: str = "") -> list[Spec]:
        """The line at which slow start ended, with its words beside it."""
        if self.shown.exit is None:
            return []
        view: Spec = {"data": {"name": f"{self.name}-exit"}}
        ink = {"color": {"value": "var(--bad)"}}
        tooltip = vega.tips(t="slow start ends (s)", reason="reason", cwnd="at")
        rule = {"type": "rule", "strokeWidth": 1.4, "strokeDash": [5, 3], "clip": True}
        words = {"type": "text", "align": "right", "baseline": "top", "dx": -5, "fontSize": 11,
                 "fontWeight": 600}  # fmt: skip
        made = [{**view, "mark": rule, "encoding": {**ink, "tooltip": tooltip}}]
        if text:
            encoding = {**ink, "y": {"value": 3}, "text": {"field": text}}
            made.append({**view, "mark": words, "encoding": encoding})
        return made


def _numbered(acks: pl.DataFrame) -> pl.DataFrame:
    """The rows with HyStart's state, each with the number of its round.

    A new round has fewer samples, or a shorter train.
    """
    import polars as pl

    fewer = pl.col("round_samples").cast(pl.Int64).diff() < 0
    shorter = pl.col("ack_train_ms").diff() < 0
    begins = fewer.fill_null(False) | shorter.fill_null(False)
    shown = pl.any_horizontal(pl.col("round_samples", "ack_train_ms").is_not_null())
    return acks.filter(shown).with_columns(round=begins.cum_sum() + 1)


def _phases(acks: pl.DataFrame, until: float) -> list[Series]:
    """From when to when rounds were sampled, and CSS lasted."""
    import polars as pl

    after = pl.col("t").shift(-1).fill_null(until)
    rows = _numbered(acks.with_columns(to=after)).with_columns(pl.col("css").fill_null(False))
    made = []
    for name, within, group in (
        (_SAMPLING, pl.col("round_samples") < 8, pl.col("round")),
        (_CSS, pl.col("css"), (~pl.col("css")).cum_sum()),
    ):
        spans = (
            rows.with_columns(_group=group)
            .filter(within)
            .group_by("_group", maintain_order=True)
            .agg(pl.col("t").min().round(6), pl.col("to").max().round(6))
        )
        if not spans.is_empty():
            made.append({"s": name, "t": spans["t"].to_list(), "to": spans["to"].to_list()})
    return made


def _rounds(acks: pl.DataFrame) -> pl.DataFrame:
    """What each round came to."""
    import polars as pl

    return _numbered(acks).group_by("round", maintain_order=True).agg(
        pl.col("t").first(),
        pl.col("round_min_rtt_ms").drop_nulls().last(),
        pl.col("round_rtt_threshold_ms").drop_nulls().last(),
        pl.col("round_samples").max(),
        pl.col("ack_train_ms").max(),
        pl.col("ack_train_limit_ms").drop_nulls().last(),
        pl.col("cwnd_segments").last(),
    )  # fmt: skip


def _table(rounds: pl.DataFrame) -> Table:
    columns = {
        "round_min_rtt_ms": "minimum (ms)",
        "round_rtt_threshold_ms": "threshold (ms)",
        "ack_train_ms": "ACK train (ms)",
        "ack_train_limit_ms": "limit (ms)",
    }
    return Table(
        ["round", "from (s)", "samples", *columns.values(), "cwnd (segments)"],
        [
            [
                count(row["round"]),
                digits(row["t"]),
                "" if row["round_samples"] is None else count(row["round_samples"]),
                *("" if row[name] is None else digits(row[name]) for name in columns),
                count(row["cwnd_segments"]),
            ]
            for row in rounds.to_dicts()
        ],
    )
