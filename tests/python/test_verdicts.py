"""What was fitted is counted apart, cells are judged one by one, and a choice may break nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath.errors import InputError
from airpath.study import verdicts
from airpath.study.definition import load_study
from airpath.study.reproduce import counts, document, reproduce
from airpath_dev.calibrate import calibrate
from test_reproduce import FIGURE, OBTAINED, WINDOW, study

PARAMETER = """
[[parameter]]
name = "the window"
value = "50 kB"
why = "nobody says"
of = "the network"
chosen_by = "made-up/{figure}"
"""
CELLS = """
[[figure]]
id = "made-up/pair"
how = "…"
unit = "kb/s"
tolerance = 0.1
metric = "flow.0.goodput_mbps"
scale = 1000
[[figure.cell]]
label = "As it is"
published = 3600
set = ["flow.0.window_bytes=50000"]
[[figure.cell]]
label = "Half"
published = {half}
set = ["flow.0.window_bytes=25000"]
"""
LEFT_OUT = """
[[figure]]
id = "made-up/{kind}"
how = "…"
kind = "{kind}"
left_out = "no such thing"
"""


SHAPE = """
[[figure]]
id = "made-up/fast"
how = "…"
kind = "shape"
[figure.shape]
compare = "at-least"
metric = "flow.0.goodput_mbps"
limit = {limit}
"""


def test_what_chose_a_parameter_is_calibrated_and_does_not_agree(tmp_path: Path) -> None:
    figures = FIGURE.format(name="a", published=OBTAINED), FIGURE.format(name="b", published=3500)
    made = study(tmp_path, *figures, PARAMETER.format(figure="a"))
    outcomes = reproduce(made, repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["calibrated", "reproduced"]
    assert outcomes[0].note == "the window was chosen to match it: 50 kB"
    found = counts(outcomes)
    assert (found.agree, found.of_all, found.not_calibrated) == (1, 2, 1)
    assert found.text().startswith("1 of 2 figures agree, 1 of the 1 not used for calibration")
    (entry,) = document([(made, outcomes)])["studies"]
    assert entry["counts"]["figures_not_calibrated"] == 1
    assert entry["parameters"][0]["chosen_by"] == "made-up/a"


def test_a_figure_that_misses_what_it_chose_is_not_calibrated(tmp_path: Path) -> None:
    figure = FIGURE.format(name="a", published=50_000)
    (outcome,) = reproduce(study(tmp_path, figure, PARAMETER.format(figure="a")), repeat=1)
    assert outcome.verdict == "not-reproduced"
    assert outcome.note.startswith("although the window was chosen to match it")


@pytest.mark.parametrize("half", [1800, 9000])
def test_cells_are_judged_one_by_one(tmp_path: Path, half: int) -> None:
    made = study(tmp_path, CELLS.format(half=half), PARAMETER.format(figure="pair/as-it-is"))
    (outcome,) = reproduce(made, repeat=1)
    last = "reproduced" if half == 1800 else "not-reproduced"
    assert [finding.verdict for finding in outcome.findings] == ["calibrated", last]
    assert outcome.verdict == last
    entry = outcome.as_dict()
    assert entry["published"] == [3600, half]
    assert [cell["id"] for cell in entry["cells"]] == ["made-up/pair/as-it-is", "made-up/pair/half"]
    assert counts([outcome]).of_all == 2


def test_a_choice_that_moves_another_figure_out_excuses_nothing(tmp_path: Path) -> None:
    high = FIGURE.format(name="high", published=7000)
    here = FIGURE.format(name="here", published=3600)
    assert reproduce(study(tmp_path, high, WINDOW), repeat=1)[0].verdict == "under-specified"
    outcomes = reproduce(study(tmp_path, high, here, WINDOW), repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["not-reproduced", "reproduced"]
    assert "moves here out" in outcomes[0].note
    # What a figure varies itself is not open in it: the choice is for the other alone …
    alone = WINDOW + 'figures = ["made-up/high"]\n'
    outcomes = reproduce(study(tmp_path, high, here, alone), repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["under-specified", "reproduced"]
    assert outcomes[0].note.endswith(", 2 of 2 figures inside")
    # … but no list of figures excuses one that runs the same scenario.
    shape = SHAPE.format(limit=8)
    outcomes = reproduce(study(tmp_path, high, shape, alone), repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["not-reproduced", "holds"]
    assert "moves fast out" in outcomes[0].note
    outcomes = reproduce(study(tmp_path, high, SHAPE.format(limit=5), alone), repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["under-specified", "holds"]


def test_the_choice_with_most_figures_inside_is_named_first(tmp_path: Path) -> None:
    figures = [FIGURE.format(name=name, published=7000) for name in ("a", "b")]
    ways = """
