"""Settings that may help a path, derived from its rate, round trips and queues."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from airpath.base.text import exact_size, percent, rate
from airpath.tune.settings import LINKS, Cubic, Direction, End, Route, Setting, Shaper, Sysctl

if TYPE_CHECKING:
    from airpath.runs.document import RunDocument
    from airpath.tune.judge import Judge
    from airpath.tune.prepared import Prepared, TcpFlow
    from airpath.tune.settings import Role

_PAGE = 4096
_SEGMENT_BYTES = 1448
_TRUESIZE_BYTES = 2304 + 832
"""Memory of a full segment in the send buffer, its burst's included (docs/adr/0032)."""
_TWICE = 2
"""Linux sizes both buffers for two windows, the send buffer in tcp_sndbuf_expand and the receive
buffer in tcp_rcv_space_adjust: in slow start a window doubles within a round trip."""
_UNLIMITED = 64 << 20
"""Both buffers of the run that shows what the path can hold."""
_PARTS = (0.95, 0.9, 0.8)
"""What users of cake-autorate try below the rate that they measured."""
_SAME = 0.01
_DEFAULT_RMEM = 131_072
_DEFAULT_WMEM = 16_384
"""The middle values of tcp_rmem and tcp_wmem (ip-sysctl)."""
_TARGET_MS, _INTERVAL_MS = 5.0, 100.0
"""CoDel's own (RFC 8289 4.2, 4.3)."""
_PACKET_BITS = 1514 * 8


@dataclass(frozen=True)
class Candidate:
    """Settings that are tried together."""

    kind: str
    """Candidates of one kind exclude each other."""
    name: str
    """What they do, in words."""
    sets: tuple[str, ...]
    """Keys of the scenario with the same effect, as ``--set`` takes them."""
    settings: tuple[Setting, ...]
    """For hosts."""
    needs: tuple[str, ...] = ()
    """What must hold besides."""
    limits_others: bool = False
    """Whether it limits connections of the host over other paths as well."""

    @property
    def ends(self) -> set[End]:
        """The hosts that are changed."""
        return {one.end for one in self.settings}

    def excludes(self, other: Candidate) -> bool:
        """Whether both are of one kind, or the other leaves nothing for this one to do."""
        return self.kind == other.kind or {self.kind, other.kind} in _EXCLUSIVE


_EXCLUSIVE = [
    {f"{LINKS[direction]} congestion control", f"{LINKS[direction]} HyStart"}
    for direction in ("down", "up")
]
"""Only CUBIC has HyStart."""


@dataclass(frozen=True)
class Load:
    """What the path shows of a direction, if nothing but the path limits TCP."""

    rate_mbps: float
    idle_ms: float
    loaded_ms: float
    """95th percentile."""

    def window(self, rtt_ms: float) -> int:
        """Two windows of this rate and round trip, in whole pages."""
        wanted = _TWICE * self.rate_mbps * 125 * rtt_ms
        return max(4, math.ceil(wanted / _PAGE)) * _PAGE


