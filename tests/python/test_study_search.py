"""The joint search: it finds what is planted, keeps to its budget, and goes on where it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airpath.study.definition import Study, load_study
from airpath_dev import search as searcher
from test_reproduce import FIGURE, OBTAINED, study

# Twice the window and half of the delay are what the figure takes.
SEARCH = """
[[search]]
name = "window"
choices = [
  { label = "50 kB" },
  { label = "100 kB", set = ["flow.0.window_bytes=100000"] },
  { label = "25 kB", set = ["flow.0.window_bytes=25000"] },
]
[[search]]
name = "delay"
choices = [
  { label = "100 ms" },
  { label = "50 ms", set = ["path.down.1.delay_ms=50"] },
]
"""
DELAYS = SEARCH[SEARCH.rindex("[[search]]") :]
FAST = 9300


def made(root: Path, *published: float) -> Study:
    figures = [FIGURE.format(name=f"n{i}", published=each) for i, each in enumerate(published)]
    return study(root, SEARCH, *figures)


def test_what_is_planted_is_found(tmp_path: Path) -> None:
    whole = made(tmp_path, FAST)
    tried = searcher.search(whole, 1000, 1, tmp_path / "kept.jsonl")
    assert len(tried) == searcher.size(whole) == 6
    assert tried[0].joint == (0, 0)
    within = [each.joint for each in tried if searcher.inside(whole.figures, each)]
    assert within == [(1, 1)]
    page = "\n".join(searcher.markdown(whole, tried))
    assert "| 1 | window: 100 kB; delay: 50 ms | **" in page
    assert "without losing another figure: n0." in page


def test_what_concerns_one_figure_is_varied_for_it_alone(tmp_path: Path) -> None:
    own = SEARCH.replace("[[search]]", '[[search]]\nfigures = ["made-up/n0"]')
    figures = [FIGURE.format(name=name, published=OBTAINED) for name in ("n0", "n1")]
    tried = searcher.search(study(tmp_path, own, *figures), 1000, 1, tmp_path / "kept.jsonl")
    first, second = zip(*(each.obtained for each in tried), strict=True)
    assert len(set(first)) > 1
    assert len(set(second)) == 1


def test_a_figure_moved_out_is_no_gain(tmp_path: Path) -> None:
    whole = made(tmp_path, FAST, OBTAINED, 50_000)
    tried = searcher.search(whole, 1000, 1, tmp_path / "kept.jsonl")
    page = "\n".join(searcher.markdown(whole, tried))
    assert "No joint choice brings a figure within tolerance without losing another one." in page
    assert "whatever it loses: n2." in page


def test_a_budget_is_kept_and_nothing_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, kept = made(tmp_path, FAST), tmp_path / "kept.jsonl"
    # Two seeds a figure: two joint choices.
    assert len(searcher.search(whole, 5, 1, kept)) == 2
    assert len(searcher.search(whole, 2, 1, kept)) == 3
    rest = searcher.search(whole, 1000, 1, kept)
    monkeypatch.setattr(searcher, "obtain", None)
    assert searcher.search(whole, 1000, 1, kept) == rest
    assert len(rest) == 6
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert {line["stamp"] for line in lines} == {searcher.stamp(whole)}
    # What was published changes no run; another scenario is another search.
    assert searcher.stamp(made(tmp_path, FAST + 1)) == lines[0]["stamp"]
    scenario = tmp_path / "made-up/scenario.toml"
    scenario.write_text(scenario.read_text().replace("10.0", "11.0"))
    assert searcher.stamp(whole) != lines[0]["stamp"]


def test_choices_are_kept_by_what_they_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more choice, wherever it stands, costs only what is new."""
    kept = tmp_path / "kept.jsonl"
    found = searcher.search(made(tmp_path, FAST), 1000, 1, kept)
    more = '{ label = "30 kB", set = ["flow.0.window_bytes=30000"] },\n  { label = "25 kB"'
    grown = study(
        tmp_path, SEARCH.replace('{ label = "25 kB"', more), FIGURE.format(name="n0", published=1)
    )
    asked: list[int] = []
    obtain = searcher.obtain

    def counted(*given: Any) -> Any:
        asked.append(len(given[2]))
        return obtain(*given)

    monkeypatch.setattr(searcher, "obtain", counted)
    wider = searcher.search(grown, 1000, 1, kept)
    assert (len(found), len(wider), sum(asked)) == (6, 8, 2)
    assert {each.obtained for each in found} <= {each.obtained for each in wider}


def test_another_scenario_can_be_searched(tmp_path: Path) -> None:
    far = FIGURE.format(name="far", published=1) + 'scenario = "far.toml"\n'
    parts = (SEARCH, FIGURE.format(name="n0", published=1), FIGURE.format(name="n1", published=1))
    whole = study(tmp_path, 'searched = "far.toml"\n', *parts, far)
    assert [each.id for each in searcher.judged(whole)] == ["made-up/far"]
    whole = study(tmp_path, *parts, far)
    assert [each.id for each in searcher.judged(whole)] == ["made-up/n0", "made-up/n1"]


def test_the_first_choices_are_the_studys_own() -> None:
    for dimension in load_study("3g-latency").search:
        assert not dimension.choices[0].sets
        assert dimension.choices[0].metric is None
        assert len({choice.label for choice in dimension.choices}) == len(dimension.choices)


def test_a_gain_is_that_of_two_variants(tmp_path: Path) -> None:
    gain = FIGURE.format(name="gain", published=50).replace('"kb/s"', '"% more"')
    gain += 'against = ["flow.0.window_bytes=40000"]\n'
    whole = study(tmp_path, DELAYS, gain)
    own, *_ = searcher.search(whole, 4, 1, tmp_path / "kept.jsonl")
    # A window of 50 kB against one of 40 kB: a fourth more, but for the start.
    assert own.obtained[0] == pytest.approx(25, abs=5)
