"""Measures how fast captures are read, beside tshark and tcptrace.

Two captures, of 96 bytes a packet: ten flows, and 100,000 flows of which 5,000 are alive at once.
Each is read with all figures of each flow, by one thread; tshark (-q -z conv,tcp) and tcptrace
(-l -r) read a million packets of it. Times are those of the processor. Instructions are those that
callgrind counts between a short and a longer capture of ten flows: they are the same each time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from airpath_dev.harness import say, table

from .common import VALGRIND, BenchError, build, callgrind, cpu_model

CASES = {"ten flows": (10, 10), "100,000 flows, 5,000 alive": (100_000, 5_000)}
PEERS = {"tshark": ["-q", "-n", "-z", "conv,tcp", "-r"], "tcptrace": ["-l", "-r", "-n"]}
PEER_PACKETS = 1_000_000
COUNTED = (20_000, 120_000)
"""Packets in the two captures that are read under callgrind."""


@dataclass(frozen=True)
class Cost:
    """The cost of reading a capture: processor time in seconds, memory in MB."""

    packets: int
    cpu_s: float
    memory_mb: float

    @property
    def per_second(self) -> float:
        """Packets per second of processor time."""
        return self.packets / self.cpu_s


def main(packets: int = 10_000_000) -> None:
    """Measure how fast captures are read, beside tshark and tcptrace; some minutes."""
    program = build("captures", "airpath-capture")
    with tempfile.TemporaryDirectory() as place:
        print(render(program, Path(place), packets))


def render(program: Path, place: Path, packets: int) -> str:
    """Measure all cases and return the table."""
    rows = []
    for name, (flows, alive) in CASES.items():
        say(f"reading {name}")
        own = cost(
            [str(program), "read", str(made(program, place, packets, flows, alive))], packets
        )
        rows.append(row(name, "airpath", own, own))
        small = made(program, place, min(packets, PEER_PACKETS), flows, alive)
        for peer, options in PEERS.items():
            if shutil.which(peer) is None:
                say(f"{peer} is left out: apt-get install {peer}")
                continue
            theirs = cost([peer, *options, str(small)], min(packets, PEER_PACKETS))
            rows.append(row(name, peer, theirs, own))
    head = ("capture", "program", "packets/s", "memory", "airpath is faster")
    lines = [table(head, rows, padded=True), "", f"{cpu_model()}"]
    if VALGRIND:
        files = [made(program, place, packets, 10, 10) for packets in COUNTED]
        counts = [callgrind([str(program), "read", str(file)])[0] for file in files]
        each = (counts[1] - counts[0]) / (COUNTED[1] - COUNTED[0])
        lines.insert(1, f"\n{each:.0f} instructions a packet, ten flows")
    return "\n".join(lines)


def row(name: str, program: str, measured: Cost, own: Cost) -> tuple[str, ...]:
    """Return a row of the table."""
    ratio = "" if measured is own else f"{own.per_second / measured.per_second:.1f} x"
    rate = f"{measured.per_second / 1e6:.2f} million"
    return (name, program, rate, f"{measured.memory_mb:.0f} MB", ratio)


def made(program: Path, place: Path, packets: int, flows: int, alive: int) -> Path:
    """Return the file of a capture, which is written if it does not exist."""
    file = place / f"{packets}-{flows}.pcap"
    if not file.exists():
        words = [str(file), str(packets), str(flows), str(alive)]
        subprocess.run([str(program), "write", *words], check=True)
    return file


def cost(command: list[str], packets: int) -> Cost:
    """Run a command and return its cost."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchError(f"`{' '.join(command)}` failed with {process.returncode}")
    return Cost(packets, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)