class Candidates:
    """Derives what to try for a scenario."""

    def __init__(self, ready: Prepared, judge: Judge) -> None:
        self.ready, self.judge = ready, judge
        self.flows = ready.flows

    def all(self) -> list[Candidate]:
        """Return what to try."""
        found: list[Candidate] = []
        for direction in self.directions:
            load = self.load(direction)
            found += self._buffers(direction, load)
            found += self._shapers(direction, load)
            found += self._initial_windows(direction, load)
        found += [*self._congestion(), *self._hystart(), *self._after_idle(), *self._ecn()]
        return [*found, *self._mss()]

    @cached_property
    def directions(self) -> list[Direction]:
        """Directions with TCP data."""
        there = {flow.direction for flow in self.flows}
        ways: tuple[Direction, ...] = ("down", "up")
        return [way for way in ways if way in there]

    @cached_property
    def _probe(self) -> tuple[str, ...]:
        sets = [
            one
            for flow in self.flows
            for one in (*_tuned_send(flow, _UNLIMITED), *self._tuned_receive(flow, _UNLIMITED))
        ]
        return tuple(sets)

    def load(self, direction: Direction) -> Load | None:
        """Return what a path shows whose hosts do not limit it; None if nothing arrives."""
        runs = self.judge.documents(self._probe)
        found = [load for run in runs if (load := self._load_of(run, direction)) is not None]
        if not found:
            return None
        mean = [sum(values) / len(found) for values in zip(*found, strict=True)]
        return Load(*mean)

    def _load_of(self, run: RunDocument, direction: Direction) -> tuple[float, float, float] | None:
        flows = [
            flow
            for flow in run["flows"]
            if flow["direction"] == direction and flow["kind"] in ("bulk", "file")
        ]
        rates = [(flow.get("steady_mbps") or flow["goodput_mbps"] or 0.0) for flow in flows]
        round_trips = [flow["rtt_ms"] for flow in flows if flow["rtt_ms"] is not None]
        if not sum(rates) or not round_trips:
            return None
        return (
            sum(rates),
            min(one["min"] for one in round_trips),
            max(one["p95"] for one in round_trips),
        )

    def _of(self, direction: Direction) -> list[TcpFlow]:
        return [flow for flow in self.flows if flow.direction == direction]

    def _buffers(self, direction: Direction, load: Load | None) -> Iterator[Candidate]:
        """Buffers for two windows of the empty path, and of the loaded one."""
        if load is None:
            return
        sizes = {load.window(load.idle_ms): "empty", load.window(load.loaded_ms): "loaded"}
        for size, which in sizes.items():
            for ends in _ROLES:
                yield self._buffer(direction, size, which, ends)

    def _buffer(
        self, direction: Direction, window: int, which: str, ends: Sequence[Role]
    ) -> Candidate:
        flows = self._of(direction)
        sets: list[str] = []
        settings: list[Setting] = []
        receiver, sender = _ends(direction)
        if "receiver" in ends:
            memory = self._receive_memory(window)
            sets += [one for flow in flows for one in self._tuned_receive(flow, window)]
            middle = min(_DEFAULT_RMEM, memory)
            settings.append(Sysctl(receiver, "net.ipv4.tcp_rmem", f"4096 {middle} {memory}"))
        if "sender" in ends:
            memory = math.ceil(window * _TRUESIZE_BYTES / _SEGMENT_BYTES / _PAGE) * _PAGE
            sets += [one for flow in flows for one in _tuned_send(flow, memory)]
            middle = min(_DEFAULT_WMEM, memory)
            settings.append(Sysctl(sender, "net.ipv4.tcp_wmem", f"4096 {middle} {memory}"))
        fixed = any(flow.has_fixed_buffer(end) for flow in flows for end in ends)
        needs = [_LEAVE_ALONE] if fixed else []
        limits = any(window < self.ready.defaults.buffer_bytes(end) for end in ends)
        if limits:
            needs.append(
                f"no connection of the host may need more than {exact_size(window)} a round trip "
                f"({rate(8 * window / 1e5)} at 100 ms)"
            )
        whose = " and ".join(_ROLE_WORDS[end] for end in ends)
        name = f"{whose} buffers of twice what the {which} path holds"
        return Candidate(
            f"{LINKS[direction]} buffers",
            f"{name} ({exact_size(window)}, {LINKS[direction]})",
            tuple(sets),
            tuple(settings),
            tuple(needs),
            limits,
        )

    def _receive_memory(self, window: int) -> int:
        """Memory of which this window is the part that Linux advertises.

        Up to 6.5 that is half (tcp_adv_win_scale); since 6.6 it follows the packets, of which five
        eighths are payload behind a modem without GRO (tcp_scaling_ratio).
        """
        found = re.match(r"(\d+)\.(\d+)", self.ready.comparable.kernel)
        version = (int(found[1]), int(found[2])) if found else (0, 0)
        factor = 8 / 5 if version >= (6, 6) else 2
        return math.ceil(window * factor / _PAGE) * _PAGE

    def _tuned_receive(self, flow: TcpFlow, window: int) -> list[str]:
        initial = min(self.ready.defaults.initial_receive_bytes, window)
        return flow.sets(
            f"receive_buffer_bytes={window}",
            f"buffer.initial_receive_bytes={initial}",
            "buffer.receive_tuning=true",
        )

    def _shapers(self, direction: Direction, load: Load | None) -> Iterator[Candidate]:
        """Shapers at rates of the path's range, and below: only a slower shaper has the queue."""
        rates = self.judge.rates(self._probe, direction)
        if load is None or rates is None:
            return
        wanted = [
            ("the path's mean rate", rates.mean),
            ("the path's lowest rate", rates.least),
            ("the path's highest rate", rates.most),
            *((f"{percent(part)} of the path's mean rate", part * rates.mean) for part in _PARTS),
        ]
        seen: list[float] = []
        for words, mbps in wanted:
            # Rates of steady paths are nearly the same.
            if mbps > 0 and all(abs(mbps / one - 1) >= _SAME for one in seen):
                seen.append(mbps)
                yield self._shaper(direction, load, words, mbps)

    def _shaper(self, direction: Direction, load: Load, words: str, mbps: float) -> Candidate:
        mbps = round(mbps, 3)
        # What 1 ms lets through, so that the timer of the kernel does not bound the rate.
        burst = max(2 * 1514, round(mbps * 125))
        # As sch_cake does: a target below one and a half packets would never be met.
        target = round(max(_TARGET_MS, 1.5 * _PACKET_BITS / mbps / 1e3), 1)
        # A target is 5 to 10 % of an interval, which is about a round trip (RFC 8289 4.3, 4.4).
        interval = round(max(_INTERVAL_MS, load.idle_ms, 10 * target), 1)
        shaper = Shaper("ue", direction, mbps, burst, target, interval)
        codel = [
            'aqm="fq_codel"',
            f"codel_target_ms={shaper.target_ms}",
            f"codel_interval_ms={shaper.interval_ms}",
        ]
        keys = [f"rate_mbps={mbps}", *codel]
        if not self.ready.has_radio:
            keys += ["enabled=true", f"burst_bytes={burst}"]
        return Candidate(
            f"{LINKS[direction]} shaper",
            f"a shaper with FQ-CoDel at {words} ({rate(mbps)}, {LINKS[direction]})",
            tuple(f"{self.ready.shapers[direction]}.{one}" for one in keys),
            (shaper,),
        )

    def _congestion(self) -> Iterator[Candidate]:
        """The congestion controls that Linux has; one sysctl holds for all flows of a host."""
        for control in ("bbr", "cubic"):
            for direction in self.directions:
                flows = self._of(direction)
                same = all(flow.congestion == control for flow in flows)
                if same or any(flow.has_cubic for flow in flows):
                    continue
                _, sender = _ends(direction)
                yield Candidate(
                    f"{LINKS[direction]} congestion control",
                    f"{control.upper()} for {LINKS[direction]} data",
                    _each(flows, f"congestion={control}"),
                    (Sysctl(sender, "net.ipv4.tcp_congestion_control", control),),
                )

    def _hystart(self) -> Iterator[Candidate]:
        for direction in self.directions:
            flows = [
                flow
                for flow in self._of(direction)
                if flow.congestion == "cubic"
                and flow.slow_start.startswith("hystart-")
                and not flow.has_cubic
            ]
            if flows:
                _, sender = _ends(direction)
                yield Candidate(
                    f"{LINKS[direction]} HyStart",
                    f"CUBIC without HyStart for {LINKS[direction]} data",
                    _each(flows, "slow_start=none"),
                    (Cubic(sender, "hystart", "0"),),
                )

    def _initial_windows(self, direction: Direction, load: Load | None) -> Iterator[Candidate]:
        """What the empty path holds, as far as a receiver's first window admits it."""
        if load is None:
            return
        flows = self._of(direction)
        holds = load.window(load.idle_ms) // _TWICE // _SEGMENT_BYTES
        admits = self.ready.defaults.initial_receive_bytes // _SEGMENT_BYTES
        segments = min(holds, admits)
        if segments <= max(flow.initial_window for flow in flows):
            return
        _, sender = _ends(direction)
        yield Candidate(
            f"{LINKS[direction]} initial window",
            f"an initial window of {segments} segments for {LINKS[direction]} data",
            _each(flows, f"initial_window_segments={segments}"),
            (Route(sender, "initcwnd", segments),),
        )

    def _after_idle(self) -> Iterator[Candidate]:
        """Only files that are written in parts have idle times."""
        for direction in self.directions:
            flows = [
                flow
                for flow in self._of(direction)
                if flow.has_pauses and flow.after_idle != "keep"
            ]
            if flows:
                _, sender = _ends(direction)
                yield Candidate(
                    f"{LINKS[direction]} idle times",
                    f"no slow start after idle times for {LINKS[direction]} data",
                    _each(flows, 'cwnd.after_idle="keep"'),
                    (Sysctl(sender, "net.ipv4.tcp_slow_start_after_idle", "0"),),
                )

    def _ecn(self) -> Iterator[Candidate]:
        """Only where something on the path marks: a queue with CoDel, or a policer."""
        flows = [flow for flow in self.flows if not flow.has_ecn]
        if self.ready.marks and flows:
            yield Candidate(
                "ECN",
                "ECN",
                _each(flows, 'options.ecn="classic"'),
                (
                    Sysctl("ue", "net.ipv4.tcp_ecn", "1"),
                    Sysctl("server", "net.ipv4.tcp_ecn", "1"),
                ),
            )

    def _mss(self) -> Iterator[Candidate]:
        """The largest segments that pass every hop."""
        for direction in self.directions:
            packet = self.ready.largest_packets[direction]
            flows = self._of(direction)
            if packet is None:
                continue
            mss = packet - max(flow.header_bytes for flow in flows)
            if mss >= max(flow.mss_bytes for flow in flows):
                continue
            receiver, _ = _ends(direction)
            yield Candidate(
                f"{LINKS[direction]} segment size",
                f"{LINKS[direction]} segments for packets of {packet} bytes",
                _each(flows, f"mss_bytes={mss}"),
                # The option MSS has no room for the options of later segments (RFC 6691 2).
                (Route(receiver, "advmss", packet - 40),),
            )


_LEAVE_ALONE = "applications must leave SO_SNDBUF and SO_RCVBUF alone (iperf3: no -w)"
_ROLES: list[tuple[Role, ...]] = [("receiver",), ("sender",), ("receiver", "sender")]
_ROLE_WORDS: dict[Role, str] = {"receiver": "receive", "sender": "send"}


def _ends(direction: Direction) -> tuple[End, End]:
    """Return the receiver's and the sender's host."""
    return ("ue", "server") if direction == "down" else ("server", "ue")


def _tuned_send(flow: TcpFlow, memory: int) -> list[str]:
    return flow.sets(f"send_buffer_bytes={memory}", "buffer.send_factor=2")


def _each(flows: Sequence[TcpFlow], setting: str) -> tuple[str, ...]:
    return tuple(one for flow in flows for one in flow.sets(setting))
