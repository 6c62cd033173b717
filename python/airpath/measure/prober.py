"""The Session-Sender of STAMP (RFC 8762 4.2): probes the path and matches the replies."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from airpath.measure.stamp import (
    ERROR_ESTIMATE,
    PACKET_BYTES,
    STAMP,
    IcmpError,
    Inbox,
    Packet,
    Received,
    blank,
    decode,
    decode_reflected,
    is_valid,
    mac_key,
    write,
)

MOST_PROBES: Final = 1_000_000
"""Packets that a prober sends at most."""


_OUT_OF_ORDER: Final = 3
"""Packets by which a reply may be late (the DupThresh of RFC 5681 3.2)."""


class Reply(NamedTuple):
    """A packet that came back."""

    sequence: int
    sent_s: float
    """Seconds since the beginning."""
    rtt_ms: float
    """Without the time that the reflector took."""
    out_ms: float | None
    """From this host to the reflector, by two clocks: only its variation means something.

    ``None``, as the fields that follow, if the other end stamps nothing."""
    back_ms: float | None
    reflector_ms: float | None
    size_bytes: int
    reflector_sequence: int | None


class Lost(NamedTuple):
    """A packet that had no reply in time."""

    sequence: int
    sent_s: float
    direction: Literal["out", "back"] | None
    """Where it was lost; ``None`` if the numbers of the neighbouring replies do not tell."""


@dataclass
class Probes:
    """Replies and losses that a prober saw."""

    sent: int = 0
    replies: list[Reply] = field(default_factory=list)
    """In the order of arrival, without duplicates."""
    lost: list[Lost] = field(default_factory=list)
    duplicates: int = 0
    reordered: int = 0
    """Replies that arrived after a reply to a later packet (RFC 4737)."""
    invalid: int = 0
    """Datagrams that were not valid replies."""
    unsent: int = 0
    """Packets that the kernel refused to send; they are not among the lost ones."""
    errors: list[IcmpError] = field(default_factory=list)


class Prober:
    """A Session-Sender; ``sock`` is from :func:`connected` and stays the caller's.

    ``begin`` is the time, by ``time.monotonic()``, from which ``sent_s`` counts.
    """

    def __init__(
        self,
        sock: socket.socket,
        secret: bytes,
        ssid: int,
        *,
        begin: float | None = None,
        size_bytes: int = PACKET_BYTES,
        patience_s: float = 3.0,
    ) -> None:
        self._sock, self._key, self._ssid = sock, mac_key(secret), ssid
        self._begin_ns = time.monotonic_ns() if begin is None else round(begin * 1e9)
        self._patience_ns = round(patience_s * 1e9)
        self._packet = blank(size_bytes)
        self._inbox = Inbox(sock)
        # A clock of its own: steps of the real-time clock during a test change no delay.
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self._sent_ns: list[int] = []
        self._answered = bytearray()
        self._newest = -1
        self._refused: set[int] = set()
        self._seen = Probes()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def replies(self) -> Sequence[Reply]:
        """Replies so far, while it runs."""
        return self._seen.replies

    def start(self, interval_s: float, *, exponential: bool = False, seed: int = 0) -> None:
        """Probe in a thread until :meth:`stop`."""
        self._thread = threading.Thread(
            target=self.run,
            args=(interval_s, self._stop),
            kwargs={"exponential": exponential, "seed": seed},
            name="airpath-stamp",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> Probes:
        """Stop sending, wait for the last replies, and return what was seen."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        return self._result()

    def run(
        self,
        interval_s: float,
        stop: threading.Event,
        *,
        exponential: bool = False,
        seed: int = 0,
    ) -> Probes:
        """Probe until ``stop``; with ``exponential`` the intervals are those of a Poisson process.

        Then wait for the last replies, at most as long as the patience.
        """
        chance = random.Random(seed)  # noqa: S311 - times of packets, no secret
        due = time.monotonic_ns()
        while not stop.is_set() and len(self._sent_ns) < MOST_PROBES:
            now = time.monotonic_ns()
            if now >= due:
                self._send()
                wait_s = chance.expovariate(1 / interval_s) if exponential else interval_s
                # What is late is not made up for: no bursts.
                due = max(due + round(wait_s * 1e9), now)
            self._read(min(due - time.monotonic_ns(), 100_000_000) / 1e9)
        while self._is_waiting():
            self._read(0.02)
        return self._result()

    def _is_waiting(self) -> bool:
        """Whether a packet without a reply may still be answered in time.

        One that was sent well before a packet that was answered counts as lost.
        """
        since = time.monotonic_ns() - self._patience_ns
        for sequence in range(len(self._sent_ns) - 1, max(-1, self._newest - _OUT_OF_ORDER), -1):
            if self._sent_ns[sequence] < since:
                return False
            if not self._answered[sequence] and sequence not in self._refused:
                return True
        return False

    def _written(self, sequence: int, sent_ns: int) -> bytes | bytearray:
        """The packet with this number."""
        clock_ns = sent_ns + self._offset_ns
        packet = Packet(sequence, STAMP, 0, 0, clock_ns, ERROR_ESTIMATE, self._ssid)
        write(self._packet, self._key, packet)
        return self._packet

    def _send(self) -> None:
        sequence = len(self._sent_ns)
        sent_ns = time.monotonic_ns()
        packet = self._written(sequence, sent_ns)
        self._sent_ns.append(sent_ns)
        self._answered.append(0)
        try:
            self._sock.send(packet)
        except OSError:
            # The kernel's buffer is full, there is no route, or an ICMP error is reported here.
            self._refused.add(sequence)

    def _read(self, seconds: float) -> None:
        if not self._inbox.wait(seconds):
            return
        while True:
            received = self._inbox.read()
            if received is None:
                return
            # The age of the kernel's stamp, so that both times are by the monotonic clock.
            age_ns = time.time_ns() - received.time_ns
            arrived_ns = time.monotonic_ns() - (age_ns if 0 <= age_ns < 10**10 else 0)
            self._take(received, arrived_ns)

    def _take(self, received: Received, arrived_ns: int) -> None:
        data = received.data
        if not is_valid(data, self._key):
            self._seen.invalid += 1
            return
        packet, reflected = decode(data), decode_reflected(data)
        sequence = reflected.sequence
        if packet.ssid != self._ssid or packet.kind != STAMP or sequence >= len(self._sent_ns):
            self._seen.invalid += 1
            return
        sent_ns = self._sent_ns[sequence]
        if reflected.time_ns != sent_ns + self._offset_ns:
            self._seen.invalid += 1
            return
        if not self._is_first(sequence):
            return
        reflector_ns = packet.time_ns - reflected.received_ns
        self._seen.replies.append(
            Reply(
                sequence=sequence,
                sent_s=(sent_ns - self._begin_ns) / 1e9,
                rtt_ms=(arrived_ns - sent_ns - reflector_ns) / 1e6,
                out_ms=(reflected.received_ns - sent_ns - self._offset_ns) / 1e6,
                back_ms=(arrived_ns + self._offset_ns - packet.time_ns) / 1e6,
                reflector_ms=reflector_ns / 1e6,
                size_bytes=len(data),
                reflector_sequence=packet.sequence,
            )
        )

    def _is_first(self, sequence: int) -> bool:
        """Count a reply; whether it is the first to this packet."""
        if self._answered[sequence]:
            self._seen.duplicates += 1
            return False
        self._answered[sequence] = 1
        self._seen.reordered += sequence < self._newest
        self._newest = max(self._newest, sequence)
        return True

    def _result(self) -> Probes:
        seen = self._seen
        directions = _directions(seen.replies)
        seen.sent = len(self._sent_ns) - len(self._refused)
        seen.unsent = len(self._refused)
        seen.errors = list(self._inbox.errors)
        seen.lost = [
            Lost(sequence, (sent_ns - self._begin_ns) / 1e9, directions.get(sequence))
            for sequence, sent_ns in enumerate(self._sent_ns)
            if not self._answered[sequence] and sequence not in self._refused
        ]
        return seen


def _directions(replies: Sequence[Reply]) -> dict[int, Literal["out", "back"]]:
    """Where packets between two replies were lost, by the numbers that the reflector gave."""
    found: dict[int, Literal["out", "back"]] = {}
    ordered = sorted(replies, key=lambda reply: reply.sequence)
    for one, following in pairwise(ordered):
        if one.reflector_sequence is None or following.reflector_sequence is None:
            continue
        missing = range(one.sequence + 1, following.sequence)
        back = following.reflector_sequence - one.reflector_sequence - 1
        if missing and back == 0:
            found.update(dict.fromkeys(missing, "out"))
        elif missing and back == len(missing):
            found.update(dict.fromkeys(missing, "back"))
    return found
