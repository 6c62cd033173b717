"""Writes docs/measured/quic-acks.md: what a QUIC receiver's acknowledgements cost in LTE's uplink.

One transfer over LTE, up and down, for several numbers of packets after which the receiver is asked
to acknowledge. The page has totals of the cell's uplink and downlink.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Annotated

import polars as pl
import typer

import airpath
from airpath_dev.harness import MEASURED, heading, table, write

SCENARIO = """\
[run]
duration_s = 10

[[path.down]]
stage = "delay"
delay_ms = 10

[[path.up]]
stage = "delay"
delay_ms = 10

[radio]
preset = "lte-20"

[[flow]]
kind = "quic"
direction = "{direction}"
"""

PACKETS = (1, None, 4, 10, 40, 100)
"""``ack.packets``; None: the sender does not ask, and the receiver acknowledges every second."""

SEEDS = 3

SUMS = ("grants", "granted_bytes", "prbs", "scheduling_requests", "blocks", "used_bytes")

Case = dict[str, float]


def main(
    page: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "quic-acks.md",
    file: Annotated[Path, typer.Option(help="Where the scenario is kept.")] = Path(
        "quic-acks.toml"
    ),
) -> None:
    """Run every case with three seeds and write the page."""
    write(page, markdown(*(_cases(file, direction) for direction in ("up", "down"))))


def _cases(file: Path, direction: str) -> list[Case]:
    file.write_text(SCENARIO.format(direction=direction), encoding="utf-8")
    try:
        return [_case(file, packets) for packets in PACKETS]
    finally:
        file.unlink()


def _case(file: Path, packets: int | None) -> Case:
    sets = {} if packets is None else {"flow.0.ack.packets": packets}
    totals = [_totals(airpath.run(file, set=sets, seed=seed)) for seed in range(1, SEEDS + 1)]
    return {name: statistics.fmean(one[name] for one in totals) for name in totals[0]}


def _totals(run: airpath.Run) -> Case:
    flow = run.flows.row(0, named=True)
    sums = run.radio.group_by("direction").agg(pl.col(*SUMS).sum())
    cell = {row["direction"]: row for row in sums.iter_rows(named=True)}
    radio = {f"{side}_{name}": float(cell[side][name]) for side in cell for name in SUMS}
    return {"goodput_mbps": flow["goodput_mbps"], "rtt_ms": flow["rtt_ms_p50"], **radio}


def markdown(up: Sequence[Case], down: Sequence[Case]) -> list[str]:
    """The page."""
    return [
        heading("What QUIC's acknowledgements cost in LTE's uplink", "page-quic-acks"),
        *_INTRODUCTION.splitlines(),
        "",
        "## Conclusion",
        "",
        *_conclusion(up, down),
        "",
        *_UPLOAD.splitlines(),
        "",
        _upload(up),
        "",
        *_DOWNLOAD.splitlines(),
        "",
        _download(down),
        "",
        *_LIMITS.splitlines(),
        "",
        "```toml",
        *SCENARIO.format(direction="up").splitlines(),
        "```",
    ]


_INTRODUCTION = f"""\
A QUIC sender can ask its receiver to acknowledge less often
([`ack.packets`](../reference/scenario.md), draft-ietf-quic-ack-frequency). This page runs one
transfer of 10 s over a cell of 20 MHz LTE (`lte-20`) with a server 20 ms away, first up and then
down. Both ends are quinn. Figures are means of {SEEDS} seeds.
"""

_UPLOAD = """\
## Upload

The acknowledgements travel in the downlink. After slow start the UE's buffer is never empty: each
grant finds data, and the buffer status reports in it ask for the next one.
"""

_DOWNLOAD = """\
## Download

The acknowledgements travel in the uplink, and nothing else does. A grant is for what the last
report said. Once the UE's buffer is empty, the next acknowledgement needs a scheduling request.
"""

_LIMITS = """\
## What is not shown

- A grant also takes a place on the PDCCH, which the model does not limit.
- The stack gets each datagram by itself. A host that delivers many at once acknowledges less
  often than these figures say ([scenarios](../guides/scenarios.md#quic)).
- quinn's receiver waits at most 25 ms with an acknowledgement, unless `ack.delay_ms` allows more.

## The scenario

`direction = "up"` or `"down"`, and for each row `--set flow.0.ack.packets=N`:
"""


def _conclusion(up: Sequence[Case], down: Sequence[Case]) -> list[str]:
    plain = PACKETS.index(None)
    rarest = len(PACKETS) - 1
    more = [case["up_grants"] / up[plain]["up_grants"] - 1 for case in up]
    share = [case["up_prbs"] / _prbs() for case in down]
    requests = [case["up_scheduling_requests"] for case in down]
    points = [
        "**An upload needs the same uplink grants, however often the receiver acknowledges**: from "
        f"{min(more):+.1%} to {max(more):+.1%} of those with quinn's default. Grants follow the "
        "UE's buffer, and acknowledgements only keep it full. What changes is the downlink: with "
        f"one acknowledgement in {PACKETS[rarest]} packets it carries "
        f"{up[rarest]['down_used_bytes'] / up[plain]['down_used_bytes']:.0%} of the bytes.",
        f"**A download pays for its acknowledgements in the uplink**: {share[0]:.1%} of the "
        f"resource blocks with one for each packet, {share[plain]:.1%} with quinn's default, "
        f"{share[rarest]:.1%} with one in {PACKETS[rarest]} packets.",
        "**Rare acknowledgements must be requested.** The UE's buffer is empty between them: the "
        f"download sends {requests[plain]:.0f} scheduling requests with quinn's default, and "
        f"{requests[rarest]:.0f} with one acknowledgement in {PACKETS[rarest]} packets.",
        f"Goodput differs by at most {max(_spread(up), _spread(down)):.1%} in either direction.",
    ]
    return [fill(f"- {point}", 100, subsequent_indent="  ") for point in points]


def _prbs() -> int:
    """Resource blocks of 20 MHz, in each of 1000 subframes a second, for 10 s (TS 36.101 5.6)."""
    return 100 * 1000 * 10


def _spread(cases: Sequence[Case]) -> float:
    rates = [case["goodput_mbps"] for case in cases]
    return max(rates) / min(rates) - 1


def _upload(cases: Sequence[Case]) -> str:
    head = (
        "`ack.packets` | goodput: | RTT p50: | uplink grants: | granted: | scheduling requests: "
        "| downlink blocks: | downlink bytes:"
    )
    rows = [
        (
            *_common(packets, case),
            f"{case['down_blocks']:.0f}",
            f"{case['down_used_bytes'] / 1e6:.2f} MB",
        )
        for packets, case in zip(PACKETS, cases, strict=True)
    ]
    return table(head, rows)


def _download(cases: Sequence[Case]) -> str:
    head = (
        "`ack.packets` | goodput: | RTT p50: | uplink grants: | granted: | scheduling requests: "
        "| uplink resource blocks:"
    )
    rows = [
        (*_common(packets, case), f"{case['up_prbs'] / _prbs():.1%}")
        for packets, case in zip(PACKETS, cases, strict=True)
    ]
    return table(head, rows)


def _common(packets: int | None, case: Case) -> tuple[str, ...]:
    return (
        "not asked (2)" if packets is None else str(packets),
        f"{case['goodput_mbps']:.1f} Mb/s",
        f"{case['rtt_ms']:.0f} ms",
        f"{case['up_grants']:.0f}",
        f"{case['up_granted_bytes'] / 1e6:.2f} MB",
        f"{case['up_scheduling_requests']:.0f}",
    )
