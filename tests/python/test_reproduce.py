"""Studies and their verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath.base.toml import read_toml
from airpath.errors import InputError
from airpath.study import reproduce
from airpath.study.definition import Study, load_study, study_names

SCENARIO = """
title = "t"
[run]
duration_s = 5.0
[[path.down]]
stage = "link"
rate_mbps = 10.0
[[path.down]]
stage = "delay"
delay_ms = 100
[[flow]]
id = "f"
kind = "bulk"
direction = "down"
"""
HEAD = """
id = "made-up"
title = "Made up"
source = "nobody"
repeat = 2
"""
FIGURE = """
[[figure]]
id = "made-up/{name}"
how = "…"
published = {published}
unit = "kb/s"
tolerance = 0.05
metric = "flow.0.goodput_mbps"
scale = 1000
set = ["flow.0.window_bytes=50000"]
"""
WINDOW = """
[[assumption]]
id = "window"
name = "the window"
value = "50 kB"
why = "nobody says"
key = "flow.0.window_bytes"
low = 25000
high = 100000
"""
COUNTING = """
[[assumption]]
id = "counting"
name = "the end that counts"
value = "receiver"
why = "nobody says"
alternatives = [{ label = "sender", metric = "flow.0.written_mbps" }]
"""
# 50 kB each 101 ms, after slow start.
OBTAINED = 3600.0


def study(root: Path, *parts: str) -> Study:
    (root / "made-up").mkdir(exist_ok=True)
    (root / "made-up/study.toml").write_text(HEAD + "".join(parts), encoding="utf-8")
    (root / "made-up/scenario.toml").write_text(SCENARIO, encoding="utf-8")
    return load_study("made-up", root)


def number(outcome: reproduce.Outcome) -> float:
    assert isinstance(outcome.obtained, float)
    return outcome.obtained


def judged(root: Path, published: float, *assumptions: str) -> reproduce.Outcome:
    figure = FIGURE.format(name="row", published=published)
    (outcome,) = reproduce.reproduce(study(root, figure, *assumptions))
    return outcome


def test_within_the_tolerance_is_reproduced(tmp_path: Path) -> None:
    obtained = number(judged(tmp_path, 1.0))
    assert obtained == pytest.approx(OBTAINED, rel=0.1)
    outcome = judged(tmp_path, obtained * 1.04, WINDOW)
    assert outcome.verdict == "reproduced"
    assert outcome.ci95 is not None
    assert len(outcome.effects) == 2


def test_out_of_reach_of_every_assumption_is_not_reproduced(tmp_path: Path) -> None:
    outcome = judged(tmp_path, 50_000, WINDOW)
    assert outcome.verdict == "not-reproduced"
    assert outcome.note.startswith("the assumptions move it only from 17")


def test_within_the_reach_of_an_assumption_is_under_specified(tmp_path: Path) -> None:
    outcome = judged(tmp_path, 5000, WINDOW)
    assert outcome.verdict == "under-specified"
    assert "the window" in outcome.note
    assert "kb/s" in outcome.note


def test_between_two_named_alternatives_there_is_nothing(tmp_path: Path) -> None:
    # The sender's count is 2 % above; a figure 6.5 % above is nearer to it than 5 %.
    obtained = number(judged(tmp_path, 1.0))
    assert judged(tmp_path, obtained * 1.065, COUNTING).verdict == "under-specified"
    assert judged(tmp_path, obtained * 1.2, COUNTING).verdict == "not-reproduced"


def test_set_applies_to_every_figure(tmp_path: Path) -> None:
    made = study(tmp_path, FIGURE.format(name="row", published=7000))
    (outcome,) = reproduce.reproduce(made, sets=["flow.0.window_bytes=100000"], repeat=1)
    assert outcome.verdict == "reproduced"
    assert outcome.ci95 is None


def test_relations(tmp_path: Path) -> None:
    text = """
[[figure]]
id = "made-up/{name}"
how = "more window, more rate"
kind = "shape"
[figure.shape]
compare = "greater"
metric = "flow.0.goodput_mbps"
this = {{ set = ["flow.0.window_bytes={this}"] }}
than = {{ set = ["flow.0.window_bytes=50000"] }}
"""
    up, down = (
        text.format(name=name, this=this) for name, this in (("up", 90_000), ("down", 30_000))
    )
    made = study(tmp_path, up, down)
    outcomes = reproduce.reproduce(made)
    assert [outcome.verdict for outcome in outcomes] == ["holds", "refuted"]
    assert "against" in outcomes[0].note


def test_a_range_is_judged_at_both_ends(tmp_path: Path) -> None:
    text = """
