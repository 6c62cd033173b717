"""Writes the page on the cause of the ramp in the study 5g-drx: DRX, slow start or ACK jitter.

The command runs the study's scenario with every combination and writes the tables. The text around
them is in this file too, so that a new run shows which statements no longer hold. Progress goes to
stderr.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from airpath import _core
from airpath import scenario as scenarios
from airpath.scenario import STUDIES
from airpath_dev import ROOT
from airpath_dev.harness import say, table, write

OUT = ROOT / "docs/guides/5g-drx-ablation.md"
SCENARIO = STUDIES / "5g-drx/scenario.toml"

Sets = tuple[str, ...]

WAITS = "radio.drx.uplink_waits_for_on_duration=true"
REPORTS = "radio.grants.assume_more=false"
UP = ("flow.0.direction=up", "flow.0.opened_by=sender")
JITTER = ("path.up.1.jitter_ms=40",)
DRX: dict[str, Sets] = {"off": ("radio.drx.enabled=false",), "3GPP": (), "waits": (WAITS,)}
SLOW_STARTS = (
    "none", "hystart-4.19", "hystart-5.6", "hystart-5.8", "hystart-5.16", "hystart-6.14",
    "hystart++",
)  # fmt: skip


def main(seeds: int = 3, out: Path = OUT) -> None:
    """Run the study 5g-drx with every combination and write the page."""
    tables = {name: measured(name, head, rows, seeds) for name, (head, rows) in TABLES.items()}
    write(out, TEXT.format(seeds=seeds, **tables).splitlines())


def controls() -> dict[str, Sets]:
    """Return CUBIC and Reno with each kind of slow start, and BBR, which has its own startup."""
    return {
        **{
            f"{control} | {start}": (
                f'flow.0.congestion="{control}"',
                f'flow.0.slow_start="{start}"',
            )
            for control in ("cubic", "reno")
            for start in SLOW_STARTS
        },
        "bbr | its own": ('flow.0.congestion="bbr"',),
    }


def combined(columns: dict[str, Sets]) -> dict[str, list[Sets]]:
    return {
        label: [(*sets, *column) for column in columns.values()]
        for label, sets in controls().items()
    }


def delays(each_way_ms: float) -> Sets:
    return (f"path.down.2.delay_ms={each_way_ms}", f"path.up.1.delay_ms={each_way_ms}")


def single(rows: dict[str, Sets]) -> dict[str, list[Sets]]:
    return {label: [sets] for label, sets in rows.items()}


WIDE = (
    "flow.0.receive_buffer_bytes=67108864",
    "flow.0.send_buffer_bytes=67108864",
    "radio.rlc.buffer_bytes=32000000",
)
JITTERS: dict[str, Sets] = {
    "none": (),
    "20 ms": ("path.up.1.jitter_ms=20",),
    "40 ms": JITTER,
}
OTHERS: dict[str, Sets] = {
    "as in the study": (),
    "receive window 300 kB": ("flow.0.receive_buffer_bytes=300000",),
    "receive window 1 MiB": ("flow.0.receive_buffer_bytes=1048576",),
    "receive window does not start small": ("flow.0.buffer.initial_receive_bytes=0",),
    "receive window grows by one segment at a time": ("flow.0.buffer.receive_tuning=false",),
    "gNB's buffer 0.3 MB": ("radio.rlc.buffer_bytes=300000",),
    "gNB's buffer 0.6 MB": ("radio.rlc.buffer_bytes=600000",),
    "gNB's buffer 10 MB": ("radio.rlc.buffer_bytes=10000000",),
    "scheduling request every 80 ms": ("radio.sr.period_ms=80",),
    "gNB relies on reports alone": (REPORTS,),
    "reports alone, HyStart off": (REPORTS, 'flow.0.slow_start="none"'),
    "reports alone, BBR": (REPORTS, 'flow.0.congestion="bbr"'),
    "link adaptation starts 15 dB low": ("radio.link_adaptation.outer_loop_start_db=-15",),
    "CUBIC of RFC 9438, in fractions": ('flow.0.cubic.arithmetic="rfc"',),
    "10 ms each way": delays(10),
    "20 ms each way": delays(20),
    "10 ms each way, ACK jitter 40 ms": (*delays(10), *JITTER),
    "the same, HyStart off": (*delays(10), *JITTER, 'flow.0.slow_start="none"'),
    "the same, BBR": (*delays(10), *JITTER, 'flow.0.congestion="bbr"'),
    "waits, windows 64 MiB, gNB's buffer 32 MB": (WAITS, *WIDE),
    "the same three, HyStart off": (WAITS, *WIDE, 'flow.0.slow_start="none"'),
}
Head = Sequence[str]
TABLES: dict[str, tuple[Head, dict[str, list[Sets]]]] = {
    "drx": (("control | slow start", *(f"DRX {name}" for name in DRX)), combined(DRX)),
    "uplink": (
        ("control | slow start", *(f"DRX {name}" for name in DRX)),
        {label: [(*sets, *UP) for sets in row] for label, row in combined(DRX).items()},
    ),
    "jitter": (
        ("control | slow start", *(f"ACK jitter {name}" for name in JITTERS)),
        combined(JITTERS),
    ),
    "others": (("changed", "ramp s / average Mb/s / exit"), single(OTHERS)),
}


@dataclass(frozen=True)
class Cell:
    """Means over the seeds of one combination."""

    ramp_s: float | None
    average_mbps: float
    steady_mbps: float
    exits: str

    def text(self) -> str:
        ramp = "-" if self.ramp_s is None else f"{self.ramp_s:.1f}"
        return f"{ramp} / {self.average_mbps:.0f} of {self.steady_mbps:.0f} / {self.exits}"


def measured(name: str, head: Head, rows: dict[str, list[Sets]], seeds: int) -> str:
    say(f"{name}, {sum(map(len, rows.values())) * seeds} runs")
    with ThreadPoolExecutor() as pool:
        cells = {
            label: list(pool.map(lambda sets: measure(sets, seeds), row))
            for label, row in rows.items()
        }
    rows_of = (
        (*label.split(" | "), *(cell.text() for cell in row)) for label, row in cells.items()
    )
    return table(" | ".join(head), rows_of)


def measure(sets: Sets, seeds: int) -> Cell:
    loaded = scenarios.load(SCENARIO, list(sets))
    runs: list[Any] = [_core.simulate(loaded, seed, None).summary for seed in range(1, seeds + 1)]
    flows = [run["flows"][0] for run in runs]
    return Cell(
        ramp_s=mean_of(flow["converged_after_s"] for flow in flows),
        average_mbps=fmean(flow["goodput_mbps"] for flow in flows),
        steady_mbps=fmean(flow["steady_mbps"] for flow in flows),
        exits=exits([flow["slow_start_exit"] for flow in flows]),
    )


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean; None if the value is missing for a seed."""
    known = list(values)
    return None if None in known else fmean(value for value in known if value is not None)


