"""The web servers of airpath: the explorer's, the status page's, and that of the metrics."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from airpath import scenario as scenarios
from airpath.base import loopback
from airpath.base.loopback import MOST_CONNECTIONS
from airpath.emulation.oam import metrics, page
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.status import Status
from airpath.explorer import server
from airpath.explorer.begin import Begin
from conftest import until

Served = Callable[[Path], AbstractContextManager[str]]


@contextmanager
def _explorer(place: Path) -> Iterator[str]:
    for name in ("index.html", "airpath.wasm"):
        (place / name).write_text("here")
    begin: Begin = {}
    with server.served(begin, assets=place) as url:
        yield url


@contextmanager
def _page(_place: Path) -> Iterator[str]:
    status = Status(scenarios.load("wire"), Alarms(0.0005))
    with page.served(page.Address("127.0.0.1", 0), status) as there:
        yield there.url


@contextmanager
def _metrics(_place: Path) -> Iterator[str]:
    pytest.importorskip("prometheus_client")
    collector = metrics.Collector(lambda: None, 0.0005, {}, Alarms(0.0005))
    with metrics.served(0, collector) as there:
        yield f"{there.url}metrics"


@pytest.fixture(params=[_explorer, _page, _metrics], ids=["explorer", "page", "metrics"])
def url(request: pytest.FixtureRequest, core: object, tmp_path: Path) -> Iterator[str]:
    """Where one of them answers."""
    serve: Served = request.param
    with serve(tmp_path) as there:
        yield there


def _ask(url: str, host: str | None = None) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", parts.path, headers={"Host": host or parts.netloc})
        return connection.getresponse().status


def test_a_name_of_somebody_else_is_refused(url: str) -> None:
    """DNS may lead any name to loopback, and a page of that name could read what is said here."""
    assert _ask(url) == 200
    assert _ask(url, "localhost:1") == 200
    assert _ask(url, "example.org") == 421
    assert _ask(url, f"example.org:{urlsplit(url).port}") == 421


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: "], ids=["nothing", "half"])
def test_connections_that_ask_nothing_hold_up_nobody(
    url: str, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loopback.Handler, "timeout", 1000.0)
    parts = urlsplit(url)
    with contextlib.ExitStack() as silent:
        for _ in range(2 * MOST_CONNECTIONS):
            one = silent.enter_context(socket.create_connection((parts.hostname, parts.port)))
            with contextlib.suppress(OSError):
                one.sendall(said)
        for _ in range(3):
            assert _ask(url) == 200


def test_connections_that_read_no_answer_hold_up_nobody(
    core: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Long(loopback.Handler):
        timeout = 1000.0

        def answer(self) -> None:
            self.send(http.HTTPStatus.OK, "text/plain", bytes(50 << 20))

    monkeypatch.setattr(loopback, "ANSWERED_S", 0.2)
    with contextlib.ExitStack() as slow:
        long = loopback.Server(loopback.Address("127.0.0.1", 0), Long)
        there = slow.enter_context(long.running("long"))
        for _ in range(MOST_CONNECTIONS):
            one = slow.enter_context(socket.create_connection((there.host, there.port)))
            one.sendall(b"GET / HTTP/1.0\r\n\r\n")
            # It is being answered.
            assert one.recv(1)
        # Who comes before the others are slow is sent away.
        assert until(lambda: _answers(there.url))


def _answers(url: str) -> bool:
    try:
        return _ask(url) == 200
    except (OSError, http.client.HTTPException):
        return False
