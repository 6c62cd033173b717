"""The path MTU by datagrams with DF, as RFC 8899 searches for it.

The sender's kernel fragments nothing and ignores what it knows of the path
(``IP_PMTUDISC_PROBE``). Upwards the far end answers each probe with a short reply that says which
size arrived, so that a small MTU of the other direction hides nothing. Downwards the far end sends
sizes on request, and the near end sees which of them arrive.

ICMP errors (RFC 1191, RFC 4443) are reported, but a size counts as too large only if its probes did
not arrive: the errors may be lost, or forged.
"""

from __future__ import annotations

import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from airpath.errors import AirpathError
from airpath.measure import checked, stamp
from airpath.measure.control import ProtocolError
from airpath.measure.datagrams import PATIENCE_S, Direction

TRIES: Final = 3
"""How often a size is tried (MAX_PROBES, RFC 8899 5.1.2)."""

_TICK_S = 0.001


@dataclass(frozen=True)
class IcmpReport:
    """An ICMP error about a probe that was too large."""

    who: str | None
    """Who sent it."""
    version: Literal[4, 6]
    type: int
    code: int
    mtu: int | None
    """The MTU of the next hop that it says."""


@dataclass(frozen=True)
class Tried:
    """Fate of the probes of one size."""

    size_bytes: int
    """Size of the IP packet."""
    sent: int
    arrived: bool
    refused: bool
    """The sender's own interface refuses the size."""


@dataclass(frozen=True)
class MtuReport:
    """The largest IP packet with DF that arrives in one direction."""

    direction: Direction
    path_bytes: int | None
    """The largest size that arrived; ``None`` if no size did."""
    tried: list[Tried]
    """In the order of size."""
    icmp: list[IcmpReport]
    """ICMP errors that the sender of the probes received, each once."""
    error: str | None = None

    @property
    def too_large_bytes(self) -> int | None:
        """The smallest size beyond ``path_bytes`` that did not arrive; ``None``: all arrived."""
        least = self.path_bytes or 0
        return min((one.size_bytes for one in self._lost if one.size_bytes > least), default=None)

    @property
    def is_black_hole(self) -> bool:
        """Whether sizes are lost that the sender's interface lets out, without an ICMP error."""
        return bool(self._lost) and not self.icmp and not any(one.refused for one in self._lost)

    @property
    def _lost(self) -> list[Tried]:
        return [one for one in self.tried if not one.arrived]

    def to_json(self) -> dict[str, object]:
        """All fields, and what follows from them."""
        more = {"too_large_bytes": self.too_large_bytes, "is_black_hole": self.is_black_hole}
        return {**asdict(self), **more}


@dataclass(frozen=True)
class Probed:
    """One round of probes downwards, as their sender knows it."""

    sent: dict[int, int]
    """Number of probes of each size."""
    refused: list[int]
    """Sizes that its interface refuses."""
    icmp: list[IcmpReport]
    error: str | None = None

    def to_json(self) -> dict[str, object]:
        """All fields; the sizes as pairs."""
        return {**asdict(self), "sent": [list(pair) for pair in self.sent.items()]}

    @classmethod
    def from_json(cls, value: object) -> Probed:
        """Parse what a peer sent; raises ``ProtocolError`` that names the field."""
        table = checked.table(value, "mtu")
        sent = checked.pairs(table, "sent", _MOST_SIZES)
        refused = checked.rows(table, "refused", _MOST_SIZES)
        if not all(map(checked.is_whole, refused)):
            raise ProtocolError("mtu: refused is not a list of sizes")
        icmp = [_icmp_from_json(one) for one in checked.rows(table, "icmp", _MOST_SIZES)]
        return cls(dict(sent), refused, icmp, checked.text(table, "error"))


_MOST_SIZES = 256
_SPACING_S = 0.005
_PATIENCE_S = 1.0
"""How long answers to probes may take before the RTT is known."""
_AFTER_S = 0.3
"""How long an end listens for ICMP errors and probes after the last one was sent."""
_ROUND = 8
"""Sizes that are tried at once."""
_USUAL = (576, 1200, 1280, 1358, 1400, 1420, 1428, 1430, 1440, 1452, 1460, 1472, 1480, 1492, 1500)
"""Sizes that paths often have: IPv6's least, tunnels of mobile cores, PPPoE, Ethernet."""


def sizes_from_json(fields: Mapping[str, object]) -> list[int]:
    """The sizes of a request; raises ``ProtocolError``."""
    sizes = checked.rows(fields, "sizes", _MOST_SIZES)
    if not all(checked.is_whole(size) and 160 <= size <= 65_535 for size in sizes):
        raise ProtocolError("sizes is not a list of sizes of IP packets, 160 to 65535 bytes")
    return sizes


