"""A chart ready to be shown or stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from airpath.base.json import Json

Spec: TypeAlias = Json
"""A Vega-Lite specification, or a part of one."""
Series: TypeAlias = Json
"""Columns are lists, one value a row; what else is in it belongs to every row."""


class Table(NamedTuple):
    """What a chart shows in figures, for where it cannot be drawn."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification that names its data, and the words around it."""

    id: str
    """Name of its file when exported."""
    title: str
    how_to_read: str
    """One line."""
    spec: Spec
    """Its colours are variables of the page's style, such as ``var(--c0)``."""
    data: dict[str, list[Series]]
    """By name; charts of one report share what they can."""
    table: Table
    remarks: tuple[str, ...] = ()
    """What was left out of it, such as points between peaks."""
    margin: int = 80
    """Pixels that axes and labels need beside the plot."""
    narrow: int = 84
    """Those pixels on a narrow page, where legends take the place of labels."""
    columns: dict[str, str] = field(default_factory=dict)
    """Columns of its CSV file: fields of its rows and their names there; empty: all as they are."""
    width_mm: float | None = None
    """How wide it is when printed; None: as many CSS pixels as its specification has."""


def rows(data: Sequence[Series]) -> list[Series]:
    """Series as one row a point."""
    made = []
    for series in data:
        columns = {key: value for key, value in series.items() if isinstance(value, list)}
        same = {key: value for key, value in series.items() if key not in columns}
        for values in zip(*columns.values(), strict=True):
            made.append({**same, **dict(zip(columns, values, strict=True))})
    return made
