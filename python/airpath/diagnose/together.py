"""Several files of one test: what pings show while transfers load the path, and otherwise.

They are aligned by the times that they have; each is the clock of the machine on which it ran.
Where a capture has the packets of ping or iperf3, their clocks' offset is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypedDict

from airpath.causes import tools
from airpath.causes.describe import ADVICE
from airpath.causes.rank import OF_SENDERS, Blame, BlameDocument
from airpath.causes.suspect import Suspect
from airpath.diagnose import aligned, points
from airpath.diagnose.aligned import Offset, OffsetDocument
from airpath.diagnose.capture import StatementDocument
from airpath.diagnose.outputs import bloat, bloated
from airpath.diagnose.points import PairDocument
from airpath.diagnose.told import elsewhere, told_by
from airpath.documents import FlowReport
from airpath.readers.flows import LEAST_BYTES, main_sender, stream
from airpath.readers.iperf import IperfOutput, IperfTest
from airpath.readers.iperf_output import far_ends
from airpath.readers.nuttcp import NuttcpOutput
from airpath.readers.ping import PingOutput
from airpath.readers.recognise import Recognised
from airpath.readers.ss import Connection, SsOutput

_MARGIN_S = 1.0
"""iperf3 tells its start in whole seconds: so near to an edge nothing is called loaded or idle."""
_LEAST_REPLIES = 5
_TOLD_IN_TIME = 0.9
"""The share of the intervals' time that passes between the times of their lines, at least."""
_MOST_LOST = 100_000
"""Requests without a reply; a number of a damaged file may be any."""
_MOST_NAMES = 3
_MOST_RUNS = 10
_QUEUE = "bufferbloat"
_NO_QUEUE = (_QUEUE, OF_SENDERS, "receive-window", "send-buffer")
"""Inferred causes that a queue under load refutes, or repeats."""


@dataclass(frozen=True)
class Load:
    """What a tool sent, or a capture has, from ``start_s`` to ``end_s`` (seconds since 1970)."""

    name: str
    start_s: float
    end_s: float
    goodput_mbps: float | None
    file: str = ""


@dataclass(frozen=True)
class Delays:
    """The round trips that a ping printed with times: (seconds since 1970, ms)."""

    name: str
    replies: list[tuple[float, float]]
    lost_at: list[float] = field(default_factory=list)
    """When requests were sent that had no reply, by the numbers around them."""
    ahead_s: dict[str, float] = field(default_factory=dict)
    """By file, how far this clock is ahead of that one, where that is known."""

    def seen_from(self, file: str) -> list[tuple[float, float]]:
        """The replies by another file's clock."""
        ahead = self.ahead_s.get(file, 0.0)
        return [(at - ahead, rtt) for at, rtt in self.replies]

    def lost_seen_from(self, file: str) -> list[float]:
        """The times of lost requests by another file's clock."""
        return [at - self.ahead_s.get(file, 0.0) for at in self.lost_at]


class LoadedPing(TypedDict):
    """A load and a ping: median RTTs during the load, and outside all loads.

    A median of too few replies is None.
    """

    load: str
    ping: str
    start_s: float
    end_s: float
    goodput_mbps: float | None
    loaded_ms: float | None
    loaded_replies: int
    loaded_lost: int
    idle_ms: float | None
    idle_replies: int
    idle_lost: int


class Together(TypedDict):
    """What several files show together."""

    statements: list[StatementDocument]
    pairs: list[LoadedPing]
    captures: list[PairDocument]
    offsets: list[OffsetDocument]
    causes: BlameDocument | None
    """Of what tools printed, if no capture has the packets."""


def is_one_case(files: Sequence[Recognised]) -> bool:
    """Whether several files tell of one test, as far as that shows: there is one with tests."""
    with_tests = [one for one in files if isinstance(one.output, IperfOutput)]
    return len(files) > 1 and len(with_tests) - len(_far_ends(with_tests)) < 2


def _far_ends(files: Sequence[Recognised]) -> dict[str, str]:
    """The files of iperf3's servers of which the clients' are there too, and those clients'."""
    tests = [
        (one.name, test)
        for one in files
        if isinstance(one.output, IperfOutput)
        for test in one.output.tests
    ]
    far = far_ends([test for _, test in tests])
    found = {tests[server][0]: tests[client][0] for client, server in far.items()}
    alone = {name for at, (name, _) in enumerate(tests) if at not in set(far.values())}
    return {server: client for server, client in found.items() if server not in alone}


