"""STAMP, the Simple Two-Way Active Measurement Protocol, in authenticated mode.

Packets are those of RFC 8762 (4.2.2 and 4.3.2) with the session identifier of RFC 8972 (3): 112
bytes, of which an HMAC-SHA-256 truncated to 128 bits covers the first 96. A longer packet ends with
an Extra Padding TLV (RFC 8972 4.1). The reflector numbers its replies itself (it is "stateful", RFC
8762 4), so that the sender can tell in which direction a packet was lost.

`prober.Prober` is the Session-Sender of the near end. :class:`Reflector` owns the far end's UDP
socket and is the Session-Reflector of every :class:`Session`.

Datagrams of other tests have the same layout and the same HMAC. Their kind, phase and value are in
octets 4 to 15, which are zero in STAMP.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import os
import select
import socket
import struct
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from airpath.errors import AirpathError, reason

PACKET_BYTES: Final = 112
"""Bytes of a packet in authenticated mode."""

# What a datagram is for. Only the first kind is STAMP's.
STAMP: Final = 0
HELLO: Final = 1
"""Near to far: the tests of this phase use the address that this datagram comes from."""
HELLO_ANSWER: Final = 2
LOAD_UP: Final = 3
LOAD_DOWN: Final = 4
PROBE_UP: Final = 5
"""Near to far, with DF: its size is tested."""
PROBE_ANSWER: Final = 6
"""Far to near: the value is the size of the UDP payload that arrived."""
PROBE_DOWN: Final = 7
"""Far to near, with DF: its size is tested; the value is the size of the IP packet."""

MOST_PER_S: Final = 2000.0
"""Replies per second that a reflector sends in a session."""

Data: TypeAlias = bytes | bytearray | memoryview

Address: TypeAlias = tuple[Any, ...]
"""As ``socket`` writes it: host and port, and with IPv6 flow information and scope."""

_COVERED = 96
_HMAC_BYTES = 16
_NTP_EPOCH_S = 2_208_988_800
ERROR_ESTIMATE: Final = 32 << 8 | 1
"""RFC 4656 4.1.2: not synchronised to UTC; 2^32 units of 2^-32 s, 1 s."""
_EXTRA_PADDING = 1
_UNRECOGNISED = 0x80
_HEAD = struct.Struct("!IBxxxIIQHH")
_TAIL = struct.Struct("!Q8xI12xQH6xB15x")
_MOST_DATAGRAM = 65_536
_SO_TIMESTAMPNS, _SO_RXQ_OVFL = 35, 40
_IP_RECVTTL, _IP_TTL = 12, 2
_IPV6_RECVHOPLIMIT, _IPV6_HOPLIMIT = 51, 52
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE = 10, 23, 3
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_BUFFER_BYTES = 4 << 20


# --- Packets ----------------------------------------------------------------------------------


class Packet(NamedTuple):
    """The part that packets of both directions have."""

    sequence: int
    kind: int
    phase: int
    value: int
    time_ns: int
    """The sender's clock when it sent the packet, in nanoseconds since 1970 (UTC)."""
    error: int
    """Error estimate of the clock (RFC 4656 4.1.2), as it is on the wire."""
    ssid: int


class Reflected(NamedTuple):
    """Fields that a reflector adds to its reply."""

    received_ns: int
    sequence: int
    """Sequence number of the packet that this answers; the next three are that packet's too."""
    time_ns: int
    error: int
    ttl: int


def mac_key(secret: bytes) -> bytes:
    """Derive the HMAC key of a session's datagrams from the session's secret."""
    return hmac.digest(secret, b"airpath-measure datagrams", "sha256")


