"""UDP at a rate, in either direction.

The datagrams are those of :mod:`airpath.measure.stamp`, with a sequence number, the sender's time
and an HMAC, so that a stranger's datagrams do not count. A function whose name begins with ``near``
is for the end that connects, ``far`` for the server.

A load test in either direction: the near end says HELLO from the socket of the test, the sender
sends at the rate in small bursts, and the receiver's :class:`Meter` counts. How many datagrams the
sender sent travels over the control connection (:class:`Sent`) and completes the report
(:meth:`UdpReport.with_sent`).
"""

from __future__ import annotations

import errno
import math
import os
import re
import socket
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Final, Literal

from airpath.errors import AirpathError, InputError
from airpath.measure import checked, stamp
from airpath.measure.control import ProtocolError

Direction = Literal["down", "up"]

BIN_S: Final = 0.1
"""Length of the intervals whose rate and delay a report has, in seconds."""

MOST_DATAGRAMS: Final = 20_000_000
MOST_BURSTS: Final = 5000
"""Bursts of losses that a report lists."""

PATIENCE_S: Final = 5.0
"""How long an end waits for the first datagram."""

_TICK_S = 0.001
_SILENCE_S = 0.5
_BEHIND_S = 0.1
_MOST_SAMPLES = 200_000
_MOST_BINS = 36_000


# --- UDP at a rate ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """A load test. The rate and the size are those of the UDP payload."""

    phase: int
    direction: Direction
    rate_mbps: float
    size_bytes: int
    duration_s: float

    def __post_init__(self) -> None:
        bounds = {
            "phase": (0, 0xFFFFFFFF),
            "rate_mbps": (0.001, 100_000),
            "size_bytes": (stamp.PACKET_BYTES, 65_507),
            "duration_s": (0.01, 3600),
        }
        for key, (least, most) in bounds.items():
            if not least <= getattr(self, key) <= most:
                raise InputError(
                    f"{key} is {getattr(self, key)}, but must be from {least} to {most}"
                )
        if self.direction not in ("down", "up"):
            raise InputError('direction is "down" or "up"')
        if self.datagrams > MOST_DATAGRAMS:
            raise InputError(f"a test of UDP has at most {MOST_DATAGRAMS} datagrams")

    @property
    def per_s(self) -> float:
        """Datagrams per second."""
        return self.rate_mbps * 1e6 / 8 / self.size_bytes

    @property
    def datagrams(self) -> int:
        """Datagrams of the whole test."""
        return math.ceil(self.per_s * self.duration_s)

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Load:
        """Parse a request, whose other keys do not matter; raises ``ProtocolError``."""
        try:
            return cls(
                checked.whole(value, "phase"),
                value.get("direction"),  # type: ignore[arg-type] # __post_init__ checks it
                checked.number(value, "rate_mbps"),
                checked.whole(value, "size_bytes"),
                checked.number(value, "duration_s"),
            )
        except InputError as wrong:
            raise ProtocolError(f"udp: {wrong}") from None


