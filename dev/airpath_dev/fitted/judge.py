"""A truth, its capture, the fit, and what of it is right."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from airpath import _core
from airpath.fitting.fit import Fit, fit

from .draw import Truth

LOSSES = 200
"""Losses that have to be seen for their share to be judged."""


@dataclass(frozen=True)
class Figure:
    """A figure of the truth and of the fit. ``fitted`` None: said to be not identifiable."""

    name: str
    true: float
    fitted: float | None
    allowed: float

    @property
    def error(self) -> float | None:
        """By which share the fit is wrong."""
        return None if self.fitted is None else self.fitted / self.true - 1

    @property
    def verdict(self) -> str:
        """``right``, ``wrong`` or ``open``."""
        if self.error is None:
            return "open"
        return "right" if abs(self.error) <= self.allowed else "wrong"


def capture(truth: Truth, place: Path, *, emulated: bool) -> tuple[Path, dict[str, int]]:
    """Run the truth; its capture, and the packets that were dropped, by reason."""
    file = place / f"truth-{truth.number}.toml"
    file.write_text(truth.text)
    run = place / f"run-{truth.number}"
    if emulated:
        command = ["airpath", "emulate", str(file), "--flows", "--capture", "--explain", "off"]
    else:
        command = ["airpath", "run", str(file), "--capture", "--explain", "off"]

    done = subprocess.run(
        [sys.executable, "-m", *command, "--out", str(run)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"truth {truth.number}: {done.stderr.strip()}")
    events = pl.read_parquet(run / "events.parquet").filter(pl.col("kind") == "drop")
    drops = events.group_by(pl.col("reason").cast(pl.String)).agg(pl.col("packets").sum())
    return run / "capture.pcapng", dict(drops.iter_rows())


def judge(truth: Truth, file: Path, dropped: dict[str, int]) -> tuple[Fit, list[Figure]]:
    """Fit the flow as it was seen at the truth's point."""
    report = _core.read_capture(file)
    names = [one["name"] for one in report["interfaces"]]
    flows = [
        one for one in report["flows"] if one["tcp"] and names[one["interface"]] == truth.point
    ]
    flow = max(flows, key=lambda one: one["from_client"]["bytes"] + one["from_server"]["bytes"])
    fitted = fit(str(file), flow=flow["id"])
    values: dict[str, Any] = {row["name"]: row["value"] for row in fitted.parameters}
    figures = [
        Figure("base RTT", truth.base_rtt_ms, values["base_rtt"], 0.02),
        Figure("capacity", truth.capacity_mbps, values["capacity"], 0.05),
    ]
    if dropped.get("queue_full"):
        figures.append(Figure("queue", truth.queue_bytes, values["queue"], 0.2))
    if dropped.get("loss", 0) >= LOSSES:
        figures.append(Figure("loss", truth.loss, values["loss"], 0.2))
    goodput = fitted.score.figures["goodput_mbps"]
    figures.append(Figure("goodput", goodput["capture"] or 0.0, goodput["rerun"], 0.1))
    return fitted, figures
