"""Random scenarios: what `make twin-random` draws, and how often.

The weights below were fixed before the first hundred were run, and do not change after them. A seed
and this file give a scenario; nothing else goes into it.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

PATHS = {"wire": 50, "lte": 20, "nr-fdd": 10, "nr-tdd": 10, "hspa": 10}
"""What the path is, in percent."""
LTE = ("lte-5", "lte-10", "lte-20")
RATE_MBPS = (2.0, 150.0)
"""Of a wire, drawn evenly by its logarithm."""
ONE_WAY_MS = {"wire": (2.0, 80.0), "radio": (2.0, 30.0)}
"""Delay of the wired part in each direction, evenly by its logarithm."""
QUEUE_BDP = (0.5, 4.0)
"""Queue of a wire in bandwidth-delay products, evenly by its logarithm."""
UP_SHARE = (0.1, 1.0)
"""Rate of a wire's uplink over that of its downlink."""
SINR_DB = {"lte": (2.0, 24.0), "nr-fdd": (2.0, 24.0), "nr-tdd": (-2.0, 6.0), "hspa": (0.0, 15.0)}
"""NR TDD has 100 MHz: better channels are beyond what a machine of two processors does in time."""
TWO_UES = 0.4
"""Share of the radio paths."""
FLOWS = {1: 50, 2: 30, 3: 20}
UPLOAD = 0.35
"""Share of the flows."""
CONTROLS = {"cubic": 50, "bbr": 30, "reno": 20}
"""Of each flow, independently: several flows are mixed as they come."""
FILE = 0.3
"""Share of the flows that send a file, its size drawn evenly by its logarithm."""
FILE_BYTES = (200e3, 20e6)
LOSS = 0.15
"""Share of the scenarios with random loss, in each direction."""
LOSS_PROBABILITY = (0.0003, 0.01)
PING = 0.3
DURATION_S = (8.0, 14.0)
LATENESS_MS = {"nr-tdd": 1.0}
"""`emulation.lateness_bound_ms` where bursts of a whole slot take the machine longer."""


@dataclass(frozen=True)
class Drawn:
    """A scenario that was drawn."""

    seed: int
    shape: str
    """What it is, in words."""
    text: str
    """TOML."""


def draw(seed: int) -> Drawn:
    """Draw the scenario of a seed."""
    random_ = random.Random(f"airpath twin-random {seed}")
    kind = _one(random_, PATHS)
    duration = round(random_.uniform(*DURATION_S), 1)
    lines = [f'title = "twin-random {seed}"', "[run]", f"duration_s = {duration}", f"seed = {seed}"]
    if kind in LATENESS_MS:
        lines += ["[emulation]", f"lateness_bound_ms = {LATENESS_MS[kind]}"]
    path, words, ues = (_wire if kind == "wire" else _radio)(random_, kind)
    lines += path
    count = _one(random_, FLOWS)
    flows = [_flow(random_, f"flow-{number}", duration, ues) for number in range(count)]
    for flow, said in flows:
        lines += flow
        words.append(said)
    if random_.random() < PING:
        lines += ["[[flow]]", 'id = "ping"', 'kind = "ping"', "interval_ms = 100"]
        lines += [f'ue = "{random_.choice(ues)}"'] if ues else []
        words.append("pings")
    return Drawn(seed, "; ".join(words), "\n".join(lines) + "\n")


def _wire(random_: random.Random, _: str) -> tuple[list[str], list[str], list[str]]:
    rate = _log(random_, *RATE_MBPS)
    delay = _log(random_, *ONE_WAY_MS["wire"])
    share = _log(random_, *UP_SHARE)
    queue = _log(random_, *QUEUE_BDP)
    lines = []
    for direction, here in (("down", rate), ("up", rate * share)):
        bdp_packets = here * 1e6 / 8 * 2 * delay / 1e3 / 1500
        packets = max(10, round(queue * bdp_packets))
        lines += [f"[[path.{direction}]]", 'stage = "link"', f"rate_mbps = {here:.2f}"]
        lines += [f"queue_packets = {packets}"]
        lines += _loss(random_, direction)
        lines += [f"[[path.{direction}]]", 'stage = "delay"', f"delay_ms = {delay:.2f}"]
    said = [f"wire {rate:.1f}/{rate * share:.1f} Mb/s, {2 * delay:.0f} ms, queue {queue:.1f} BDP"]
    return lines, said + _said_loss(lines), []


def _radio(random_: random.Random, kind: str) -> tuple[list[str], list[str], list[str]]:
    preset = {
        "lte": random_.choice(LTE),
        "nr-fdd": "nr-fdd-20",
        "nr-tdd": "nr-n78",
        "hspa": "umts-hspa",
    }[kind]
    delay = _log(random_, *ONE_WAY_MS["radio"])
    lines = []
    for direction in ("down", "up"):
        lines += _loss(random_, direction)
        lines += [f"[[path.{direction}]]", 'stage = "delay"', f"delay_ms = {delay:.2f}"]
    said = [f"{preset}, {delay:.0f} ms each way", *_said_loss(lines)]
    ues = ["a", "b"] if random_.random() < TWO_UES else ["a"]
    lines += ["[radio]", f'preset = "{preset}"']
    for ue in ues:
        sinr = random_.uniform(*SINR_DB[kind])
        lines += ["[[radio.ue]]", f'name = "{ue}"', "[radio.ue.channel]", f"sinr_db = {sinr:.1f}"]
        said.append(f"UE {ue} at {sinr:.0f} dB")
    return lines, said, ues


def _flow(
    random_: random.Random, name: str, duration: float, ues: list[str]
) -> tuple[list[str], str]:
    control = _one(random_, CONTROLS)
    direction = "up" if random_.random() < UPLOAD else "down"
    start = round(random_.uniform(0, duration / 4), 2) if name != "flow-0" else 0.0
    lines = ["[[flow]]", f'id = "{name}"']
    lines += [f'congestion = "{control}"', f'direction = "{direction}"']
    said = f"{control} {direction}"
    if random_.random() < FILE:
        size = round(_log(random_, *FILE_BYTES))
        lines += ['kind = "file"', f"size_bytes = {size}"]
        said += f", {size / 1e6:.1f} MB"
    else:
        lines += ['kind = "bulk"']
    lines += [f"start_s = {start}"] if start else []
    if ues:
        ue = random_.choice(ues)
        lines += [f'ue = "{ue}"']
        said += f", UE {ue}" if len(ues) > 1 else ""
    return lines, said


def _loss(random_: random.Random, direction: str) -> list[str]:
    if random_.random() >= LOSS:
        return []
    share = _log(random_, *LOSS_PROBABILITY)
    return [f"[[path.{direction}]]", 'stage = "loss"', f"probability = {share:.5f}"]


def _said_loss(lines: list[str]) -> list[str]:
    shares = [float(line.split(" = ")[1]) for line in lines if line.startswith("probability")]
    return [f"loss {' and '.join(f'{share:.2%}' for share in shares)}"] if shares else []


def _one(random_: random.Random, weights: dict[T, int]) -> T:
    return random_.choices(list(weights), list(weights.values()))[0]


def _log(random_: random.Random, low: float, high: float) -> float:
    return math.exp(random_.uniform(math.log(low), math.log(high)))
