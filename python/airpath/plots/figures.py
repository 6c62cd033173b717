"""Every chart of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.plots.breakdown import breakdown
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure
from airpath.plots.hystart import hystart
from airpath.plots.links import links
from airpath.plots.radio import radio
from airpath.plots.rtt import rtt_distribution
from airpath.plots.seeds import seeds
from airpath.plots.segment import radio_segment
from airpath.plots.timeline import timeline

if TYPE_CHECKING:
    from airpath.runs.results import Run


def figures(runs: Sequence[Run]) -> list[Figure]:
    """Charts in the order of the report; those without data are left out."""
    compared = Comparison(runs)
    made = [
        breakdown(compared),
        timeline(compared),
        *hystart(compared),
        seeds(compared),
        rtt_distribution(compared),
        radio(compared),
        radio_segment(compared),
        links(compared),
    ]
    return [figure for figure in made if figure is not None]
