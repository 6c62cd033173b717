"""Draws truths: a path, two ends, a point of capture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Truth:
    """What was drawn. Lengths are bytes, the loss is a share."""

    number: int
    text: str
    base_rtt_ms: float
    capacity_mbps: float
    queue_bytes: int
    loss: float
    point: str
    """``server`` or ``ue``: where it is captured."""
    words: str


def draw(seed: int, number: int, *, emulated: bool = False) -> Truth:
    """A truth; the same one for the same seed and number."""
    pick = Random(f"{seed} {number} {emulated}")
    most = 30 if emulated else 60
    rate = math.exp(pick.uniform(math.log(2), math.log(most)))
    base = math.exp(pick.uniform(math.log(15), math.log(180)))
    product = rate * base / 8 * 1000
    queue = max(30_000, round(product * pick.choice([0.5, 1, 2, 4])))
    loss = pick.choice([0, 0, 0.001, 0.005, 0.02])
    window = pick.choice([None, None, None, 0.6])
    batch = pick.choice([None, None, None, 5.0, 10.0])
    control = pick.choice(["cubic", "cubic", "reno", "bbr"])
    if emulated:
        # What every kernel has, and its own receive buffer.
        control, window = pick.choice(["cubic", "reno"]), None
    profile = "linux-6.1" if emulated else pick.choice(["rfc", "linux-6.1", "linux-5.4"])
    direction = pick.choice(["down", "down", "up"])
    sender = {"down": "server", "up": "ue"}[direction]
    receiver = {"down": "ue", "up": "server"}[direction]
    point = pick.choice([sender, sender, receiver])
    seconds = 20 if emulated else 30
    stages = f"""
[[path.{direction}]]
stage = "link"
rate_mbps = {rate:.3f}
queue_bytes = {queue}
"""
    if loss:
        stages += f"""
[[path.{direction}]]
stage = "loss"
probability = {loss}
"""
    for each in ("down", "up"):
        stages += f"""
[[path.{each}]]
stage = "delay"
delay_ms = {base / 2:.3f}
"""
    if batch:
        stages += f"""
[[path.{"up" if direction == "down" else "down"}]]
stage = "batch"
interval_ms = {batch}
"""
    flow = f"""
[[flow]]
id = "transfer"
kind = "bulk"
duration_s = {seconds}
direction = "{direction}"
profile = "{profile}"
congestion = "{control}"
"""
    if window:
        flow += f"receive_buffer_bytes = {max(20_000, round(window * product))}\n"
    text = f"[run]\nduration_s = {seconds + 1}\nseed = {number + 1}\n{stages}{flow}"
    words = (
        f"{direction}, {control}, {profile}"
        + (f", loss {loss:.1%}" if loss else "")
        + (", window" if window else "")
        + (f", batches {batch:g} ms" if batch else "")
        + f", at the {point}"
    )
    return Truth(number, text, base, rate, queue, loss, point, words)
