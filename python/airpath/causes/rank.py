"""Ranked causes of a capture: its flows are read again, and the learned model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, cast

from airpath import _core
from airpath.causes import probes
from airpath.causes.describe import describe, held_back, lasted
from airpath.causes.features import Features, features
from airpath.causes.group import Group
from airpath.causes.model import LIKELIER_THAN_NOT, Answer, answer, packaged
from airpath.causes.phrases import evidence
from airpath.causes.seen import seen
from airpath.causes.suspect import GROUPS, Suspect, SuspectDocument, in_words
from airpath.causes.traits import Transfer
from airpath.diagnose.capture import advice_on_length
from airpath.documents import CaptureReport, FlowReport, Packets, Segments
from airpath.fitting.observed import arrays
from airpath.readers.flows import LEAST_BYTES, End, main_sender, stream, total_bytes

_MOST_FLOWS = 8
"""Flows of each kind that are read again: those with the most bytes."""
_MOST_PACKETS = 1_000_000
"""Of all flows together; longer ones are judged by their beginning."""
MODEL = "causes.npz"
"""The learned model of what captures show (`make causes`)."""
MAIN = 0.1
"""Of the bytes of the largest group: smaller ones are beside it, and nothing is said of them."""
WRONG_BLAME = 5.0
"""What blaming a healthy path costs, in right answers: naming a cause needs odds of five to one.

Whoever believes in a cause that is not there works on it in vain; who reads that it is unknown
captures once more.
"""
_SILENT = ("handover", "pdcp-gap", "radio-link-failure", "stalling-host")
"""Causes of silences. Where these are seen between two points, they are not inferred elsewhere."""
OF_SENDERS = "application-limited"
"""The cause of senders that have nothing to send."""
_OF_BUFFERS = "send-buffer"
_WINDOWS = (_OF_BUFFERS, "receive-window")
"""Causes that look the same where the scale of the receive window is unknown."""
_TOO_SHORT = "test-too-short"
OF_THE_TEST = (OF_SENDERS, _TOO_SHORT)
"""Naming these blames neither the path nor a host: whoever believes it wrongly tests once more."""
_LITTLE = 1 / 7
"""What is seen but costs less than inferred causes do is named after them."""
OF_DELAY = ("bufferbloat", "drx")
"""What these cost is seen in round trips, too."""
LEAST_SEGMENTS = 20
"""Segments with data, two initial windows (RFC 6928), below which a flow is no transfer."""
_SHORTEST_TEST_S = 1.0
"""Definition: iperf3's shortest test. A transfer that is shorter was no test."""
_LEAST_SECONDS = 3.0
"""A transfer that is shorter may be slow start only."""
_BUSY = 0.75
"""A path whose best rate was used by so much carried what it can."""
_MOST_LIKELY = 3
"""Bound: causes that are listed where none is named."""
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

    ``suspects`` are ordered by probability. ``verdict`` is ``named``, ``bound`` (only the path's
    capacity limits the transfers), ``unknown`` (something else does) or ``inconclusive``;
    ``because`` says why.
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


