"""Whether the machine let the kernel's TCP be itself: bounds on an emulated run (decision 7)."""

from __future__ import annotations

from airpath.drivers.emulate import CAPTURE
from airpath.runs.results import Run

from . import capture
from .rows import Row

LATE_P99_9_SHARE = 0.4
"""Of the time that the full queue takes to drain. When the machine stops for longer, the ACKs that
waited come at once, and the burst that they release overflows the queue: a loss of our making."""

HELD_UP_SHARE = 0.01
"""Of the data may come to the receiver while that sends no ACK for a quarter of the queue, at least
eight segments: its process was put aside with the socket in its hands. Again a burst of our making.
"""

PAUSE_US = 0.5e6
"""A packet that left later than this: the machine stood still."""

IDLE_SHARE = 0.01
"""An application that left TCP without data for more of its time than this was too slow."""


def judge(row: Row, run: Run) -> str | None:
    """Why an emulated run of a row does not count."""
    emulation = run.summary["emulation"]
    for name, direction in emulation["directions"].items():
        late = direction["lateness_us"]
        if late and late["p99_9"] > LATE_P99_9_SHARE * 1000 * row.buffer_bdp * row.rtt_ms:
            return f"{name}: 0.1 % of the packets left more than {late['p99_9']:.0f} us late"
        if late and late["max"] > PAUSE_US:
            return f"the machine stood still for {late['max'] / 1e6:.1f} s"
        if direction["refused"] or direction["overrun"]:
            count = direction["refused"] + direction["overrun"]
            return f"{name}: the kernel refused or lost {count} packets"
    if run.partial:
        return "; ".join(run.partial)
    if run.directory is None:
        raise ValueError("a run that is judged has a directory with its capture")
    return held_or_idle(row, capture.read(run.directory / CAPTURE))


def held_or_idle(row: Row, packets: capture.Packets) -> str | None:
    """Why a run does not count by what the two hosts sent."""
    quarter = max(8, row.buffer_bdp * row.bdp_bytes / 1500 / 4)
    held_up = capture.held_up(packets, quarter)
    if held_up > HELD_UP_SHARE:
        return f"the receiver held up the ACKs for {held_up:.0%} of the data"
    idle = capture.idle(packets)
    if idle > IDLE_SHARE:
        return f"the application left TCP idle for {idle:.0%} of the time"
    return None
