"""The far end of a measurement: `airpath serve`.

TCP and UDP use one port. It serves only those who prove that they know the token, speaks only after
they did, and never sends an unproven peer more bytes than it received from it; an invalid datagram
gets no answer. Everything is bounded: connections that have not proved themselves, sessions,
streams, time, data, and what is remembered about wrong proofs.

One thread accepts connections and reads their first lines, another one answers datagrams, and each
session has its own (`far.py`).
"""

from __future__ import annotations

import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from airpath.base.text import printable
from airpath.errors import AirpathError, listen_reason, reason
from airpath.measure import shown, stamp
from airpath.measure.control import (
    MOST_FIRST_LINE,
    PORT,
    Channel,
    Greeting,
    Join,
    Limits,
    Peer,
    ProtocolError,
    RefusedError,
    WrongProofError,
    address,
    spelled,
)
from airpath.measure.far import MOST_REQUEST, FarSession, Surroundings, machine
from airpath.measure.guard import Narration, Refusals, to_make_room
from airpath.measure.packets import Packets

MOST_WAITING = 128
"""Connections at a time that have not proved themselves: all streams of four sessions."""
PROOF_S = 5.0
"""How long a connection may take to prove itself."""
MOST_STREAMS = 32
MOST_PHASE_S = 60.0
USUAL_DATA_BYTES = 10 * 10**9
USUAL_SESSION_S = 3600.0
USUAL_SESSIONS = 4
_JOINED_S = 2.0
_TICK_S = 0.5
_PORT_ATTEMPTS = 20


@dataclass(frozen=True)
class ServerOptions:
    """Where a server listens and what it lets a session do."""

    host: str | None = None
    """An address of this machine; None: all of them, IPv6 and IPv4."""
    port: int = PORT
    """0: any that is free."""
    sessions: int = USUAL_SESSIONS
    """At a time."""
    data_bytes: int = USUAL_DATA_BYTES
    """Data of one session."""
    session_s: float = USUAL_SESSION_S
    rate_mbps: float | None = None
    """Rate of all sessions together: each has an equal share, even if others use less."""

    def limits(self) -> Limits:
        """Return the limits of one session."""
        share = None if self.rate_mbps is None else self.rate_mbps / self.sessions
        phase_s = min(MOST_PHASE_S, self.session_s)
        return Limits(MOST_STREAMS, phase_s, self.session_s, self.data_bytes, share)


@dataclass
class Traffic:
    """Bytes from and to peers that have not proved themselves."""

    received: int = 0
    sent: int = 0


@dataclass
class _Waiting:
    """A connection that has not proved itself."""

    sock: socket.socket
    peer: Peer
    greeting: Greeting
    until_s: float
    left: bool = False
    """Whether it closed the connection."""


@dataclass
class _Served:
    """A session and its thread."""

    session: FarSession
    thread: threading.Thread = field(default_factory=threading.Thread)