def together(files: Sequence[Recognised]) -> Together | None:
    """What the files say together.

    None if that is nothing. It has ``statements``, ``pairs``, ``captures``, ``offsets`` and
    ``causes``. ``pairs`` are of a load and a ping: ``load``, ``ping``, ``start_s`` and
    ``end_s`` (since 1970), ``goodput_mbps``, and of the round trips inside and outside of all loads
    ``loaded_ms`` and ``idle_ms`` (medians) with the counts of replies. ``captures`` has flows that
    two captures have: the offset of the clocks and what happened between the points. ``offsets``
    are those of tools' clocks from a capture's, with their bounds.
    """
    joined = points.pairs(files)
    # The second capture of a flow says nothing more of when there was load.
    seconds = {one.files[1] for one in joined}
    captures = [one for one in aligned.captures(files) if one.name not in seconds]
    loads, delays, without = _sorted(files)
    far = _far_ends(files)
    loads = [one for one in loads if one.file not in far]
    said = [
        ("two-ends", f"{server} is the server's end of the test in {client}, not another test.")
        for server, client in far.items()
    ]
    offsets = [_align(one, captures, files) for one in delays]
    known = [one for each in offsets for one in each]
    for file in captures:
        told, theirs, found = _of_iperf3(file, files)
        said += told
        known += found
        loads = [one for one in loads if one.file not in theirs]
    for file in captures:
        loads += [
            Load(one.name, one.start_s, one.end_s, one.goodput_mbps, file.name)
            for one in aligned.transfers(file)
        ]
    said += [("clock-offset", one.sentence()) for one in known]
    pairs = [pair for load in loads for one in delays if (pair := _pair(load, one, loads))]
    said += [statement for pair in pairs for statement in _of_a_pair(pair)]
    said += _elsewhere(files) if pairs else []
    said += [("two-captures", one.sentence()) for one in joined]
    pings = sum(isinstance(one.output, PingOutput) for one in files)
    others = sum(isinstance(one.output, IperfOutput | NuttcpOutput | SsOutput) for one in files)
    if loads and delays and not pairs:
        said.append(("no-overlap", "No ping has enough replies while another tool was sending."))
    if without and pings and (others or captures):
        names = ", ".join(without[:_MOST_NAMES])
        more = len(without) - _MOST_NAMES
        said.append(
            (
                "not-aligned",
                f"{names}{f' and {more} more' if more > 0 else ''}: without absolute times, so not "
                "aligned with the others. ping -D, iperf3 -J, date -u before ss, or a time with "
                "date and zone before each line gives them.",
            )
        )
    test = None
    if is_one_case(files) and not any(aligned.transfers(one) for one in captures):
        test = told_by([one.output for one in files if one.output is not None])
    if not said and test is None:
        return None
    return {
        "statements": [{"kind": kind, "flow": None, "text": text} for kind, text in said],
        "pairs": pairs,
        "captures": [one.document() for one in joined],
        "offsets": [one.document() for one in known],
        "causes": None if test is None else _with_queues(tools.blame(test), pairs).document(),
    }


def _with_queues(blame: Blame, pairs: Sequence[LoadedPing]) -> Blame:
    """The causes of a test, after a queue that a ping saw, and without those that it refutes.

    Where packets wait on the path, more data was there than the path carries.
    """
    waits = [
        (idle, loaded, one["ping"])
        for one in pairs
        if (idle := one["idle_ms"]) and (loaded := one["loaded_ms"]) and bloated(idle, loaded)
    ]
    if not waits:
        return blame
    idle, loaded, name = max(waits, key=lambda one: one[1] - one[0])
    text = f"{bloat(idle, loaded)} {name} measured it before and during the test."
    seen = Suspect(
        _QUEUE, 1 - idle / loaded, f"{text[0].upper()}{text[1:]}", (), advice=ADVICE[_QUEUE]
    )
    others = [one for one in blame.suspects if one.cause not in _NO_QUEUE]
    return Blame("named", "", [seen, *others])


def _elsewhere(files: Sequence[Recognised]) -> list[tuple[str, str]]:
    """Pings to another address than the tests' ends."""
    tests = [
        test for one in files if isinstance(one.output, IperfOutput) for test in one.output.tests
    ]
    return [
        (
            "other-address",
            f"{one.name} pinged {other}, which is not an end of the test: the two paths may share "
            "only a part.",
        )
        for one in files
        if tests
        and isinstance(one.output, PingOutput)
        and (other := elsewhere(one.output, tests[0])) is not None
    ]


