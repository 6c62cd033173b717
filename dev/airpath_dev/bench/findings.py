"""Measures the time of findings: every shipped scenario is run and then explained.

The table has the wall time of `airpath run NAME --explain off`, with tables written, and the time
that `--explain quick` adds. An explanation is cheap if it takes less than 2 s or less than ten
times the run. The exit code is 1 if fewer than nine in ten are cheap. The table is Markdown on
stdout.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

import airpath
from airpath import diagnose
from airpath.scenario import shipped_scenarios
from airpath_dev.harness import FINE, WRONG, table

SECONDS, TIMES, SHARE = 2.0, 10.0, 0.9


def main(
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...")] = None,
    file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures there too.")
    ] = None,
) -> int:
    """Measure what findings cost of every shipped scenario, or of those named."""
    rows = []
    print(f"on {len(os.sched_getaffinity(0))} cores\n")
    print(table("scenario | run: | explanation: | times the run: | simulations: | first cause", []))
    for name in scenarios or shipped_scenarios():
        row = cost(name)
        rows.append(row)
        print(
            f"| {name} | {row['run_s']:.2f} s | {row['explanation_s']:.2f} s | "
            f"{row['explanation_s'] / row['run_s']:.1f} | {row['runs']} | {row['cause']} |",
            flush=True,
        )
    cheap = sum(bool(row["cheap"]) for row in rows)
    print(f"\n{cheap} of {len(rows)} take less than {SECONDS:.0f} s or {TIMES:.0f} times the run.")
    if file:
        file.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return FINE if cheap >= SHARE * len(rows) else WRONG


def cost(name: str) -> dict[str, Any]:
    scenario = airpath.load(name)
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        run = airpath.run(scenario, out=Path(place) / "run")
        ran = time.monotonic()
        diagnose.add(run, scenario, "quick")
        ended = time.monotonic()
    run_s, explanation_s = ran - began, ended - ran
    explained = run.summary["explained"]
    causes = [finding["cause"] for finding in run.findings]
    return {
        "scenario": name,
        "run_s": run_s,
        "explanation_s": explanation_s,
        "runs": explained["runs"] if explained else 0,
        "cause": next((cause for cause in causes if not cause.endswith("-capacity")), "none"),
        "cheap": explanation_s < max(SECONDS, TIMES * run_s),
    }