[[figure]]
id = "made-up/{high}"
how = "…"
low = 3500
high = {high}
unit = "kb/s"
tolerance = 0.1
metric = ["flow.0.goodput_mbps", "flow.0.written_mbps"]
scale = 1000
set = ["flow.0.window_bytes=50000"]
"""
    made = study(tmp_path, text.format(high=3600), text.format(high=6000), WINDOW)
    near, far = reproduce.reproduce(made)
    assert near.verdict == "reproduced"
    assert isinstance(near.obtained, tuple)
    assert near.obtained_text() == f"{near.figure.text(near.obtained)} kb/s"
    # The low end is right, the high one is not; half or twice the window moves both.
    assert far.verdict == "not-reproduced"
    assert isinstance(far.as_dict()["obtained"], tuple)


def test_against_is_percent_above_another_variant(tmp_path: Path) -> None:
    text = FIGURE.format(name="row", published=100).replace("scale = 1000\n", "")
    text = text.replace("=50000", "=100000") + 'against = ["flow.0.window_bytes=50000"]\n'
    (outcome,) = reproduce.reproduce(study(tmp_path, text))
    assert outcome.obtained == pytest.approx(96, abs=1)
    assert outcome.verdict == "reproduced"


def test_each_seed_has_its_own_value_of_what_varies(tmp_path: Path) -> None:
    shape = """
[[figure]]
id = "made-up/spread"
how = "…"
kind = "shape"
[figure.shape]
compare = "greater"
statistic = "variation"
metric = "flow.0.goodput_mbps"
factor = 0.1
this = { set = [] }
than = { set = ["path.down.1.delay_ms=100"] }
"""
    # What a figure sets comes after what varies: the one side varies, the other does not.
    vary = 'vary = { "path.down.1.delay_ms" = [50.0, 300.0] }\n'
    (tmp_path / "made-up").mkdir()
    made = study(tmp_path, vary, shape.replace("0.1", "20"))
    assert made.varied(1) != made.varied(2)
    (outcome,) = reproduce.reproduce(made, repeat=4)
    assert outcome.verdict == "holds", outcome.note


def test_only_and_all(tmp_path: Path) -> None:
    text = """
[[figure]]
id = "made-up/{name}"
how = "…"
kind = "shape"
[figure.shape]
compare = "all"
of = [
  {{ compare = "only", label = "algorithm", metric = "flow.0.congestion", values = [{values}] }},
  {{ compare = "at-most", metric = "flow.0.goodput_mbps", limit = 11 }},
]
"""
    good, bad = text.format(name="a", values='"cubic"'), text.format(name="b", values='"reno"')
    outcomes = reproduce.reproduce(study(tmp_path, good, bad))
    assert [outcome.verdict for outcome in outcomes] == ["holds", "refuted"]
    assert outcomes[0].note.startswith("algorithm: cubic 2; ")


def test_each_side_of_a_shape_may_have_its_own_scenario_and_metric(tmp_path: Path) -> None:
    text = """
[[figure]]
id = "made-up/row"
how = "a longer way, less rate"
kind = "shape"
[figure.shape]
compare = "greater"
metric = "flow.0.goodput_mbps"
factor = {factor}
this = {{ set = ["flow.0.window_bytes=50000"] }}
[figure.shape.than]
scenario = "far.toml"
metric = "flow.0.written_mbps"
set = ["flow.0.window_bytes=50000"]
"""
    (tmp_path / "made-up").mkdir()
    far = SCENARIO.replace("delay_ms = 100", "delay_ms = 200")
    (tmp_path / "made-up/far.toml").write_text(far, encoding="utf-8")
    for factor, verdict in ((1.5, "holds"), (2.5, "refuted")):
        (outcome,) = reproduce.reproduce(study(tmp_path, text.format(factor=factor)))
        assert outcome.verdict == verdict
        assert outcome.note.endswith(f"needs {factor:.2f} times that")


def test_one_variant_has_to_meet_all_conditions(tmp_path: Path) -> None:
    text = """
