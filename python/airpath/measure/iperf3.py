"""The client's part of iperf3's protocol, for a plain ``iperf3 -s`` (3.9 or newer).

Each test has a control connection and one connection for each stream, all to one port. Each begins
with a cookie of 37 bytes. On the control connection the server names the state of the test with a
byte; parameters and results are JSON behind four bytes of length. The client ends the test. The
server serves one test at a time and refuses others.

The server's answers are bounded in size and time; what is missing from them is ``None``.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from airpath.base.json import Json, parsed
from airpath.base.text import printable
from airpath.errors import AirpathError, reason
from airpath.measure import checked, tcp_info
from airpath.measure.control import EndedError, Peer, ProtocolError, spelled
from airpath.measure.stream import Options

PORT: Final = 5201
COOKIE_BYTES: Final = 37
MOST_JSON: Final = 1 << 18
"""Bytes of results; those of 64 streams with the server's own output take 40 kB."""
LEAST_STREAM_NUMBERS: Final = (1, 3)
"""Streams are numbered 1, 3, 4, 5, …"""

_TEST_START, _TEST_RUNNING, _TEST_END = 1, 2, 4
_PARAM_EXCHANGE, _CREATE_STREAMS = 9, 10
_SERVER_TERMINATE, _CLIENT_TERMINATE = 11, 12
_EXCHANGE_RESULTS, _DISPLAY_RESULTS, _DONE = 13, 14, 16
_ACCESS_DENIED, _SERVER_ERROR = -1, -2
_BLOCK_BYTES = 128 << 10
"""What the server writes at a time."""
_LEAST_BLOCK_BYTES = 1448
_PACED_BLOCKS_PER_S = 1000
"""A paced server writes a block each millisecond (its pacing timer)."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_ERRORS: Final = {
    27: "the rate is beyond its --server-bitrate-limit",
    37: "the test is longer than its --server-max-duration",
    134: "it cannot set the congestion control",
    140: "it cannot pace",
    141: "its socket buffers cannot be so large",
    142: "it serves only authorised users",
}
"""Errors that servers report by number, as far as a client can do something about them."""
WINDOW_ERRORS: Final = (124, 130, 141)
_RETRY_S = 0.1


class ConnectError(EndedError):
    """Nothing accepts the connection."""


class BusyError(AirpathError):
    """The server runs another test."""


class ServerError(AirpathError):
    """The server reports an error; ``number`` is iperf3's, 0 if it gave none."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number


@dataclass(frozen=True)
class StreamResult:
    """A stream as the server saw it."""

    bytes: int
    """Bytes that it received, or handed to its kernel."""
    duration_s: float
    retransmits: int | None
    """``None``: it does not send, or does not count them."""


@dataclass(frozen=True)
class Results:
    """What the server says of a test."""

    streams: list[StreamResult]
    """In the order in which they were opened."""
    congestion: str | None
    seen_as: str | None
    """The address from which it accepted the control connection, if its output was asked for."""


def parameters(
    options: Options, streams: int, duration_s: float, *, down: bool, output: bool = False
) -> Json:
    """The parameters of a test.

    The server paces by its kernel (``fqrate``, downwards from iperf3 3.17 on) and by itself
    (``bandwidth``), in blocks of a millisecond. The MSS is what this end's handshake says.
    """
    chosen: Json = {
        "tcp": True,
        "omit": 0,
        # This end ends the test; newer servers have a timer of their own.
        "time": math.ceil(duration_s) + 1,
        "num": 0,
        "blockcount": 0,
        "parallel": streams,
        "len": _BLOCK_BYTES,
        "pacing_timer": 1000,
        # Said also if there is no limit: a server may keep what an earlier test set.
        "fqrate": 0,
        "bandwidth": 0,
    }
    if options.congestion is not None:
        chosen["congestion"] = options.congestion
    if options.window_bytes is not None:
        chosen["window"] = options.window_bytes
    if output:
        chosen["get_server_output"] = 1
    if not down:
        return chosen
    chosen["reverse"] = True
    if options.pacing_mbps is not None:
        bits = max(1, round(options.pacing_mbps * 1e6 / streams))
        block = bits // 8 // _PACED_BLOCKS_PER_S
        chosen["len"] = min(_BLOCK_BYTES, max(_LEAST_BLOCK_BYTES, block))
        chosen |= {"fqrate": bits, "bandwidth": bits}
    return chosen


