"""Compares the uplink with EDAF's measurement of OpenAirInterface, packet by packet.

The data set has what each packet waited for: the grant of its first block, its other blocks, and
HARQ. The scenario ``edaf.toml`` has OpenAirInterface's configuration, with the source of each key.
Packets enter at the measured times, relative to the measured frames. Prints a table of quantiles;
with --anatomy also what the measurement itself shows. Exit code 1: p50 or p95 of the wait or of the
whole differ by more than 10 %, or p99 by more than 40 %.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airpath_dev import ROOT
from airpath_dev.harness import FINE, NOT_CHECKED, WRONG, say, table

if TYPE_CHECKING:
    import polars as pl

DATA = ROOT.parent / "shared/data/edaf/oai-uplink-first.parquet"
SCENARIO = Path(__file__).with_suffix(".toml")
SENT = "rlc.queue.segments"
RECEIVED = "rlc.reassembled"
MOST_SEGMENTS = 5
SLOT_MS = 0.5
SFN_MS = 10_240
"""Radio frames are numbered modulo 1024."""
PACKET_BYTES = 128
IN_RLC = 131
"""With PDCP's header."""
QUANTILES = (0.5, 0.95, 0.99)
ALLOWED = (0.1, 0.1, 0.4)
"""Relative deviation of p50, p95 and p99. The p99 of the measurement's halves differ by 40 %."""
JUDGED = ("whole", "wait")
"""The other parts are multiples of 2.5 ms, the distance of PUSCHs: see the page."""


@dataclass(frozen=True)
class Parts:
    """What one packet waited for, in ms."""

    whole: float
    wait: float
    """From RLC's queue to the first block."""
    segmentation: float
    """From its first block to its last one."""
    harq: float
    """The longest time that one of its blocks took to be decoded, after the first transmission."""
    blocks: int


def main(
    data: Annotated[Path, typer.Option(help="The measurement.")] = DATA,
    seeds: Annotated[int, typer.Option(help="Number of simulated runs.", min=1)] = 5,
    warm_up: Annotated[
        float, typer.Option(help="Seconds of packets before the first one, in a later part.", min=0)
    ] = 0,
    anatomy: Annotated[bool, typer.Option(help="Also print what the packets waited for.")] = False,
) -> int:
    """Compare an OpenAirInterface uplink with EDAF's measurement of it."""
    import polars as pl

    if not data.exists():
        say(f"{data} is missing")
        return NOT_CHECKED
    rows = pl.read_parquet(data).sort("seqno").to_dicts()
    measured = {row["seqno"]: _measured(row) for row in rows}
    if anatomy:
        print(_anatomy(rows))
    text = scenario(warmed_up(arrivals(rows), warm_up))
    runs = [_simulated(text, seed) for seed in range(1, seeds + 1)]
    lines, wrong = [], False
    for part in ("whole", "wait", "segmentation", "harq", "blocks"):
        truth = [getattr(each, part) for each in measured.values()]
        model = [getattr(run[key], part) for run in runs for key in measured if key in run]
        for share, allowed in zip(QUANTILES, ALLOWED, strict=True):
            is_, was = quantile(model, share), quantile(truth, share)
            off = abs(is_ - was) > allowed * was
            wrong |= off and part in JUDGED
            lines.append([part, f"p{share * 100:.0f}", f"{was:.2f}", f"{is_:.2f}", "*" * off])
    print(table(["part", "", "measured, ms", "airpath, ms", "outside"], lines))
    return WRONG if wrong else FINE


