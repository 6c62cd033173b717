"""The outcome of a phase of a measurement, and the record that is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from airpath.fitting.observed import Floats
from airpath.measure.datagrams import Load, UdpReport
from airpath.measure.document import (
    Ecn,
    Figures,
    Mtu,
    Record,
    Responses,
    Samples,
    Shown,
    Trips,
    Udp,
)
from airpath.measure.intervals import merged, ramp
from airpath.measure.path_mtu import MtuReport
from airpath.measure.plan import Phase
from airpath.measure.prober import Probes
from airpath.measure.stream import Info, StreamReport

LEAST_REPLIES = 5
"""Replies from which figures of a phase's probes are taken."""
_STEP_S = 0.1
"""Time between two samples that are kept."""


@dataclass(frozen=True)
class Outcome:
    """A phase as it went; times are seconds since the start of the measurement."""

    phase: Phase
    started_s: float = 0.0
    ended_s: float = 0.0
    senders: Sequence[StreamReport] = ()
    receivers: Sequence[StreamReport] = ()
    """The receivers of the same streams, in the same order."""
    probes: Probes | None = None
    mtu: MtuReport | None = None
    shown: Mapping[str, Shown] = field(default_factory=dict)
    """What captures at the ``near`` and the ``far`` end show."""
    packets: bytes = b""
    """The capture at the near end, as a pcap file."""
    udp: tuple[Load, UdpReport] | None = None
    responses: Responses | None = None
    """Requests beside the load; ``loaded_ms`` is still empty."""
    errors: Sequence[str] = field(default_factory=tuple)
    capped: bool = False
    """Whether it hit its byte limit before its time was up."""

    @property
    def lasted_s(self) -> float:
        """How long data was sent."""
        if self.capped:
            return max(_STEP_S, *(one.duration_s for one in self.receivers))
        return self.phase.duration_s


def record(outcome: Outcome) -> Record:
    """Make the record of a phase."""
    carried = bool(outcome.receivers)
    lasted_s = outcome.lasted_s
    pairs = list(zip(outcome.senders, outcome.receivers, strict=True))
    return {
        "number": outcome.phase.number,
        "started_s": round(outcome.started_s, 6),
        "ended_s": round(outcome.ended_s, 6),
        "figures": _figures(outcome) if carried else None,
        "samples": _samples(outcome) if carried else None,
        "seconds": [_seconds(*pair, lasted_s) for pair in pairs],
        "probes": None if outcome.probes is None else _trips(outcome.probes),
        "mtu": None if outcome.mtu is None else _mtu(outcome.mtu),
        "shown": dict(outcome.shown) or None,
        "udp": None if outcome.udp is None else _udp(*outcome.udp),
        "responses": None if outcome.responses is None else _responses(outcome, outcome.responses),
        "errors": list(outcome.errors),
    }


