"""Does a long emulation leak? 200 Mb/s over 5G with handovers, another UE that sleeps by DRX.

    .venv/bin/python benches/soak.py                 # root; iperf3; 20 minutes
    .venv/bin/python benches/soak.py --minutes 2
    .venv/bin/python benches/soak.py --flows 100000  # 3 minutes, in the first of them so many flows

Memory, descriptors and threads of the airpath process, once a second; then what it left on the
host. A Markdown table on stdout; exit code 1 if memory is not flat within 2 % or something is left.
With --flows it has to be flat after the last of them, and below 200 MB all the time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

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
"""In the environment of everything that it starts."""

MADE = ("soak.toml", "iperf3.json", "run", "scanned")

FORWARDER = "airpath-forward\n"
"""Name of the thread."""

FLAT = 0.02
"""Of memory, after the first tenth of the run."""


def main() -> int:
    """Run it, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="20, or 3 with --flows")
    parser.add_argument("--flows", type=int, default=0)
    arguments = parser.parse_args()
    minutes = arguments.minutes or (3.0 if arguments.flows else 20.0)
    if os.geteuid() != 0 or shutil.which("iperf3") is None:
        print("the soak is left out: it needs root and iperf3", file=sys.stderr)
        return 0
    before = host()
    with tempfile.TemporaryDirectory() as place:
        document, seen = soak(Path(place), minutes * 60, arguments.flows)
        left = {name: sorted(now - before[name]) for name, now in host().items()}
        left["files"] = sorted(path.name for path in Path(place).iterdir() if path.name not in MADE)
    settled = seen[len(seen) // 10 :]
    if arguments.flows:
        settled = [sample for sample in seen if sample["scanned"]]
        if len(settled) < 20:
            print("the flows were not over in time: give more --minutes", file=sys.stderr)
            return 1
    rss = [sample["rss"] for sample in settled]
    growth = max(rss) / rss[0] - 1
    peak = max(sample["peak"] for sample in seen)
    mbps = document["flows_mbps"]
    print("| | |\n|---|---:|")
    print(f"| duration, s | {minutes * 60:.0f} |")
    print(f"| flows | {document['flows']} |")
    print(f"| memory at most, MB | {peak / 1e6:.0f} |")
    print(f"| goodput by iperf3, Mb/s | {mbps:.1f} |")
    print(f"| handovers | {document['handovers']} |")
    print(f"| packets dropped by the model | {document['dropped'] or 'none'} |")
    print(f"| 99 % of data late at most, us | {document['late']['p99']:.0f} |")
    print(f"| memory once settled, MiB | {rss[0] / 2**20:.1f} |")
    print(f"| memory at the end, MiB | {rss[-1] / 2**20:.1f} |")
    print(f"| largest growth | {growth:.2%} |")
    for what in ("descriptors", "threads"):
        print(f"| {what}, then and at the end | {settled[0][what]}, {settled[-1][what]} |")
    remains = list(chain.from_iterable(left.values()))
    print(f"| left on the host | {', '.join(remains) or 'nothing'} |")
    flat = growth <= FLAT and settled[0]["descriptors"] == settled[-1]["descriptors"]
    small = not arguments.flows or peak < MOST_MB * 1e6
    return 0 if flat and small and not remains else 1


def soak(place: Path, seconds: float, flows: int) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """Run the emulation; what it said, and what was seen each second."""
    scenario = place / "soak.toml"
    scenario.write_text(SCENARIO)
    command = [sys.executable, "-m", "airpath", "emulate", str(scenario), "--user", "root"]
    command += ["--server", "exec iperf3 -s", "--out", str(place / "run"), "--"]
    program = Path(__file__).with_name("scan.py")
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
    """Resident memory in bytes, descriptors, threads; None before and after it forwards."""
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
    """How many were completed."""
    import polars

    events = polars.read_parquet(run / "events.parquet")
    return len(events.filter(polars.col("kind") == "handover_complete"))


def host() -> dict[str, set[str]]:
    """What a run might leave: network namespaces, devices, processes."""
    networks, processes = set(), set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Other emulations may come and go meanwhile.
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


if __name__ == "__main__":
    sys.exit(main())
