"""One TCP flow of a capture, segment by segment, and from where it was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpath import _core
from airpath.errors import InputError, reason

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

LEAST_SEGMENTS = 50
"""Segments with data below which nothing is fitted."""
_MOST_STEP_BACK_S = 1.0
"""Several processors that capture at the same time differ by much less."""
_NEAR = 0.25
"""An end whose share of the round trip is below this is next to the capture point."""


@dataclass(frozen=True)
class Observed:
    """A flow: times are milliseconds after the capture's first packet, lengths bytes."""

    file: str
    flow: dict[str, Any]
    sender: str
    """``client`` or ``server``: whose data is looked at."""
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
    ack_size: Ints
    is_pure: Bools
    handshake: tuple[float | None, float | None, float | None]
    fin: float | None
    cut: bool
    report: dict[str, Any] = field(repr=False)

    @property
    def stream(self) -> dict[str, Any]:
        """The report of this direction."""
        stream: dict[str, Any] = self.flow["tcp"][f"from_{self.sender}"]
        return stream

    @property
    def other(self) -> dict[str, Any]:
        """The report of the other direction."""
        other = "server" if self.sender == "client" else "client"
        stream: dict[str, Any] = self.flow["tcp"][f"from_{other}"]
        return stream

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
    sender = max(("client", "server"), key=lambda end: chosen["tcp"][f"from_{end}"]["data_bytes"])
    data = chosen["tcp"][f"from_{sender}"]
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


def _choose(file: str, report: dict[str, Any], flow: int | None) -> dict[str, Any]:
    flows = [one for one in report["flows"] if one["tcp"]]
    if flow is not None:
        flows = [one for one in flows if one["id"] == flow]
        if not flows:
            raise InputError(f"{file}: there is no TCP flow {flow}: see `airpath diagnose {file}`")
    if not flows:
        raise InputError(f"{file}: there is no TCP flow to fit a scenario to")

    def payload(one: dict[str, Any]) -> tuple[int, int]:
        streams = (one["tcp"]["from_client"], one["tcp"]["from_server"])
        most: int = max(stream["data_bytes"] for stream in streams)
        return most, -one["id"]

    chosen: dict[str, Any] = max(flows, key=payload)
    return chosen


def arrays(
    file: str, report: dict[str, Any], flow: dict[str, Any], sender: str, raw: dict[str, Any]
) -> Observed:
    """What ``read_segments`` or ``read_flows`` returned of the data of ``sender``."""

    def numbers(name: str) -> Floats:
        found: Floats = np.frombuffer(raw[name], dtype="<f8")
        return found

    def times(name: str) -> Floats:
        return numbers(name) / 1e6

    def whole(name: str) -> Ints:
        return numbers(name).astype(np.int64)

    first, second, third = (None if at is None else at / 1e6 for at in raw["handshake_ns"])
    return Observed(
        file=file,
        flow=flow,
        sender=sender,
        place=_place(flow, sender, (first, second, third)),
        sent=times("sent_ns"),
        frame=whole("frame"),
        offset=whole("offset"),
        payload=whole("payload"),
        size=whole("size"),
        sent_again=whole("sent_again"),
        is_again=numbers("is_again") > 0,
        after_gap=numbers("after_gap") > 0,
        acked=times("acked_ns"),
        timestamp=numbers("timestamp"),
        echo=numbers("echo"),
        ack=times("ack_ns"),
        ack_timestamp=numbers("ack_timestamp"),
        delivered=whole("delivered"),
        ack_offset=whole("ack_offset"),
        window=whole("window"),
        ack_size=whole("ack_size"),
        is_pure=numbers("is_pure") > 0,
        handshake=(first, second, third),
        fin=None if raw["fin_ns"] is None else raw["fin_ns"] / 1e6,
        cut=raw["cut"],
        report=report,
    )


def _place(
    flow: dict[str, Any], sender: str, handshake: tuple[float | None, float | None, float | None]
) -> str:
    """Next to which end the flow was captured, by the round trips on both sides."""
    there = flow["tcp"][f"from_{sender}"]["rtt_ms"]
    receiver_side = there["min"] if there else None
    sender_side = None
    first, second, third = handshake
    if first is not None and second is not None and third is not None:
        sides = {"server": second - first, "client": third - second}
        sender_side = sides.pop(sender)
        (receiver_side,) = sides.values()
    elif (back := flow["tcp"]["from_server" if sender == "client" else "from_client"])["rtt_ms"]:
        sender_side = back["rtt_ms"]["min"]
    if receiver_side is None or sender_side is None:
        return "sender"
    whole = receiver_side + sender_side
    if sender_side <= _NEAR * whole:
        return "sender"
    return "receiver" if receiver_side <= _NEAR * whole else "between"
