"""Sessions with far ends that do not run ``airpath serve``: ``iperf3 -s``, or only ICMP echo.

They run the same phases as far as the far end allows. What it does not say stays ``None``: one-way
delays, and with iperf3 the state of the sender at the far end.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Self

from airpath.base.stopping import deferred
from airpath.errors import AirpathError, reason
from airpath.measure import echo, iperf3, path_mtu, shown, stream
from airpath.measure.control import Limits, Peer, Welcome
from airpath.measure.document import Nats
from airpath.measure.outcome import Outcome
from airpath.measure.plan import LEAST_WINDOW_BYTES, PAUSE_TRIPS, Phase
from airpath.measure.prober import Prober
from airpath.measure.session import Session
from airpath.measure.stream import Options, StreamReport
from airpath.measure.tcp_info import parse_info

_PATIENCE_S = 10.0
_FIRST_PATIENCE_S, _FIRST_GAP_S = 3.0, 0.2
"""How long the first echo may take: a UE may have to connect first (TS 36.331, TS 38.331)."""
_AFTER_OTHERS_S, _BETWEEN_S = 1.0, 5.0
"""How long a server may stay busy after a test: somebody else's, and one of this session."""
_ARRIVING, _BEYOND = 0.9, 0.95
"""Shares of its data after which a downlink phase ends, and any phase closes its streams: what is
in flight arrives all the same."""
_LEAST_HOLD_S = 0.02
"""By this the reset of a stream follows the message that ends the test."""
_PACED = 1.15
"""Pacing is at 85 % of the rate: beyond this factor the server did not pace."""
_HELD_BYTES, _HELD_SHARE = 8 << 20, 0.1
"""What the server had not read when the test ended; Linux buffers 6 MiB at most (tcp_rmem)."""
_CONTROLS = ("bbr", "cubic", "reno")
_WINDOWS = (LEAST_WINDOW_BYTES, 16 << 20)
_LIMITS = Limits(64, 86_400.0, 86_400.0, 1 << 62, None)
"""A server that does not say its limits may have any."""
_MOST_ADDRESSES = 8


class PingSession(Session):
    """A session with a host that answers pings.

    Raises ``AirpathError`` if it does not, or if this host may not send any.
    """

    def __init__(self, host: str) -> None:
        self._start()
        with self._closed_if_it_fails():
            self._choose((_addresses(host)[0], 0))
            self.unprobed = self._why_silent(host)
            if self.unprobed is not None:
                raise AirpathError(f"cannot measure by pings alone: {self.unprobed}")

    @contextmanager
    def _closed_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._packets.close()
            raise

    def _start(self, beside: Session | None = None) -> None:
        super()._start(beside)
        self._opened_ms: float | None = None

    def _choose(self, peer: Peer) -> None:
        """Choose the far end's address."""
        self._peer = peer
        with socket.socket(_family(peer), socket.SOCK_DGRAM) as sock:
            with suppress(OSError):
                sock.connect((peer[0], 9))
            self._here: Peer = (str(sock.getsockname()[0]), 0)
        self.welcome = Welcome("", 0, None, peer, _LIMITS, {})

    def _why_silent(self, host: str) -> str | None:
        """Why no echo comes back; None if one does."""
        try:
            sock = echo.connected(self._peer[0])
        except AirpathError as failed:
            return str(failed)
        with sock:
            pinger = echo.Pinger(sock, begin=self._began, patience_s=0.0)
            pinger.start(_FIRST_GAP_S)
            end = time.monotonic() + _FIRST_PATIENCE_S
            try:
                while not pinger.replies and time.monotonic() < end:
                    time.sleep(0.01)
            finally:
                found = pinger.stop()
        self._idle_ms += [one.rtt_ms for one in found.replies]
        if found.replies:
            self._opened_ms = self._opened_ms or found.replies[0].rtt_ms
            return None
        return f"{host} answers no ICMP echo{echo.why_silent(found.errors)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._packets.close()

    @property
    def opened_ms(self) -> float | None:
        """RTT of the first packet: a handshake or an echo."""
        return self._opened_ms

    @property
    def near(self) -> Peer:
        """The address from which this host reaches the far end; no port."""
        return self._here

    def nats(self) -> Nats | None:
        """Unknown: nothing at the far end answers datagrams."""
        return None

    def _check(self) -> None:
        """Nothing is connected between two phases."""

    def _idle(self, phase: Phase, options: Options, most_bytes: int) -> Outcome:
        if self.unprobed:
            return Outcome(phase, errors=[self.unprobed])
        return super()._idle(phase, options, most_bytes)

    def _tcp(self, phase: Phase, _: Options, __: int) -> Outcome:
        return Outcome(phase, errors=["a host that only answers pings has no TCP transfers"])

    def _mtu(self, phase: Phase, _: Options, __: int) -> Outcome:
        """Find the path MTU upwards."""
        if phase.direction != "up":
            return Outcome(phase, errors=["ICMP echo does not show the downlink path MTU"])
        with echo.connected(self._peer[0]) as sock:
            found = path_mtu.search_up(echo.EchoProber(sock), 1500, self._stop)
        return Outcome(phase, mtu=found, errors=[found.error] if found.error else [])

    @contextmanager
    def _prober(self, patience_s: float) -> Iterator[Prober]:
        with echo.connected(self._peer[0]) as sock:
            pinger = echo.Pinger(sock, begin=self._began, patience_s=patience_s)
            try:
                yield pinger
            finally:
                with deferred():
                    pinger.stop()


