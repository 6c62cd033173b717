"""Two captures, or two points of one capture: their clocks' offset, and what happened in between.

The same segment is known at both by its first byte and its timestamp (RFC 7323). Of the times that
segments take one way and the other way, as two clocks tell them, the smallest ones are those
without a queue: half of their difference is the offset, if the empty path takes as long one way
as the other, and half of their sum is by how much it may be off if not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from airpath import _core
from airpath.causes.describe import ADVICE
from airpath.causes.suspect import Suspect
from airpath.documents import FlowReport, InterfaceReport
from airpath.fitting.observed import Floats, numbers
from airpath.readers.flows import main_sender, tcp_flows, tcp_of, total_bytes
from airpath.readers.recognise import Recognised

_MOST_PACKETS = 200_000
_LEAST_SEGMENTS = 20
"""Of the same flow in both, in one direction, and acknowledgements in the other."""
_LEAST_SHARE = 0.5
"""Of the segments of the point that saw fewer."""
_MOST_TIMES = 5
_MOST_STREAMS = 8
_FIGURES = ("min", "p50", "max")
Keyed = dict[tuple[float, float], float]


Times = tuple[float, float, float]
Silence = tuple[float, float]
"""When it began, in ms since 1970, and how long it lasted, in ms."""


class PairDocument(TypedDict):
    """A flow at two capture points, in JSON."""

    files: list[str]
    flow: str
    segments: int
    clock_offset_ms: float
    within_ms: float
    only_first: int
    only_second: int
    between_ms: dict[str, float]
    acks_between_ms: dict[str, float]


@dataclass(frozen=True)
class Pair:
    """One flow at two points, the one nearer to the sender first; times in ms.

    ``files`` are names of captures, or of points of one. ``offset_ms`` is the second clock less the
    first.
    """

    files: tuple[str, str]
    flow: str
    segments: int
    offset_ms: float
    within_ms: float
    missing: tuple[int, int]
    """Segments that only the first point saw, and only the second."""
    there_ms: Times
    """From the first to the second by the joined clock: the least, the median, the longest."""
    back_ms: Times
    """Of acknowledgements, from the second to the first."""
    silences: tuple[Silence, ...] = ()
    """When nothing passed the second point for a round trip or longer, and something waited."""

    def document(self) -> PairDocument:
        """As JSON has it."""
        return {
            "files": list(self.files),
            "flow": self.flow,
            "segments": self.segments,
            "clock_offset_ms": self.offset_ms,
            "within_ms": self.within_ms,
            "only_first": self.missing[0],
            "only_second": self.missing[1],
            "between_ms": dict(zip(_FIGURES, self.there_ms, strict=True)),
            "acks_between_ms": dict(zip(_FIGURES, self.back_ms, strict=True)),
        }

    def sentence(self) -> str:
        """What is to be said of it."""
        first, second = self.files
        return (
            f"{first} and {second} saw {self.flow}, {self.segments} segments of its data at both "
            f"points. The clock of {second} differs from that of {first} by {self.offset_ms:+.4f} "
            f"ms, or up to {self.within_ms:.4g} ms more or less if the empty path is asymmetric. "
            f"{self._between()}"
        )

    def sentence_of_points(self) -> str:
        """The same of two points with one clock."""
        first, second = self.files
        return (
            f"{self.flow} was seen at {first} and at {second}, {self.segments} segments of its "
            f"data at both points. {self._between()}"
        )

    def _between(self) -> str:
        first, second = self.files
        least, median, longest = self.there_ms
        back = " and ".join(f"{one:.4g}" for one in self.back_ms[1:])
        return (
            f"From the first point to the second, segments took {least:.4g} ms at least, "
            f"{median:.4g} ms in the median and {longest:.4g} ms at most; acknowledgements took "
            f"{back} ms (median and longest) on their way back; "
            f"{self.missing[0]} that passed {first} did not pass {second}, and {self.missing[1]} "
            f"that passed the second did not pass the first.{self._silent()}"
        )

    def _silent(self) -> str:
        if not self.silences:
            return ""
        times = "Once" if len(self.silences) == 1 else f"{len(self.silences)} times"
        longest = max(length for _, length in self.silences)
        return (
            f" {times}, for up to {longest:.4g} ms, nothing passed {self.files[1]} while segments "
            f"that had passed {self.files[0]} waited."
        )


PairOfFlows = tuple[FlowReport, FlowReport, Pair]
"""A flow at one point, the same one at another, and both together."""


def pairs(files: Sequence[Recognised]) -> list[Pair]:
    """The largest TCP flow that two captures have both, for each two; one point is one file."""
    captures = [one for one in files if one.capture and Path(one.name).is_file()]
    return [
        pair
        for at, first in enumerate(captures)
        for second in captures[at + 1 :]
        if (pair := _pair(first, second))
    ]


def within(file: Recognised) -> list[PairOfFlows]:
    """The largest flow that one capture has at several points, and each two of these points."""
    report = file.capture
    if not report or not Path(file.name).is_file():
        return []
    flows = {flow["id"]: flow for flow in _opened(file)}
    several = [one for one in flows.values() if one["same_as"]]
    if not several:
        return []
    main = max(several, key=total_bytes)
    found = []
    here = _read(file, main["id"], _by_client(main))
    for number in main["same_as"]:
        other = flows.get(number)
        if other is None:
            continue
        names = (_point(main, report["interfaces"]), _point(other, report["interfaces"]))
        there = _read(file, number, _by_client(main))
        if pair := _joined(names, _name(main), here, there, one_clock=True, trip_ms=_trip(main)):
            found.append((main, other, pair))
    return found


def _trip(flow: FlowReport) -> float:
    """The flow's median round trip, in ms; infinite if there is none."""
    tcp = tcp_of(flow)
    sides = [
        one["rtt_ms"]["p50"] for one in (tcp["from_client"], tcp["from_server"]) if one["rtt_ms"]
    ]
    return sum(sides) or np.inf


