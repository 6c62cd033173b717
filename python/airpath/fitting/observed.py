"""One TCP flow of a capture, segment by segment, and from where it was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airpath import _core
from airpath.documents import CaptureReport, FlowReport, Segments, StreamReport
from airpath.errors import InputError, reason
from airpath.readers.flows import End, main_sender, stream, tcp_flows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEAST_SEGMENTS = 50
"""Segments with data below which nothing is fitted."""
NS = 1e6
"""In a millisecond."""
_MOST_STEP_BACK_S = 1.0
"""Several processors that capture at the same time differ by much less."""
_NEAR = 0.25
"""An end whose share of the round trip is below this is next to the capture point."""


@dataclass(frozen=True)
class Observed:
    """A flow: times are milliseconds after the capture's first packet, lengths bytes."""

    file: str
    flow: FlowReport
    sender: End
    """The end whose data is examined."""
    place: str
    """``sender``, ``receiver`` or ``between``: which end the capture point is next to."""
    sent: Floats
    frame: Ints
    """Numbers of packets in the file, from 1 on."""
    offset: Ints
    payload: Ints
    size: Ints
    sent_again: Ints
    is_again: Bools
    after_gap: Bools
    acked: Floats
    """NaN: not acknowledged, or retransmitted itself."""
    timestamp: Floats
    echo: Floats
    ack: Floats
    ack_timestamp: Floats
    delivered: Ints
    ack_offset: Ints
    window: Ints
    """As it stands in the header of each acknowledgement, not scaled."""
    is_pure: Bools
    handshake: tuple[float | None, float | None, float | None]
    fin: float | None
    cut: bool
    report: CaptureReport = field(repr=False)

    @property
    def stream(self) -> StreamReport:
        """The report of this direction."""
        return stream(self.flow, self.sender)

    @property
    def other(self) -> StreamReport:
        """The report of the other direction."""
        return stream(self.flow, "server" if self.sender == "client" else "client")

    @property
    def is_full(self) -> Bools:
        """Which segments are full ones."""
        full: Bools = self.payload >= self.payload.max()
        return full

    @property
    def opened_by_sender(self) -> bool:
        """The end with the data sent the SYN."""
        return self.sender == "client"


def observe(file: str, flow: int | None = None) -> Observed:
    """Read the flow of that number, or else the one with the most payload.

    Raises ``InputError`` if there is no such flow, or it has too little data.
    """
    path = Path(file)
    try:
        path.open("rb").close()
        report = _core.read_capture(path)
    except OSError as error:
        raise InputError(f"cannot read {file}: {reason(error)}") from None
    except ValueError as error:
        raise InputError(str(error)) from None
    chosen = _choose(file, report, flow)
    sender = main_sender(chosen)
    data = stream(chosen, sender)
    if data["data_packets"] < LEAST_SEGMENTS:
        raise InputError(
            f"{file}: flow {chosen['id']} has {data['data_packets']} segments with data, but "
            f"at least {LEAST_SEGMENTS} are needed to estimate its path"
        )
    if not chosen["from_client"]["packets"] or not chosen["from_server"]["packets"]:
        raise InputError(
            f"{file}: only one direction of flow {chosen['id']} was captured, so there are no "
            "round trips to fit. Capture both directions at one interface"
        )
    back = report["largest_step_back_s"]
    if back > _MOST_STEP_BACK_S:
        raise InputError(
            f"{file}: packet times go back by up to {back:.4g} s, so a clock was set, or files "
            "were merged: a fit needs times in order"
        )
    raw = _core.read_segments(path, chosen["id"], sender == "client")
    return arrays(file, report, chosen, sender, raw)


def _choose(file: str, report: CaptureReport, flow: int | None) -> FlowReport:
    flows = tcp_flows(report)
    if flow is not None:
        flows = [one for one in flows if one["id"] == flow]
        if not flows:
            raise InputError(f"{file}: there is no TCP flow {flow}: see `airpath diagnose {file}`")
    if not flows:
        raise InputError(f"{file}: there is no TCP flow to fit a scenario to")

    return max(flows, key=lambda one: (stream(one, main_sender(one))["data_bytes"], -one["id"]))


