"""A scenario built from a capture, as TOML with the reason for each key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airpath.fitting.application import parts
from airpath.fitting.endpoints import Endpoints
from airpath.fitting.path import Path as FittedPath
from airpath.fitting.series import BYTES_PER_MS, MS

CONTROLS = ("cubic", "reno", "bbr")
PROFILE = "linux-6.1"
PROFILES = ("rfc", "linux-4.19", "linux-6.18")
"""Tried besides: their slow start and recovery differ."""
_MARGIN = 1.0
"""Seconds of the run after the flow's end."""
_MTU = 1500
"""Bytes of a trace's packet (Mahimahi), and of Ethernet's MTU (IEEE 802.3)."""
_WITH_TIMESTAMPS = 52
"""Bytes of IP, TCP and timestamps (RFC 7323)."""
_STEP_MS = 100
"""Definition: a trace's rate is constant for so long."""
_MOST_LOSS = 0.9
"""Bound: a path that loses more carries nothing."""
_LONGER = 1.2
"""A transfer that ends by itself may take longer than in the capture by a fifth."""
_BURST, _SOME_LOSSES = 1.5, 20
"""Packets in a row, and losses, from which losses come in bursts, and not by chance."""
_MOST_OPPORTUNITIES = 2_000_000
"""Of a trace; what is captured of a flow has no more packets than twice that."""


@dataclass(frozen=True)
class Candidate:
    """Path, ends, and the names of choices that only an experiment can decide."""

    path: FittedPath
    ends: Endpoints
    direction: str
    opened_by_sender: bool
    congestion: str = "cubic"
    profile: str = PROFILE
    trace: str | None = None
    """Name of the trace's file, where capacity varies."""
    seed: int = 1

    @property
    def is_random(self) -> bool:
        """Two runs of the candidate differ."""
        return bool(self.path.loss or self.path.jitter_ms)

    def scaled(self, **factors: float) -> Candidate:
        """The candidate with some figures of the path multiplied."""
        changed = {
            name: getattr(self.path, name) * factor
            for name, factor in factors.items()
            if getattr(self.path, name) is not None
        }
        if "loss" in changed:
            changed["loss"] = min(changed["loss"], _MOST_LOSS)
        return replace(self, path=replace(self.path, **changed))

    @property
    def runs_s(self) -> float:
        """How long the scenario runs."""
        return self.ends.duration_s + _MARGIN


def write(candidate: Candidate, title: str, heading: list[str]) -> str:
    """The scenario's text; ``heading`` are lines of comment."""
    lines = [f"# {line}".rstrip() for line in heading]
    longest = max(candidate.runs_s, _LONGER * candidate.runs_s if candidate.ends.closed else 0)
    lines += [f"title = {_text(title)}", "", "[run]", f"duration_s = {longest:.3f}"]
    if candidate.is_random:
        lines.append(
            "# The seed, of those tried, whose losses and delays are closest to the capture."
        )
    lines += [f"seed = {candidate.seed}", ""]
    both = {"down": _data_stages(candidate), "up": _ack_stages(candidate)}
    if candidate.direction == "up":
        both = {"down": both["up"], "up": both["down"]}
    for direction, stages in both.items():
        for stage in stages:
            lines += [f"[[path.{direction}]]", *stage, ""]
    return "\n".join([*lines, "[[flow]]", *_flow(candidate), ""])


def _data_stages(candidate: Candidate) -> list[list[str]]:
    path = candidate.path
    stages = []
    if path.loss > 0:
        stages.append(_loss(path))
    if candidate.trace is not None:
        link = [
            "# The rate that was delivered while the bottleneck was busy, over time.",
            'stage = "trace"',
            f"file = {_text(candidate.trace)}",
        ]
    elif path.capacity_mbps is not None:
        link = [
            f"# From {path.busy_s:.1f} s in which the bottleneck was always busy.",
            'stage = "link"',
            f"rate_mbps = {path.capacity_mbps:.4g}",
        ]
    else:
        link = [
            "# The highest rate that was delivered; the capacity itself is not known.",
            'stage = "link"',
            f"rate_mbps = {path.at_least_mbps:.4g}",
        ]
    stages.append([*link, *_queue(path)])
    half = path.base_rtt_ms / 2
    delay = [
        "# Half of the smallest round trip; the split between the directions is not known.",
        'stage = "delay"',
        f"delay_ms = {half:.5g}",
    ]
    if path.jitter_ms:
        delay += [f"jitter_ms = {path.jitter_ms:.3g}"]
    stages.append(delay)
    return stages


