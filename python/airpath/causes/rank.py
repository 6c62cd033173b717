"""Ranked causes of a capture: the flows of a file are read again, and each rule is applied."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TypedDict, cast

from airpath import _core
from airpath.causes import probes, transfers
from airpath.causes.group import Group
from airpath.causes.suspect import Suspect, SuspectDocument
from airpath.causes.traits import Transfer
from airpath.diagnose.capture import advice_on_length
from airpath.documents import CaptureReport, FlowReport, Packets, Segments
from airpath.fitting.observed import arrays
from airpath.readers.flows import ENDS, End, main_sender, stream, total_bytes, volume

_MOST_FLOWS = 8
"""Flows of each kind that are read again: those with the most bytes."""
_MOST_PACKETS = 1_000_000
"""Of all flows together; longer ones are judged by their beginning."""
LEAST_SEGMENTS = 20
_LEAST_SECONDS = 3.0
_MOST_OF_A_TEST = 4
"""Connections of a test; a web page has more."""
_Chosen = tuple[FlowReport, End | None]
"""A flow to read again: the segments from one end for TCP, all packets for other protocols."""


class BlameDocument(TypedDict):
    """The causes that a capture blames, in JSON."""

    verdict: str
    because: str
    causes: list[SuspectDocument]


@dataclass(frozen=True)
class Blame:
    """The causes that a capture blames.

    ``suspects`` are ordered by cost. ``verdict`` is ``named``, ``bound`` (only the path's capacity
    limits the transfers) or ``inconclusive``; ``because`` says why.
    """

    verdict: str
    because: str
    suspects: list[Suspect]

    def document(self) -> BlameDocument:
        """For JSON."""
        return {
            "verdict": self.verdict,
            "because": self.because,
            "causes": [one.document() for one in self.suspects],
        }


def blame(file: Path, report: CaptureReport) -> Blame:
    """Rank what limits the flows of a capture, given the report from ``read_capture``.

    Raises ``OSError`` and ``ValueError`` as ``read_capture`` does.
    """
    flows = _chosen(report)
    segments = read(file, flows)
    groups = groups_of(file, report, flows, segments)
    loads = [(one.begin_ms, one.end_ms) for one in groups]
    found: list[Suspect] = []
    for group in groups:
        found += transfers.suspects(group)
    crossed = _crossed(report, groups)
    # What datagrams take later is not there for the transfers, which had it at first.
    found = crossed + [one for one in found if not crossed or one.cause != "shaper"]
    for (flow, end), one in zip(flows, segments, strict=True):
        if end is not None:
            continue
        packets = cast("Packets", one)
        if flow["protocol"] == "icmp":
            found += probes.pings(flow, packets, loads)
        elif flow["protocol"] == "udp":
            found += probes.datagrams(flow, packets)
    for flow in _unique(report, "tcp"):
        remains = report["duration_s"] - flow["start_s"] - flow["duration_s"]
        found += probes.connections(flow, others_deliver=bool(groups), remains_s=remains)
    ranked = sorted(_merged(found), key=lambda one: -one.cost)
    ranked = [replace(one, confidence=_confidence(one)) for one in ranked]
    if ranked:
        return Blame("named", "", ranked)
    return _nothing(groups, report)


def read_groups(file: Path, report: CaptureReport) -> list[Group]:
    """The groups of transfers of a capture; raises as ``blame`` does."""
    flows = transfers_of(report)
    return groups_of(file, report, flows, read(file, flows))


def transfers_of(report: CaptureReport) -> list[_Chosen]:
    """The transfers with the most bytes."""
    return [(flow, end) for flow, end in _chosen(report) if end is not None]


def read(file: Path, flows: Sequence[_Chosen]) -> list[Segments | Packets]:
    """The packets of flows."""
    wanted = [(flow["id"], None if end is None else end == "client") for flow, end in flows]
    most = _MOST_PACKETS // max(1, len(wanted))
    return _core.read_flows(file, wanted, most) if wanted else []


def _unique(report: CaptureReport, protocol: str) -> list[FlowReport]:
    """Flows of a protocol, the largest first; with several capture points, the first."""
    flows = [one for one in report["flows"] if one["protocol"] == protocol]
    flows.sort(key=lambda one: -total_bytes(one))
    told: set[int] = set()
    found = []
    for flow in flows:
        if not told.intersection(flow["same_as"]):
            found.append(flow)
        told.add(flow["id"])
    return found


def _chosen(report: CaptureReport) -> list[_Chosen]:
    """Return the flows with the most bytes for each protocol."""
    chosen: list[_Chosen] = []
    for flow in _unique(report, "tcp")[:_MOST_FLOWS]:
        end = main_sender(flow)
        both = flow["from_client"]["packets"] and flow["from_server"]["packets"]
        if both and stream(flow, end)["data_packets"] >= LEAST_SEGMENTS:
            chosen.append((flow, end))
    for protocol in ("icmp", "udp"):
        for flow in _unique(report, protocol)[:_MOST_FLOWS]:
            chosen.append((flow, None))
    return chosen


def groups_of(
    file: Path,
    report: CaptureReport,
    flows: Sequence[_Chosen],
    packets: Sequence[Segments | Packets],
) -> list[Group]:
    """Transfers between the same hosts in the same direction, at the same point."""
    found: dict[tuple[int, str, str, str], list[Transfer]] = {}
    for (flow, end), segments in zip(flows, packets, strict=True):
        if end is None:
            continue
        seen = arrays(str(file), report, flow, end, cast("Segments", segments))
        hosts = (flow["client"], flow["server"])
        if end == "server":
            hosts = hosts[::-1]
        key = (flow["interface"], flow["tunnel"], *hosts)
        transfer = Transfer(seen)
        # Where times of a file contradict each other nothing may be left to judge.
        if len(seen.sent) >= LEAST_SEGMENTS and len(transfer.arrivals[0]):
            found.setdefault(key, []).append(transfer)
    most = sum(one["tcp"] is not None for one in report["flows"]) <= _MOST_OF_A_TEST
    return [Group(one, is_alone=most and len(found) == 1) for one in found.values()]


def _crossed(report: CaptureReport, groups: list[Group]) -> list[Suspect]:
    """Streams of datagrams concurrent with a group of transfers, in the same direction."""
    found = []
    for group in groups:
        ours = sum(one.wire_bytes for one in group.transfers)
        flow = group.main.seen.flow
        ends = {flow["client"], flow["server"]}
        sender = flow[group.main.seen.sender]
        beside = [
            (one, volume(one, end)["bytes"])
            for one in _unique(report, "udp")
            for end, _ in ENDS
            if {one["client"], one["server"]} == ends and one[end] == sender
        ]
        theirs = sum(count for _, count in beside)
        share = theirs / max(1, theirs + ours)
        if share >= 0.08:
            found.append(
                Suspect(
                    "cross-traffic",
                    max(0.6, share),
                    f"Concurrent datagrams are {share:.0%} of the bytes in the same direction.",
                    tuple(one["id"] for one, count in beside if count),
                    advice="Measure without them, or give each flow a queue of its own.",
                )
            )
    return found


def _merged(found: list[Suspect]) -> list[Suspect]:
    """One suspect for each cause or group of causes: the one that costs most."""
    best: dict[tuple[str, ...], Suspect] = {}
    for one in found:
        if one.causes not in best or best[one.causes].cost < one.cost:
            best[one.causes] = one
    return list(best.values())


def _nothing(groups: list[Group], report: CaptureReport) -> Blame:
    if not groups:
        return Blame(
            "inconclusive",
            "No TCP transfer has enough data, and no ping tells more. Capture a bulk transfer of "
            f"10 s at its sender (iperf3 -t 10, {advice_on_length(report)}).",
            [],
        )
    group = max(groups, key=lambda one: one.rate_mbps * one.seconds)
    if not any(one.has_backlog for one in group.transfers):
        return Blame(
            "inconclusive",
            "For most of the time the application had nothing to send: the path did not hold the "
            "transfers back, and the capture does not show how much it can carry.",
            [],
        )
    if group.busy >= 0.75 and group.seconds >= _LEAST_SECONDS:
        return Blame(
            "bound",
            f"The path carried {group.rate_mbps:.4g} Mb/s, {group.busy:.0%} of the highest rate "
            "seen, and packets waited no longer than in a queue of one BDP: the path's capacity "
            "limits the transfers.",
            [],
        )
    where = "" if group.at_sender else " at the sender, where the bytes in flight are visible"
    return Blame(
        "inconclusive",
        f"The transfers used {group.busy:.0%} of the highest rate seen, over "
        f"{group.seconds:.1f} s. Capture a longer transfer{where}, together with a ping.",
        [],
    )


def _confidence(suspect: Suspect) -> float | None:
    """How often such a suspect, ranked first, was right on planted cases (Laplace's rule)."""
    counts = _counts().get(suspect.causes[0])
    if counts is None:
        return None
    return round((counts["right"] + 1) / (counts["named"] + 2), 2)


@functools.cache
def _counts() -> dict[str, dict[str, int]]:
    text = resources.files("airpath.causes").joinpath("confidence.json").read_text()
    counts: dict[str, dict[str, int]] = json.loads(text)["causes"]
    return counts
