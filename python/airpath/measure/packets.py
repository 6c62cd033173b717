"""Packets of a measurement's own streams, captured at this host (Linux, root or CAP_NET_RAW).

The kernel copies headers into a ring that is read after the phase, so a capture costs the phase no
Python. The ring is never emptied meanwhile: it holds the beginning of a long phase, and memory is
bounded. See packet(7) and the kernel's packet_mmap documentation (TPACKET_V2).
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import NDArray

from airpath.errors import reason

FRAME_BYTES = 256
"""80 of them are the kernel's: 176 remain, more than the headers of IP and TCP with options."""
MOST_PACKETS = 1 << 17
_BLOCK_BYTES = 1 << 16
_SOL_PACKET, _RX_RING, _VERSION = 263, 5, 10
_ETH_P_ALL, _OUTGOING, _LOOPBACK = 3, 4, 772
"""All protocols, the type of an outgoing packet, and ARPHRD_LOOPBACK."""
_SO_ATTACH_FILTER = 26
_TPACKET_V2 = 1
_ADDRESS = 32
"""Where sockaddr_ll begins in a frame: after tpacket2_hdr."""
_NANOSECONDS, _RAW = 0xA1B23C4D, 101
"""Magic number of a pcap file, and its link type without a link layer (LINKTYPE_RAW)."""

_Bytes = NDArray[np.uint8]


class Packets:
    """A packet socket that captures the TCP packets of one port; one capture at a time.

    It is opened before root is given up and used afterwards. Where the system or its rights do not
    allow captures, ``refused`` says why, and captures are empty.
    """

    def __init__(self) -> None:
        self.refused = ""
        self._ring: mmap.mmap | None = None
        self._socket: socket.socket | None = None
        self._busy = threading.Lock()
        try:
            self._socket = _opened()
        except OSError as error:
            self.refused = reason(error)

    def close(self) -> None:
        """Release the ring and the socket."""
        self._release()
        if self._socket is not None:
            self._socket.close()

    @contextmanager
    def capturing(self, port: int, wanted: bool) -> Iterator[Callable[[], bytes]]:
        """Capture TCP to and from a port as long as the context lasts, if that is wanted.

        Afterwards the function returns the packets as a pcap file: those of one interface, without
        any that came after the ring was full. It is empty if another capture runs, or if the kernel
        has no memory for it.
        """
        found = b""
        if not wanted or self._socket is None or not self._busy.acquire(blocking=False):
            yield lambda: b""
            return
        try:
            with suppress(OSError):
                self._start(self._socket, port)
            yield lambda: found
            found = self._stop(self._socket)
        finally:
            self._release()
            self._busy.release()

    def _start(self, sock: socket.socket, port: int) -> None:
        _attach(sock, tcp_filter(port))
        frames = _BLOCK_BYTES // FRAME_BYTES
        blocks = MOST_PACKETS // frames
        size = struct.pack("IIII", _BLOCK_BYTES, blocks, FRAME_BYTES, MOST_PACKETS)
        sock.setsockopt(_SOL_PACKET, _RX_RING, size)
        self._ring = mmap.mmap(sock.fileno(), MOST_PACKETS * FRAME_BYTES)
        _bind(sock, _ETH_P_ALL)

    def _stop(self, sock: socket.socket) -> bytes:
        if self._ring is None:
            return b""
        _bind(sock, 0)
        frames = np.frombuffer(self._ring, dtype=np.uint8).reshape(-1, FRAME_BYTES)
        return pcap(_each_once(frames[_column(frames, 0, np.uint32) & 1 == 1]))

    def _release(self) -> None:
        """Unmap the ring and let the kernel free it."""
        if self._socket is None:
            return
        _bind(self._socket, 0)
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        self._socket.setsockopt(_SOL_PACKET, _RX_RING, bytes(16))


def _opened() -> socket.socket:
    """A packet socket that receives nothing yet. Raises ``OSError``."""
    if not hasattr(socket, "AF_PACKET"):
        raise OSError("captures need Linux")
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    try:
        sock.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
    except BaseException:
        sock.close()
        raise
    return sock


