"""Takes the guide's pictures of the explorer: answer, before and after, radio, packets, phone."""

from __future__ import annotations

import base64
import tempfile
import time
from pathlib import Path

from airpath.explorer.begin import begin
from airpath.explorer.server import served
from airpath_dev import ROOT, chromium

IMAGES = ROOT / "docs/guides/img"

QUEUE = """
(() => { const one = document.getElementById("key-path.down.0.queue_packets");
one.value = "20"; one.dispatchEvent(new Event("change")); })()
"""
PACKETS = "#scenario=lte-20&set=run.duration_s%3D2&set=flow.0.enabled%3Dfalse&packets=1,20&ue=far"
LAST = "document.querySelector('[aria-labelledby=packets-title]').scrollIntoView()"


def main() -> None:
    """Take the guide's pictures of the explorer again."""
    with (
        tempfile.TemporaryDirectory() as place,
        served(begin("bufferbloat")) as url,
        chromium.opened(Path(place) / "profile") as tab,
    ):
        shape(tab, 1400, 1000, "light")
        opened(tab, f"{url}#scenario=bufferbloat&time=24")
        tab.until(lambda text: "First cause" in text, 60)
        picture(tab, "explorer")
        tab.evaluate(QUEUE)
        tab.until(lambda text: "before:" in text and "First cause" in text, 60)
        picture(tab, "explorer-two")
        opened(tab, f"{url}#scenario=nr-drx&time=12")
        tab.until(lambda text: "ue-0: " in text and "First cause" in text, 120)
        picture(tab, "explorer-radio")
        opened(tab, f"{url}{PACKETS}")
        tab.until(lambda text: "on the radio," in text, 30)
        tab.evaluate(LAST)
        picture(tab, "explorer-packets")
        shape(tab, 390, 844, "dark")
        opened(tab, f"{url}#scenario=lte-20&time=8")
        tab.until(lambda text: "First cause" in text, 120)
        picture(tab, "explorer-phone")


def shape(tab: chromium.Tab, width: int, height: int, scheme: str) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    scheming = {"name": "prefers-color-scheme", "value": scheme}
    tab.call("Emulation.setEmulatedMedia", features=[scheming])


def opened(tab: chromium.Tab, url: str) -> None:
    tab.open("about:blank")
    tab.open(url)
    tab.until(lambda text: "simulated in" in text, 60)


def picture(tab: chromium.Tab, name: str) -> None:
    time.sleep(1)
    data = tab.call("Page.captureScreenshot", format="png")["data"]
    (IMAGES / f"{name}.png").write_bytes(base64.b64decode(data))