def exits(found: Sequence[dict[str, Any] | None]) -> str:
    """Return the windows at the end of slow start over all seeds, and the reasons for the end."""
    left = [each for each in found if each is not None]
    if not left:
        return "never"
    windows = sorted(each["cwnd_segments"] for each in left)
    span = f"{windows[0]}" if windows[0] == windows[-1] else f"{windows[0]} to {windows[-1]}"
    reasons = dict.fromkeys(each["reason"].replace("_", " ") for each in left)
    return f"{span} {' or '.join(reasons)}"


TEXT = """\
# 5g-drx: what causes the ramp?

<!-- Generated: make page-ablation -->

The study's source measured 5 to 6 s until a download reaches its steady 230 to 262 Mb/s, and 205
Mb/s over 30 s. It blames DRX: ACKs wait in the sleeping UE. This page switches each part of that
explanation on and off, in the scenario of the study [5g-drx](studies.md#5g-drx), with
{seeds} seeds each.

A cell of the tables gives *time to 90 % of the steady rate in s* / *average over 30 s* of *steady
rate in Mb/s* / *cwnd in segments and reason at the end of slow start*. The rate is measured over
the last second, so a ramp is never below 1 s. "never" means that slow start did not end, because
the receive window ended the growth.

## Conclusion

- **DRX as specified causes no ramp.** The columns "off" and "3GPP" are equal in every row of the
  table, because data restarts the inactivity timer, and a pending scheduling request is Active Time
  (TS 38.321 5.7).
- **DRX sleep that delays ACKs** (`uplink_waits_for_on_duration`, which 3GPP does not specify) does
  not cause the ramp with default windows. The RTT becomes the cycle of 320 ms, and the download
  ends at 38 to 65 Mb/s, not at 246. With windows of 64 MiB and 32 MB of buffer in the gNB it
  reaches 246 Mb/s after 4 to 6 s, at a mean RTT of 0.6 s or more. BBR stays below 1 Mb/s. In the
  uplink CUBIC takes 3 to 7 s, after a spurious time-out at 10 segments.
- **HyStart alone** costs nothing: slow start exits at 230 to 644 segments, which is more than the
  path holds, within the first second.
- **An early HyStart exit due to unevenly spaced ACKs** causes the ramp. With an uplink delay that
  varies by 40 ms, slow start exits at 24 to 88 segments, and the ramp takes 4 to 5 s, at 222 to 226
  Mb/s of 246. All three published downlink figures are then within their tolerances, except the
  average with Linux 6.14's HyStart, 226 with a limit of 225.5. Without HyStart the ramp is gone
  (1.3 s).
- **A gNB that relies on reports alone** causes it, too. A UE that has more ACKs than it reported is
  then silent until retxBSR-Timer, 80 ms, and slow start exits at 70 segments: 5.7 s, 198 Mb/s of
  224, all three within their tolerances, with any of Linux's versions. TS 38.321 does not say how a
  scheduler must handle this. Without HyStart a ramp of 3.5 s remains, and BBR suffers most.
- **Receive window and buffers** do not cause it: with too little of either, the download does not
  reach its steady rate.

So the model supports two explanations, and the sleep is not one of them. Both concern when ACKs can
be sent, and the source neither states nor rules out either; its UDP test saw only the downlink.
Four measurements would settle it:

| | ACK jitter | reports alone | sleep, large windows |
|---|---|---|---|
| CUBIC with `hystart=0` | 1.3 s | 3.5 s | 4.2 s |
| mean RTT | 0.1 s, a queue | 0.1 s, with gaps of 80 ms | 0.6 s or more |
| retxBSR-Timer of 10 ms | no change | 1.9 s | no change |
| DRX off in the gNB | no change, unless DRX causes the jitter | no change | no ramp |

`uplink_waits_for_on_duration` delays only scheduling requests. The UE immediately uses grants that
the gNB gives without a request (padding reports, piggybacked reports, HARQ retransmissions). Once
uplink data flows without a gap, the key changes nothing. A UE that also ignored grants would be
slower.

The uplink's average of 56 Mb/s remains unexplained. With 91 Mb/s in the steady state it would take
a ramp of over 10 s, or pauses; the source speaks of bursts.

## Downlink: DRX

{drx}

## Uplink: DRX

{uplink}

## Downlink: ACK jitter

DRX is as in 3GPP. In the uplink each packet is delayed by up to the time in the column's heading,
without reordering.

{jitter}

BBR suffers too: its window is two BDP at the smallest RTT, and with this jitter the typical RTT is
several times the smallest.

## Downlink: other suspects

Unless the row says otherwise: CUBIC, `hystart-5.16`, DRX as in 3GPP.

{others}
"""
