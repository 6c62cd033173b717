"""The page about studies: the source's figures beside ours, its contradictions, joint choices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airpath.errors import InputError
from airpath.report import study_chart
from airpath.report.study import write_study_report
from airpath.study.definition import load_study, study_names
from airpath.study.joint import Joint, Row, read_joint, write_joint
from airpath.study.reproduce import reproduce
from airpath_dev import search as searcher
from test_reproduce import FIGURE, OBTAINED, study
from test_study_search import SEARCH

CHART = """
[[contradiction]]
text = "Five is not six."
[[chart]]
title = "Rate over <window>"
unit = "kb/s"
figures = ["made-up/a", "made-up/b"]
labels = ["small", "large"]
"""
FIGURES = (FIGURE.format(name="a", published=OBTAINED), FIGURE.format(name="b", published=1800))


def page(root: Path, *parts: str) -> str:
    made = study(root, *parts)
    write_study_report([(made, reproduce(made, repeat=1))], root / "page.html")
    return (root / "page.html").read_text(encoding="utf-8")


def test_what_was_published_stands_beside_what_was_obtained(tmp_path: Path) -> None:
    text = page(tmp_path, *FIGURES, CHART)
    (drawing,) = re.findall(r"<svg.*?</svg>", text)
    bars = re.findall(r'<rect class="(\w+)" x="(\d+)".*?height="([\d.]+)"', drawing)
    assert [kind for kind, _, _ in bars] == ["published", "obtained"] * 2
    heights = [float(height) for _, _, height in bars]
    # The second was published as half of the first; both obtain the same.
    assert heights[2] == pytest.approx(heights[0] / 2, rel=0.01)
    assert heights[3] == pytest.approx(heights[1], rel=0.01) == pytest.approx(heights[0], rel=0.1)
    places = [int(x) for _, x, _ in bars]
    assert places == sorted(set(places))
    assert "small" in drawing
    assert "Rate over &lt;window&gt;" in drawing
    assert "Five is not six." in text
    assert "What assumptions change jointly" not in text


def test_a_published_bound_is_drawn_as_one(tmp_path: Path) -> None:
    bound = FIGURES[1].replace("published = 1800", "high = 7200")
    text = page(tmp_path, FIGURES[0], bound, CHART)
    (drawing,) = re.findall(r"<svg.*?</svg>", text)
    assert drawing.count("&lt; 7200<") == 1
    bars = re.findall(r'<rect class="(\w+)".*?height="([\d.]+)"', drawing)
    assert [kind for kind, _ in bars] == ["published", "obtained"] * 2
    assert float(bars[2][1]) == pytest.approx(float(bars[0][1]) * 7200 / OBTAINED, rel=0.01)


def test_without_a_chart_there_is_none(tmp_path: Path) -> None:
    text = page(tmp_path, *FIGURES)
    assert "<svg" not in text
    assert "Contradictions" not in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"kb/s"', '"s"', "has no figure 'made-up/a' in s"),
        ('"made-up/b"', '"made-up/c"', "has no figure 'made-up/c'"),
        ('"small", ', "", "needs a label for each figure"),
    ],
)
def test_a_faulty_chart_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        study(tmp_path, *FIGURES, CHART.replace(old, new))


def test_a_search_is_in_the_report(tmp_path: Path) -> None:
    made = study(tmp_path, *FIGURES, SEARCH)
    assert read_joint(made) is None
    tried = searcher.search(made, 1000, 1, tmp_path / "kept.jsonl")
    write_joint(made, searcher.shown(made, tried))
    found = read_joint(made)
    assert found is not None
    assert found.said == "6 of 6 joint choices were tried."
    assert found.rows[0].choice == "as the study has it"
    assert found.rows[0].cells[0][1]
    text = page(tmp_path, *FIGURES, SEARCH)
    assert "window: 25 kB" in text.partition("What assumptions change jointly")[2]


def test_the_file_of_a_search_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = study(tmp_path, *FIGURES)
    joint = Joint("said", ("a", "b"), (Row(1, "x", (("1", True), ("2", False))),))
    write_joint(made, joint)
    assert read_joint(made) == joint


@pytest.mark.parametrize("name", study_names())
def test_every_study_redraws_its_numbers(name: str) -> None:
    """All that were published as numbers, but one that has no unit in common with another."""
    shipped = load_study(name)
    drawn = {figure for chart in shipped.charts for figure in chart.figures}
    assert len(drawn) == sum(len(chart.figures) for chart in shipped.charts)
    values = {leaf.id for leaf in shipped.leaves if leaf.kind == "value"}
    assert len(values - drawn) <= 1
    searched = read_joint(shipped)
    if shipped.search:
        assert searched is not None
        assert len(searched.columns) == len(searched.rows[0].cells)


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (1225.0, [0, 500, 1000, 1500]),
        (363.0, [0, 100, 200, 300, 400]),
        (0.037, [0, 0.01, 0.02, 0.03, 0.04]),
    ],
)
def test_the_ticks_of_a_chart_are_round_and_reach_the_highest_bar(
    most: float, ticks: list[float]
) -> None:
    assert study_chart._ticks(most) == pytest.approx(ticks)
