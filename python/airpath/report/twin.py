"""The page about a twin: verdicts, and both sides over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.report.render import charts_json, write_page
from airpath.report.setup import given

if TYPE_CHECKING:
    from airpath.twin.compare import Figure
    from airpath.twin.runs import Twin


def write_twin_report(twin: Twin, figures: Sequence[Figure], verdict: str, path: Path) -> None:
    """Write the page; an existing file is replaced only by a complete one."""
    from airpath import _core
    from airpath.plots import figures as charts
    from airpath.twin.compare import parity, row

    pair = next(iter(twin.valid), None)
    drawn = []
    if pair is not None:
        drawn = charts([pair.simulated, pair.emulated])
    comparable = twin.comparable
    write_page(
        path,
        "twin.html.j2",
        title=comparable.scenario.title or comparable.scenario.name,
        version=_core.__version__,
        kernel=comparable.kernel,
        profile=comparable.profile,
        verdict=verdict,
        rows=[(row(figure), figure.note) for figure in figures],
        seeds=[
            {
                "seed": each.seed,
                "invalid": each.invalid,
                "parity": None if each.emulated is None else parity(each.emulated),
                "lateness": None
                if each.emulated is None
                else {
                    name: way["lateness_us"]
                    for name, way in each.emulated.summary["emulation"]["directions"].items()
                },
            }
            for each in twin.pairs
        ],
        figures=drawn,
        charts=charts_json(drawn),
        given_toml=given(comparable.scenario.resolved_toml),
        scenario_toml=comparable.scenario.resolved_toml,
    )
