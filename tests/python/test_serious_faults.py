"""No kind of page has a serious fault for axe-core or is wider than its window.

Each page is opened at the widths of a laptop and of a phone, light and dark. test_explorer_page.py
does the same with the explorer.
"""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airpath import scenario as scenarios
from airpath.emulation.oam import Subscriber, subscribers
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.editing import Editing
from airpath.emulation.oam.page import Address, served
from airpath.emulation.oam.status import Status
from airpath_dev import chromium
from airpath_dev.pages import website
from emulated import skip_without
from explorer import needs_axe, needs_explorer, serious_faults, with_axe
from pages import WRITTEN
from test_page import status, there  # noqa: F401

pytestmark = [
    needs_axe,
    pytest.mark.unhurried,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="install the package chromium to see it"),
]

WIDTHS = {1440: 900, 390: 844}
"""Widths of windows, and their heights."""
SECONDS = 120.0
READY = """
document.readyState === "complete"
  && (!document.getElementById("charts") || document.documentElement.dataset.drawn === "yes")
  && [...document.querySelectorAll("iframe.live")].every((one) =>
    one.contentDocument?.getElementById("status")?.textContent.includes("simulated in"))
"""
UNSEEN = """
[...document.querySelectorAll(".scroll")].filter((one) =>
  one.querySelector("tbody td.n")?.getBoundingClientRect().right > innerWidth).length
"""
"""Tables whose first figure is seen only by scrolling."""
SITE = ("index", "docs/guides/getting-started", "docs/guides/gallery", "docs/guides/which-cc")


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[chromium.Tab]:
    with chromium.opened(tmp_path / "profile") as opened:
        with_axe(opened)
        yield opened


@contextmanager
def over_http(place: Path) -> Iterator[str]:
    """Serve a folder on loopback: from disk, axe-core cannot ask a page's frames."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    (place / "favicon.ico").touch()
    handler = functools.partial(Quiet, directory=str(place))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def faults(tab: chromium.Tab, url: str, ready: str = READY) -> list[str]:
    """What is wrong with a page, at each width and in each scheme."""
    found = []
    for width, height in WIDTHS.items():
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        tab.open("about:blank")
        tab.open(url)
        end = time.monotonic() + SECONDS
        while not tab.evaluate(f"location.href !== 'about:blank' && Boolean({ready})"):
            assert time.monotonic() < end, tab.errors
            time.sleep(0.05)
        if (wide := tab.evaluate("document.documentElement.scrollWidth")) > width:
            found.append(f"{width} px: the page is {wide} px wide")
        if tables := tab.evaluate(UNSEEN):
            found.append(f"{width} px: the first figures of {tables} tables are out of sight")
        for scheme in ("light", "dark"):
            scheming = {"name": "prefers-color-scheme", "value": scheme}
            tab.call("Emulation.setEmulatedMedia", features=[scheming])
            found += [f"{width} px, {scheme}: {each}" for each in serious_faults(tab)]
    return found


MARKS: dict[str, Any] = {
    "emulated": (pytest.mark.real_clock, skip_without("ip")),
    "live": (needs_explorer,),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=MARKS.get(kind, ())) for kind in WRITTEN]
)
def test_a_written_page_has_none(kind: str, tab: chromium.Tab, tmp_path: Path) -> None:
    page = tmp_path / "a-folder-with-a-rather-long-name" / "page.html"
    page.parent.mkdir()
    WRITTEN[kind](page)
    with over_http(page.parent) as url:
        assert faults(tab, f"{url}/{page.name}") == []
    assert tab.errors == []


def test_the_status_page_has_none(tab: chromium.Tab, there: Any) -> None:  # noqa: F811
    ready = "document.body?.innerText.includes('handover from west to east')"
    assert faults(tab, there.url, ready) == []


def test_its_editor_of_subscribers_has_none(tab: chromium.Tab, tmp_path: Path, core: Any) -> None:
    file = tmp_path / "subscribers.db"
    subscribers.add(file, Subscriber("001010000000001", "0" * 32, "0" * 32))
    editing = Editing(file)
    known = Status(scenarios.load("lte-private"), Alarms(0.0005), editing=editing)
    with served(Address("127.0.0.1", 0), known) as address:
        unlock = (
            "document.getElementById('submit') && "
            f"(document.getElementById('token').value = '{editing.token}', "
            "document.querySelector('#unlock button').click(), "
            "document.body.innerText.includes('Edit 001010000000001'))"
        )
        assert faults(tab, address.url, unlock) == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The documentation; its live figures are there if the explorer is built."""
    place = tmp_path_factory.mktemp("site") / "site"
    assert website.build(place) == []
    with over_http(place) as url:
        yield url


@pytest.mark.parametrize("page", SITE)
def test_a_page_of_the_site_has_none(page: str, tab: chromium.Tab, site: str) -> None:
    assert faults(tab, f"{site}/{page}.html", "window.searchIndex") == []


def test_a_fault_is_found(tab: chromium.Tab, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>x</title><p style='width: 900px; color: #bbb'>grey on white</p>")
    found = faults(tab, page.as_uri())
    assert any("color-contrast" in each for each in found)
    assert any("px wide" in each for each in found)
    page.write_text(
        "<title>x</title><meta name='viewport' content='width=device-width'>"
        "<div class='scroll' style='overflow-x: auto'><table><tbody><tr>"
        "<td><p style='width: 500px'>a name</p><td class='n'>5</table></div>"
    )
    found = faults(tab, page.as_uri())
    assert [each for each in found if "out of sight" in each] == [
        "390 px: the first figures of 1 tables are out of sight"
    ]
