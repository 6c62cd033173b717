"""Runs CUBIC's slow starts in the kernel over the study's LTE and writes a page (root).

Each download runs on the real clock, with its congestion control loaded into the kernel by
``emulation.slow_start``, and is also simulated with the profile of the running kernel. The starts
meet different phases of the radio, the same ones for every slow start and on both sides. Complete
emulated runs are kept in ``--out``.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from airpath import _core
from airpath import scenario as scenarios
from airpath.analysis.statistics import mean_interval
from airpath.base.toml import parse_toml
from airpath.cli.console import progress_bar
from airpath.drivers import emulate, simulate
from airpath.drivers.options import EmulationOptions, SimulationOptions
from airpath.runs.directories import replaced_file
from airpath.runs.results import Run
from airpath.scenario import STUDIES
from airpath.twin.comparable import hosts_take_time, nearest_profile
from airpath_dev import ROOT
from airpath_dev.harness import MEASURED, heading, table, write

SCENARIO = STUDIES / "lte-cubic-hystart/scenario.toml"

CELL = ["radio.preset=lte-20", "radio.channel.sinr_db=30", "radio.sr.period_ms=10"]
"""A faster cell than the study's: slow start has farther to go, and no block fails."""

SIZES = {"5 MB": 5_000_000, "20 MB": 20_000_000}
ATTEMPTS = 3

SLOW_STARTS = {
    "4.19": ["slow_start=hystart-4.19"],
    "4.19.131": ["slow_start=hystart-4.19", "hystart.falling_minimum_exits=false"],
    "4.19, both changes": [
        "slow_start=hystart-4.19",
        "hystart.falling_minimum_exits=false",
        "hystart.late_reset=false",
    ],
    "6.14": ["slow_start=hystart-6.14"],
    "HyStart++": ["slow_start=hystart++"],
    "none": ["slow_start=none"],
}
PUBLISHED = {"5 MB": 10.5, "20 MB": 5.4}
HEAD = (
    "slow start | kernel Mb/s: | gain %: | exit cwnd, segments: | reason | "
    "simulated Mb/s: | gain %: | exit cwnd: | reason"
)


@dataclass(frozen=True)
class Case:
    """One download."""

    slow_start: str
    size: str
    repetition: int

    @property
    def key(self) -> str:
        """Name of its file."""
        words = f"{self.slow_start}-{self.size}-{self.repetition}"
        return words.replace(" ", "").replace(",", "-").replace("+", "p")

    def scenario(self, *, simulated: bool, profile: str, aggregation: int) -> _core.Scenario:
        """The study's, without its pings."""
        # As the study: starts 80 ms apart, spread evenly by the golden ratio.
        start = 0.1 + 0.08 * (self.repetition * 0.6180339887 % 1.0)
        sets = [
            *CELL,
            "flow.0.count=1",
            f"flow.1.profile={profile}",
            f"flow.1.size_bytes={SIZES[self.size]}",
            f"flow.1.start_s={start:.6f}",
            f"flow.1.aggregation.max_bytes={aggregation}",
            "emulation.slow_start=profile",
            *(f"flow.1.{key}" for key in SLOW_STARTS[self.slow_start]),
        ]
        scenario = scenarios.load(str(SCENARIO), sets)
        if not simulated:
            return scenario
        host = hosts_take_time(parse_toml(scenario.resolved_toml))
        return scenarios.load(str(SCENARIO), [*sets, *host])


def main(
    repetitions: Annotated[int, typer.Option(min=2)] = 12,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/hystart",
    page: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "hystart.md",
) -> None:
    """Run slow starts inside the kernel and simulate them; run what is missing, write the page."""
    out.mkdir(parents=True, exist_ok=True)
    cases = [
        Case(slow_start, size, repetition)
        for repetition in range(repetitions)
        for size in SIZES
        for slow_start in SLOW_STARTS
    ]
    profile, _ = nearest_profile(platform.release(), _core.profiles())
    rows: dict[Case, dict[str, Any]] = {}
    with progress_bar("downloads") as progress:
        for index, case in enumerate(cases):
            file = out / f"{case.key}.json"
            if not file.exists():
                with replaced_file(file) as aside:
                    aside.write_text(json.dumps(_emulated(case, profile)))
            emulated = json.loads(file.read_text()).get("emulated")
            rows[case] = {"simulated": _simulated(case, profile)}
            rows[case] |= {"emulated": emulated} if emulated else {}
            progress((index + 1) / len(cases))
    write(page, markdown(rows, repetitions, profile))


