"""Simulates and emulates QUIC flows over randomly drawn scenarios and compares the two (root).

The scenarios are those of ``twin-random``, with every transfer over QUIC. Both clocks drive the
same stack, so what differs is the driver: its clock, its system calls, and the processor time that
encryption takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from airpath.twin import compare, runs
from airpath_dev import ROOT
from airpath_dev.harness import FINE, MEASURED, WRONG, Count, Seed, heading, say, table, write

from .draw import Drawn, draw
from .place import run

LIMIT = 0.05
"""Of goodput and of the median RTT: what is asked of one stack on two clocks."""

FIGURES = {"goodput": "goodput", "RTT p50": "median RTT"}
"""What is judged, and its name on the page."""

CONTROLS = {"cubic": "cubic", "reno": "new-reno", "bbr": "cubic"}
"""What a drawn congestion control is over QUIC: quinn's BBR is left out."""

Row = tuple[Drawn, runs.Twin, Sequence[compare.Figure]]


def over_quic(drawn: Drawn) -> Drawn:
    """Scenario with its transfers over QUIC instead of TCP."""
    text = re.sub(r'kind = "(bulk|file)"', 'kind = "quic"', drawn.text)
    shape = drawn.shape
    for control, ours in CONTROLS.items():
        text = text.replace(f'congestion = "{control}"', f'congestion = "{ours}"')
        shape = re.sub(rf"\b{control}\b(?= (up|down))", ours, shape)
    return replace(drawn, text=text, shape=shape)


def main(
    seed: Seed = 8100,
    count: Count = 10,
    repeats: Annotated[int, typer.Option(help="Seeds of each scenario, each on both clocks.")] = 10,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/twin-quic",
    page: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "twin-quic.md",
) -> int:
    """Draw COUNT scenarios, from SEED on. The exit code is 1 if a figure is outside the limit."""
    rows = [_run(over_quic(draw(one)), out, repeats) for one in range(seed, seed + count)]
    lines = markdown(rows, seed, repeats)
    print("\n".join(lines))
    write(page, lines)
    return WRONG if any(_outside(figure) for *_, figures in rows for figure in figures) else FINE


def _run(drawn: Drawn, out: Path, repeats: int) -> Row:
    twin = run(drawn, out, repeats)
    kinds = {flow["id"]: flow["kind"] for flow in twin.comparable.scenario.flows}
    figures = [
        figure
        for figure in compare.compare(twin)
        if figure.name in FIGURES and kinds.get(figure.flow) == "quic"
    ]
    for figure in figures:
        say(f"seed {drawn.seed}: {figure.flow} {figure.name}: {figure.difference_text()}")
    return drawn, twin, figures


def _outside(figure: compare.Figure) -> bool:
    return figure.difference is None or abs(figure.difference) > LIMIT


def markdown(rows: Sequence[Row], seed: int, repeats: int) -> list[str]:
    """The page."""
    judged = [figure for *_, figures in rows for figure in figures]
    inside = sum(not _outside(figure) for figure in judged)
    return [
        heading("QUIC: one stack on two clocks", f"twin-quic SEED={seed} COUNT={len(rows)}"),
        "Each scenario was drawn by `dev/airpath_dev/twin/draw.py`, and every transfer in it runs",
        f"over QUIC. It ran with {repeats} seeds on the virtual clock, and as often on the real",
        "one, where the same stack uses the kernel's UDP. A difference is emulated over simulated,",
        f"minus one, of the means over the seeds. The limit is {LIMIT:.0%} for goodput and for the",
        "median RTT. The spread is that of the simulated seeds: from the least to the most, over",
        "their mean.",
        "",
        f"**{inside} of {len(judged)} figures are within the limit.**",
        "",
        table(
            "seed: | scenario | flow | figure | simulated: | emulated: | difference: | spread: "
            "| runs:",
            [row for one in rows for row in _lines(*one)],
        ),
    ]


def _lines(
    drawn: Drawn, twin: runs.Twin, figures: Sequence[compare.Figure]
) -> list[tuple[object, ...]]:
    if not figures:
        return [(drawn.seed, drawn.shape, "", "not judged", "", "", "", "", 0)]
    return [
        (
            drawn.seed,
            drawn.shape,
            figure.flow,
            FIGURES[figure.name],
            *figure.sides("none"),
            figure.difference_text(),
            _spread(figure.simulated),
            len(twin.valid),
        )
        for figure in figures
    ]


def _spread(values: Sequence[compare.Value]) -> str:
    present = [value for value in values if value is not None]
    mean = compare.mean(present)
    return f"{(max(present) - min(present)) / mean:.1%}" if mean else ""