def blame(file: Path, report: CaptureReport, between: Sequence[Suspect] = ()) -> Blame:
    """Rank what limits the flows of a capture, given the report from ``read_capture``.

    ``between``: what is seen between two points of the capture. What it explains is not inferred.
    Raises ``OSError`` and ``ValueError`` as ``read_capture`` does.
    """
    flows = _chosen(report)
    packets = read(file, flows)
    others = [
        (flow, cast("Packets", one))
        for (flow, end), one in zip(flows, packets, strict=True)
        if end is None
    ]
    groups = groups_of(file, report, flows, packets)
    loads = [(one.begin_ms, one.end_ms) for one in groups]
    found = list(between)
    leaning: list[tuple[str, float]] = []
    sizes = [sum(each.wire_bytes for each in one.transfers) for one in groups]
    for group, size in zip(groups, sizes, strict=True):
        if size < MAIN * max(sizes):
            continue
        named, unsure = inferred(group, report, is_transfer=size >= LEAST_BYTES)
        found += [one for one in named if not (between and one.cause in _SILENT)]
        leaning += unsure
    for flow, one in others:
        if flow["protocol"] == "icmp":
            found += probes.pings(flow, one, loads)
        elif flow["protocol"] == "udp":
            found += probes.datagrams(flow, one, loads)
    silent_ms = max((gap.length_ms for one in groups for gap in one.gaps), default=0.0)
    for flow in _unique(report, "tcp"):
        remains = report["duration_s"] - flow["start_s"] - flow["duration_s"]
        found += probes.connections(
            flow, others_deliver=bool(groups), remains_s=remains, silent_ms=silent_ms
        )
    ranked = sorted(_merged(found), key=_rank)
    if ranked:
        return Blame("named", "", ranked)
    if leaning:
        return Blame("unknown", _unknown(leaning), [])
    return _nothing(groups, report)


def _rank(suspect: Suspect) -> tuple[bool, float, float]:
    """The surest first; what a ping or an ICMP error shows is seen, not inferred."""
    sure, cost = suspect.confidence, suspect.cost
    is_little = sure is None and cost is not None and cost < _LITTLE
    return is_little, -(sure or 1.0), -(cost or 0.0)


def inferred(
    group: Group, report: CaptureReport, *, is_transfer: bool
) -> tuple[list[Suspect], list[tuple[str, float]]]:
    """What costs a group a seventh, by probability: `airpath.causes.model.answer`.

    If something probably does, but no cause is sure enough to be named, also the probabilities of
    all causes. Of what is no transfer, only what is seen.
    """
    found = features(group, report)
    sure = list(seen(group, found))
    if sure or not is_transfer:
        return sure, []
    every = packaged(MODEL).probabilities(found)
    likely = best(every)
    causes, leaning = likely.causes, likely.leaning
    if not any(one.has_backlog for one in group.transfers):
        # Who has nothing to send most of the time is held back by no path. Whoever must wait until
        # a small buffer is acknowledged seems to have nothing.
        ours = [one for one in causes if one[0] in (OF_SENDERS, _OF_BUFFERS)]
        causes, leaning = [one for one in ours if one[1] >= LIKELIER_THAN_NOT], []
    if group.seconds < _SHORTEST_TEST_S:
        causes = [one for one in causes if one[0] != _TOO_SHORT]
        leaning = [] if leaning and leaning[0][0] == _TOO_SHORT else leaning
    if causes and causes[0][0] == OF_SENDERS and not group.at_sender:
        # Who does not see the bytes in flight cannot tell a small buffer from one that is empty.
        causes = [one for one in causes if one[0] != _OF_BUFFERS]
    named = [suspected(cause, sure, group, found) for cause, sure in causes]
    if group.main.window_bytes is None:
        named = _with_unknown_window(named)
    return named, leaning


def _with_unknown_window(named: list[Suspect]) -> list[Suspect]:
    """A small window and a small send buffer as one suspect."""
    ours = [one for one in named if one.cause in _WINDOWS]
    return [
        replace(one, groups=(*GROUPS, _WINDOWS)) if one in ours else one
        for one in named
        if one not in ours[1:]
    ]


def best(probabilities: Mapping[str, float]) -> Answer:
    """What a capture's probabilities are answered with."""
    return answer(probabilities, WRONG_BLAME, OF_THE_TEST)


def suspected(cause: str, probability: float, group: Group, found: Features) -> Suspect:
    """A cause that the model infers, in words."""
    learned = packaged(MODEL)
    words = describe(cause, group, found)
    why = evidence(learned.moved(cause, found), found)
    told = f" Strongest evidence: {'; '.join(why)}." if why else ""
    cost: float | None = learned.cost(cause, found)
    if cause not in OF_DELAY and not group.was_full:
        cost = None
        told += (
            f" The path was never full: it carries {group.capacity_mbps:.4g} Mb/s or more, and "
            "the capture does not show how much more."
        )
    return Suspect(
        cause,
        cost,
        words.evidence + told,
        tuple(one.seen.flow["id"] for one in group.transfers),
        words.frames,
        words.at_s,
        words.advice,
        round(probability, 2),
    )


