"""The topology of a network as an SVG: UEs, their cells, and the core.

States are words as well as colours. The page that shows it has the style of the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from airpath.base.text import plural

MOST_UES = 12
"""Drawn for each cell; the tables have them all."""

_WIDTH = 352
_ROW = 40
_LETTERS = 15
"""That fit into a box; a longer name is cut, and whole where a pointer rests on it."""

_UE_X, _CELL_X, _CORE_X, _BOX = 0, 132, 256, 96


@dataclass(frozen=True)
class Ue:
    """A UE."""

    name: str
    cell: str | None
    """The cell that it is in; None: none yet."""
    state: str
    linked: bool = True
    """Whether it has a connection to its cell."""


@dataclass(frozen=True)
class Cell:
    """A cell."""

    name: str
    state: str
    works: bool = True


@dataclass(frozen=True)
class Core:
    """The core network, or the server where the scenario has none."""

    name: str
    state: str


@dataclass(frozen=True)
class _Box:
    x: int
    y: int
    name: str
    state: str
    kind: str
    """The class of its style."""

    def svg(self) -> str:
        name_y = self.y + (13 if self.state else 20)
        return (
            f'<g class="box {self.kind}"><title>{escape(_pair(self.name, self.state))}</title>'
            f'<rect x="{self.x + 0.5}" y="{self.y + 0.5}" width="{_BOX - 1}" height="{_ROW - 9}" '
            f'rx="4"/><text x="{self.x + 6}" y="{name_y}">{escape(_cut(self.name))}</text>'
            f'<text class="state" x="{self.x + 6}" y="{self.y + 26}">{escape(_cut(self.state))}'
            "</text></g>"
        )

    @property
    def middle(self) -> float:
        """Height at which lines end."""
        return self.y + (_ROW - 8) / 2


def picture(cells: Sequence[Cell], ues: Sequence[Ue], core: Core) -> str:
    """Return the SVG; its label says the same in words."""
    boxes: list[_Box] = []
    lines: list[str] = []
    ends: list[_Box] = []
    top = 0
    for cell in cells:
        mine = [ue for ue in ues if ue.cell == cell.name]
        shown = mine[:MOST_UES]
        rows = max(1, len(shown) + (len(mine) > MOST_UES))
        kind = "cell" if cell.works else "cell out"
        box = _Box(_CELL_X, top + (rows - 1) * _ROW // 2, cell.name, cell.state, kind)
        for row, ue in enumerate(shown):
            boxes.append(_ue_box(ue, top + row * _ROW))
            lines.append(_line(boxes[-1], box, "" if ue.linked and cell.works else "off"))
        if len(mine) > MOST_UES:
            more = f"and {plural(len(mine) - MOST_UES, 'more UE')}"
            boxes.append(_Box(_UE_X, top + len(shown) * _ROW, more, "", "ue"))
        boxes.append(box)
        ends.append(box)
        top += rows * _ROW
    for row, ue in enumerate([ue for ue in ues if ue.cell is None][:MOST_UES]):
        boxes.append(_ue_box(ue, top + row * _ROW))
    height = max([_ROW, *(box.y + _ROW for box in boxes)])
    last = _Box(_CORE_X, (height - _ROW) // 2, core.name, core.state, "core")
    lines += [_line(box, last, "off" if "out" in box.kind else "") for box in ends]
    drawn = "".join([*lines, *(box.svg() for box in [*boxes, last])])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="network" role="img" '
        f'viewBox="0 0 {_WIDTH} {height - 8}" aria-label="{escape(_words(cells, ues, core))}">'
        f"{drawn}</svg>"
    )


def _ue_box(ue: Ue, y: int) -> _Box:
    return _Box(_UE_X, y, ue.name, ue.state, "ue" if ue.linked else "ue off")


def _line(left: _Box, right: _Box, kind: str) -> str:
    return (
        f'<line class="{kind}" x1="{left.x + _BOX}" y1="{left.middle}" x2="{right.x}" '
        f'y2="{right.middle}"/>'
    )


def _pair(name: str, state: str) -> str:
    return f"{name}: {state}" if state else name


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


def _words(cells: Sequence[Cell], ues: Sequence[Ue], core: Core) -> str:
    """Describe the picture for those who do not see it."""

    def named(cell: str | None) -> str:
        mine = [f"{ue.name} ({ue.state})" for ue in ues if ue.cell == cell]
        return ", ".join(mine) or "no UE"

    said = [f"Network. {_pair(core.name, core.state)}."]
    said += [f"Cell {cell.name}: {cell.state}, with {named(cell.name)}." for cell in cells]
    if any(ue.cell is None for ue in ues):
        said.append(f"Without a cell: {named(None)}.")
    return " ".join(said)
