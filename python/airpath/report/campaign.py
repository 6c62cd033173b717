"""A campaign as a self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.text import digits, moment, plural
from airpath.campaign.compare import FIGURES
from airpath.campaign.figures import parse_figure
from airpath.campaign.summaries import summarise, values
from airpath.errors import InputError
from airpath.plots.campaign import draw
from airpath.plots.campaign import sensitivity as draw_sensitivity
from airpath.plots.figure import Figure, Table
from airpath.report.render import charts_json, write_page

if TYPE_CHECKING:
    from airpath.campaign.results import Campaign

_MOST_ROWS = 400
_MOST_OWNERS = 4


def write_campaign_report(campaign: Campaign, path: Path) -> None:
    """Write the page; an existing file is replaced only by a complete one."""
    write_page(path, "campaign.html.j2", **context(campaign))


def context(campaign: Campaign) -> dict[str, object]:
    """What the page says."""
    about = campaign.document
    figures = [figure for figure in FIGURES if _is_there(campaign, figure)]
    charts = list(_charts(campaign, figures))
    return {
        "title": about["title"],
        "about": _about(campaign),
        "definition": about["text"],
        "charts": charts_json(charts),
        "figures": charts,
        "tables": [(figure, table) for figure in figures if (table := _table(campaign, figure))],
        "failed": _failed(campaign),
        "most_rows": _MOST_ROWS,
    }


def _about(campaign: Campaign) -> list[str]:
    about = campaign.document
    varied = ", ".join(about["axes"]) or "nothing but seeds"
    told = [
        f"{plural(about['runs'], 'run')} of {plural(about['cells'], 'cell')}; varied: {varied}. "
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


def _charts(campaign: Campaign, figures: list[str]) -> list[Figure]:
    made: list[Figure] = []
    for figure in figures:
        for one in _owned(campaign, figure):
            charts = []
            if campaign.axes and campaign.document["sampling"] in ("grid", "list"):
                charts += ["lines", "heat"] if len(campaign.axes) > 1 else ["lines"]
            charts.append("cdf")
            for kind in charts:
                try:
                    chart = draw(campaign, kind, one)
                except InputError:
                    # More values than colours.
                    continue
                made.append(_renamed(chart, f"{kind}-{len(made)}"))
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
    rows = []
    for row in found.to_dicts():
        bounds = "" if row["low"] is None else f"{digits(row['low'])} to {digits(row['high'])}"
        keys = [str(row[name]) for name in campaign.cell_columns]
        rows.append([*keys, row["of"], digits(row["mean"]), bounds, str(row["n"])])
    return Table([*campaign.cell_columns, "of", "mean", "95 % interval", "seeds"], rows)


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
