"""Writes the page that compares cures for a deep buffer, and pings over fibre, WiFi and 5G.

The command runs the study nr-bbr-cubic's scenarios with each cure and writes the tables. The text
around them is in this file too. Progress goes to stderr.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from airpath import _core
from airpath import scenario as scenarios
from airpath.analysis.statistics import Interval, mean_interval
from airpath.base.text import digits
from airpath.scenario import STUDIES
from airpath_dev import ROOT
from airpath_dev.harness import say, table, write

OUT = ROOT / "docs/guides/cures-compared.md"
NETWORKS = {"China Unicom": "unicom", "China Mobile": "mobile"}
FLOOD = ("flow.2.enabled=true", "path.down.0.enabled=false")
"""Settings for a flood from another host, which does not share the server's 1 Gb/s."""

PROXY = ("path.down.2.enabled=true", "path.up.0.enabled=true")

Sets = tuple[str, ...]


class Run(NamedTuple):
    """The figures of one run."""

    rate_mbps: float
    ping_ms: float
    fairness: float
    lost: float


def main(seeds: int = 8, out: Path = OUT) -> None:
    """Run the study nr-bbr-cubic's scenarios with each cure and write the page."""
    every = range(1, seeds + 1)
    with ThreadPoolExecutor(2) as pool:
        tables = {
            f"{short}{suffix}": cures(
                pool, STUDIES / f"nr-bbr-cubic/scenario-{short}.toml", more, every
            )
            for short in NETWORKS.values()
            for suffix, more in (("", ()), ("_flood", FLOOD))
        }
        tables["pings"] = pings(pool, every)
    write(out, TEXT.format(seeds=seeds, **tables).splitlines())


def cures(pool: ThreadPoolExecutor, path: Path, more: Sets, seeds: Sequence[int]) -> str:
    """Return a table with one row for each cure."""
    say(f"{path.stem}{' with a flood' if more else ''}")

    def measure(sets: Sets) -> list[Run]:
        return list(pool.map(lambda seed: run(path, (*sets, *more), seed), seeds))

    plain = list(pool.map(lambda seed: run(path, (), seed), seeds))
    rate = fmean(each.rate_mbps for each in plain)
    as_it_is = measure(()) if more else plain
    rows = [row("plain CUBIC", as_it_is, None)]
    rows += [row(name, measure(sets), as_it_is) for name, sets in variants(rate).items()]
    head = "cure | goodput, Mb/s | change | mean ping, ms | change | Jain | change | pings lost"
    return table(head, rows)


def variants(rate_mbps: float) -> dict[str, Sets]:
    """Return each cure's settings; some depend on the rate of plain CUBIC."""
    shaped = round(0.8 * rate_mbps)
    window = round(rate_mbps * 1e6 / 8 * WINDOW_MS / 1e3 / STREAMS, -3)
    return {
        "BBR at the sender": ("flow.0.congestion=bbr",),
        "BBR proxy at the edge": PROXY,
        "CoDel in the RLC": ("radio.rlc.aqm=codel",),
        "FQ-CoDel in the RLC": ("radio.rlc.aqm=fq_codel",),
        f"shaper of {shaped} Mb/s and CoDel at the CPE": (
            f"radio.ue.0.host_link.rate_mbps={shaped}",
            "radio.ue.0.host_link.aqm=codel",
            "radio.ue.0.host_link.queue_packets=1000",
        ),
        f"receive window of {window / 1e3:.0f} kB per stream": (
            f"flow.0.window_bytes={window:.0f}",
        ),
    }


WINDOW_MS = 30
"""RTT for the windows: together they are the BDP of this RTT and plain CUBIC's rate."""

STREAMS = 4


def run(path: Path, sets: Sets, seed: int) -> Run:
    scenario = scenarios.load(path, list(sets))
    summary: Any = _core.simulate(scenario, seed, lambda _: True).summary
    (group,), (ping,) = summary["groups"], summary["pings"]
    rtt = ping["rtt_ms"]
    lost = ping["lost"] / ping["sent"]
    return Run(group["goodput_mbps"], rtt["mean"], group["jain_index"], lost)


def row(name: str, runs: Sequence[Run], base: Sequence[Run] | None) -> list[str]:
    cells = [name]
    for place in (0, 1, 2):
        cells.append(digits(fmean(each[place] for each in runs)))
        cells.append("" if base is None else change(runs, base, place))
    cells.append(f"{100 * fmean(each.lost for each in runs):.0f} %")
    return cells


def change(runs: Sequence[Run], base: Sequence[Run], place: int) -> str:
    """Return the difference over paired seeds with its 95 % interval."""
    pairs = zip(runs, base, strict=True)
    interval: Interval = mean_interval([each[place] - other[place] for each, other in pairs])
    if interval.low is None or interval.high is None:
        return signed(interval.mean)
    return f"{signed(interval.mean)} ({signed(interval.low)} to {signed(interval.high)})"


def signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{digits(value)}"


