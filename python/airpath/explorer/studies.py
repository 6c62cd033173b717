"""The figures of the published studies, as scenarios that the explorer can open."""

from __future__ import annotations

from functools import cache
from typing import TypedDict

from airpath.study.definition import Study, load_study, study_names


class StudyFigure(TypedDict):
    """A figure: a scenario of its study, and what it sets."""

    id: str
    how: str
    """What the source says of it."""
    file: str
    """Its scenario, one of ``texts``."""
    sets: list[str]


class Studies(TypedDict):
    """All figures; each scenario's text appears once."""

    texts: dict[str, str]
    figures: list[StudyFigure]


@cache
def studies() -> Studies:
    """Return the figures that are simulated: not those that the model cannot express."""
    found: Studies = {"texts": {}, "figures": []}
    for name in study_names():
        study = load_study(name)
        for figure in study.figures:
            if not figure.left_out:
                file = f"{name}-{figure.scenario}"
                if file not in found["texts"]:
                    found["texts"][file] = _text(study, figure.scenario)
                how, sets = figure.how, [*study.varied(1), *figure.sets]
                found["figures"].append({"id": figure.id, "how": how, "file": file, "sets": sets})
    return found


def _text(study: Study, file: str) -> str:
    return (study.directory / file).read_text(encoding="utf-8")
