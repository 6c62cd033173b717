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

    @property
    def title(self) -> str:
        """What the chart shows."""

    def save(self, path: str | Path, *, spec: bool = False) -> list[Path]:
        """Write it as .svg, .pdf, .png or .html, and its data as .csv beside it."""


class Findings(dict[str, Any]):
    """What ``explain`` returns: a dict that a notebook shows as a list."""

    def _repr_html_(self) -> str:
        """Causes, the largest first, with what helps."""
        return str(later("airpath.report.notebook", "findings_view")(self))


class Compared(dict[str, Any]):
    """What ``whatif`` returns: a dict that a notebook shows as a picture."""

    def _repr_html_(self) -> str:
        """What each variant changes."""
        return str(later("airpath.report.notebook", "variants_view")(self))


def later(module: str, name: str) -> Any:
    """Return what a module above this one offers."""
    return getattr(import_module(module), name)
