"""The control connection between the two ends of a measurement.

Both ends know a token, which never crosses the wire. They exchange nonces, and each proves by
HMAC-SHA-256 (RFC 2104) that it knows the token; the near end, which connects, proves itself first.
From then on each line carries a MAC over its direction, its number and its text: a line that was
changed, repeated, left out or reordered ends the session. Lines are not encrypted.

The first line of a connection is longer than its answer, so that nobody can use the far end to
send more than he sent himself.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import secrets
import select
import socket
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from airpath.base.json import Json, parsed
from airpath.base.text import printable
from airpath.errors import AirpathError, InputError, reason

PORT = 5212
VERSION = 1
MOST_LINE = 1 << 22
"""Bytes of a line after the proof."""
MOST_TEXT = 1 << 24
"""Bytes of the text that a compressed line may contain."""
MOST_FIRST_LINE = 1024
"""Bytes of a line before the proof."""

_HELLO = "airpath-measure"
_NONCE_BYTES = 16
_HELLO_BYTES = 200
_MAC_DIGITS = 32
_PACK_FROM_BYTES = 2048
_SEND_PATIENCE_S = 20.0
_HEX = re.compile(r"[0-9a-f]+")
_TOKEN = re.compile(r"[!-~]{16,256}")

Role = Literal["near", "far"]
Peer = tuple[str, int]

_MSS_BYTES = 536
"""MSS of the control connection: the default of RFC 9293 3.7.1, which every path carries."""


class ProtocolError(AirpathError):
    """The other end said something that the protocol does not allow, or went away."""


class SilenceError(ProtocolError):
    """Nothing arrived in time; the connection may still be used."""


class EndedError(ProtocolError):
    """The other end closed or reset the connection."""


class UnansweredError(AirpathError):
    """The far end does not answer; ``opened``: although it accepted the connection."""

    def __init__(self, text: str, *, opened: bool) -> None:
        super().__init__(text)
        self.opened = opened


class RefusedError(ProtocolError):
    """A peer does not prove itself. ``answer``: what it may be told; None: nothing."""

    def __init__(self, text: str, answer: str | None = None) -> None:
        super().__init__(text)
        self.answer = answer


# --- Tokens -----------------------------------------------------------------------------------


def new_token() -> str:
    """Draw a token: 128 random bits in base32 (RFC 4648 6), lower case."""
    return base64.b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower()


def read_token(path: Path) -> str:
    """Read a token from a file that only its owner can read.

    The group may read it if the owner is somebody else: that is how systemd and Kubernetes pass
    secrets to a service. Raises InputError for a file that others can read or change, or that does
    not contain exactly one token: 16 to 256 printable ASCII characters without spaces.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            _check_owner(path, found)
            text = file.read(1025)
    except OSError as error:
        raise InputError(f"cannot read token file {path}: {reason(error)}") from None
    if len(text) > 1024:
        raise InputError(f"token file {path} is larger than 1024 bytes; it contains one token")
    token = text.strip()
    if not token:
        raise InputError(f"token file {path} is empty; `airpath serve` prints a new token")
    with suppress(UnicodeDecodeError):
        if _TOKEN.fullmatch(token.decode("ascii")):
            return token.decode("ascii")
    raise InputError(
        f"token file {path} does not contain a token: 16 to 256 printable ASCII characters "
        "without spaces"
    )


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)):
        raise InputError(f"token file {path} is not a regular file")
    denied = stat.S_IRWXO | stat.S_IWGRP
    if found.st_uid == os.geteuid():
        denied |= stat.S_IRGRP
    if found.st_mode & denied:
        raise InputError(f"other users can read or change token file {path}; chmod 600 {path}")