def near_mtu_up(
    sock: socket.socket,
    secret: bytes,
    ssid: int,
    phase: int,
    stop: threading.Event,
    *,
    most: int = 1500,
) -> MtuReport:
    """Find the path MTU upwards, to ``most``; the far end's short replies say what arrived."""
    return search_up(_StampProber(sock, stamp.mac_key(secret), ssid, phase), most, stop)


def search_up(prober: UpProber, most: int, stop: threading.Event) -> MtuReport:
    """Find the path MTU upwards, to ``most``, with probes that are answered."""
    begin = time.monotonic()
    search = _search(prober.round, _least(prober.header), most, stop)
    if prober.answered == 0:
        return MtuReport("up", None, search, [], "no probe was answered")
    icmp = _icmp_reports([one for one in prober.inbox.errors if one.time >= begin])
    return MtuReport("up", _largest(search), search, icmp)


def near_mtu_down(
    sock: socket.socket,
    secret: bytes,
    ssid: int,
    phase: int,
    ask: Callable[[Sequence[int]], Probed],
    stop: threading.Event,
    *,
    most: int = 1500,
) -> MtuReport:
    """Find the path MTU downwards, to ``most``.

    ``ask`` makes the far end send probes of these sizes (:func:`far_mtu_send`) and returns when it
    has done so.
    """
    prober = _DownProber(sock, stamp.mac_key(secret), ssid, phase, ask)
    least = _least(stamp.header_bytes(sock.getpeername()))
    search = _search(prober.round, least, most, stop)
    largest = _largest(search)
    error = prober.error or ("no probe arrived" if largest is None else None)
    return MtuReport("down", largest, search, list(dict.fromkeys(prober.icmp)), error)


def far_mtu_send(
    reflector: stamp.Reflector,
    session: stamp.Session,
    phase: int,
    sizes: Sequence[int],
    stop: threading.Event,
) -> Probed:
    """Send probes of these sizes to the address from which the phase's HELLO came."""
    try:
        address = session.address(phase, PATIENCE_S, stop)
    except AirpathError as nobody:
        return Probed({}, [], [], str(nobody))
    begin = time.monotonic()
    header = stamp.header_bytes(address)
    sent = dict.fromkeys(sizes, 0)
    refused: set[int] = set()
    for _ in range(TRIES):
        for size in sizes:
            if size in refused or stop.is_set():
                continue
            packet = stamp.Packet(
                sent[size], stamp.PROBE_DOWN, phase, size, time.time_ns(),
                stamp.ERROR_ESTIMATE, session.ssid,
            )  # fmt: skip
            data = stamp.blank(size - header)
            stamp.write(data, session.key, packet)
            if _probe(lambda one: reflector.send(one, address), data):
                sent[size] += 1
            else:
                refused.add(size)
            time.sleep(_SPACING_S)
    stop.wait(_AFTER_S)
    return Probed(sent, sorted(refused), _icmp_reports(reflector.errors(address, begin)))


Round = Callable[[Sequence[int]], Mapping[int, Tried]]


def _search(round_: Round, least: int, most: int, stop: threading.Event) -> list[Tried]:
    """Try sizes until one arrives and the next larger one does not (RFC 8899 5.3).

    Each round divides the interval into nine, which needs fewer round trips than halves. A size
    that arrived stands for all smaller ones.
    """
    tried: dict[int, Tried] = {}
    sizes = [size for size in _USUAL if least <= size <= most]
    sizes = sorted({least, *sizes, most})
    while sizes and not stop.is_set():
        tried.update(round_(sizes))
        low = max((size for size, one in tried.items() if one.arrived), default=None)
        if low is None:
            break
        high = min((size for size in tried if size > low), default=low)
        sizes = _between(low, high)
    return [tried[size] for size in sorted(tried)]


