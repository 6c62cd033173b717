"""Charts as Vega-Lite specifications: the same for the report and for papers."""

from airpath.plots.figure import Figure
from airpath.plots.figures import figures

__all__ = ["Figure", "figures"]
