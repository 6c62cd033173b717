"""The page of a capture: what it says, how large it is, and that a browser draws and zooms it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airpath
import captures
from airpath import _core
from airpath.diagnose.files import diagnose
from airpath.report.capture import write_case_report
from airpath_dev import chromium
from airpath_dev.planted.capture import at_point
from conftest import Command

MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's capture of a transfer with random loss."""
    place = tmp_path_factory.mktemp("lossy")
    airpath.run("random-loss", out=place / "run", capture=True)
    at_point(place / "run" / "capture.pcapng", place / "lossy.pcapng", "server")
    return place / "lossy.pcapng"


@pytest.fixture(scope="module")
def page(lossy: Path) -> Path:
    """Its page."""
    written = lossy.with_suffix(".html")
    write_case_report([(str(lossy), diagnose(str(lossy)))], None, written)
    return written


def rough(column: bytes) -> np.ndarray:
    return np.frombuffer(column, dtype="<f4")


def test_levels_say_the_same_as_the_figures(lossy: Path) -> None:
    document: Any = diagnose(str(lossy))["capture"]
    (flow,) = document["flows"]
    end = max(("client", "server"), key=lambda one: flow["tcp"][f"from_{one}"]["data_bytes"])
    stream = flow["tcp"][f"from_{end}"]
    (view,) = _core.view_flows(lossy, [(flow["id"], end == "client")], 16_384, 2_000)
    for level in view["levels"]:
        assert rough(level["again"]).sum() == stream["retransmissions"]["packets"]
        assert rough(level["delivered"]).sum() == pytest.approx(stream["acked_bytes"], rel=0.02)
        assert np.nanmax(rough(level["high"])) == pytest.approx(stream["data_bytes"], rel=0.02)
        # What was selectively acknowledged is not in flight.
        assert np.nanmax(rough(level["flight"])) <= stream["in_flight_bytes"]["max"]
    packets = view["packets"]
    assert len(packets["sent"]) == len(packets["frame"]) <= 8 * 2_000
    times = struct.unpack(f"<{len(packets['sent']) // 8}d", packets["sent"])
    assert list(times) == sorted(times)


def test_the_page_is_small_and_has_no_payload(page: Path) -> None:
    text = page.read_text()
    assert len(text) < MOST_BYTES
    assert "random-loss or radio-loss" in text
    assert "http://" not in text
    assert "https://" not in text


def test_a_page_is_of_files(lossy: Path, airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "ping.txt").write_text(
        "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n"
        "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.1 ms\n"
    )
    (tmp_path / "there.html").write_text("kept")
    empty = captures.write(tmp_path / "empty.pcap", captures.download(2))
    for words in (
        (str(empty), "--report", "there.html"),
        (str(lossy), "-", "--report", "there.html"),
        (str(lossy), "--identify", "--report", "there.html"),
    ):
        done = airpath_command("diagnose", *words)
        assert done.returncode == 2, words
        assert "--report" in done.stderr or "nothing to draw" in done.stderr
    assert (tmp_path / "there.html").read_text() == "kept"
    done = airpath_command("diagnose", str(lossy), "--anonymise", "--report", "there.html")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "there.html").read_text()
    assert "10.77.0.1" not in written
    assert "<canvas" in written
    done = airpath_command("diagnose", "ping.txt", "--report", "there.html")
    assert done.returncode == 0, done.stderr
    assert "1 echo requests" in (tmp_path / "there.html").read_text()
    done = airpath_command("diagnose", "ping.txt", str(lossy), "--report", "there.html")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "there.html").read_text()
    assert "<canvas" in written
    assert "ping.txt and 1 more" in written
    assert "1 echo requests" in written
    assert 'data-file="1"' in written


