"""Write charts to files for papers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from airpath.errors import InputError
from airpath.plots.figure import Figure, Spec, rows
from airpath.plots.theme import LIGHT, coloured
from airpath.runs.directories import cannot_write, replaced_file

FORMATS = ("png", "svg", "pdf")
_PNG_SCALE = 2.0


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


def rendered(figure: Figure, format_: str) -> bytes:
    """Render a figure, in the light theme, on white."""
    import vl_convert

    spec = coloured(_still(figure.spec), LIGHT)
    spec["datasets"] = {name: rows(series) for name, series in figure.data.items()}
    if format_ != "svg":
        spec["config"]["background"] = LIGHT["page"]
    text = json.dumps(spec)
    if format_ == "png":
        return bytes(vl_convert.vegalite_to_png(text, scale=_PNG_SCALE))
    if format_ == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(text))
    return str(vl_convert.vegalite_to_svg(text)).encode()


def _still(spec: Spec) -> Spec:
    """The specification without what only a pointer can use."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    for group in {"vconcat", "layer"} & kept.keys():
        views = [view for view in kept[group] if not view.get("name", "").startswith("hover")]
        kept[group] = [_still(view) for view in views]
    return kept
