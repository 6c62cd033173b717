"""TCP test streams: data in one direction as fast as TCP sends it, and the kernel's view of it.

Both ends of a measurement use these functions, the sender in one role and the receiver in the
other. A stream carries random bytes without meaning. The sender reads ``TCP_INFO`` every 10 ms; the
receiver notes how many bytes arrived and when. Each stream has a thread of its own.

A stream ends abruptly: the sender closes with a reset (``SO_LINGER`` 0), so that data in its send
buffer is discarded, and the receiver treats a reset after data as the end.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import math
import os
import re
import select
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from airpath.errors import InputError, reason
from airpath.measure import checked, tcp_info
from airpath.measure.control import ProtocolError
from airpath.measure.tcp_info import Info, read_info

__all__ = [
    "INTERVAL_S", "MOST_ENTRIES", "MOST_WINDOW", "Info", "OptionError", "Options", "Role",
    "StreamReport", "accepted", "available", "connect", "in_force", "read_info", "receive",
    "reset", "send",
]  # fmt: skip

Role = Literal["sender", "receiver"]

INTERVAL_S = 0.01
"""Time between two readings of ``TCP_INFO``, and between two entries of a receiver, in seconds."""

MOST_ENTRIES = 20_000
"""Most entries that a report keeps; a longer stream is downsampled to every second one."""

MOST_WINDOW = 1 << 26
"""Most bytes that a stream may ask for as a socket buffer."""

_CHUNK_BYTES = 1 << 18
_SINK_BYTES = 1 << 22
_SO_MAX_PACING_RATE = 47
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_TCP_WINDOW_CLAMP = 10
_UNLIMITED_PACING = 0xFFFFFFFF
_SYSCTL = Path("/proc/sys/net")


class OptionError(InputError):
    """The kernel refused an option of a stream, or did something else than was asked."""


@dataclass(frozen=True)
class Options:
    """Options of a stream; ``None`` leaves the system's own setting."""

    congestion: str | None = None
    """Name of the sender's congestion control (``TCP_CONGESTION``)."""
    pacing_mbps: float | None = None
    """Upper bound of the sender's rate (``SO_MAX_PACING_RATE``), of all streams together."""
    mss_bytes: int | None = None
    """Upper bound of the MSS in both directions (``TCP_MAXSEG`` of the end that connects)."""
    window_bytes: int | None = None
    """The receiver's ``SO_RCVBUF`` and the sender's ``SO_SNDBUF``. The kernel doubles the value for
    its own overhead, so the advertised window reaches between one and two times this size."""

    def __post_init__(self) -> None:
        name = self.congestion
        if name is not None and not re.fullmatch(r"[a-z0-9_-]{1,15}", name):
            raise InputError(f"congestion = {name!r} is not the name of a congestion control")
        bounds = {
            "pacing_mbps": (0.01, 400_000),
            "mss_bytes": (88, 32767),
            "window_bytes": (4096, MOST_WINDOW),
        }
        for key, (least, most) in bounds.items():
            value = getattr(self, key)
            if value is not None and not least <= value <= most:
                raise InputError(f"{key} is {value}, but must be from {least} to {most}")

    def to_json(self) -> dict[str, object]:
        """The options that are set."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, value: object) -> Options:
        """Parse options from a peer; raises ``ProtocolError`` that names the field."""
        fields = checked.table(value, "options")
        kinds: dict[str, tuple[type, ...]] = {
            "congestion": (str,),
            "pacing_mbps": (int, float),
            "mss_bytes": (int,),
            "window_bytes": (int,),
        }
        for key, given in fields.items():
            if key not in kinds:
                raise ProtocolError(f"options: {key[:40]!r} is not an option of a stream")
            if given is not None and (isinstance(given, bool) or not isinstance(given, kinds[key])):
                raise ProtocolError(f"options: {key} has the wrong type")
        try:
            return cls(**fields)
        except InputError as wrong:
            raise ProtocolError(f"options: {wrong}") from None


@dataclass
class StreamReport:
    """A stream as one end saw it."""

    bytes: int = 0
    """Bytes that arrived (receiver), or that the peer acknowledged (sender)."""
    duration_s: float = 0.0
    """From the beginning of the phase to the last byte (receiver), or to the end (sender)."""
    arrived: list[tuple[float, int]] = field(default_factory=list)
    """Receiver only: seconds since the beginning of the phase, bytes that had arrived by then.

    The first arrival, and the last of each 10 ms in which bytes arrived.
    """
    info: list[Info] = field(default_factory=list)
    """Sender only: readings of ``TCP_INFO``."""
    totals: Info | None = None
    """Sender only, if nobody read its ``TCP_INFO``: what it said of the whole stream."""
    options_in_force: dict[str, object] = field(default_factory=dict)
    """Options that are in force at the end, see :func:`in_force`."""
    error: str | None = None

    def to_json(self, most: int = MOST_ENTRIES) -> dict[str, object]:
        """The report by columns, with at most ``most`` entries each."""
        arrived, info = _downsampled(self.arrived, most), _downsampled(self.info, most)
        return {
            "bytes": self.bytes,
            "duration_s": round(self.duration_s, 6),
            "arrived": {
                "time_s": [round(at, 5) for at, _ in arrived],
                "bytes": [count for _, count in arrived],
            },
            "info": {
                name: [_rounded(value) for value in column]
                for name, column in zip(Info._fields, zip(*info, strict=True), strict=False)
            },
            "options_in_force": self.options_in_force,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, value: object) -> StreamReport:
        """Parse a report from a peer; raises ``ProtocolError`` that names the field."""
        table = checked.table(value, "stream")
        arrived = _columns(table.get("arrived", {}), "arrived", ("time_s", "bytes"))
        info = _columns(table.get("info", {}), "info", Info._fields)
        return cls(
            bytes=checked.whole(table, "bytes"),
            duration_s=checked.number(table, "duration_s"),
            arrived=[(float(at or 0), int(count or 0)) for at, count in arrived],
            info=[_info(row) for row in info],
            options_in_force=checked.table(table.get("options_in_force", {}), "options_in_force"),
            error=checked.text(table, "error"),
        )


# --- Opening ----------------------------------------------------------------------------------


def connect(
    address: tuple[str, int], options: Options, role: Role, *, streams: int = 1, timeout_s: float
) -> socket.socket:
    """Connect a stream of the near end; the options are set before the handshake.

    ``streams`` is the number among which the pacing rate is divided. Raises ``OptionError`` for
    what the kernel refuses, and ``OSError`` if there is no connection.
    """
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    family, kind, protocol, _, place = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        _configure(sock, options, role, streams)
        if options.mss_bytes is not None:
            _set(sock, (socket.IPPROTO_TCP, socket.TCP_MAXSEG), options.mss_bytes, "mss_bytes")
        sock.settimeout(timeout_s)
        sock.connect(place)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if (
            role == "sender"
            and options.congestion is not None
            and _congestion(sock) != options.congestion
        ):
            # The route has one of its own (congctl, ip-route(8)), which the handshake set.
            _set_congestion(sock, options.congestion)
        if options.mss_bytes is not None and _mss(sock) > options.mss_bytes:
            raise OptionError(f"mss_bytes = {options.mss_bytes}: the kernel uses {_mss(sock)}")
    except BaseException:
        sock.close()
        raise
    return sock


def accepted(sock: socket.socket, options: Options, role: Role, *, streams: int = 1) -> None:
    """Set the options of a stream that the far end accepted; likewise raises ``OptionError``.

    The MSS was agreed in the handshake: the end that connects limits it for both directions.
    """
    _configure(sock, options, role, streams)
    if role == "receiver" and options.window_bytes is not None:
        # The handshake chose the limit of the window for a smaller buffer.
        _set(sock, (socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP), options.window_bytes, "window_bytes")


def _configure(sock: socket.socket, options: Options, role: Role, streams: int) -> None:
    if options.window_bytes is not None:
        _set_buffer(sock, role, options.window_bytes)
    if role != "sender":
        return
    if options.congestion is not None:
        _set_congestion(sock, options.congestion)
    if options.pacing_mbps is not None:
        rate = max(1, round(options.pacing_mbps * 1e6 / 8 / streams))
        packed = struct.pack("=Q", rate)
        _set(sock, (socket.SOL_SOCKET, _SO_MAX_PACING_RATE), packed, "pacing_mbps")
        if _pacing(sock) != rate:
            raise OptionError(f"pacing_mbps = {options.pacing_mbps}: the kernel did not keep it")


def _set(sock: socket.socket, option: tuple[int, int], value: int | bytes, key: str) -> None:
    try:
        sock.setsockopt(*option, value)
    except OSError as refused:
        shown = value if isinstance(value, int) else int.from_bytes(value, sys.byteorder)
        raise OptionError(f"{key} = {shown}: the kernel refuses it: {reason(refused)}") from None


def _set_congestion(sock: socket.socket, name: str) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as refused:
        said = f"congestion = {name}: {reason(refused)}; available: {', '.join(available())}"
        if refused.errno == errno.EPERM:
            allowed = _sysctl("ipv4/tcp_allowed_congestion_control")
            said = f"congestion = {name}: only root may use it; allowed: {', '.join(allowed)}"
        raise OptionError(said) from None
    if _congestion(sock) != name:
        raise OptionError(f"congestion = {name}: the kernel uses {_congestion(sock)}")


def _set_buffer(sock: socket.socket, role: Role, size: int) -> None:
    """Set a buffer; root may exceed the limit of the system."""
    name, option, force, limit = (
        ("SO_SNDBUF", socket.SO_SNDBUF, _SO_SNDBUFFORCE, "core/wmem_max")
        if role == "sender"
        else ("SO_RCVBUF", socket.SO_RCVBUF, _SO_RCVBUFFORCE, "core/rmem_max")
    )
    _set(sock, (socket.SOL_SOCKET, option), size, "window_bytes")
    # socket(7): the kernel doubles the value, and says the doubled value.
    if sock.getsockopt(socket.SOL_SOCKET, option) < 2 * size:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, force, size)
    if sock.getsockopt(socket.SOL_SOCKET, option) < 2 * size:
        most = " ".join(_sysctl(limit))
        key = "net." + limit.replace("/", ".")
        raise OptionError(f"window_bytes = {size}: {name} is at most {most} ({key})")


def available() -> list[str]:
    """Names of the congestion controls that this kernel has (loaded or built in)."""
    return _sysctl("ipv4/tcp_available_congestion_control")


def setting(name: str) -> int | None:
    """A number of ``/proc/sys/net``, such as ``ipv4/tcp_ecn``; None if there is none."""
    found = _sysctl(name)
    return int(found[0]) if found and found[0].isdecimal() else None


def buffer_limit(name: str) -> int | None:
    """Bytes of ``net.core.rmem_max`` or ``wmem_max``: what a socket of a user may set."""
    found = _sysctl(f"core/{name}")
    return int(found[0]) if found else None


def _sysctl(name: str) -> list[str]:
    try:
        return (_SYSCTL / name).read_text(encoding="ascii").split()
    except OSError:
        return []


# --- What the kernel says ---------------------------------------------------------------------


def in_force(sock: socket.socket) -> dict[str, object]:
    """Options that getsockopt reports, and ECN; the kernel doubles the sizes of buffers."""
    known = tcp_info.fields(tcp_info.read(sock))
    pacing = _pacing(sock)
    return {
        "congestion": _congestion(sock),
        "mss_bytes": known["snd_mss"],
        "advertised_mss_bytes": known["advmss"],
        "receive_buffer_bytes": sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        "send_buffer_bytes": sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        "pacing_mbps": None if pacing is None else round(pacing * 8e-6, 6),
        **tcp_info.ecn(known),
    }


def _congestion(sock: socket.socket) -> str:
    name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.split(b"\0")[0].decode("ascii", "replace")


def _pacing(sock: socket.socket) -> int | None:
    """The most bytes per second, for each stream; ``None`` if unlimited."""
    rate = int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, 8), sys.byteorder)
    return None if rate in (tcp_info.UNLIMITED, _UNLIMITED_PACING) else rate


def _mss(sock: socket.socket) -> int:
    return read_info(sock).mss_bytes or 0


# --- Sending and receiving --------------------------------------------------------------------


@functools.cache
def _chunk() -> memoryview:
    """Random bytes, so that no link compresses them."""
    return memoryview(os.urandom(_CHUNK_BYTES))


def send(
    sock: socket.socket,
    duration_s: float,
    stop: threading.Event,
    most_bytes: int | None = None,
    *,
    begin: float | None = None,
    ending: Callable[[StreamReport], None] = lambda _: None,
) -> StreamReport:
    """Send for ``duration_s`` or until ``stop``, then close the socket with a reset.

    After ``most_bytes`` it sends no more, and waits until they are acknowledged. ``begin`` is the
    beginning of the phase by ``time.monotonic()``: now, if it is not given. ``ending`` is called
    before the reset.
    """
    begin = time.monotonic() if begin is None else begin
    report = StreamReport()
    info = _Kept[Info]()
    sock.setblocking(False)
    sender = _Sender(sock, begin + duration_s, stop, math.inf if most_bytes is None else most_bytes)
    try:
        sender.run(begin, info)
    except OSError as failed:
        report.error = f"sending failed: {reason(failed)}"
    report.duration_s = time.monotonic() - begin
    report.info = info.entries
    with suppress(OSError):
        report.bytes = max(0, sender.handed - _unacknowledged(sock))
        report.options_in_force = in_force(sock)
    ending(report)
    reset(sock)
    return report


class _Sender:
    """The loop of a sender: it sends, sleeps while the buffer is full, and reads TCP_INFO."""

    def __init__(self, sock: socket.socket, end: float, stop: threading.Event, most: float) -> None:
        self.handed = 0
        self._sock, self._end, self._stop, self._most = sock, end, stop, most

    def run(self, begin: float, info: _Kept[Info]) -> None:
        sock, chunk, most = self._sock, _chunk(), self._most
        poller = select.poll()
        poller.register(sock, select.POLLOUT)
        due = begin
        while True:
            now = time.monotonic()
            if now >= due:
                info.add(read_info(sock, now - begin))
                due = now + info.interval_s
            if now >= self._end or self._stop.is_set():
                return
            left = most - self.handed
            if left <= 0:
                if _unacknowledged(sock) == 0:
                    return
                self._stop.wait(max(0.0, min(due, self._end) - now))
                continue
            try:
                self.handed += sock.send(chunk if left >= _CHUNK_BYTES else chunk[: int(left)])
            except BlockingIOError:
                poller.poll(1000 * max(0.0, min(due, self._end) - time.monotonic()))


def receive(
    sock: socket.socket,
    stop: threading.Event,
    most_bytes: int | None = None,
    *,
    begin: float | None = None,
    most_s: float | None = None,
    ending: Callable[[StreamReport], None] = lambda _: None,
) -> StreamReport:
    """Receive until the sender ends, ``stop``, ``most_bytes`` or ``most_s``; close the socket.

    ``begin`` is the beginning of the phase by ``time.monotonic()``: now, if it is not given.
    ``ending`` is called before the socket is closed.
    """
    begin = time.monotonic() if begin is None else begin
    report = StreamReport()
    arrived = _Kept[tuple[float, int]]()
    receiver = _Receiver(
        sock,
        math.inf if most_s is None else begin + most_s,
        stop,
        math.inf if most_bytes is None else most_bytes,
    )
    try:
        receiver.run(begin, arrived)
    except OSError as failed:
        if receiver.total == 0 or not isinstance(failed, ConnectionResetError):
            report.error = f"receiving failed: {reason(failed)}"
    if receiver.total:
        arrived.add((receiver.last - begin, receiver.total))
        report.duration_s = receiver.last - begin
    report.bytes = receiver.total
    report.arrived = arrived.entries
    with suppress(OSError):
        report.options_in_force = in_force(sock)
    ending(report)
    reset(sock)
    return report


class _Receiver:
    """The loop of a receiver; the kernel discards the bytes (tcp(7), ``MSG_TRUNC``)."""

    def __init__(self, sock: socket.socket, end: float, stop: threading.Event, most: float) -> None:
        self.total = 0
        self.last = 0.0
        self._sock, self._end, self._stop, self._most = sock, end, stop, most

    def run(self, begin: float, arrived: _Kept[tuple[float, int]]) -> None:
        sock, sink = self._sock, _sink()
        sock.setblocking(True)
        patience = struct.pack("@ll", 0, 20_000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        clock, stopped, truncate = time.monotonic, self._stop.is_set, socket.MSG_TRUNC
        recv_into = sock.recv_into
        due = -math.inf
        while not stopped() and self.total < self._most:
            try:
                count = recv_into(sink, 0, truncate)
            except BlockingIOError:
                if clock() >= self._end:
                    return
                continue
            if count == 0:
                return
            now = clock()
            if now >= due:
                # The last arrival of the interval that is over, or the first of all.
                arrived.add((self.last - begin, self.total) if self.total else (now - begin, count))
                due = now - (now - begin) % arrived.interval_s + arrived.interval_s
            self.total += count
            self.last = now
            if now >= self._end:
                return


@functools.cache
def _sink() -> bytearray:
    """A buffer that nothing is written to, where the kernel knows MSG_TRUNC."""
    return bytearray(_SINK_BYTES)


def reset(sock: socket.socket) -> None:
    """Close a connection at once; what is in its buffers is discarded."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("@ii", 1, 0))
    sock.close()