# --- Keys -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """The key of one session, which only the two ends know."""

    secret: bytes = field(repr=False)
    session: str
    """16 hexadecimal digits, public."""

    def derived(self, purpose: str) -> bytes:
        """Return a 256-bit key for one purpose; it says nothing about keys for others."""
        return hmac.digest(self.secret, f"{_HELLO} {VERSION} {purpose}".encode(), "sha256")

    def proof(self, purpose: str) -> str:
        """Return 64 hexadecimal digits that only an end of the session can know."""
        return self.derived(f"proof {purpose}").hex()

    def proves(self, purpose: str, proof: str) -> bool:
        """Whether a proof is right; takes equally long for all wrong ones."""
        said = proof.encode(errors="backslashreplace")
        return hmac.compare_digest(self.proof(purpose).encode(), said)


def session_key(token: str, near: bytes, far: bytes) -> Key:
    """Derive a session's key from the token and the nonces of the near and the far end."""
    text = f"{_HELLO} {VERSION} session ".encode() + near + far
    secret = hmac.digest(token.encode(), text, "sha256")
    return Key(secret, sha256(b"name " + secret).hexdigest()[:16])


# --- Lines before the proof -------------------------------------------------------------------


def hello_line(nonce: bytes) -> bytes:
    """First line of a control connection; padded, so that it is longer than the answer."""
    hello = {_HELLO: VERSION, "nonce": nonce.hex(), "pad": ""}
    hello["pad"] = "." * (_HELLO_BYTES - len(_line(hello)))
    return _line(hello)


def stream_line(key: Key, phase: int, stream: int) -> bytes:
    """First line of a data connection; the far end answers ``+`` when the phase starts."""
    proof = key.proof(f"stream {phase} {stream}")
    hello = {_HELLO: VERSION, "session": key.session}
    return _line({**hello, "phase": phase, "stream": stream, "proof": proof})


@dataclass(frozen=True)
class Join:
    """Claims in the first line of a data connection; none is proven yet."""

    session: str
    phase: int
    stream: int
    proof: str


class Greeting:
    """The far end of one connection that has not proved itself; it does no input or output.

    ``feed`` takes what arrived and returns what to answer, which is never more than arrived before.
    Then ``key`` or ``join`` says what the connection is, or RefusedError ends it.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self._buffer = b""
        self._expected: Key | None = None
        self.received = 0
        self.sent = 0
        self.key: Key | None = None
        """Session key of a control connection whose token is right."""
        self.join: Join | None = None
        """Claims of a data connection."""

    @property
    def rest(self) -> bytes:
        """Bytes that arrived after the line that ended the greeting."""
        return self._buffer

    def feed(self, data: bytes) -> bytes:
        """Take what arrived; return the answer."""
        self.received += len(data)
        self._buffer += data
        answer = b""
        while self.key is None and self.join is None and b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            if len(line) >= MOST_FIRST_LINE:
                raise RefusedError(f"its first line is longer than {MOST_FIRST_LINE} bytes")
            answer += self._hello(line) if self._expected is None else self._proof(line)
        if self.key is None and self.join is None and len(self._buffer) >= MOST_FIRST_LINE:
            raise RefusedError(f"its first line is longer than {MOST_FIRST_LINE} bytes")
        self.sent += len(answer)
        return answer

    def farewell(self, error: RefusedError) -> bytes:
        """Return the line that says why it was refused, as far as that may be said."""
        if error.answer is None:
            return b""
        line = _line({"error": error.answer})
        if self.sent + len(line) > self.received:
            return b""
        self.sent += len(line)
        return line

    def _hello(self, line: bytes) -> bytes:
        hello = _table(line)
        if hello is None or _HELLO not in hello:
            raise RefusedError("its first line is not that of `airpath measure`")
        if hello[_HELLO] != VERSION or isinstance(hello[_HELLO], bool):
            text = f"this end speaks version {VERSION} of airpath-measure"
            raise RefusedError("it speaks another version of airpath-measure", text)
        if "session" in hello:
            self.join = _join(hello)
            return b""
        near = _unhex(hello.get("nonce"), 2 * _NONCE_BYTES)
        if near is None:
            raise RefusedError("its first line has no nonce")
        answer = _line({_HELLO: VERSION, "nonce": self._nonce.hex()})
        if len(answer) > len(line):
            raise RefusedError("its first line is shorter than the reply would be")
        self._expected = session_key(self._token, near, self._nonce)
        return answer

    def _proof(self, line: bytes) -> bytes:
        key, said = self._expected, _table(line)
        proof = None if said is None else said.get("proof")
        if key is None or not isinstance(proof, str):
            raise RefusedError("it sent no proof")
        if not key.proves("near", proof):
            raise WrongProofError("wrong token", "wrong token")
        self.key = key
        # The near end has proved itself: the bound on answers ends here.
        return _line({"proof": key.proof("far")})


class WrongProofError(RefusedError):
    """A proof is wrong: the peer does not know the token, or not the session's key."""