def numbers(column: bytes) -> Floats:
    """Return a column of ``read_flows`` or ``read_segments`` as an array."""
    found: Floats = np.frombuffer(column, dtype="<f8")
    return found


def arrays(
    file: str, report: CaptureReport, flow: FlowReport, sender: End, raw: Segments
) -> Observed:
    """What ``read_segments`` or ``read_flows`` returned of the data of ``sender``."""

    def times(column: bytes) -> Floats:
        return numbers(column) / NS

    def whole(column: bytes) -> Ints:
        return numbers(column).astype(np.int64)

    first, second, third = (None if at is None else at / NS for at in raw["handshake_ns"])
    sent, ack = times(raw["sent_ns"]), times(raw["ack_ns"])
    echo, ack_timestamp = numbers(raw["echo"]), numbers(raw["ack_timestamp"])
    trips = echo_trips(sent, echo, ack, ack_timestamp)
    return Observed(
        file=file,
        flow=flow,
        sender=sender,
        place=_place(flow, sender, (first, second, third), trips),
        sent=sent,
        frame=whole(raw["frame"]),
        offset=whole(raw["offset"]),
        payload=whole(raw["payload"]),
        size=whole(raw["size"]),
        sent_again=whole(raw["sent_again"]),
        is_again=numbers(raw["is_again"]) > 0,
        after_gap=numbers(raw["after_gap"]) > 0,
        acked=times(raw["acked_ns"]),
        timestamp=numbers(raw["timestamp"]),
        echo=echo,
        ack=ack,
        ack_timestamp=ack_timestamp,
        delivered=whole(raw["delivered"]),
        ack_offset=whole(raw["ack_offset"]),
        window=whole(raw["window"]),
        is_pure=numbers(raw["is_pure"]) > 0,
        handshake=(first, second, third),
        fin=None if raw["fin_ns"] is None else raw["fin_ns"] / NS,
        cut=raw["cut"],
        report=report,
    )


def echo_trips(sent: Floats, echo: Floats, ack: Floats, ack_timestamp: Floats) -> Floats:
    """Times from acknowledgements to data that echoes them (RFC 7323 3); NaN: it echoes none."""
    known = np.flatnonzero(~np.isnan(ack_timestamp))
    trips: Floats = np.full(len(sent), np.nan)
    if not len(known):
        return trips
    stamps, first = np.unique(ack_timestamp[known], return_index=True)
    place = np.minimum(np.searchsorted(stamps, echo), len(stamps) - 1)
    echoes = stamps[place] == echo
    trips[echoes] = sent[echoes] - ack[known[first[place[echoes]]]]
    return trips


def _place(
    flow: FlowReport,
    sender: End,
    handshake: tuple[float | None, float | None, float | None],
    trips: Floats,
) -> str:
    """Next to which end the flow was captured, by the shortest round trips on both sides."""
    receiver_side: list[float] = []
    sender_side: list[float] = []
    if there := stream(flow, sender)["rtt_ms"]:
        receiver_side.append(there["min"])
    if back := stream(flow, "server" if sender == "client" else "client")["rtt_ms"]:
        sender_side.append(back["min"])
    first, second, third = handshake
    if first is not None and second is not None and third is not None:
        to_server, to_client = second - first, third - second
        receiver_side.append(to_server if sender == "client" else to_client)
        sender_side.append(to_client if sender == "client" else to_server)
    if not np.isnan(trips).all():
        sender_side.append(float(np.nanmin(trips)))
    if not receiver_side or not sender_side:
        return "sender"
    near, far = min(sender_side), min(receiver_side)
    if near <= _NEAR * (near + far):
        return "sender"
    return "receiver" if far <= _NEAR * (near + far) else "between"
