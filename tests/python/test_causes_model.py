"""The learned model of causes: its file, its answers, and what is printed of them."""

from __future__ import annotations

import io
import json
import math
from importlib import resources

import numpy as np
import pytest

import airpath
from airpath import _core
from airpath.causes import rank, tools
from airpath.causes.describe import _DESCRIBED
from airpath.causes.features import Features, features
from airpath.causes.model import ANY, Forest, Model, answer, layer_inputs, packaged
from airpath.causes.phrases import _PHRASES, _UNITS, evidence
from airpath.causes.rank import read_groups
from airpath.causes.tools import Pinged, Told
from airpath_dev.causes.captured import Judged, summary

_MOST_BYTES = 1_000_000


def _stump(cause: str, feature: int, left: float, right: float) -> Forest:
    """One tree: ``left`` where the feature is at most 0.5 or unknown, or else ``right``."""
    nodes = [
        (feature, 0.5, True, 2, (left + right) / 2),
        (-1, 0.0, False, -1, left),
        (-1, 0.0, False, -1, right),
    ]
    return Forest.of(cause, [0], nodes)


def _small() -> Model:
    forests = [_stump("mtu", 0, -2.0, 2.0), _stump(ANY, 1, -3.0, 3.0)]
    own = np.array([[1.0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0]])
    return Model.of(["one", "two"], forests, [_stump("mtu", 0, 0.1, 1.0)], own)


def test_a_model_is_read_as_it_was_written() -> None:
    once, twice = io.BytesIO(), io.BytesIO()
    _small().write(once)
    _small().write(twice)
    assert once.getvalue() == twice.getvalue()
    once.seek(0)
    again = Model.read(once)
    for one in (0.2, 0.9, math.nan):
        found = {"one": one, "two": 0.9}
        assert again.probabilities(found) == _small().probabilities(found)
        assert again.cost("mtu", found) == _small().cost("mtu", found)


def test_trees_follow_their_thresholds_and_unknown_values_their_default() -> None:
    small = _small()
    logistic = [1 / (1 + math.exp(-odds)) for odds in (-2.0, 2.0)]
    assert small.probabilities({"one": 0.5})["mtu"] == pytest.approx(logistic[0])
    assert small.probabilities({"one": 0.6})["mtu"] == pytest.approx(logistic[1])
    assert small.probabilities({})["mtu"] == pytest.approx(logistic[0])
    assert small.cost("mtu", {"one": 0.6}) == pytest.approx(1 - math.exp(-1))
    name, by = small.moved("mtu", {"one": 0.6})[0]
    assert name == "one"
    assert by == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("probabilities", "causes", "unknown"),
    [
        ({"mtu": 0.9, "drx": 0.7, "vpn": 0.1, ANY: 0.99}, ["mtu", "drx"], False),
        # The likeliest answer need not be likelier than not.
        ({"mtu": 0.45, "drx": 0.2, ANY: 0.7}, ["mtu"], False),
        ({"mtu": 0.1, "drx": 0.1, ANY: 0.95}, [], True),
        ({"mtu": 0.1, "drx": 0.1, ANY: 0.2}, [], False),
        # A cause is no likelier than that there is any.
        ({"mtu": 0.6, "drx": 0.1, ANY: 0.2}, ["mtu"], False),
    ],
)
def test_the_likeliest_answer_is_given(
    probabilities: dict[str, float], causes: list[str], unknown: bool
) -> None:
    found = answer(probabilities)
    assert [cause for cause, _ in found.causes] == causes
    assert bool(found.leaning) is unknown


@pytest.mark.parametrize(
    ("mtu", "some", "named", "leaning"),
    [
        (0.95, 0.95, True, False),
        (0.85, 0.88, True, False),
        # Five to one is not reached: the likeliest is listed, and none is named.
        (0.8, 0.83, False, True),
        (0.6, 0.6, False, True),
        (0.4, 0.45, False, False),
    ],
)
def test_who_is_told_of_a_cause_that_is_not_there_pays_for_it(
    mtu: float, some: float, named: bool, leaning: bool
) -> None:
    found = answer({"mtu": mtu, "drx": 0.01, ANY: some}, rank.WRONG_BLAME)
    assert bool(found.causes) is named
    assert bool(found.leaning) is leaning


def test_a_test_is_called_too_short_at_odds_of_two_to_one() -> None:
    unsure = {"test-too-short": 0.6, "drx": 0.1, ANY: 0.65}
    assert not rank.best(unsure).causes
    found = {"test-too-short": 0.6, "drx": 0.1, ANY: 0.72}
    assert not answer(found, rank.WRONG_BLAME).causes
    assert rank.best(found).causes == [("test-too-short", 0.6)]


