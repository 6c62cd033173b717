"""Doors from results to what is made of them.

Plots, reports and findings are above results: they import them. A method such as ``Run.plot`` leads
there from below, so it takes its function when it is called, by name.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol


class Chart(Protocol):
    """A chart that a notebook shows."""

    title: str

    def save(self, path: str | Path, *, spec: bool = False) -> list[Path]:
        """Write it as .svg, .pdf, .png or .html, and its data as .csv beside it."""


def later(module: str, name: str) -> Any:
    """Return what a module above this one offers."""
    return getattr(import_module(module), name)
