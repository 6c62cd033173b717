"""Write charts to files for papers."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path

from airpath.errors import InputError
from airpath.plots.figure import Figure, Spec, rows
from airpath.plots.theme import LIGHT, coloured
from airpath.runs.directories import cannot_write, replaced_file

FORMATS = ("png", "svg", "pdf")
_PNG_SCALE = 2.0
_PRINTED_DPI = 300
"""What journals ask of pictures in points."""
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def export(figures: Sequence[Figure], directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write each figure in each format as ``ID.FORMAT``; return the paths."""
    for name in formats:
        if name not in FORMATS:
            raise InputError(f"no figure format '{name}'; available: {', '.join(FORMATS)}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(directory, error) from None
    written = []
    for figure in figures:
        for name in formats:
            path = directory / f"{figure.id}.{name}"
            with replaced_file(path) as aside:
                aside.write_bytes(rendered(figure, name))
            written.append(path)
    return written


def complete(figure: Figure) -> Spec:
    """A figure's specification with its data, in the light theme."""
    spec = coloured(_still(figure.spec), LIGHT)
    spec["datasets"] = {name: rows(series) for name, series in figure.data.items()}
    return spec


def rendered(figure: Figure, format_: str) -> bytes:
    """Render a figure, in the light theme, on white."""
    import vl_convert

    spec = complete(figure)
    if format_ != "svg":
        spec["config"]["background"] = LIGHT["page"]
    text = json.dumps(spec)
    if figure.width_mm is None:
        if format_ == "png":
            return bytes(vl_convert.vegalite_to_png(text, scale=_PNG_SCALE))
        if format_ == "pdf":
            return bytes(vl_convert.vegalite_to_pdf(text))
        return str(vl_convert.vegalite_to_svg(text)).encode()
    svg = str(vl_convert.vegalite_to_svg(text))
    width, height = size(svg.encode())
    high = figure.width_mm * height / width
    # A PDF takes a pixel for a point: 72 to the inch.
    per_mm, unit = (72 / 25.4, "") if format_ == "pdf" else (1.0, "mm")
    sides = f'width="{figure.width_mm * per_mm:.6g}{unit}" height="{high * per_mm:.6g}{unit}"'
    printed = _SIZE.sub(sides, svg, count=1)
    if format_ == "svg":
        return printed.encode()
    if format_ == "pdf":
        return bytes(vl_convert.svg_to_pdf(printed))
    scale = figure.width_mm * 72 / 25.4 / width
    return bytes(vl_convert.vegalite_to_png(text, scale=scale, ppi=_PRINTED_DPI))


def is_installed(family: str) -> bool:
    """Whether text in a font is drawn on this machine; a font that is not there draws nothing."""
    import vl_convert

    def drawn(name: str) -> bytes:
        mark = {"type": "text", "font": name, "text": "airpath"}
        spec = {"data": {"values": [{}]}, "mark": mark, "width": 100, "height": 20}
        return bytes(vl_convert.vegalite_to_png(json.dumps(spec)))

    return drawn(family) != drawn("no font has this name")


def picture(figure: Figure) -> str:
    """An ``img`` element with the figure, for pages that must not run anything of it."""
    data = base64.b64encode(rendered(figure, "svg")).decode()
    text = html.escape(f"{figure.title}. {figure.how_to_read}", quote=True)
    return f'<img alt="{text}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def size(svg: bytes) -> tuple[float, float]:
    """Width and height of a rendered figure in pixels."""
    found = _SIZE.search(svg[:2000].decode(errors="replace"))
    if found is None:
        raise ValueError("the picture does not say its size")
    return float(found[1]), float(found[2])


def _still(spec: Spec) -> Spec:
    """The specification without what only a pointer can use."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    for group in {"vconcat", "layer"} & kept.keys():
        views = [view for view in kept[group] if not view.get("name", "").startswith("hover")]
        kept[group] = [_still(view) for view in views]
    if "spec" in kept:
        kept["spec"] = _still(kept["spec"])
    return kept
