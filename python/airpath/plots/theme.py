"""Colours and type. Specifications hold tokens such as ``@@c0``; a theme puts colours in.

The first eight colours follow Okabe and Ito (2008), told apart with any common form of colour
blindness; the dark theme has the same hues, lighter.
"""

from __future__ import annotations

import json
from typing import Any

SERIES = tuple(f"@@c{index}" for index in range(8))
"""Colours of flows or runs."""
LINKS = ("@@c3", "@@c4", "@@c5", "@@c6", "@@c7")
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
    "page": "#16191d",
}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

CONFIG: dict[str, Any] = {
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
        "color": "@@ink",
        "subtitleColor": "@@muted",
        "subtitleFontSize": 11,
        "offset": 6,
    },
    "axis": {
        "labelColor": "@@muted",
        "titleColor": "@@muted",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": "@@grid",
        "domainColor": "@@axis",
        "tickColor": "@@axis",
        "tickSize": 4,
        "labelPadding": 4,
    },
    "axisX": {"grid": False, "tickCount": 10},
    "axisY": {"domain": False, "ticks": False, "tickCount": 4, "minExtent": 44, "titlePadding": 8},
    "legend": {
        "labelColor": "@@ink",
        "titleColor": "@@muted",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "symbolStrokeWidth": 2,
    },
}


def coloured(spec: dict[str, Any], theme: dict[str, str]) -> dict[str, Any]:
    """Put a theme's colours in the place of the tokens."""
    text = json.dumps(spec)
    for name, colour in theme.items():
        text = text.replace(f'"@@{name}"', f'"{colour}"')
    result: dict[str, Any] = json.loads(text)
    return result
