"""Paths on which nothing but their rate holds a flow back: wires, 3G, LTE, NR, down or up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import airpath
from airpath import _core

from .draft import Draft, Pick, Table, stage

ALL = ("wire", "wire", "lte", "nr", "3g")
WIRE = ("wire",)
CELLULAR = ("lte", "nr")
RADIO = ("lte", "nr", "3g")
_EVEN = 0.9


@dataclass(frozen=True)
class Known:
    """What a run of the base has shown: the rate of all transfers, the shortest round trip."""

    rate_mbps: float
    rtt_ms: float

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product."""
        return self.rate_mbps * 1e6 / 8 * self.rtt_ms / 1e3


def base(pick: Pick, access: str, most_flows: int, up: bool | None) -> tuple[Draft, Known]:
    """Draw until the bottleneck is full, flows share it evenly and no round trip is very long."""
    while True:
        draft = _drawn(pick, access, most_flows, up)
        known = _known(draft, access)
        if known is not None:
            return draft, known


def simulated(draft: Draft, seed: int, **keys: Any) -> Any:
    """A run of it."""
    text = draft.text()
    return airpath.run(_core.parse(text, "planted", None, []), seed=seed, **keys)


def _known(draft: Draft, access: str) -> Known | None:
    summary = simulated(draft, 999).summary
    direction = "up" if draft.up else "down"
    busy = [
        one["utilisation"] or 0.0
        for one in summary["links"]
        if one["id"].startswith(direction)
        or (one["id"].startswith("radio.") and one["id"].endswith(direction))
    ]
    rtts = [one["rtt_ms"] for one in summary["flows"] if one["rtt_ms"]]
    if not rtts or not busy:
        return None
    shortest = min(one["min"] for one in rtts)
    longest = max(one["p95"] for one in rtts)
    full, late = {"wire": (0.85, 0.0), "3g": (0.45 if draft.up else 0.8, 250.0)}.get(
        access, (0.8, 50.0)
    )
    uneven = any(one["jain_index"] < _EVEN for one in summary["fairness"])
    if max(busy) < full or longest > 2.5 * shortest + late or uneven:
        return None
    rate = sum(one["goodput_mbps"] or 0.0 for one in summary["flows"] if one["kind"] == "bulk")
    return Known(rate, shortest)


def _drawn(pick: Pick, access: str, most_flows: int, up: bool | None) -> Draft:
    draft = Draft(seconds=pick.uniform(8, 12), up=pick.chance(0.3) if up is None else up)
    one_way = pick.log(6, 60) if access == "wire" else pick.uniform(5, 25)
    draft.there = [stage("delay", delay_ms=one_way)]
    draft.back = [stage("delay", delay_ms=one_way)]
    if access == "wire":
        link = stage("link", rate_mbps=pick.log(3, 25))
        if pick.chance(0.5):
            codel(link, max(5.0, 0.4 * one_way))
        else:
            bdp = link["rate_mbps"] * 1e6 / 8 * 2 * one_way / 1e3
            link["queue_bytes"] = round(max(15_000, bdp * pick.uniform(0.7, 1.0)))
        draft.there.insert(pick.randrange(2), link)
    else:
        _cell(pick, access, draft)
    control = pick.choice(["cubic", "cubic", "cubic", "reno", "bbr"])
    for _ in range(pick.randint(1, most_flows)):
        draft.flows.append({"kind": "bulk", "profile": "linux-6.18", "congestion": control})
    if pick.chance(0.35):
        draft.flows.append({"kind": "ping", "interval_ms": 100, "direction": "up"})
    return draft


def _cell(pick: Pick, access: str, draft: Draft) -> None:
    radio = draft.table("")
    if access == "3g":
        radio["preset"] = pick.choice(["umts-hspa", "umts-hspa-plus", "evdo-rev-a"])
    elif access == "lte":
        radio["preset"] = pick.choice(["lte-5", "lte-5", "lte-10", "lte-tdd-20"])
    else:
        radio["preset"] = pick.choice(["nr-fdd-20", "nr-n78"])
        cell = draft.table("cell")
        cell["bandwidth_mhz"] = pick.choice([5, 10] if radio["preset"] == "nr-fdd-20" else [10, 20])
        if radio["preset"] == "nr-n78":
            cell |= {"layers_down": 2, "layers_up": 1}
    if access != "3g":
        draft.table("channel")["sinr_db"] = pick.uniform(4, 14)
    radio["any_timer_value"] = True
    draft.table("rrc")["enabled"] = False
    for name in ("rlc", "rlc_up"):
        codel(draft.table(name), 60.0 if access == "3g" else 25.0)


def codel(queue: Table, target_ms: float) -> None:
    """The queue is managed."""
    queue |= {
        "aqm": "codel",
        "codel_target_ms": target_ms,
        "codel_interval_ms": max(100.0, 5 * target_ms),
    }


def plain_queue(draft: Draft, bytes_: float) -> None:
    """The bottleneck's queue is drop-tail, with this size in bytes."""
    queue = draft.buffer if draft.radio else draft.link
    for key in ("aqm", "codel_target_ms", "codel_interval_ms"):
        queue.pop(key, None)
    if draft.radio:
        queue["aqm"] = "drop-tail"
    queue["buffer_bytes" if draft.radio else "queue_bytes"] = round(max(1600, bytes_))
