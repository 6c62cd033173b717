"""A campaign as a self-contained page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.text import digits, moment, runs_of
from airpath.campaign.compare import FIGURES
from airpath.campaign.drawn import is_numeric
from airpath.campaign.figures import parse_figure
from airpath.campaign.summaries import summarise, values
from airpath.campaign.verdict import MOST_VALUES, Verdict, verdict
from airpath.errors import InputError
from airpath.plots.campaign import Places, draw
from airpath.plots.campaign import sensitivity as draw_sensitivity
from airpath.plots.cause_matrix import cause_matrix
from airpath.plots.figure import Figure, Table
from airpath.plots.names import bounds, mean_of, title_of
from airpath.plots.tradeoff import tradeoff
from airpath.report.render import charts_json, write_page

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign

_MOST_ROWS = 400
_MOST_OWNERS = 4
_MOST_KEYS = 3


def write_campaign_report(campaign: Campaign, path: Path) -> None:
    """Write the page; an existing file is replaced only by a complete one."""
    write_page(path, "campaign.html.j2", **context(campaign))


def context(campaign: Campaign) -> dict[str, object]:
    """What the page says."""
    about = campaign.document
    figures = [figure for figure in FIGURES if _is_there(campaign, figure)]
    answer = verdict(campaign)
    charts = list(_charts(campaign, figures, answer))
    return {
        "title": about["title"],
        "about": _about(campaign),
        "verdict": answer,
        "definition": about["text"],
        "charts": charts_json(charts),
        "figures": charts,
        "tables": [
            (title_of(figure), table) for figure in figures if (table := _table(campaign, figure))
        ],
        "failed": _failed(campaign),
        "most_rows": _MOST_ROWS,
    }


def _about(campaign: Campaign) -> list[str]:
    about = campaign.document
    varied = ", ".join(about["axes"]) or "nothing but seeds"
    told = [
        f"{runs_of(about['runs'], about['cells'], about['seeds'])}; varied: {varied}. "
        f"Scenarios: {', '.join(about['scenarios'])}.",
        (
            f"airpath {about['version']}, core {about['core_sha256'][:12]}; started "
            f"{moment(about['started'])}."
        ),
    ]
    if about["explain"] == "off":
        told.append("The runs were not explained: there are no findings.")
    if not campaign.complete:
        told.append(
            f"The campaign is not complete: {about['done']} of {about['runs']} runs are done."
        )
    return told


def _charts(campaign: Campaign, figures: list[str], answer: Verdict | None) -> list[Figure]:
    """The trade-off first, then each figure over the keys, causes, and distributions."""
    made: list[Figure] = []
    compared, apart = (answer.compared, answer.apart) if answer else ("", "")
    places = Places(colour=compared or None)
    if answer and compared:
        traded = tradeoff(answer)
        made += [] if traded is None else [traded]
        places = _places(campaign, compared, apart, answer.outcomes[0].found)
    gridded = campaign.axes and campaign.document["sampling"] in ("grid", "list")
    for kind in ("lines", "heat") if gridded else ():
        if kind == "lines" or len(campaign.axes) > 1:
            at = places if kind == "lines" else _crossed(places)
            made += _drawn(campaign, kind, figures, at, len(made))
    if answer and not gridded:
        made += _scattered(campaign, answer)
        shade = _names(campaign)
        places = Places(colour=shade)
        figures = figures if shade else []
    causes = cause_matrix(campaign)
    made += [] if causes is None else [causes]
    made += _drawn(campaign, "cdf", figures, Places(colour=places.colour), len(made))
    if campaign.document["sampling"] == "saltelli":
        from airpath.campaign.sensitivity import sensitivity

        for figure in figures:
            try:
                found = sensitivity(campaign, figure)
            except InputError:
                continue
            chart = draw_sensitivity(found, figure)
            made.append(_renamed(chart, f"sensitivity-{len(made)}"))
    return made


def _places(campaign: Campaign, compared: str, apart: str, varied: pl.DataFrame) -> Places:
    """Colour is what is compared; what matters most for it is along the axis."""
    others = [
        name
        for name in campaign.axes
        if name not in (compared, apart) and 1 < varied[name].n_unique() <= MOST_VALUES
    ]
    if apart == "scenario":
        return Places(x=others[0] if others else compared, colour=compared)
    several = varied["scenario"].n_unique() > 1
    panel = others[0] if others and not several else None
    return Places(x=apart or compared, colour=compared, panel=panel)


def _scattered(campaign: Campaign, answer: Verdict) -> Iterator[Figure]:
    """Each figure over the keys of numbers that the answer names first, a dot for each run."""
    keys = [key for key, _ in answer.keys if is_numeric(campaign, key)][:_MOST_KEYS]
    places = [Places(x=key, colour=_names(campaign)) for key in keys]
    for outcome in answer.outcomes:
        for at in places:
            chart = draw(campaign, "dots", outcome.goal.figure, at)
            yield _renamed(chart, f"dots-{outcome.goal.figure}-{at.x}")


def _names(campaign: Campaign) -> str | None:
    """The first key of names, for colours."""
    names = (key for key in campaign.axes if not is_numeric(campaign, key))
    runs = campaign.table("runs")
    return next((key for key in names if 1 < runs[key].n_unique() <= MOST_VALUES), None)


def _crossed(places: Places) -> Places:
    """Those of a heat map, which has what is compared on its other axis."""
    one = places.x == places.colour
    return Places() if one else Places(x=places.x, y=places.colour)


def _drawn(
    campaign: Campaign, kind: str, figures: list[str], places: Places, before: int
) -> Iterator[Figure]:
    """One chart a figure and flow; a chart that has more values than colours is left out."""
    owned = [one for figure in figures for one in _owned(campaign, figure)]
    for number, figure in enumerate(owned, start=before):
        with suppress(InputError):
            yield _renamed(draw(campaign, kind, figure, places), f"{kind}-{number}")


def _renamed(chart: Figure, name: str) -> Figure:
    """The charts of a page share a space of names for their data."""
    import dataclasses
    import json

    (old, data), *_ = chart.data.items()
    text = json.dumps(chart.spec).replace(f'"name": "{old}"', f'"name": "{name}"')
    return dataclasses.replace(chart, id=name, spec=json.loads(text), data={name: data})


def _owned(campaign: Campaign, figure: str) -> list[str]:
    """The figure of each flow, or of all where these are one."""
    if not parse_figure(figure).owner:
        return [figure]
    owners = values(campaign, figure)["of"].unique(maintain_order=True).to_list()
    return [f"{figure}@{owner}" for owner in owners[:_MOST_OWNERS]]


def _table(campaign: Campaign, figure: str) -> Table | None:
    """Means and intervals of the cells."""
    if campaign.document["sampling"] not in ("grid", "list"):
        return None
    found = summarise(campaign, figure).head(_MOST_ROWS)
    # A phone has no room for what is the same in every row.
    varied = [name for name in campaign.cell_columns if found[name].n_unique() > 1]
    rows = []
    for row in found.to_dicts():
        keys = [str(row[name]) for name in varied]
        rows.append(
            [*keys, row["of"], digits(row["mean"]), bounds(row["low"], row["high"]), str(row["n"])]
        )
    return Table([*varied, "of", mean_of(figure), "95 % interval", "seeds"], rows)


def _failed(campaign: Campaign) -> list[str]:
    if not campaign.document["failed"] or "runs" not in campaign.files:
        return []
    runs = campaign.table("runs")
    rows = runs.filter(runs["status"] == "failed").head(20).to_dicts()
    return [
        f"Run {row['run']} ({row['scenario']}, seed {row['seed']}): {row['error']}" for row in rows
    ]


def _is_there(campaign: Campaign, figure: str) -> bool:
    if parse_figure(figure).table not in campaign.files:
        return False
    return not values(campaign, figure).is_empty()
