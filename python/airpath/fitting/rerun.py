"""A candidate, run and captured at the point of the real flow, and how similar the two are."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from airpath import _core
from airpath import scenario as scenarios
from airpath.documents import StreamReport
from airpath.fitting.observed import Observed
from airpath.readers.flows import ENDS, stream, tcp_flows

_LOSS_FLOOR = 0.002
"""Shares of loss that differ by less are alike."""
_RTT_FLOOR_MS = 1.0
FIGURES = ("goodput_mbps", "rtt_ms.p50", "rtt_ms.p95", "retransmitted")
WEIGHTS = {"goodput_mbps": 2.0, "rtt_ms.p50": 1.0, "rtt_ms.p95": 1.0, "retransmitted": 1.0}


class ScoreDocument(TypedDict):
    """A score in JSON."""

    total: float
    mean_of_seeds: float | None
    figures: dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Score:
    """The score of a re-run: 1 is the same as the capture."""

    total: float
    figures: dict[str, dict[str, float | None]]
    """Each figure: ``capture``, ``rerun``, ``agreement``."""
    mean: float | None = None
    """That of the mean over some seeds, where ``total`` is the best seed's."""

    def document(self) -> ScoreDocument:
        """For JSON."""
        return {"total": self.total, "mean_of_seeds": self.mean, "figures": self.figures}


def figures(data: StreamReport) -> dict[str, float | None]:
    """The figures by which a direction of a flow is compared, from its report."""
    rtt = data["rtt_timestamps_ms"] or data["rtt_ms"]
    packets = data["data_packets"]
    return {
        "goodput_mbps": data["goodput_mbps"],
        "rtt_ms.p50": rtt["p50"] if rtt else None,
        "rtt_ms.p95": rtt["p95"] if rtt else None,
        "retransmitted": data["retransmissions"]["segments"] / packets if packets else None,
    }


def rerun(
    text: str, directory: str | None, seen: Observed, direction: str, seeds: list[int], workers: int
) -> list[dict[str, float | None]]:
    """Run a scenario with some seeds; each one's figures at the capture's point."""
    loaded = scenarios.parse(text, "fitted.toml", directory)
    with ThreadPoolExecutor(max(1, min(workers, len(seeds)))) as pool:
        return list(pool.map(lambda seed: _captured(loaded, seed, seen, direction), seeds))


def mean(runs: list[dict[str, float | None]]) -> dict[str, float | None]:
    """The mean of each figure over runs."""
    means: dict[str, float | None] = {}
    for name in FIGURES:
        values = [value for run in runs if (value := run[name]) is not None]
        means[name] = sum(values) / len(values) if values else None
    return means


def _captured(
    loaded: _core.Scenario, seed: int, seen: Observed, direction: str
) -> dict[str, float | None]:
    with tempfile.TemporaryDirectory(prefix="airpath-fit-") as place:
        file = Path(place) / "rerun.pcapng"
        _core.simulate(loaded, seed, None, capture=file)
        report = _core.read_capture(file)
    # The server is the first interface; it sends what goes down.
    at_sender = seen.place != "receiver"
    interface = 0 if at_sender == (direction == "down") else 1
    flows = [one for one in tcp_flows(report) if one["interface"] == interface]
    streams = [stream(one, end) for one in flows for end, _ in ENDS]
    if not streams:
        return dict.fromkeys(FIGURES)
    return figures(max(streams, key=lambda stream: stream["data_bytes"]))


def compare(captured: dict[str, float | None], again: dict[str, float | None]) -> Score:
    """Agreement of each figure from 0 to 1, and their weighted mean."""
    told: dict[str, dict[str, float | None]] = {}
    total = weight = 0.0
    for name in FIGURES:
        agreement = _agreement(name, captured[name], again[name])
        told[name] = {"capture": captured[name], "rerun": again[name], "agreement": agreement}
        if agreement is not None:
            total, weight = total + WEIGHTS[name] * agreement, weight + WEIGHTS[name]
    return Score(total / weight if weight else 0.0, told)


def _agreement(name: str, captured: float | None, again: float | None) -> float | None:
    if captured is None:
        return None
    if again is None:
        return 0.0
    if name == "retransmitted":
        difference = abs(captured - again)
        if difference <= _LOSS_FLOOR:
            return 1.0
        return 1 - min(1.0, difference / max(captured, again))
    if name.startswith("rtt_ms") and abs(captured - again) <= _RTT_FLOOR_MS:
        return 1.0
    return min(captured, again) / max(captured, again) if captured > 0 and again > 0 else 0.0
