"""Simulates and emulates two transfers in sequence, of which the second uses kept metrics (root).

The sender keeps ssthresh and the RTT of the first transfer, as Linux does with
``tcp_no_metrics_save`` = 0 and ``tcp_no_ssthresh_metrics_save`` = 0. Both transfers are judged:
where the first one ends differently, so does the second.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from airpath.base.text import digits
from airpath.twin import compare
from airpath_dev import ROOT
from airpath_dev.harness import (
    FINE,
    MEASURED,
    NOT_CHECKED,
    WRONG,
    Count,
    Seed,
    heading,
    say,
    table,
    write,
)

from . import drawn
from .draw import ONE_WAY_MS, QUEUE_BDP, Drawn, _log

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

NOT_JUDGED = "not judged"

JUDGED = ("goodput", compare.EXIT, "exit cwnd")
"""Figures that are judged: they agree, or the scenario does not."""

MOST = 8
"""Emulated runs of a scenario in which a figure differs. Seed 4802 has four ends of slow start."""


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
    """Draw COUNT scenarios, from SEED on. The exit code is 1 if a second transfer differs.

    It is 3 if one was not judged.
    """
    results = []
    for one in range(seed, seed + count):
        results.append(drawn.run(draw(one), out, names=JUDGED, most=MOST))
        say(f"seed {one}: {verdict(results[-1], FIRST)}, {verdict(results[-1], SECOND)}")
    lines = markdown(results, seed)
    print("\n".join(lines))
    write(page, lines)
    seconds = {verdict(result, SECOND) for result in results}
    if drawn.DIFFERS in seconds:
        return WRONG
    return NOT_CHECKED if NOT_JUDGED in seconds else FINE


def verdict(result: drawn.Result, flow: str) -> str:
    """Return what the figures of a transfer came to."""
    found = {one.verdict for one in result.figures if one.figure.flow == flow}
    order = (drawn.DIFFERS, drawn.UNDECIDED, drawn.AGREES)
    return next((one for one in order if one in found), NOT_JUDGED)


def markdown(results: Sequence[drawn.Result], seed: int) -> list[str]:
    """The page."""
    first, second = (
        Counter(verdict(result, flow) for result in results) for flow in (FIRST, SECOND)
    )
    return [
        heading(
            "Metrics kept between two transfers: simulated and emulated",
            f"twin-kept SEED={seed} COUNT={len(results)}",
        ),
        "Each scenario was drawn: a wire, and two files that one host sends to another in",
        "sequence. The sender keeps ssthresh and the RTT of the first transfer",
        '(`route.metrics = "linux-ssthresh"`), and the second begins with them. Each scenario ran',
        "once on the virtual clock, and twice on the real one with the kernel's TCP",
        "(`tcp_no_metrics_save` = 0, `tcp_no_ssthresh_metrics_save` = 0). Where a figure differed",
        f"it was emulated again, up to {MOST} times. Limits: goodput 5 %, the end of slow start",
        "one base RTT and 20 % in cwnd. A figure outside its limit is *undecided* if the emulated",
        "runs differ from each other at least as much.",
        "",
        f"**Second transfers: {_told(second)}. First ones: {_told(first)}.**",
        "",
        table(
            "seed: | scenario | flow | figure | simulated: | emulated: | difference: "
            "| between kernel runs: | verdict",
            [row for one in results for row in _lines(one)],
        ),
    ]


def _told(found: Counter[str]) -> str:
    words = {
        drawn.AGREES: "agree in all figures",
        drawn.UNDECIDED: "are undecided",
        drawn.DIFFERS: "differ",
        NOT_JUDGED: "were not judged",
    }
    return ", ".join(f"{found[one]} {word}" for one, word in words.items() if found[one])


def _lines(result: drawn.Result) -> list[tuple[object, ...]]:
    of = result.drawn
    if not result.figures:
        why = "; ".join(result.refused)
        return [(of.seed, of.shape, "", "", "", "", "", "", f"{NOT_JUDGED}: {why}")]
    return [
        (
            of.seed,
            of.shape,
            one.figure.flow,
            one.figure.name,
            one.figure.sides("none")[0],
            _kernels(one),
            one.figure.difference_text(),
            "" if one.kernel is None else compare.distance_text(one.figure.name, one.kernel),
            one.verdict + (f": {one.figure.note}" if one.figure.note else ""),
        )
        for one in result.figures
    ]


def _kernels(judged: drawn.Judged) -> str:
    """Return the kernel's mean, or each of its values if they are outside the limit."""
    if judged.verdict == drawn.AGREES:
        return judged.figure.sides("none")[1]
    values = ("none" if one is None else digits(one) for one in judged.figure.emulated)
    return f"{', '.join(values)} {judged.figure.unit}"
