"""The page about reproduced studies: verdicts, assumptions and what each assumption changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.text import digits
from airpath.report.render import write_page
from airpath.report.study_chart import draw
from airpath.study.joint import read_joint
from airpath.study.reproduce import counts, obtained_text
from airpath.study.verdicts import VERDICTS

if TYPE_CHECKING:
    from airpath.study.definition import Figure, Study
    from airpath.study.judge import Effect
    from airpath.study.reproduce import Outcome


def write_study_report(results: Sequence[tuple[Study, Sequence[Outcome]]], path: Path) -> None:
    """Write the page; an existing file is replaced only by a complete one."""
    from airpath import _core

    studies = [_study(study, outcomes) for study, outcomes in results]
    title = studies[0]["title"] if len(studies) == 1 else "Published studies"
    write_page(
        path, "study.html.j2",
        title=title, studies=studies, verdicts=VERDICTS, version=_core.__version__,
    )  # fmt: skip


def _study(study: Study, outcomes: Sequence[Outcome]) -> dict[str, object]:
    from markupsafe import Markup

    found = {each.figure.id: each for outcome in outcomes for each in outcome.findings}
    return {
        "id": study.id,
        "title": study.title,
        "source": study.source,
        "score": counts(outcomes).text(),
        "figures": [
            {
                "name": _short(study, finding.figure),
                "how": finding.figure.how,
                "published": finding.figure.published_text(),
                "tolerance": ""
                if finding.figure.kind == "shape"
                else f"{finding.figure.tolerance * 100:.0f} %",
                "obtained": obtained_text(finding),
                "ci95": ""
                if finding.ci95 is None
                else f"{digits(finding.ci95[0])} to {digits(finding.ci95[1])}",
                "verdict": finding.verdict,
                "note": finding.note,
                "reason": finding.reason_text,
            }
            for outcome in outcomes
            for finding in outcome.findings
        ],
        "parameters": study.parameters,
        "assumptions": study.assumptions,
        "effects": _effects(study, outcomes),
        "contradictions": study.contradictions,
        "charts": [(chart, Markup(draw(chart, found))) for chart in study.charts],  # noqa: S704
        "joint": read_joint(study),
    }


def _effects(study: Study, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """One row an alternative, one column a figure; marked where it meets the publication."""
    shown = [
        finding
        for outcome in outcomes
        for finding in outcome.findings
        if finding.figure.kind == "value" and not finding.figure.left_out
    ]
    effects = {
        (effect.assumption, effect.alternative, effect.figure): effect
        for outcome in shown
        for effect in outcome.effects
    }
    own = [
        ("", False)
        if each.obtained is None
        else (each.figure.text(each.obtained), each.figure.accepts(each.obtained, each.ci95))
        for each in shown
    ]
    rows = [("as the study has it", "", own)]
    for assumption in study.assumptions:
        for alternative in assumption.alternatives:
            cells = [
                _cell(each.figure, effects.get((assumption.id, alternative.label, each.figure.id)))
                for each in shown
            ]
            rows.append((assumption.name, alternative.label, cells))
    return {
        "columns": [
            f"{_short(study, outcome.figure)} ({outcome.figure.unit})" for outcome in shown
        ],
        "published": [outcome.figure.published_text() for outcome in shown],
        "rows": rows,
    }


def _cell(figure: Figure, effect: Effect | None) -> tuple[str, bool]:
    return ("", False) if effect is None else (figure.text(effect.obtained), effect.accepted)


def _short(study: Study, figure: Figure) -> str:
    return figure.id.removeprefix(f"{study.id}/")
