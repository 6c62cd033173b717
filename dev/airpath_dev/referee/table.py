"""Makes the referee's page from stored results."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from airpath.base.toml import parse_toml
from airpath.runs.results import Run
from airpath_dev.harness import heading, table

from .rows import BUFFER_BYTES, LIMITS, Row

Result = dict[str, Any]

UNITS = {"goodput": ("Mb/s", 2), "SRTT": ("ms", 1), "exit cwnd": ("segments", 0)}
UNITS["completion"] = ("s", 3)
"""Unit and digits of each figure."""


@dataclass(frozen=True)
class Compared:
    """A row and the results of both sides."""

    row: Row
    kernel: Sequence[Result]
    simulated: Sequence[Result]

    def values(self, figure: str) -> tuple[list[float], list[float]]:
        """A figure of each run that has it, kernel and simulation."""
        kernel, simulated = (
            [run[figure] for run in side if run[figure] is not None]
            for side in (self.kernel, self.simulated)
        )
        return kernel, simulated

    def difference(self, figure: str) -> float | None:
        """Simulation over kernel, minus one, of the means; None where a side has no value."""
        kernel, simulated = self.values(figure)
        if not kernel or not simulated:
            return None
        return statistics.fmean(simulated) / statistics.fmean(kernel) - 1

    def wrong(self) -> list[str]:
        """Figures that are too far apart, or that only one side has."""
        return [figure for figure in LIMITS if not self._agrees(figure)]

    def _agrees(self, figure: str) -> bool:
        difference = self.difference(figure)
        if difference is None:
            return not any(self.values(figure))
        return abs(difference) <= LIMITS[figure]

    def verdict(self) -> str:
        """The verdict as text."""
        if not self.simulated:
            return "not simulated"
        wrong = self.wrong()
        return f"differs: {', '.join(wrong)}" if wrong else "agrees"


def figures(run: Run) -> Result:
    """The figures of a run, of either side, that the table uses."""
    flow = run.summary["flows"][0]
    acks = run.table("acks")
    seen = acks.filter(pl.col("flow") == flow["id"])["srtt_ms"].drop_nulls()
    left = flow["slow_start_exit"]
    # A file is judged by its completion: its SRTT is that of one overflow, early or late.
    is_file = flow["kind"] == "file"
    record: Any = run.provenance
    return {
        "goodput": None if is_file else flow["goodput_mbps"],
        "SRTT": None if is_file else seen.median(),
        "exit cwnd": left and left["cwnd_segments"],
        "completion": flow.get("completed_s"),
        "retransmitted_segments": flow["retransmitted_segments"],
        "kernel": record["platform"]["release"],
        "date": record["started"][:10],
        "core": record["core_sha256"][:12],
        "profile": parse_toml(run.scenario_toml)["flow"][0]["profile"],
        "directions": run.summary.get("emulation", {}).get("directions", {}),
    }


def as_json(rows: Iterable[Compared]) -> list[Result]:
    """The table as data."""
    sides = ("kernel", "simulated")
    return [
        {
            "row": compared.row.name,
            "figures": {
                figure: {
                    **dict(zip(sides, compared.values(figure), strict=True)),
                    "unit": UNITS[figure][0],
                    "difference": compared.difference(figure),
                }
                for figure in LIMITS
            },
            "verdict": compared.verdict(),
        }
        for compared in rows
    ]


def markdown(rows: Sequence[Compared], total: int) -> list[str]:
    """The reference page."""
    runs = [run for compared in rows for run in compared.kernel]
    simulated = [compared for compared in rows if compared.simulated]
    agreeing = [compared for compared in simulated if not compared.wrong()]
    text = _TEXT.format(
        dates=_range(sorted(run["date"] for run in runs)),
        profile=", ".join(sorted({run["profile"] for run in runs})),
        buffers=BUFFER_BYTES // (1 << 20),
        limits=", ".join(f"{name} {limit:.0%}" for name, limit in LIMITS.items()),
        agreeing=len(agreeing),
        share=f"{len(agreeing) / max(len(simulated), 1):.1%}",
        simulated=len(simulated),
        rows=len(rows),
        total=total,
        lateness=_lateness(runs),
    )
    built = sorted({f"core {run['core']}" for run in runs})
    kernels = sorted({f"kernel {run['kernel']}" for run in runs})
    head = heading("The kernel as referee", "referee", *built, *kernels)
    return [head, *text.splitlines(), "", table(_HEAD, map(_cells, rows))]


_TEXT = """\
This page compares the host kernel's TCP with the simulated one over the same path: one rate, one
drop-tail queue, one delay, random loss after the queue. The runs are of {dates}. The profile is
`{profile}`. Large send buffers are {buffers} MiB on both sides; stock buffers are Linux's defaults.
Each row is a [twin](twin.md) of `dev/airpath_dev/referee/path.toml`; the command runs missing rows
(as root).

[Metrics](../concepts/metrics.md) defines goodput. SRTT is the sender's own smoothed RTT, the median
over all acknowledgements; exit cwnd is cwnd at the end of the first slow start.
Each figure is kernel / simulated, the mean over runs, and the difference is simulation over kernel,
minus one. A row agrees if each of its figures is within its limit:
{limits}.
With the same seed, packets with the same numbers are lost on both sides. Runs for which the machine
was too busy were repeated ([decision 7](../adr/0007-referee.md)).

**{agreeing} of {simulated} rows agree ({share}); {rows} of {total} rows were measured.** {lateness}
"""
_HEAD = (
    "CC | rate Mb/s: | RTT ms: | buffer BDP: | loss: | flow | runs: | goodput Mb/s: | diff.: | "
    "SRTT ms: | diff.: | exit cwnd: | diff.: | completion s: | diff.: | retransmitted: | verdict"
)


def _cells(compared: Compared) -> list[object]:
    row = compared.row
    cells: list[object] = [
        row.congestion,
        row.rate_mbps,
        row.rtt_ms,
        f"{row.buffer_bdp:g}",
        f"{row.loss:.1%}" if row.loss else "0",
        row.said,
        len(compared.kernel),
    ]
    for figure in LIMITS:
        kernel, simulated = compared.values(figure)
        digits = UNITS[figure][1]
        both = (_mean(side, digits) for side in (kernel, simulated))
        cells += [" / ".join(both) if kernel or simulated else ""]
        cells += [_percent(compared.difference(figure))]
    again = compared.values("retransmitted_segments")
    cells += [" / ".join(_mean(side, 0) for side in again), compared.verdict()]
    return cells


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{statistics.fmean(values):.{digits}f}" if values else "none"


def _percent(difference: float | None) -> str:
    return "" if difference is None else f"{100 * difference:+.1f} %"


def _range(dates: Sequence[str]) -> str:
    if not dates:
        return "no date"
    return dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"


def _lateness(runs: Sequence[Result]) -> str:
    late = [
        direction["lateness_us"]
        for run in runs
        for direction in run["directions"].values()
        if direction["lateness_us"]
    ]
    if not late:
        return ""
    median, p99, p99_9 = (
        max((figures[name] for figures in late), default=math.nan)
        for name in ("p50", "p99", "p99_9")
    )
    return (
        f"Packets left the path at most {median:.0f} µs late at the median of a run, "
        f"{p99:.0f} µs at p99, {p99_9:.0f} µs at p99.9."
    )
