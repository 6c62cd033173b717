"""ICMP echo (RFC 792, RFC 4443 4.1): round trips to a host that runs no server of ours.

An echo shows round trips alone: the other host stamps nothing, so neither one-way delays nor the
direction of a loss are known. Its reply is as long as its request. Sockets are those of ping
(icmp(7), ``net.ipv4.ping_group_range``), or raw ones for root.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from contextlib import suppress
from typing import Final

from airpath.errors import AirpathError, reason
from airpath.measure import stamp
from airpath.measure.path_mtu import UpProber
from airpath.measure.prober import Prober, Reply

_HEAD: Final = struct.Struct("!BBHHH")
"""Type, code, checksum, identifier, sequence number."""
_OWN: Final = struct.Struct("!8sIQ")
"""What the data begin with: a secret, the number, the time of sending in nanoseconds."""
_DATA_BYTES: Final = 56
"""Data of a probe, as many as ping sends."""
_TYPES: Final = {socket.AF_INET: (8, 0), socket.AF_INET6: (128, 129)}
"""Types of the request and of the reply."""
_PROTOCOLS: Final = {
    socket.AF_INET: socket.IPPROTO_ICMP,
    socket.AF_INET6: socket.getprotobyname("ipv6-icmp"),
}


def connected(host: str) -> socket.socket:
    """A socket for echoes to a host, given by its address. Raises ``AirpathError``."""
    family, _, _, _, to = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)[0]
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            sock = socket.socket(family, kind, _PROTOCOLS[socket.AddressFamily(family)])
        except PermissionError:
            continue
        try:
            stamp.prepare(sock)
            sock.connect(to)
        except OSError as failed:
            sock.close()
            raise AirpathError(
                f"cannot send ICMP echo requests to {host}: {reason(failed)}"
            ) from None
        return sock
    raise AirpathError(
        "ICMP echo is not permitted to this user: run airpath as root, or set "
        'net.ipv4.ping_group_range to "0 2147483647"'
    )


class Echo:
    """Writes requests for a socket, and recognises the replies to them."""

    def __init__(self, sock: socket.socket) -> None:
        self._request, self._reply = _TYPES[socket.AddressFamily(sock.family)]
        self._has_ip_header = sock.type == socket.SOCK_RAW and sock.family == socket.AF_INET
        self._secret = secrets.token_bytes(8)
        self._identifier = secrets.randbelow(1 << 16)

    def request(self, number: int, sent_ns: int, data_bytes: int = _DATA_BYTES) -> bytearray:
        """A request with this many bytes of data."""
        own = _OWN.pack(self._secret, number & 0xFFFFFFFF, sent_ns)
        data = own + secrets.token_bytes(data_bytes - len(own))
        fields = [self._request, 0, 0, self._identifier, number & 0xFFFF]
        # The kernel writes the checksum of ICMPv6, and that of a ping socket.
        fields[2] = checksum(_HEAD.pack(*fields) + data)
        return bytearray(_HEAD.pack(*fields) + data)

    def reply(self, data: stamp.Data) -> tuple[int, int, int] | None:
        """Number, time of sending and ICMP bytes of a reply; ``None`` for anything else."""
        if self._has_ip_header:
            data = data[4 * (data[0] & 0xF) :] if len(data) else data
        if len(data) < _HEAD.size + _OWN.size or data[0] != self._reply or data[1] != 0:
            return None
        secret, number, sent_ns = _OWN.unpack_from(data, _HEAD.size)
        return (number, sent_ns, len(data)) if secret == self._secret else None


def checksum(data: bytes) -> int:
    """The internet checksum (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Pinger(Prober):
    """A prober whose packets are ICMP echoes; ``sock`` is from :func:`connected`."""

    def __init__(
        self, sock: socket.socket, *, begin: float | None = None, patience_s: float = 3.0
    ) -> None:
        super().__init__(sock, b"", 0, begin=begin, patience_s=patience_s)
        self._echo = Echo(sock)

    def _written(self, sequence: int, sent_ns: int) -> bytearray:
        return self._echo.request(sequence, sent_ns)

    def _take(self, received: stamp.Received, arrived_ns: int) -> None:
        found = self._echo.reply(received.data)
        if found is None:
            # A raw socket also gets what is for others.
            return
        sequence, said_ns, size = found
        if sequence >= len(self._sent_ns) or said_ns != self._sent_ns[sequence]:
            self._seen.invalid += 1
            return
        if self._is_first(sequence):
            sent_ns = self._sent_ns[sequence]
            sent_s, trip_ms = (sent_ns - self._begin_ns) / 1e9, (arrived_ns - sent_ns) / 1e6
            self._seen.replies.append(
                Reply(sequence, sent_s, trip_ms, None, None, None, size, None)
            )


class EchoProber(UpProber):
    """Probes of the path MTU whose replies are as long as they are.

    A size that is answered passes upwards. One that is not may have been lost on the way back,
    where routers may fragment it if it is IPv4.
    """

    def __init__(self, sock: socket.socket) -> None:
        # The header of ICMP is as long as that of UDP.
        super().__init__(sock, 28 if sock.family == socket.AF_INET else 48)
        self._echo = Echo(sock)

    def probe(self, number: int, size: int) -> bytearray:
        """A request with DF; its IP packet has this size."""
        return self._echo.request(number, time.time_ns(), size - self.header)

    def answer(self, received: stamp.Received) -> tuple[int, int] | None:
        """The size that was answered, and when its request was sent."""
        found = self._echo.reply(received.data)
        if found is None:
            return None
        _, sent_ns, length = found
        return length - _HEAD.size + self.header, sent_ns


def why_silent(errors: list[stamp.IcmpError]) -> str:
    """What ICMP said instead of a reply, if anything."""
    with suppress(IndexError):
        last = errors[-1]
        return f": ICMP type {last.type}, code {last.code} from {last.who or 'this host'}"
    return ""
