"""A small web server on loopback, for pages that airpath shows: it only answers, and only here.

It answers GET and HEAD, to who asks for loopback by its own names; a server decides what there is,
and whether there is more than to read.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from airpath.errors import AirpathError, listen_reason

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 16
"""At a time. For another one, one that has asked nothing yet makes room."""

PATIENCE_S = 5.0
"""How long a connection may say nothing."""

ANSWERED_S = 1.0
"""Whoever takes longer to read an answer may have to make room too."""


@dataclass(frozen=True)
class Address:
    """Where a page is; port 0: any that is free."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """As in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://{self.authority}/"


class Handler(BaseHTTPRequestHandler):
    """Answers one connection; a page's own handler says what there is by ``answer``."""

    server: Server
    timeout = PATIENCE_S
    server_version = "airpath"
    sys_version = ""
    whose = "airpath's"
    """Said to who asks for another host."""

    def answer(self) -> None:
        """Answer a request that is for us."""
        raise NotImplementedError

    @property
    def policy(self) -> str:
        """What the page may load, as a content security policy."""
        return "default-src 'none'"

    def do_GET(self) -> None:
        """Answer, if it is for us."""
        self.asked(self.answer)

    def asked(self, answer: Callable[[], None]) -> None:
        """Let ``answer`` answer the request, if it is for us."""
        self.server.has_asked(self.connection)
        if self._is_for_us():
            return answer()
        # A name that leads here is somebody else's: a page of theirs could read ours.
        return self.say(HTTPStatus.MISDIRECTED_REQUEST, f"this host is not {self.whose}\n")

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        # The base class looks for a method with the request's name.
        if name.startswith("do_"):
            return self.refuse_method
        raise AttributeError(name)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Write no log: the terminal is the command's."""

    def say(self, code: HTTPStatus, text: str, **headers: str) -> None:
        """Send a sentence."""
        # An error may quote what was asked, which need not be text.
        body = text.encode(errors="backslashreplace")
        self.send(code, "text/plain; charset=utf-8", body, **headers)

    def send(self, code: HTTPStatus, kind: str, body: bytes, **headers: str) -> None:
        """Send a body of some kind."""
        self.send_response(code)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": self.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _is_for_us(self) -> bool:
        """Whether it was asked for by an address or name of loopback, whatever the port.

        ``ssh -L`` may lead here from another one.
        """
        try:
            host = urlsplit(f"//{self.headers.get('Host', LOOPBACK)}").hostname or ""
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def refuse_method(self) -> None:
        """Say that there is nothing but to read."""
        self.say(HTTPStatus.METHOD_NOT_ALLOWED, "this page is read-only\n", Allow="GET, HEAD")


@dataclass
class _Connection:
    since: float
    asked: bool = False


class Server(ThreadingHTTPServer):
    """Listens on an address of loopback, and answers by a handler."""

    daemon_threads = True
    # A connection that hangs must not keep airpath from ending.
    block_on_close = False
    # Those that nobody has looked at yet: room is made faster than a client tries again.
    request_queue_size = 128

    def __init__(self, address: Address, handler: type[Handler]) -> None:
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._connections: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((address.host, address.port), handler)
        except OSError as error:
            text = f"cannot listen on {address.authority}: {listen_reason(error)}"
            raise AirpathError(text) from None
        self.address = Address(address.host, self.server_port)

    def server_bind(self) -> None:
        """Bind; the base class asks the name service for the host's name, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    @contextmanager
    def running(self, name: str) -> Iterator[Address]:
        """Answer in a thread as long as the context lasts; its value is where."""
        thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.1}, name=name, daemon=True
        )
        thread.start()
        try:
            yield self.address
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is room for one or can be made."""
        if not (self._room.acquire(blocking=False) or self._make_room()):
            return self.shutdown_request(request)
        with self._lock:
            self._connections[request] = _Connection(time.monotonic())
        return super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._connections[request]
            self._room.release()

    def has_asked(self, request: socket.socket) -> None:
        """Note that a connection's request is here."""
        with self._lock:
            self._connections[request].asked = True

    def _make_room(self) -> bool:
        """End the connection that has been silent for longest; whether there is room now."""
        with self._lock:
            # In the order in which they came.
            late = time.monotonic() - ANSWERED_S
            silent = [one for one, known in self._connections.items() if not known.asked]
            slow = [one for one, known in self._connections.items() if known.since < late]
            for one in (silent or slow)[:1]:
                # Its thread reads the end, and closes it.
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        return bool(silent or slow) and self._room.acquire(timeout=ANSWERED_S)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away."""
