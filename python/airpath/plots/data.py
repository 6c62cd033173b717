"""From tables to what charts draw: seconds, labelled series, few enough points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airpath.analysis.thin import POINTS_PER_SERIES, thin
from airpath.plots.theme import SERIES
from airpath.tables import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

    from airpath.results import Run

MOST_SERIES = 12
"""More flows than this are not drawn: those with the least goodput go."""


@dataclass(frozen=True)
class Series:
    """One flow of one run, as charts name and colour it."""

    run: int
    flow: str
    label: str
    kind: str
    colour: str


@dataclass
class Panel:
    """Rows ``t`` (seconds), ``s`` (label of the series) and values, and how they were thinned."""

    rows: list[dict[str, Any]]
    thinned: bool = False


@dataclass
class Comparison:
    """One run, or several side by side. Charts show the first seed of each."""

    runs: Sequence[Run]
    labels: list[str] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    left_out: int = 0

    def __post_init__(self) -> None:
        self.labels = run_labels(self.runs)
        everything = [series for index in range(len(self.runs)) for series in self._series(index)]
        everything = self._coloured(everything)
        self.series = everything[:MOST_SERIES]
        self.left_out = len(everything) - len(self.series)

    @property
    def several(self) -> bool:
        """Whether there is more than one run."""
        return len(self.runs) > 1

    @property
    def duration_s(self) -> float:
        """End of the longest run on the simulated clock, in seconds."""
        return max(float(run.summary["run"]["simulated_s"]) / len(run.seeds) for run in self.runs)

    def of_kind(self, *kinds: str) -> list[Series]:
        """Series of these kinds of flow."""
        return [series for series in self.series if series.kind in kinds]

    def has_table(self, run: int, name: str) -> bool:
        """Whether the first seed of a run has a table."""
        return self.runs[run].has_table(name)

    def table(self, run: int, name: str) -> pl.DataFrame:
        """A table of the first seed of a run, with its times in seconds in ``t``."""
        import polars as pl

        frame = self.runs[run].table(name).filter(pl.col("seed") == self.runs[run].seeds[0])
        time = next((column for column in ("time_ns", "sent_ns") if column in frame.columns), None)
        if time is not None:
            frame = frame.with_columns((pl.col(time) / NS_PER_S).alias("t"))
        return frame

    def _coloured(self, everything: list[Series]) -> list[Series]:
        """One colour a flow; where every run has one flow, one colour a run, its ping included."""
        carrying = [series.run for series in everything if series.kind != "ping"]
        by_run = self.several and len(set(carrying)) == len(carrying)
        return [
            replace(series, colour=SERIES[(series.run if by_run else place) % len(SERIES)])
            for place, series in enumerate(everything)
        ]

    def palette(self, labels: Sequence[str]) -> list[str]:
        """Colours of series by their labels."""
        colours = {series.label: series.colour for series in self.series}
        return [colours[label] for label in labels]

    def panel(
        self,
        table: str,
        columns: Sequence[str],
        series: Sequence[Series],
        smooth_s: float | None = None,
    ) -> Panel:
        """Rows of a table of flows; thinned by the first of the columns.

        With ``smooth_s`` the first column's mean over that many seconds is in ``smooth``.
        """
        import polars as pl

        frames = []
        for index in range(len(self.runs)):
            labels = {each.flow: each.label for each in series if each.run == index}
            if labels:
                frame = self.table(index, table).filter(pl.col("flow").is_in(list(labels)))
                label = pl.col("flow").replace_strict(labels, return_dtype=pl.String).alias("s")
                frames.append(frame.select("t", label, *columns))
        if not frames:
            return Panel([])
        joined = pl.concat(frames)
        if smooth_s is not None:
            joined = joined.with_columns(_smooth(joined, columns[0], smooth_s))
        return panel_of(joined, columns)

    def _series(self, index: int) -> list[Series]:
        run = self.runs[index]
        flows = {flow["id"]: flow for flow in run.summary["flows"] if flow["kind"] != "ping"}
        ranked = sorted(flows, key=lambda name: -(flows[name].get("goodput_mbps") or 0.0))
        kept = [name for name in flows if name in ranked[:MOST_SERIES]]
        names = [(name, str(flows[name]["kind"])) for name in kept]
        names += [(ping["id"], "ping") for ping in run.summary["pings"]]
        carrying = sum(kind != "ping" for _, kind in names)
        found = []
        for name, kind in names:
            alone = self.several and kind != "ping" and carrying == 1
            label = self.labels[index] if alone else name
            if self.several and not alone:
                label = f"{self.labels[index]} · {name}"
            found.append(Series(index, name, label, kind, ""))
        return found


def _smooth(frame: pl.DataFrame, column: str, seconds: float) -> pl.Expr:
    """Mean over the last seconds, by row: the tables have one row an interval."""
    import polars as pl

    steps = frame.select(pl.col("t").diff().over("s").median()).item() or seconds
    width = max(1, round(seconds / steps))
    mean = pl.col(column).rolling_mean(width, min_samples=1)
    return mean.over("s", order_by="t").alias("smooth")


def panel_of(frame: pl.DataFrame, columns: Sequence[str]) -> Panel:
    """Thin a frame with ``t`` and ``s`` and round what no one can see."""
    import polars as pl
    import polars.selectors as cs

    count = max(1, frame["s"].n_unique())
    limit = min(POINTS_PER_SERIES, max(400, 16_000 // count))
    kept, thinned = thin(frame, "t", columns[0], ["s"], limit)
    rounded = kept.with_columns(
        cs.float().exclude("t").round_sig_figs(4), pl.col("t").cast(pl.Float64).round(4)
    )
    return Panel(rounded.to_dicts(), thinned)


def busiest_link(run: Run) -> str | None:
    """The link with the longest mean queue delay."""
    links = run.summary["links"]

    def delay(link: dict[str, Any]) -> float:
        return float((link.get("queue_delay_ms") or {}).get("mean") or 0.0)

    return str(max(links, key=delay)["id"]) if links else None


def run_labels(runs: Sequence[Run]) -> list[str]:
    """A distinct short name for each run: its directory, else its scenario, else a number."""
    names = [
        run.directory.resolve().name if run.directory else str(run.provenance["scenario"]["name"])
        for run in runs
    ]
    if len(set(names)) < len(names):
        names = [
            os.path.normpath(run.directory) if run.directory else f"{name} {index + 1}"
            for index, (run, name) in enumerate(zip(runs, names, strict=True))
        ]
    if len(set(names)) < len(names):
        names = [f"{name} ({index + 1})" for index, name in enumerate(names)]
    return names