class Iperf3Session(PingSession):
    """A session with ``iperf3 -s``, in which each phase of TCP is a test.

    ``explores``: find out which congestion controls and buffers it accepts. Raises ``BusyError`` if
    it runs another test, and ``AirpathError`` if it does not answer.
    """

    pause_trips = PAUSE_TRIPS + 5
    """Each test has two handshakes and waits for six states or results of the server; a phase
    against `airpath serve` has one handshake and waits for three messages."""

    def __init__(
        self, host: str, port: int, say: Callable[[str], None], *, explores: bool = True
    ) -> None:
        self._start()
        self._tested = False
        self._usual: str | None = None
        """The congestion control that the server uses if it is not asked for another one."""
        self._last: str | None = None
        with self._closed_if_it_fails():
            self._connect(host, port)
            if explores:
                self._explore(say)
            self.unprobed = self._why_silent(host)
        if self.unprobed is not None:
            say(f"no round trips of probes: {self.unprobed}")

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        if self._last not in (None, self._usual):
            # Up to 3.18 a server keeps the congestion control for the tests of others.
            with suppress(AirpathError, OSError):
                self._empty(Options(congestion=self._usual))

    def _test(self) -> iperf3.Test:
        patient_s = _BETWEEN_S if self._tested else _AFTER_OTHERS_S
        test = iperf3.Test(self._peer, _PATIENCE_S, patient_s)
        self._tested = True
        if test.handshake_ms is not None:
            self.handshake_ms = min(test.handshake_ms, self.handshake_ms or test.handshake_ms)
        self._opened_ms = self._opened_ms or test.opened_ms
        return test

    def _connect(self, host: str, port: int) -> None:
        """Run a test without data with the first address of the host that answers."""
        *others, last = _addresses(host)
        for address in others:
            self._choose((address, port))
            with suppress(iperf3.ConnectError):
                self._usual = self._empty(Options(), output=True)
                return
        self._choose((last, port))
        self._usual = self._empty(Options(), output=True)

    def _explore(self, say: Callable[[str], None]) -> None:
        """Tests without data: which congestion control and buffers the server accepts."""
        other = (one for one in _CONTROLS if one != self._usual)
        accepted = next((one for one in other if self._empty(Options(congestion=one)) == one), None)
        controls = [one for one in (self._usual, accepted) if one is not None]
        self.welcome.host["congestion"] = controls
        largest = 0
        for size in _WINDOWS:
            if not self._accepts(size):
                break
            largest = size
        self.welcome.host["receive_set_max"] = self.welcome.host["send_set_max"] = largest
        if not largest:
            say("the server's socket buffers may not be larger: no treatment enlarges the window")

    def _accepts(self, window_bytes: int) -> bool:
        try:
            self._empty(Options(window_bytes=window_bytes))
        except iperf3.ServerError as refused:
            if refused.number not in iperf3.WINDOW_ERRORS:
                raise
            return False
        return True

    def _empty(self, options: Options, *, output: bool = False) -> str | None:
        """Run a test in which nothing is sent; the congestion control that the server used.

        The server sets what it is asked for on the receiving side too.
        """
        with self._test() as test:
            test.begin(iperf3.parameters(options, 1, 1.0, down=False, output=output))
            with self._joined(test, Options(), "sender", 1):
                test.await_running()
                test.end(_PATIENCE_S)
            found = test.results(iperf3.own_results([(0, 0)], 0.0, None), 1)
        self._last = found.congestion
        if found.seen_as is not None:
            self.welcome = replace(self.welcome, you=(found.seen_as, 0))
        return found.congestion

    @contextmanager
    def _joined(
        self, test: iperf3.Test, options: Options, role: stream.Role, count: int
    ) -> Iterator[list[socket.socket]]:
        """Connect the streams of a test."""
        sockets: list[socket.socket] = []
        try:
            for _ in range(count):
                sock = stream.connect(
                    self._peer, options, role, streams=count, timeout_s=_PATIENCE_S
                )
                sockets.append(sock)
                sock.sendall(test.cookie)
            yield sockets
        finally:
            for sock in sockets:
                sock.close()

    def _tcp(self, phase: Phase, options: Options, most_bytes: int) -> Outcome:
        down = phase.direction == "down"
        if down:
            options = replace(options, congestion=options.congestion or self._usual)
        role: stream.Role = "receiver" if down else "sender"
        count = phase.treatment.streams
        most = round(_ARRIVING * most_bytes) if down else most_bytes
        captured = self._packets.capturing(self._peer[1], phase.is_captured)
        with captured as packets, self._test() as test:
            asked = options if down else replace(options, congestion=None)
            test.begin(iperf3.parameters(asked, count, phase.duration_s, down=down))
            with self._joined(test, options, role, count) as sockets:
                ports = [one.getsockname()[1] for one in sockets]
                test.await_running()
                with self._probing(phase) as probes:

                    def end(report: StreamReport) -> None:
                        test.end(_hold_s(report, role, count, most_bytes))

                    near = self._carry(sockets, phase, role, most, end)
            found = test.results(_own(near, role), count)
        judged = shown.judged(packets(), ports)
        self._last = found.congestion
        senders, receivers = (
            ([_sender(*pair) for pair in zip(near, found.streams, strict=True)], near)
            if down
            else (near, [_receiver(one) for one in near])
        )
        if down and found.congestion is not None:
            for one in senders:
                one.options_in_force = {"congestion": found.congestion}
        capped = sum(one.bytes for one in receivers) >= most - count
        broken = _broken(options, near, found) if down else _held(near, found)
        if broken:
            # Figures of another treatment than the one that was asked for.
            raise AirpathError("; ".join(broken))
        return Outcome(
            phase,
            senders=senders,
            receivers=receivers,
            probes=probes(),
            shown={} if judged is None else {"near": judged},
            packets=packets(),
            errors=[one.error for one in near if one.error],
            capped=capped,
        )


