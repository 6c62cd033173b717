"""The same rows through the simulator: the installed command, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

from referee.rows import SCENARIO, Row


def simulate(row: Row, seed: int) -> dict[str, Any]:
    """Figures of one run, or ``{"missing": why}`` where the simulator cannot do it yet."""
    settings = [
        text
        for setting in (*row.path_settings(), *row.flow_settings())
        for text in ("--set", setting)
    ]
    command = [sys.executable, "-m", "airpath", "run", str(SCENARIO), *settings]
    with tempfile.TemporaryDirectory(prefix="airpath-") as directory:
        done = subprocess.run(
            [*command, "--seed", str(seed), "--json", "--out", f"{directory}/run"],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return {"missing": lines[0] if lines else f"exit code {done.returncode}"}
    document = json.loads(done.stdout)
    flow = document["flows"][0]
    return {
        "row": row.name,
        "seed": seed,
        "version": document["run"]["version"],
        "scenario_sha256": document["run"]["scenario_sha256"],
        "goodput_mbps": flow["goodput_mbps"],
        "rtt_ms": flow["rtt_ms"],
        "segments_sent": flow["segments_sent"],
        "retransmitted_segments": flow["retransmitted_segments"],
        "rto_count": flow["rto_count"],
        "slow_start_exit": flow["slow_start_exit"],
        "dropped": {link["id"]: link["dropped_packets"] for link in document["links"]},
    }