def to_ntp(time_ns: int) -> int:
    """Nanoseconds since 1970 as a 64-bit NTP timestamp (RFC 5905 6)."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return (seconds + _NTP_EPOCH_S & 0xFFFFFFFF) << 32 | (rest << 32) // 1_000_000_000


def from_ntp(stamp: int) -> int:
    """Nanoseconds since 1970 of an NTP timestamp between 1970 and 2106."""
    seconds = (stamp >> 32) - _NTP_EPOCH_S
    if seconds < 0:
        seconds += 1 << 32
    return seconds * 1_000_000_000 + ((stamp & 0xFFFFFFFF) * 1_000_000_000 + (1 << 31) >> 32)


def blank(size: int = PACKET_BYTES) -> bytearray:
    """Space for a packet; what exceeds 112 bytes is an Extra Padding TLV of random bytes."""
    packet = bytearray(size)
    rest = size - PACKET_BYTES
    if rest < 0:
        raise ValueError(f"a packet has at least {PACKET_BYTES} bytes, not {size}")
    if rest >= 4:
        # RFC 8972 4: flags (U set by the sender), type, length of the value.
        struct.pack_into("!BBH", packet, PACKET_BYTES, _UNRECOGNISED, _EXTRA_PADDING, rest - 4)
        packet[PACKET_BYTES + 4 :] = os.urandom(rest - 4)
    return packet


def write(buffer: bytearray | memoryview, key: bytes, packet: Packet) -> None:
    """Write a packet into a buffer that :func:`blank` made, and sign it."""
    sequence, kind, phase, value, time_ns, error, ssid = packet
    _HEAD.pack_into(buffer, 0, sequence, kind, phase, value, to_ntp(time_ns), error, ssid)
    sign(buffer, key)


def write_reflected(buffer: bytearray, key: bytes, packet: Packet, reflected: Reflected) -> None:
    """Write a reflector's reply and sign it."""
    received_ns, sequence, time_ns, error, ttl = reflected
    stamps = to_ntp(received_ns), sequence, to_ntp(time_ns), error, ttl
    _TAIL.pack_into(buffer, _HEAD.size + 4, *stamps)
    write(buffer, key, packet)


def sign(buffer: bytearray | memoryview, key: bytes) -> None:
    """Write the HMAC of the first 96 bytes behind them (RFC 8762 4.4)."""
    buffer[_COVERED:PACKET_BYTES] = hmac.digest(key, buffer[:_COVERED], "sha256")[:_HMAC_BYTES]


def is_valid(data: Data, key: bytes) -> bool:
    """Whether a packet is long enough and has the right HMAC, compared in constant time."""
    if len(data) < PACKET_BYTES:
        return False
    right = hmac.digest(key, data[:_COVERED], "sha256")[:_HMAC_BYTES]
    return hmac.compare_digest(right, data[_COVERED:PACKET_BYTES])


def decode(data: Data) -> Packet:
    """Parse the first part of a packet of at least 112 bytes; the HMAC is not checked."""
    sequence, kind, phase, value, stamp, error, ssid = _HEAD.unpack_from(data)
    return Packet(sequence, kind, phase, value, from_ntp(stamp), error, ssid)


def decode_reflected(data: Data) -> Reflected:
    """Parse what a reflector added to a packet of at least 112 bytes."""
    received, sequence, stamp, error, ttl = _TAIL.unpack_from(data, _HEAD.size + 4)
    return Reflected(from_ntp(received), sequence, from_ntp(stamp), error, ttl)


# --- Sockets ----------------------------------------------------------------------------------


class Received(NamedTuple):
    """A datagram."""

    data: memoryview
    """Valid until the next datagram is read into the same buffer."""
    address: Address
    time_ns: int
    """The kernel's time of arrival, by the real-time clock."""
    ttl: int
    """TTL or hop limit; 0 if it is unknown."""
    discarded: int = 0
    """Datagrams that the socket discarded so far because its buffer was full (SO_RXQ_OVFL)."""


def decode_valid(received: Received, key: bytes, ssid: int, phase: int, kind: int) -> Packet | None:
    """Parse a datagram of a test; ``None`` if it is invalid or of another kind or phase."""
    if not is_valid(received.data, key):
        return None
    packet = decode(received.data)
    right = (packet.ssid, packet.phase, packet.kind) == (ssid, phase, kind)
    return packet if right else None


class IcmpError(NamedTuple):
    """An error that the kernel reported about a datagram of this socket (ip(7), IP_RECVERR)."""

    time: float
    """By ``time.monotonic()``."""
    origin: Literal["local", "icmp", "icmp6", "other"]
    type: int
    code: int
    mtu: int | None
    """If the datagram was too large: the next hop's MTU as the sender of the error says it."""
    who: str | None
    """The sender of the ICMP error."""
    to: Address
    """Destination of the datagram that caused it."""