def _join(hello: Json) -> Join:
    session, proof = _hex_of(hello.get("session"), 16), _hex_of(hello.get("proof"), 64)
    phase, stream = _count(hello.get("phase")), _count(hello.get("stream"))
    if session is None or proof is None or phase is None or stream is None:
        raise RefusedError("the first line of its data connection is malformed")
    return Join(session, phase, stream, proof)


def _count(value: Any) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31
    return value if right else None


def _hex_of(value: Any, digits: int) -> str | None:
    right = isinstance(value, str) and len(value) == digits and _HEX.fullmatch(value)
    return value if right else None


def _unhex(value: Any, digits: int) -> bytes | None:
    text = _hex_of(value, digits)
    return None if text is None else bytes.fromhex(text)


def _table(line: bytes) -> Json | None:
    """A line's JSON object, or None."""
    try:
        value = parsed(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


# --- The channel ------------------------------------------------------------------------------


class Channel:
    """Authenticated lines in both directions: ``<MAC> <JSON>``, long ones compressed.

    One thread receives; any thread may send.
    """

    def __init__(
        self,
        sock: socket.socket,
        key: Key,
        role: Role,
        *,
        most_line: int = MOST_LINE,
        arrived: bytes = b"",
    ) -> None:
        sock.setblocking(False)
        keep_alive(sock)
        self._sock = sock
        self._lines = _Lines(sock, arrived)
        self._most_line = most_line
        self._most_text = most_line if most_line < MOST_LINE else MOST_TEXT
        other: Role = "far" if role == "near" else "near"
        self._send_key, self._receive_key = (
            key.derived(f"{role} line"),
            key.derived(f"{other} line"),
        )
        self._sent = self._received = 0
        self._lock = threading.Lock()
        self.peer: Peer = address(sock.getpeername())
        self.here: Peer = address(sock.getsockname())
        self.opened_ms: float | None = None
        """How long the near end waited for the connection."""

    def fileno(self) -> int:
        """Return the descriptor, to wait for lines with select."""
        return self._sock.fileno()

    def send(self, message: Json) -> None:
        """Send a message. Raises ProtocolError if it is too long or the other end went away."""
        text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        if len(text) > MOST_TEXT:
            raise ProtocolError(f"a message has {len(text)} bytes; at most {MOST_TEXT} are allowed")
        if len(text) >= _PACK_FROM_BYTES:
            text = b"z" + base64.b64encode(zlib.compress(text, 6))
        with self._lock:
            line = _mac(self._send_key, self._sent, text) + b" " + text + b"\n"
            if len(line) > MOST_LINE:
                raise ProtocolError(
                    f"a message has {len(line)} bytes; at most {MOST_LINE} are allowed"
                )
            _send_all(self._sock, line, time.monotonic() + _SEND_PATIENCE_S)
            self._sent += 1

    def receive(self, timeout_s: float) -> Json:
        """Return the next message.

        Raises SilenceError if none arrived in time: another call may wait for it. EndedError if the
        other end closed the connection, ProtocolError if a line is not what it sent.
        """
        line = self._lines.next(self._most_line, time.monotonic() + timeout_s)
        mac, _, text = line.partition(b" ")
        if not hmac.compare_digest(mac, _mac(self._receive_key, self._received, text)):
            raise ProtocolError("a line's MAC is wrong: the line was changed, repeated or lost")
        self._received += 1
        if text.startswith(b"z"):
            text = _unpacked(text[1:], self._most_text)
        message = _table(text)
        if message is None:
            raise ProtocolError("a line does not contain a JSON object")
        return message

    def close(self) -> None:
        """Close the connection; a thread that waits for a line gets EndedError."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


def _mac(key: bytes, number: int, text: bytes) -> bytes:
    digest = hmac.digest(key, number.to_bytes(8, "big") + text, "sha256")
    return digest.hex()[:_MAC_DIGITS].encode()


def _unpacked(text: bytes, most: int) -> bytes:
    unpack = zlib.decompressobj()
    try:
        plain = unpack.decompress(base64.b64decode(text, validate=True), most)
    except (ValueError, zlib.error):
        raise ProtocolError("a compressed line is damaged") from None
    if not unpack.eof:
        raise ProtocolError(f"a compressed line contains more than {most} bytes")
    return plain


class _Lines:
    """Lines of a socket that does not block, each with a bound and a deadline."""

    def __init__(self, sock: socket.socket, arrived: bytes = b"") -> None:
        self._sock = sock
        self._buffer = bytearray(arrived)
        self._searched = 0

    def next(self, most: int, deadline: float) -> bytes:
        """Return the next line without its end."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if 0 <= end < most:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                return line
            if len(self._buffer) >= most or end >= most:
                raise ProtocolError(f"a line is longer than {most} bytes")
            self._searched = len(self._buffer)
            self._buffer += self._more(min(1 << 16, most - len(self._buffer)), deadline)

    def rest(self) -> bytes:
        """Return what arrived after the last line."""
        return bytes(self._buffer)

    def _more(self, most: int, deadline: float) -> bytes:
        while True:
            try:
                data = self._sock.recv(most)
            except BlockingIOError:
                _wait(self._sock, select.POLLIN, deadline)
                continue
            except OSError as error:
                raise EndedError(f"the connection failed: {reason(error)}") from None
            if not data:
                raise EndedError("the other end closed the connection")
            return data


def _wait(sock: socket.socket, event: int, deadline: float) -> None:
    """Wait until a socket can be read or written."""
    poll = select.poll()
    try:
        poll.register(sock, event)
    except (ValueError, OSError):  # Closed by another thread.
        raise EndedError("the connection was closed") from None
    left_s = deadline - time.monotonic()
    if left_s <= 0 or not poll.poll(left_s * 1000):
        raise SilenceError("nothing arrived in time")


def _send_all(sock: socket.socket, data: bytes, deadline: float) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[sock.send(view) :]
        except BlockingIOError:
            try:
                _wait(sock, select.POLLOUT, deadline)
            except SilenceError:
                raise EndedError("the other end does not read from the connection") from None
        except OSError as error:
            raise EndedError(f"the connection failed: {reason(error)}") from None


def keep_alive(sock: socket.socket) -> None:
    """Let the kernel find within about 30 s that the other end is gone (RFC 9293 3.8.4)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def address(found: Any) -> Peer:
    """Return an address and port as people write them, an IPv4 address inside IPv6 as IPv4."""
    host, port = str(found[0]), int(found[1])
    if host.startswith("::ffff:") and "." in host:
        host = host.removeprefix("::ffff:")
    return host, port


def spelled(peer: Peer) -> str:
    """Return an address and port as in a URL: ``192.0.2.1:5212``, ``[2001:db8::1]:5212``."""
    host, port = peer
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# --- The near end -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits of one session at the far end."""

    streams: int
    """Streams of one phase."""
    phase_s: float
    session_s: float
    data_bytes: int
    """Data of a session, both directions together."""
    rate_mbps: float | None
    """Rate of a session; None: no limit."""

    def to_json(self) -> Json:
        """Return it as in the welcome."""
        return dict(self.__dict__)

    @staticmethod
    def from_json(value: Any) -> Limits:
        """Parse it; raises ProtocolError that names what is wrong."""
        table = value if isinstance(value, dict) else {}
        numbers = {name: table.get(name) for name in Limits.__dataclass_fields__}
        for name, number in numbers.items():
            bad = isinstance(number, bool) or not isinstance(number, (int, float)) or number <= 0
            if bad and not (name == "rate_mbps" and number is None):
                raise ProtocolError(f"the far end's welcome message lacks a valid limit `{name}`")
        rate = numbers["rate_mbps"]
        return Limits(
            int(numbers["streams"]),  # type: ignore[arg-type]
            float(numbers["phase_s"]),  # type: ignore[arg-type]
            float(numbers["session_s"]),  # type: ignore[arg-type]
            int(numbers["data_bytes"]),  # type: ignore[arg-type]
            None if rate is None else float(rate),
        )


@dataclass(frozen=True)
class Welcome:
    """The far end's first message: the session, both addresses as it sees them, what it allows."""

    session: str
    ssid: int
    """STAMP session identifier (RFC 8972 3)."""
    you: Peer | None
    """The near end's address and port as the far end sees them: behind a NAT, the NAT's.
    ``None`` if the far end does not say it."""
    here: Peer
    limits: Limits
    host: dict[str, str | int | list[str]]
    """The far end's machine: ``kernel``, ``airpath``, ``congestion``, ``receive_max``, …"""

    def to_json(self) -> Json:
        """Return it as a message."""
        return {
            "session": self.session,
            "ssid": self.ssid,
            "you": list(self.you or ()),
            "here": list(self.here),
            "limits": self.limits.to_json(),
            "host": self.host,
        }

    @staticmethod
    def from_json(message: Json) -> Welcome:
        """Parse it; raises ProtocolError that names what is wrong."""
        session, ssid = _hex_of(message.get("session"), 16), _count(message.get("ssid"))
        if session is None or ssid is None:
            raise ProtocolError("the far end's welcome message lacks a session ID")
        host = message.get("host")
        return Welcome(
            session,
            ssid,
            _peer(message.get("you")),
            _peer(message.get("here")),
            Limits.from_json(message.get("limits")),
            dict(_host(host if isinstance(host, dict) else {})),
        )


def _peer(value: Any) -> Peer:
    if isinstance(value, list) and len(value) == 2 and _count(value[1]) is not None:
        return printable(str(value[0]))[:64], int(value[1])
    raise ProtocolError("the far end's welcome message lacks this host's address")


def _host(table: Json) -> Iterator[tuple[str, str | int | list[str]]]:
    """The description of the machine, as far as it can be shown as text."""
    for name, value in list(table.items())[:32]:
        if isinstance(value, str):
            yield printable(name)[:64], printable(value)[:256]
        elif isinstance(value, int):
            yield printable(name)[:64], value
        elif isinstance(value, list):
            yield printable(name)[:64], [printable(str(one))[:64] for one in value[:64]]


def connect(host: str, port: int, token: str, timeout_s: float) -> tuple[Channel, Key, Welcome]:
    """Connect to the far end, and prove to each other that both know the token.

    Raises AirpathError if nothing answers, and ProtocolError if what answers is not a far end of
    this version or does not know the token.
    """
    deadline = time.monotonic() + timeout_s
    where = spelled((host, port))
    sock, opened_ms = _connected(host, port, deadline)
    try:
        sock.setblocking(False)
        lines = _Lines(sock)
        key = _prove(sock, lines, token, where, deadline)
        channel = Channel(sock, key, "near", arrived=lines.rest())
        channel.opened_ms = opened_ms
        first = _within(deadline, channel.receive, where)
        if "error" in first:
            raise ProtocolError(f"{where} refused the session: {_said(first)}")
        welcome = Welcome.from_json(first)
        if welcome.session != key.session:
            raise ProtocolError(f"{where} sent a session ID that does not match the session key")
    except BaseException:
        sock.close()
        raise
    return channel, key, welcome


def _prove(sock: socket.socket, lines: _Lines, token: str, where: str, deadline: float) -> Key:
    near = secrets.token_bytes(_NONCE_BYTES)
    _send_all(sock, hello_line(near), deadline)
    hello = _answer(lines, where, deadline)
    far = _unhex(hello.get("nonce"), 2 * _NONCE_BYTES)
    if hello.get(_HELLO) != VERSION or far is None:
        raise ProtocolError(f"{where} is not `airpath serve` of version {VERSION}")
    key = session_key(token, near, far)
    _send_all(sock, _line({"proof": key.proof("near")}), deadline)
    proof = _answer(lines, where, deadline).get("proof")
    if not isinstance(proof, str) or not key.proves("far", proof):
        raise ProtocolError(f"{where} did not prove that it knows the token")
    return key


def _answer(lines: _Lines, where: str, deadline: float) -> Json:
    """One line before the proof; an error in it ends the attempt."""
    line = _within(deadline, lambda left_s: lines.next(1024, time.monotonic() + left_s), where)
    answer = _table(line)
    if answer is None:
        raise ProtocolError(f"{where} is not `airpath serve`: its reply is not recognised")
    if "error" in answer:
        raise ProtocolError(f"{where} refused the connection: {_said(answer)}")
    return answer


def _said(message: Json) -> str:
    return printable(str(message["error"]))[:200].replace("\n", " ")


def _within(deadline: float, call: Callable[[float], Any], where: str) -> Any:
    try:
        return call(max(0.0, deadline - time.monotonic()))
    except SilenceError:
        said = f"{where} accepts connections, but does not answer"
        raise UnansweredError(said, opened=True) from None
    except EndedError:
        raise ProtocolError(
            f"{where} closed the connection: it is not `airpath serve`, or refuses this address "
            "for a minute after wrong tokens"
        ) from None


def _connected(host: str, port: int, deadline: float) -> tuple[socket.socket, float]:
    """Connect to the first address of a host that answers; also how long that took, in ms."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        text = reason(error) if isinstance(error, OSError) else str(error)
        raise AirpathError(f"cannot look up {host}: {text}") from None
    failed: OSError | None = None
    for family, kind, protocol, _, to in found[:8]:
        sock = socket.socket(family, kind, protocol)
        try:
            # Reports arrive even where large packets do not.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _MSS_BYTES)
            sock.settimeout(max(0.05, deadline - time.monotonic()))
            began = time.monotonic()
            sock.connect(to)
        except OSError as error:
            failed = error
            sock.close()
        else:
            return sock, (time.monotonic() - began) * 1e3
    is_silent = isinstance(failed, TimeoutError)
    why = "no answer in time" if is_silent else reason(failed or OSError())
    said = f"cannot connect to {spelled((host, port))}: {why}; is `airpath serve` running there?"
    raise UnansweredError(said, opened=False) if is_silent else AirpathError(said)


def await_start(sock: socket.socket, timeout_s: float) -> None:
    """Wait until all streams of the phase have joined: for the far end's ``+``.

    Raises ProtocolError if it does not come.
    """
    sock.settimeout(timeout_s)
    try:
        answer = sock.recv(1)
    except TimeoutError:
        raise ProtocolError("the far end did not start the phase in time") from None
    except OSError as error:
        raise ProtocolError(f"a stream failed before its start: {reason(error)}") from None
    if answer != b"+":
        raise ProtocolError("the far end refused a stream")
