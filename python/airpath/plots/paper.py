"""A chart for a paper: its printed size, its font, its titles, its scales, its data."""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import get_args

from airpath.base.choices import Legend, Log
from airpath.errors import InputError
from airpath.plots import vega
from airpath.plots.export import is_installed, rendered, size
from airpath.plots.figure import Figure, Series, Spec, rows
from airpath.plots.theme import FONT

PX_PER_MM = 96 / 25.4
"""Pixels of CSS, in which specifications are."""
_UNITS = {"mm": PX_PER_MM, "cm": 10 * PX_PER_MM, "in": 96.0, "pt": 96 / 72, "px": 1.0}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(mm|cm|in|pt|px)")
_FONT = re.compile(r"(.*?)(?:\s+(\d+(?:\.\d+)?)\s*(pt|px))?")
_LEAST_MM, _MOST_MM = 20.0, 2000.0
_LEAST_PT, _MOST_PT = 3.0, 72.0
_NARROW = 480
"""Below this width names beside lines give way to a legend, as on pages."""
_TICK = 70
"""A tick of the x axis for so many pixels."""
_PANEL = 210
"""A panel with its axis is at least this wide, in pixels."""
_ASPECT = 0.62
_TRIES = 6
_CLOSE = 1.5
"""Pixels: labels move in steps of about one; the picture is then scaled to its printed width."""
LEGENDS: tuple[Legend, ...] = get_args(Legend)
LOGS: tuple[Log, ...] = get_args(Log)


@dataclass(frozen=True)
class Paper:
    """What a paper asks of a chart; None: as it is."""

    width: str | None = None
    """Of all of it, as ``84mm``; also in cm, in, pt and px (96 to the inch)."""
    height: str | None = None
    font: str | None = None
    """A family and a size, as ``Times New Roman 8pt``; either may be missing."""
    title: str | None = None
    xlabel: str | None = None
    ylabel: str | None = None
    log: Log | None = None
    """Axes with a logarithmic scale."""
    legend: Legend | None = None

    def applied(self, figure: Figure) -> Figure:
        """The chart as the paper wants it. Raises ``InputError``."""
        if all(getattr(self, each.name) is None for each in fields(self)):
            return figure
        made = copy.deepcopy(figure)
        spec = made.spec
        if (family := _font(spec, self.font)) and not is_installed(family):
            remark = f"The font {family} is not installed; a PDF or PNG uses another one."
            made = replace(made, remarks=(*made.remarks, remark))
        if self.title is not None:
            spec["title"] = self.title
        for channel, text in (("x", self.xlabel), ("y", self.ylabel)):
            for encoding in _channels(spec, channel) if text is not None else ():
                encoding["title"] = text
        for channel in self.log or "":
            made = _logarithmic(made, channel)
        if self.legend is not None:
            _legend(spec, self.legend)
        if self.title is not None:
            made = replace(made, title=self.title)
        return self._sized(made)

    def check(self) -> None:
        """Raise ``InputError`` for what is wrong whatever the chart is."""
        for name in ("width", "height"):
            if (text := getattr(self, name)) is not None:
                _length(name, text)
        if self.font is not None:
            _font({"config": {}}, self.font)
        if self.log is not None and self.log not in LOGS:
            raise InputError(f"log is {self.log!r}, but must be one of {', '.join(LOGS)}")
        if self.legend is not None and self.legend not in LEGENDS:
            raise InputError(f"legend is {self.legend!r}, but must be one of {', '.join(LEGENDS)}")

    def _sized(self, figure: Figure) -> Figure:
        if self.width is not None:
            wanted = _length("width", self.width)
            _narrowed(figure.spec, wanted)
            _fit(figure, "width", wanted)
            figure = replace(figure, width_mm=wanted / PX_PER_MM)
        if self.height is not None:
            _fit(figure, "height", _length("height", self.height))
        return figure


def data_csv(figure: Figure) -> str:
    """The rows of a chart, every digit of them; several sets of rows are told by ``data``."""
    out = io.StringIO()
    several = len(figure.data) > 1
    found = [(name, row) for name, series in figure.data.items() for row in rows(series)]
    names = figure.columns or {key: key for _, row in found for key in row if key != "k"}
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(["data"] if several else []), *names.values()])
    for name, row in found:
        writer.writerow([*([name] if several else []), *(row.get(key) for key in names)])
    return out.getvalue()