[[assumption]]
id = "way"
name = "the way"
value = "as it is"
why = "nobody says"
alternatives = [{ label = "short", set = ["path.down.1.delay_ms=50"] }]
"""
    first = WINDOW + 'figures = ["made-up/a"]\n'
    outcome, _ = reproduce(study(tmp_path, *figures, first, ways), repeat=1)
    assert outcome.note.index("the way: short") < outcome.note.index("the window: ")
    assert "2 of 2 figures inside; the window" in outcome.note
    assert outcome.note.endswith("1 of 2 figures inside")


def test_what_was_looked_at_is_counted_apart(tmp_path: Path) -> None:
    figures = [FIGURE.format(name=name, published=OBTAINED) for name in ("a", "b", "c")]
    seen = PARAMETER.format(figure="a") + 'seen = ["made-up/b"]\n'
    made = study(tmp_path, *figures, seen)
    outcomes = reproduce(made, repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["calibrated", "reproduced", "reproduced"]
    assert outcomes[1].note == "was seen when the window was chosen: 50 kB"
    found = counts(outcomes).as_dict()
    assert (found["accounted"], found["figures_not_calibrated"]) == (2, 2)
    assert (found["accounted_not_seen"], found["figures_not_seen"]) == (1, 1)
    assert "not seen during calibration either" in counts(outcomes).text()
    with pytest.raises(InputError, match="refers to an unknown figure 'made-up/d'"):
        study(tmp_path, *figures, seen.replace("/b", "/d"))


def test_a_value_between_two_bounds_is_found(tmp_path: Path) -> None:
    (outcome,) = reproduce(
        study(tmp_path, FIGURE.format(name="a", published=5000), WINDOW), repeat=1
    )
    assert outcome.verdict == "under-specified"
    assert "window_bytes = " in outcome.note


def test_what_is_left_out_says_why(tmp_path: Path) -> None:
    made = study(tmp_path, LEFT_OUT.format(kind="value"), LEFT_OUT.format(kind="shape"))
    outcomes = reproduce(made, repeat=1)
    assert [outcome.verdict for outcome in outcomes] == ["not-expressible", "not-judged"]
    assert {outcome.note for outcome in outcomes} == {"no such thing"}


@pytest.mark.parametrize(
    ("figures", "message"), [(("b",), "which is not a figure"), (("a", "a"), "more than one")]
)
def test_a_figure_chooses_one_parameter(
    tmp_path: Path, figures: tuple[str, ...], message: str
) -> None:
    parts = [PARAMETER.format(figure=figure) for figure in figures]
    with pytest.raises(InputError, match=message):
        study(tmp_path, FIGURE.format(name="a", published=1), *parts)


def test_the_list_of_verdicts_is_the_only_one() -> None:
    assert len({verdict.name for verdict in verdicts.VERDICTS}) == len(verdicts.VERDICTS) == 9
    with pytest.raises(ValueError, match="not a verdict: nice"):
        verdicts.count(["nice"])
    assert verdicts.together(["calibrated", "calibrated"]) == "calibrated"
    assert verdicts.together(["calibrated", "reproduced", "not-reproduced"]) == "not-reproduced"


def test_a_parameter_is_chosen_again_by_its_figure_alone(tmp_path: Path) -> None:
    searched = (
        PARAMETER.format(figure="a") + 'key = "flow.0.window_bytes"\nlow = 9000\nhigh = 99000\n'
    )
    bare = FIGURE.replace('set = ["flow.0.window_bytes=50000"]', "")
    figures = bare.format(name="a", published=5000), bare.format(name="b", published=1)
    made = study(tmp_path, *figures, searched)
    ((parameter, value, obtained, figure),) = calibrate(made, list(made.parameters))
    assert (parameter.value, figure.id) == ("50 kB", "made-up/a")
    assert obtained == pytest.approx(5000, rel=0.05)
    assert value == pytest.approx(70_000, rel=0.1)


@pytest.mark.parametrize(
    ("bounds", "accepted"),
    [
        (None, True),
        ([3.0, 3.61], True),
        ([3.0, 3.59], False),
        ([7.1, 7.9], True),
        ([7.3, 8], False),
    ],
)
def test_an_interval_may_miss_by_a_third(bounds: list[float] | None, accepted: bool) -> None:
    """5.4 % more, with a tolerance of half of it: from 3.6 to 7.2."""
    whole = load_study("lte-cubic-hystart")
    (figure,) = (each for each in whole.figures if each.id.endswith("/20mb-gain"))
    assert (figure.low, figure.tolerance) == (5.4, 0.5)
    value = 5.4 if bounds is None else sum(bounds) / 2
    assert figure.accepts(value)
    assert figure.accepts(value, bounds) == accepted


REASON = """
[figure.reason]
rests_on = "{on}"
text = "The link of <10> Mb/s excludes it."
"""


def test_a_reason_is_given_while_the_figure_does_not_agree(tmp_path: Path) -> None:
    from airpath.cli.reproduce import table
    from airpath.report.study import write_study_report

    figures = [FIGURE.format(name=name, published=7000) for name in ("a", "b", "c")]
    figures[1] += REASON.format(on="contradiction")
    made = study(tmp_path, *figures, PARAMETER.format(figure="a") + 'seen = ["made-up/c"]\n')
    outcomes = reproduce(made, repeat=1)
    found = counts(outcomes)
    assert (found.open, found.reasons) == (2, 1)
    assert found.text().endswith("and were neither used nor seen, 1 have a written reason")
    entries = document([(made, outcomes)])["studies"][0]["figures"]
    text = "The link of <10> Mb/s excludes it."
    given = {"rests_on": "contradiction", "text": text}
    assert [entry["reason"] for entry in entries] == [None, given, None]
    assert table(made, outcomes).count(f"reason: {text} (contradiction)") == 1
    write_study_report([(made, outcomes)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("Reason: The link of &lt;10&gt; Mb/s excludes it. (contradiction)") == 1
    # A larger window makes the figure agree; the reason is gone.
    faster = ["flow.0.window_bytes=100000"]
    _, again, _ = reproduce(made, sets=faster, repeat=1)
    assert again.verdict == "reproduced"
    assert again.as_dict()["reason"] is None


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (FIGURE.format(name="a", published=1) + REASON.format(on="excuse"), "rests on 'excuse'; "),
        (
            FIGURE.format(name="a", published=1)
            + REASON.format(on="computed")
            + "[[figure.cell]]\nlabel = 'x'\n",
            "has cells: give each cell its own reason",
        ),
        (
            FIGURE.format(name="a", published=1) + "[figure.reason]\nrests_on = 'computed'\n",
            "missing key 'text'",
        ),
    ],
)
def test_a_faulty_reason_is_named(tmp_path: Path, figure: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        study(tmp_path, figure)
