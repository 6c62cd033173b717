"""Measures the page of a capture: the time to write it, the time of a zoom step, and its size.

The capture is that of bench-capture with ten flows. Headless Chromium with software rendering
zooms in twelve times and out again in each flow; a step is what the script takes to draw. Exit code
1 if the page is larger than 5 MB.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from airpath.diagnose.files import diagnose
from airpath.report.capture import write_case_report
from airpath_dev import chromium
from airpath_dev.harness import FINE, WRONG, NotCheckedError

from .capture import made
from .common import build

MOST_BYTES = 5_000_000
STEPS = 12
ZOOM = """
(() => {
  const canvas = document.getElementById("flow");
  const press = (what) => document.querySelector(`[data-zoom=${what}]`).click();
  const times = [];
  for (const which of document.getElementById("which").options) {
    which.selected = true;
    document.getElementById("which").dispatchEvent(new Event("change"));
    for (const way of ["in", "out"])
      for (let step = 0; step < STEPS; step++) {
        press(way);
        times.push(Number(canvas.dataset.drawn));
      }
  }
  return times;
})()
"""


def main(packets: int = 10_000_000) -> int:
    """Measure how long a page of a capture takes to be written and to zoom."""
    if chromium.PROGRAM is None:
        raise NotCheckedError("Chromium is missing")
    program = build("captures", "airpath-capture")
    with tempfile.TemporaryDirectory() as place:
        return measure(made(program, Path(place), packets, 10, 10), Path(place))


def measure(capture: Path, place: Path) -> int:
    """Print the table and return the exit code."""
    began = time.process_time()
    document = diagnose(str(capture))
    read = time.process_time() - began
    page = place / "page.html"
    write_case_report([(str(capture), document)], None, page)
    wrote = time.process_time() - began - read
    size = page.stat().st_size
    with chromium.opened(place / "profile", "--window-size=1100,1600") as tab:
        tab.open(page.as_uri())
        tab.until(lambda text: "of the capture" in text, 60)
        times = tab.evaluate(ZOOM.replace("STEPS", str(STEPS)))
    packets = document["capture"]["packets"]
    print(f"{packets:,} packets: read and blamed in {read:.1f} s, drawn in {wrote:.1f} s")
    print(f"the page: {size:,} bytes; {len(times)} zoom steps")
    print(f"a zoom step: {statistics.median(times):.1f} ms, {max(times):.1f} ms at the most")
    return WRONG if size > MOST_BYTES else FINE