def _between(low: int, high: int) -> list[int]:
    """At most eight sizes between two."""
    count = min(_ROUND, high - low - 1)
    return [low + (high - low) * step // (count + 1) for step in range(1, count + 1)]


def _largest(tried: Sequence[Tried]) -> int | None:
    return max((one.size_bytes for one in tried if one.arrived), default=None)


def _least(header_bytes: int) -> int:
    """The smallest size of a search: every path has it (RFC 8899 5.1.2, RFC 8200 5)."""
    return 576 if header_bytes == 28 else 1280


class UpProber(ABC):
    """Rounds of probes upwards, through a connected socket; a subclass makes the probes."""

    def __init__(self, sock: socket.socket, header_bytes: int) -> None:
        self.sock = sock
        self.inbox = stamp.Inbox(sock)
        self.answered = 0
        self.header = header_bytes
        """Bytes of the headers below the probe: IP, and UDP or ICMP."""
        self._rtt_s = 0.0

    @abstractmethod
    def probe(self, number: int, size: int) -> bytearray:
        """A probe whose IP packet has this size."""

    @abstractmethod
    def answer(self, received: stamp.Received) -> tuple[int, int] | None:
        """The size of the IP packet that arrived, and when it was sent (in ns, real-time clock)."""

    def round(self, sizes: Sequence[int]) -> dict[int, Tried]:
        """Try some sizes."""
        sent = dict.fromkeys(sizes, 0)
        arrived: set[int] = set()
        refused: set[int] = set()
        for number in range(TRIES):
            open_ = [size for size in sizes if size not in arrived | refused]
            for size in open_:
                if _probe(stamp.transmitter(self.sock), self.probe(number, size)):
                    sent[size] += 1
                else:
                    refused.add(size)
                self._listen(_SPACING_S, arrived, set())
            patience_s = 0.2 + 3 * self._rtt_s if self.answered else _PATIENCE_S
            self._listen(patience_s, arrived, set(sizes) - refused)
        return {size: Tried(size, sent[size], size in arrived, size in refused) for size in sizes}

    def _listen(self, seconds: float, arrived: set[int], wanted: set[int]) -> None:
        """Collect answers for a time; no longer than until all that are wanted are there."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not (wanted and wanted <= arrived):
            if not self.inbox.wait(left):
                continue
            while (received := self.inbox.read()) is not None:
                found = self.answer(received)
                if found is None:
                    continue
                self.answered += 1
                arrived.add(found[0])
                self._rtt_s = max(self._rtt_s, (received.time_ns - found[1]) / 1e9)


class _StampProber(UpProber):
    """Probes that the far end answers with a short datagram."""

    def __init__(self, sock: socket.socket, key: bytes, ssid: int, phase: int) -> None:
        super().__init__(sock, stamp.header_bytes(sock.getpeername()))
        self._key, self._ssid, self._phase = key, ssid, phase

    def probe(self, number: int, size: int) -> bytearray:
        packet = stamp.Packet(
            number, stamp.PROBE_UP, self._phase, size, time.time_ns(),
            stamp.ERROR_ESTIMATE, self._ssid,
        )  # fmt: skip
        data = stamp.blank(size - self.header)
        stamp.write(data, self._key, packet)
        return data

    def answer(self, received: stamp.Received) -> tuple[int, int] | None:
        packet = stamp.decode_valid(
            received, self._key, self._ssid, self._phase, stamp.PROBE_ANSWER
        )
        if packet is None:
            return None
        return packet.value + self.header, stamp.decode_reflected(received.data).time_ns


class _DownProber:
    """Rounds of probes downwards."""

    def __init__(
        self,
        sock: socket.socket,
        key: bytes,
        ssid: int,
        phase: int,
        ask: Callable[[Sequence[int]], Probed],
    ) -> None:
        self.icmp: list[IcmpReport] = []
        self.error: str | None = None
        self._inbox = stamp.Inbox(sock)
        self._sock, self._key, self._ssid, self._phase = sock, key, ssid, phase
        self._ask = ask

    def round(self, sizes: Sequence[int]) -> dict[int, Tried]:
        for _ in range(TRIES):
            # The far end needs one of them.
            stamp.hello(self._sock, self._key, self._ssid, self._phase)
            time.sleep(_SPACING_S)
        probed = self._ask(sizes)
        self.error = self.error or probed.error
        self.icmp += probed.icmp
        arrived: set[int] = set()
        wanted = set(sizes) - set(probed.refused)
        # What the far end says travels behind its probes.
        end = time.monotonic() + _AFTER_S
        while (left := end - time.monotonic()) > 0 and not wanted <= arrived:
            if not self._inbox.wait(left):
                continue
            while (received := self._inbox.read()) is not None:
                packet = stamp.decode_valid(
                    received, self._key, self._ssid, self._phase, stamp.PROBE_DOWN
                )
                if packet is not None:
                    arrived.add(packet.value)
        return {
            size: Tried(size, probed.sent.get(size, 0), size in arrived, size in probed.refused)
            for size in sizes
        }


def _probe(transmit: stamp.Transmit, data: bytearray) -> bool:
    """Send a probe; False if the interface refuses its size.

    EMSGSIZE may also be an ICMP error about an earlier probe, which the kernel reports once.
    """
    for _ in range(8):
        if transmit(data) is None:
            return True
        time.sleep(_TICK_S)
    return False


def _icmp_reports(errors: Sequence[stamp.IcmpError]) -> list[IcmpReport]:
    """Errors of routers about sizes (RFC 1191 4, RFC 4443 3.2), each once."""
    reports = [
        IcmpReport(one.who, 6 if one.origin == "icmp6" else 4, one.type, one.code, one.mtu)
        for one in errors
        if (one.origin, one.type, one.code) in (("icmp", 3, 4), ("icmp6", 2, 0))
    ]
    return list(dict.fromkeys(reports))


def _icmp_from_json(value: object) -> IcmpReport:
    table = checked.table(value, "icmp")
    return IcmpReport(
        checked.text(table, "who"),
        6 if table.get("version") == 6 else 4,
        checked.whole(table, "type"),
        checked.whole(table, "code"),
        None if table.get("mtu") is None else checked.whole(table, "mtu"),
    )