def _unknown(leaning: list[tuple[str, float]]) -> str:
    likeliest = sorted(leaning, key=lambda one: -one[1])[:_MOST_LIKELY]
    return (
        "Something probably costs a seventh of the rate or more, but the capture does not "
        f"show what with certainty. Likeliest: {in_words(likeliest)}. Capture a longer "
        "transfer at its other end, and run ping during the transfer."
    )


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
    packets: list[Segments | Packets],
) -> list[Group]:
    """Transfers between the same hosts in the same direction, at the same point.

    Takes the flows' packets out of the list: as they were read they take as much memory as the
    transfers do.
    """
    found: dict[tuple[int, str, str, str], list[Transfer]] = {}
    packets.reverse()
    for flow, end in flows:
        if end is None:
            packets.pop()
            continue
        seen = arrays(str(file), report, flow, end, cast("Segments", packets.pop()))
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


def _merged(found: list[Suspect]) -> list[Suspect]:
    """One suspect for each cause or group of causes: the one that costs most."""
    best: dict[tuple[str, ...], Suspect] = {}
    for one in found:
        if one.causes not in best or (best[one.causes].cost or 0.0) < (one.cost or 0.0):
            best[one.causes] = one
    return list(best.values())


def _half_seen(report: CaptureReport) -> int | None:
    """The largest TCP flow, if it moved data and only one direction of it was captured."""
    flow = next(iter(_unique(report, "tcp")), None)
    if flow is None or total_bytes(flow) < LEAST_BYTES:
        return None
    is_whole = flow["from_client"]["packets"] and flow["from_server"]["packets"]
    return None if is_whole else flow["id"]


def _nothing(groups: list[Group], report: CaptureReport) -> Blame:
    if not groups and (flow := _half_seen(report)) is not None:
        return Blame(
            "inconclusive",
            f"Only one direction of flow {flow}, the largest, was captured, so there are no round "
            "trips to judge. Capture both directions at one interface.",
            [],
        )
    if not groups:
        return Blame(
            "inconclusive",
            "No TCP transfer has enough data, and no ping shows more. Capture a bulk "
            f"transfer of 10 s at its sender (iperf3 -t 10, {advice_on_length(report)}).",
            [],
        )
    group = max(groups, key=lambda one: one.rate_mbps * one.seconds)
    if not any(one.has_backlog for one in group.transfers):
        return Blame(
            "inconclusive",
            held_back(group),
            [],
        )
    is_steady = group.busy >= _BUSY and group.seconds >= _LEAST_SECONDS
    if is_steady and not group.was_full:
        return Blame(
            "inconclusive",
            f"The transfers kept {group.rate_mbps:.4g} Mb/s, but no queue is visible: either the "
            "path carries no more, or the sender offered no more. Capture a bulk transfer at its "
            "sender.",
            [],
        )
    if is_steady:
        return Blame(
            "bound",
            f"The path carried {group.rate_mbps:.4g} Mb/s, {group.busy:.0%} of the highest rate "
            "seen, and packets waited no longer than in a queue of one BDP: the path's capacity "
            "limits the transfers.",
            [],
        )
    where = "" if group.at_sender else " at the sender, where the bytes in flight are visible"
    if group.seconds < _SHORTEST_TEST_S:
        return Blame(
            "inconclusive",
            f"{lasted(group)}: too short to show what limits it. Capture a longer transfer{where}.",
            [],
        )
    return Blame(
        "inconclusive",
        f"The transfers used {group.busy:.0%} of the highest rate seen, over "
        f"{group.seconds:.1f} s. Capture a longer transfer{where}, together with a ping.",
        [],
    )
