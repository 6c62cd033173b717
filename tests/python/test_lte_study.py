"""The study lte-cubic-hystart: complete, one set of parameters, and it runs."""

from __future__ import annotations

from typing import Any

from airpath.scenario import load
from airpath.study.definition import load_study
from airpath.study.reproduce import reproduce
from airpath.study.verdicts import VERDICTS

NAME = "lte-cubic-hystart"
CHANGES = [
    "flow.1.hystart.falling_minimum_exits=false",
    "flow.1.hystart.late_reset=false",
]


def test_every_published_figure_has_an_entry() -> None:
    figures = {figure.id: figure for figure in load_study(NAME).figures}
    assert list(figures) == [
        f"{NAME}/{name}"
        for name in (
            "ping-spread",
            "ack-train-never",
            "trace",
            "20mb-gain",
            "5mb-gain",
            "throughput-variance",
        )
    ]
    published = {name: figure.published for name, figure in figures.items()}
    assert published[f"{NAME}/ping-spread"] == [18.5, 30]
    assert published[f"{NAME}/20mb-gain"] == 5.4
    assert published[f"{NAME}/5mb-gain"] == 10.5
    assert figures[f"{NAME}/ping-spread"].tolerance == 0.15
    assert figures[f"{NAME}/20mb-gain"].tolerance == figures[f"{NAME}/5mb-gain"].tolerance == 0.5


def test_figures_set_the_size_and_the_two_changes_only() -> None:
    allowed = {"flow.1.size_bytes", *(change.partition("=")[0] for change in CHANGES)}
    for figure in load_study(NAME).figures:
        for sets in (figure.sets, figure.against or ()):
            assert {entry.partition("=")[0] for entry in sets} <= allowed


def test_every_figure_has_a_verdict_with_one_seed(core: Any) -> None:
    study = load_study(NAME)
    outcomes = {outcome.figure.id: outcome for outcome in reproduce(study, repeat=1)}
    assert len(outcomes) == len(study.figures)
    for outcome in outcomes.values():
        assert outcome.verdict in {verdict.name for verdict in VERDICTS}


def test_the_period_spreads_the_pings_and_blocks_that_fail_spread_them_more(core: Any) -> None:
    study = load_study(NAME)
    path = study.directory / "scenario.toml"

    def spread(*sets: str) -> float:
        rtt = core.simulate(load(path, ["flow.1.size_bytes=1", *sets]), 1).summary["pings"][0]
        return float(rtt["rtt_ms"]["max"] - rtt["rtt_ms"]["min"])

    # Over 4 ms and what the hosts add, and over 8 ms more for each retransmission.
    assert 4 <= spread("radio.channel.sinr_db=30") <= 5
    assert spread() >= 4 + 8


def test_with_free_uplink_the_ack_train_ends_slow_start(core: Any) -> None:
    """The source's account: it is the uplink's waiting that breaks the train."""
    study = load_study(NAME)
    path = study.directory / "scenario.toml"

    def reasons(*sets: str) -> set[str]:
        return {
            core.simulate(load(path, [*study.varied(seed), *sets]), seed).summary["flows"][0][
                "slow_start_exit"
            ]["reason"]
            for seed in range(1, 31)
        }

    assert "ack_train" not in reasons()
    assert "ack_train" in reasons("radio.grants.proactive_period_ms=1")


def test_the_changes_leave_no_exit_by_a_falling_minimum(core: Any) -> None:
    study = load_study(NAME)
    path = study.directory / "scenario.toml"
    for seed in range(1, 21):
        summary = core.simulate(load(path, [*study.varied(seed), *CHANGES]), seed).summary
        assert summary["flows"][0]["slow_start_exit"]["reason"] == "delay"
        assert summary["flows"][0]["completed_s"] < 5