@pytest.mark.skipif(chromium.PROGRAM is None, reason="install the package chromium")
def test_a_browser_draws_zooms_and_finds_packets(page: Path, tmp_path: Path) -> None:
    with chromium.opened(tmp_path / "profile", "--window-size=1100,1600") as tab:
        tab.open(page.as_uri())
        # The caption speaks of single packets too, before anything is drawn.
        tab.until(lambda text: " s of the capture; " in text, 60)
        flow = "document.getElementById('flow')"
        assert drawn(tab) > 1000

        def press(what: str) -> None:
            tab.evaluate(f"document.querySelector('[data-zoom={what}]').click()")

        whole = tab.evaluate("document.getElementById('where').textContent")
        for _ in range(6):
            press("in")
        assert tab.evaluate("document.getElementById('where').textContent") != whole
        assert drawn(tab) > 100
        press("start")
        assert tab.evaluate(f"{flow}.dataset.single") == "1"
        tab.evaluate("document.querySelector('[data-frame]').click()")
        said = tab.evaluate("document.getElementById('where').textContent")
        assert "single packets" in said
        press("whole")
        assert tab.evaluate("document.getElementById('where').textContent") == whole
        key = f"{flow}.dispatchEvent(new KeyboardEvent('keydown', {{key: '+'}}))"
        tab.evaluate(key)
        assert tab.evaluate("document.getElementById('where').textContent") != whole
        # The test itself reads what is drawn.
        assert [one for one in tab.errors if "willReadFrequently" not in one] == []
        assert [one for one in tab.requests if not one.startswith("file:")] == []
        if place := os.environ.get("AIRPATH_SCREENSHOTS"):
            import base64

            press("whole")
            shot = tab.call("Page.captureScreenshot", captureBeyondViewport=True)
            (Path(place) / "capture.png").write_bytes(base64.b64decode(shot["data"]))


def drawn(tab: chromium.Tab) -> int:
    """Points of the canvas that are not empty."""
    count: int = tab.evaluate(
        "(() => { const c = document.getElementById('flow');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n++; return n; })()"
    )
    return count


SAID = """(() => {
  const context = document.getElementById("flow").getContext("2d");
  const write = context.fillText.bind(context), said = [];
  context.fillText = (text, ...place) => { said.push(text); write(text, ...place); };
  document.querySelector("[data-zoom=whole]").click();
  return said;
})()"""
COLOURED = """(() => {
  const canvas = document.getElementById("flow");
  const ratio = canvas.width / canvas.clientWidth;
  const context = canvas.getContext("2d");
  // Just above the base of the third panel, from a quarter of its width on.
  const room = canvas.clientHeight - 18 - 24 - 4 * 30;
  const y = Math.round((18 + room * (0.44 + 0.02 + 0.18) + 2 * 30 - 3) * ratio);
  const from = Math.round(canvas.width / 4), width = canvas.width - from - Math.round(20 * ratio);
  const row = context.getImageData(from, y, width, 1).data;
  let filled = 0;
  for (let i = 3; i < row.length; i += 4) filled += row[i] > 0;
  return filled / width;
})()"""


@pytest.mark.skipif(chromium.PROGRAM is None, reason="install the package chromium")
def test_data_stays_in_flight_between_packets_and_ticks_are_round(tmp_path: Path) -> None:
    """A window that is sent once a round trip: for most of it no packet is sent."""
    airpath.run("small-window", {"run.duration_s": 4}, out=tmp_path / "run", capture=True)
    capture, page = tmp_path / "server.pcapng", tmp_path / "page.html"
    at_point(tmp_path / "run" / "capture.pcapng", capture, "server")
    write_case_report([(str(capture), diagnose(str(capture)))], None, page)
    with chromium.opened(tmp_path / "profile", "--window-size=1100,1600") as tab:
        tab.open(page.as_uri())
        tab.until(lambda text: "of the capture" in text, 30)
        said = tab.evaluate(SAID)
        assert {"1 MB", "2 MB", "50 kB", "100 ms", "5 Mb/s"} <= set(said), said
        assert tab.evaluate(COLOURED) > 0.99
