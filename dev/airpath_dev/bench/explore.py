"""Measures how long it takes from a change in the explorer to the new curve.

In headless Chromium with software rendering, the seed is changed seven times in each scenario, and
the median counts. The time ends with the second frame after the charts received the new rows. The
table also lists the longest task of the page's thread, if one took 50 ms or longer (the browser's
"long task"). Exit code 1 if a kind's median is above its bound.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from airpath.explorer.begin import begin
from airpath.explorer.server import ASSETS, served
from airpath_dev import chromium
from airpath_dev.chromium import missing
from airpath_dev.harness import FINE, WRONG, NotCheckedError

SCENARIOS = {
    "wire": ["small-window", "bufferbloat", "codel", "random-loss", "two-flows", "policer"],
    "LTE": ["lte-20", "lte-2012"],
    "NR": ["nr-n78", "nr-drx"],
}
BOUNDS_MS = {"wire": 100, "LTE": 400, "NR": 1000}
CHANGES = 7

MEASURE = """
(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const status = document.getElementById("status");
  document.getElementById("section-run").open = true;
  const seed = document.getElementById("key-run.seed");
  const long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)))
    .observe({ type: "longtask" });
  const times = [];
  for (let change = 0; change < CHANGES; change++) {
    const began = performance.now();
    const shown = new Promise((done) => {
      const seen = new MutationObserver(() => {
        if (!status.textContent.includes("simulated in")) return;
        seen.disconnect();
        done();
      });
      seen.observe(status, { childList: true, characterData: true, subtree: true });
    });
    seed.value = String(change + 2);
    seed.dispatchEvent(new Event("change"));
    await shown;
    await frame();
    await frame();
    times.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, 100));
  }
  return [times, Math.max(0, ...long)];
})()
"""


def main() -> int:
    """Measure how long it takes from a change in the explorer to the new curve."""
    if reason := missing() if chromium.PROGRAM else "Chromium is missing":
        raise NotCheckedError(reason)
    first = time.perf_counter()
    slow = []
    print(f"{'scenario':16} {'kind':5} {'change to curve (ms)':>22} {'longest task (ms)':>18}")
    with tempfile.TemporaryDirectory() as place, served(begin(None)) as url:
        answered = time.perf_counter() - first
        with chromium.opened(Path(place) / "profile") as tab:
            for kind, names in SCENARIOS.items():
                medians = []
                for name in names:
                    times, longest = measure(tab, f"{url}#scenario={name}")
                    medians.append(statistics.median(times))
                    stood = f"{longest:.0f}" if longest else "none"
                    print(f"{name:16} {kind:5} {medians[-1]:22.0f} {stood:>18}", flush=True)
                if (median := statistics.median(medians)) > BOUNDS_MS[kind]:
                    slow.append(f"{kind}: {median:.0f} ms, above {BOUNDS_MS[kind]}")
    whole = sum(file.stat().st_size for file in ASSETS.iterdir())
    print(f"assets: {whole:,} bytes; the server answers after {answered:.3f} s")
    for each in slow:
        print(f"slow: {each}")
    return WRONG if slow else FINE


def measure(tab: chromium.Tab, url: str) -> tuple[list[float], float]:
    """Return the times of the changes and the longest task, in ms."""
    tab.open("about:blank")
    tab.open(url)
    tab.until(lambda text: "simulated in" in text, 60)
    answer: dict[str, Any] = tab.call(
        "Runtime.evaluate",
        expression=MEASURE.replace("CHANGES", str(CHANGES)),
        awaitPromise=True,
        returnByValue=True,
    )
    times, longest = answer["result"]["value"]
    return times, longest
