"""Writes the page of the study lte-private: windows, RTTs of four accesses, a firewall.

The command runs the study's scenarios and writes tables and charts. The text around them is in
this file too. The charts go into the folder img beside the page. Progress goes to stderr.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import polars

from airpath import _core
from airpath import scenario as scenarios
from airpath.analysis.statistics import mean_interval
from airpath.base.text import digits
from airpath.scenario import STUDIES
from airpath_dev import ROOT
from airpath_dev.harness import say, table, write

OUT = ROOT / "docs/guides/lte-private.md"
STUDY = STUDIES / "lte-private"
OAI, INDOOR = STUDY / "scenario-oai.toml", STUDY / "scenario-indoor.toml"
WINDOWS = {"64 kB": 1 << 16, "256 kB": 1 << 18, "1 MB": 1 << 20, "2 MB": 1 << 21, "4 MB": 1 << 22}
DIRECTIONS = {"down": 0, "up": 1}
"""Directions, with the index of the flow in that direction."""
CONTROLS = {"CUBIC": "cubic", "Reno": "reno"}
LOSSES = {"none": 0.0, "one in 1,000": 1e-3}
ACCESSES = {
    "wire": "wire",
    "WiFi-like": "wifi",
    "private LTE": "private",
    "commercial LTE": "commercial",
}
COLOURS = ["#5b6770", "#3d8f3d", "#0068a8", "#cc4c00"]
STEP_MS = 0.5
"""Width of a bin in the density chart."""

Sets = tuple[str, ...]


class Cell(NamedTuple):
    """The result of one window, direction and congestion control."""

    loss: str
    direction: str
    window: str
    control: str
    mbps: list[float]
    retransmitted: float


def main(seeds: int = 8, out: Path = OUT) -> None:
    """Run the study lte-private and write the page and its charts."""
    every = range(1, seeds + 1)
    with ThreadPoolExecutor(2) as pool:
        windows = sweep(pool, every)
        rtts = {name: pings(pool, file, every) for name, file in ACCESSES.items()}
        firewall = symptoms(pool)
    page = TEXT.format(
        seeds=seeds,
        windows=window_table(windows),
        rtts=rtt_table(rtts),
        firewall=firewall,
    )
    images = out.parent / "img"
    images.mkdir(exist_ok=True)
    picture(window_chart(windows), images / "lte-private-windows.svg")
    picture(rtt_chart(rtts), images / "lte-private-rtt.svg")
    write(out, page.splitlines())


def summary(path: Path, sets: Sequence[str], seed: int) -> Any:
    return _core.simulate(scenarios.load(path, list(sets)), seed, lambda _: True).summary


def sweep(pool: ThreadPoolExecutor, seeds: Sequence[int]) -> list[Cell]:
    """Run every window in both directions, with each congestion control, without and with loss."""
    cells = []
    for loss, probability in LOSSES.items():
        say(f"windows, loss {loss}")
        for direction, flow in DIRECTIONS.items():
            for window, size in WINDOWS.items():
                for control, name in CONTROLS.items():
                    sets = (
                        "flow.*.enabled=false",
                        f"flow.{flow}.enabled=true",
                        f"flow.{flow}.window_bytes={size}",
                        f"flow.{flow}.congestion={name}",
                        f"path.down.1.probability={probability}",
                        f"path.up.0.probability={probability}",
                    )
                    flows = list(
                        pool.map(
                            lambda seed, sets=sets: summary(OAI, sets, seed)["flows"][0], seeds
                        )
                    )
                    cells.append(
                        Cell(
                            loss,
                            direction,
                            window,
                            control,
                            [each["goodput_mbps"] for each in flows],
                            fmean(each["retransmitted_segments"] for each in flows),
                        )
                    )
    return cells


def window_table(cells: Sequence[Cell]) -> str:
    """Return a table: a row for each direction and window, a column for each control and loss."""
    heads = [f"{control}, loss: {loss}" for loss in LOSSES for control in CONTROLS]
    lines = []
    for direction in DIRECTIONS:
        for window in WINDOWS:
            row = [each for each in cells if (each.direction, each.window) == (direction, window)]
            shown = (f"{interval(each.mbps)} / {digits(each.retransmitted)}" for each in row)
            lines.append((direction, window, *shown))
    return table(["", "window", *heads], lines)


def interval(values: list[float]) -> str:
    found = mean_interval(values)
    if found.low is None or found.high is None or found.high - found.low < 0.01 * found.mean:
        return digits(found.mean)
    return f"{digits(found.mean)} ({digits(found.low)} to {digits(found.high)})"


def pings(pool: ThreadPoolExecutor, name: str, seeds: Sequence[int]) -> list[float]:
    """Return the RTTs in ms of all seeds."""
    say(f"pings over {name}")
    path = STUDY / f"scenario-rtt-{name}.toml"

    def one(seed: int) -> list[float]:
        result = _core.simulate(scenarios.load(path, []), seed, lambda _: True)
        rows = polars.DataFrame(result.table("pings"))
        return rows["rtt_ms"].drop_nulls().to_list()

    return [value for found in pool.map(one, seeds) for value in found]


def rtt_table(rtts: dict[str, list[float]]) -> str:
    lines = []
    for name, values in rtts.items():
        ordered = sorted(values)
        mean = fmean(values)
        deviation = fmean((value - mean) ** 2 for value in values) ** 0.5
        quantiles = [ordered[int(share * len(ordered))] for share in (0.05, 0.5, 0.95, 0.99)]
        lines.append((name, *map(digits, (mean, deviation, *quantiles))))
    head = "access | mean, ms | mdev, ms | 5 %, ms | median, ms | 95 %, ms | 99 %, ms"
    return table(head, lines)


SYMPTOMS: dict[str, tuple[int, Sets]] = {
    "ping from the laptop": (0, ("flow.4.enabled=true",)),
    "ping from the PC": (0, ("flow.5.enabled=true",)),
    "upload, opened by the laptop (`iperf -c PC`)": (0, ("flow.0.enabled=true",)),
    "download, opened by the PC (`iperf -c LAPTOP` on the PC)": (0, ("flow.3.enabled=true",)),
    "download, opened by the laptop (`iperf3 -R`)": (0, ("flow.6.enabled=true",)),
    "both at once, each opened by its sender (`iperf -d`): up": (
        0,
        ("flow.0.enabled=true", "flow.3.enabled=true"),
    ),
    "both at once, each opened by its sender (`iperf -d`): down": (
        1,
        ("flow.0.enabled=true", "flow.3.enabled=true"),
    ),
    "both at once, both opened by the laptop (`iperf3 --bidir`): up": (
        0,
        ("flow.0.enabled=true", "flow.6.enabled=true"),
    ),
    "both at once, both opened by the laptop (`iperf3 --bidir`): down": (
        1,
        ("flow.0.enabled=true", "flow.6.enabled=true"),
    ),
}
"""Each test's name, the index of its flow in the run, and its settings."""
NO_FIREWALL = ("path.up.0.enabled=false", "path.down.1.enabled=false")