def _align(
    delays: Delays, captures: Sequence[Recognised], files: Sequence[Recognised]
) -> list[Offset]:
    """How far the clock of a ping is off those of captures that have its packets."""
    output = next(one.output for one in files if one.name == delays.name)
    found = []
    for file in captures:
        if not isinstance(output, PingOutput):
            continue
        offsets = [
            aligned.offset_of_ping(delays.name, run, file) for run in output.runs[:_MOST_RUNS]
        ]
        known = [one for one in offsets if one is not None]
        if known:
            # All runs are by one clock, and a few tell it.
            offset = min(known, key=lambda one: one.within_s)
            delays.ahead_s[file.name] = offset.offset_s
            found.append(offset)
    return found


def _of_iperf3(
    file: Recognised, files: Sequence[Recognised]
) -> tuple[list[tuple[str, str]], set[str], list[Offset]]:
    """Sentences on iperf3's own connections in a capture, the files they are of, their clocks."""
    said, theirs, offsets = [], set(), []
    for one in files:
        if not isinstance(one.output, IperfOutput):
            continue
        for test in one.output.tests:
            flows = aligned.flows_of_iperf3(test, file)
            if not flows:
                continue
            theirs.add(one.name)
            if offset := aligned.offset_of_iperf3(one.name, test, file, flows):
                offsets.append(offset)
            said.append(("same-transfer", _compared(one.name, test, file, flows)))
    return said, theirs, offsets


def _compared(name: str, test: IperfTest, file: Recognised, flows: Sequence[FlowReport]) -> str:
    """Iperf's figures and the capture's of the same transfer."""
    streams = [stream(flow, main_sender(flow)) for flow in flows]
    again = sum(one["retransmissions"]["segments"] for one in streams)
    rate = sum(one["goodput_mbps"] or 0.0 for one in streams)
    document = test.document()
    told = document["goodput_mbps"], document["retransmissions"]
    rates = "" if told[0] is None else f" {told[0]:.4g} Mb/s"
    retransmitted = "" if told[1] is None else f" and {told[1]} segments retransmitted"
    ids = ", ".join(str(flow["id"]) for flow in flows[:_MOST_NAMES])
    more = f" and {len(flows) - _MOST_NAMES} more" if len(flows) > _MOST_NAMES else ""
    return (
        f"{name} is of flow{'s' if len(flows) > 1 else ''} {ids}{more} of {file.name}: "
        f"iperf3 reports{rates}{retransmitted}, the capture {rate:.4g} Mb/s and {again} segments "
        "retransmitted."
    )


def _sorted(files: Iterable[Recognised]) -> tuple[list[Load], list[Delays], list[str]]:
    """Loads, pings, and the names of those that have no absolute time."""
    loads: list[Load] = []
    delays: list[Delays] = []
    without: list[str] = []
    for file in files:
        output = file.output
        if isinstance(output, PingOutput):
            replies = [
                (one.time_s, one.rtt_ms)
                for one in output.replies
                if one.time_s is not None and not one.duplicate
            ]
            if replies:
                delays.append(Delays(file.name, replies, _lost(output)))
            elif output.replies:
                without.append(file.name)
        elif isinstance(output, IperfOutput | NuttcpOutput | SsOutput):
            found = list(_loads(file.name, output))
            loads += [replace(one, file=file.name) for one in found]
            if not found and not _has_time(output) and not getattr(output, "error", None):
                without.append(file.name)
    return loads, delays, without


def _has_time(output: IperfOutput | NuttcpOutput | SsOutput) -> bool:
    """Whether it says when it was, so that only data is missing."""
    if isinstance(output, SsOutput):
        return any(one["time_s"] is not None for each in output.connections for one in each.samples)
    if isinstance(output, IperfOutput):
        return any(test.start_time_s is not None for test in output.tests)
    return False


def _loads(name: str, output: IperfOutput | NuttcpOutput | SsOutput) -> Iterator[Load]:
    if isinstance(output, SsOutput):
        yield from (load for one in output.connections if (load := _of_a_connection(name, one)))
        return
    if isinstance(output, IperfOutput):
        for test in output.tests:
            lasted = max((one.end_s for one in test.counted()), default=0.0)
            if test.start_time_s is not None and lasted > 0:
                start = test.start_time_s
                goodput = test.document()["goodput_mbps"]
                yield Load(name, start, start + test.omit_s + lasted, goodput)
        return
    for run in output.runs:
        timed = [one for one in run.intervals if one.time_s is not None and one.bytes]
        times = [one.time_s for one in timed if one.time_s is not None]
        if timed:
            start = times[0] - timed[0].duration_s
            # Lines that came through a buffer all have its time, which says nothing of the
            # intervals.
            if times[-1] - start >= _TOLD_IN_TIME * sum(one.duration_s for one in timed):
                yield Load(name, start, times[-1], run.document()["goodput_mbps"])


