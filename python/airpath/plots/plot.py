"""One chart of a run or a campaign, as ``airpath plot`` draws it.

>>> import airpath
>>> chart = airpath.plot(airpath.run("codel", set={"run.duration_s": 3}), width="84mm")
>>> chart.title
'What happened, over time'
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.choices import Legend, Log
from airpath.errors import InputError
from airpath.plots.chart import Chart
from airpath.plots.figure import Figure
from airpath.plots.paper import Paper

if TYPE_CHECKING:
    from airpath.campaign.results import Campaign
    from airpath.runs.results import Run

KINDS = ("lines", "heat", "cdf", "boxes")
"""Forms of a campaign's charts."""
FIGURE = "flows.goodput_mbps"


def plot(
    source: Run | Campaign | str | os.PathLike[str],
    kind: str | None = None,
    *,
    figure: str | None = None,
    x: str | None = None,
    y: str | None = None,
    colour: str | None = None,
    where: Sequence[str] = (),
    order: Sequence[str] = (),
    width: str | None = None,
    height: str | None = None,
    font: str | None = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    log: Log | None = None,
    legend: Legend | None = None,
) -> Chart:
    """Draw one chart of a run or a campaign; arguments are the options of ``airpath plot``.

    A campaign has the kinds "lines" (the default), "heat", "cdf" and "boxes"; ``figure``, ``x``,
    ``y``, ``colour``, ``where`` and ``order`` are for campaigns. A run has the charts of its
    report, by default "timeline". ``width`` and ``height`` are lengths such as "84mm"; ``font`` is
    a family, a size or both, as "Times New Roman 8pt".

    A notebook shows what is returned; ``save(path)`` writes it. Raises ``InputError``.
    """
    paper = Paper(width, height, font, title, xlabel, ylabel, log, legend)
    paper.check()
    opened = _opened(source)
    from airpath.runs.results import Run

    if not isinstance(opened, Run):
        from airpath.plots.campaign import Places, draw

        kind = kind or KINDS[0]
        if kind not in KINDS:
            raise InputError(f"--kind {kind}: for a campaign, choose {_either(KINDS)}")
        places = Places(x, y, colour)
        made = draw(opened, kind, figure or FIGURE, places, where=where, order=order)
        return _chart(paper.applied(made))
    given = {"figure": figure, "x": x, "y": y, "colour": colour, "where": where, "order": order}
    if wrong := [name for name, value in given.items() if value]:
        raise InputError(f"{wrong[0]} is for the charts of a campaign, and this is a run")
    from airpath.plots.figures import figures

    found = {each.id: each for each in figures([opened])}
    wanted = kind or "timeline"
    if wanted not in found:
        raise InputError(f"--kind {wanted}: for this run, choose {_either(found)}")
    return _chart(paper.applied(found[wanted]))


def _either(names: Iterable[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _chart(figure: Figure) -> Chart:
    return Chart(**{each.name: getattr(figure, each.name) for each in fields(figure)})


def _opened(source: Run | Campaign | str | os.PathLike[str]) -> Run | Campaign:
    if not isinstance(source, str | os.PathLike):
        return source
    from airpath.campaign.results import is_campaign, open_campaign
    from airpath.runs.results import Run

    text = os.fspath(source)
    if "://" not in text and not os.path.lexists(text):
        raise InputError(f"no run or campaign {text}")
    if is_campaign(text) or not (Path(text) / "summary.json").is_file():
        return open_campaign(text)
    return Run.open(text)
