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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from airpath.base import loopback
from airpath.base.loopback import LOOPBACK, MOST_CONNECTIONS
from airpath.emulation.oam.status import definitions
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath.emulation.oam.status import Status

__all__ = ["MOST_CONNECTIONS", "Address", "Page", "served"]


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
            document = self.server.status.document(int(after))
            text = json.dumps(document, allow_nan=False)
            return self.send(HTTPStatus.OK, "application/json", text.encode())
        return self.say(HTTPStatus.NOT_FOUND, "there are / and /state.json\n")
