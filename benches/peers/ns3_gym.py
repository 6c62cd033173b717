# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures ns3-gym's time-based example RL-TCP over a link of 20 Mb/s; the agent holds a window.

Prints one line of JSON. The processor time is that of the agent while it steps, and of the
simulator's process, which includes its start. The example's sender stops 3 s before the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent / "build"
ACKED, SEGMENT = 9, 6
"""Places in the example's observation: segments acknowledged in the step, and bytes of one."""
NO_SSTHRESH = 0xFFFF_FFFF


def main() -> None:
    """Run one simulation and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="simulated seconds")
    parser.add_argument("--step_ms", type=float, default=50, help="time between two decisions")
    parser.add_argument("--window", type=int, default=80, help="segments")
    options = parser.parse_args()

    sys.path.insert(0, str(HERE / "ns3-gym/model/ns3gym"))
    from ns3gym.ns3env import Ns3Env

    port = _free_port()
    simulator = subprocess.Popen(
        [
            HERE / "ns3_gym",
            f"--openGymPort={port}",
            "--transport_prot=TcpRlTimeBased",
            f"--envTimeStep={options.step_ms / 1000}",
            f"--duration={options.seconds}",
            "--bottleneck_bandwidth=20Mbps",
            "--access_bandwidth=100Mbps",
            "--access_delay=5ms",
            "--mtu=1500",
        ],
    )
    with contextlib.redirect_stdout(sys.stderr):
        environment = Ns3Env(port=port, startSim=False)
    action = [NO_SSTHRESH, options.window * int(environment.reset()[SEGMENT])]
    began, wall = time.process_time(), time.monotonic()
    steps, acked, done = 0, 0, False
    while not done:
        seen, _, done, _ = environment.step(action)
        steps, acked = steps + 1, acked + int(seen[ACKED]) * int(seen[SEGMENT])
    agent_s, wall_s = time.process_time() - began, time.monotonic() - wall
    if simulator.wait():
        sys.exit(f"ns3_gym.py: the simulator ended with {simulator.returncode}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    simulator_s = used.ru_utime + used.ru_stime
    cpu_s = agent_s + simulator_s
    print(
        json.dumps(
            {
                "simulated_s": options.seconds,
                "steps": steps,
                "goodput_mbps": round(acked * 8 / options.seconds / 1e6, 2),
                "agent_cpu_s": round(agent_s, 3),
                "simulator_cpu_s": round(simulator_s, 3),
                "wall_s": round(wall_s, 3),
                "real_time_factor": round(options.seconds / cpu_s, 1),
                "steps_per_cpu_s": round(steps / cpu_s),
            }
        )
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
