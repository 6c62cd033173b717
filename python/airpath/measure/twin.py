"""The twin of a measurement: a scenario of the path that was found, and how well it matches."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

_MTU_BYTES = 1500
_SECONDS = 20


@dataclass(frozen=True)
class Path:
    """What was found of a direction."""

    direction: str
    steady_mbps: float | None
    """Of an unmodified transfer; None if there was none."""
    most_mbps: float
    """The highest steady rate of any treatment: the path carries at least that."""
    idle_ms: float
    """Least RTT of the idle path."""
    loaded_ms: float | None
    """Median RTT beside a transfer."""
    loss: float
    """Retransmitted share below the rate, where no queue overflows."""
    causes: Collection[str]
    """Causes that were named."""
    congestion: str | None = None
    """The sender's congestion control."""


@dataclass(frozen=True)
class Twin:
    """A scenario, and how its transfer compares with the measured one."""

    toml: str
    score: float | None
    """Agreement of rate and of loaded RTT, 1 for equal figures; null if it was not run."""
    not_in_it: list[str]
    """Named causes for which a path of stages has no place."""


def write(path: Path, server: str) -> tuple[str, list[str]]:
    """The scenario of one direction, and which named causes are not in it."""
    back = "up" if path.direction == "down" else "down"
    stages, flow, missing = _stages(path), _flow(path), sorted(set(path.causes) - _KNOWN)
    lines = [
        f"# The twin of a measurement against {server}.",
        *[f"# Not in it: {one}." for one in missing],
        f"title = {json.dumps(f'The path to {server}, as measured')}",
        "",
        "[run]",
        f"duration_s = {_SECONDS}",
        "",
    ]
    for stage in stages:
        lines += [f"[[path.{path.direction}]]", *stage, ""]
    lines += [f"[[path.{back}]]", *_delay(path), "", "[[flow]]", *flow, ""]
    return "\n".join(lines), missing


_CONTROLS = ("reno", "cubic", "bbr")
_KNOWN = {"random-loss", "policer", "bufferbloat", "receive-window", "send-buffer"}


def _stages(path: Path) -> list[list[str]]:
    if path.steady_mbps is None:
        return [_delay(path)]
    stages = []
    if "random-loss" in path.causes:
        stages.append(['stage = "loss"', f"probability = {max(1e-6, path.loss):.4g}"])
    if "policer" in path.causes:
        stages.append(
            [
                'stage = "policer"',
                f"rate_mbps = {path.most_mbps:.4g}",
                "# 10 ms of the rate; the burst size cannot be measured from losses.",
                f"burst_bytes = {max(3000, round(path.most_mbps * 1250))}",
                'excess = "drop"',
            ]
        )
    if "policer" in path.causes:
        return [*stages, _delay(path)]
    link = ['stage = "link"', f"rate_mbps = {path.most_mbps:.4g}"]
    if path.loaded_ms is not None and path.loaded_ms > path.idle_ms:
        waits = (path.loaded_ms - path.idle_ms) / 1e3
        link += [
            "# Twice the median queue during a transfer.",
            f"queue_bytes = {max(10 * _MTU_BYTES, round(2 * waits * path.most_mbps * 125_000))}",
        ]
    return [*stages, link, _delay(path)]


def _delay(path: Path) -> list[str]:
    return [
        "# Half of the smallest round trip; the split between the directions is not known.",
        'stage = "delay"',
        f"delay_ms = {path.idle_ms / 2:.4g}",
    ]


def _flow(path: Path) -> list[str]:
    if path.steady_mbps is None:
        return ['id = "probes"', 'kind = "ping"']
    lines = [
        'id = "transfer"',
        'kind = "bulk"',
        f'direction = "{path.direction}"',
        'profile = "linux-6.1"',
        *([f'congestion = "{path.congestion}"'] if path.congestion in _CONTROLS else []),
    ]
    window = path.steady_mbps * 125 * (path.loaded_ms or path.idle_ms)
    if "receive-window" in path.causes:
        lines.append(f"receive_buffer_bytes = {max(8192, round(window))}")
    if "send-buffer" in path.causes:
        lines.append(f"send_buffer_bytes = {max(8192, round(window))}")
    return lines


def run(path: Path, server: str) -> Twin:
    """Write the scenario and simulate it."""
    from airpath import scenario as scenarios
    from airpath.drivers.options import SimulationOptions
    from airpath.drivers.simulate import execute

    toml, missing = write(path, server)
    done = execute(scenarios.parse(toml, "twin"), SimulationOptions())
    if path.steady_mbps is None:
        return Twin(toml, None, missing)
    (flow,) = done.summary["flows"]
    pairs = [(path.steady_mbps, flow["steady_mbps"] or flow["goodput_mbps"] or 0.0)]
    if path.loaded_ms is not None and flow["rtt_ms"] is not None:
        pairs.append((path.loaded_ms, flow["rtt_ms"]["p50"]))
    agreements = [min(one) / max(one) for one in pairs if all(one)]
    score = sum(agreements) / len(agreements) if agreements else None
    return Twin(toml, score, missing)