[[figure]]
id = "made-up/row"
how = "slow"
kind = "shape"
[figure.shape]
compare = "a-variant-meets-all"
conditions = [
  {{ label = "Mb/s", metric = "flow.0.goodput_mbps", limit = 2 }},
  {{ label = "Mb/s short", metric = "flow.0.goodput_mbps", limit = {short}, set = ["{three}"] }},
]
variants = [
  {{ label = "wide", set = ["flow.0.window_bytes=90000"] }},
  {{ label = "narrow", set = ["flow.0.window_bytes=20000"] }},
]
"""
    three = "run.duration_s=3"
    (held,) = reproduce.reproduce(study(tmp_path, text.format(short=2, three=three)))
    assert held.verdict == "explained-by"
    assert held.note.startswith("narrow. ")
    assert held.note.count("(all met)") == 1
    assert "wide: " in held.note
    (broken,) = reproduce.reproduce(study(tmp_path, text.format(short=0.1, three=three)))
    assert broken.verdict == "refuted"
    assert "(all met)" not in broken.note


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("[[figure]]\nid = 'x'\nhow = ''\n",), "no published value"),
        (
            (FIGURE.format(name="a", published=1), WINDOW, 'figures = ["b"]'),
            "an unknown figure 'b'",
        ),
        (
            (
                FIGURE.format(name="a", published=1),
                "[[search]]\nname = 'x'\nchoices = []\nfigures = ['b']",
            ),
            "search 'x' refers to an unknown figure 'b'",
        ),
        (
            (FIGURE.format(name="a", published=1), WINDOW, "alternatives = [{ label = 'x' }]"),
            "both",
        ),
        (("figure = 3",), "study.toml"),
        (
            (
                FIGURE.format(name="a", published=1).replace(
                    '"flow.0.goodput_mbps"', '["a", "b", "c"]'
                ),
            ),
            "two metrics",
        ),
    ],
)
def test_a_faulty_study_is_named(tmp_path: Path, parts: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        study(tmp_path, *parts)


def test_a_metric_without_value_is_an_error(tmp_path: Path) -> None:
    text = FIGURE.format(name="a", published=1).replace("goodput_mbps", "completed_s")
    with pytest.raises(InputError, match="has no value"):
        reproduce.reproduce(study(tmp_path, text))


def test_the_shipped_studies_load() -> None:
    assert "3g-latency" in study_names()
    shipped = load_study("3g-latency")
    assert len(shipped.figures) == 8
    assert all(figure.tolerance > 0 for figure in shipped.figures)


def test_no_study_sets_what_its_source_does_not_vary() -> None:
    """One study, one set of parameters: rows set rates, delays and windows, nothing else."""
    varied = {"path.down.0.rate_mbps", "path.down.1.delay_ms", "path.up.1.delay_ms"}
    varied.add("flow.0.window_bytes")
    for figure in load_study("3g-latency").figures:
        assert {entry.partition("=")[0] for entry in figure.sets} <= varied


def test_the_drx_study_has_one_set_of_parameters() -> None:
    """Its rows set the direction and nothing else; its scenarios agree on the radio."""
    shipped = load_study("5g-drx")
    assert len(shipped.figures) == 10
    for figure in shipped.figures:
        varied = {entry.partition("=")[0] for entry in figure.sets}
        assert varied <= {"flow.0.direction", "flow.0.opened_by"}
    files = sorted(shipped.directory.glob("scenario*.toml"))
    radios = {str(read_toml(path)["radio"]) for path in files}
    assert len(files) == 4
    assert len(radios) == 1


def test_at_least_and_a_condition_of_two_bounds(tmp_path: Path) -> None:
    text = """
[[figure]]
id = "made-up/least"
how = "…"
kind = "shape"
[figure.shape]
compare = "at-least"
metric = "flow.0.goodput_mbps"
limit = {least}
[[figure]]
id = "made-up/between"
how = "…"
kind = "shape"
[figure.shape]
compare = "a-variant-meets-all"
variants = [{{ label = "as it is", set = [] }}]
conditions = [
  {{ label = "kb/s", metric = "flow.0.goodput_mbps", scale = 1000, least = {low}, limit = 10000 }},
]
"""
    for least, low, verdict in ((5, 5000, "holds"), (50, 9999, "refuted")):
        outcomes = reproduce.reproduce(study(tmp_path, text.format(least=least, low=low)))
        assert [outcome.verdict for outcome in outcomes] == [verdict] * 2
        assert f"at least {least}" in outcomes[0].note
