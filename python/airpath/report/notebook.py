"""What a notebook shows of a result: what it is, what was found, a picture, and where more is.

Texts come from files of strangers: everything is escaped, and its length is bounded. A picture is
an ``img`` element, in which nothing runs.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.base.text import plural
from airpath.errors import AirpathError
from airpath.plots.plot import plot
from airpath.runs import describe

if TYPE_CHECKING:
    from airpath.campaign.results import Campaign
    from airpath.plots.figure import Figure
    from airpath.runs.document import Variants
    from airpath.runs.results import Run

_MOST_LINES = 12
_MOST_CHARACTERS = 400
_MOST_PICTURE = 1_000_000
"""Characters of an embedded picture; a notebook keeps every output in its file."""


def run_view(run: Run) -> str:
    """What each flow achieved, why, and how it went over time."""
    said = [*describe.partial(run.summary), *describe.sentences(run.summary)]
    found = [finding["evidence"] for finding in run.findings]
    parts = [_title(run.title, f"run {run.id}, {plural(len(run.seeds), 'seed')}")]
    parts += [_list(lines) for lines in (said, found) if lines]
    with suppress(AirpathError):
        parts.append(_picture(plot(run)))
    if run.directory is not None:
        parts.append(_link(run.directory, "report.html"))
    return "".join(parts)


def campaign_view(campaign: Campaign) -> str:
    """How many runs there are of what, the verdict, and its picture or the default chart."""
    from airpath.campaign.verdict import verdict
    from airpath.plots.tradeoff import tradeoff

    about = campaign.document
    varied = ", ".join(about["axes"]) or "nothing but seeds"
    parts = [
        _title(about["title"] or campaign.place, f"{about['done']} of {about['runs']} runs"),
        _list([f"{plural(about['cells'], 'cell')}; varied: {varied}"]),
    ]
    with suppress(AirpathError):
        answer = verdict(campaign)
        said = [*answer.best, *answer.keys] if answer else []
        parts.append(_list([f"{name}: {text}" if name else text for name, text in said]))
        traded = tradeoff(answer) if answer else None
        parts.append(_picture(traded or plot(campaign)))
    if "://" not in campaign.place:
        parts.append(_link(Path(campaign.place), "report.html"))
    return "".join(parts)


def findings_view(answer: Any) -> str:
    """Causes, the largest first, with what helps."""
    lines = []
    for finding in answer["findings"]:
        advice = finding["advice"] or ""
        sets = f"--set {' '.join(finding['set'])}" if finding["set"] else ""
        gain = f"Gain: {describe.gain_text(finding['gain'])}." if finding["gain"] else ""
        lines.append(" ".join(text for text in (finding["evidence"], advice, sets, gain) if text))
    runs = plural(answer["runs"], "simulation")
    short = [f"{line[0].upper()}{line[1:]}." for line in describe.short_tests(answer["tried"])]
    return _title("Findings", runs) + _list(lines or ["No cause was found.", *short])


def variants_view(answer: Variants) -> str:
    """What each variant changes: a picture, and figures by variant."""
    from airpath.plots.variants import variants

    labels = ["as it is", *(" ".join(sets) for sets in answer["variants"][1:])]
    made = variants(answer, labels)
    parts = [_title(answer["scenario"], f"{plural(len(answer['seeds']), 'seed')} of each variant")]
    lines = [": ".join((row[0], ", ".join(row[1:]))) for row in made.table.rows]
    return "".join([*parts, _list(lines), _picture(made)])


def _title(name: str, about: str) -> str:
    return f"<p><b>{_escaped(name)}</b> ({_escaped(about)})</p>"


def _list(lines: Sequence[str]) -> str:
    shown = [f"<li>{_escaped(line)}</li>" for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        shown.append(f"<li>and {len(lines) - _MOST_LINES} more</li>")
    return f"<ul>{''.join(shown)}</ul>" if shown else ""


def _escaped(text: object) -> str:
    told = str(text)
    if len(told) > _MOST_CHARACTERS:
        told = f"{told[:_MOST_CHARACTERS]}…"
    return html.escape(told)


def _picture(figure: Figure) -> str:
    from airpath.plots.export import picture

    made = picture(figure)
    return f"<p>{made}</p>" if len(made) <= _MOST_PICTURE else ""


def _link(place: Path, report: str) -> str:
    """A link to the report in the directory, or to the directory."""
    target = place / report if (place / report).is_file() else place
    address = html.escape(target.resolve().as_uri(), quote=True)
    return f'<p><a href="{address}">{_escaped(target)}</a></p>'