def specification(figure: Figure) -> str:
    """The chart's Vega-Lite specification with its data inside, as JSON."""
    from airpath.plots.export import complete

    return json.dumps(complete(figure), indent=1, ensure_ascii=False) + "\n"


def _length(name: str, text: str) -> float:
    found = _LENGTH.fullmatch(text.strip())
    pixels = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not _LEAST_MM <= pixels / PX_PER_MM <= _MOST_MM:
        raise InputError(
            f"{name} is {text!r}, but must be a length such as 84mm, from {_LEAST_MM:.0f} mm to "
            f"{_MOST_MM / 1000:.0f} m\n  units: {', '.join(_UNITS)}"
        )
    return pixels


def _font(spec: Spec, text: str | None) -> str:
    """Set the font of a specification; return its family, if the text has one."""
    if text is None:
        return ""
    found = _FONT.fullmatch(text.strip())
    family = found[1].strip() if found else ""
    number, unit = (found[2], str(found[3])) if found else (None, "")
    alone = _LENGTH.fullmatch(family)
    if alone and number is None and alone[2] in ("pt", "px"):
        family, number, unit = "", alone[1], alone[2]
    pixels = None if number is None else float(number) * _UNITS[unit]
    if pixels is not None and not _LEAST_PT <= pixels / _UNITS["pt"] <= _MOST_PT:
        raise InputError(f"font is {text!r}: sizes are from {_LEAST_PT:.0f} to {_MOST_PT:.0f} pt")
    if not (family or pixels) or re.search(r"[^\w ,'.+-]", family):
        raise InputError(f"font is {text!r}, but must be like 'Times New Roman 8pt'")
    config = spec["config"] = copy.deepcopy(spec["config"])
    if family:
        config["font"] = f"{family}, {FONT}"
    if pixels is not None:
        for part, keys in _SIZES.items():
            config.setdefault(part, {}).update(dict.fromkeys(keys, pixels))
    return family


_SIZES = {
    "title": ("fontSize", "subtitleFontSize"),
    "axis": ("labelFontSize", "titleFontSize"),
    "legend": ("labelFontSize", "titleFontSize"),
    "header": ("labelFontSize", "titleFontSize"),
    "text": ("fontSize",),
}


def _channels(spec: Spec, channel: str) -> Iterator[Spec]:
    """The encodings of an axis that have a title."""
    for view in vega.views(spec):
        encoding = view.get("encoding", {}).get(channel)
        if isinstance(encoding, dict) and encoding.get("title") is not None:
            yield encoding


def _logarithmic(figure: Figure, channel: str) -> Figure:
    encodings = [each for each in _channels(figure.spec, channel) if each.get("field")]
    if not encodings or any(each["type"] != "quantitative" for each in encodings):
        raise InputError(f"log is {channel}: the {channel} axis of this chart has no numbers")
    names = {each["field"] for each in encodings}
    every = [row[name] for series in figure.data.values() for row in rows(series)
             for name in names if row.get(name) is not None]  # fmt: skip
    least = min((value for value in every if value > 0), default=None)
    if least is None or any(row[name] <= 0 for row in _points(figure) for name in names & {"v"}):
        raise InputError(
            f"log is {channel}: a logarithmic axis has no room for values of 0 or less"
        )
    ticks = vega.log_ticks(least, max(every))
    among = [tick for tick in ticks if least <= tick <= max(every)]
    for each in encodings:
        each["scale"] = {"type": "log", "nice": False, "padding": 6}
        # Where values are close together, ticks are those of a linear axis.
        those = {"values": ticks, "tickCount": len(ticks)} if len(among) > 1 else {}
        each["axis"] = {**each.get("axis", {}), **those}
        each.pop("stack", None)
    cut = False
    for series in (each for data in figure.data.values() for each in data):
        for name in names & series.keys():
            if isinstance(series[name], list) and any(
                v is not None and v <= 0 for v in series[name]
            ):
                series[name] = [v if v is None or v > 0 else least for v in series[name]]
                cut = True
    told = "An interval that reaches 0 ends at the smallest value: the axis is logarithmic."
    return replace(figure, remarks=(*figure.remarks, told)) if cut else figure