@dataclass(frozen=True)
class Sent:
    """The sender's view of a load test."""

    datagrams: int
    duration_s: float
    behind_s: float = 0.0
    """How much the sender was late altogether; that load is missing, it was not made up for."""
    error: str | None = None

    def to_json(self) -> dict[str, object]:
        """All fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> Sent:
        """Parse what a peer sent; raises ``ProtocolError`` that names the field."""
        table = checked.table(value, "sent")
        return cls(
            int(checked.whole(table, "datagrams")),
            checked.number(table, "duration_s"),
            checked.number(table, "behind_s"),
            checked.text(table, "error"),
        )


@dataclass(frozen=True)
class UdpReport:
    """The receiver's view of a load test."""

    received: int
    """Datagrams without duplicates."""
    bytes: int
    """Bytes of UDP payload, without duplicates."""
    duration_s: float
    """From the first arrival to the last."""
    duplicates: int
    reordered: int
    """Datagrams that arrived after one with a higher sequence number (RFC 4737)."""
    jitter_ms: float
    """Interarrival jitter at the end (RFC 3550 6.4.1)."""
    highest: int
    """The highest sequence number that arrived; -1 if none did."""
    loss_bursts: list[tuple[int, int]]
    """First sequence number and length of each run of lost datagrams, at most 5,000 runs."""
    delay_variation_ms: dict[str, float]
    """One-way delay beyond the least of the test (RFC 5481 4.2): p50, p95, p99 and max."""
    rate_mbps: list[float]
    """UDP payload that arrived in each 100 ms since the first arrival."""
    delay_ms: list[float | None]
    """Mean delay beyond the least of the test in each 100 ms; ``None`` if nothing arrived."""
    sent: int | None = None
    """``None`` until the sender's count is known; :meth:`with_sent`."""
    lost: int | None = None
    error: str | None = None
    discarded: int = 0
    """Lost datagrams that the receiver's own socket discarded: its host was too slow."""

    def with_sent(self, sent: Sent) -> UdpReport:
        """The report completed with the sender's count: losses at the end are known too."""
        bursts = list(self.loss_bursts)
        tail = sent.datagrams - 1 - self.highest
        if tail > 0 and len(bursts) < MOST_BURSTS:
            bursts.append((self.highest + 1, tail))
        return replace(
            self,
            sent=sent.datagrams,
            lost=max(0, sent.datagrams - self.received),
            loss_bursts=bursts,
            error=self.error or sent.error,
        )

    def to_json(self) -> dict[str, object]:
        """All fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> UdpReport:
        """Parse a report from a peer; raises ``ProtocolError`` that names the field."""
        table = checked.table(value, "udp")
        variation = checked.table(table.get("delay_variation_ms"), "delay_variation_ms")
        highest = table.get("highest")
        if not isinstance(highest, int) or not -1 <= highest < 1 << 32:
            raise ProtocolError("udp: highest is not a sequence number")
        return cls(
            received=checked.whole(table, "received"),
            bytes=checked.whole(table, "bytes"),
            duration_s=checked.number(table, "duration_s"),
            duplicates=checked.whole(table, "duplicates"),
            reordered=checked.whole(table, "reordered"),
            jitter_ms=checked.number(table, "jitter_ms"),
            highest=highest,
            loss_bursts=checked.pairs(table, "loss_bursts", MOST_BURSTS),
            delay_variation_ms={key: checked.number(variation, key) for key in _PERCENTILES},
            rate_mbps=[rate or 0.0 for rate in checked.numbers(table, "rate_mbps", _MOST_BINS)],
            delay_ms=checked.numbers(table, "delay_ms", _MOST_BINS),
            sent=None if table.get("sent") is None else checked.whole(table, "sent"),
            lost=None if table.get("lost") is None else checked.whole(table, "lost"),
            error=checked.text(table, "error"),
            discarded=checked.whole(table, "discarded"),
        )


class Meter:
    """Counts the datagrams of a load test at its receiver; one thread calls :meth:`take`."""

    def __init__(self, load: Load) -> None:
        self._seen = bytearray(min(MOST_DATAGRAMS, load.datagrams + 1000))
        self.last: float | None = None
        """When the last datagram was taken, by ``time.monotonic()``."""
        self._wanted = load.datagrams
        self._discarded: tuple[int, int] | None = None
        self._received = self._bytes = self._duplicates = self._reordered = 0
        self._newest = -1
        self._first_ns = self._last_ns = 0
        self._transit_ns: int | None = None
        self._jitter_ns = 0.0
        self._transits = array("q")
        self._every, self._until_next = 1, 0
        self._bin_bytes = array("q")
        self._bin_counts = array("q")
        self._bin_transits = array("q")

    @property
    def is_full(self) -> bool:
        """Whether all datagrams of the load have arrived."""
        return self._received >= self._wanted

    def overflowed(self, total: int) -> None:
        """Note how many datagrams the receiver's socket has discarded in its life."""
        first = total if self._discarded is None else self._discarded[0]
        self._discarded = (first, total)

    def take(self, packet: stamp.Packet, size: int, arrived_ns: int) -> None:
        """Count a valid datagram."""
        sequence = packet.sequence
        if sequence >= len(self._seen):
            return
        self.last = time.monotonic()
        if self._seen[sequence]:
            self._duplicates += 1
            return
        self._seen[sequence] = 1
        if sequence < self._newest:
            self._reordered += 1
        else:
            self._newest = sequence
        if not self._received:
            self._first_ns = arrived_ns
        self._received += 1
        self._bytes += size
        self._last_ns = max(self._last_ns, arrived_ns)
        transit = arrived_ns - packet.time_ns
        if self._transit_ns is not None:
            # RFC 3550 6.4.1, in the order of arrival.
            self._jitter_ns += (abs(transit - self._transit_ns) - self._jitter_ns) / 16
        self._transit_ns = transit
        self._keep(transit)
        self._add_to_bin(arrived_ns, size, transit)

    def _keep(self, transit: int) -> None:
        if self._until_next > 0:
            self._until_next -= 1
            return
        self._until_next = self._every - 1
        self._transits.append(transit)
        if len(self._transits) >= _MOST_SAMPLES:
            self._transits = self._transits[::2]
            self._every *= 2

    def _add_to_bin(self, arrived_ns: int, size: int, transit: int) -> None:
        place = max(0, (arrived_ns - self._first_ns) // round(BIN_S * 1e9))
        if place >= _MOST_BINS:
            return
        missing = place + 1 - len(self._bin_bytes)
        if missing > 0:
            for column in (self._bin_bytes, self._bin_counts, self._bin_transits):
                column.extend([0] * missing)
        self._bin_bytes[place] += size
        self._bin_counts[place] += 1
        self._bin_transits[place] += transit - (self._transits[0] if self._transits else 0)

    def report(self, sent: Sent | None = None, error: str | None = None) -> UdpReport:
        """The report; with the sender's count, if it is known."""
        transits = sorted(self._transits)
        least = transits[0] if transits else 0
        reference = self._transits[0] - least if transits else 0
        seconds = (self._last_ns - self._first_ns) / 1e9
        gaps = re.finditer(rb"\0+", memoryview(self._seen)[: self._newest + 1])
        bursts = [(gap.start(), gap.end() - gap.start()) for gap in islice(gaps, MOST_BURSTS)]
        report = UdpReport(
            received=self._received,
            bytes=self._bytes,
            duration_s=round(seconds, 6),
            duplicates=self._duplicates,
            reordered=self._reordered,
            jitter_ms=round(self._jitter_ns / 1e6, 4),
            highest=self._newest,
            loss_bursts=bursts,
            delay_variation_ms={
                key: round((_quantile(transits, share) - least) / 1e6, 4)
                for key, share in _PERCENTILES.items()
            },
            rate_mbps=[round(count * 8e-6 / BIN_S, 4) for count in self._bin_bytes],
            delay_ms=[
                round((total / count + reference) / 1e6, 4) if count else None
                for total, count in zip(self._bin_transits, self._bin_counts, strict=True)
            ],
            error=error or (None if self._received else "no datagram arrived"),
            discarded=0 if self._discarded is None else self._discarded[1] - self._discarded[0],
        )
        return report if sent is None else report.with_sent(sent)


_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _quantile(ordered: Sequence[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def near_send(
    sock: socket.socket, secret: bytes, ssid: int, load: Load, stop: threading.Event
) -> Sent:
    """Send a load upwards; ``sock`` is from :func:`stamp.connected`."""
    return _send(stamp.transmitter(sock), stamp.mac_key(secret), ssid, load, stop)


def far_send(
    reflector: stamp.Reflector, session: stamp.Session, load: Load, stop: threading.Event
) -> Sent:
    """Send a load downwards to the address from which the phase's HELLO came."""
    try:
        address = session.address(load.phase, PATIENCE_S, stop)
    except AirpathError as nobody:
        return Sent(0, 0.0, error=str(nobody))
    return _send(lambda data: reflector.send(data, address), session.key, session.ssid, load, stop)


def near_receive(
    sock: socket.socket, secret: bytes, ssid: int, load: Load, stop: threading.Event
) -> UdpReport:
    """Receive a load downwards: say HELLO, count until the load is over."""
    key = stamp.mac_key(secret)
    meter, inbox = Meter(load), stamp.Inbox(sock)
    begin = time.monotonic()
    next_hello = begin
    while not stop.is_set() and not _is_over(meter, load, begin):
        if time.monotonic() >= next_hello:
            # Later ones keep the mapping of a NAT.
            stamp.hello(sock, key, ssid, load.phase)
            next_hello = time.monotonic() + (0.2 if meter.last is None else 1.0)
        if not inbox.wait(0.05):
            continue
        for _ in range(256):
            received = inbox.read()
            if received is None:
                break
            packet = stamp.decode_valid(received, key, ssid, load.phase, stamp.LOAD_DOWN)
            if packet is not None:
                meter.overflowed(received.discarded)
                meter.take(packet, len(received.data), received.time_ns)
    return meter.report()


def far_receive(session: stamp.Session, load: Load, stop: threading.Event) -> UdpReport:
    """Count a load upwards until it is over."""
    meter = Meter(load)
    begin = time.monotonic()

    def take(packet: stamp.Packet, size: int, arrived_ns: int) -> None:
        meter.overflowed(session.discarded)
        meter.take(packet, size, arrived_ns)

    session.expect(load.phase, stamp.LOAD_UP, take)
    try:
        while not stop.is_set() and not _is_over(meter, load, begin):
            stop.wait(0.05)
    finally:
        session.forget(load.phase, stamp.LOAD_UP)
    return meter.report()


def _is_over(meter: Meter, load: Load, begin: float) -> bool:
    """Whether the load's time is over and nothing arrives any more, or nothing ever did."""
    now = time.monotonic()
    if meter.last is None:
        return now - begin > PATIENCE_S
    if meter.is_full:
        return True
    past = now - begin - load.duration_s
    return past > PATIENCE_S + _SILENCE_S or (past > 0 and now - meter.last > _SILENCE_S)


def _send(
    transmit: stamp.Transmit, key: bytes, ssid: int, load: Load, stop: threading.Event
) -> Sent:
    """Send at the rate, each millisecond what is due."""
    kind = stamp.LOAD_UP if load.direction == "up" else stamp.LOAD_DOWN
    buffer = stamp.blank(load.size_bytes)
    per_s, whole = load.per_s, load.datagrams
    begin = time.monotonic()
    sent, behind_s, error = 0, 0.0, None
    while sent < whole and not stop.is_set() and error is None:
        elapsed = time.monotonic() - begin - behind_s
        due = min(whole, int(elapsed * per_s) + 1)
        late_s = elapsed - sent / per_s
        if late_s > _BEHIND_S + 1 / per_s:
            behind_s += late_s
            continue
        if time.monotonic() - begin > load.duration_s:
            break
        while sent < due and error is None:
            packet = stamp.Packet(
                sent, kind, load.phase, 0, time.time_ns(), stamp.ERROR_ESTIMATE, ssid
            )
            stamp.write(buffer, key, packet)
            error = _transmitted(transmit, buffer)
            sent += error is None
        time.sleep(min(0.1, max(_TICK_S, begin + behind_s + sent / per_s - time.monotonic())))
    return Sent(sent, time.monotonic() - begin, behind_s, error)


def _transmitted(transmit: stamp.Transmit, data: bytearray) -> str | None:
    """Send a datagram; what is wrong if the kernel refuses it again and again."""
    failed: int | None = None
    for _ in range(100):
        failed = transmit(data)
        if failed is None:
            return None
        # Any other error may be that of an earlier datagram: an ICMP error is reported once.
        if failed in (errno.EAGAIN, errno.ENOBUFS):
            time.sleep(_TICK_S)
    return f"sending a datagram of {len(data)} bytes failed: {os.strerror(failed or 0)}"
