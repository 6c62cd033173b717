"""The page about reproduced studies: verdicts, assumptions and what each assumption changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.base.text import digits
from airpath.report.render import page
from airpath.runs.directories import replaced_file

if TYPE_CHECKING:
    from airpath.study.definition import Figure, Study, Value
    from airpath.study.reproduce import Outcome


def write_study_report(results: Sequence[tuple[Study, Sequence[Outcome]]], path: Path) -> None:
    """Write the page; an existing file is replaced only by a complete one."""
    from airpath import _core

    studies = [_study(study, outcomes) for study, outcomes in results]
    title = studies[0]["title"] if len(studies) == 1 else "Published studies"
    text = page("study.html.j2", title=title, studies=studies, version=_core.__version__)
    with replaced_file(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace")


def _study(study: Study, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    reproduced = sum(outcome.verdict == "reproduced" for outcome in outcomes)
    return {
        "id": study.id,
        "title": study.title,
        "source": study.source,
        "score": f"{reproduced} of {len(outcomes)} figures reproduced",
        "figures": [
            {
                "name": _short(study, outcome.figure),
                "how": outcome.figure.how,
                "published": outcome.figure.published_text(),
                "tolerance": ""
                if outcome.figure.kind == "shape"
                else f"{outcome.figure.tolerance * 100:.0f} %",
                "obtained": outcome.obtained_text(),
                "ci95": ""
                if outcome.ci95 is None
                else f"{digits(outcome.ci95[0])} to {digits(outcome.ci95[1])}",
                "verdict": outcome.verdict,
                "note": outcome.note,
            }
            for outcome in outcomes
        ],
        "assumptions": study.assumptions,
        "effects": _effects(study, outcomes),
    }


def _effects(study: Study, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """One row an alternative, one column a figure; marked where it meets the publication."""
    shown = [outcome for outcome in outcomes if outcome.figure.kind == "value"]
    values = {
        (effect.assumption, effect.alternative, effect.figure): effect.obtained
        for outcome in shown
        for effect in outcome.effects
    }
    rows = [("as the study has it", "", [_cell(o.figure, o.obtained) for o in shown])]
    for assumption in study.assumptions:
        for alternative in assumption.alternatives:
            cells = [
                _cell(o.figure, values.get((assumption.id, alternative.label, o.figure.id)))
                for o in shown
            ]
            rows.append((assumption.name, alternative.label, cells))
    return {
        "columns": [
            f"{_short(study, outcome.figure)} ({outcome.figure.unit})" for outcome in shown
        ],
        "published": [outcome.figure.published_text() for outcome in shown],
        "rows": rows,
    }


def _cell(figure: Figure, value: Value | None) -> tuple[str, bool]:
    return ("", False) if value is None else (figure.text(value), figure.accepts(value))


def _short(study: Study, figure: Figure) -> str:
    return figure.id.removeprefix(f"{study.id}/")
