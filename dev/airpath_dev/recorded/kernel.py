"""Emulates drawn transfers and compares the sender's capture with what the kernel records (root).

Exit codes: 0, the number of retransmissions is equal in all runs, and the other figures are right
in nine of ten; 1, they are not, or an emulation failed; 2, bad use; 3, not root.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from airpath import _core
from airpath.readers.flows import ENDS, stream
from airpath_dev.harness import FINE, WRONG, Count, Seed, need, say

from .judge import FIGURES, MOST_APART, drawn, verdict

_AT_ONCE = 3
_FIGURES = {
    **FIGURES,
    "timeouts": "time-outs, or none",
    "exit": "slow start ends within one round",
}


@dataclass(frozen=True)
class Judged:
    """One flow. Pairs are the capture's figure and the kernel's."""

    words: str
    again: tuple[int, int]
    timeouts: tuple[int, int]
    rtt: dict[str, tuple[float, float]]
    exit_round: tuple[int | None, int] | None
    """None if the sender took back what ended its slow start, or there was none."""

    @property
    def faults(self) -> list[str]:
        """Figures that are wrong."""
        found = [
            name for name, (told, true) in self.rtt.items() if abs(told / true - 1) > MOST_APART
        ]
        found += ["again"] if self.again[0] != self.again[1] else []
        found += ["timeouts"] if bool(self.timeouts[0]) != bool(self.timeouts[1]) else []
        told, true = self.exit_round or (0, 0)
        return found + (["exit"] if told is None or abs(told - true) > 1 else [])


def emulated(seed: int, number: int, place: Path) -> list[Judged]:
    """Draw, emulate and compare. Raises RuntimeError if the emulation fails."""
    text, words, _ = drawn(seed, number)
    scenario, out = place / f"{number}.toml", place / f"{number}"
    scenario.write_text(text)
    command = ["emulate", str(scenario), "--flows", "--capture", "--explain", "off"]
    done = subprocess.run(
        [sys.executable, "-m", "airpath", *command, "--out", str(out)],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    # 3: packets were late, and the kernel and the capture saw that alike.
    if done.returncode not in (0, 3) or not (out / "summary.json").exists():
        raise RuntimeError(done.stderr.strip())
    return judge(words, out)


def judge(words: str, run: Path) -> list[Judged]:
    """Each transfer of an emulation, at its sender."""
    file = run / "capture.pcapng"
    report = _core.read_capture(file)
    names = [one["name"] for one in report["interfaces"]]
    events = pl.read_parquet(run / "events.parquet").with_columns(pl.col("flow").cast(pl.String))
    summary = json.loads((run / "summary.json").read_text())
    flows = [one for one in summary["flows"] if one["rtt_ms"] and one["segments_sent"]]
    found = []
    for flow in flows:
        is_down = flow["direction"] == "down"
        streams = [
            (seen, end, stream(seen, end))
            for seen in report["flows"]
            if seen["tcp"] and (names[seen["interface"]] == "server") == is_down
            for end, _ in ENDS
        ]
        # Each sends another number of segments.
        best = min(streams, key=lambda one: abs(one[2]["data_packets"] - flow["segments_sent"]))
        found.append(_flow(words, file, flow, best, events.filter(pl.col("flow") == flow["id"])))
    return found


def _flow(words: str, file: Path, flow: Any, best: Any, events: pl.DataFrame) -> Judged:
    seen, end, stream = best
    again = stream["retransmissions"]
    told: Any = stream["rtt_timestamps_ms"] or stream["rtt_ms"]
    return Judged(
        words,
        (again["segments"], flow["retransmitted_segments"]),
        (again["timeout"], flow["rto_count"]),
        {name: (told[name], flow["rtt_ms"][name]) for name in ("p50", "mean", "p95")},
        None if flow["undo_count"] else _exit(file, seen, end, stream["slow_start"], events),
    )


def _exit(
    file: Path, seen: Any, end: str, told: Any, events: pl.DataFrame
) -> tuple[int | None, int] | None:
    """The round in which slow start ended: both clocks have the end of the handshake."""
    at = {
        kind: events.filter(pl.col("kind") == kind)["time_ns"]
        for kind in ("established", "slow_start_exit")
    }
    if told is None or any(len(one) == 0 for one in at.values()):
        return None
    (segments,) = _core.read_flows(file, [(seen["id"], end == "client")], 1)
    first_ns = memoryview(segments["sent_ns"]).cast("d")[0]
    established_ns = segments["handshake_ns"][2 if end == "server" else 1]
    since_s = (at["slow_start_exit"][0] - at["established"][0]) / 1e9
    exit_s = since_s + (established_ns - first_ns) / 1e9
    return told["exit_round"], sum(one < exit_s for one in told["rounds_end_s"])


def main(seed: Seed = 1, count: Count = 15) -> int:
    """Emulate COUNT drawn runs and compare the sender's capture with what the kernel records."""
    need(root=True)
    say(f"the seed is {seed}")
    every: list[Judged] = []
    failures = 0
    with tempfile.TemporaryDirectory() as place, ProcessPoolExecutor(_AT_ONCE) as pool:
        jobs = [pool.submit(emulated, seed, number, Path(place)) for number in range(count)]
        for number, job in enumerate(jobs):
            try:
                every += job.result()
            except RuntimeError as failed:
                failures += 1
                print(f"{number} is not compared: {failed}")
    for one in every:
        if one.faults:
            print(f"{one.words}: {', '.join(one.faults)}: {one.rtt}, exit {one.exit_round}")
    return max(tell(every), WRONG if failures else FINE)


def tell(every: Sequence[Judged]) -> int:
    """Print how many are right; return the exit code."""
    exits = sum(one.exit_round is not None for one in every)
    print(f"{len(every)} transfers, {sum(one.again[1] for one in every)} segments retransmitted.")
    return verdict(_FIGURES, [one.faults for one in every], {"exit": exits})