def pings(pool: ThreadPoolExecutor, seeds: Sequence[int]) -> str:
    """Return the table of idle and loaded pings over three access networks."""
    say("pings")
    rows = []
    unicom = STUDIES / "nr-bbr-cubic/scenario-unicom.toml"
    accesses = {"fibre": FIBRE, "WiFi-like": WIFI, "5G": unicom.read_text(encoding="utf-8")}
    for access, text in accesses.items():
        for load, sets in LOADS.items():

            def one(seed: int, text: str = text, sets: Sets = sets) -> tuple[float, float, float]:
                scenario = scenarios.parse(text, "access", None, list(sets))
                summary: Any = _core.simulate(scenario, seed, lambda _: True).summary
                rtt = summary["pings"][0]["rtt_ms"]
                return rtt["p50"], rtt["p95"], rtt["mdev"]

            means = [fmean(column) for column in zip(*pool.map(one, seeds), strict=True)]
            rows.append((access, load, *map(digits, means)))
    return table("access | load | median, ms | 95 %, ms | mdev, ms", rows)


LOADS: dict[str, Sets] = {
    "idle": ("flow.0.enabled=false",),
    "CUBIC": (),
    "BBR": ("flow.0.congestion=bbr",),
}
TRAFFIC = """
[[flow]]
id = "iperf3"
kind = "bulk"
streams = 4
profile = "linux-6.1"
opened_by = "receiver"
duration_s = 10
[[flow]]
id = "ping"
kind = "ping"
direction = "down"
interval_ms = 200
count = 50
"""
FIBRE = f"""
[run]
duration_s = 10.5
[[path.down]]
stage = "server"
place = "region"
[[path.down]]
stage = "link"            # GPON, 300 Mb/s sold, a shallow buffer
rate_mbps = 300
queue_bytes = 500_000
[[path.up]]
stage = "link"
rate_mbps = 100
queue_bytes = 500_000
[[path.up]]
stage = "server"
place = "region"
{TRAFFIC}"""
WIFI = f"""
[run]
duration_s = 10.5
[[path.down]]
stage = "server"
place = "region"
[[path.down]]
stage = "link"            # an access point with 1,000 packets of buffer
rate_mbps = 200
queue_packets = 1000
[[path.down]]
stage = "delay"           # contention
delay_ms = 0.5
jitter_ms = 2
jitter_distribution = "exponential"
[[path.up]]
stage = "batch"           # aggregates leave together
interval_ms = 2
[[path.up]]
stage = "link"
rate_mbps = 100
queue_packets = 1000
[[path.up]]
stage = "server"
place = "region"
{TRAFFIC}"""

TEXT = """\
<!-- Written by `make cures`. -->

# Cures compared

Over the two networks of the study [nr-bbr-cubic](studies.md#nr-bbr-cubic), four streams of CUBIC
fill the base station's buffer, and a ping to the same phone waits behind them. This page compares
seven ways to shorten that wait, called cures here. Each row is the mean of {seeds} seeds. A change
is relative to plain CUBIC over the same seeds, with its 95 % confidence interval. Fairness is
Jain's index of the four streams. The networks are simulated. Their parameters were fitted to
CUBIC's published values; no row of these tables was measured.

The cures:

- **BBR at the sender** needs the sender's cooperation.
- **A BBR proxy at the edge** terminates the TCP connection next to the core, and sends onward with
  BBR.
- **CoDel or FQ-CoDel in the RLC** needs a base station whose vendor offers it; target and interval
  are RFC 8289's defaults.
- **A shaper at the CPE** is a link between modem and phone with 80 % of plain CUBIC's rate, CoDel,
  and a queue of 1,000 packets.
- **A capped receive window**: the sum of the four windows is the bandwidth-delay product of plain
  CUBIC's rate and an RTT of 30 ms.

## China Unicom
{unicom}

## China Mobile
{mobile}

What the cures achieve:

- **BBR**, at the sender or at the edge, keeps the rate and removes much of the queueing delay. The
  proxy, with its short round trip, removes the most. With the proxy, the four streams share the
  rate less evenly.
- **Queue management in the RLC** gives the shortest pings. It costs little where the channel is
  steady (China Unicom), and about half of the rate where fades last long (China Mobile). CoDel
  takes a fade for a standing queue, and CUBIC is slow to recover.
- **A shaper at the CPE** must be slower than the radio at all times; otherwise the queue moves back
  to the base station. On a fading channel the shaper costs half of the rate, and pings are still
  long.
- **A capped window** shortens pings more than BBR does, at the cost of a part of the rate. But
  somebody must know the rate and the RTT to set it, and each additional connection of the UE adds
  its own window.

## With a UDP flood
A UDP flow of 700 Mb/s, more than the radio carries, is sent to the same phone from another host.
The flood has no congestion control, so cures that act on TCP do not help: BBR at the sender, the
proxy, a receive window. CoDel alone does not help either, because the flood does not react to its
drops. With FQ-CoDel the ping has its own queue, and the streams keep most of their goodput. Lost
pings have no RTT and do not count in the means.

### China Unicom
{unicom_flood}

### China Mobile
{mobile_flood}

## Pings over fibre, WiFi and 5G
The table compares three access networks with the same server: pings on the idle network, and pings
during four TCP streams.

- **Fibre** is a 300 Mb/s link with 500 kB of buffer.
- **WiFi-like** is a 200 Mb/s link with 1,000 packets of buffer, an exponential contention delay
  with a mean of 2 ms, and acknowledgements that leave in batches every 2 ms. It is not a model of
  WLAN.
- **5G** is the phone on China Unicom.

{pings}
"""
