"""``TCP_INFO``: what the kernel knows of a TCP connection (tcp(7)).

The structure is parsed by the offsets of include/uapi/linux/tcp.h, as far as the kernel filled it:
later kernels have more fields at the end.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from itertools import accumulate
from typing import Final, NamedTuple


class Info(NamedTuple):
    """One reading of ``struct tcp_info``; ``None`` where the kernel does not know a field."""

    time_s: float
    """Seconds since the beginning of the phase."""
    cwnd_segments: int | None
    ssthresh_segments: int | None
    """``None`` also while the sender has no threshold (the kernel's 0x7fffffff)."""
    rtt_ms: float | None
    """Smoothed RTT."""
    rttvar_ms: float | None
    min_rtt_ms: float | None
    unacked_segments: int | None
    retrans_total: int | None
    """Segments retransmitted so far."""
    lost: int | None
    """Segments that the sender now takes for lost."""
    mss_bytes: int | None
    bytes_acked: int | None
    bytes_retrans: int | None
    notsent_bytes: int | None
    delivery_rate_mbps: float | None
    pacing_rate_mbps: float | None
    """``None`` also if the rate is unlimited."""
    busy_ms: float | None
    """Time with data in flight so far, likewise the next two."""
    rwnd_limited_ms: float | None
    sndbuf_limited_ms: float | None
    snd_wnd: int | None
    """The peer's advertised window in bytes."""
    dsack_dups: int | None
    reord_seen: int | None
    state: int
    """Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (``tcpi_ca_state``)."""


_LAYOUT = (
    ("B", "state ca_state retransmits probes backoff options wscale flags"),
    ("I", "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets"),
    ("I", "last_data_sent last_ack_sent last_data_recv last_ack_recv"),
    ("I", "pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering"),
    ("I", "rcv_rtt rcv_space total_retrans"),
    ("Q", "pacing_rate max_pacing_rate bytes_acked bytes_received"),
    ("I", "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
    ("Q", "delivery_rate busy_time rwnd_limited sndbuf_limited"),
    ("I", "delivered delivered_ce"),
    ("Q", "bytes_sent bytes_retrans"),
    ("I", "dsack_dups reord_seen rcv_ooopack snd_wnd"),
)
"""Fields of ``struct tcp_info``, without padding between them (include/uapi/linux/tcp.h)."""
_NAMES = tuple(name for _, names in _LAYOUT for name in names.split())
_SIZES = tuple(struct.calcsize(kind) for kind, names in _LAYOUT for _ in names.split())
_ENDS = tuple(accumulate(_SIZES))
_STRUCT = struct.Struct("=" + "".join(kind * len(names.split()) for kind, names in _LAYOUT))
_MOST_BYTES = 256
_OPT_ECN, _OPT_ECN_SEEN = 8, 16
_NO_THRESHOLD = 0x7FFFFFFF
_UNKNOWN_U32 = 0xFFFFFFFF
UNLIMITED: Final = 0xFFFFFFFFFFFFFFFF


def read_info(sock: socket.socket, time_s: float = 0.0) -> Info:
    """Read ``TCP_INFO`` of a socket; ``time_s`` is copied into the result. Raises ``OSError``."""
    return parse_info(read(sock), time_s)


def read(sock: socket.socket) -> bytes:
    """The ``struct tcp_info`` of a socket, as long as this kernel's is. Raises ``OSError``."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOST_BYTES)


def parse_info(data: bytes, time_s: float = 0.0) -> Info:
    """Parse a ``struct tcp_info`` of any length."""
    known = fields(data)
    ssthresh = known["snd_ssthresh"]
    minimum = known["min_rtt"]
    return Info(
        time_s=time_s,
        cwnd_segments=known["snd_cwnd"],
        ssthresh_segments=None if ssthresh is None or ssthresh >= _NO_THRESHOLD else ssthresh,
        rtt_ms=_thousandth(known["rtt"]),
        rttvar_ms=_thousandth(known["rttvar"]),
        min_rtt_ms=None if minimum == _UNKNOWN_U32 else _thousandth(minimum),
        unacked_segments=known["unacked"],
        retrans_total=known["total_retrans"],
        lost=known["lost"],
        mss_bytes=known["snd_mss"],
        bytes_acked=known["bytes_acked"],
        bytes_retrans=known["bytes_retrans"],
        notsent_bytes=known["notsent_bytes"],
        delivery_rate_mbps=_mbps(known["delivery_rate"]),
        pacing_rate_mbps=_mbps(known["pacing_rate"]),
        busy_ms=_thousandth(known["busy_time"]),
        rwnd_limited_ms=_thousandth(known["rwnd_limited"]),
        sndbuf_limited_ms=_thousandth(known["sndbuf_limited"]),
        snd_wnd=known["snd_wnd"],
        dsack_dups=known["dsack_dups"],
        reord_seen=known["reord_seen"],
        state=known["ca_state"] or 0,
    )


def fields(data: bytes) -> dict[str, int | None]:
    """The fields of a ``struct tcp_info`` of any length, under the kernel's names."""
    known = dict(zip(_NAMES, _STRUCT.unpack_from(data.ljust(_STRUCT.size, b"\0")), strict=True))
    if len(data) >= _STRUCT.size:
        return known
    ends = zip(_NAMES, _ENDS, strict=True)
    return {name: known[name] if end <= len(data) else None for name, end in ends}


def ecn(known: Mapping[str, int | None]) -> dict[str, bool | int | None]:
    """What fields say of ECN (RFC 3168), ``None`` where the kernel does not know it.

    ``ecn``: it was negotiated; ``ecn_seen``: at least one packet arrived with ECT or CE, which says
    something at a receiver of data; ``delivered_ce``: segments of which the peer said CE.
    """
    options = known["options"]
    return {
        "ecn": None if options is None else bool(options & _OPT_ECN),
        "ecn_seen": None if options is None else bool(options & _OPT_ECN_SEEN),
        "delivered_ce": known["delivered_ce"],
    }


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _mbps(bytes_per_s: int | None) -> float | None:
    return None if bytes_per_s is None or bytes_per_s == UNLIMITED else bytes_per_s * 8e-6
