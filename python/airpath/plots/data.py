"""From tables to what charts draw: seconds, labelled series, few enough points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airpath.analysis.downsample import POINTS_PER_SERIES, downsample
from airpath.plots.figure import Series
from airpath.plots.theme import SERIES
from airpath.runs.describe import ordered
from airpath.runs.tables import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

    from airpath.documents import LinkSummary
    from airpath.runs.results import Run

MOST_SERIES = 12
"""More flows than this are not drawn: those with the least goodput go."""
MOST_LINKS = 12
_SAMPLED = ("goodput_mbps", "rtt_ms", "cwnd_segments", "ssthresh_segments", "inflight_segments",
            "receive_window_segments")  # fmt: skip
_SMOOTH_S = 1.0
_TITLES = ("name", "title")
_DRIVERS = {"simulate": "simulated", "emulate": "emulated", "measure": "measured"}
_MOST_DIFFERENCES = 2
_LONGEST_LABEL = 40
_MOVES = {
    "handover_command": "handover to",
    "handover_failed": "handover failed to",
    "radio_link_failure": "link failed (T310) in",
    "radio_link_failure_rlc": "link failed (RLC) in",
    "cell_reselection": "reselects",
}


@dataclass(frozen=True)
class Flow:
    """One flow of one run, as charts name and colour it."""

    run: int
    flow: str
    label: str
    kind: str
    colour: str


@dataclass
class Comparison:
    """One run, or several side by side. Charts show the first seed of each."""

    runs: Sequence[Run]
    labels: list[str] = field(default_factory=list)
    series: list[Flow] = field(default_factory=list)
    left_out: int = 0
    downsampled: bool = False
    """Whether any data has been downsampled to its peaks so far."""
    _made: dict[str, list[Series]] = field(default_factory=dict)

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
        return max(float(run.summary["run"]["duration_s"]) / len(run.seeds) for run in self.runs)

    def of_kind(self, *kinds: str) -> list[Flow]:
        """Series of these kinds of flow."""
        return [series for series in self.series if series.kind in kinds]

    def palette(self, labels: Sequence[str]) -> list[str]:
        """Colours of series by their labels."""
        colours = {series.label: series.colour for series in self.series}
        return [colours[label] for label in labels]

    def flows(self) -> list[Series]:
        """Samples of every flow, and pings, which say so."""
        if "flows" not in self._made:
            pings = self._of_flows("pings", ["rtt_ms"], self.of_kind("ping"))
            self._made["flows"] = [
                *self._of_flows("samples", _SAMPLED, self.of_kind("bulk", "file", "quic", "udp")),
                *({**series, "ping": True} for series in pings),
            ]
        return self._made["flows"]

    def links(self) -> list[Series]:
        """Throughput, capacity and queue of every link; those of the first rows only."""
        import polars as pl

        columns = ("throughput_mbps", "capacity_mbps", "queue_delay_ms")
        if "links" not in self._made:
            frames = [
                self.table(index, "links")
                .filter(pl.col("link") == link)
                .select("t", pl.lit(label).alias("s"), *columns)
                for index, link, label in self.link_labels()
            ]
            self._made["links"] = self.compact(frames, columns)
        return self._made["links"]

    def link_labels(self) -> list[tuple[int, str, str]]:
        """Run, name and label of each link that is drawn."""
        labels = [f" · {label}" if self.several else "" for label in self.labels]
        return [
            (index, link["id"], f"{link['id']}{labels[index]}")
            for index, run in enumerate(self.runs)
            for link in run.summary["links"]
        ][:MOST_LINKS]

    def events(self, *kinds: str) -> pl.DataFrame:
        """Events of these kinds of all runs, with the flow's label in ``s``, if it is drawn."""
        import polars as pl

        frames = []
        for index in range(len(self.runs)):
            labels = {each.flow: each.label for each in self.series if each.run == index}
            label = pl.col("flow").cast(pl.String).replace_strict(labels, default=None)
            frame = self.table(index, "events").filter(pl.col("kind").is_in(kinds))
            frames.append(frame.with_columns(label.cast(pl.String).alias("s"), run=pl.lit(index)))
        return pl.concat(frames, how="diagonal_relaxed")

    def moves(self) -> list[Series]:
        """Where UEs go from cell to cell; each is a series."""
        import polars as pl

        events = self.events(*_MOVES)
        if events.is_empty():
            return []
        ue = pl.col("link").cast(pl.String).str.strip_prefix("radio.").str.strip_suffix(".down")
        what = pl.col("kind").replace(_MOVES)
        return self.compact([events.select("t", "cell", s=ue, what=what, one=pl.lit(1))], ["one"])

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

    def compact(self, frames: Sequence[pl.DataFrame], peaks: Sequence[str]) -> list[Series]:
        """Series of frames with ``t`` and ``s``, rounded; the peaks of these columns are kept."""
        import polars as pl
        import polars.selectors as cs

        frame = pl.concat(frames) if frames else pl.DataFrame()
        if frame.is_empty():
            return []
        limit = min(POINTS_PER_SERIES, max(400, 24_000 // frame["s"].n_unique()))
        kept, downsampled = downsample(frame, "t", peaks, ["s"], limit)
        self.downsampled |= downsampled
        rounded = kept.with_columns(cs.float().exclude("t").round_sig_figs(4), pl.col("t").round(4))
        return [
            {
                "s": part["s"][0],
                "k": f"k{index}",
                **{
                    column.name: column.to_list()
                    for column in part.drop("s")
                    if column.null_count() < part.height
                },
            }
            for index, part in enumerate(rounded.partition_by("s", maintain_order=True))
        ]

    def _of_flows(self, table: str, columns: Sequence[str], series: Sequence[Flow]) -> list[Series]:
        import polars as pl

        frames = []
        for index in range(len(self.runs)):
            labels = {each.flow: each.label for each in series if each.run == index}
            if labels:
                frame = self.table(index, table).filter(pl.col("flow").is_in(list(labels)))
                label = pl.col("flow").cast(pl.String).replace_strict(labels).alias("s")
                present = [name for name in columns if name in frame.columns]
                frames.append(frame.select("t", label, *present))
        if frames and "goodput_mbps" in columns:
            frames = [_smoothed(pl.concat(frames, how="diagonal"))]
        return self.compact(frames, columns[:3])

    def _coloured(self, everything: list[Flow]) -> list[Flow]:
        """One colour a flow; where every run has one flow, one colour a run, its ping included."""
        carrying = [series.run for series in everything if series.kind != "ping"]
        by_run = self.several and len(set(carrying)) == len(carrying)
        return [
            replace(series, colour=SERIES[(series.run if by_run else place) % len(SERIES)])
            for place, series in enumerate(everything)
        ]

    def _series(self, index: int) -> list[Flow]:
        run = self.runs[index]
        flows = {flow["id"]: flow for flow in ordered(run.summary) if flow["kind"] != "ping"}
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
            found.append(Flow(index, name, label, kind, ""))
        return found


def _smoothed(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds the goodput's mean over the last second, by row: the tables have one row an interval."""
    import polars as pl

    step = frame.select(pl.col("t").diff().over("s").median()).item() or _SMOOTH_S
    mean = pl.col("goodput_mbps").rolling_mean(max(1, round(_SMOOTH_S / step)), min_samples=1)
    return frame.with_columns(mean.over("s", order_by="t").alias("smooth"))


def busiest_link(run: Run) -> str | None:
    """The link with the longest mean queue delay."""
    links = run.summary["links"]

    def delay(link: LinkSummary) -> float:
        waited = link["queue_delay_ms"]
        return waited["mean"] if waited else 0.0

    return str(max(links, key=delay)["id"]) if links else None


def run_labels(runs: Sequence[Run]) -> list[str]:
    """A distinct short name for each run: what differs, else its directory, scenario or number."""
    if len(runs) > 1 and (labels := _differing(runs)):
        return labels
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


def _differing(runs: Sequence[Run]) -> list[str] | None:
    """Names such as ``bbr`` or ``queue 20 packets``; None where too much differs for a name."""
    from airpath.report.setup import differences, named, setup

    drivers = [run.provenance.get("driver") or "simulate" for run in runs]
    rows = [row for row in differences([setup(run) for run in runs]) if row[0] not in _TITLES]
    if not rows and len(set(drivers)) == len(runs):
        return [_DRIVERS.get(driver, driver) for driver in drivers]
    if not 0 < len(rows) <= _MOST_DIFFERENCES or len(set(drivers)) > 1:
        return None
    labels = [
        ", ".join(named(row[0], row[1 + place]) for row in rows) for place in range(len(runs))
    ]
    short = all(len(label) <= _LONGEST_LABEL for label in labels)
    return labels if short and len(set(labels)) == len(runs) else None
