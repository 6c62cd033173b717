"""One self-contained HTML file about one run, or about several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airpath.runs.results import Run


def write_report(runs: Sequence[Run], path: Path, live: bool = False) -> None:
    """Write the report; an existing file is replaced only by a complete one.

    ``live``: the report embeds the simulator, so a reader can change the scenario and run it again.
    Raises ``InputError`` for several runs, ``AirpathError`` if the explorer is not built.
    """
    from airpath.report.render import write_page
    from airpath.report.view import context

    write_page(path, "run.html.j2", **context(runs), **(_live(runs) if live else {"live": None}))


def _live(runs: Sequence[Run]) -> dict[str, str]:
    from airpath.errors import InputError
    from airpath.explorer import inline
    from airpath.explorer.begin import begin_run

    if len(runs) != 1:
        raise InputError("--live is for one run")
    return {"live": inline.page(begin_run(runs[0])), "policy": inline.POLICY}


def write_figures(runs: Sequence[Run], directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write every chart of the report to files; return their paths."""
    from airpath.plots import figures
    from airpath.plots.export import export

    return export(figures(runs), directory, formats)
