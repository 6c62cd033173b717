"""Round trips per minute under load, as far as draft-ietf-ippm-responsiveness-09 can be followed.

The draft measures with HTTP over TLS: on connections of their own ("foreign" probes) the TCP
handshake, the TLS handshake and a request, and on the connections that carry the load ("self"
probes) a request. The ends of a measurement speak neither TLS nor HTTP, so this is its TCP-only
case:

- ``tcp_f``: the TCP handshake of a new connection;
- ``http_f``: a request of one line on it, and its answer of one byte;
- ``http_l``: the sender's smoothed RTT of the connections with the load. The draft allows that
  where requests cannot be multiplexed; it does not contain the wait in the sender's own buffer.

The load is that of the plan's treatment with most connections, not a number that grows until
nothing more is gained. Figures of tools with TLS, HTTP/2 or both directions at once differ.
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from statistics import fmean

from airpath.base.text import count, milliseconds, plural
from airpath.measure.control import Key, Peer, stream_line
from airpath.measure.document import Responses, ResponsivenessDocument

DRAFT = "draft-ietf-ippm-responsiveness-09"
REQUESTS = 1 << 16
"""Requests have the numbers of streams from here on."""
PATIENCE_S = 3.0
_TRIMMED = 0.95
"""TMP of the draft: a mean of the lowest 95 % of the values."""
_LEAST = 10
"""A second of requests; from fewer no figure is made."""
_TICK_MS = 20


class Requester:
    """Connects, requests and disconnects, again and again, in a thread of its own."""

    def __init__(self, peer: Peer, key: Key, phase: int, begin: float, gap_s: float) -> None:
        self._peer, self._key, self._phase = peer, key, phase
        self._begin, self._gap_s = begin, gap_s
        self._stop = threading.Event()
        self._found: Responses = {"sent_s": [], "tcp_ms": [], "request_ms": [], "loaded_ms": []}
        self._thread = threading.Thread(target=self._run, name="airpath-requests", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> Responses:
        """End, and return what was measured; what is not answered yet is not counted."""
        self._stop.set()
        self._thread.join()
        return self._found

    def _run(self) -> None:
        number, due = REQUESTS, time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due, time.monotonic()) + self._gap_s
            sent_s = time.monotonic() - self._begin
            number += 1
            try:
                taken = self._request(number)
            except OSError:
                # The server refused it: the load is over there.
                continue
            if self._stop.is_set():
                return
            for name, value in zip(("tcp_ms", "request_ms"), taken, strict=True):
                self._found[name].append(value)  # type: ignore[literal-required]
            self._found["sent_s"].append(round(sent_s, 6))

    def _request(self, number: int) -> tuple[float | None, float | None]:
        """How long the handshake and the request take, in ms; None: too long."""
        family = socket.AF_INET6 if ":" in self._peer[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line = stream_line(self._key, self._phase, number)
            begin = time.monotonic()
            sock.connect_ex(self._peer)
            if not self._await(sock, select.POLLOUT, begin):
                return None, None
            connected = time.monotonic()
            sock.send(line)
            if not self._await(sock, select.POLLIN, connected):
                return 1000 * (connected - begin), None
            if sock.recv(1) != b"+":
                raise ConnectionResetError
            return 1000 * (connected - begin), 1000 * (time.monotonic() - connected)

    def _await(self, sock: socket.socket, event: int, since: float) -> bool:
        poll = select.poll()
        poll.register(sock, event)
        while not self._stop.is_set() and time.monotonic() < since + PATIENCE_S:
            if poll.poll(_TICK_MS):
                if failed := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(failed, os.strerror(failed))
                return True
        return False


def trimmed_mean(values: Sequence[float | None]) -> float:
    """The mean of the lowest 95 %; what was not answered counts as the patience."""
    known = sorted(1000 * PATIENCE_S if one is None else one for one in values)
    return fmean(known[: math.ceil(_TRIMMED * len(known))])


def responsiveness(
    direction: str, connections: int, all_: Sequence[Responses]
) -> ResponsivenessDocument | None:
    """Round trips per minute of all phases together; None if there are too few probes."""
    tcp = [value for one in all_ for value in one["tcp_ms"]]
    request = [value for one in all_ for value in one["request_ms"]]
    loaded = [value for one in all_ for value in one["loaded_ms"]]
    if min(len(tcp), len(loaded)) < _LEAST:
        return None
    means = trimmed_mean(tcp), trimmed_mean(request), trimmed_mean(loaded)
    foreign_rpm = 60_000 / max(1e-3, (means[0] + means[1]) / 2)
    loaded_rpm = 60_000 / max(1e-3, means[2])
    return {
        "direction": direction,
        "definition": f"{DRAFT}, TCP-only case without HTTP",
        "connections": connections,
        "rpm": (foreign_rpm + loaded_rpm) / 2,
        "foreign_rpm": foreign_rpm,
        "loaded_rpm": loaded_rpm,
        "tcp_ms": means[0],
        "request_ms": means[1],
        "loaded_ms": means[2],
        "requests": len(tcp),
        "unanswered": sum(one is None for one in request),
    }


def sentences(all_: Sequence[ResponsivenessDocument]) -> Iterator[str]:
    """Say for each direction what was measured, and which parts of the draft it lacks."""
    for one in all_:
        unanswered = f", {one['unanswered']} unanswered" if one["unanswered"] else ""
        yield (
            f"{one['direction']}: {count(round(one['rpm']))} round trips per minute during "
            f"{plural(one['connections'], 'connection')} of load ({DRAFT} without TLS and "
            f"HTTP): TCP handshake {milliseconds(one['tcp_ms'])}, request "
            f"{milliseconds(one['request_ms'])}, RTT of the load "
            f"{milliseconds(one['loaded_ms'])} "
            f"({plural(one['requests'], 'request')}{unanswered})"
        )
