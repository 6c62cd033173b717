"""A chart that a person asked for: shown in a notebook, written to files with its data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from airpath.errors import InputError
from airpath.plots.export import picture, rendered
from airpath.plots.figure import Figure
from airpath.plots.paper import data_csv, specification
from airpath.report.render import charts_json, page
from airpath.runs.directories import check_file_target, replaced_file


@dataclass(frozen=True)
class Chart(Figure):
    """A figure that can be saved and that a notebook shows."""

    def save(self, path: str | os.PathLike[str], *, spec: bool = False) -> list[Path]:
        """Write the chart as .svg, .pdf, .png or .html, and its data beside it.

        The data of ``rtt.pdf`` are ``rtt.pdf.csv``; ``spec`` also writes its Vega-Lite
        specification, ``rtt.pdf.vl.json``. Returns what was written. Raises ``InputError``.
        """
        target = Path(path)
        check_picture(target)
        write(self, target)
        return [target, *(written for _, written in write_data(self, target, spec=spec))]

    def _repr_html_(self) -> str:
        """The view in a notebook: the chart as a picture, without scripts."""
        return picture(self)


def check_picture(path: Path) -> None:
    """Fail before the work if a chart cannot be written there. Raises ``InputError``."""
    check_file_target(path)
    if path.suffix not in (".html", ".svg", ".png", ".pdf"):
        raise InputError(f"{path}: the name of a chart must end in .html, .svg, .png or .pdf")


def write(figure: Figure, path: Path, title: str | None = None) -> None:
    """Write the chart alone; ``title`` is that of an HTML page, by default the chart's."""
    if path.suffix == ".html":
        name = figure.title if title is None else title
        charts = charts_json([figure])
        text = page("variants.html.j2", title=name, figures=[figure], charts=charts)
        with replaced_file(path) as aside:
            aside.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    with replaced_file(path) as aside:
        aside.write_bytes(rendered(figure, path.suffix[1:]))


def write_data(figure: Figure, path: Path, *, spec: bool = False) -> list[tuple[str, Path]]:
    """Write the data beside the chart, and the specification; return what is where."""
    made = [("data", path.with_name(f"{path.name}.csv"), data_csv(figure))]
    if spec:
        place = path.with_name(f"{path.name}.vl.json")
        made.append(("specification", place, specification(figure)))
    for _, place, text in made:
        with replaced_file(place) as aside:
            aside.write_text(text, encoding="utf-8", errors="backslashreplace")
    return [(what, place) for what, place, _ in made]
