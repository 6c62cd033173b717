"""Colours and type of charts and pages.

Specifications name colours as the page's style does: ``var(--c0)``. A file of its own has no page,
so there a theme's colours take their place.

The first eight colours follow Okabe and Ito (2008), told apart with any common form of colour
blindness; the dark theme has the same hues, lighter.
"""

from __future__ import annotations

import json
import re

from airpath.plots.figure import Spec

SERIES = tuple(f"var(--c{index})" for index in range(8))
"""Colours of flows or runs."""
LINKS = SERIES[3:]
"""Colours of links where flows take the first ones."""

LIGHT = {
    "c0": "#0068a8",
    "c1": "#cc4c00",
    "c2": "#00855f",
    "c3": "#a8508a",
    "c4": "#b57a00",
    "c5": "#3a9bd9",
    "c6": "#6b5bb5",
    "c7": "#5f6368",
    "ink": "#1c2127",
    "muted": "#5f6973",
    "grid": "#e4e8ec",
    "axis": "#aab3bc",
    "capacity": "#dfe4ea",
    "bad": "#c0182b",
    "good": "#00855f",
    "open": "#8a5a00",
    "line": "#dfe4e9",
    "soft": "#f5f7f9",
    "page": "#ffffff",
}
DARK = {
    "c0": "#5cb3ec",
    "c1": "#ff9457",
    "c2": "#45cba0",
    "c3": "#e59acb",
    "c4": "#edbd4d",
    "c5": "#9ad1f5",
    "c6": "#b3a6f0",
    "c7": "#b4bac1",
    "ink": "#e8ebee",
    "muted": "#a3adb8",
    "grid": "#2c333b",
    "axis": "#59636e",
    "capacity": "#333c46",
    "bad": "#ff7482",
    "good": "#45cba0",
    "open": "#edbd4d",
    "line": "#2f363e",
    "soft": "#1d2126",
    "page": "#16191d",
}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

CONFIG: Spec = {
    "background": None,
    "aria": False,
    "font": FONT,
    "view": {"stroke": None},
    "range": {"category": list(SERIES)},
    "title": {
        "anchor": "start",
        "frame": "group",
        "fontSize": 12,
        "fontWeight": 600,
        "color": "var(--ink)",
        "subtitleColor": "var(--muted)",
        "subtitleFontSize": 11,
        "offset": 6,
    },
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": "var(--grid)",
        "domainColor": "var(--axis)",
        "tickColor": "var(--axis)",
        "tickSize": 4,
        "labelPadding": 4,
    },
    "axisX": {"grid": False, "tickCount": 10, "labelSeparation": 6},
    "axisY": {"domain": False, "ticks": False, "tickCount": 4, "minExtent": 44, "titlePadding": 8},
    "legend": {
        "orient": "top",
        "labelColor": "var(--ink)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "symbolStrokeWidth": 2,
    },
}


def style() -> str:
    """The colours as variables of a page, on paper always light."""
    light, dark = (
        ":root{" + ";".join(f"--{name}:{colour}" for name, colour in theme.items()) + "}"
        for theme in (LIGHT, DARK)
    )
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{{dark}}}\n"


def coloured(spec: Spec, theme: dict[str, str]) -> Spec:
    """Put a theme's colours in the place of the variables."""
    text = re.sub(r"var\(--(\w+)\)", lambda name: theme.get(name[1], name[0]), json.dumps(spec))
    result: Spec = json.loads(text)
    return result
