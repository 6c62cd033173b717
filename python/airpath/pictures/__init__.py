"""Pictures of a network as SVG: its topology, and rates over time.

The status page of an emulation and the report of a run show the same ones.
"""

from importlib import resources

from airpath.pictures.curves import Curve, curves
from airpath.pictures.network import Cell, Core, Ue, picture

__all__ = ["Cell", "Core", "Curve", "Ue", "curves", "picture", "style"]


def style() -> str:
    """Return the style of the pictures; the page has the colours ``c0`` to ``c2`` and ``bad``."""
    return resources.files("airpath.pictures").joinpath("pictures.css").read_text("utf-8")