def bound(host: str, port: int) -> socket.socket:
    """A UDP socket of the far end; ``host`` "" or "::" is IPv6 and IPv4. Raises ``OSError``."""
    either = host in ("", "::")
    found = socket.getaddrinfo(
        "::" if either else host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if either else 1)
        prepare(sock)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


def connected(host: str, port: int) -> socket.socket:
    """A UDP socket of the near end, connected to the far end. Raises ``OSError``."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    sock = socket.socket(family, kind, protocol)
    try:
        prepare(sock)
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def prepare(sock: socket.socket) -> None:
    """Set what all tests with datagrams need: non-blocking, stamps, TTL, ICMP errors, buffers, DF.

    DF is set on every datagram, and the kernel's idea of the path MTU is ignored
    (``IP_PMTUDISC_PROBE``): a datagram arrives whole or not at all.
    """
    sock.setblocking(False)
    for option in (_SO_TIMESTAMPNS, _SO_RXQ_OVFL):
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    # A dual-stack socket needs the options of IPv4 too.
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
        sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_PROBE)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVHOPLIMIT, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE)


Transmit: TypeAlias = Callable[[bytearray], int | None]
"""Sends a datagram; returns the number of an error, or None."""


def transmitter(sock: socket.socket) -> Transmit:
    """A function that sends datagrams to the address to which a socket is connected."""

    def transmit(data: bytearray) -> int | None:
        try:
            sock.send(data)
        except OSError as failed:
            return failed.errno or errno.EIO
        return None

    return transmit


def header_bytes(address: Address) -> int:
    """Bytes of the IP and UDP headers of a datagram to or from an address."""
    parsed = ipaddress.ip_address(str(address[0]).split("%")[0])
    is_six = parsed.version == 6 and getattr(parsed, "ipv4_mapped", None) is None
    return 48 if is_six else 28


class Inbox:
    """Reads datagrams and their ancillary data from a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._view = memoryview(bytearray(_MOST_DATAGRAM))
        self._poller = select.poll()
        self._poller.register(sock, select.POLLIN)
        self.errors: deque[IcmpError] = deque(maxlen=256)
        """Errors that the kernel reported about datagrams that this socket sent."""

    def wait(self, seconds: float) -> bool:
        """Wait for datagrams; collects errors meanwhile. Whether there is something to read."""
        events = self._poller.poll(max(0.0, 1000 * seconds))
        if events and events[0][1] & select.POLLERR:
            self._read_errors()
        return bool(events)

    def read(self) -> Received | None:
        """The next datagram; ``None`` if there is none now."""
        while True:
            try:
                size, ancillary, _, address = self._sock.recvmsg_into([self._view], 256)
            except BlockingIOError:
                return None
            except OSError as failed:
                # An ICMP error; its particulars are in the error queue.
                if failed.errno in (errno.EBADF, errno.ENOTSOCK):
                    raise
                self._read_errors()
                continue
            stamp, ttl, discarded = _ancillary(ancillary)
            at_ns = stamp or time.time_ns()
            return Received(self._view[:size], address, at_ns, ttl, discarded)

    def _read_errors(self) -> None:
        # Reading SO_ERROR clears it; otherwise the next call fails with it.
        self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        for _ in range(256):
            try:
                _, ancillary, _, to = self._sock.recvmsg(0, 512, socket.MSG_ERRQUEUE)
            except OSError:
                return
            for level, kind, data in ancillary:
                if (level, kind) in (
                    (socket.IPPROTO_IP, _IP_RECVERR),
                    (socket.IPPROTO_IPV6, _IPV6_RECVERR),
                ):
                    self.errors.append(_icmp_error(data, to))


def _ancillary(ancillary: Sequence[tuple[int, int, bytes]]) -> tuple[int | None, int, int]:
    """The kernel's stamp in nanoseconds, the TTL, and how many datagrams the socket discarded."""
    stamp, ttl, discarded = None, 0, 0
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, rest = struct.unpack("@ll", data[:16])
            stamp = seconds * 1_000_000_000 + rest
        elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
            discarded = struct.unpack("@I", data[:4])[0]
        elif (level, kind) in (
            (socket.IPPROTO_IP, _IP_TTL),
            (socket.IPPROTO_IPV6, _IPV6_HOPLIMIT),
        ):
            ttl = struct.unpack("@i", data[:4])[0] & 0xFF
    return stamp, ttl, discarded