def symptoms(pool: ThreadPoolExecutor) -> str:
    """Return a table of each test's result with the firewall and without it."""
    say("firewall")

    def one(job: tuple[int, Sets]) -> str:
        place, sets = job
        found = summary(INDOOR, ("flow.*.enabled=false", *sets), 1)
        if found["pings"]:
            ping = found["pings"][0]
            return f"{ping['lost']} of {ping['sent']} lost"
        return f"{digits(found['flows'][place]['goodput_mbps'])} Mb/s"

    jobs = [
        (place, (*sets, *more)) for place, sets in SYMPTOMS.values() for more in ((), NO_FIREWALL)
    ]
    cells = list(pool.map(one, jobs))
    rows = zip(SYMPTOMS, cells[::2], cells[1::2], strict=True)
    return table("test | with the firewall | without it", rows)


def picture(chart: Any, path: Path) -> None:
    import vl_convert

    path.write_text(vl_convert.vegalite_to_svg(chart.to_json()) + "\n", encoding="utf-8")


def window_chart(cells: Sequence[Cell]) -> Any:
    """Return a chart of rate over window, with a panel for each direction and loss."""
    import altair as alt

    def panel(direction: str, loss: str) -> Any:
        rows = [
            {
                "window": WINDOWS[each.window] / 1024,
                "control": each.control,
                "mbps": fmean(each.mbps),
                "low": mean_interval(each.mbps).low,
                "high": mean_interval(each.mbps).high,
            }
            for each in cells
            if (each.direction, each.loss) == (direction, loss)
        ]
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=alt.X(
                "window:Q",
                title="window (kB)",
                scale=alt.Scale(type="log", domain=[50, 5000], nice=False),
                axis=alt.Axis(values=[size / 1024 for size in WINDOWS.values()], format=","),
            ),
            color=alt.Color(
                "control:N",
                title=None,
                scale=alt.Scale(domain=list(CONTROLS), range=COLOURS[2:]),
                legend=alt.Legend(orient="top"),
            ),
        )
        rate = alt.Y("mbps:Q", title="Mb/s", scale=alt.Scale(domainMin=0))
        return alt.layer(
            base.mark_line(strokeWidth=1.6, point=True).encode(
                y=rate, strokeDash=alt.StrokeDash("control:N", legend=None)
            ),
            base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        ).properties(width=260, height=150, title=f"{direction}, loss {loss}")

    rows = [alt.hconcat(*(panel(each, loss) for each in DIRECTIONS)) for loss in LOSSES]
    return styled(alt.vconcat(*rows))


