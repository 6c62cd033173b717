"""Emulates for 20 minutes and looks for leaks (root).

One UE receives 200 Mb/s over 5G with handovers, and another sleeps by DRX.

The command records memory, descriptors and threads of the airpath process once a second, and then
what the run left on the host. A Markdown table goes to stdout. Exit code 1 if memory is not flat
within 2 % or something is left. With --flows, memory must be flat after the last flow, and always
below 200 MB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, need, say, table

SCENARIO = """
title = "Soak"
[run]
sample_interval_ms = 5000
[[path.down]]
stage = "delay"
delay_ms = 5
[[path.up]]
stage = "delay"
delay_ms = 5
[radio]
preset = "nr-n78"
name = "west"
[radio.drx]
enabled = true
[[radio.ue]]
name = "busy"
[[radio.ue]]
name = "sleepy"
[[radio.neighbour]]
name = "east"
[[radio.handover]]
at_s = 10
every_s = 20
to = "east"
[[radio.handover]]
at_s = 20
every_s = 20
to = "west"
[[flow]]
kind = "bulk"
ue = "busy"
[[flow]]
kind = "ping"
ue = "sleepy"
"""

TRAFFIC = (
    "ip netns exec sleepy ping -q -i 1.05 server >&2 & "
    "exec iperf3 -c server -R -b 200M -t {seconds} -J"
)

SCAN = "ip netns exec busy {python} {program} {flows} {rate} >&2 && touch scanned & "
FLOWS_PER_S = 4000
MOST_MB = 200

MARK = f"airpath-soak-{os.getpid()}"
"""Set in the environment of every process that the run starts."""

MADE = ("soak.toml", "iperf3.json", "run", "scanned")

FORWARDER = "airpath-forward\n"
"""Name of the forwarding thread."""

FLAT = 0.02
"""Largest relative change of memory after the first tenth of the run."""


def main(
    minutes: Annotated[float | None, typer.Option(help="20, or 3 with --flows.")] = None,
    flows: Annotated[int, typer.Option(envvar="FLOWS", help="In the first minute.")] = 0,
) -> int:
    """Emulate for minutes; exit code 1: memory is not flat, or something is left."""
    minutes = minutes or (3.0 if flows else 20.0)
    need("iperf3", root=True, exit_code=FINE)
    before = host()
    with tempfile.TemporaryDirectory() as place:
        document, seen = soak(Path(place), minutes * 60, flows)
        left = {name: sorted(now - before[name]) for name, now in host().items()}
        left["files"] = sorted(path.name for path in Path(place).iterdir() if path.name not in MADE)
    settled = seen[len(seen) // 10 :]
    if flows:
        settled = [sample for sample in seen if sample["scanned"]]
        if len(settled) < 20:
            say("the flows were not over in time: give more --minutes")
            return WRONG
    rss = [sample["rss"] for sample in settled]
    growth = max(rss) / rss[0] - 1
    peak = max(sample["peak"] for sample in seen)
    remains = list(chain.from_iterable(left.values()))
    rows: list[tuple[str, object]] = [
        ("duration, s", f"{minutes * 60:.0f}"),
        ("flows", document["flows"]),
        ("memory at most, MB", f"{peak / 1e6:.0f}"),
        ("goodput by iperf3, Mb/s", f"{document['flows_mbps']:.1f}"),
        ("handovers", document["handovers"]),
        ("packets dropped by the model", document["dropped"] or "none"),
        ("99 % of data late at most, us", f"{document['late']['p99']:.0f}"),
        ("memory once settled, MiB", f"{rss[0] / 2**20:.1f}"),
        ("memory at the end, MiB", f"{rss[-1] / 2**20:.1f}"),
        ("largest growth", f"{growth:.2%}"),
        *(
            (f"{what}, then and at the end", f"{settled[0][what]}, {settled[-1][what]}")
            for what in ("descriptors", "threads")
        ),
        ("left on the host", ", ".join(remains) or "nothing"),
    ]
    print(table(" | :", rows))
    flat = growth <= FLAT and settled[0]["descriptors"] == settled[-1]["descriptors"]
    small = not flows or peak < MOST_MB * 1e6
    return FINE if flat and small and not remains else WRONG


def soak(place: Path, seconds: float, flows: int) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """Run the emulation; return its document and the observations of each second."""
    scenario = place / "soak.toml"
    scenario.write_text(SCENARIO)
    command = [sys.executable, "-m", "airpath", "emulate", str(scenario), "--user", "root"]
    command += ["--server", "exec iperf3 -s", "--out", str(place / "run"), "--"]
    program = ROOT / "dev/airpath_dev/hostile/scan.py"
    scan = SCAN.format(python=sys.executable, program=program, flows=flows, rate=FLOWS_PER_S)
    command += ["sh", "-c", (scan if flows else "") + TRAFFIC.format(seconds=round(seconds))]
    with (place / "iperf3.json").open("w") as output:
        environment = {**os.environ, "AIRPATH_SOAK": MARK}
        process = subprocess.Popen(command, stdout=output, cwd=place, env=environment)
    seen = []
    while process.poll() is None:
        time.sleep(1)
        if (sample := observe(process.pid)) is not None:
            seen.append({**sample, "scanned": (place / "scanned").exists()})
    said = json.loads((place / "iperf3.json").read_text())
    summary = json.loads((place / "run" / "summary.json").read_text())
    down = summary["emulation"]["directions"]["down"]
    document = {
        "flows_mbps": said["end"]["sum_received"]["bits_per_second"] / 1e6,
        "late": down["lateness_us"],
        "flows": summary["emulation"]["flows"],
        "dropped": ", ".join(f"{count} {reason}" for reason, count in down["dropped"].items()),
        "handovers": handovers(place / "run"),
    }
    return document, seen


def observe(process: int) -> dict[str, int] | None:
    """Return resident memory in bytes, descriptors and threads; None unless it is forwarding."""
    directory = Path("/proc") / str(process)
    try:
        status = dict(
            line.split(":", 1) for line in (directory / "status").read_text().splitlines()
        )
        descriptors = len(list((directory / "fd").iterdir()))
        tasks = list((directory / "task").iterdir())
        if all((task / "comm").read_text() != FORWARDER for task in tasks):
            return None
    except OSError:
        return None
    kib = int(status["VmRSS"].split()[0])
    peak = int(status["VmHWM"].split()[0]) * 1024
    return {"rss": kib * 1024, "peak": peak, "descriptors": descriptors, "threads": len(tasks)}


def handovers(run: Path) -> int:
    """Return the number of completed handovers."""
    import polars

    events = polars.read_parquet(run / "events.parquet")
    return len(events.filter(polars.col("kind") == "handover_complete"))


def host() -> dict[str, set[str]]:
    """Return what a run might leave behind: network namespaces, devices, processes."""
    networks, processes = set(), set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Processes of other emulations may start and end meanwhile.
            if MARK.encode() in (entry / "environ").read_bytes():
                processes.add(f"process {entry.name}")
                networks.add(str((entry / "ns" / "net").readlink()))
        except OSError:
            continue
    names = Path("/run/netns")
    return {
        "networks": networks,
        "names": {entry.name for entry in names.iterdir()} if names.is_dir() else set(),
        "devices": {entry.name for entry in Path("/sys/class/net").iterdir()},
        "processes": processes,
    }