def numbers(streams: int) -> list[int]:
    """How the protocol numbers streams."""
    first, second = LEAST_STREAM_NUMBERS
    return [first, *range(second, second + streams - 1)]


class Test:
    """A test with a server, used as a context manager; each call waits ``patience_s`` at most.

    ``patient_s`` is how long it tries again if the server is busy or closed: after a test it needs
    a moment. Raises ``BusyError``, or ``AirpathError`` that says why there is no connection.
    """

    def __init__(self, peer: Peer, patience_s: float, patient_s: float = 0.0) -> None:
        self.where = spelled(peer)
        self._patience_s = patience_s
        self.cookie = "".join(secrets.choice(_LETTERS) for _ in range(COOKIE_BYTES - 1)).encode()
        self.cookie += b"\0"
        self._lock = threading.Lock()
        self._ended = False
        self._failed: AirpathError | None = None
        end = time.monotonic() + patient_s
        while True:
            try:
                self._sock = self._open(peer)
                return
            except AirpathError:
                if time.monotonic() >= end:
                    raise
            time.sleep(_RETRY_S)

    def _open(self, peer: Peer) -> socket.socket:
        family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
        to = socket.getaddrinfo(*peer, family=family, type=socket.SOCK_STREAM)[0][4]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._patience_s)
            began = time.monotonic()
            sock.connect(to)
            self.opened_ms = 1e3 * (time.monotonic() - began)
            self.handshake_ms = tcp_info.read_info(sock).rtt_ms
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sock = sock
            self._send(self.cookie)
            self._await(_PARAM_EXCHANGE)
        except BaseException as failed:
            sock.close()
            if isinstance(failed, OSError):
                why = "no answer in time" if isinstance(failed, TimeoutError) else reason(failed)
                raise ConnectError(
                    f"cannot connect to {self.where}: {why}; is `iperf3 -s` running there?"
                ) from None
            raise
        return sock

    def __enter__(self) -> Test:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            # Without it the server waits for this end.
            with suppress(AirpathError, OSError):
                self._send(struct.pack("b", _CLIENT_TERMINATE))
        self._sock.close()

    def begin(self, wanted: Mapping[str, object]) -> None:
        """Send the parameters, and wait until the server expects the streams."""
        self._send_json(wanted)
        self._await(_CREATE_STREAMS)

    def await_running(self) -> None:
        """Wait until the test runs; all streams have sent the cookie."""
        self._await(_TEST_START)
        self._await(_TEST_RUNNING)

    def end(self, patience_s: float) -> None:
        """End the test; the first call waits until the server has closed the streams, or so long.

        A server that sees the streams reset before it knows of the end gives no results. Any thread
        may call it. What goes wrong is raised by :meth:`results`.
        """
        with self._lock:
            if self._ended:
                return
            self._ended = True
            try:
                self._send(struct.pack("b", _TEST_END))
            except AirpathError as failed:
                self._failed = failed
                return
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            poll.poll(1000 * min(patience_s, self._patience_s))

    def results(self, own: Mapping[str, object], streams: int) -> Results:
        """Exchange results: send this end's (:func:`own_results`) and return the server's."""
        self.end(self._patience_s)
        if self._failed is not None:
            raise self._failed
        self._await(_EXCHANGE_RESULTS)
        self._send_json(own)
        found = self._receive_json()
        self._await(_DISPLAY_RESULTS)
        self._send(struct.pack("b", _DONE))
        return results(found, streams)

    # --- Bytes --------------------------------------------------------------------------------

    def _await(self, wanted: int) -> None:
        """Read states until the one that is wanted. Raises ``AirpathError`` for any other."""
        (state,) = struct.unpack("b", self._receive(1))
        if state == wanted:
            return
        if state == _ACCESS_DENIED:
            raise BusyError(
                f"{self.where} is busy: its iperf3 is running another test; try again later"
            )
        if state == _SERVER_ERROR:
            raise self._server_error()
        if state == _SERVER_TERMINATE:
            raise ProtocolError(f"{self.where}: iperf3 was stopped")
        raise ProtocolError(
            f"{self.where} does not speak iperf3's protocol: state {state} instead of {wanted}"
        )

    def _server_error(self) -> ServerError:
        number = 0
        with suppress(AirpathError):
            (number,) = struct.unpack("!i", self._receive(4))
        said = _ERRORS.get(number, f"iperf3's error {number}" if number else "without a reason")
        return ServerError(f"{self.where} refuses the test: {said}", number)

    def _send_json(self, message: Mapping[str, object]) -> None:
        text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        self._send(struct.pack("!I", len(text)) + text)

    def _receive_json(self) -> Json:
        (length,) = struct.unpack("!I", self._receive(4))
        if not 0 < length <= MOST_JSON:
            raise ProtocolError(
                f"{self.where} announces results of {length} bytes; at most {MOST_JSON} are read"
            )
        try:
            return checked.table(parsed(self._receive(length)), "results")
        except (ValueError, RecursionError):
            raise ProtocolError(f"{self.where} sends results that are not JSON") from None

    def _send(self, data: bytes) -> None:
        end = time.monotonic() + self._patience_s
        view = memoryview(data)
        while view:
            try:
                view = view[self._sock.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, end)
            except OSError as failed:
                raise ProtocolError(
                    f"{self.where} is not reachable any more: {reason(failed)}"
                ) from None

    def _receive(self, count: int) -> bytes:
        end = time.monotonic() + self._patience_s
        found = bytearray()
        while len(found) < count:
            try:
                more = self._sock.recv(count - len(found))
            except BlockingIOError:
                self._wait(select.POLLIN, end)
                continue
            except OSError as failed:
                raise ProtocolError(
                    f"{self.where} is not reachable any more: {reason(failed)}"
                ) from None
            if not more:
                raise ProtocolError(f"{self.where} closed the connection: is it `iperf3 -s`?")
            found += more
        return bytes(found)

    def _wait(self, event: int, end: float) -> None:
        poll = select.poll()
        poll.register(self._sock, event)
        left_s = end - time.monotonic()
        if left_s <= 0 or not poll.poll(1000 * left_s):
            raise ProtocolError(
                f"{self.where} accepts connections, but does not answer as iperf3 does within "
                f"{self._patience_s:.0f} s"
            )


