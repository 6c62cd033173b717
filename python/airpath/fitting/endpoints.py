"""What a flow reveals about its ends: initial window, segment size, receive window, data sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airpath.base.text import short
from airpath.fitting import application
from airpath.fitting.application import Write
from airpath.fitting.observed import Observed
from airpath.fitting.path import Unknown
from airpath.fitting.series import MS

_LIMITED = 0.1
"""A window that was full for this share of the time limits the sender."""
_MOST_INITIAL = 100
"""Bound: ten usual windows (RFC 6928); more are no initial one."""
_HEADER = 40
"""Bytes of IP and TCP without options (RFC 9293)."""
_LEAST_S = 0.001
"""Bound: of a transfer's length."""
_USUAL = 0.02
"""Share of the segments from which a size is no exception."""


@dataclass
class Endpoints:
    """The ends as far as they are known; None means not identifiable."""

    mss_bytes: int
    header_bytes: int
    initial_window: int | None
    window_bytes: int | None
    """The receive window, where it limited the sender."""
    window_at_least_bytes: int
    size_bytes: int
    closed: bool
    """The sender closed the connection: the transfer was as long as it was seen to be."""
    duration_s: float
    writes: list[Write]
    """What the application wrote between its pauses; empty if it always had something to send."""
    unknown: list[Unknown]


def estimate(seen: Observed, base_rtt_ms: float) -> Endpoints:
    """Estimate the ends from the flow; ``base_rtt_ms`` is the path's."""
    unknown: list[Unknown] = []
    stream = seen.stream
    mss, header = _segment(seen)
    initial = _initial_window(seen)
    if initial is None:
        unknown.append(
            Unknown(
                "initial window",
                "the start of the connection, or its first round trip, was not captured",
                "a capture that starts before the connection",
            )
        )
    window = stream["window"]
    limited = (window["limited_s"] or 0.0) if window else 0.0
    at_least = (window["max_bytes"] or 0) if window else 0
    duration = (seen.sent[-1] - seen.sent[0]) / MS
    limits = bool(duration and limited / duration >= _LIMITED)
    if not limits:
        because = (
            f"it never limited the sender; it was at most {short(at_least / MS)} kB"
            if at_least
            else "its scale is in the handshake, which was not captured"
        )
        unknown.append(
            Unknown("receive window's effect", because, "a faster or longer path to this receiver")
        )
    sent = int((seen.offset + seen.payload).max() - seen.offset.min())
    return Endpoints(
        mss_bytes=mss,
        header_bytes=header,
        initial_window=initial,
        window_bytes=at_least if limits else None,
        window_at_least_bytes=at_least,
        size_bytes=max(1, sent),
        closed=seen.fin is not None and seen.offset.min() == 0,
        duration_s=max(duration, _LEAST_S),
        writes=application.writes(seen, base_rtt_ms),
        unknown=unknown,
    )


def _segment(seen: Observed) -> tuple[int, int]:
    """Payload and headers of full segments, also where offload has joined them."""
    header = int(np.median(seen.size - seen.payload))
    header = max(header, _HEADER)
    receiver = seen.other["options"]
    if seen.stream["larger_than_mss"] and receiver and receiver["mss"]:
        return receiver["mss"] - (header - _HEADER), header
    values, counts = np.unique(seen.payload, return_counts=True)
    # The largest that is no exception.
    usual = values[counts >= max(2, _USUAL * len(seen.payload))]
    return int(usual.max() if len(usual) else values.max()), header


def _initial_window(seen: Observed) -> int | None:
    """Segments before the first acknowledgement of data, or in the first burst."""
    mss = seen.stream["options"]
    if mss is None or seen.offset[0] != 0:
        return None
    if seen.place == "receiver":
        trip = seen.handshake
        if trip[0] is None or trip[2] is None:
            return None
        # Whoever opens the connection, the handshake takes a round trip from its first packet on.
        gap = 0.5 * (trip[2] - trip[0])
        pauses = np.flatnonzero(np.diff(seen.sent) > gap)
        first = seen.payload[: pauses[0] + 1] if len(pauses) else seen.payload
    else:
        acknowledged = seen.ack[seen.ack_offset > 0]
        if not len(acknowledged):
            return None
        first = seen.payload[seen.sent < acknowledged[0]]
    full, _ = _segment(seen)
    count = int(np.ceil(first / full).sum())
    return count if 0 < count <= _MOST_INITIAL else None