def _points(figure: Figure) -> Iterator[Series]:
    for series in figure.data.values():
        yield from (row for row in rows(series) if row.get("v") is not None)


def _legend(spec: Spec, where: Legend) -> None:
    for view in vega.views(spec):
        colour = view.get("encoding", {}).get("color")
        if isinstance(colour, dict) and colour.get("legend") is not None:
            beside = where in ("left", "right")
            colour["legend"] = None if where == "none" else {
                **colour["legend"], "orient": where, **({"columns": 1} if beside else {}),
            }  # fmt: skip


def _narrowed(spec: Spec, width: float) -> None:
    """What the page's script does too: a legend for names beside lines, broken titles."""
    _start(spec, width)
    letter = 0.62 * spec["config"]["title"]["fontSize"]
    for view in vega.views(spec):
        layers = view.get("layer", [])
        kept = [each for each in layers if each.get("description") != vega.LABEL]
        if width < _NARROW and len(kept) < len(layers):
            view["layer"] = kept
            if isinstance(view.get("encoding", {}).get("color"), dict):
                view["encoding"]["color"]["legend"] = {}
        colour = view.get("encoding", {}).get("color")
        legend = colour.get("legend") if isinstance(colour, dict) else None
        if isinstance(legend, dict) and "gradientLength" not in legend:
            names = colour.get("scale", {}).get("domain", ())
            longest = max((len(str(name)) for name in names), default=8)
            legend.setdefault("columns", 4)
            most = max(1, int(0.8 * width / (6.5 * longest + 30)))
            legend["columns"] = min(legend["columns"], most)
        x = view.get("encoding", {}).get("x", {})
        if x.get("type") == "nominal" and x.get("axis"):
            # Words of a label below each other.
            x["axis"]["labelExpr"] = "split(datum.label, ' ')"
        if isinstance(view.get("title"), str):
            view["title"] = _broken(view["title"], int(0.8 * width / letter))


def _start(spec: Spec, width: float) -> None:
    """Sizes to begin with: as many panels in a row as are readable, and their heights."""
    inner = spec.get("spec")
    panels = 1
    if inner is not None:
        panels = max(1, min(spec["columns"], int(width / _PANEL)))
        spec["columns"] = panels
    spec["config"]["axisX"]["tickCount"] = max(3, int(width / panels / _TICK))
    aspect = _ASPECT if inner is None or panels > 1 else _ASPECT / 2
    for view in vega.views(spec):
        if isinstance(view.get("width"), (int, float)):
            view["width"] = max(20.0, 0.8 * width / panels)
            if isinstance(view.get("height"), (int, float)) and "vconcat" not in spec:
                view["height"] = round(min(view["height"], aspect * view["width"]))


def _broken(text: str, most: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(12, most)) or [""]


def _fit(figure: Figure, side: str, wanted: float) -> None:
    """Set the plots' sizes so that all of the chart is this wide or high."""
    plots: list[tuple[Spec, str, float]] = []
    for view in vega.views(figure.spec):
        place, key = (view[side], "step") if isinstance(view.get(side), dict) else (view, side)
        if isinstance(place.get(key), (int, float)):
            plots.append((place, key, float(place[key])))

    def measured(factor: float) -> float:
        for place, key, first in plots:
            place[key] = round(max(1.0, first * factor), 2)
        return size(rendered(replace(figure, width_mm=None), "svg"))[side == "height"]

    before, factor = (0.0, 0.0), 1.0
    for _ in range(_TRIES):
        found = measured(factor)
        if abs(found - wanted) <= _CLOSE:
            return
        # What is around the plots hardly changes: two sizes give a straight line.
        slope = (found - before[1]) / (factor - before[0]) if before[1] else found
        before, factor = (factor, found), factor + (wanted - found) / max(slope, 0.3 * found)
        if factor <= 0.02:
            break
    raise InputError(
        f"{side}: the labels of this chart need more than {wanted / PX_PER_MM:.0f} mm\n"
        "  a smaller font, another place of the legend or shorter labels may help"
    )
