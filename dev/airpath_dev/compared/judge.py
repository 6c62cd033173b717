"""One capture as three readers have it, figure by figure, and the rules behind differences."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from airpath import _core

from .model import Label, SentList, directions, otherwise
from .rules import IN_FLIGHT, ROUND_TRIPS, TCPTRACE, TCPTRACE_AGAIN, TCPTRACE_ROUND_TRIPS, TSHARK
from .tcptrace import Connection, tcptrace
from .tshark import Address, Row, Stream, matched, tshark

_MS = 0.002
"""Half of tshark's last digit, and of the histogram's."""
_TCPTRACE_MS = 0.051
"""tcptrace prints tenths; its means are up to 0.13 ms below those of its own samples."""


@dataclass(frozen=True)
class Verdict:
    """A figure of one flow or of one end of it. ``rules`` None: the difference is unexplained."""

    reader: str
    figure: str
    where: str
    ours: Any
    theirs: Any
    rules: tuple[str, ...] | None

    @property
    def is_equal(self) -> bool:
        """Without any rule."""
        return self.rules == ()


@dataclass(frozen=True)
class Compared:
    """All figures of a file; what tcptrace has no connection for, and why."""

    verdicts: list[Verdict]
    flows: int
    not_read: list[tuple[str, str]]


Trips = tuple[int, float, float, float]
"""How many, the least, the mean and the longest (ms)."""


def compare(path: Path) -> Compared:
    """Read the file by all three."""
    report: Any = _core.read_capture(path)
    flows = [flow for flow in report["flows"] if flow["tcp"]]
    streams = tshark(path)
    place = path.name
    verdicts = [_plain(TSHARK, "flows", place, len(flows), len(streams))]
    pairs = list(matched(streams, flows)) if len(flows) == len(streams) else []
    partly = bool(report["skipped"].get("fragment"))
    whole: list[tuple[Stream, dict[str, Any]]] = []
    for number, (stream, flow) in enumerate(pairs):
        where = f"{place} {number}"
        packets = _packets(flow)
        if partly and flow["tunnel"] != "none" and packets > len(stream.rows):
            verdicts.append(
                Verdict(TSHARK, "packets", where, packets, len(stream.rows), ("fragments",))
            )
            continue
        whole.append((stream, flow))
        verdicts += by_tshark(where, stream, flow)
    told, not_read = _by_tcptrace(path, whole, report)
    return Compared([*verdicts, *told], len(flows), not_read)


def _packets(flow: dict[str, Any]) -> int:
    packets: int = flow["from_client"]["packets"] + flow["from_server"]["packets"]
    return packets


def _plain(reader: str, figure: str, where: str, ours: Any, theirs: Any) -> Verdict:
    return Verdict(reader, figure, where, ours, theirs, () if ours == theirs else None)


def _of(flow: dict[str, Any], end: Address) -> dict[str, Any]:
    name = "client" if end == (flow["client"], flow["client_port"]) else "server"
    data: dict[str, Any] = flow["tcp"][f"from_{name}"]
    return data


def by_tshark(where: str, stream: Stream, flow: dict[str, Any]) -> Iterator[Verdict]:
    """Figure by figure: the flow as airpath has it, and the stream as tshark has it."""
    yield _plain(TSHARK, "packets", where, _packets(flow), len(stream.rows))
    data = sum(_of(flow, end)["data_bytes"] for end in stream.ends)
    rules: tuple[str, ...] | None = () if data == stream.frame_payload else None
    if rules is None and data == stream.payload:
        rules = ("lengths",)
    yield Verdict(TSHARK, "bytes", where, data, stream.frame_payload, rules)
    found, by_frames = directions(stream), directions(stream, {"lengths"})
    for end in sorted(stream.ends):
        here, ours = f"{where} {end[1]}", _of(flow, end)
        yield from _again(here, ours, found[end].labels, by_frames[end].labels, stream.of(end))
        yield _trips(here, stream, end, ours)
        yield _in_flight(here, stream, end, ours)


def _again(
    where: str,
    ours: dict[str, Any],
    labels: Sequence[Label],
    by_frames: Sequence[Label],
    rows: Sequence[Row],
) -> Iterator[Verdict]:
    """What was retransmitted, and what came late, packet by packet.

    ``by_frames`` are the labels if the frames' lengths count.
    """
    again, late = ours["retransmissions"]["packets"], ours["out_of_order_packets"]
    said_late = [row for row in rows if row.out_of_order and not row.keep_alive]
    said_again = [row for row in rows if row.again and not row.keep_alive and not row.out_of_order]
    both = (len(said_again), len(said_late))
    said = {id(row) for row in [*said_again, *said_late]}
    by_rules = (sum(not one.is_late for one in labels), sum(one.is_late for one in labels))
    labelled = {id(one.row): one for one in labels}
    told = None
    if by_rules == (again, late):
        labelled = {id(one.row): one for one in labels}
        rules = set()
        for row in [*said_again, *said_late]:
            label = labelled.pop(id(row), None)
            if label is None:
                rules.add("unknown")
            elif label.is_late != row.out_of_order:
                rules.add(_why(label))
        if labelled:
            same = {id(one.row) for one in by_frames} == said
            rules.add("lengths" if same else "unknown")
        told = None if "unknown" in rules else tuple(sorted(rules))
    together: tuple[str, ...] | None = None
    if told is not None:
        together = () if again + late == sum(both) else tuple({"lengths"} & set(told)) or None
    yield Verdict(TSHARK, "again or late", where, again + late, sum(both), together)
    yield Verdict(TSHARK, "again, late", where, (again, late), both, told)


def _why(label: Label) -> str:
    if not label.unseen:
        return "seen-before"
    if label.acknowledged and label.is_late:
        return "acknowledged"
    return "filled-early" if label.is_late else "filled-late"


def _trips(where: str, stream: Stream, end: Address, ours: dict[str, Any]) -> Verdict:
    """Round trips of the data of that end, which packets of the other end close."""
    theirs = sorted(
        row.rtt_ms for row in stream.rows if row.destination == end and row.rtt_ms is not None
    )
    told = _distribution(ours["rtt_ms"])

    def says(found: SentList) -> list[float]:
        return sorted(one / 1e6 for one in found.rtts_ns)

    said = _summary(theirs)
    rules = _explained(
        lambda rules: says(otherwise(stream, frozenset(rules))[end]),
        ROUND_TRIPS,
        lambda found: _near(_summary(found), told, _MS),
        lambda found: (
            len(found) == len(theirs)
            and all(abs(a - b) < 1e-3 for a, b in zip(found, theirs, strict=True))
        ),
    )
    return Verdict(TSHARK, "round trips", where, told, said, rules)


def _in_flight(where: str, stream: Stream, end: Address, ours: dict[str, Any]) -> Verdict:
    theirs = [row.in_flight for row in stream.of(end) if row.in_flight is not None]
    told = ours["in_flight_bytes"]

    def is_ours(found: list[int]) -> bool:
        if not found or not told:
            return not found and not told
        most: int = told["max"]
        return max(found) == most and bool(abs(sum(found) / len(found) - told["mean"]) < 1e-6)

    rules = _explained(
        lambda rules: otherwise(stream, frozenset(rules))[end].in_flight,
        IN_FLIGHT,
        is_ours,
        lambda found: found == theirs,
    )
    mine = (told["max"], round(told["mean"], 1)) if told else None
    said = (max(theirs), round(sum(theirs) / len(theirs), 1)) if theirs else None
    return Verdict(TSHARK, "bytes in flight", where, mine, said, rules)


def _explained(
    model: Callable[[Sequence[str]], Any],
    names: Sequence[str],
    is_ours: Callable[[Any], bool],
    is_theirs: Callable[[Any], bool],
) -> tuple[str, ...] | None:
    """The fewest rules that lead from our figures to theirs; None if ours are not by the rules."""
    if not is_ours(model(())):
        return None
    for count in range(len(names) + 1):
        for rules in combinations(names, count):
            if is_theirs(model(rules)):
                return rules
    return None


def _distribution(rtt: dict[str, Any] | None) -> Trips:
    return (rtt["count"], rtt["min"], rtt["mean"], rtt["max"]) if rtt else (0, 0.0, 0.0, 0.0)


def _summary(values: Sequence[float]) -> Trips:
    if not values:
        return (0, 0.0, 0.0, 0.0)
    return (len(values), min(values), sum(values) / len(values), max(values))


def _near(a: Trips, b: Trips, most_ms: float) -> bool:
    apart = [abs(x - y) for x, y in zip(a[1:], b[1:], strict=True)]
    mean_ms = 3 * most_ms if most_ms == _TCPTRACE_MS else most_ms
    return a[0] == b[0] and apart[0] <= most_ms and apart[1] <= mean_ms and apart[2] <= most_ms


def _by_tcptrace(
    path: Path, pairs: Sequence[tuple[Stream, dict[str, Any]]], report: dict[str, Any]
) -> tuple[list[Verdict], list[tuple[str, str]]]:
    connections: dict[frozenset[Address], list[Connection]] = defaultdict(list)
    for one in tcptrace(path) or []:
        connections[frozenset(_address(end) for end in one.ends)].append(one)
    grouped: dict[frozenset[Address], list[tuple[Stream, dict[str, Any]]]] = defaultdict(list)
    for stream, flow in pairs:
        grouped[stream.ends].append((stream, flow))
    verdicts: list[Verdict] = []
    not_read: list[tuple[str, str]] = []
    for ends, group in grouped.items():
        of_ends = connections.get(ends)
        if not of_ends:
            flow = group[0][1]
            interface = report["interfaces"][flow["interface"]]
            why = flow["tunnel"] if flow["tunnel"] != "none" else interface["link"]
            not_read.append((path.name, why))
            continue
        for end in sorted(ends):
            verdicts += _of_connections(f"{path.name} {end[1]}", end, group, of_ends)
    return verdicts, not_read


def _address(end: Address) -> Address:
    return str(ipaddress.ip_address(end[0])), end[1]


def _of_connections(
    where: str,
    end: Address,
    group: Sequence[tuple[Stream, dict[str, Any]]],
    connections: Sequence[Connection],
) -> Iterator[Verdict]:
    figures = [one.figures[[_address(each) for each in one.ends].index(end)] for one in connections]
    ours = [_of(flow, end) for _, flow in group]
    streams = [stream for stream, _ in group]
    split: tuple[str, ...] = ()
    if len(connections) != len(streams):
        split = ("split",)
        if len(streams) == 1:
            streams = list(_cut(streams[0], connections))

    def count(name: str) -> int:
        return sum(int(one[name]) for one in figures)

    packets = sum(len(stream.of(end)) for stream in streams)
    yield _plain(TCPTRACE, "packets", where, packets, count("total packets"))
    data = sum(one["data_bytes"] for one in ours)
    yield _plain(TCPTRACE, "bytes", where, data, count("actual data bytes"))
    again = sum(one["retransmissions"]["packets"] + one["out_of_order_packets"] for one in ours)
    said = count("rexmt data pkts") + count("outoforder pkts")
    yield Verdict(TCPTRACE, "again or late", where, again, said,
                  _tcptrace_again(streams, end, again, said, split))  # fmt: skip
    yield _tcptrace_trips(where, end, group, streams, figures, split)


def _cut(stream: Stream, connections: Sequence[Connection]) -> Iterator[Stream]:
    """The stream in the parts that tcptrace takes it for."""
    at = 0
    for one in connections:
        packets = sum(int(figures["total packets"]) for figures in one.figures)
        yield Stream(stream.ends, stream.rows[at : at + packets])
        at += packets


def _tcptrace_again(
    streams: Sequence[Stream], end: Address, again: int, said: int, split: tuple[str, ...]
) -> tuple[str, ...] | None:
    if again == said:
        return ()
    for rules in [(), *((one,) for one in TCPTRACE_AGAIN), TCPTRACE_AGAIN]:
        chosen = frozenset(rules)
        if "parts" in chosen:
            found = sum(otherwise(stream, chosen)[end].parts for stream in streams)
        else:
            found = sum(len(directions(stream, chosen)[end].labels) for stream in streams)
        if found == said and (split or rules):
            return (*split, *rules)
    return None


def _tcptrace_trips(
    where: str,
    end: Address,
    group: Sequence[tuple[Stream, dict[str, Any]]],
    streams: Sequence[Stream],
    figures: Sequence[dict[str, str]],
    split: tuple[str, ...],
) -> Verdict:
    told = [_distribution(_of(flow, end)["rtt_ms"]) for _, flow in group]
    sampled = [one for one in figures if int(one["RTT samples"])]
    said = _joined(
        [
            (
                int(one["RTT samples"]),
                *(float(one[f"RTT {name}"]) for name in ("min", "avg", "max")),
            )
            for one in sampled
        ]
    )
    ours = _joined([one for one in told if one[0]])

    def model(rules: Sequence[str]) -> Trips:
        found = [otherwise(stream, frozenset(rules))[end].rtts_ns for stream in streams]
        return _summary([one / 1e6 for each in found for one in each])

    if _near(ours, said, _TCPTRACE_MS):
        return Verdict(TCPTRACE, "round trips", where, ours, said, ())
    rules = _explained(
        model,
        TCPTRACE_ROUND_TRIPS,
        lambda found: bool(split) or _near(found, ours, _MS),
        lambda found: _near(found, said, _TCPTRACE_MS),
    )
    return Verdict(TCPTRACE, "round trips", where, ours, said,
                   None if rules is None else (*split, *rules))  # fmt: skip


def _joined(parts: Sequence[Any]) -> Trips:
    if not parts:
        return (0, 0.0, 0.0, 0.0)
    count = sum(one[0] for one in parts)
    mean = sum(one[0] * one[2] for one in parts) / count
    return (count, min(one[1] for one in parts), mean, max(one[3] for one in parts))