def _queue(path: FittedPath) -> list[str]:
    if path.queue_bytes is not None:
        return [
            f"# {path.overflowed} packets were lost behind those that waited longest.",
            f"queue_bytes = {max(_MTU, round(path.queue_bytes))}",
        ]
    return ["# The queue never overflowed, so its size is not known; here it has no limit."]


def _loss(path: FittedPath) -> list[str]:
    count = path.lost - path.overflowed
    if path.burst >= _BURST and count >= _SOME_LOSSES:
        back = 1 / path.burst
        return [
            f"# {count} packets were lost without a full queue, {path.burst:.1f} in a row.",
            'stage = "gilbert-elliott"',
            f"good_to_bad = {path.loss * back / (1 - path.loss):.4g}",
            f"bad_to_good = {back:.4g}",
        ]
    return [
        f"# {count} packets were lost without a full queue.",
        'stage = "loss"',
        f"probability = {path.loss:.4g}",
    ]


def _ack_stages(candidate: Candidate) -> list[list[str]]:
    path = candidate.path
    delay = ['stage = "delay"', f"delay_ms = {path.base_rtt_ms / 2:.5g}"]
    if path.batch_ms is None:
        return [delay]
    batch = [
        "# Acknowledgements arrive in batches: uplink access, DRX, or a device that joins them.",
        'stage = "batch"',
        f"interval_ms = {path.batch_ms:.4g}",
    ]
    return [delay, batch]


def _flow(candidate: Candidate) -> list[str]:
    ends = candidate.ends
    opened = "sender" if candidate.opened_by_sender else "receiver"
    lines = [
        'id = "transfer"',
        *_application(ends),
        f"direction = {_text(candidate.direction)}",
        f"opened_by = {_text(opened)}",
        f"profile = {_text(candidate.profile)}",
        f"congestion = {_text(candidate.congestion)}",
        f"mss_bytes = {ends.mss_bytes}",
    ]
    if ends.initial_window is not None:
        lines.append(f"initial_window_segments = {ends.initial_window}")
    if ends.window_bytes is not None:
        lines += [
            "# The receive window had no room for another segment most of the time.",
            f"receive_buffer_bytes = {ends.window_bytes}",
        ]
    elif ends.window_at_least_bytes > 0:
        lines += [f"receive_buffer_bytes = {ends.window_at_least_bytes}"]
    lines.append(f"options.header_bytes = {ends.header_bytes}")
    if ends.header_bytes < _WITH_TIMESTAMPS:
        lines.append("options.timestamps = false")
    return lines


def _application(ends: Endpoints) -> list[str]:
    if ends.writes:
        times, size = parts(ends.writes)
        return [
            'kind = "file"',
            f"size_bytes = {size}",
            "# The application paused in between; it writes an equal part at each of these times.",
            f"write_times_s = {_text(', '.join(f'{at:.4g}' for at in times))}",
        ]
    if ends.closed:
        return ['kind = "file"', f"size_bytes = {ends.size_bytes}"]
    return ['kind = "bulk"', f"duration_s = {ends.duration_s:.3f}"]


def write_trace(file: Path, path: FittedPath, duration_s: float, start_s: float) -> None:
    """Capacity over time as delivery opportunities of 1500 bytes, in Mahimahi's format."""
    times = np.array([at - start_s for at, _ in path.rates])
    rates = np.array([rate for _, rate in path.rates])
    steps = np.arange(0, max(duration_s, 1.0) * MS, _STEP_MS)
    mbps = np.interp((steps + _STEP_MS / 2) / MS, times, rates)
    sent = np.concatenate(([0.0], np.cumsum(mbps * _STEP_MS * BYTES_PER_MS)))
    edges = np.append(steps, steps[-1] + _STEP_MS)
    # A trace repeats from its end: of a fast one the beginning is enough.
    most = min(float(sent[-1]), _MOST_OPPORTUNITIES * _MTU)
    end = round(np.interp(most, sent, edges)) if most < sent[-1] else round(edges[-1])
    wanted = np.arange(_MTU, most, _MTU)
    at = np.interp(wanted, sent, edges)
    lines = [str(max(1, round(one))) for one in at] or [str(end)]
    if int(lines[-1]) < end:
        lines.append(str(end))
    file.write_text("\n".join(lines) + "\n")


def _text(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