def rtt_chart(rtts: dict[str, list[float]]) -> Any:
    """Return a chart of each access's RTT density: the share of its pings in bins of 0.5 ms."""
    import altair as alt

    rows = []
    low = int(min(map(min, rtts.values())))
    high = max(sorted(values)[int(0.995 * len(values))] for values in rtts.values())
    for name, values in rtts.items():
        slices: dict[int, int] = {}
        for value in values:
            place = int((value - low) / STEP_MS)
            slices[place] = slices.get(place, 0) + 1
        for place in range(int((high - low) / STEP_MS) + 1):
            share = 100 * slices.get(place, 0) / len(values)
            rows.append({"access": name, "rtt": low + place * STEP_MS, "share": share})
    chart = alt.Chart(alt.Data(values=rows))
    return styled(
        chart.mark_line(strokeWidth=1.6, interpolate="step-after")
        .encode(
            x=alt.X("rtt:Q", title="RTT (ms)", scale=alt.Scale(zero=False, nice=False)),
            y=alt.Y(
                "share:Q",
                title="share of the pings in 0.5 ms (%), square root",
                scale=alt.Scale(type="sqrt"),
            ),
            color=alt.Color(
                "access:N",
                title=None,
                scale=alt.Scale(domain=list(rtts), range=COLOURS),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(width=600, height=240)
    )


def styled(chart: Any) -> Any:
    import altair as alt

    return (
        chart.configure(background="white", view=alt.ViewConfig(stroke="#e4e8ec"))
        .configure_axis(gridColor="#e4e8ec", titleFontWeight="normal")
        .configure_title(fontSize=12)
    )


TEXT = """\
<!-- Written by `make private`. -->

# A private LTE network: windows, RTTs, a firewall

This page belongs to the study [lte-private](studies.md#lte-private). Everything here is simulated
with the study's scenarios, and nothing was fitted for this page. Numbers are means of {seeds}
seeds, unless the text says otherwise.

## Windows both ways, CUBIC and Reno
This table models the second testbed of the study's source: a real core network with a simulated
base station and UE, and a server across the ocean. The study calls it the *simulated RAN*. Each
value is a rate in Mb/s, with its 95 % interval if that is wider than 1 %, and after the slash the
number of retransmitted segments.

{windows}

![Rate over window](img/lte-private-windows.svg)

- **Down**, a window of 64 kB carries less than the cell could, because the round trip is 113 ms.
  From 256 kB on the cell is the limit.
- **Up**, a window of 64 kB already fills the cell. A larger window only fills the UE's buffer of
  3 MB, in which packets wait for seconds, and with losses it costs rate. The study's source
  measured 62 kb/s with its default window and 1.23 Mb/s with 2 MB. A lost window-scale option on
  the path can explain that, and so can the way in which iperf3's sender counts; which of them is
  right is open ([the search](studies.md#what-explains-the-uplink)).
- **CUBIC and Reno** reach the same rate if nothing is lost ("loss: none" means that the path loses
  nothing; a full buffer does). With 4 MB the buffer overflows. In the
  uplink HyStart saves CUBIC from most of these losses, while Reno spends the rest of the test in
  recovery. With a loss of one in 1,000 CUBIC delivers a tenth more than Reno in the downlink; in
  the uplink their rates cannot be distinguished.

## RTTs of four accesses
A client pings the server across the ocean once a second. The path to the server is the same for all
access networks, with 0.2 ms of exponential jitter each way. The private LTE is the simulated RAN,
and commercial LTE is the preset `lte-2012`. WiFi-like uses the values of the shipped scenario
`wifi-like`: delay, jitter and batches. It is not a model of 802.11.

{rtts}

![Densities of the RTTs](img/lte-private-rtt.svg)

- **The wired link** has one narrow peak.
- **LTE** spreads the RTTs over the period of scheduling requests, 10 ms; a failed block adds 8 ms.
- **WiFi-like** spreads the RTTs as much as its scenario assumes.

## A firewall that lets traffic through one way
The study's indoor cell has a laptop behind an LTE router, and a PC next to the core. The core's
firewall lets connections pass that the laptop opens. With the firewall and without it, one seed:

{firewall}

How to recognise it:

- What matters is which end *opens* a connection, not in which direction its data flows. Loss, a
  bad uplink or a full buffer affect one direction of the data, whichever end opened the connection.
- The firewall blocks a connection completely or not at all. A path that loses packets lets some
  through.
- `iperf3 -R` and `iperf3 --bidir` work, because the client opens every connection. Only
  half of iperf 2's `iperf -d` works, because the server opens the return connection. If a test says
  that the downlink is dead, run it again with `-R`.
- A capture on the laptop contains none of the PC's SYNs or echo requests. A capture on the PC
  contains them over and over.
- `airpath run one-way-firewall` shows how airpath reports such a firewall: the cause is
  `one-way-path`, found by removing the firewall.

The tests of both directions at once also show that a download of 35 Mb/s falls below 1 Mb/s during
an upload, with or without the firewall, because the download's acknowledgements wait behind the
upload in the UE. """
