"""Simulates and emulates two transfers in sequence, of which the second uses kept metrics (root).

The sender keeps ssthresh and the RTT of the first transfer, as Linux does with
``tcp_no_metrics_save`` = 0 and ``tcp_no_ssthresh_metrics_save`` = 0. Both transfers are judged:
where the first one ends differently, so does the second.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from airpath.twin import compare, runs
from airpath_dev import ROOT
from airpath_dev.harness import FINE, MEASURED, WRONG, Count, Seed, heading, say, table, write

from .draw import ONE_WAY_MS, QUEUE_BDP, Drawn, _log
from .place import run

RATE_MBPS = (2.0, 50.0)
"""Evenly by its logarithm; more would keep a busy machine from being on time."""

CONTROLS = ("reno", "cubic")
"""BBR has no ssthresh of its own."""

SECONDS = (1.5, 4.0)
"""How long the link needs for each file."""

SECOND_S = 10.0
"""When the second file starts; the first has ended, and the queue is empty."""

DURATION_S = 22

FIRST, SECOND = "first", "second"

JUDGED = ("goodput", compare.EXIT, "exit cwnd")
"""Figures that are judged: they agree, or the scenario does not."""

Row = tuple[Drawn, runs.Twin, Sequence[compare.Figure]]


def draw(seed: int) -> Drawn:
    """Draw the scenario of a seed."""
    random_ = random.Random(f"airpath twin-kept {seed}")
    rate = _log(random_, *RATE_MBPS)
    delay = _log(random_, *ONE_WAY_MS["wire"])
    queue = _log(random_, *QUEUE_BDP)
    control = random_.choice(CONTROLS)
    packets = max(10, round(queue * rate * 1e6 / 8 * 2 * delay / 1e3 / 1500))
    lines = [f'title = "twin-kept {seed}"', "[run]", f"duration_s = {DURATION_S}", f"seed = {seed}"]
    lines += ["[[path.down]]", 'stage = "link"', f"rate_mbps = {rate:.2f}"]
    lines += [f"queue_packets = {packets}"]
    for direction in ("down", "up"):
        lines += [f"[[path.{direction}]]", 'stage = "delay"', f"delay_ms = {delay:.2f}"]
    sizes = []
    for name, start in ((FIRST, 0.0), (SECOND, SECOND_S)):
        size = round(rate * 1e6 / 8 * random_.uniform(*SECONDS))
        lines += ["[[flow]]", f'id = "{name}"', 'kind = "file"', f"size_bytes = {size}"]
        lines += [f"start_s = {start}", f'congestion = "{control}"']
        lines += ['route.metrics = "linux-ssthresh"']
        sizes.append(f"{size / 1e6:.1f}")
    shape = (
        f"{control} at {rate:.1f} Mb/s, {2 * delay:.0f} ms, queue {queue:.1f} BDP; "
        f"{' and '.join(sizes)} MB"
    )
    return Drawn(seed, shape, "\n".join(lines) + "\n")


def main(
    seed: Seed = 4800,
    count: Count = 10,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/twin-kept",
    page: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "twin-kept.md",
) -> int:
    """Draw COUNT scenarios, from SEED on. The exit code is 1 if a second transfer disagrees."""
    rows = [_run(draw(one), out) for one in range(seed, seed + count)]
    lines = markdown(rows, seed)
    print("\n".join(lines))
    write(page, lines)
    return (
        FINE if all(verdict(figures, SECOND) == compare.AGREES for *_, figures in rows) else WRONG
    )


def _run(drawn: Drawn, out: Path) -> Row:
    twin = run(drawn, out)
    figures = [one for one in compare.compare(twin) if one.name in JUDGED]
    say(f"seed {drawn.seed}: {verdict(figures, FIRST)}, {verdict(figures, SECOND)}")
    return drawn, twin, figures


def verdict(figures: Sequence[compare.Figure], flow: str) -> str:
    """Return whether a transfer agrees in all of its figures; "not judged" without any."""
    found = {one.verdict for one in figures if one.flow == flow}
    if not found:
        return "not judged"
    return compare.AGREES if found == {compare.AGREES} else compare.DIFFERS


def markdown(rows: Sequence[Row], seed: int) -> list[str]:
    """The page."""
    agreeing = sum(verdict(figures, SECOND) == compare.AGREES for *_, figures in rows)
    firsts = sum(verdict(figures, FIRST) == compare.AGREES for *_, figures in rows)
    return [
        heading(
            "Metrics kept between two transfers: simulated and emulated",
            f"twin-kept SEED={seed} COUNT={len(rows)}",
        ),
        "Each scenario was drawn: a wire, and two files that one host sends to another in",
        "sequence. The sender keeps ssthresh and the RTT of the first transfer",
        '(`route.metrics = "linux-ssthresh"`), and the second begins with them. Each scenario ran',
        "once on the virtual clock, and once on the real one with the kernel's TCP",
        "(`tcp_no_metrics_save` = 0, `tcp_no_ssthresh_metrics_save` = 0). Limits: goodput 5 %, the",
        "end of slow start one base RTT and 20 % in cwnd.",
        "",
        f"**The second transfer agrees in all figures in {agreeing} of {len(rows)} scenarios, the",
        f"first in {firsts}.**",
        "",
        table(
            "seed: | scenario | flow | figure | simulated: | emulated: | difference: | verdict",
            [row for one in rows for row in _lines(*one)],
        ),
    ]


def _lines(
    drawn: Drawn, twin: runs.Twin, figures: Sequence[compare.Figure]
) -> list[tuple[object, ...]]:
    if not figures:
        why = "; ".join(why for pair in twin.pairs for why in pair.invalid)
        return [(drawn.seed, drawn.shape, "", "", "", "", "", f"not judged: {why}")]
    return [
        (
            drawn.seed,
            drawn.shape,
            one.flow,
            one.name,
            *one.sides("none"),
            one.difference_text(),
            one.verdict + (f": {one.note}" if one.note else ""),
        )
        for one in figures
    ]
