"""A session at the far end: what a near end that proved itself asks for, within limits.

One thread reads the control connection, another one runs the phase. One phase runs at a time; its
number is higher than that of the phase before, so that the proof of a stream is used once.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from airpath.base.json import Json
from airpath.base.text import plural, printable, rate, size
from airpath.errors import AirpathError, reason
from airpath.measure import datagrams, path_mtu, shown, stamp, stream
from airpath.measure.control import (
    Channel,
    EndedError,
    Join,
    Key,
    Limits,
    Peer,
    ProtocolError,
    SilenceError,
    Welcome,
    address,
    spelled,
)
from airpath.measure.packets import Packets
from airpath.measure.responsiveness import REQUESTS

JOIN_S = 5.0
"""How long a phase waits for its next stream."""
SILENT_S = 120.0
"""A session ends after this long without a request, a phase or a valid datagram."""
DRAIN_S = 10.0
"""How much longer than the phase a receiver waits for what is still queued on the path."""
MOST_STREAM_S = 640.0
"""Seconds of a phase, summed over its streams: their reports are kept until it ends."""
MOST_REQUEST = 1 << 16
"""Bytes of a request."""
_TICK_S = 0.5
_RATE_MARGIN, _BURST_BYTES = 1.05, 1 << 18
_MOST_ENTRIES = 40_000
"""Entries of all streams of a report, so that it fits into a line."""

Direction = Literal["down", "up"]


@dataclass(frozen=True)
class Surroundings:
    """Things that all sessions share."""

    limits: Limits
    host: Callable[[], dict[str, str | int | list[str]]]
    reflector: stamp.Reflector
    say: Callable[[str], None]
    testing: Callable[[], int]
    """Sessions in which a phase runs now."""
    packets: Packets


@dataclass
class _Phase:
    """A phase that runs, or waits for its streams."""

    number: int
    streams: int
    joined: dict[int, socket.socket] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    started: bool = False
    request: int = REQUESTS - 1
    """Number of the newest request that was answered."""
    takes_sizes: bool = False
    sizes: list[int] = field(default_factory=list)
    """Sizes of probes that are to be sent."""


class FarSession:
    """Serves one near end; `run` returns when the session is over."""

    def __init__(self, channel: Channel, key: Key, ssid: int, around: Surroundings) -> None:
        self.key = key
        self.ssid = ssid
        self.peer = channel.peer
        self.used_bytes = 0
        self._channel = channel
        self._around = around
        self._limits = around.limits
        self._datagrams = _Datagrams(key, ssid, channel.peer)
        self._changed = threading.Condition()
        self._phase: _Phase | None = None
        self._newest = -1
        self._thread: threading.Thread | None = None
        self._ended = ""
        self._began_s = time.monotonic()

    @property
    def is_testing(self) -> bool:
        """Whether a phase runs."""
        return self._phase is not None

    def say(self, text: str) -> None:
        """Narrate."""
        self._around.say(f"{spelled(self.peer)} {text}")

    def run(self) -> None:
        """Serve until the near end leaves, is gone, or used up what it may."""
        why = "ended"
        try:
            self._around.reflector.add(self._datagrams)
            self._channel.send(self._welcome().to_json())
            why = self._serve()
        except ProtocolError as error:
            why = str(error)
        finally:
            why = self._ended or why
            self.end(why)
            self._around.reflector.remove(self._datagrams)
            if self._thread is not None:
                self._thread.join(_TICK_S)
            lasted_s = time.monotonic() - self._began_s
            carried = size(self.used_bytes)
            self.say(f"session over after {lasted_s:.0f} s and {carried}: {printable(why)}")

    def end(self, why: str) -> None:
        """End the session at once; any thread may call it."""
        self._ended = self._ended or why
        with self._changed:
            phase = self._phase
            if phase is not None:
                phase.stop.set()
            self._changed.notify_all()
        self._channel.close()

    def join(self, claim: Join, sock: socket.socket) -> None:
        """Take a stream whose proof is right. Raises ProtocolError if no phase waits for it."""
        with self._changed:
            phase = self._phase
            if claim.stream >= REQUESTS:
                self._answer(phase, claim, sock)
                return
            if phase is None or phase.number != claim.phase or phase.started or phase.stop.is_set():
                raise ProtocolError(f"no phase {claim.phase} waits for streams")
            if claim.stream >= phase.streams or claim.stream in phase.joined:
                raise ProtocolError(f"phase {claim.phase} does not wait for stream {claim.stream}")
            phase.joined[claim.stream] = sock
            self._changed.notify_all()

    def _answer(self, phase: _Phase | None, claim: Join, sock: socket.socket) -> None:
        """Answer a request beside the load with one byte; each number is answered once.

        One that arrives when the load is over has no answer.
        """
        running = phase is not None and phase.started and phase.number == claim.phase
        if phase is not None and running and claim.stream > phase.request:
            phase.request = claim.stream
            with suppress(OSError):
                sock.send(b"+")
        sock.close()

    def _welcome(self) -> Welcome:
        channel = self._channel
        return Welcome(
            self.key.session,
            self.ssid,
            channel.peer,
            channel.here,
            self._limits,
            self._around.host(),
        )

    # --- Requests -----------------------------------------------------------------------------

    def _serve(self) -> str:
        end_s = self._began_s + self._limits.session_s
        active_s, reflected = time.monotonic(), 0
        while True:
            now_s = time.monotonic()
            if now_s >= end_s:
                return f"its time limit is reached ({self._limits.session_s:.0f} s)"
            if self.is_testing or self._datagrams.reflected != reflected:
                active_s, reflected = now_s, self._datagrams.reflected
            if now_s - active_s > SILENT_S:
                return f"silent for {SILENT_S:.0f} s"
            try:
                request = self._channel.receive(min(_TICK_S, end_s - now_s))
            except SilenceError:
                continue
            active_s = now_s
            if request.get("do") == "bye":
                return "done"
            self._take(request)

    def _take(self, request: Json) -> None:
        """Start what a request asks for; answer an error if that is not possible."""
        number = request.get("id")
        if isinstance(number, bool) or not isinstance(number, int):
            raise ProtocolError("a request has no id")
        try:
            if request.get("do", "sizes") in ("stop", "sizes"):
                self._steer(request)
                return
            work = self._work(request)
        except AirpathError as error:
            self._channel.send({"id": number, "error": str(error)})
            return
        self._thread = threading.Thread(
            target=self._run, args=(number, work), name="airpath-phase", daemon=True
        )
        self._thread.start()

    def _steer(self, request: Json) -> None:
        """Take a message for the phase that runs: to end early, or with sizes to probe."""
        sizes = [] if request.get("do") == "stop" else path_mtu.sizes_from_json(request)
        with self._changed:
            phase = self._phase
            if not sizes:
                if phase is not None:
                    phase.stop.set()
            elif phase is None or not phase.takes_sizes or phase.sizes:
                raise ProtocolError("no phase waits for sizes")
            else:
                phase.sizes = sizes
            self._changed.notify_all()

    def _work(self, request: Json) -> Callable[[int], Json]:
        """What a request asks for, once it is checked; it occupies the session's phase."""
        kinds = {"tcp": self._tcp, "udp": self._udp, "mtu": self._mtu}
        kind = kinds.get(str(request.get("do")))
        if kind is None:
            raise ProtocolError(f"do is not one of {', '.join((*kinds, 'stop', 'bye'))}")
        if self._phase is not None:
            raise ProtocolError(f"phase {self._phase.number} still runs")
        if self._left_bytes() < 1:
            limit = size(self._limits.data_bytes)
            raise ProtocolError(f"the session has reached its data limit ({limit})")
        return kind(_Fields(request))

    def _run(self, number: int, work: Callable[[int], Json]) -> None:
        """Run a phase and report it."""
        phase = self._phase
        try:
            try:
                answer = {"id": number, "event": "done", **work(number)}
            except (AirpathError, OSError) as error:
                said = reason(error) if isinstance(error, OSError) else str(error)
                answer = {"id": number, "error": said}
                self.say(f"phase failed: {printable(said)}")
            self._over(phase)
            self._channel.send(answer)
        except EndedError as error:
            self.end(str(error))
        except ProtocolError as error:
            # The report does not fit into a line.
            with suppress(ProtocolError):
                self._channel.send({"id": number, "error": str(error)})
        except BaseException:
            self.end("airpath failed")
            raise
        finally:
            self._over(phase)

    def _over(self, phase: _Phase | None) -> None:
        """Let the next phase begin; no stream of this one stays open."""
        if phase is None:
            return
        with self._changed:
            if self._phase is phase:
                self._phase = None
        for sock in phase.joined.values():
            sock.close()

    def _begin(self, number: int, streams: int = 0) -> _Phase:
        if number <= self._newest:
            raise ProtocolError(f"phase = {number} is not higher than that of the phase before")
        self._newest = number
        phase = _Phase(number, streams)
        with self._changed:
            if self._ended:
                raise ProtocolError(self._ended)
            self._phase = phase
        return phase

    def _left_bytes(self) -> int:
        return self._limits.data_bytes - self.used_bytes

    # --- TCP ----------------------------------------------------------------------------------

    def _tcp(self, fields: _Fields) -> Callable[[int], Json]:
        direction = fields.direction()
        streams = fields.whole("streams", 1, self._limits.streams)
        duration_s = fields.number("duration_s", 0.01, self._limits.phase_s)
        if streams * duration_s > MOST_STREAM_S:
            raise ProtocolError(
                f"streams times duration_s is {streams * duration_s:g}; "
                f"at most {MOST_STREAM_S:g} s are allowed"
            )
        options = stream.Options.from_json(fields.table.get("options", {}))
        capture = fields.flag("capture")
        most = self._limits.rate_mbps
        if most is not None and direction == "down":
            options = replace(options, pacing_mbps=min(most, options.pacing_mbps or most))
        phase = self._begin(fields.whole("phase", 0, 1 << 30), streams)

        def work(number: int) -> Json:
            with self._around.packets.capturing(self._channel.here[1], capture) as packets:
                sockets = self._joined(phase, number)
                ports = [address(one.getpeername())[1] for one in sockets]
                try:
                    reports, others = self._stream(phase, sockets, direction, duration_s, options)
                finally:
                    for sock in sockets:
                        sock.close()
            carried = sum(one.bytes for one in reports)
            lasted_s = max(1e-3, *(one.duration_s for one in reports))
            self.say(
                f"phase {phase.number}: TCP {direction}, {plural(streams, 'stream')}, "
                f"{lasted_s:.1f} s: {size(carried)}, {rate(carried * 8e-6 / lasted_s)}"
            )
            each = min(stream.MOST_ENTRIES, _MOST_ENTRIES // streams)
            return {
                "streams": [one.to_json(each) for one in reports],
                "others": max(0, others),
                "shown": shown.judged(packets(), ports),
            }

        return work

    def _joined(self, phase: _Phase, number: int) -> list[socket.socket]:
        """Say that the phase is ready, and wait until all its streams have joined."""
        self._channel.send({"id": number, "ready": True})
        with self._changed:
            # Each stream that joins renews the patience: near ends may open one after the other.
            known, until_s = 0, time.monotonic() + JOIN_S
            while len(phase.joined) < phase.streams and not phase.stop.is_set():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    break
                self._changed.wait(left_s)
                if len(phase.joined) > known:
                    known, until_s = len(phase.joined), time.monotonic() + JOIN_S
            phase.started = True
            joined = [phase.joined[at] for at in sorted(phase.joined)]
        if phase.stop.is_set():
            raise ProtocolError("the phase was stopped before it started")
        if len(joined) < phase.streams:
            raise ProtocolError(
                f"{len(joined)} of {plural(phase.streams, 'stream')} joined, and no other "
                f"within {JOIN_S:g} s"
            )
        return joined

    def _stream(
        self,
        phase: _Phase,
        sockets: list[socket.socket],
        direction: Direction,
        duration_s: float,
        options: stream.Options,
    ) -> tuple[list[stream.StreamReport], int]:
        """Send or receive on all streams; return their reports, and how many others tested."""
        count = len(sockets)
        role: stream.Role = "sender" if direction == "down" else "receiver"
        for sock in sockets:
            stream.accepted(sock, options, role, streams=count)
        most = self._most_bytes(direction, duration_s) // count
        others = self._around.testing() - 1

        reports = [stream.StreamReport(error="the stream did not run") for _ in sockets]
        begin = time.monotonic()

        def carry(at: int) -> None:
            sock, stop = sockets[at], phase.stop
            if role == "sender":
                reports[at] = stream.send(sock, duration_s, stop, most, begin=begin)
            else:
                patience_s = duration_s + DRAIN_S
                reports[at] = stream.receive(sock, stop, most, begin=begin, most_s=patience_s)

        threads = [
            threading.Thread(target=carry, args=(at,), name="airpath-stream", daemon=True)
            for at in range(count)
        ]
        for sock, thread in zip(sockets, threads, strict=True):
            # A stream whose "+" is not sent fails by itself.
            with suppress(OSError):
                sock.send(b"+")
            thread.start()
        for thread in threads:
            thread.join()
        self.used_bytes += sum(one.bytes for one in reports)
        return reports, max(others, self._around.testing() - 1)

    def _most_bytes(self, direction: Direction, duration_s: float) -> int:
        """What a phase may carry: what is left to the session, and upwards no more than its rate.

        Downwards pacing keeps the rate. What arrives cannot be paced here, so it is cut off.
        """
        left, most = self._left_bytes(), self._limits.rate_mbps
        if most is None or direction == "down":
            return left
        return min(left, round(most * 125_000 * duration_s * _RATE_MARGIN) + _BURST_BYTES)

    # --- UDP ----------------------------------------------------------------------------------

    def _udp(self, fields: _Fields) -> Callable[[int], Json]:
        load = datagrams.Load.from_json(fields.table)
        fields.number("duration_s", 0.01, self._limits.phase_s)
        if self._limits.rate_mbps is not None:
            fields.number("rate_mbps", 0.0, self._limits.rate_mbps)
        wanted = load.datagrams * load.size_bytes
        if wanted > self._left_bytes():
            raise ProtocolError(
                f"the test needs {size(wanted)}, but the session has "
                f"{size(self._left_bytes())} left"
            )
        phase = self._begin(load.phase)

        def work(number: int) -> Json:
            self._channel.send({"id": number, "ready": True})
            if load.direction == "down":
                sent = datagrams.far_send(self._around.reflector, self._datagrams, load, phase.stop)
                carried, answer = sent.datagrams * load.size_bytes, {"sent": sent.to_json()}
            else:
                report = datagrams.far_receive(self._datagrams, load, phase.stop)
                carried, answer = report.bytes, {"udp": report.to_json()}
            self.used_bytes += carried
            self.say(
                f"phase {phase.number}: UDP {load.direction}, {rate(load.rate_mbps)}, "
                f"{load.duration_s:g} s: {size(carried)}"
            )
            return {**answer, "others": max(0, self._around.testing() - 1)}

        return work

    def _mtu(self, fields: _Fields) -> Callable[[int], Json]:
        """Send probes of the sizes that arrive as ``sizes`` messages, until ``stop``.

        Probes upwards need no phase here, only the reflector; it is marked as testing nevertheless.
        """
        fields.direction()
        phase = self._begin(fields.whole("phase", 0, 1 << 30))
        phase.takes_sizes = True
        end_s = time.monotonic() + self._limits.phase_s

        def work(number: int) -> Json:
            self._channel.send({"id": number, "ready": True})
            while time.monotonic() < end_s:
                with self._changed:
                    self._changed.wait_for(lambda: phase.sizes or phase.stop.is_set(), _TICK_S)
                    sizes, phase.sizes = phase.sizes, []
                if phase.stop.is_set():
                    return {}
                if sizes:
                    self._channel.send(
                        {"id": number, "event": "probed", **self._probe(phase, sizes)}
                    )
            raise ProtocolError(
                f"the search for the MTU took longer than {self._limits.phase_s:g} s"
            )

        return work

    def _probe(self, phase: _Phase, sizes: Sequence[int]) -> Json:
        wanted = path_mtu.TRIES * sum(sizes)
        if wanted > self._left_bytes():
            return {
                "error": f"the session has reached its data limit ({size(self._left_bytes())} left)"
            }
        probed = path_mtu.far_mtu_send(
            self._around.reflector, self._datagrams, phase.number, sizes, phase.stop
        )
        self.used_bytes += sum(length * count for length, count in probed.sent.items())
        fields = probed.to_json()
        # A null error is none.
        return {name: value for name, value in fields.items() if (name, value) != ("error", None)}


class _Datagrams(stamp.Session):
    """A session's datagrams; tests are sent only to the address of its control connection.

    Who sees a valid datagram on its way could send it first, from somebody else's address, and so
    turn the test against him (RFC 9000 21.5.3 is about the same).
    """

    def __init__(self, key: Key, ssid: int, peer: Peer) -> None:
        super().__init__(key.secret, ssid)
        self._peer = peer

    def address(self, phase: int, patience_s: float, stop: threading.Event) -> stamp.Address:
        found = super().address(phase, patience_s, stop)
        host = address(found)[0]
        if host.partition("%")[0] != self._peer[0].partition("%")[0]:
            raise AirpathError(
                f"UDP arrives from {host}, but TCP from {self._peer[0]}: UDP is sent only to "
                "the address of the TCP session"
            )
        return found


class _Fields:
    """The fields of a request; each complaint names the field and what is allowed."""

    def __init__(self, table: Json) -> None:
        self.table = table

    def direction(self) -> Direction:
        value = self.table.get("direction")
        if value not in ("down", "up"):
            raise ProtocolError("direction must be down or up")
        return "down" if value == "down" else "up"

    def number(self, name: str, least: float, most: float) -> float:
        value = self.table.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ProtocolError(f"{name} is not a number")
        if not least <= value <= most:
            raise ProtocolError(f"{name} is {value:.6g}, but must be from {least:g} to {most:g}")
        return float(value)

    def flag(self, name: str) -> bool:
        value = self.table.get(name, False)
        if not isinstance(value, bool):
            raise ProtocolError(f"{name} is not true or false")
        return value

    def whole(self, name: str, least: int, most: int) -> int:
        value = self.table.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ProtocolError(f"{name} is not a whole number")
        if not least <= value <= most:
            raise ProtocolError(f"{name} is {value}, but must be from {least} to {most}")
        return value


def machine() -> dict[str, str | int | list[str]]:
    """Return what the welcome says about this machine."""
    from airpath import _core

    found: dict[str, str | int | list[str]] = {
        "kernel": os.uname().release,
        "airpath": _core.__version__,
        "congestion": _congestion(),
    }
    for name, sysctl in (("receive_max", "tcp_rmem"), ("send_max", "tcp_wmem")):
        with suppress(OSError, ValueError, IndexError):
            found[name] = int(_sysctl(f"ipv4/{sysctl}")[2])
    with suppress(OSError, ValueError, IndexError):
        found["tcp_ecn"] = int(_sysctl("ipv4/tcp_ecn")[0])
    for name, sysctl in (("receive_set_max", "rmem_max"), ("send_set_max", "wmem_max")):
        with suppress(OSError, ValueError, IndexError):
            found[name] = int(_sysctl(f"core/{sysctl}")[0])
    return found


def _congestion() -> list[str]:
    """Congestion controls that this process may choose."""
    available = stream.available()
    if os.geteuid() == 0:
        return available
    with suppress(OSError):
        allowed = _sysctl("ipv4/tcp_allowed_congestion_control")
        return [name for name in available if name in allowed]
    return available


def _sysctl(name: str) -> list[str]:
    with open(f"/proc/sys/net/{name}", encoding="ascii") as file:  # noqa: PTH123
        return file.read().split()
