"""htsim, the fastest peer: long NewReno flows through one drop-tail bottleneck.

htsim's sources are in a folder beside the checkout, or in the one that `HTSIM` names. A copy of
them is built under `target/`.
Without the sources, the last measurement is read from `benches/htsim.json`, with date and commit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from airpath_dev import ROOT
from airpath_dev.harness import say

from .common import BenchError, Row, about

RECORDED = ROOT / "benches/htsim.json"
COPY = ROOT / "target/peers/htsim"
PRINTED = re.compile(r"([\d.]+) Mb/s, (\d+) segments, CPU ([\d.]+) s")
PACKETS = 2
"""Packets per segment: htsim acknowledges every segment."""


@dataclass(frozen=True)
class Htsim:
    """htsim's program, and a build for valgrind, which does not know all of this processor's
    instructions."""

    program: Path
    counted: Path

    def command(
        self, rate_mbps: int, rtt_ms: int, seconds: int, flows: int, counted: bool
    ) -> list[str]:
        program = self.counted if counted else self.program
        return [str(program), *(str(number) for number in (rate_mbps, rtt_ms, seconds, flows))]

    def run(self, rate_mbps: int, rtt_ms: int, seconds: int, flows: int) -> Row:
        command = self.command(rate_mbps, rtt_ms, seconds, flows, counted=False)
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        found = PRINTED.search(done.stdout)
        if done.returncode != 0 or found is None:
            raise BenchError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
        goodput, segments, cpu = float(found[1]), int(found[2]), float(found[3])
        return {
            "goodput_mbps": goodput,
            "delivered_segments": segments,
            "cpu_s": cpu,
            "ns_per_segment": cpu * 1e9 / segments,
        }


def sources() -> Path | None:
    """Return the folder of htsim's sources, if it exists."""
    named = os.environ.get("HTSIM")
    places = [Path(named)] if named else [ROOT.parent / "shared/peers/htsim"]
    return next((place for place in places if (place / "bulk.cc").is_file()), None)


def find() -> Htsim | None:
    """Build htsim if its sources exist; otherwise say where to put them."""
    folder = sources()
    if folder is None:
        say(
            "htsim is left out: name its folder (bulk.cc, sim/) with HTSIM=, or put it at"
            " ../shared/peers/htsim"
        )
        return None
    native = ["-O3", "-DNDEBUG", "-march=native"]
    plain = ["-O3", "-DNDEBUG"]
    try:
        return Htsim(built(folder, "native", native), built(folder, "plain", plain))
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"htsim is left out: {error}")
        return None


def built(folder: Path, name: str, flags: list[str]) -> Path:
    """Return the program built with these flags, building it if it does not exist."""
    copy = COPY / name
    program = copy / "bulk"
    if program.is_file():
        return program
    say(f"building htsim ({name})")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    all_flags = " ".join([*flags, "-std=c++17", "-fPIE", "-w"])
    make = ["make", "-j", str(os.cpu_count() or 1), "-C", str(copy / "sim")]
    run_quietly([*make, f"CXXFLAGS={all_flags}"])
    compiler = ["g++", "-std=c++17", *flags, "-w", "-I", str(copy / "sim")]
    run_quietly(
        [*compiler, str(copy / "bulk.cc"), str(copy / "sim/libhtsim.a"), "-o", str(program)]
    )
    return program


def run_quietly(command: list[str]) -> None:
    null = subprocess.DEVNULL
    subprocess.run(command, check=True, stdout=null, stderr=null)


def record(rows: list[Row]) -> None:
    """Store the measurement for machines without htsim."""
    machine = about()
    kept = {"date": machine["date"], "commit": machine["commit"], "cpu": machine["cpu"]}
    RECORDED.write_text(json.dumps({**kept, "rows": rows}, indent=2) + "\n", encoding="utf-8")


def recorded() -> Row | None:
    """Return the last measurement."""
    if not RECORDED.exists():
        return None
    row: Row = json.loads(RECORDED.read_text(encoding="utf-8"))
    return row
