"""Measures how fast environments of ``airpath.gym`` run: an LTE cell of about 20 Mb/s, and a wire.

An agent holds its window and decides once per RTT. The shortest of several rounds counts: simulated
time per processor time, steps per second, and what a step costs beyond the same run without an
agent. The difference is the environment's own cost: transfer in both directions, observation and
reward. Of ns3-gym the transfer alone was published, in cycles (ns3-ai,
docs/benchmarking/gym-interface-data.m, the mean of six runs of RL-TCP); ``benches/peers`` measures
its example RL-TCP over the same wire.
Exit code 1 if an environment is less than 100 times as fast as real time.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import gymnasium
import numpy as np
import typer

import airpath
import airpath.gym
from airpath import scenario as scenarios
from airpath_dev.harness import FINE, WRONG, say, table

ENDS = """
[run]
duration_s = 60

[[path.down]]
stage = "delay"
delay_ms = 10

[[path.up]]
stage = "delay"
delay_ms = 10

[[flow]]
kind = "bulk"
profile = "linux-6.18"
"""
LTE = """
[radio]
preset = "lte-20"

[[radio.ue]]

[radio.ue.channel]
sinr_db = 4
"""
WIRE = """
[[path.down]]
stage = "link"
rate_mbps = 20
queue_packets = 66
"""
"""The bottleneck of ns3-gym's RL-TCP as ``benches/peers/ns3_gym.py`` sets it."""
SECONDS = 60
WINDOW = 80
"""Segments: more than the cell's bandwidth-delay product, so the cell is never idle."""
AIM = 100
REAL_TIME = "simulated time per processor time"
NS3_GYM_CYCLES = (117_017, 127_148)
"""From C++ to Python and back, for one step."""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often each is measured.")] = 7,
) -> int:
    """Measure steps of environments, and runs without an agent."""
    paths = {"LTE": LTE, "wire": WIRE}
    columns = [_measured(name, text, rounds) for name, text in paths.items()]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    rows.append(
        ["ns3-gym: transfer per step, published", f"{sum(NS3_GYM_CYCLES):,} cycles", ""],
    )
    print(table(["", *(f"{name}:" for name in paths)], rows, padded=True))
    if min(float(column[REAL_TIME]) for column in columns) < AIM:
        say(f"slow: less than {AIM} times real time")
        return WRONG
    return FINE


def _measured(name: str, path: str, rounds: int) -> dict[str, str]:
    scenario = scenarios.parse(ENDS + path, name)
    fixed = {"flow.0.congestion": "fixed", "flow.0.fixed_window_segments": WINDOW}
    windowed = scenarios.parse(ENDS + path, name, sets=fixed)
    made = gymnasium.make(airpath.gym.ID, scenario=scenario, disable_env_checker=True)
    steps = _steps(made)
    with_agent, alone = [], []
    for _ in range(rounds):
        with_agent.append(_processor_s(lambda: _steps(made)))
        alone.append(_processor_s(lambda: airpath.run(windowed)))
    goodput = airpath.run(windowed).flows["goodput_mbps"][0]
    least, without = min(with_agent), min(alone)
    beyond_us = (least - without) / steps * 1e6
    mhz = _mhz()
    return {
        "goodput of the run without an agent": f"{goodput:.1f} Mb/s",
        REAL_TIME: f"{SECONDS / least:.0f}",
        "the same without an agent": f"{SECONDS / without:.0f}",
        "steps per second": f"{steps / least:,.0f}",
        "per step beyond the run without an agent": f"{beyond_us:.1f} µs",
        "in cycles": f"{beyond_us * mhz:,.0f}" if mhz else "",
    }


def _steps(made: gymnasium.Env[np.ndarray, np.ndarray]) -> int:
    """Run an episode: cwnd rises to the window, and stays there. Returns the number of steps."""
    _, info = made.reset(seed=1)
    steps, ended = 0, False
    action = np.zeros(1, dtype=np.float32)
    while not ended:
        action[0] = min(max(math.log2(WINDOW / info["cwnd_segments"]), -1.0), 1.0)
        *_, terminated, truncated, info = made.step(action)
        steps, ended = steps + 1, terminated or truncated
    return steps


def _processor_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _mhz() -> float | None:
    """Clock rate of the processor, if the system tells."""
    found = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return max(map(float, found), default=None)