def between(file: Recognised, pairs: Iterable[PairOfFlows]) -> list[Suspect]:
    """What is seen between two points: a host that stood still, and a stream that ended there.

    ``pairs`` are those of ``within``.
    """
    return _still_hosts(file, pairs) + _ended_streams(file)


def _ended_streams(file: Recognised) -> list[Suspect]:
    """Streams of datagrams of which the last ones pass one point only: a NAT forgot them."""
    flows = {flow["id"]: flow for flow in file.report["flows"] if flow["protocol"] == "udp"}
    pairs = [
        (flow, flows[number])
        for flow in flows.values()
        for number in flow["same_as"]
        if number in flows and number > flow["id"]
    ]
    found = []
    for one, other in sorted(pairs, key=lambda pair: -total_bytes(pair[0]))[:_MOST_STREAMS]:
        ends = [_sent(file, flow["id"]) for flow in (one, other)]
        for end in (0, 1):
            first, second = sorted(((ends[0][end], one), (ends[1][end], other)), key=_count)[::-1]
            missing = len(first[0]) - len(second[0])
            after = (first[0] > second[0][-1]).sum() if len(second[0]) else 0
            if missing >= _LEAST_SEGMENTS and 2 * after > missing:
                found.append(_ended(file, first, second))
    return found


def _sent(file: Recognised, flow: int) -> tuple[Floats, Floats]:
    """When the client's packets passed, and the server's; in ns."""
    (packets,) = _core.read_flows(Path(file.name), [(flow, None)], _MOST_PACKETS)
    at, by_client = (numbers(packets[name]) for name in ("time_ns", "from_client"))
    return at[by_client > 0], at[by_client == 0]


def _count(seen: tuple[Floats, FlowReport]) -> int:
    return len(seen[0])


def _ended(
    file: Recognised, first: tuple[Floats, FlowReport], second: tuple[Floats, FlowReport]
) -> Suspect:
    (before, one), (behind, other) = first, second
    points = [_point(flow, file.report["interfaces"]) for flow in (one, other)]
    early_s = (before[-1] - behind[-1]) / 1e9
    return Suspect(
        "nat-binding",
        1 - len(behind) / len(before),
        f"Of {len(before)} datagrams of {_name(one)} that passed {points[0]}, {len(behind)} passed "
        f"{points[1]}, the last one {early_s:.3g} s before the stream ended.",
        (one["id"], other["id"]),
        at_s=(float(behind[-1]) / 1e9,),
        advice="Check the NAT's timeout for UDP, or send keep-alives more often.",
    )


def _still_hosts(file: Recognised, pairs: Iterable[PairOfFlows]) -> list[Suspect]:
    """The host between two points inside and outside of a tunnel, if it stood still.

    Where packets enter or leave a tunnel there is one host: a UPF, an SGW or a router.
    """
    return [
        Suspect(
            "stalling-host",
            min(1.0, sum(length for _, length in pair.silences) / (1e3 * flow["duration_s"])),
            pair.sentence_of_points(),
            (flow["id"], other["id"]),
            at_s=tuple(at / 1e3 - file.begin_s for at, _ in pair.silences[:_MOST_TIMES]),
            advice=ADVICE["stalling-host"],
        )
        for flow, other, pair in pairs
        if pair.silences and flow["tunnel"] != other["tunnel"]
    ]


