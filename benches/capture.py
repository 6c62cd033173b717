"""How fast captures are read, beside tshark and tcptrace.

    .venv/bin/python benches/capture.py                # 10 million packets; some minutes
    .venv/bin/python benches/capture.py --packets 1000000

Two captures, of 96 bytes a packet: ten flows, and 100,000 flows of which 5,000 are alive at once.
Each is read with all figures of each flow, by one thread; tshark (-q -z conv,tcp) and tcptrace
(-l -r) read a million packets of it. Times are those of the processor. Instructions are those that
callgrind counts between a short and a longer capture of ten flows: they are the same each time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import BenchError, build, cpu_model, table

CASES = {"ten flows": (10, 10), "100,000 flows, 5,000 alive": (100_000, 5_000)}
PEERS = {"tshark": ["-q", "-n", "-z", "conv,tcp", "-r"], "tcptrace": ["-l", "-r", "-n"]}
PEER_PACKETS = 1_000_000
COUNTED = (20_000, 120_000)
"""Packets of the two captures that callgrind sees."""


@dataclass(frozen=True)
class Cost:
    """What reading cost: processor time in seconds, memory in MB."""

    packets: int
    cpu_s: float
    memory_mb: float

    @property
    def per_second(self) -> float:
        """Packets a second of the processor."""
        return self.packets / self.cpu_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--packets", type=int, default=10_000_000, metavar="N")
    arguments = parser.parse_args()
    try:
        program = build("captures", "airpath-capture")
        with tempfile.TemporaryDirectory() as place:
            print(render(program, Path(place), arguments.packets))
    except BenchError as error:
        print(f"capture: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def render(program: Path, place: Path, packets: int) -> str:
    """Measure everything; the table."""
    rows = []
    for name, (flows, alive) in CASES.items():
        print(f"reading {name}", file=sys.stderr, flush=True)
        own = cost(
            [str(program), "read", str(made(program, place, packets, flows, alive))], packets
        )
        rows.append(row(name, "airpath", own, own))
        small = made(program, place, min(packets, PEER_PACKETS), flows, alive)
        for peer, options in PEERS.items():
            if shutil.which(peer) is None:
                print(f"{peer} is left out: apt-get install {peer}", file=sys.stderr)
                continue
            theirs = cost([peer, *options, str(small)], min(packets, PEER_PACKETS))
            rows.append(row(name, peer, theirs, own))
    head = ("capture", "program", "packets/s", "memory", "airpath is faster")
    lines = [table(head, rows), "", f"{cpu_model()}"]
    if shutil.which("valgrind"):
        counts = [instructions(program, place, packets) for packets in COUNTED]
        each = (counts[1] - counts[0]) / (COUNTED[1] - COUNTED[0])
        lines.insert(1, f"\n{each:.0f} instructions a packet, ten flows")
    return "\n".join(lines)


def row(name: str, program: str, measured: Cost, own: Cost) -> tuple[str, ...]:
    """A row of the table."""
    ratio = "" if measured is own else f"{own.per_second / measured.per_second:.1f} x"
    rate = f"{measured.per_second / 1e6:.2f} million"
    return (name, program, rate, f"{measured.memory_mb:.0f} MB", ratio)


def made(program: Path, place: Path, packets: int, flows: int, alive: int) -> Path:
    """A capture in a file, which is made unless it is there."""
    file = place / f"{packets}-{flows}.pcap"
    if not file.exists():
        words = [str(file), str(packets), str(flows), str(alive)]
        subprocess.run([str(program), "write", *words], check=True)
    return file


def cost(command: list[str], packets: int) -> Cost:
    """Run a command, and what it used."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchError(f"`{' '.join(command)}` failed with {process.returncode}")
    return Cost(packets, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def instructions(program: Path, place: Path, packets: int) -> int:
    """Instructions that reading a capture of ten flows takes."""
    file = made(program, place, packets, 10, 10)
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={place}/out",
         str(program), "read", str(file)],
        capture_output=True, text=True, check=False, env={},
    )  # fmt: skip
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise BenchError(f"callgrind failed: {done.stderr.strip()[-400:]}")
    return int(found[1])


if __name__ == "__main__":
    raise SystemExit(main())
