"""A capture beside the tool outputs of one test: whose flows it has, and the clocks' offsets.

An offset is a clock's time less the capture's. A ping's replies are known in the capture by their
numbers: each was printed after its reply had passed, and asked for before its request had. iperf3
names the ports of its connections, and its start in whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from airpath import _core
from airpath.documents import FlowReport
from airpath.readers.flows import ENDS, LEAST_BYTES, stream
from airpath.readers.iperf import IperfTest
from airpath.readers.ping import PingRun
from airpath.readers.recognise import Recognised

_LEAST_REPLIES = 5
_MOST_PACKETS = 200_000
_SLACK_MS = 20.0
"""By how much a printed line may come late, or early where a clock is slewed."""


@dataclass(frozen=True)
class Transfers:
    """TCP flows of a capture that were under way at the same time; seconds since 1970."""

    flows: tuple[int, ...]
    name: str
    start_s: float
    end_s: float
    goodput_mbps: float


class OffsetDocument(TypedDict):
    """An offset in JSON."""

    file: str
    capture: str
    offset_ms: float
    within_ms: float


@dataclass(frozen=True)
class Offset:
    """By how much the clock of a tool's machine is ahead of the capture's, within a bound."""

    tool: str
    capture: str
    offset_s: float
    within_s: float
    by: str

    def sentence(self) -> str:
        """What is to be said of it."""
        if self.within_s >= 0.1:
            low, high = self.offset_s - self.within_s, self.offset_s + self.within_s
            return (
                f"The clock of {self.tool} differs from that of {self.capture} by {low:+.2f} to "
                f"{high:+.2f} s, {self.by}."
            )
        return (
            f"The clock of {self.tool} differs from that of {self.capture} by "
            f"{1e3 * self.offset_s:+.4g} ms, within {1e3 * self.within_s:.3g} ms, {self.by}."
        )

    def document(self) -> OffsetDocument:
        """As JSON has it."""
        return {
            "file": self.tool,
            "capture": self.capture,
            "offset_ms": 1e3 * self.offset_s,
            "within_ms": 1e3 * self.within_s,
        }


def captures(files: Sequence[Recognised]) -> list[Recognised]:
    """The captures that were read."""
    return [one for one in files if one.capture]


def transfers(file: Recognised) -> list[Transfers]:
    """The transfers of a capture; those that overlap are one."""
    found: list[Transfers] = []
    for flow in sorted(unique(file), key=lambda one: one["start_s"]):
        moved = max(stream(flow, end)["acked_bytes"] for end, _ in ENDS)
        if moved < LEAST_BYTES:
            continue
        start = file.begin_s + flow["start_s"]
        end = start + flow["duration_s"]
        flows: tuple[int, ...] = (flow["id"],)
        name = f"{file.name}, flow {flow['id']}"
        if found and start < found[-1].end_s:
            before = found.pop()
            moved += round(before.goodput_mbps * 125e3 * (before.end_s - before.start_s))
            start, end = before.start_s, max(end, before.end_s)
            flows = (*before.flows, *flows)
            name = f"{file.name}, {len(flows)} flows"
        found.append(Transfers(flows, name, start, end, 8e-6 * moved / max(1e-3, end - start)))
    return found


def unique(file: Recognised) -> Iterator[FlowReport]:
    """Flows of TCP; of a packet's several points the first."""
    told: set[int] = set()
    for flow in file.report["flows"]:
        if flow["tcp"] and not told.intersection(flow["same_as"]):
            yield flow
        told.add(flow["id"])


def flows_of_iperf3(test: IperfTest, file: Recognised) -> list[FlowReport]:
    """The flows of a capture that iperf3's connections are, by their ports."""
    ports = {frozenset((one.local_port, one.remote_port)) for one in test.connections}
    return [
        flow
        for flow in unique(file)
        if frozenset((flow["client_port"], flow["server_port"])) in ports
    ]


def offset_of_iperf3(
    name: str, test: IperfTest, file: Recognised, flows: Sequence[FlowReport]
) -> Offset | None:
    """iperf3 takes its time after the control connection is there, and before the streams are."""
    start = test.start_time_s
    if start is None or not flows:
        return None
    epoch = file.begin_s
    server = {(flow["server"], flow["server_port"]) for flow in flows}
    opened = [
        one["start_s"] for one in unique(file) if (one["server"], one["server_port"]) in server
    ]
    first = min(flow["start_s"] for flow in flows)
    before = [at for at in opened if at < first]
    # Without the control connection, five seconds before the streams at the most.
    began = max(before) if before else first - 5
    low, high = start - (epoch + first), start + 1 - (epoch + began)
    by = "judging by its start in whole seconds and the start of its connections"
    return Offset(name, file.name, (low + high) / 2, (high - low) / 2, by)


def offset_of_ping(name: str, run: PingRun, file: Recognised) -> Offset | None:
    """From replies that the capture has too."""
    printed = {
        one.seq & 0xFFFF: (one.time_s, one.rtt_ms / 1e3)
        for one in run.replies
        if one.time_s is not None and not one.duplicate
    }
    if len(printed) < _LEAST_REPLIES or not Path(file.name).is_file():
        return None
    best: Offset | None = None
    for flow in file.report["flows"]:
        if flow["protocol"] != "icmp" or run.address not in ("", flow["client"], flow["server"]):
            continue
        found = _by_number(printed, file, flow["id"])
        if found is None:
            continue
        low, high, count = found
        by = f"judging by {count} replies that are in both"
        offset = Offset(name, file.name, (low + high) / 2, max(0.0, high - low) / 2, by)
        if best is None or offset.within_s < best.within_s:
            best = offset
    return best


def _by_number(
    printed: dict[int, tuple[float, float]], file: Recognised, flow: int
) -> tuple[float, float, int] | None:
    """The least and the largest offset that all replies allow, and how many there are."""
    (packets,) = _core.read_flows(Path(file.name), [(flow, None)], _MOST_PACKETS)
    columns = [
        np.frombuffer(packets[key], dtype="<f8") for key in ("time_ns", "from_client", "echo")
    ]
    epoch = file.begin_s
    asked: dict[int, float] = {}
    low, high = [], []
    for time_ns, is_request, number in zip(*(one.tolist() for one in columns), strict=True):
        if np.isnan(number):
            continue
        at, key = epoch + time_ns / 1e9, int(number)
        if is_request:
            asked[key] = at
        elif key in asked and key in printed:
            when, trip = printed[key]
            low.append(when - trip - asked.pop(key))
            high.append(when - at)
    if len(low) < _LEAST_REPLIES:
        return None
    # Lines that were printed late, and a clock that runs at another rate, are no contradiction.
    least, most = float(np.quantile(low, 0.9)), float(np.quantile(high, 0.1))
    if most - least < -_SLACK_MS / 1e3:
        return None
    return min(least, most), max(least, most), len(low)
