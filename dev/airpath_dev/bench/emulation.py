"""Measures throughput and lateness of the emulator, beside the forwarder alone (root).

Each run is one TCP download by iperf3; the table shows the median and the worst run. The bare
forwarder passes every packet on unchanged and does not split aggregates. "Stolen" time, when the
hypervisor took a processor away, also delays packets. A Markdown table goes to stdout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from airpath_dev.harness import FINE, need, say, table

SERVER = "exec iperf3 -s"
ENDS = """
[[path.up]]
stage = "delay"
delay_ms = 10
[[flow]]
kind = "bulk"
profile = "linux-6.18"
receive_buffer_bytes = {window}
send_buffer_bytes = 100_000_000
"""
WINDOW = 12_000_000
"""1.6 times the BDP of 3 Gb/s and 20 ms: fills the link, and no queue overflows."""

WIDE = 100_000_000
PACKET = ("delay, packet sockets", "link of 1 Gb/s, packet sockets")
IO = '[emulation]\nio = "packet"\n'
FREE = ("bare forwarder", "delay, as fast as TCP goes", PACKET[0])
"""Cases that only the machine limits."""

BURSTS = "delay, the sender at 3.2 Gb/s in bursts of 1 ms"
PACED = "delay, the sender paced at 3.3 Gb/s (upload)"
FAST = "delay, the sender paced at 6.5 Gb/s (upload)"
"""The kernel paces both by SO_MAX_PACING_RATE. iperf3 sets it only on its own sending sockets, so
the UE sends."""

DELAY = '[[path.down]]\nstage = "delay"\ndelay_ms = 10\n'
LINK = '[[path.down]]\nstage = "link"\nrate_mbps = {rate}\nqueue_packets = 20000\n'
RADIO = '[radio]\npreset = "{preset}"\n'

CASES = {
    FREE[0]: DELAY,
    FREE[1]: DELAY,
    PACKET[0]: DELAY + IO,
    BURSTS: DELAY,
    PACED: DELAY,
    FAST: DELAY,
    "link of 1 Gb/s, delay": LINK.format(rate=1_000) + DELAY,
    PACKET[1]: LINK.format(rate=1_000) + DELAY + IO,
    "link of 3 Gb/s, delay": LINK.format(rate=3_000) + DELAY,
    "NR n78, delay": DELAY + RADIO.format(preset="nr-n78"),
    "LTE 20 MHz, delay": DELAY + RADIO.format(preset="lte-20"),
}


def main(
    runs: int = 3,
    seconds: float = 5.0,
    file: Annotated[Path | None, typer.Option("--json", help="Write every run too.")] = None,
) -> None:
    """Measure throughput and lateness of the emulator, beside the bare forwarder."""
    need("iperf3", root=True, exit_code=FINE)
    rows = {}
    for name, text in CASES.items():
        command = transfer(name, seconds)
        say(name)
        rows[name] = [one(name, text, command) for _ in range(runs)]
    lines = []
    for name, of_case in rows.items():
        cells = [f"{median(run['mbps'] for run in of_case):.0f}"]
        for key, of in (("p50", median), ("p99", median), ("p99", max), ("p99_9", median)):
            values = [run["late"][key] for run in of_case if run["late"]]
            cells.append(f"{of(values):.0f}" if values else "")
        missed = [run["missed"] for run in of_case if run["late"]]
        cells.append(f"{median(missed):.0f}" if missed else "")
        cells.append(" ".join(f"{run['stolen_ms']:.0f}" for run in of_case))
        lines.append((name, *cells))
    late = "p50 us: | p99 us: | p99 us, worst run: | p99.9 us: | missed slots: | stolen ms:"
    print(table(f"case | Mb/s: | late: {late}", lines))
    if file:
        file.write_text(json.dumps(rows, indent=1))


def transfer(name: str, seconds: float) -> list[str]:
    """Return the command line of a case's transfer."""
    rates = {
        BURSTS: ["-R", "-b", "3200M"],
        PACED: ["--fq-rate", "3300M"],
        FAST: ["--fq-rate", "6500M"],
    }
    return ["iperf3", "-c", "server", "-t", str(seconds), "-J", *rates.get(name, ["-R"])]


def one(name: str, text: str, command: list[str], under: Sequence[str] = ()) -> dict[str, Any]:
    """Emulate once in a separate process; return iperf3's goodput and the lateness of the data.

    ``under`` is the beginning of a command line that runs another one, for instance perf's.
    """
    stolen = stolen_ms()
    with tempfile.TemporaryDirectory() as place:
        scenario = Path(place) / "case.toml"
        window = WIDE if name in (*FREE, BURSTS, PACED, FAST) else WINDOW
        scenario.write_text(text + ENDS.format(window=window))
        script = (
            "import json, sys\n"
            "from airpath import _core, scenario\n"
            "from airpath.drivers.options import EmulationOptions\n"
            "loaded = scenario.load(sys.argv[1], None)\n"
            "options = EmulationOptions(\n"
            "    command=sys.argv[3:], servers=[sys.argv[2]], seed=1, bare=%r\n"
            ")\n"
            "ran = _core.emulate(loaded, options)\n"
            "print(json.dumps(ran.report))\n"
        ) % (name == FREE[0])
        done = subprocess.run(
            [*under, sys.executable, "-c", script, str(scenario), SERVER, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    decoder = json.JSONDecoder()
    iperf, end = decoder.raw_decode(done.stdout[done.stdout.index("{") :])
    rest = done.stdout[done.stdout.index("{") + end :]
    directions = decoder.raw_decode(rest[rest.index("{") :])[0]["directions"]
    data = directions["down" if "-R" in command else "up"]
    return {
        "mbps": iperf["end"]["sum_received"]["bits_per_second"] / 1e6,
        "late": data["lateness_us"],
        "missed": data["missed_slots"],
        "stolen_ms": stolen_ms() - stolen,
    }


def stolen_ms() -> float:
    """Return the time that the hypervisor took from all processors since the machine booted."""
    ticks = int(Path("/proc/stat").read_text().split(maxsplit=9)[8])
    return 1e3 * ticks / os.sysconf("SC_CLK_TCK")
