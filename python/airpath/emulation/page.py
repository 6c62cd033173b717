"""The status page of an emulation: one page and its figures, read-only, on loopback.

A browser gets ``/``, whose script asks for ``/state.json`` once a second. Nothing else is answered,
nothing can be changed, and nothing is fetched from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from airpath.emulation.status import definitions
from airpath.errors import AirpathError, InputError, reason

if TYPE_CHECKING:
    from airpath.emulation.status import Status

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 16
"""At a time; the others are closed at once."""

PATIENCE_S = 5.0
"""How long a connection may say nothing."""

READ = ("GET", "HEAD")


@dataclass(frozen=True)
class Address:
    """Where the page is; port 0: any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``PORT``, ``ADDRESS:PORT`` or ``[ADDRESS]:PORT``; only loopback is allowed."""
        parts = re.fullmatch(r"(?:(\[[^\[\]%]+\]|[^:\[\]]+):)?([0-9]{1,5})", text)
        if parts is None or int(parts[2]) > 65535:
            raise InputError(
                f"--page '{text}': PORT and ADDRESS:PORT are allowed, as 8080, 127.0.0.1:8080 or "
                "[::1]:8080; a port is a number from 0 to 65535, and 0 is a free one"
            )
        host, port = (parts[1] or LOOPBACK).strip("[]"), parts[2]
        try:
            address = ipaddress.ip_address(LOOPBACK if host == "localhost" else host)
        except ValueError:
            raise InputError(f"--page '{text}': '{host}' is no IP address") from None
        if not address.is_loopback:
            raise InputError(
                f"--page '{text}': {host} is not on loopback, and the page asks for no password; "
                f"from another machine: ssh -L {port}:{LOOPBACK}:{port} THIS-MACHINE"
            )
        return cls(str(address), int(port))

    @property
    def authority(self) -> str:
        """As in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://{self.authority}/"


class Page:
    """The page itself, and the headers that keep it from fetching anything."""

    @cached_property
    def html(self) -> bytes:
        """The page with its script and style inside."""
        whole = resources.files("airpath.emulation").joinpath("page.html").read_text("utf-8")
        listed = json.dumps(definitions()).replace("<", "\\u003c")
        return whole.replace('"ALARMS"', listed).encode()

    @cached_property
    def policy(self) -> str:
        """Content security policy: what is inside, by its hash, and the page's own figures."""

        def hashed(tag: str) -> str:
            inside = self.html.partition(f"<{tag}>".encode())[2].partition(f"</{tag}>".encode())[0]
            digest = hashlib.sha256(inside).digest()
            return f"'sha256-{base64.b64encode(digest).decode()}'"

        return (
            f"default-src 'none'; script-src {hashed('script')}; style-src {hashed('style')}; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )


@contextmanager
def served(address: Address, status: Status) -> Iterator[Address]:
    """Answer browsers as long as the context lasts; its value is where."""
    try:
        server = _Server(address, status)
    except OSError as error:
        raise AirpathError(f"cannot listen on {address.authority}: {reason(error)}") from None
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="page", daemon=True
    )
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A connection that hangs must not keep airpath from ending.
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, address: Address, status: Status) -> None:
        self.status = status
        self.page = Page()
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        super().__init__((address.host, address.port), _Handler)
        self.address = Address(address.host, self.server_port)

    def server_bind(self) -> None:
        """Bind; the base class asks the name service for the host's name, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is room for one."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = PATIENCE_S
    server_version = "airpath"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        # The base class looks for a method with the request's name.
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Write no log: the terminal is the command's."""

    def _answer(self) -> None:
        if not self._is_for_us():
            # A name that leads here is somebody else's: a page of theirs could read ours.
            return self._say(HTTPStatus.MISDIRECTED_REQUEST, "this host is not the status page's\n")
        asked = urlsplit(self.path)
        if asked.path == "/":
            return self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page.html)
        if asked.path == "/state.json":
            after = parse_qs(asked.query).get("after", ["0"])[0]
            if not re.fullmatch(r"[0-9]{1,15}", after):
                return self._say(HTTPStatus.BAD_REQUEST, "after: the number of an entry\n")
            document = self.server.status.document(int(after))
            text = json.dumps(document, allow_nan=False)
            return self._send(HTTPStatus.OK, "application/json", text.encode())
        return self._say(HTTPStatus.NOT_FOUND, "there are / and /state.json\n")

    def _is_for_us(self) -> bool:
        """Whether it was asked for by an address or name of loopback, whatever the port.

        ``ssh -L`` may lead here from another one.
        """
        try:
            host = urlsplit(f"//{self.headers.get('Host', LOOPBACK)}").hostname or ""
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def _refuse_method(self) -> None:
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, "this page can only be read\n", Allow="GET, HEAD")

    def _say(self, code: HTTPStatus, text: str, **headers: str) -> None:
        self._send(code, "text/plain; charset=utf-8", text.encode(), **headers)

    def _send(self, code: HTTPStatus, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": self.server.page.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
