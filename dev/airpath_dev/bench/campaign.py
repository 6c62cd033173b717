"""Measures the overhead of a campaign, beyond its runs.

Overhead is 1 - engine time / (workers x wall), with as many workers as cores, for runs of about
50 ms and 5 ms of processor time; engine time is the processor time inside the simulator. Bounds:
5 % and 20 %. Each is measured REPEATS times, engines in turns, and the median is judged. The
processor time that other processes took is printed beside it, because it inflates the overhead.
Then 100,000 short runs show the client's memory and the time of a query.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import airpath
from airpath.base.choices import Cluster
from airpath_dev.harness import FINE, WRONG

BOUNDS = {50: 0.05, 5: 0.20}
RUNS = {50: 2_000, 5: 8_000}
"""Number of runs in a measured campaign, by the length of a run in ms."""
REPEATS = 3


def definition(run_ms: int) -> dict[str, Any]:
    """Return a campaign whose runs take about `run_ms` of processor time, found by trial runs."""
    base = {"scenario": "random-loss", "seeds": 1}
    length = 1.0
    for _ in range(3):
        made = {**base, "set": [f"run.duration_s={length}"], "seeds": 40}
        with tempfile.TemporaryDirectory() as folder:
            done = airpath.sweep(made, out=Path(folder) / "out", workers=1).document
        length *= run_ms / 1000 / (done["engine_s"] / done["simulated"])
        length = float(f"{length:.3g}")
    return {
        "scenario": "random-loss",
        "set": [f"run.duration_s={length}"],
        "seeds": RUNS[run_ms] // 4,
        "vary": [
            {
                "key": "path.down.0.queue_packets",
                "name": "queue",
                "values": [20, 50, 100, 200],
            }
        ],
    }


def main(runs: int = 100_000, workers: int = os.cpu_count() or 1, repeats: int = REPEATS) -> int:
    """Measure what a campaign costs beside its runs; exit code 1: more than its bounds."""
    failed = False
    engines: dict[str, Cluster | None] = {"local": None, "Dask": "local"}
    print(f"overhead of a campaign, {workers} workers of {os.cpu_count()} cores:")
    for run_ms, bound in BOUNDS.items():
        made = definition(run_ms)
        found: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(repeats):
            for name, engine in engines.items():
                before = machine_s()
                with tempfile.TemporaryDirectory() as folder:
                    done = airpath.sweep(
                        made, out=Path(folder) / "out", workers=workers, cluster=engine
                    )
                busy, ours = (now - then for now, then in zip(machine_s(), before, strict=True))
                about = done.document
                each = 1000 * about["engine_s"] / about["simulated"]
                overhead = about["overhead"] or 0.0
                found[name].append(overhead)
                print(
                    f"  {name:6} {about['simulated']:6} runs of {each:5.1f} ms: "
                    f"{100 * overhead:5.1f} %; others had "
                    f"{100 * max(0.0, 1 - ours / busy):.1f} % of what the machine did",
                    flush=True,
                )
        for name, overheads in found.items():
            overhead = statistics.median(overheads)
            verdict = "below" if overhead < bound else "ABOVE"
            failed |= overhead >= bound
            print(
                f"  {name:6} runs of {run_ms} ms: {100 * overhead:.1f} % "
                f"({100 * min(overheads):.1f} to {100 * max(overheads):.1f} of "
                f"{len(overheads)}), {verdict} {100 * bound:.0f} %",
                flush=True,
            )
    failed |= many(runs, workers)
    return WRONG if failed else FINE


def machine_s() -> tuple[float, float]:
    """Return the busy time of all processors, and the CPU time of this process and its children."""
    columns = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    user, nice, system, _, _, interrupts, softly, stolen = (int(one) for one in columns)
    busy = (user + nice + system + interrupts + softly + stolen) / os.sysconf("SC_CLK_TCK")
    ours = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        ours += used.ru_utime + used.ru_stime
    return busy, ours


def many(runs: int, workers: int) -> bool:
    """Whether many short runs exceed the bounds for memory or time."""
    made = {
        "scenario": "wire",
        "set": ["run.duration_s=0.1"],
        "seeds": runs // 100,
        "vary": [
            {"key": "path.down.0.queue_packets", "name": "queue", "values": list(range(20, 120))}
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        done = airpath.sweep(made, out=Path(folder) / "out", workers=workers)
        wall_s = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(file.stat().st_size for file in Path(done.place).rglob("*") if file.is_file())
        began = time.monotonic()
        answer = airpath.query(
            "select queue, avg(goodput_mbps), count(*) from flows group by 1 order by 1",
            done.place,
        )
        query_s = time.monotonic() - began
    print(
        f"{done.document['runs']} runs of {1000 * done.document['engine_s'] / runs:.2f} ms: "
        f"{wall_s:.1f} s, client's memory {memory:.0f} MiB, {size / runs:.0f} bytes a run, "
        f"query of {len(answer)} groups {query_s:.2f} s"
    )
    return memory >= 1000 or query_s >= 2
