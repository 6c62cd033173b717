"""Doors from results to what is made of them (docs/adr/0135-doors-from-results.md).

Plots, reports and findings are above results: they import them. A method such as ``Run.plot`` leads
there from below, so it takes its function when it is called, from ``DOORS``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

DOORS = {
    "add": "airpath.diagnose.explain",
    "campaign_view": "airpath.report.notebook",
    "findings_view": "airpath.report.notebook",
    "of_run": "airpath.diagnose.explain",
    "parse": "airpath.scenario",
    "plot": "airpath.plots.plot",
    "run_view": "airpath.report.notebook",
    "variants_view": "airpath.report.notebook",
    "write_campaign_report": "airpath.report.campaign",
    "write_report": "airpath.report",
}
"""Functions that results call upwards, and where they are. No others are reached by name."""


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
        return str(later("findings_view")(self))


class Compared(dict[str, Any]):
    """What ``whatif`` returns: a dict that a notebook shows as a picture."""

    def _repr_html_(self) -> str:
        """What each variant changes."""
        return str(later("variants_view")(self))


def later(name: str) -> Any:
    """Return a function of ``DOORS``."""
    return getattr(import_module(DOORS[name]), name)