def _column(frames: _Bytes, at: int, kind: type[np.generic]) -> NDArray[np.int64]:
    """A field of each frame."""
    size = np.dtype(kind).itemsize
    found: NDArray[np.int64] = (
        np.ascontiguousarray(frames[:, at : at + size]).view(kind).ravel().astype(np.int64)
    )
    return found


def _each_once(frames: _Bytes) -> _Bytes:
    """Frames of the interface that has the most, each packet once.

    A bridge or a tunnel shows a packet at several interfaces, and the loopback shows it on its way
    out and on its way in.
    """
    if not len(frames):
        return frames
    interface = _column(frames, _ADDRESS + 4, np.int32)
    names, counts = np.unique(interface, return_counts=True)
    frames = frames[interface == names[np.argmax(counts)]]
    if _column(frames[:1], _ADDRESS + 8, np.uint16)[0] != _LOOPBACK:
        return frames
    once: _Bytes = frames[frames[:, _ADDRESS + 10] != _OUTGOING]
    return once


def pcap(frames: _Bytes) -> bytes:
    """Frames of a ring as a pcap file with times in nanoseconds."""
    head = struct.pack("<IHHiIII", _NANOSECONDS, 2, 4, 0, 0, FRAME_BYTES, _RAW)
    if not len(frames):
        return head
    place = int(_column(frames[:1], 14, np.uint16)[0])
    data = frames[:, place:]
    length, kept = _column(frames, 4, np.uint32), _column(frames, 8, np.uint32)
    kept = np.minimum(kept, data.shape[1])
    fields = (_column(frames, 16, np.uint32), _column(frames, 20, np.uint32), kept, length)
    heads = np.stack(fields, axis=1).astype("<u4").view(np.uint8)
    rows = np.concatenate([heads, data], axis=1)
    wanted = np.arange(rows.shape[1]) < 16 + kept[:, None]
    return head + rows[wanted].tobytes()


def tcp_filter(port: int) -> bytes:
    """A classic BPF program for TCP to or from a port over IPv4 and IPv6, without later fragments.

    Instructions are those of the kernel's filter.rst; offsets those of RFC 791, 8200 and 9293.
    """
    load_byte, load_half, load_half_at_x = 0x30, 0x28, 0x48
    header_length, shift, equal, any_set, give = 0xB1, 0x74, 0x15, 0x45, 0x06
    v6, accept, reject, on = 12, 19, 20, None
    program: list[tuple[int, int, int | None, int | None]] = [
        (load_byte, 0, on, on),
        (shift, 4, on, on),
        (equal, 4, on, v6),
        (load_byte, 9, on, on),
        (equal, socket.IPPROTO_TCP, on, reject),
        (load_half, 6, on, on),
        (any_set, 0x1FFF, reject, on),
        (header_length, 0, on, on),
        (load_half_at_x, 0, on, on),
        (equal, port, accept, on),
        (load_half_at_x, 2, on, on),
        (equal, port, accept, reject),
        (equal, 6, on, reject),
        (load_byte, 6, on, on),
        (equal, socket.IPPROTO_TCP, on, reject),
        (load_half, 40, on, on),
        (equal, port, accept, on),
        (load_half, 42, on, on),
        (equal, port, accept, reject),
        (give, 0xFFFF, on, on),
        (give, 0, on, on),
    ]
    return b"".join(
        struct.pack("HBBI", code, *(0 if to is None else to - at - 1 for to in (yes, no)), value)
        for at, (code, value, yes, no) in enumerate(program)
    )


def _bind(sock: socket.socket, protocol: int) -> None:
    """Receive packets of a protocol on all interfaces; 0: of none. Python only binds to one."""
    place = struct.pack("=HHiHBB8x", socket.AF_PACKET, socket.htons(protocol), 0, 0, 0, 0)
    if ctypes.CDLL(None, use_errno=True).bind(sock.fileno(), place, len(place)):
        raise OSError(ctypes.get_errno(), "cannot capture packets")


def _attach(sock: socket.socket, program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HP", len(program) // 8, ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)
