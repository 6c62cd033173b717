"""Mechanisms that may explain studies: what is planted is found, and limits are the studies'."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath import _core
from airpath import scenario as scenarios
from airpath.study.definition import load_study
from airpath_dev import candidates as tried
from test_reproduce import FIGURE, SCENARIO, study

LIST = """
[[candidate]]
id = "made-up/faster"
title = "Made up: faster"
study = "{study}"
scenario = "scenario.toml"
about = "What brings 9 Mb/s?"
limit = [
  {{ label = "kb/s", metric = "flow.0.goodput_mbps", scale = 1000, least = {least}, limit = 9500 }},
  {{ label = "no time-out", metric = "flow.0.rto_count", limit = 0 }},
]
[[candidate.also]]
label = "small window"
metric = "flow.0.goodput_mbps"
limit = inf
set = ["flow.0.window_bytes=20000"]
[[candidate.also]]
label = "lead"
metric = "flow.0.goodput_mbps"
limit = inf
less = ["flow.0.window_bytes=20000"]
[[candidate.row]]
label = "the study"
set = ["flow.0.window_bytes=50000"]
[[candidate.vary]]
choices = [
  {{ label = "50 kB", set = ["flow.0.window_bytes=50000"] }},
  {{ label = "150 kB", set = ["flow.0.window_bytes=150000"] }},
]
[[candidate.vary]]
choices = [
  {{ label = "100 ms" }},
  {{ label = "50 ms", set = ["path.down.1.delay_ms=50"] }},
]
"""


def made(root: Path, least: float) -> tried.Candidate:
    study(root, FIGURE.format(name="row", published=1))
    (root / "list.toml").write_text(LIST.format(study=root / "made-up", least=least))
    (candidate,) = tried.candidates(root / "list.toml")
    return candidate


def test_the_mechanism_that_is_planted_is_found(tmp_path: Path) -> None:
    candidate = made(tmp_path, 9000)
    labels = ["the study", "50 kB; 100 ms", "50 kB; 50 ms", "150 kB; 100 ms", "150 kB; 50 ms"]
    assert [row["label"] for row in candidate.rows] == labels
    text = tried.section(candidate, 1, tmp_path / "kept.jsonl")
    assert "**Found**: 1 of 5 rows meet all 2 limits: 150 kB; 50 ms." in text
    assert "Beside them, not required: small window, lead." in text
    rows = {row.label: row for row in tried.tried(candidate, 1, tmp_path / "kept.jsonl")}
    assert rows["the study"].values[:2] == rows["50 kB; 100 ms"].values[:2]
    # The column's own window replaces the row's, which keeps its delay.
    for each in rows.values():
        assert each.values[3] == pytest.approx(each.values[0] / 1000 - each.values[2])
    small = {label: row.values[2] for label, row in rows.items()}
    assert small["50 kB; 50 ms"] == small["150 kB; 50 ms"] > small["150 kB; 100 ms"]


def test_what_no_mechanism_gives_is_refuted(tmp_path: Path) -> None:
    text = tried.section(made(tmp_path, 9499), 1, tmp_path / "kept.jsonl")
    assert "**Refuted**: none of 5 rows meets all 2 limits; the best meet 1." in text


def test_a_row_runs_once_whatever_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.jsonl"
    first = tried.tried(made(tmp_path, 9000), 1, kept)
    monkeypatch.setattr(tried, "Bench", lambda *_: None)
    again = tried.tried(made(tmp_path, 1), 1, kept)
    assert [row.values for row in again] == [row.values for row in first]
    assert again[0].met > first[0].met
    # Another scenario is run again.
    (tmp_path / "made-up/scenario.toml").write_text(SCENARIO.replace("10.0", "11.0"))
    (candidate,) = tried.candidates(tmp_path / "list.toml")
    assert tried.stamp(candidate, candidate.rows[0]) not in dict(tried.read(kept))


def test_chances() -> None:
    assert tried.ahead((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)) == 1
    assert tried.ahead((4.0, 5.0, 6.0), (1.0, 2.0, 3.0)) == 20
    assert tried.wins((1.0, 3.0), (2.0, 2.0)) == 0.5
    assert tried.exceeding((1.0, 1.0, 1.0), (2.0, 2.0, 2.0), 2) == 1
    assert tried.exceeding((1.0, 1.0, 1.0), (2.0, 2.0, 2.0), 2.1) == 0


LIMITS = {
    "lte-private/reading": {
        "up, default, kb/s": "lte-private/oai-up-default",
        "up, 2 MB, Mb/s": "lte-private/oai-up-2m",
        "down, default, Mb/s": "lte-private/oai-down-default",
        "down, 1 MB, Mb/s": "lte-private/oai-down-1m",
        "down, 4 MB, Mb/s": "lte-private/oai-down-4m",
    },
    "lte-private/reno": {
        "down, default, Mb/s": "lte-private/oai-down-default",
        "down, 1 MB, Mb/s": "lte-private/oai-down-1m",
    },
    "5g-drx/ramp": {
        "mean, Mb/s": "5g-drx/down-average-30s",
        "steady, Mb/s": "5g-drx/down-steady",
        "ramp, s": "5g-drx/down-convergence",
        "up, mean, Mb/s": "5g-drx/up-average-30s",
        "up, steady, Mb/s": "5g-drx/up-steady",
        "up, ramp, s": "5g-drx/up-convergence",
    },
    "nr-bbr-cubic/interruptions": {
        "CUBIC, Mb/s": "nr-bbr-cubic/mobile-phone-throughput/cubic",
        "BBR, Mb/s": "nr-bbr-cubic/mobile-phone-throughput/bbr",
        "CUBIC's ping, ms": "nr-bbr-cubic/mobile-phone-ping/cubic",
        "BBR's ping, ms": "nr-bbr-cubic/mobile-phone-ping/bbr",
        "CUBIC's mdev, ms": "nr-bbr-cubic/mobile-phone-mdev/cubic",
        "BBR's mdev, ms": "nr-bbr-cubic/mobile-phone-mdev/bbr",
    },
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_what_was_published_with_the_studys_tolerance(name: str) -> None:
    candidate = next(each for each in tried.candidates() if each.id == name)
    leaves = {leaf.id: leaf for leaf in candidate.study.leaves}
    columns = {each["label"]: each for each in (*candidate.limits, *candidate.also)}
    for label, figure in LIMITS[name].items():
        leaf, column = leaves[figure], columns[label]
        assert leaf.low is not None
        assert leaf.high is not None
        assert column["least"] == pytest.approx(leaf.low * (1 - leaf.tolerance))
        assert column["limit"] == pytest.approx(leaf.high * (1 + leaf.tolerance))


@pytest.mark.parametrize("candidate", tried.candidates(), ids=lambda each: str(each.id))
def test_every_row_loads_in_every_column(candidate: tried.Candidate) -> None:
    assert len({row["label"] for row in candidate.rows}) == len(candidate.rows)
    for row in candidate.rows:
        for column in (*candidate.limits, *candidate.also):
            for asked in tried.requests(candidate, row, column):
                loaded = scenarios.load(candidate.study.directory / asked.scenario, asked.sets)
                assert isinstance(loaded, _core.Scenario)
    assert not candidate.rows[0]["set"]


def test_unsplit_segments_are_lost_and_single_ones_pass() -> None:
    """With the fault TCP moves little, but more than nothing, and UDP does not notice."""
    external = load_study("5g-drx").directory / "scenario-external.toml"
    run = _core.simulate(scenarios.load(external, ["path.down.1.enabled=true"]), 1).summary
    tcp, udp = run["flows"]
    assert tcp["goodput_mbps"] is not None
    assert tcp["rto_count"] is not None
    assert 0 < tcp["goodput_mbps"] < 1
    assert tcp["rto_count"] > 10
    assert udp["packets_lost"] == 0