def _icmp_error(data: bytes, to: Address) -> IcmpError:
    """Parse ``struct sock_extended_err`` and the address that follows it (ip(7))."""
    number, origin, kind, code, info = struct.unpack_from("@IBBBxI", data)
    origins: dict[int, Literal["local", "icmp", "icmp6"]] = {1: "local", 2: "icmp", 3: "icmp6"}
    mtu = info if number == errno.EMSGSIZE and info else None
    who = _offender(data[16:]) if origin != 1 else None
    return IcmpError(time.monotonic(), origins.get(origin, "other"), kind, code, mtu, who, to)


def _offender(address: bytes) -> str | None:
    if len(address) < 8:
        return None
    family = struct.unpack_from("@H", address)[0]
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[4:8])
    if family == socket.AF_INET6 and len(address) >= 24:
        # An IPv6 socket gets IPv4 addresses in mapped form (RFC 4291 2.5.5.2).
        return socket.inet_ntop(socket.AF_INET6, address[8:24]).removeprefix("::ffff:")
    return None


# --- The far end ------------------------------------------------------------------------------

Sink: TypeAlias = Callable[[Packet, int, int], None]
"""Takes a valid datagram: its packet, bytes of the UDP payload, time of arrival in nanoseconds."""


class Session:
    """A session as the far end's UDP socket knows it. Its methods may be called by any thread."""

    def __init__(self, secret: bytes, ssid: int, *, most_per_s: float = MOST_PER_S) -> None:
        if not 0 < ssid < 1 << 16:
            raise ValueError(f"{ssid} is not a STAMP session identifier, 1 to 65535 (RFC 8972 3)")
        self.key = mac_key(secret)
        self.ssid = ssid
        self.reflected = 0
        """Replies so far."""
        self.invalid = 0
        """Datagrams with this SSID and a wrong HMAC."""
        self.discarded = 0
        """Datagrams that the socket had discarded when the newest one of this session arrived."""
        self.limited = 0
        """Datagrams without a reply because there were too many."""
        self._bucket = _Bucket(most_per_s)
        self._replies: OrderedDict[Address, int] = OrderedDict()
        self._addresses: OrderedDict[int, tuple[int, Address]] = OrderedDict()
        self._sinks: dict[tuple[int, int], Sink] = {}
        self._changed = threading.Condition()

    def expect(self, phase: int, kind: int, sink: Sink) -> None:
        """Pass datagrams of a kind in a phase to ``sink``, in the reflector's thread."""
        self._sinks[phase, kind] = sink

    def forget(self, phase: int, kind: int) -> None:
        """Ignore these datagrams from now on."""
        self._sinks.pop((phase, kind), None)

    def address(self, phase: int, patience_s: float, stop: threading.Event) -> Address:
        """The address from which the newest valid HELLO of a phase came; waits for the first.

        Raises ``AirpathError`` if none arrives in time.
        """
        end = time.monotonic() + patience_s
        with self._changed:
            while phase not in self._addresses:
                left = end - time.monotonic()
                if left <= 0 or stop.is_set():
                    raise AirpathError(
                        f"no UDP datagram of phase {phase} arrived within {patience_s:g} s"
                    )
                self._changed.wait(min(left, 0.1))
            return self._addresses[phase][1]

    def _hello(self, packet: Packet, address: Address) -> bool:
        """Keep the address of the newest HELLO; a repeated one proves nothing."""
        with self._changed:
            newest = self._addresses.get(packet.phase)
            if newest is not None and packet.sequence <= newest[0]:
                return False
            self._addresses[packet.phase] = (packet.sequence, address)
            while len(self._addresses) > 64:
                self._addresses.popitem(last=False)
            self._changed.notify_all()
            return True

    def _count(self, address: Address) -> int:
        """The number of the next STAMP reply to an address."""
        number = self._replies.pop(address, 0)
        self._replies[address] = number + 1
        while len(self._replies) > 16:
            self._replies.popitem(last=False)
        return number


