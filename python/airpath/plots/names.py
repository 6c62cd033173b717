"""Figures of a campaign on axes and in titles: their words, their SI units, which end is good."""

from __future__ import annotations

from airpath.base.text import digits
from airpath.campaign.figures import better, parse_figure

_UNITS = {
    "_mbps": ("b/s", 1e6), "_ms": ("s", 1e-3), "_s": ("s", 1.0), "_bytes": ("B", 1.0),
    "_kb": ("B", 1e3),
}  # fmt: skip
"""By the end of a name, the SI unit and how many of it a value of 1 is."""
_WRITTEN = {"_mbps": "Mb/s", "_ms": "ms", "_s": "s", "_bytes": "bytes", "_kb": "kB"}
"""The unit of a value as it is in a table."""
_QUANTILES = {
    "_p50": ", median",
    "_p95": " (p95)",
    "_p99": " (p99)",
    "_mean": ", mean",
    "_min": ", minimum",
}


def title_of(figure: str) -> str:
    """``Goodput of download``: the unit is at the ticks."""
    name = parse_figure(figure)
    words = name.column
    suffix = _suffix(words)
    if suffix:
        head, _, quantile = words.rpartition(suffix)
        words = head + _QUANTILES.get(quantile, quantile.replace("_", " "))
    text = words.replace("_", " ")
    text = f"RTT{text[3:]}" if text.startswith("rtt") else text[:1].upper() + text[1:]
    return f"{text} of {name.of}" if name.of else text


def mean_of(figure: str) -> str:
    """The head of a column of means, with their unit: ``mean (Mb/s)``."""
    unit = _WRITTEN.get(_suffix(parse_figure(figure).column))
    return f"mean ({unit})" if unit else "mean"


def bounds(low: float | None, high: float | None) -> str:
    """An interval in a table; empty without one."""
    if low is None or high is None:
        return ""
    return "every seed the same" if low == high else f"{digits(low)} to {digits(high)}"


def towards(figure: str) -> str:
    """Which end of the axis is the good one."""
    known = better(figure)
    return f" {known.capitalize()} is better." if known else ""


def _suffix(column: str) -> str:
    """The end of a name that gives its unit, before a quantile; empty without one."""
    stem = column
    for quantile in _QUANTILES:
        stem = stem.removesuffix(quantile)
    return next((suffix for suffix in _UNITS if stem.endswith(suffix)), "")


def unit_of(name: str) -> tuple[str, float]:
    """The SI unit of a figure or key by its name, and how many of it a value of 1 is."""
    column = name.partition("@")[0].rpartition(".")[2]
    return _UNITS.get(_suffix(column), ("", 1.0))
