"""The near end of a measurement: runs the phases of a plan against ``airpath serve``."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from statistics import median

from airpath.base.json import Json
from airpath.base.stopping import deferred
from airpath.base.text import rate
from airpath.errors import AirpathError, reason
from airpath.measure import datagrams, nats, path_mtu, shown, stamp, stream
from airpath.measure.control import (
    EndedError,
    Peer,
    ProtocolError,
    SilenceError,
    await_start,
    connect,
    stream_line,
)
from airpath.measure.document import Nats, Responses
from airpath.measure.outcome import Outcome
from airpath.measure.packets import Packets
from airpath.measure.plan import (
    BASE,
    KEEP_ALIVE_S,
    MOST_UDP_MBPS,
    PAUSE_TRIPS,
    Phase,
    Treatment,
)
from airpath.measure.prober import Prober, Probes
from airpath.measure.responsiveness import Requester
from airpath.measure.stream import Options, StreamReport

_PATIENCE_S = 10.0
_TICK_S = 0.2
_DRAIN_S = 5.0
"""How long a queue may take to drain; after that the next phase begins all the same."""
_DRAINED, _DRAINED_MS = 1.25, 2.0
"""A queue has drained when the best of three probes takes at most this many times the median RTT of
the idle path, and this much more."""
_DRAIN_GAP_S = 0.05
_DATAGRAM_MBPS, _DATAGRAM_S = 0.1, 0.02
"""Three datagrams of 112 bytes: one may be lost."""
_IDLE_PATIENCE_S, _LOADED_PATIENCE_S = 1.0, 3.0
"""How long a probe may take; behind a full queue it takes seconds."""


class Session:
    """A session with a server, used as a context manager.

    Raises ``AirpathError`` if the server does not answer, and ``ProtocolError`` for a wrong token.
    """

    unprobed: str | None = None
    """Why there are no probes; ``None`` if there are."""
    pause_trips = PAUSE_TRIPS
    handshake_ms: float | None = None
    """The least RTT of TCP handshakes; ``None`` if it was not measured."""

    def __init__(self, host: str, port: int, token: str, *, beside: Session | None = None) -> None:
        """Connect; a session ``beside`` another one has the other one's clock."""
        self._channel, self._key, self.welcome = connect(host, port, token, _PATIENCE_S)
        self._peer: Peer = self._channel.peer
        self._start(beside)

    def _start(self, beside: Session | None = None) -> None:
        """Begin the session's clock, or take that of another session."""
        self._began: float = time.monotonic() if beside is None else beside._began
        self._requests = self._phases = 0
        self._idle_ms: list[float] = []
        """RTTs of probes beside nothing."""
        self._stop = threading.Event()
        self._packets = Packets()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with suppress(AirpathError, OSError):
            self._channel.send({"do": "bye"})
        self._channel.close()
        self._packets.close()

    @property
    def uncaptured(self) -> str:
        """Why this host captures no packets; empty if it does."""
        return self._packets.refused

    @property
    def opened_ms(self) -> float | None:
        """How long this host waited for the control connection."""
        return self._channel.opened_ms

    @property
    def near(self) -> Peer:
        """Address and port of the control connection as this host has them."""
        return self._channel.here

    def now(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self._began

    def run(self, phase: Phase, pacing_mbps: float | None, most_bytes: int) -> Outcome:
        """Run a phase, after its silence.

        ``pacing_mbps`` is the rate of a paced treatment, ``most_bytes`` what the phase may carry.
        A server that limits the rate paces downlink transfers itself.
        What fails is in the outcome's errors. Raises ``ProtocolError`` if the session is over.
        """
        self._stop.wait(phase.quiet_s)
        self._check()
        self._phases += 1
        works = {"idle": self._idle, "tcp": self._tcp, "udp": self._udp, "mtu": self._mtu}
        work = works[phase.kind]
        options = phase.treatment.options
        is_up = (phase.kind, phase.direction) == ("tcp", "up")
        limit = self.welcome.limits.rate_mbps if is_up else None
        paces = [one for one in (pacing_mbps, limit) if one is not None]
        if paces:
            options = replace(options, pacing_mbps=min(paces))
        started = self.now()
        try:
            outcome = work(phase, options, most_bytes)
        except (EndedError, SilenceError):
            raise
        except AirpathError as failed:
            outcome = Outcome(phase, errors=[str(failed)])
        except OSError as failed:
            outcome = Outcome(phase, errors=[f"no connection: {reason(failed)}"])
        return replace(outcome, started_s=started, ended_s=self.now())

    def _check(self) -> None:
        """Raise ``ProtocolError`` if the server has disconnected."""
        with suppress(SilenceError):
            self._channel.receive(0)

    def stay(self) -> None:
        """Say that the measurement goes on: the server ends sessions that are silent for long."""
        self._requests += 1
        self._channel.send({"do": "stop", "id": self._requests})

    def drain(self) -> None:
        """Wait until the queues that a phase left behind are empty, for 5 s at most."""
        if not self._idle_ms:
            return
        usual_ms = median(self._idle_ms)
        with self._prober(_DRAIN_GAP_S) as prober:
            with deferred():
                prober.start(_DRAIN_GAP_S)
            end = time.monotonic() + _DRAIN_S
            while time.monotonic() < end:
                time.sleep(_DRAIN_GAP_S)
                last = [one.rtt_ms for one in prober.replies[-3:]]
                if len(last) == 3 and min(last) <= _DRAINED * usual_ms + _DRAINED_MS:
                    return

    def _idle(self, phase: Phase, _: Options, __: int) -> Outcome:
        """Probe a path without load."""
        with self._probing(phase) as probes:
            self._stop.wait(phase.duration_s)
        return Outcome(phase, probes=probes())

    def _tcp(self, phase: Phase, options: Options, most_bytes: int) -> Outcome:
        role: stream.Role = "receiver" if phase.direction == "down" else "sender"
        count = phase.treatment.streams
        with self._packets.capturing(self._peer[1], phase.is_captured) as packets:
            number = self._ask(
                "tcp",
                phase,
                streams=count,
                duration_s=phase.duration_s,
                options=options.to_json(),
                capture=phase.is_captured,
            )
            with self._streams(role, count, options) as sockets:
                ports = [one.getsockname()[1] for one in sockets]
                with self._probing(phase) as probes, self._requesting(phase) as responses:
                    near = self._carry(sockets, phase, role, most_bytes)
        done = self._answer(number, phase.duration_s + _DRAIN_S + _PATIENCE_S)
        far = [StreamReport.from_json(one) for one in done.get("streams", [])]
        if len(far) != len(near):
            raise ProtocolError(f"the far end reports {len(far)} streams of {len(near)}")
        senders, receivers = (far, near) if role == "receiver" else (near, far)
        capped = sum(one.bytes for one in receivers) >= most_bytes - len(receivers)
        # The end that reaches its byte limit closes the connection.
        errors = [] if capped else [one.error for one in (*near, *far) if one.error]
        both = {"near": shown.judged(packets(), ports), "far": shown.from_json(done.get("shown"))}
        return Outcome(
            phase,
            senders=senders,
            receivers=receivers,
            probes=probes(),
            shown={end: one for end, one in both.items() if one is not None},
            packets=packets(),
            responses=responses(),
            errors=errors,
            capped=capped,
        )

    @contextmanager
    def _streams(
        self, role: stream.Role, count: int, options: Options
    ) -> Iterator[list[socket.socket]]:
        """Open the streams of a phase; the server has accepted them all."""
        sockets: list[socket.socket] = []
        try:
            for at in range(count):
                sock = stream.connect(
                    self._peer, options, role, streams=count, timeout_s=_PATIENCE_S
                )
                sockets.append(sock)
                sock.sendall(stream_line(self._key, self._phases, at))
            for sock in sockets:
                await_start(sock, _PATIENCE_S)
            yield sockets
        finally:
            for sock in sockets:
                sock.close()

    def _carry(
        self,
        sockets: list[socket.socket],
        phase: Phase,
        role: stream.Role,
        most_bytes: int,
        ending: Callable[[StreamReport], None] | None = None,
    ) -> list[StreamReport]:
        """Send or receive on all streams, each in a thread, until the phase is over.

        With ``ending`` this end ends the phase, once the first stream is over: each stream calls it
        before it closes, and a receiver does not wait until the sender ends.
        """
        stop = self._stop if ending is None else threading.Event()

        def over(report: StreamReport) -> None:
            if ending is not None:
                stop.set()
                ending(report)

        begin, most = time.monotonic(), most_bytes // len(sockets)
        reports = [StreamReport(error="the stream did not run") for _ in sockets]

        def carry(at: int) -> None:
            if role == "sender":
                reports[at] = stream.send(
                    sockets[at], phase.duration_s, stop, most, begin=begin, ending=over
                )
            else:
                most_s = phase.duration_s + (0.0 if ending else _DRAIN_S)
                reports[at] = stream.receive(
                    sockets[at], stop, most, begin=begin, most_s=most_s, ending=over
                )

        threads = [
            threading.Thread(target=carry, args=(at,), name="airpath-stream", daemon=True)
            for at in range(len(sockets))
        ]
        with deferred():
            for thread in threads:
                thread.start()
        for thread in threads:
            # Without a bound Ctrl-C would wait for the thread.
            while thread.is_alive():
                thread.join(_TICK_S)
        return reports

    def _udp(self, phase: Phase, options: Options, most_bytes: int) -> Outcome:
        """Send or receive datagrams at a rate; a phase with too few bytes for it is shorter."""
        rate_mbps = options.pacing_mbps
        if rate_mbps is None or phase.size_bytes is None:
            raise AirpathError("the rate for UDP is unknown: no transfer has run")
        most_mbps = min(MOST_UDP_MBPS, self.welcome.limits.rate_mbps or MOST_UDP_MBPS)
        if rate_mbps > most_mbps:
            raise AirpathError(
                f"UDP at {rate(rate_mbps)} is left out: the limit is {rate(most_mbps)}"
            )
        sock = stamp.connected(*self._peer)
        try:
            size_bytes = phase.size_bytes - stamp.header_bytes(sock.getpeername())
            carried_bytes = most_bytes * size_bytes / phase.size_bytes
            duration_s = max(0.01, min(phase.duration_s, carried_bytes * 8e-6 / rate_mbps))
            direction = phase.direction or "down"
            load = datagrams.Load(self._phases, direction, rate_mbps, size_bytes, duration_s)
            number = self._ask(
                "udp", phase, rate_mbps=rate_mbps, size_bytes=size_bytes, duration_s=duration_s
            )
            here = (sock, self._key.secret, self.welcome.ssid, load, self._stop)
            near = (
                datagrams.near_send(*here) if direction == "up" else datagrams.near_receive(*here)
            )
        finally:
            sock.close()
        done = self._answer(number, duration_s + _DRAIN_S + _PATIENCE_S)
        if isinstance(near, datagrams.Sent):
            report = datagrams.UdpReport.from_json(done.get("udp")).with_sent(near)
        else:
            report = near.with_sent(datagrams.Sent.from_json(done.get("sent")))
        return Outcome(phase, udp=(load, report), errors=[report.error] if report.error else [])

    def _mtu(self, phase: Phase, _: Options, __: int) -> Outcome:
        """Find the path MTU of a direction."""
        number = self._ask("mtu", phase)
        sock = stamp.connected(*self._peer)
        here = (sock, self._key.secret, self.welcome.ssid, self._phases)

        def ask(sizes: Sequence[int]) -> path_mtu.Probed:
            self._channel.send({"id": number, "sizes": list(sizes)})
            return path_mtu.Probed.from_json(self._answer(number, _PATIENCE_S))

        try:
            if phase.direction == "up":
                report = path_mtu.near_mtu_up(*here, self._stop)
            else:
                report = path_mtu.near_mtu_down(*here, ask, self._stop)
        finally:
            sock.close()
            self._channel.send({"do": "stop", "id": number})
            with suppress(AirpathError):
                self._answer(number, _PATIENCE_S)
        return Outcome(phase, mtu=report, errors=[report.error] if report.error else [])

    def nats(self) -> Nats | None:
        """Find the NATs between the ends; None if the far end does not say whom it sees."""
        if self.welcome.you is None:
            return None
        here = (self.near, self.welcome.you, self._peer)
        return nats.between(*here, self._key.secret, self.welcome.ssid)

    def binding(self, most_s: float) -> list[float | None]:
        """Find out how long a UDP binding lives in silence; takes ``most_s`` at most."""
        key = stamp.mac_key(self._key.secret)
        phase = Phase(0, -1, "udp", "down", Treatment(BASE), _DATAGRAM_S, 0)

        def ask() -> int:
            self._phases += 1
            load = {"rate_mbps": _DATAGRAM_MBPS, "size_bytes": stamp.PACKET_BYTES}
            number = self._ask("udp", phase, duration_s=_DATAGRAM_S, **load)
            self._answer(number, _PATIENCE_S)
            return self._phases

        here = (self._peer, key, self.welcome.ssid, self._phases + 1)
        return nats.binding(*here, most_s, ask, self._stop)

    @contextmanager
    def _prober(self, patience_s: float) -> Iterator[Prober]:
        """A prober with a socket of its own, which has stopped in the end."""
        sock = stamp.connected(*self._peer)
        try:
            prober = Prober(
                sock,
                self._key.secret,
                self.welcome.ssid,
                begin=self._began,
                patience_s=patience_s,
            )
            try:
                yield prober
            finally:
                with deferred():
                    prober.stop()
        finally:
            sock.close()

    @contextmanager
    def _probing(self, phase: Phase) -> Iterator[Callable[[], Probes | None]]:
        """Probe during a phase; keep the radio awake, if it is the phase's treatment."""
        found: list[Probes] = []
        gap_s = KEEP_ALIVE_S if phase.treatment.keep_alive else phase.probe_gap_s
        if gap_s is None or self.unprobed:
            yield lambda: None
            return
        idle = phase.kind == "idle"
        with self._prober(_IDLE_PATIENCE_S if idle else _LOADED_PATIENCE_S) as prober:
            # A thread that was interrupted while it starts cannot be joined.
            with deferred():
                prober.start(gap_s, exponential=not phase.treatment.keep_alive, seed=phase.number)
            try:
                yield lambda: found[0]
            finally:
                found.append(prober.stop())
                if idle:
                    self._idle_ms += [one.rtt_ms for one in found[0].replies]

    @contextmanager
    def _requesting(self, phase: Phase) -> Iterator[Callable[[], Responses | None]]:
        """Connect and request beside a phase, if its plan wants that."""
        found: list[Responses] = []
        if phase.request_gap_s is None:
            yield lambda: None
            return
        here = (self._peer, self._key, self._phases, self._began)
        requester = Requester(*here, phase.request_gap_s)
        with deferred():
            requester.start()
        try:
            yield lambda: found[0]
        finally:
            with deferred():
                found.append(requester.stop())

    def _ask(self, do: str, phase: Phase, **fields: object) -> int:
        """Send a request and wait until the server is ready; the request's number."""
        self._requests += 1
        number = self._requests
        self._channel.send(
            {"do": do, "id": number, "phase": self._phases, "direction": phase.direction, **fields}
        )
        answer = self._answer(number, _PATIENCE_S)
        if not answer.get("ready"):
            raise ProtocolError("the far end did not say that it is ready")
        return number

    def _answer(self, number: int, patience_s: float) -> Json:
        """The next message about a request. Raises ``AirpathError`` with the server's error."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            try:
                # In parts, so that Ctrl-C works.
                message = self._channel.receive(_TICK_S)
            except SilenceError:
                continue
            if message.get("id") == number:
                if "error" in message:
                    raise AirpathError(f"the server refused: {message['error']}")
                return message
        raise ProtocolError(f"the server did not answer within {patience_s:.0f} s")