def quantile(values: list[float], share: float) -> float:
    """Return the value below which this share of ``values`` lies."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def arrivals(rows: list[dict[str, Any]]) -> dict[int, float]:
    """Return the time of each packet in ms after the start of a radio frame.

    Times are relative to the assembly of blocks in the UE, at which the model's slots begin. The
    measurement leaves out packets whose blocks it could not match; they were sent nevertheless.
    """
    zero = rows[0]["rlc.queue.timestamp"]
    first: float | None = None
    offsets = []
    for row in rows:
        at = (row[f"{SENT}.0.rlc.txpdu.timestamp"] - zero) * 1000
        slot = row[f"{SENT}.0.mac.sdu.frame"] * 10 + row[f"{SENT}.0.mac.sdu.slot"] * SLOT_MS
        first = slot - at if first is None else first
        wraps = round((at + first - slot) / SFN_MS)
        offsets.append(at - slot - wraps * SFN_MS)
    start = -median(offsets)
    start %= 10
    known = {row["seqno"]: (row["rlc.queue.timestamp"] - zero) * 1000 + start for row in rows}
    times = dict(known)
    numbers = sorted(known)
    for before, after in pairwise(numbers):
        step = (known[after] - known[before]) / (after - before)
        times |= {each: known[before] + step * (each - before) for each in range(before, after)}
    return dict(sorted(times.items()))


def warmed_up(times: dict[int, float], seconds: float) -> dict[int, float]:
    """Add the packets that a sender sent before, as far apart as these; all move by whole frames.

    What the base station has learnt by then, above all the MCS, is known when the first comes.
    """
    first, last = min(times), max(times)
    step = (times[last] - times[first]) / (last - first)
    count = int(seconds * 1000 / step)
    moved = math.ceil(count * step / 10) * 10
    before = {first - each: times[first] + moved - each * step for each in range(count, 0, -1)}
    return before | {key: at + moved for key, at in times.items()}


def scenario(times: dict[int, float]) -> str:
    """Return the scenario with one datagram at each of these times, in ms."""
    text = SCENARIO.read_text().replace(
        "[run]\n", f"[run]\nduration_s = {max(times.values()) / 1000 + 0.5:.3f}\n", 1
    )
    flow = (
        '\n[[flow]]\nid = "p{}"\nkind = "udp"\ndirection = "up"\nrate_mbps = 1\n'
        "packet_bytes = {}\nstart_s = {:.9f}\nduration_s = 0.0001\n"
    )
    flows = (flow.format(key, PACKET_BYTES, at / 1000) for key, at in times.items())
    return text + "".join(flows)


def _measured(row: dict[str, Any]) -> Parts:
    sent = [row[f"{SENT}.{each}.rlc.txpdu.timestamp"] for each in range(MOST_SEGMENTS)]
    sent = [at for at in sent if at is not None]
    harq = 0.0
    for each in range(MOST_SEGMENTS):
        decoded = f"{RECEIVED}.{each}.mac.demuxed.mac.decoded"
        if (failed := row.get(f"{decoded}.1.timestamp")) is not None:
            harq = max(harq, row[f"{decoded}.0.timestamp"] - failed)
    return Parts(
        whole=(row["receive.timestamp"] - row["send.timestamp"]) * 1000,
        wait=(sent[0] - row["rlc.queue.timestamp"]) * 1000,
        segmentation=(sent[-1] - sent[0]) * 1000,
        harq=harq * 1000,
        blocks=len(sent),
    )


def _simulated(text: str, seed: int) -> dict[int, Parts]:
    import airpath
    from airpath import scenario as scenarios

    parsed = scenarios.parse(text.replace("[run]\n", f"[run]\nseed = {seed}\n", 1), "edaf", ".")
    return parts_of(airpath.run(parsed, workers=1).radio_log)


def parts_of(log: pl.DataFrame) -> dict[int, Parts]:
    """Return the parts of each packet of a run with one UE, whose flows are single packets.

    RLC sends in order, so the blocks' sizes tell which packets they hold.
    """
    entered, left, blocks, reports = {}, {}, [], set()
    for row in log.to_dicts():
        match row["event"], row["direction"]:
            case "packet_enters", "up":
                entered[int(row["flow"].removeprefix("p"))] = row["time_ns"]
            case "packet_leaves", "up":
                left[int(row["flow"].removeprefix("p"))] = row["time_ns"]
            case "block", "up":
                blocks.append(row)
            case "bsr", _:
                reports.add(row["time_ns"])
    held = _segments(entered, [row for row in blocks if row["transmission"] == 1], reports)
    decoded = _decoded(blocks)
    return {
        key: Parts(
            whole=(left[key] - entered[key]) / 1e6,
            wait=(sent[0] - entered[key]) / 1e6,
            segmentation=(sent[-1] - sent[0]) / 1e6,
            harq=max(decoded.get(at, at) - at for at in sent) / 1e6,
            blocks=len(sent),
        )
        for key, sent in held.items()
        if key in left
    }


def _segments(
    entered: dict[int, int], blocks: list[dict[str, Any]], reports: set[int]
) -> dict[int, list[int]]:
    """Return the times of the blocks that hold each packet."""
    held: dict[int, list[int]] = {}
    waiting = sorted(entered, key=lambda key: entered[key])
    rest, header = IN_RLC, 3
    for block in blocks:
        at = block["time_ns"]
        room = block["used_bytes"] - (2 if at in reports else 0)
        # 3 bytes of MAC subheader; TS 38.322 6.2.2.4: 3 of RLC header, 5 from the second segment on
        while waiting and entered[waiting[0]] <= at and room > 3 + header:
            taken = min(rest, room - 3 - header)
            held.setdefault(waiting[0], []).append(at)
            room -= taken + 3 + header
            rest, header = rest - taken, 5
            if rest == 0:
                waiting.pop(0)
                rest, header = IN_RLC, 3
    return held


def _decoded(blocks: list[dict[str, Any]]) -> dict[int, int]:
    """Return when each block that failed at first was decoded, by its first transmission."""
    failed: list[int] = []
    decoded = {}
    for block in blocks:
        if block["transmission"] == 1 and not block["received"]:
            failed.append(block["time_ns"])
        elif block["transmission"] > 1 and failed:
            first = failed.pop(0)
            if block["received"]:
                decoded[first] = block["time_ns"]
            else:
                failed.insert(0, first)
    return decoded


def _anatomy(rows: list[dict[str, Any]]) -> str:
    """Say what the measurement shows: slots, block sizes, HARQ, and times outside the radio."""
    slots: Counter[int] = Counter()
    sizes: Counter[str] = Counter()
    rounds: Counter[float] = Counter()
    symbols: Counter[int] = Counter()
    seen = set()
    for row in rows:
        for each in range(MOST_SEGMENTS):
            block = f"{SENT}.{each}"
            if (slot := row[f"{block}.mac.sdu.slot"]) is None:
                continue
            at = (round(row[f"{block}.rlc.txpdu.timestamp"] * 100), slot)
            if at in seen:
                continue
            seen.add(at)
            slots[slot] += 1
            symbols[row[f"{block}.phy.tx.nb_sym"]] += 1
            sizes[f"{row[f'{block}.mac.sdu.tbs']} in {row[f'{block}.phy.tx.nb_rb']}"] += 1
        for each in range(MOST_SEGMENTS):
            decoded = f"{RECEIVED}.{each}.mac.demuxed.mac.decoded"
            if (failed := row.get(f"{decoded}.1.timestamp")) is not None:
                rounds[round((row[f"{decoded}.0.timestamp"] - failed) * 2000) / 2] += 1
    outside = {
        "to RLC": ("send.timestamp", "rlc.queue.timestamp"),
        "from the last decoded block to GTP-U": (
            f"{RECEIVED}.0.mac.demuxed.mac.decoded.0.timestamp",
            "gtp.out.timestamp",
        ),
        "core": ("gtp.out.timestamp", "receive.timestamp"),
    }
    lines = [
        f"slots of PUSCHs: {dict(slots.most_common())}, symbols {dict(symbols)}",
        f"bytes in resource blocks: {dict(sizes.most_common(8))}",
        f"ms from a failed to the next transmission: {dict(rounds)}",
    ]
    for name, (begin, end) in outside.items():
        lines.append(f"{name}: {median((row[end] - row[begin]) * 1000 for row in rows):.3f} ms")
    return "\n".join(lines) + "\n"