class Server:
    """Listens from its construction on; `run` serves until `stop`, and `close` ends all sessions.

    Raises AirpathError if it cannot listen.
    """

    def __init__(self, token: str, options: ServerOptions, say: Callable[[str], None]) -> None:
        self._token = token
        self._options = options
        self._say = _never_failing(say)
        self._listener, self._datagrams = _listening(options.host, options.port)
        self.address: Peer = address(self._listener.getsockname())
        self.traffic = Traffic()
        self._reflector = stamp.Reflector(self._datagrams)
        self._refusals = Refusals()
        self._narration = Narration(self._say)
        self._waiting: dict[int, _Waiting] = {}
        self._sessions: dict[str, _Served] = {}
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._stopped = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._reflecting: threading.Thread | None = None
        self._packets = Packets()
        if not self._packets.refused:
            # What another user may not be able to read.
            shown.prepare()
        self._around = Surroundings(
            options.limits(), machine, self._reflector, self._say, self._testing, self._packets
        )

    @property
    def waiting(self) -> int:
        """Connections that have not proved themselves."""
        return len(self._waiting)

    @property
    def sessions(self) -> int:
        """Sessions that are served."""
        with self._lock:
            return len(self._sessions)

    def run(self) -> None:
        """Serve until `stop`; what signals raise passes through."""
        self._reflecting = threading.Thread(
            target=self._reflect, name="airpath-reflector", daemon=True
        )
        self._reflecting.start()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        while not self._stopped.is_set():
            for key, _ in self._selector.select(self._patience_s()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fd in self._waiting:
                    self._hear(self._waiting[key.fd])
            self._expire()

    def stop(self) -> None:
        """Let `run` return; any thread may call it."""
        self._stopped.set()
        with suppress(OSError):
            self._wake.send(b".")

    def close(self) -> None:
        """End all sessions and close all sockets."""
        self._stopped.set()
        with self._lock:
            served = list(self._sessions.values())
        for one in served:
            one.session.end("the server ended")
        for waiting in list(self._waiting.values()):
            self._leave(waiting)
            waiting.sock.close()
        end_s = time.monotonic() + _JOINED_S
        threads = [one.thread for one in served]
        for thread in [*threads, *([self._reflecting] if self._reflecting else [])]:
            # A signal may have come before the thread was started.
            if thread.ident is not None:
                thread.join(max(0.0, end_s - time.monotonic()))
        self._selector.close()
        self._packets.close()
        for sock in (self._listener, self._datagrams, self._wake, self._woken):
            sock.close()

    @contextmanager
    def running(self) -> Iterator[Server]:
        """Serve in a thread as long as the context lasts."""
        thread = threading.Thread(target=self.run, name="airpath-serve", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()
            self.close()

    # --- Connections that have not proved themselves ------------------------------------------

    def _patience_s(self) -> float:
        """Until the next of them has waited for too long."""
        first = next(iter(self._waiting.values()), None)
        if first is None:
            return _TICK_S
        return min(_TICK_S, max(0.0, first.until_s - time.monotonic()))

    def _accept(self) -> None:
        for _ in range(MOST_WAITING):
            try:
                sock, found = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # No descriptors are left, or the connection is gone again.
                said = f"cannot accept a connection: {reason(error)}"
                self._narration.line(said, time.monotonic())
                self._stopped.wait(0.1)
                return
            self._admit(sock, address(found))

    def _admit(self, sock: socket.socket, peer: Peer) -> None:
        """Let a connection prove itself, if its address may; another one may have to make room."""
        now_s = time.monotonic()
        if self._refusals.refuses(peer, now_s) and not self._has_session_of(peer):
            self._narration.refused(peer, "too many wrong proofs", now_s)
            sock.close()
            return
        if len(self._waiting) >= MOST_WAITING:
            waiting = list(self._waiting.values())
            oldest = waiting[to_make_room([one.peer for one in waiting])]
            self._refuse(oldest, RefusedError("its place was needed for other connections"))
        sock.setblocking(False)
        waits = _Waiting(sock, peer, Greeting(self._token), now_s + PROOF_S)
        self._waiting[sock.fileno()] = waits
        self._selector.register(sock, selectors.EVENT_READ)

    def _hear(self, waiting: _Waiting) -> None:
        """Read what a connection said; answer, admit or refuse it."""
        greeting = waiting.greeting
        try:
            data = waiting.sock.recv(MOST_FIRST_LINE)
            if not data:
                waiting.left = True
                self._refuse(
                    waiting, RefusedError("it left before it proved that it knows the token")
                )
                return
            self.traffic.received += len(data)
            answer = greeting.feed(data)
            if greeting.key is None and greeting.join is None:
                self._answer(waiting, answer)
                return
            self._leave(waiting)
            if greeting.join is not None:
                self._join(waiting, greeting.join)
            else:
                self._begin(waiting, answer)
        except BlockingIOError:
            return
        except RefusedError as error:
            self._refuse(waiting, error)
        except OSError as error:
            self._refuse(waiting, RefusedError(f"its connection failed: {reason(error)}"))

    def _answer(self, waiting: _Waiting, answer: bytes) -> None:
        """Answer an unproven peer. A new connection takes a line at once."""
        if answer and waiting.sock.send(answer) != len(answer):
            raise RefusedError("it does not read from the connection")
        self.traffic.sent += len(answer)

    def _refuse(self, waiting: _Waiting, error: RefusedError) -> None:
        now_s = time.monotonic()
        if isinstance(error, WrongProofError):
            self._refusals.note(waiting.peer, now_s)
        farewell = waiting.greeting.farewell(error)
        with suppress(OSError):
            if farewell:
                self._answer(waiting, farewell)
        # What only connects and leaves is a health check, or a scan of ports.
        if waiting.greeting.received or not waiting.left:
            self._narration.refused(waiting.peer, str(error), now_s)
        self._leave(waiting)
        waiting.sock.close()

    def _leave(self, waiting: _Waiting) -> None:
        """Take a connection out of those that have not proved themselves."""
        number = waiting.sock.fileno()
        if self._waiting.pop(number, None) is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(waiting.sock)

    def _expire(self) -> None:
        now_s = time.monotonic()
        while self._waiting:
            first = next(iter(self._waiting.values()))
            if first.until_s > now_s:
                break
            self._refuse(first, RefusedError(f"no proof within {PROOF_S:.0f} s"))
        self._narration.flush(now_s)

    # --- Sessions -----------------------------------------------------------------------------

    def _begin(self, waiting: _Waiting, answer: bytes) -> None:
        """Start the session of a peer that proved that it knows the token."""
        key, peer = waiting.greeting.key, waiting.peer
        if key is None:
            raise RefusedError("it did not prove that it knows the token")
        if self._refusals.refuses(peer, time.monotonic()):
            raise RefusedError("too many wrong proofs")
        self._refusals.forget(peer)
        waiting.sock.send(answer)
        channel = Channel(
            waiting.sock, key, "far", most_line=MOST_REQUEST, arrived=waiting.greeting.rest
        )
        with self._lock:
            count = len(self._sessions)
            if count < self._options.sessions:
                served = _Served(FarSession(channel, key, self._ssid(), self._around))
                self._sessions[key.session] = served
            else:
                served = None
        if served is None:
            self._turn_away(channel)
            return
        self._say(f"{spelled(peer)} authenticated: session {count + 1} of {self._options.sessions}")
        served.thread = threading.Thread(
            target=self._serve, args=(served.session,), name="airpath-session", daemon=True
        )
        served.thread.start()

    def _turn_away(self, channel: Channel) -> None:
        most = self._options.sessions
        self._say(f"{spelled(channel.peer)} turned away: {most} of {most} sessions are in use")
        with suppress(ProtocolError):
            channel.send({"error": f"all {most} sessions are in use; try again later"})
        channel.close()

    def _ssid(self) -> int:
        used = {one.session.ssid for one in self._sessions.values()}
        while True:
            ssid = 1 + secrets.randbelow(0xFFFF)
            if ssid not in used:
                return ssid

    def _serve(self, session: FarSession) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                self._sessions.pop(session.key.session, None)

    def _join(self, waiting: _Waiting, claim: Join) -> None:
        """Give a data connection to its session, if its proof is right."""
        with self._lock:
            served = self._sessions.get(claim.session)
        if served is None:
            raise RefusedError("its session does not exist")
        if not served.session.key.proves(f"stream {claim.phase} {claim.stream}", claim.proof):
            raise WrongProofError("the proof of its stream is wrong")
        if waiting.greeting.rest:
            raise RefusedError("its stream began before the start")
        try:
            served.session.join(claim, waiting.sock)
        except ProtocolError as error:
            raise RefusedError(str(error)) from None

    def _has_session_of(self, peer: Peer) -> bool:
        with self._lock:
            return any(one.session.peer[0] == peer[0] for one in self._sessions.values())

    def _testing(self) -> int:
        with self._lock:
            return sum(one.session.is_testing for one in self._sessions.values())

    def _reflect(self) -> None:
        """Answer datagrams, whatever arrives."""
        while not self._stopped.is_set():
            try:
                self._reflector.run(self._stopped)
            except Exception as error:
                if not self._stopped.is_set():
                    self._say(f"the UDP socket failed: {printable(str(error))}")
                    self._stopped.wait(1.0)


def _never_failing(say: Callable[[str], None]) -> Callable[[str], None]:
    """Narrate one line at a time; a log that cannot be written ends no session."""
    lock = threading.Lock()

    def one_line(text: str) -> None:
        with lock, suppress(OSError, ValueError):
            say(printable(text).replace("\n", " "))

    return one_line


def _listening(host: str | None, port: int) -> tuple[socket.socket, socket.socket]:
    """Listen on TCP and UDP of one port; IPv6 and IPv4 unless an address is given."""
    failed: OSError | None = None
    for _ in range(_PORT_ATTEMPTS):
        for name in [host] if host else ["::", "0.0.0.0"]:  # noqa: S104 - a server for others
            try:
                return _bound(name, port)
            except OSError as error:
                failed = error
        if port != 0:
            break
    where = f"port {port}" if not host else spelled((host, port))
    said = "no port is free"
    if failed is not None:
        said = listen_reason(failed, "another with --port")
    raise AirpathError(f"cannot listen on {where}: {said}")


def _bound(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            either = host == "::"
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if either else 1)
        listener.bind(place)
        listener.listen(512)
        listener.setblocking(False)
        datagrams = stamp.bound(host, listener.getsockname()[1])
    except BaseException:
        listener.close()
        raise
    return listener, datagrams