def test_figures_of_seconds_name_a_cause_at_odds_of_two_to_one() -> None:
    found = {"mtu": 0.68, "drx": 0.01, ANY: 0.7}
    assert not rank.best(found).causes
    assert tools.best(found).causes == [("mtu", 0.68)]
    assert not tools.best({"mtu": 0.6, "drx": 0.01, ANY: 0.62}).causes


def test_each_probability_is_worked_out_from_all_scores() -> None:
    """The columns are its own score, the highest, that of any cause, and the probabilities."""
    half = 0.0
    told = layer_inputs(np.array([half, half, -2.0]))
    some = -math.log(1 / (1 - 0.5 * 0.5) - 1)
    shared = [half, some, 0.5, 0.5, 1.0]
    assert told == pytest.approx(np.array([[half, *shared], [half, *shared], [-2.0, *shared]]))


def test_a_cause_that_explains_what_is_seen_speaks_against_another() -> None:
    forests = [_stump("mtu", 0, -2.0, 2.0), _stump("drx", 1, -2.0, 2.0), _stump(ANY, 1, -3.0, 3.0)]
    layer = np.zeros((3, 6))
    layer[:, 0] = 1
    # The probability of drx counts against mtu.
    layer[0, 4] = -3
    model = Model.of(["one", "two"], forests, [], layer)
    alone, both = (model.probabilities({"one": 0.9, "two": two})["mtu"] for two in (0.1, 0.9))
    sure = [1 / (1 + math.exp(-odds)) for odds in (-2.0, 2.0)]
    for found, drx in ((alone, sure[0]), (both, sure[1])):
        assert found == pytest.approx(1 / (1 + math.exp(-(2.0 - 3 * drx))))


def test_recordings_are_judged_by_their_first_cause_and_by_how_sure_it_is() -> None:
    found = [
        _judged(["mtu"], ("mtu", 0.9)),
        _judged(["mtu"], ("drx", 0.5)),
        _judged(["mtu"]),
        _judged([]),
        _judged([], ("test-too-short", 0.7)),
        _judged([], ("shaper", 0.8)),
    ]
    told = summary(found)
    assert "a planted cause first in 1 of 3 (33%: 1 of 3 that cost a half or more, 0 of 0" in told
    assert "that cost less), another one in 1" in told
    assert "of 3 healthy paths 2 have a cause named, 1 one of the path or of a host" in told
    # Four are named, and one is right, which was said to be 0.9.
    assert "calibration error 52.5%" in told


def _judged(planted: list[str], *named: tuple[str, float]) -> Judged:
    costs = {cause: math.log(2) for cause in planted}
    return Judged("1-1-0", "wire", "server", costs, named)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Features:
    """The features of a download."""
    place = tmp_path_factory.mktemp("run")
    airpath.run("random-loss", {"run.duration_s": 5}, out=place / "run", capture=True)
    file = place / "run" / "capture.pcapng"
    report = _core.read_capture(file)
    return features(read_groups(file, report)[0], report)


def _test() -> Features:
    """The features of a test of iperf3."""
    seconds = np.array([[1e6, 0, 3e4, 30], [2e6, 5, 4e4, 35], [1e6, 2, 2e4, 31], [2e6, 0, 3e4, 40]])
    return tools.features(Told([seconds], {"send_buffer": 0.2}, Pinged(0.1, (20, 30, 40, 50))))


def test_the_models_of_the_package_fit_the_code(shown: Features) -> None:
    total = 0
    for name, found in ((rank.MODEL, shown), (tools.MODEL, _test())):
        model = packaged(name)
        # What was learned from may be more: a feature that is gone is unknown to the model.
        assert set(found) <= set(model.names)
        assert set(model.forests) <= {*_DESCRIBED, ANY}
        assert set(model.costs) == set(model.forests) - {ANY}
        assert not any(np.isinf(value) for value in found.values())
        folder = resources.files("airpath.causes")
        total += len(folder.joinpath(name).read_bytes())
        origin = json.loads(folder.joinpath(name.replace("npz", "json")).read_text())
        assert set(origin["causes"]) == set(model.costs)
    assert total < _MOST_BYTES


def test_evidence_is_of_features_in_their_units(shown: Features) -> None:
    shown = _test() | shown
    assert set(_PHRASES) <= set(shown)
    assert {unit for _, unit in _PHRASES.values()} == set(_UNITS)
    for name in _PHRASES:
        if not math.isnan(shown[name]):
            (words,) = evidence([(name, 1.0)], shown)
            assert "{}" not in words
    assert evidence([("loss", -1.0), ("loss", 1.0)], shown) == []
    told = evidence([("loss", 2.0), ("nothing", 1.5), ("busy", 1.0)], shown)
    assert len(told) == 2
    assert told[0].endswith("of the packets were lost")
