"""The status page of an emulation: one page and its figures, on loopback.

A browser gets ``/``, whose script asks for ``/state.json`` once a second. Nothing is fetched from
elsewhere. Nothing can be changed, unless the run has ``Editing``: who then sends its token may read
``/subscribers.json``, and post a JSON document to ``/subscribers/add``, ``change`` or ``remove``.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from airpath.base import loopback
from airpath.base.loopback import LOOPBACK, MOST_CONNECTIONS
from airpath.base.secrets import redacted
from airpath.emulation.oam.editing import CHANGES, ClosedError
from airpath.emulation.oam.status import definitions
from airpath.errors import AirpathError, InputError
from airpath.pictures import style

if TYPE_CHECKING:
    from airpath.emulation.oam.editing import Editing
    from airpath.emulation.oam.status import Status

__all__ = ["MOST_CONNECTIONS", "Address", "Page", "served"]

MOST_BYTES = 4096
"""Of a change; all fields of a subscriber take a tenth."""


@dataclass(frozen=True)
class Address(loopback.Address):
    """Where the page is; port 0: any that is free."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``PORT``, ``ADDRESS:PORT`` or ``[ADDRESS]:PORT``; only loopback is allowed."""
        parts = re.fullmatch(r"(?:(\[[^\[\]%]+\]|[^:\[\]]+):)?([0-9]{1,5})", text)
        if parts is None or int(parts[2]) > 65535:
            raise InputError(
                f"--page '{text}': expected PORT or ADDRESS:PORT, as in 8080, 127.0.0.1:8080 or "
                "[::1]:8080; a port is a number from 0 to 65535, and 0 picks a free one"
            )
        host, port = (parts[1] or LOOPBACK).strip("[]"), parts[2]
        try:
            address = ipaddress.ip_address(LOOPBACK if host == "localhost" else host)
        except ValueError:
            raise InputError(f"--page '{text}': '{host}' is not an IP address") from None
        if not address.is_loopback:
            raise InputError(
                f"--page '{text}': {host} is not on loopback, and the page has no password; "
                f"from another machine use ssh -L {port}:{LOOPBACK}:{port} THIS-MACHINE"
            )
        return cls(str(address), int(port))


class Page:
    """The page itself, and the headers that keep it from fetching anything."""

    @cached_property
    def html(self) -> bytes:
        """The page with its script and style inside."""
        whole = resources.files("airpath.emulation.oam").joinpath("page.html").read_text("utf-8")
        listed = json.dumps(definitions()).replace("<", "\\u003c")
        return whole.replace('"ALARMS"', listed).replace("/* NETWORK */", style()).encode()

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
    with _Server(address, status).running("page") as there:
        yield Address(there.host, there.port)


class _Server(loopback.Server):
    def __init__(self, address: Address, status: Status) -> None:
        self.status = status
        self.page = Page()
        super().__init__(address, _Handler)


class _Handler(loopback.Handler):
    server: _Server
    whose = "the status page's"

    @property
    def policy(self) -> str:
        """The page's own."""
        return self.server.page.policy

    def answer(self) -> None:
        """Send the page, or its figures."""
        asked = urlsplit(self.path)
        if asked.path == "/":
            return self.send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page.html)
        if asked.path == "/state.json":
            after = parse_qs(asked.query).get("after", ["0"])[0]
            if not re.fullmatch(r"[0-9]{1,15}", after):
                return self.say(HTTPStatus.BAD_REQUEST, "after: the number of an entry\n")
            return self._send_json(self.server.status.document(int(after)))
        editing = self.server.status.editing
        if asked.path == "/subscribers.json" and editing is not None:
            return self._send_subscribers(editing) if self._admitted(editing) else None
        return self.say(HTTPStatus.NOT_FOUND, "there are / and /state.json\n")

    def do_POST(self) -> None:  # noqa: N802
        """Change a subscriber, if the run has ``Editing``."""
        editing = self.server.status.editing
        if editing is None:
            return self.refuse_method()
        return self.asked(partial(self._edit, editing))

    def _edit(self, editing: Editing) -> None:
        """Make the change that was posted, and send the subscribers there are then."""
        what = self.path.removeprefix("/subscribers/")
        if what == self.path or what not in CHANGES:
            names = ", ".join(CHANGES)
            return self.say(HTTPStatus.NOT_FOUND, f"there is /subscribers/ with {names}\n")
        # Another site's page can post here, but cannot choose its Origin (RFC 6454 7).
        if self.headers.get("Origin", "") != f"http://{self.headers.get('Host', '')}":
            return self.say(HTTPStatus.FORBIDDEN, "Origin must be this page's\n")
        if not self._admitted(editing):
            return None
        if (wrong := self._wrong_body()) is not None:
            return self.say(*wrong)
        try:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        except (ValueError, RecursionError):
            return self.say(HTTPStatus.BAD_REQUEST, "expected one JSON document\n")
        try:
            editing.make(what, document)
        except InputError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, error)
        except ClosedError as error:
            return self._refuse(HTTPStatus.CONFLICT, error)
        except AirpathError as error:
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, error)
        return self._send_subscribers(editing)

    def _admitted(self, editing: Editing) -> bool:
        """Whether the request has the token in its header (RFC 6750 2.1); says if it does not."""
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer" and editing.admits(token):
            return True
        self.say(
            HTTPStatus.UNAUTHORIZED,
            "this needs the token that airpath printed\n",
            **{"WWW-Authenticate": "Bearer"},
        )
        return False

    def _wrong_body(self) -> tuple[HTTPStatus, str] | None:
        """Why the body is not read; None: it is a JSON document of a size that is allowed."""
        if self.headers.get_content_type() != "application/json":
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json\n"
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,15}", length):
            return HTTPStatus.LENGTH_REQUIRED, "Content-Length must be a number\n"
        if int(length) > MOST_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a change has at most {MOST_BYTES} bytes\n"
        return None

    def _send_subscribers(self, editing: Editing) -> None:
        try:
            self._send_json({"subscribers": editing.shown()})
        except AirpathError as failed:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, failed)

    def _refuse(self, code: HTTPStatus, error: AirpathError) -> None:
        # A key in the wrong field must not come back.
        self.say(code, redacted(str(error)) + "\n")

    def _send_json(self, document: Mapping[str, object]) -> None:
        text = json.dumps(document, allow_nan=False)
        self.send(HTTPStatus.OK, "application/json", text.encode())
