"""What the packets of a capture say of the two hosts: who was put aside by a busy machine."""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

SERVER, UE = 0, 1
"""Places of the capture: its interfaces, in their order."""

PACKET = np.dtype(
    [
        ("time", "<i8"),
        ("place", "<u1"),
        ("down", "<u1"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("payload", "<u4"),
    ]
)
"""A TCP segment: ns, interface, whether it has the address that data come from."""

Packets = npt.NDArray[np.void]

# draft-ietf-opsawg-pcapng 4.3, and LINKTYPE_ETHERNET.
_ENHANCED_PACKET = 6
_BLOCK = struct.Struct("<II")
_HEAD = struct.Struct("<IIIII")
_ETHERNET_BYTES = 14
_IPV4, _TCP = 4, 6


def read(file: Path) -> Packets:
    """The TCP segments over IPv4 of a capture with one flow, in the order of the file."""
    rows: list[tuple[int, int, bytes, int, int, int]] = []
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = 0
        while at < len(data):
            kind, length = _BLOCK.unpack_from(data, at)
            if kind == _ENHANCED_PACKET:
                place, high, low, _, _ = _HEAD.unpack_from(data, at + _BLOCK.size)
                segment = _segment(data, at + _BLOCK.size + _HEAD.size + _ETHERNET_BYTES)
                if segment is not None:
                    rows.append((high << 32 | low, place, *segment))
            at += length
    sent = Counter[bytes]()
    for _, _, source, _, _, payload in rows:
        sent[source] += payload
    # The other end of a file sends some bytes too: it says that it has all.
    senders = {source for source, _ in sent.most_common(1)}
    return np.array(
        [
            (time, place, source in senders, seq, ack, payload)
            for time, place, source, seq, ack, payload in rows
        ],
        dtype=PACKET,
    )


def _segment(data: mmap.mmap, at: int) -> tuple[bytes, int, int, int] | None:
    """Source address, sequence and acknowledgement number, payload; None if it is no TCP."""
    if data[at] >> 4 != _IPV4 or data[at + 9] != _TCP:
        return None
    (total,) = struct.unpack_from(">H", data, at + 2)
    tcp = at + 4 * (data[at] & 15)
    seq, ack = struct.unpack_from(">II", data, tcp + 4)
    return data[at + 12 : at + 16], seq, ack, total - (tcp - at) - 4 * (data[tcp + 12] >> 4)


def held_up(packets: Packets, segments: float) -> float:
    """Share of the data that came to the receiver while it sent no ACK for more than that many."""
    there = packets[packets["place"] == UE]
    came = there[(there["down"] == 1) & (there["payload"] > 0)]["time"]
    acks = there[there["down"] == 0]["time"]
    silences = np.bincount(np.searchsorted(acks, came))
    return float(silences[silences > segments].sum() / max(came.size, 1))


def idle(packets: Packets) -> float:
    """Share of the time, from the first data to the last, without any that is outstanding."""
    there = packets[packets["place"] == SERVER]
    data = (there["down"] == 1) & (there["payload"] > 0)
    if not data.any():
        return 1.0
    # A SYN acknowledges nothing, and its 0 is no number.
    begin = np.flatnonzero(data)[0]
    there, data = there[begin:], data[begin:]
    first = int(there["seq"][0])
    sent = np.where(data, _after(there["seq"], first) + there["payload"], 0)
    acked = np.where(there["down"] == 0, _after(there["ack"], first), 0)
    nothing = np.maximum.accumulate(sent) <= np.maximum.accumulate(acked)
    end = np.flatnonzero(data)[-1]
    if end == 0:
        return 0.0
    times = np.diff(there["time"][: end + 1])
    return float(times[nothing[:end]].sum() / max(times.sum(), 1))


def _after(numbers: npt.NDArray[np.uint32], first: int) -> npt.NDArray[np.int64]:
    """Sequence numbers as offsets from ``first``, 0 for those before; below 2 GB nothing wraps."""
    offsets = (numbers.astype(np.int64) - first) % (1 << 32)
    return np.where(offsets < 1 << 31, offsets, 0)