def _hold_s(report: StreamReport, role: stream.Role, count: int, most_bytes: int) -> float:
    """How long streams stay open after the end, in which the kernels still send what they buffer.

    That is at most what the phase has left of its data.
    """
    carried = count * report.bytes
    all_arrived = role == "sender" and carried >= most_bytes - count
    if all_arrived or not carried:
        return _PATIENCE_S
    left = _BEYOND * most_bytes - carried
    return max(_LEAST_HOLD_S, left / carried * report.duration_s)


def _own(near: Sequence[StreamReport], role: stream.Role) -> Mapping[str, object]:
    """Results of this end, for the server."""
    lasted_s = max(one.duration_s for one in near)
    congestion = near[0].options_in_force.get("congestion")
    return iperf3.own_results(
        [
            (one.bytes, (one.info[-1].retrans_total or 0) if one.info else None)
            if role == "sender"
            else (one.bytes, None)
            for one in near
        ],
        lasted_s,
        congestion if isinstance(congestion, str) else None,
    )


def _sender(receiver: StreamReport, said: iperf3.StreamResult) -> StreamReport:
    """What is known of a sender that is there: its retransmissions, if it counts them."""
    mss = receiver.options_in_force.get("mss_bytes")
    return StreamReport(
        bytes=receiver.bytes,
        duration_s=said.duration_s,
        totals=parse_info(b"", said.duration_s)._replace(
            retrans_total=said.retransmits,
            # Both ends have the smaller MSS of the two, unless a router changes one of them.
            mss_bytes=mss if isinstance(mss, int) else None,
            bytes_acked=receiver.bytes,
        ),
    )


def _receiver(sender: StreamReport) -> StreamReport:
    """A receiver that is there: what it acknowledged, half a round trip after it arrived."""
    first = sender.info[0].bytes_acked or 0 if sender.info else 0
    curve = [(one.time_s, (one.bytes_acked or 0) - first) for one in sender.info]
    curve.append((sender.duration_s, sender.bytes))
    arrived: list[tuple[float, int]] = []
    for at, total in curve:
        if total > (arrived[-1][1] if arrived else 0):
            arrived.append((at, min(total, sender.bytes)))
    return StreamReport(
        bytes=sender.bytes,
        duration_s=arrived[-1][0] if arrived else 0.0,
        arrived=arrived,
    )


def _broken(options: Options, near: Sequence[StreamReport], found: iperf3.Results) -> list[str]:
    """Options that the server was asked for and did not keep."""
    said = []
    if options.congestion is not None and found.congestion not in (None, options.congestion):
        said.append(f"the server used {found.congestion} instead of {options.congestion}")
    lasted_s = max(one.duration_s for one in near)
    if options.pacing_mbps is not None and lasted_s > 0:
        mbps = sum(one.bytes for one in near) * 8e-6 / lasted_s
        if mbps > _PACED * options.pacing_mbps:
            said.append(
                f"the server did not pace: {mbps:.4g} Mb/s instead of {options.pacing_mbps:.4g}"
            )
    return said


def _held(near: Sequence[StreamReport], found: iperf3.Results) -> list[str]:
    """Whether much less arrived than was acknowledged: something on the path acknowledges."""
    acknowledged = sum(one.bytes for one in near)
    missing = acknowledged - sum(one.bytes for one in found.streams)
    if missing <= max(_HELD_BYTES, _HELD_SHARE * acknowledged):
        return []
    return [
        f"{missing} of {acknowledged} acknowledged bytes had not arrived when the test ended: "
        "a proxy on the path acknowledges them"
    ]


def _addresses(host: str) -> list[str]:
    """The addresses of a host, each once. Raises ``AirpathError``."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        text = reason(error) if isinstance(error, OSError) else str(error)
        raise AirpathError(f"cannot look up {host}: {text}") from None
    return list(dict.fromkeys(str(one[4][0]) for one in found))[:_MOST_ADDRESSES]


def _family(peer: Peer) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