class _Bucket:
    """A token bucket (RFC 2697 has the idea): a rate, and bursts of a tenth of a second."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, rate / 10)
        self._tokens, self._at = self._most, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Reflector:
    """The far end's UDP socket: it answers valid datagrams of its sessions, and nobody else.

    ``sock`` is from :func:`bound`. One thread calls :meth:`run`; others may call the rest.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sessions: dict[int, Session] = {}
        self._inbox = Inbox(sock)

    def add(self, session: Session) -> None:
        """Serve a session. Raises ``ValueError`` if its SSID is in use."""
        if self._sessions.setdefault(session.ssid, session) is not session:
            raise ValueError(f"the SSID {session.ssid} is in use")

    def remove(self, session: Session) -> None:
        """Serve a session no longer."""
        self._sessions.pop(session.ssid, None)

    def run(self, stop: threading.Event) -> None:
        """Read and answer until ``stop``."""
        inbox = self._inbox
        while not stop.is_set():
            if not inbox.wait(0.1):
                continue
            for _ in range(256):
                received = inbox.read()
                if received is None:
                    break
                self._take(received)

    def send(self, data: bytes | bytearray | memoryview, address: Address) -> int | None:
        """Send a datagram of a test; the error's number if the kernel refused it."""
        try:
            self._sock.sendto(data, address)
        except OSError as failed:
            return failed.errno or errno.EIO
        return None

    def errors(self, to: Address, since: float) -> list[IcmpError]:
        """Errors about datagrams to an address since a time by ``time.monotonic()``."""
        return [one for one in list(self._inbox.errors) if one.time >= since and one.to == to]

    def _take(self, received: Received) -> None:
        data = received.data
        if len(data) < PACKET_BYTES:
            return
        packet = decode(data)
        session = self._sessions.get(packet.ssid)
        if session is None:
            return
        if not is_valid(data, session.key):
            session.invalid += 1
            return
        if packet.kind in (STAMP, HELLO, PROBE_UP):
            if session._bucket.take():
                self._answer(session, packet, received)
            else:
                session.limited += 1
            return
        session.discarded = received.discarded
        sink = session._sinks.get((packet.phase, packet.kind))
        if sink is not None:
            sink(packet, len(data), received.time_ns)

    def _answer(self, session: Session, packet: Packet, received: Received) -> None:
        """Reply to a datagram; never with more bytes than it had."""
        data, address, kind = received.data, received.address, packet.kind
        if kind == HELLO and not session._hello(packet, address):
            return
        reply = bytearray(PACKET_BYTES if kind == PROBE_UP else len(data))
        if kind != PROBE_UP:
            reply[PACKET_BYTES:] = data[PACKET_BYTES:]
            if len(data) >= PACKET_BYTES + 4 and data[PACKET_BYTES + 1] == _EXTRA_PADDING:
                reply[PACKET_BYTES] &= ~_UNRECOGNISED
        new = Packet(
            sequence=session._count(address) if kind == STAMP else packet.sequence,
            kind={STAMP: STAMP, HELLO: HELLO_ANSWER, PROBE_UP: PROBE_ANSWER}[kind],
            phase=packet.phase,
            value=len(data) if kind == PROBE_UP else packet.value,
            time_ns=time.time_ns(),
            error=ERROR_ESTIMATE,
            ssid=session.ssid,
        )
        reflected = Reflected(
            received.time_ns, packet.sequence, packet.time_ns, packet.error, received.ttl
        )
        write_reflected(reply, session.key, new, reflected)
        if self.send(reply, address) is None:
            session.reflected += 1


# --- The near end -----------------------------------------------------------------------------


def hello(sock: socket.socket, key: bytes, ssid: int, phase: int) -> None:
    """Send a HELLO of a phase: the far end's tests of this phase use the address of this socket.

    ``key`` is from :func:`mac_key`. Raises ``AirpathError`` if the kernel refuses to send.
    """
    # Grows from one to the next, also from socket to socket.
    sequence = time.monotonic_ns() // 1_000_000 & 0xFFFFFFFF
    packet = blank()
    write(packet, key, Packet(sequence, HELLO, phase, 0, time.time_ns(), ERROR_ESTIMATE, ssid))
    try:
        sock.send(packet)
    except (BlockingIOError, ConnectionRefusedError):
        return
    except OSError as failed:
        raise AirpathError(f"sending a UDP datagram failed: {reason(failed)}") from None