def _simulated(case: Case, profile: str) -> dict[str, Any]:
    plain = case.scenario(simulated=False, profile=profile, aggregation=0)
    simulated = case.scenario(simulated=True, profile=profile, aggregation=plain.coalesce_bytes)
    options = SimulationOptions(seed=1 + case.repetition)
    return _figures(simulate.execute(simulated, options))


def _emulated(case: Case, profile: str) -> dict[str, Any]:
    plain = case.scenario(simulated=False, profile=profile, aggregation=0)
    seed = 1 + case.repetition
    for attempt in range(ATTEMPTS):
        with TemporaryDirectory() as place:
            run = Path(place) / f"run-{attempt}"
            done = emulate.emulate(plain, EmulationOptions(flows=True, seed=seed, out=run))
        valid, loaded = done.summary["emulation"]["valid"], done.summary["emulation"]["slow_starts"]
        if valid:
            return {"emulated": _figures(done) | {"loaded": loaded}}
    return {}


def _figures(run: Run) -> dict[str, Any]:
    flow = next(flow for flow in run.summary["flows"] if flow["id"] == "download")
    return {
        "goodput_mbps": flow["goodput_mbps"],
        "completed_s": flow["completed_s"],
        "congestion": flow["congestion"],
        "exit": flow["slow_start_exit"],
        "retransmitted": flow["retransmitted_segments"],
    }


def markdown(rows: dict[Case, dict[str, Any]], repetitions: int, profile: str) -> list[str]:
    """The page."""
    lines = [
        heading(
            "HyStart over LTE with the kernel's TCP", "hystart", f"kernel {platform.release()}"
        ),
        "This page compares downloads of the study `lte-cubic-hystart` in a faster cell (20 MHz",
        "at 30 dB, an SR period of 10 ms, a server next to the core). Each slow start ran as a",
        'congestion control inside the running kernel (`emulation.slow_start = "profile"`), and in '
        "the simulation with profile",
        f"`{profile}`. Each row has {repetitions} starts at different phases of the radio, the",
        "same in every row. Goodput is given with its 95 % confidence interval; the gain is",
        "relative to 4.19 with the same start. The simulated hosts take as much time as those of",
        "the twins ([ADR 106](../adr/0106-twin-hosts-take-time.md)).",
        "",
    ]
    for size in SIZES:
        cells = [
            [
                slow_start,
                *_cells(rows, size, slow_start, "emulated"),
                *_cells(rows, size, slow_start, "simulated"),
            ]
            for slow_start in SLOW_STARTS
        ]
        lines += [f"## {size}", "", table(HEAD, cells)]
        lines += ["", f"Published for both changes: {PUBLISHED[size]} %.", ""]
    lost = sum("emulated" not in row for row in rows.values())
    lines.append(
        f"{lost} downloads were too late on every attempt, and are left out."
        if lost
        else "No download was too late."
    )
    return lines


def _cells(rows: dict[Case, dict[str, Any]], size: str, slow_start: str, side: str) -> list[str]:
    goodputs, gains, windows = [], [], []
    reasons: dict[str, int] = {}
    for case, row in rows.items():
        if case.size != size or case.slow_start != slow_start or side not in row:
            continue
        figures = row[side]
        goodputs.append(figures["goodput_mbps"])
        reference = rows[Case("4.19", size, case.repetition)]
        if side in reference:
            gains.append(100 * (figures["goodput_mbps"] / reference[side]["goodput_mbps"] - 1))
        if figures["exit"] is not None:
            windows.append(figures["exit"]["cwnd_segments"])
        reason = figures["exit"]["reason"] if figures["exit"] else "no exit"
        reasons[reason] = reasons.get(reason, 0) + 1
    ends = (
        f"{sum(windows) / len(windows):.0f} ({min(windows)} to {max(windows)})" if windows else ""
    )
    why = ", ".join(
        name if len(reasons) == 1 else f"{name} {count}" for name, count in sorted(reasons.items())
    )
    return [_interval(goodputs), "" if slow_start == "4.19" else _interval(gains), ends, why]


def _interval(values: list[float]) -> str:
    if not values:
        return ""
    mean, low, high = mean_interval(values)
    return f"{mean:.1f}" if low is None or high is None else f"{mean:.1f} ± {(high - low) / 2:.1f}"
