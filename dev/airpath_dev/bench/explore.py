"""Measures how long the explorer takes from a change to the new curve, and its frames a second.

In headless Chromium with software rendering, the seed is changed seven times in each scenario, and
the median counts. The time ends with the second frame after the charts received the new rows. The
table also lists the longest task of the page's thread, if one took 50 ms or longer (the browser's
"long task"). Then time passes for two seconds, on a screen of 1440 pixels and on one of a phone
whose processor is four times as slow; frames are counted, and the processor time of the page's
thread for each of them. Exit code 1 if a kind's median is
above its bound, or a screen's median number of frames below its bound.
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
SCREENS = {"laptop": (1440, 900, 1), "phone": (390, 844, 4)}
"""Width, height, and how many times slower the processor is."""
FRAMES = {"laptop": 60, "phone": 30}
FRAMES_TOLERANCE = 0.95
"""The browser's clock of frames and ours begin at different times."""

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

PLAYED_S = 2
PLAY = f"""
(async () => {{
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const play = document.getElementById("play");
  if (play.textContent === "Pause") play.click();
  const time = document.getElementById("time");
  time.value = "200";
  time.dispatchEvent(new Event("input"));
  play.click();
  const began = await frame();
  let frames = 0;
  for (let now = began; now < began + {1000 * PLAYED_S}; frames++) now = await frame();
  play.click();
  return frames / {PLAYED_S};
}})()
"""


def main() -> int:
    """Measure how long it takes from a change in the explorer to the new curve."""
    if reason := missing() if chromium.PROGRAM else "Chromium is missing":
        raise NotCheckedError(reason)
    first = time.perf_counter()
    slow = []
    titles = f"{'change to curve (ms)':>22} {'longest task (ms)':>18}"
    played_title = "frames/s (ms each): laptop, phone"
    print(f"{'scenario':16} {'kind':5} {titles} {played_title:>36}")
    frames: dict[str, list[float]] = {name: [] for name in SCREENS}
    with tempfile.TemporaryDirectory() as place, served(begin(None)) as url:
        answered = time.perf_counter() - first
        with chromium.opened(Path(place) / "profile") as tab:
            tab.call("Performance.enable", timeDomain="threadTicks")
            for kind, names in SCENARIOS.items():
                medians = []
                for name in names:
                    times, longest = measure(tab, f"{url}#scenario={name}")
                    medians.append(statistics.median(times))
                    stood = f"{longest:.0f}" if longest else "none"
                    both = {screen: played(tab, screen) for screen in frames}
                    for screen, (count, _) in both.items():
                        frames[screen].append(count)
                    seen = ", ".join(f"{count:.0f} ({ms:.1f})" for count, ms in both.values())
                    print(
                        f"{name:16} {kind:5} {medians[-1]:22.0f} {stood:>18} {seen:>36}", flush=True
                    )
                if (median := statistics.median(medians)) > BOUNDS_MS[kind]:
                    slow.append(f"{kind}: {median:.0f} ms, above {BOUNDS_MS[kind]}")
    for screen, counts in frames.items():
        if (median := statistics.median(counts)) < FRAMES_TOLERANCE * FRAMES[screen]:
            slow.append(f"{screen}: {median:.0f} frames/s, below {FRAMES[screen]}")
    whole = sum(file.stat().st_size for file in ASSETS.iterdir())
    print(f"assets: {whole:,} bytes; the server answers after {answered:.3f} s")
    for each in slow:
        print(f"slow: {each}")
    return WRONG if slow else FINE


def played(tab: chromium.Tab, screen: str) -> tuple[float, float]:
    """Return the frames a second that a screen gets while time passes, and the ms of each."""
    width, height, slower = SCREENS[screen]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": slower > 1}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    tab.call("Emulation.setCPUThrottlingRate", rate=slower)
    tab.evaluate("document.getElementById('path-panel').scrollIntoView()")
    # The search for causes has a processor of its own on a phone as well; here it is over first.
    tab.until(lambda text: "Looking for" not in text, 120)
    before_s = busy_s(tab)
    answer = tab.call("Runtime.evaluate", expression=PLAY, awaitPromise=True, returnByValue=True)
    took_s = busy_s(tab) - before_s
    tab.call("Emulation.setCPUThrottlingRate", rate=1)
    found: float = answer["result"]["value"]
    return found, 1000 * took_s / (found * PLAYED_S)


def busy_s(tab: chromium.Tab) -> float:
    """Return the processor time that the page's thread has used for its tasks."""
    metrics = tab.call("Performance.getMetrics")["metrics"]
    found: float = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
    return found


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
