"""Runs a campaign on every engine and compares the tables, byte by byte (root).

The engines are threads of this machine, a Dask LocalCluster, workers started by hand, and Slurm on
this one node. The command then kills the processes that run a campaign. Exit code 1: something
differs or fails; 3: Slurm is not installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import airpath
from airpath.base.choices import Cluster
from airpath_dev import ROOT
from airpath_dev.harness import FINE, NOT_CHECKED, WRONG, install, say

from . import tables
from .processes import processes
from .slurm import missing, slurm

CAMPAIGN = {
    "title": "2,000 runs for every engine",
    "scenario": "random-loss",
    "set": ["run.duration_s=2"],
    "seeds": 100,
    "partition_runs": 300,
    "vary": [
        {"key": "flow.0.congestion", "name": "cc", "values": ["reno", "cubic", "bbr", "bbr3"]},
        {"key": "path.down.0.queue_packets", "name": "queue", "values": [10, 20, 50, 100, 200]},
    ],
}
"""With partitions that no batch ends with."""

BY_SLURM = """
import json, sys
import airpath
airpath.sweep(json.loads(sys.argv[1]), out=sys.argv[2], cluster="slurm", workers=2)
"""


def main() -> int:
    """Run one campaign on every engine and compare the tables; then kill what runs one."""
    os.environ.setdefault("DASK_DISTRIBUTED__LOGGING__DISTRIBUTED", "error")
    install("slurm-wlm", "munge")
    with tempfile.TemporaryDirectory(prefix="airpath-cluster-") as name:
        folder = Path(name)
        engines: dict[str, Callable[[Path], None]] = {
            "local, 1 thread": lambda out: _sweep(out, workers=1),
            "local, 2 threads": lambda out: _sweep(out, workers=2),
            "Dask LocalCluster, 1 worker": lambda out: _sweep(out, cluster="local", workers=1),
            "Dask LocalCluster, 2 workers": lambda out: _sweep(out, cluster="local", workers=2),
            "two dask workers by hand": _by_hand,
        }
        absent = missing()
        if absent:
            say(f"not tried: Slurm; {', '.join(absent)} are not installed")
        else:
            engines["Slurm, 2 jobs"] = _by_slurm
        found: dict[str, dict[str, str]] = {}
        for number, (engine, run) in enumerate(engines.items()):
            out = folder / str(number) / "out"
            out.parent.mkdir()
            began = time.monotonic()
            run(out)
            wall_s = time.monotonic() - began
            found[engine] = tables(out)
            done = airpath.open_campaign(out).document
            overhead = done["overhead"] or 0.0
            print(
                f"{engine:30} {done['runs']} runs, {wall_s:6.1f} s, engine {done['engine_s']:6.1f}"
                f" s, overhead {100 * overhead:5.1f} %, {len(found[engine])} files",
                flush=True,
            )
        first = next(iter(found.values()))
        different = [engine for engine, hashes in found.items() if hashes != first]
    if different or not first:
        print(f"other tables: {', '.join(different)}")
        return WRONG
    print(f"the tables of all {len(found)} are the same, byte by byte")
    pytest = [sys.executable, "-m", "pytest", "--quiet", "--show-capture=no"]
    if subprocess.run([*pytest, ROOT / "tests/python/kills.py"], cwd=ROOT, check=False).returncode:
        return WRONG
    return NOT_CHECKED if absent else FINE


def _sweep(out: Path, workers: int, cluster: Cluster | None = None) -> None:
    airpath.sweep(CAMPAIGN, out=out, workers=workers, cluster=cluster)


def _by_hand(out: Path) -> None:
    with processes(out.parent, workers=2) as made:
        airpath.sweep(CAMPAIGN, out=out, scheduler=made.address)


def _by_slurm(out: Path) -> None:
    import json

    with slurm(out.parent) as environment:
        # In a process of its own: Dask reads its configuration once.
        more = {
            "DASK_JOBQUEUE__SLURM__MEMORY": "2 GiB",
            "DASK_JOBQUEUE__SLURM__LOG_DIRECTORY": str(out.parent),
            "DASK_JOBQUEUE__SLURM__LOCAL_DIRECTORY": str(out.parent),
            "DASK_JOBQUEUE__SLURM__INTERFACE": "lo",
        }
        subprocess.run(
            [sys.executable, "-c", BY_SLURM, json.dumps(CAMPAIGN), str(out)],
            env={**environment, **more}, check=True, timeout=1200,
        )  # fmt: skip
