"""The shapes of the studies can fail: with what they are about taken away they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from airpath.study.definition import Study, load_study
from airpath.study.reproduce import reproduce

pytestmark = pytest.mark.unhurried

Change = Callable[[Any], Any]


def verdict(
    figure_id: str, sets: Sequence[str] = (), change: Change | None = None, repeat: int = 1
) -> str:
    """The verdict on one shape, with something set or with another test."""
    name = figure_id.partition("/")[0]
    whole = load_study(name)
    (figure,) = (each for each in whole.figures if each.id == figure_id)
    if change is not None:
        figure = replace(figure, shape=change(figure.shape))
    made: Study = replace(whole, figures=(figure,), assumptions=(), parameters=())
    (outcome,) = reproduce(made, sets=sets, repeat=repeat)
    return outcome.verdict


def without_faults(shape: dict[str, Any]) -> dict[str, Any]:
    """Only the variant that sets nothing is left."""
    if "variants" in shape:
        return {**shape, "variants": [each for each in shape["variants"] if not each["set"]]}
    if "of" in shape:
        return {**shape, "of": [without_faults(part) for part in shape["of"]]}
    return shape


def harmed(shape: dict[str, Any]) -> dict[str, Any]:
    """Beside the UPF the NATs come with a channel that is worse by 1 dB."""
    first, *rest = shape["of"]
    return {**shape, "of": [{**first, "this": {"set": ["radio.channel.sinr_db=11"]}}, *rest]}


def test_short_tests_read_low_only_with_a_ramp() -> None:
    """Which takes what the source leaves open; that acts by way of HyStart, or without it."""
    figure = "5g-drx/short-tests-read-low"
    varying, reports_alone = "path.up.1.jitter_ms=40", "radio.grants.assume_more=false"
    without_hystart = "flow.0.slow_start=none"
    assert verdict(figure) == "refuted"
    assert verdict(figure, [varying]) == "holds"
    assert verdict(figure, [varying, without_hystart]) == "refuted"
    assert verdict(figure, [reports_alone]) == "holds"
    assert verdict(figure, [reports_alone, without_hystart]) == "holds"


def test_a_relation_that_a_choice_makes_hold_is_under_specified() -> None:
    whole = load_study("5g-drx")
    (figure,) = (each for each in whole.figures if each.id == "5g-drx/short-tests-read-low")
    open_choices = tuple(each for each in whole.assumptions if each.id == "reports")
    study = replace(whole, figures=(figure,), assumptions=open_choices, parameters=())
    (outcome,) = reproduce(study, repeat=1)
    assert outcome.verdict == "under-specified"
    assert "beyond reports: nothing" in outcome.note
    assert "1 of 1 figures inside" in outcome.note


def test_two_nats_are_judged_beside_the_upf_and_outside() -> None:
    figure = "5g-drx/double-nat-colocated-unaffected"
    assert verdict(figure) == "explained-by"
    assert verdict(figure, change=without_faults) == "refuted"
    assert verdict(figure, change=harmed) == "refuted"


def test_the_collapse_needs_its_fault() -> None:
    assert verdict("5g-drx/external-server-collapse", change=without_faults) == "refuted"


@pytest.mark.parametrize("extra", [False, True])
def test_the_variance_shrinks_only_by_the_changes(extra: bool) -> None:
    changes = ["flow.1.hystart.falling_minimum_exits=false", "flow.1.hystart.late_reset=false"]
    figure = "lte-cubic-hystart/throughput-variance"

    def without_size(shape: dict[str, Any]) -> dict[str, Any]:
        _, *rest = shape["of"]
        return {**shape, "of": rest}

    found = verdict(figure, changes * extra, without_size, repeat=50)
    assert found == ("refuted" if extra else "holds")


@pytest.mark.parametrize(("factor", "expected"), [(10, "refuted"), (5, "holds")])
def test_the_throughput_varies_more_than_the_radio_but_not_far_more(
    factor: float, expected: str
) -> None:
    """1.8 % of the mean: six times what the radio alone does to the same files."""

    def asking(shape: dict[str, Any]) -> dict[str, Any]:
        first, *rest = shape["of"]
        assert first["factor"] == 10
        return {**shape, "of": [{**first, "factor": factor}, *rest]}

    found = verdict("lte-cubic-hystart/throughput-variance", change=asking, repeat=50)
    assert found == expected


def test_a_proxy_that_sends_with_cubic_cures_nothing() -> None:
    assert verdict("nr-bbr-cubic/proxy") == "holds"
    assert verdict("nr-bbr-cubic/proxy", ["path.down.2.congestion=cubic"]) == "refuted"