def _of_a_connection(name: str, connection: Connection) -> Load | None:
    timed = [(at, one) for one in connection.samples if (at := one["time_s"]) is not None]
    # At the sender bytes are acknowledged, at the receiver they are received.
    moved = max(
        [(at, one.get("bytes_acked", 0)) for at, one in timed],
        [(at, one.get("bytes_received", 0)) for at, one in timed],
        key=lambda points: points[-1][1] - points[0][1] if points else 0,
    )
    if len(moved) < 2 or moved[-1][1] - moved[0][1] < LEAST_BYTES:
        return None
    last = moved[-1][1]
    start = max(at for at, count in moved if count == moved[0][1])
    end = min(at for at, count in moved if count == last)
    # Times that went back, or one for all snapshots.
    if end <= start:
        return None
    ends = f"{name} ({connection.local} to {connection.peer})"
    return Load(ends, start, end, 8e-6 * (last - moved[0][1]) / (end - start))


def _lost(output: PingOutput) -> list[float]:
    """When the requests were sent of which the numbers are missing between replies' numbers."""
    found: list[float] = []
    for run in output.runs:
        sent = sorted(
            (one.seq, one.time_s - one.rtt_ms / 1000)
            for one in run.replies
            if one.time_s is not None and not one.duplicate
        )
        for (first, began), (last, ended) in pairwise(sent):
            step = (ended - began) / max(1, last - first)
            missing = min(last - first - 1, _MOST_LOST - len(found))
            found += [began + step * count for count in range(1, missing + 1)]
    return found


def _pair(load: Load, delays: Delays, loads: Sequence[Load]) -> LoadedPing | None:
    begin_s, end_s = load.start_s + _MARGIN_S, load.end_s - _MARGIN_S

    def is_idle(sent_s: float, received_s: float) -> bool:
        return all(
            received_s < one.start_s - _MARGIN_S or sent_s > one.end_s + _MARGIN_S for one in loads
        )

    replies, lost = delays.seen_from(load.file), delays.lost_seen_from(load.file)
    loaded = [rtt for at, rtt in replies if begin_s <= at - rtt / 1000 and at <= end_s]
    loaded_lost = sum(begin_s <= at <= end_s for at in lost)
    if len(loaded) + loaded_lost < _LEAST_REPLIES:
        return None
    idle = [rtt for at, rtt in replies if is_idle(at - rtt / 1000, at)]
    return {
        "load": load.name,
        "ping": delays.name,
        "start_s": load.start_s,
        "end_s": load.end_s,
        "goodput_mbps": load.goodput_mbps,
        "loaded_ms": _median(loaded) if len(loaded) >= _LEAST_REPLIES else None,
        "loaded_replies": len(loaded),
        "loaded_lost": loaded_lost,
        "idle_ms": _median(idle) if len(idle) >= _LEAST_REPLIES else None,
        "idle_replies": len(idle),
        "idle_lost": sum(is_idle(at, at) for at in lost),
    }


def _of_a_pair(pair: LoadedPing) -> Iterator[tuple[str, str]]:
    idle, loaded = pair["idle_ms"], pair["loaded_ms"]
    rate = "" if pair["goodput_mbps"] is None else f" at {pair['goodput_mbps']:.4g} Mb/s"
    text = (
        f"{pair['load']} moved data{rate} from {_clock(pair['start_s'])} to "
        f"{_clock(pair['end_s'])} UTC"
    )
    if lost := pair["loaded_lost"]:
        sent, others = lost + pair["loaded_replies"], pair["idle_lost"] + pair["idle_replies"]
        yield (
            "loss-under-load",
            f"{text}; {lost} of the {sent} echo requests of {pair['ping']} had no reply "
            f"during that time, and {pair['idle_lost']} of {others} without load.",
        )
    if loaded is None:
        return
    text += f"; the median round trip of {pair['ping']} was {loaded:.4g} ms during that time"
    if idle is None:
        yield (
            "delay-under-load",
            f"{text}. It has fewer than {_LEAST_REPLIES} replies without load, so the idle round "
            "trip is not known.",
        )
        return
    yield "delay-under-load", f"{text}, and {idle:.4g} ms without load."
    if bloated(idle, loaded):
        text = bloat(idle, loaded)
        yield "bufferbloat", f"{text[0].upper()}{text[1:]}"


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _median(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
