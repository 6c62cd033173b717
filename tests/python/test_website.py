"""The documentation as a site: links, search, live figures."""

from __future__ import annotations

import functools
import http.server
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath_dev import ROOT, chromium
from airpath_dev.pages import website
from explorer import needs_explorer

needs_browser = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="install the package chromium to see the site"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("site") / "site"
    assert website.build(place) == []
    return place


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 50
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'(src|<link[^>]*href)="(https?:)?//', text), page
    assert 'href="docs/guides/explorer.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_what_leads_nowhere_is_told(site: Path, tmp_path: Path) -> None:
    source = ROOT / "docs/guides/speed.md"
    page = website.Page(source, "Guides")
    page.body = '<a href="no.md">x</a><a href="#no">x</a><a href="../../README.md#start">x</a>'
    index = website.rendered(website.Page(ROOT / "README.md", ""))
    told: list[str] = []
    body = website.linked(page, {index.source: index, source: page}, tmp_path, told)
    assert told == ["docs/guides/speed.md: no no.md", "docs/guides/speed.md: no #no"]
    assert 'href="../../index.html#start"' in body
    told.clear()
    assert website.live(page, "<!-- live: nothing rtt -->", told) == ""
    website.live(page, "<!-- live: codel rtt path.down.0.queu -->", told)
    assert [one.rpartition(": ")[2] for one in told] == [
        "there is no such scenario",
        "no key path.down.0.queu",
    ]


def test_headings_have_anchors_of_their_own() -> None:
    assert website.slug("The path, and `codel`: 2 ways") == "the-path-and-codel-2-ways"
    assert website.unique("a", {"a", "a-1"}) == "a-2"


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[chromium.Tab]:
    with chromium.opened(tmp_path / "profile") as opened:
        yield opened


def _until(tab: chromium.Tab, true: str) -> None:
    end = time.monotonic() + 60
    while not tab.evaluate(f"Boolean({true})"):
        assert time.monotonic() < end, (true, tab.errors)
        time.sleep(0.05)


@needs_browser
def test_from_disk_it_has_search_and_pictures(site: Path, tab: chromium.Tab) -> None:
    tab.open((site / "docs/concepts/uplink.html").as_uri())
    _until(tab, "document.querySelector('img[src$=\"uplink.svg\"]')?.naturalWidth > 0")
    _until(tab, "window.searchIndex")
    tab.evaluate(
        "(() => { const box = document.getElementById('search'); box.value = 'bufferbloat codel';"
        "box.dispatchEvent(new Event('input')); })()"
    )
    _until(tab, "document.querySelectorAll('#found a').length > 3")
    assert tab.evaluate("document.querySelectorAll('iframe').length") == 0
    assert tab.errors == []


@needs_browser
@pytest.mark.parametrize(("width", "is_open"), [(390, False), (1440, True)])
def test_the_menu_is_folded_on_a_phone(
    site: Path, tab: chromium.Tab, width: int, is_open: bool
) -> None:
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1,
             mobile=False)  # fmt: skip
    tab.open((site / "index.html").as_uri())
    _until(tab, "window.searchIndex")
    assert tab.evaluate("document.getElementById('menu').open") is is_open
    assert tab.evaluate("document.querySelector('h1').getBoundingClientRect().top < 400")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.errors == []


@needs_browser
@needs_explorer
@pytest.mark.parametrize(
    ("page", "key", "value"),
    [
        ("index.html", "path.down.0.queue_packets", "20"),
        ("docs/concepts/uplink.html", "radio.ue.0.sr.period_ms", "40"),
        ("docs/concepts/path.html", "path.down.0.aqm", "codel"),
        ("docs/concepts/slow-start.html", "flow.0.slow_start", "none"),
    ],
)
def test_figures_are_live_where_a_server_answers(
    site: Path, tab: chromium.Tab, page: str, key: str, value: str
) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        tab.open(f"http://127.0.0.1:{server.server_port}/{page}")
        frame = "document.querySelector('.live iframe')?.contentDocument"
        _until(tab, "document.querySelector('.live iframe')")
        tab.evaluate("document.querySelector('.live').scrollIntoView()")
        said = f"{frame}?.querySelector('.said')?.textContent"
        _until(tab, said)
        before = tab.evaluate(said)
        control = f"{frame}.getElementById('key-{key}')"
        _until(tab, control)
        tab.evaluate(
            f"(() => {{ const one = {control}; one.value = '{value}';"
            "one.dispatchEvent(new Event('change')); })()"
        )
        _until(tab, f"{said}.includes('before')")
        assert tab.evaluate(said) != before
        assert tab.evaluate(f"{frame}.querySelectorAll('.chart').length") == 1
        assert tab.errors == []
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_folder_of_something_else_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert website.build(tmp_path) == [f"{tmp_path} has files and is no site: name a new folder"]
    assert (tmp_path / "notes.txt").read_text() == "mine"