def _figures(outcome: Outcome) -> Figures:
    lasted_s = outcome.lasted_s
    found = ramp(merged([one.arrived for one in outcome.receivers]), lasted_s)
    steady_from_s = found.converged_after_s
    since_s = outcome.started_s + (lasted_s / 2 if steady_from_s is None else steady_from_s)
    last = [one.totals or one.info[-1] for one in outcome.senders if one.totals or one.info]
    counts = [one.retrans_total for one in last]
    # A sender that is not there, or does not count them, leaves them unknown.
    is_known = len(counts) == len(outcome.senders) and None not in counts
    again = sum(one or 0 for one in counts)
    carried = sum(one.bytes for one in outcome.receivers)
    # What a queue still held at the end arrives later.
    in_time = sum(float(_delivered(one, np.array(lasted_s))) for one in outcome.receivers)
    sent = sum(-(-(one.bytes_acked or 0) // max(1, one.mss_bytes or 1)) for one in last)
    in_force = outcome.senders[0].options_in_force
    return {
        "goodput_mbps": in_time * 8e-6 / lasted_s,
        "steady_mbps": max(0.0, found.steady_mbps),
        "ramp_s": steady_from_s,
        "retransmitted_segments": again if is_known else None,
        "segments": sent + again,
        "limited": _limited(last),
        "loaded_ms": _loaded(outcome.probes, since_s),
        "congestion": str(in_force["congestion"]) if "congestion" in in_force else None,
        "carried_bytes": carried,
        "ecn": _ecn(outcome.senders, outcome.receivers),
    }


def _ecn(senders: Sequence[StreamReport], receivers: Sequence[StreamReport]) -> Ecn:
    """What both ends' kernels say of ECN; a far end may say anything."""
    ends = [one.options_in_force for one in (*senders, *receivers)]
    marked = [one.options_in_force.get("delivered_ce") for one in senders]
    return {
        "negotiated": all(one.get("ecn") is True for one in ends),
        "arrives": all(one.options_in_force.get("ecn_seen") is True for one in receivers),
        "marked_segments": sum(max(0, one) for one in marked if isinstance(one, int)),
    }


def _limited(last: Sequence[Info]) -> dict[str, float]:
    busy = sum(one.busy_ms or 0.0 for one in last)
    if not busy:
        return {}
    windows = sum(one.rwnd_limited_ms or 0.0 for one in last)
    buffers = sum(one.sndbuf_limited_ms or 0.0 for one in last)
    return {"receive_window": windows / busy, "send_buffer": buffers / busy}


def _loaded(probes: Probes | None, since_s: float) -> float | None:
    if probes is None:
        return None
    trips = [one.rtt_ms for one in probes.replies if one.sent_s >= since_s]
    return float(np.median(trips)) if len(trips) >= LEAST_REPLIES else None


def _samples(outcome: Outcome) -> Samples:
    ends = np.arange(_STEP_S, outcome.lasted_s + 1e-6, _STEP_S)
    arrived = sum((_delivered(one, ends) for one in outcome.receivers), np.zeros(len(ends)))
    rows = [_at(one.info, ends) for one in outcome.senders]
    return {
        "time_s": [round(float(at), 3) for at in ends],
        "delivered_bytes": [int(total) for total in arrived],
        "cwnd_segments": _summed(rows, "cwnd_segments", len(ends)),
        "ssthresh_segments": _summed(rows, "ssthresh_segments", len(ends)),
        "srtt_ms": [
            max((one[at].rtt_ms or 0.0 for one in rows if one), default=0.0) or None
            for at in range(len(ends))
        ],
        "inflight_segments": _summed(rows, "unacked_segments", len(ends)),
    }


def _delivered(receiver: StreamReport, ends: Floats) -> Floats:
    times = [0.0, *(at for at, _ in receiver.arrived)]
    totals = [0.0, *(float(total) for _, total in receiver.arrived)]
    found: Floats = np.interp(ends, times, totals)
    return found


def _at(info: Sequence[Info], ends: Floats) -> list[Info]:
    """The last reading before each time, or the first one."""
    times = np.array([one.time_s for one in info])
    return [info[max(0, int(at) - 1)] for at in np.searchsorted(times, ends)] if info else []


def _summed(rows: Sequence[Sequence[Info]], name: str, count: int) -> list[int | None]:
    columns = [[getattr(each, name) for each in one] for one in rows if one]
    if not columns:
        return [None] * count
    return [
        None if any(value is None for value in row) else sum(row)
        for row in zip(*columns, strict=True)
    ]


def _seconds(
    sender: StreamReport, receiver: StreamReport, lasted_s: float
) -> list[list[float | None]]:
    """Rows of bytes, retransmissions, cwnd in bytes and smoothed RTT in ms, one a second."""
    ends = np.arange(1, int(lasted_s) + 1, dtype=float)
    arrived = np.diff(_delivered(receiver, ends), prepend=0.0)
    readings = _at(sender.info, ends)
    again = np.diff([float(one.retrans_total or 0) for one in readings], prepend=0.0)
    rows: list[list[float | None]] = []
    for at, carried in enumerate(arrived):
        if not readings:
            rows.append([float(carried), None, None, None])
            continue
        one = readings[at]
        cwnd = (one.cwnd_segments or 0) * (one.mss_bytes or 0)
        rows.append([float(carried), float(again[at]), float(cwnd), one.rtt_ms])
    return rows


def _trips(probes: Probes) -> Trips:
    rows: list[tuple[float, float | None, float | None]] = [
        (one.sent_s, round(max(one.rtt_ms, 0.0), 4), _rounded(one.out_ms)) for one in probes.replies
    ]
    rows += [(one.sent_s, None, None) for one in probes.lost]
    rows.sort(key=lambda one: one[0])
    return {
        "sent_s": [round(at, 6) for at, _, _ in rows],
        "rtt_ms": [trip for _, trip, _ in rows],
        "out_ms": [out for _, _, out in rows],
    }


def _responses(outcome: Outcome, found: Responses) -> Responses:
    """What was measured once the rate was steady."""
    ramp_s = _figures(outcome)["ramp_s"]
    steady_s = outcome.lasted_s / 2 if ramp_s is None else ramp_s
    ends = np.arange(steady_s, outcome.lasted_s, _STEP_S)
    since_s = outcome.started_s + steady_s
    rows = zip(found["sent_s"], found["tcp_ms"], found["request_ms"], strict=True)
    steady = [row for row in rows if row[0] >= since_s]
    return {
        "sent_s": [row[0] for row in steady],
        "tcp_ms": [row[1] for row in steady],
        "request_ms": [row[2] for row in steady],
        "loaded_ms": [
            one.rtt_ms
            for sender in outcome.senders
            for one in _at(sender.info, ends)
            if one.rtt_ms is not None
        ],
    }


def _udp(load: Load, report: UdpReport) -> Udp:
    lengths = [length for _, length in report.loss_bursts]
    seconds = max(report.duration_s, 1 / load.per_s)
    return {
        "sent_mbps": (report.sent or 0) * load.size_bytes * 8e-6 / load.duration_s,
        "received_mbps": report.bytes * 8e-6 / seconds,
        "size_bytes": load.size_bytes,
        "sent": report.sent or 0,
        "lost": report.lost or 0,
        "duplicates": report.duplicates,
        "reordered": report.reordered,
        "discarded": report.discarded,
        "loss_bursts": len(lengths),
        "longest_burst": max(lengths, default=0),
        "jitter_ms": report.jitter_ms,
        "delay_ms": report.delay_variation_ms,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _mtu(report: MtuReport) -> Mtu:
    return {
        "path_bytes": report.path_bytes,
        "too_large_bytes": report.too_large_bytes,
        "too_large_sent": sum(
            one.sent for one in report.tried if one.size_bytes == report.too_large_bytes
        ),
        "black_hole": report.is_black_hole,
        "icmp": [
            f"type {one.type}, code {one.code}"
            + ("" if one.mtu is None else f", MTU {one.mtu}")
            + ("" if one.who is None else f" from {one.who}")
            for one in report.icmp
        ],
    }