def own_results(
    streams: Sequence[tuple[int, int | None]], lasted_s: float, congestion: str | None
) -> Json:
    """Results of this end: bytes and retransmissions of each stream."""
    sends = any(again is not None for _, again in streams)
    return {
        # Required; this end does not measure it.
        **dict.fromkeys(("cpu_util_total", "cpu_util_user", "cpu_util_system"), 0),
        "sender_has_retransmits": 1 if sends else -1,
        **({} if congestion is None else {"congestion_used": congestion}),
        "streams": [
            {
                "id": number,
                "bytes": count,
                "retransmits": -1 if again is None else again,
                **dict.fromkeys(("jitter", "errors", "packets", "start_time"), 0),
                "end_time": round(lasted_s, 6),
            }
            for number, (count, again) in zip(numbers(len(streams)), streams, strict=True)
        ],
    }


def results(message: Json, streams: int) -> Results:
    """Parse the server's results; raises ``ProtocolError`` that names the field."""
    by_number = {}
    for one in checked.rows(message, "streams", 2 * streams):
        row = checked.table(one, "streams")
        by_number[checked.whole(row, "id")] = row
    if sorted(by_number) != numbers(streams):
        raise ProtocolError(f"streams has {len(by_number)} entries; expected {streams}")
    counts = message.get("sender_has_retransmits") == 1
    congestion = checked.text(message, "congestion_used") or ""
    return Results(
        [_stream(by_number[number], counts) for number in numbers(streams)],
        # Only Linux and FreeBSD say it.
        congestion if re.fullmatch(r"[a-z0-9_-]{1,15}", congestion) else None,
        _seen_as(message.get("server_output_text")),
    )


def _stream(row: Json, counts: bool) -> StreamResult:
    if "end_time" not in row:
        raise ProtocolError(
            "the results lack the times of streams: this iperf3 is too old, 3.9 or newer is needed"
        )
    start_s, end_s = (checked.number(row, key) for key in ("start_time", "end_time"))
    # Servers write -1 for what they do not count, some of them as 2^64 - 1.
    again = row.get("retransmits")
    return StreamResult(
        checked.whole(row, "bytes"),
        max(0.0, end_s - start_s),
        again if counts and checked.is_whole(again) else None,
    )


def _seen_as(output: object) -> str | None:
    if not isinstance(output, str):
        return None
    found = re.search(r"^Accepted connection from ([0-9A-Fa-f.:]{2,45}), port", output, re.M)
    return None if found is None else printable(found[1]).removeprefix("::ffff:")
