"""Draws what docs/measured has of twins: each figure simulated beside the kernel's.

Goodput and round-trip times of the chosen twins, all that their page lists, and of the random
twins, whose page lists the figures that are outside their limits. Writes DOCS/img/twins.svg.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from airpath.plots import vega
from airpath.plots.export import rendered
from airpath.plots.figure import Figure, Series, Spec, Table
from airpath.runs.directories import replaced_file
from airpath_dev import ROOT
from airpath_dev.harness import say

CHOSEN = "chosen twins: every figure"
OUTSIDE = "random twins: figures outside their limits"
PAGES = {CHOSEN: "twin.md", OUTSIDE: "twin-random.md"}
PANELS = {"goodput": ("goodput", "Mb/s"), "RTT p50": ("RTT", "ms"), "RTT p95": ("RTT", "ms")}
UNITS = {"kb/s": 1e-3, "Mb/s": 1.0, "Gb/s": 1e3, "ms": 1.0, "s": 1e3}
DECADES = [0.1, 1, 10, 100, 1000]
_SIZE = 250


class Point(NamedTuple):
    """One figure of one flow."""

    panel: str
    simulated: float
    emulated: float


def points(page: str) -> Iterator[Point]:
    """The figures that have a panel, from the tables of a page."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 6 or cells[1] not in PANELS or "no limit" in cells[-1]:
            continue
        both = [_value(cell) for cell in cells[2:4]]
        if both[0] is not None and both[1] is not None:
            yield Point(PANELS[cells[1]][0], both[0], both[1])


def _value(text: str) -> float | None:
    found = re.fullmatch(r"([\d.]+) ([\w/]+)", text.replace(",", ""))
    return float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else None


def figure(pages: dict[str, str]) -> Figure:
    """Two panels, goodput and RTT, in which equal figures lie on the diagonal."""
    found = {name: list(points(text)) for name, text in pages.items()}
    data: dict[str, list[Series]] = {}
    views: list[Spec] = []
    colour = vega.colour([*pages], ["var(--c0)", "var(--c1)"], legend=True)
    for panel, unit in dict.fromkeys(PANELS.values()):
        data[panel] = [
            {
                "s": name,
                "x": [point.emulated for point in some if point.panel == panel],
                "y": [point.simulated for point in some if point.panel == panel],
            }
            for name, some in found.items()
        ]
        every = [value for each in data[panel] for value in (*each["x"], *each["y"])]
        domain = [min(every) / 1.3, max(every) * 1.3]
        scale = {"type": "log", "domain": domain, "nice": False}
        factor = {"Mb/s": ("b/s", 1e6), "ms": ("s", 1e-3)}[unit]
        axis = {**vega.si(*factor), "grid": True, "values": DECADES, "tickCount": len(DECADES)}
        x, y = (vega.number(c, title, scale=scale, axis=axis) for c, title in (
            ("x", f"{panel} of the kernel's TCP, emulated"), ("y", f"{panel}, simulated"),
        ))  # fmt: skip
        ends = [{"x": end, "y": end} for end in domain]
        same = {"type": "line", "strokeWidth": 1, "strokeDash": [3, 3]}
        dots = {"type": "point", "filled": True, "size": 28, "opacity": 0.8}
        views.append(
            {
                "width": _SIZE,
                "height": _SIZE,
                "layer": [
                    {"data": {"values": ends}, "mark": same,
                     "encoding": {"x": x, "y": y, "color": {"value": "var(--muted)"}}},
                    {"data": {"name": panel}, "mark": dots,
                     "encoding": {"x": x, "y": y, "color": colour}},
                ],
            }
        )  # fmt: skip
    spec = {"hconcat": views, "spacing": 40}
    rows = [[name, *map(str, point)] for name, some in found.items() for point in some]
    return Figure(
        "twins", "Simulated and emulated", "A dot on the diagonal is the same on both sides.",
        vega.finished(spec), data, Table(["twins", "figure", "simulated", "emulated"], rows),
    )  # fmt: skip


def main(
    docs: Annotated[Path, typer.Option(help="Where docs/measured is.")] = ROOT / "docs",
) -> int:
    """Draw the picture of README from docs/measured."""
    pages = {
        name: (docs / "measured" / file).read_text(encoding="utf-8") for name, file in PAGES.items()
    }
    made = figure(pages)
    path = docs / "img/twins.svg"
    with replaced_file(path) as aside:
        aside.write_bytes(rendered(made, "svg"))
    say(f"{path}: {len(made.table.rows)} figures")
    return 0