def _point(flow: FlowReport, interfaces: list[InterfaceReport]) -> str:
    name = interfaces[flow["interface"]]["name"] or f"interface {flow['interface']}"
    tunnel = flow["tunnel"]
    return f"point {name}" + ("" if tunnel == "none" else f" (in {tunnel})")


def _by_client(flow: FlowReport) -> bool:
    return main_sender(flow) == "client"


def _opened(file: Recognised) -> list[FlowReport]:
    """Return the TCP flows whose SYN was captured."""
    return [flow for flow in tcp_flows(file.report) if tcp_of(flow)["opening_seen"]]


def _pair(first: Recognised, second: Recognised) -> Pair | None:
    for one, other in _common(first, second):
        by_client = _by_client(one)
        here, there = _read(first, one["id"], by_client), _read(second, other["id"], by_client)
        found = _joined((first.name, second.name), _name(one), here, there)
        if found:
            return found
    return None


def _common(first: Recognised, second: Recognised) -> Iterator[tuple[FlowReport, FlowReport]]:
    """Flows with the same ends and an opening, so that their bytes are counted alike."""
    here, there = ({_name(flow): flow for flow in _opened(one)} for one in (first, second))
    shared = [name for name in here if name in there]
    shared.sort(key=lambda name: -total_bytes(here[name]))
    return ((here[name], there[name]) for name in shared[:1])


def _name(flow: FlowReport) -> str:
    return f"{flow['client']}:{flow['client_port']} to {flow['server']}:{flow['server_port']}"


def _read(file: Recognised, flow: int, by_client: bool) -> tuple[Keyed, Keyed]:
    """When segments and when acknowledgements passed, in ms since 1970."""
    (found,) = _core.read_flows(Path(file.name), [(flow, by_client)], _MOST_PACKETS)
    epoch_ms = file.begin_s * 1e3

    def keyed(*read: bytes) -> Keyed:
        columns = [np.nan_to_num(np.frombuffer(one, dtype="<f8")) for one in read]
        times = (columns[0] / 1e6 + epoch_ms).tolist()
        kept: Keyed = {}
        # What came twice without a difference is not told apart: the first one counts.
        for at, one, other in zip(times, *(one.tolist() for one in columns[1:]), strict=True):
            kept.setdefault((one, other), at)
        return kept

    return (
        keyed(found["sent_ns"], found["offset"], found["timestamp"]),
        keyed(found["ack_ns"], found["ack_offset"], found["ack_timestamp"]),
    )


def _joined(
    files: tuple[str, str],
    flow: str,
    first: tuple[Keyed, Keyed],
    second: tuple[Keyed, Keyed],
    *,
    one_clock: bool = False,
    trip_ms: float = np.inf,
) -> Pair | None:
    apart = [
        np.array([second[way][key] - at for key, at in first[way].items() if key in second[way]])
        for way in (0, 1)
    ]
    least = min(len(first[0]), len(second[0]))
    if min(len(one) for one in apart) < _LEAST_SEGMENTS or len(apart[0]) < _LEAST_SHARE * least:
        return None
    data, acks = apart
    # As the second clock less the first: what goes from the first to the second takes its time
    # besides, and what comes back takes it off.
    if data.min() >= acks.max():
        low, high, sign = acks.max(), data.min(), 1.0
    elif acks.min() >= data.max():
        low, high, sign = data.max(), acks.min(), -1.0
    else:
        return None
    if one_clock:
        if not low <= 0 <= high:
            return None
        low = high = 0.0
    offset = float(low + high) / 2
    there, back = _times(sign * (data - offset)), _times(-sign * (acks - offset))
    missing = (len(first[0]) - len(data), len(second[0]) - len(data))
    near, far = first[0], second[0]
    if sign < 0:
        files, missing, offset = (files[1], files[0]), (missing[1], missing[0]), -offset
        near, far = far, near
    within_ms = float(high - low) / 2
    silent = _silences(near, far, there[0], trip_ms)
    return Pair(files, flow, len(data), offset, within_ms, missing, there, back, silent)


def _silences(near: Keyed, far: Keyed, least_ms: float, trip_ms: float) -> tuple[Silence, ...]:
    """Times longer than a round trip in which what had passed one point did not pass the other."""
    keys = sorted((key for key in near if key in far), key=far.__getitem__)
    found = []
    for before, after in pairwise(keys):
        waits = max(far[before], near[after] + least_ms)
        if far[after] - waits > trip_ms:
            found.append((waits, far[after] - waits))
    return tuple(found)


def _times(values: Any) -> Times:
    return float(values.min()), float(np.median(values)), float(values.max())
