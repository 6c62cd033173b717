"""What findings cost: every shipped scenario, run and then explained.

    .venv/bin/python benches/findings.py
    .venv/bin/python benches/findings.py --json findings.json wire nr-n78

Wall time of `airpath run NAME --explain off`, its tables written, and of what `--explain quick`
adds. An explanation is cheap if it takes less than 2 s or ten times the run; the exit code is 1 if
fewer than nine in ten are. The table is Markdown on stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import airpath
from airpath import diagnose
from airpath.scenario import shipped_scenarios

SECONDS, TIMES, SHARE = 2.0, 10.0, 0.9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="default: all that are shipped")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    rows = []
    print(f"on {len(os.sched_getaffinity(0))} cores\n")
    print("| scenario | run | explanation | times the run | simulations | first cause |")
    print("|---|--:|--:|--:|--:|---|")
    for name in arguments.scenarios or shipped_scenarios():
        row = cost(name)
        rows.append(row)
        print(
            f"| {name} | {row['run_s']:.2f} s | {row['explanation_s']:.2f} s | "
            f"{row['explanation_s'] / row['run_s']:.1f} | {row['runs']} | {row['cause']} |",
            flush=True,
        )
    cheap = sum(bool(row["cheap"]) for row in rows)
    print(f"\n{cheap} of {len(rows)} take less than {SECONDS:.0f} s or {TIMES:.0f} times the run.")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0 if cheap >= SHARE * len(rows) else 1


def cost(name: str) -> dict[str, object]:
    scenario = airpath.load(name)
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        run = airpath.run(scenario, out=Path(place) / "run")
        ran = time.monotonic()
        diagnose.add(run, scenario, "quick")
        ended = time.monotonic()
    run_s, explanation_s = ran - began, ended - ran
    causes = [finding["cause"] for finding in run.findings]
    return {
        "scenario": name,
        "run_s": run_s,
        "explanation_s": explanation_s,
        "runs": run.summary["explained"]["runs"],
        "cause": next((cause for cause in causes if not cause.endswith("-capacity")), "none"),
        "cheap": explanation_s < max(SECONDS, TIMES * run_s),
    }


if __name__ == "__main__":
    sys.exit(main())