def _unacknowledged(sock: socket.socket) -> int:
    """Bytes in the send buffer that the peer has not acknowledged (``SIOCOUTQ``, tcp(7))."""
    count = fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4)
    return int.from_bytes(count, sys.byteorder)


Entry = TypeVar("Entry")


class _Kept(Generic[Entry]):
    """Entries in the order of time, each once; when there are too many, every second one goes."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.interval_s = INTERVAL_S

    def add(self, entry: Entry) -> None:
        if self.entries[-1:] == [entry]:
            return
        self.entries.append(entry)
        if len(self.entries) >= MOST_ENTRIES:
            del self.entries[::2]
            self.interval_s *= 2


# --- JSON -------------------------------------------------------------------------------------


def _downsampled(entries: Sequence[Entry], most: int) -> Sequence[Entry]:
    """At most ``most`` entries, evenly spaced, the last one among them."""
    step = -(-len(entries) // max(1, most))
    return entries if step <= 1 else entries[(len(entries) - 1) % step :: step]


def _rounded(value: float | None) -> float | int | None:
    return round(value, 5) if isinstance(value, float) else value


def _columns(value: object, what: str, names: Sequence[str]) -> list[tuple[float | None, ...]]:
    """Rows of a table that is given by columns; a column that is missing is unknown."""
    table = checked.table(value, what)
    columns = {name: table[name] for name in names if name in table}
    lengths = set()
    for name, column in columns.items():
        if not isinstance(column, list) or len(column) > MOST_ENTRIES:
            raise ProtocolError(f"stream: {what}.{name} is not a list of at most {MOST_ENTRIES}")
        for entry in column:
            if entry is not None and (
                isinstance(entry, bool) or not isinstance(entry, int | float)
            ):
                raise ProtocolError(f"stream: {what}.{name} has an entry that is not a number")
        lengths.add(len(column))
    if len(lengths) > 1:
        raise ProtocolError(f"stream: the columns of {what} differ in length")
    nothing = [None] * next(iter(lengths), 0)
    return list(zip(*(columns.get(name, nothing) for name in names), strict=True))


def _info(row: Sequence[float | None]) -> Info:
    """A reading from JSON: counters and sizes are whole numbers, times and rates are not."""
    typed: list[Any] = [
        value if value is None or name.endswith(("_ms", "_mbps", "_s")) else int(value)
        for name, value in zip(Info._fields, row, strict=True)
    ]
    info = Info(*typed)
    return info._replace(time_s=info.time_s or 0.0, state=info.state or 0)
