"""A chart ready to be shown or stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification with colour tokens, and the words around it."""

    id: str
    """Name of its file when exported."""
    title: str
    how_to_read: str
    """One line."""
    spec: dict[str, Any]
    notes: tuple[str, ...] = ()
    """What was left out of it, such as points between peaks."""
    margin: int = 80
    """Pixels that axes and labels need beside the plot."""
