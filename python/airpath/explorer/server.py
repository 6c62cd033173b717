"""The explorer's server: its files and what the page begins with, on loopback, for who has the key.

A page of somebody else in the same browser can ask loopback, too. So every address begins with a
token that only the one knows who started the server, and only names of loopback are answered.
"""

from __future__ import annotations

import gzip
import hmac
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from airpath.base.loopback import LOOPBACK, Address, Handler, Server
from airpath.errors import AirpathError
from airpath.explorer.begin import Begin

ASSETS = Path(__file__).parent / "assets"
"""What ``tools/setup explorer`` builds; wheels have it."""

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
}
_NONCE = b'<meta name="style-nonce" content="'


@contextmanager
def served(begin: Begin, port: int = 0, assets: Path = ASSETS) -> Iterator[str]:
    """Serve the explorer as long as the context lasts; its value is the page's URL.

    Raises ``AirpathError`` if the explorer is not built, or the port is not available.
    """
    files = files_of(assets)
    server = _Server(Address(LOOPBACK, port), begin, files)
    with server.running("explorer") as there:
        yield f"{there.url}{server.token}/"


def files_of(assets: Path) -> dict[str, Path]:
    """Return the explorer's files by name; raises ``AirpathError`` if it is not built."""
    found = {file.name: file for file in assets.glob("*") if file.suffix in KINDS}
    if not {"index.html", "airpath.wasm"} <= found.keys():
        raise AirpathError(
            "the explorer is not built here; in airpath's source, run `tools/setup explorer` "
            "(it needs Node 20 or later with npm, from the packages nodejs and npm, and rustup)"
        )
    return found


class _Server(Server):
    def __init__(self, address: Address, begin: Begin, files: dict[str, Path]) -> None:
        self.token = secrets.token_urlsafe(16)
        self.begin = json.dumps(begin).encode()
        self.files = files
        super().__init__(address, _Handler)


class _Handler(Handler):
    server: _Server
    whose = "the explorer's"
    _nonce = ""

    @property
    def policy(self) -> str:
        """Nothing but what is served here; compiling the engine counts as a script."""
        nonce = f" 'nonce-{self._nonce}'" if self._nonce else ""
        return (
            "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
            f"style-src 'self'{nonce}; connect-src 'self'; img-src data:; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )

    def answer(self) -> None:
        """Send a file, or what the page begins with."""
        _, token, *rest = urlsplit(self.path).path.split("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()) or len(rest) != 1:
            return self.say(HTTPStatus.NOT_FOUND, "the address is what `airpath explore` printed\n")
        name = rest[0] or "index.html"
        if name == "start.json":
            return self.send(HTTPStatus.OK, "application/json", self.server.begin)
        if name == "studies.json":
            from airpath.explorer.studies import studies

            body = json.dumps(studies()).encode()
            return self.send(HTTPStatus.OK, "application/json", body)
        file = self.server.files.get(name)
        if file is None:
            return self.say(HTTPStatus.NOT_FOUND, f"there is no {name[:80]!r}\n")
        body = file.read_bytes()
        if name == "index.html":
            # The editor makes its style when it is opened; this is how the browser knows it.
            self._nonce = secrets.token_urlsafe(16)
            body = body.replace(_NONCE, _NONCE + self._nonce.encode())
        headers = {}
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers = _packed(body), {"Content-Encoding": "gzip"}
        return self.send(HTTPStatus.OK, KINDS[file.suffix], body, **headers)


@cache
def _packed(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=4, mtime=0)
