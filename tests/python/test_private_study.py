"""The study lte-private: complete, fitted by three figures, and its shapes can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from airpath import scenario as scenarios
from airpath.base.toml import read_toml
from airpath.study.definition import Shape, Study, load_study
from airpath.study.reproduce import Outcome, reproduce

NAME = "lte-private"
PUBLISHED = {
    "indoor-tcp-default": (972, 0.05),
    "oai-down-default": (4.80, 0.05),
    "oai-down-1m": (5.72, 0.05),
    "oai-down-4m": (5.69, 0.05),
    "oai-up-default": (62.2, 0.25),
    "oai-up-2m": (1.23, 0.25),
}
SHAPES = {"cubic-beats-reno", "rtt-variation", "one-way-firewall"}
CALIBRATED = {"indoor-parameters/udp", "oai-down-1m", "oai-up-2m"}
ACCESSES = ("wire", "private", "commercial", "wifi")


def study(*names: str) -> Study:
    """The study with some of its figures, without anything that is varied or fitted."""
    whole = load_study(NAME)
    figures = tuple(each for each in whole.figures if short(each.id) in names)
    assert len(figures) == len(names)
    return replace(whole, figures=figures, assumptions=(), parameters=(), repeat=1)


def judged(name: str, sets: Sequence[str] = ()) -> Outcome:
    (outcome,) = reproduce(study(name), sets=sets)
    return outcome


def short(figure: str) -> str:
    return figure.removeprefix(f"{NAME}/")


def test_every_published_figure_has_an_entry() -> None:
    figures = {short(figure.id): figure for figure in load_study(NAME).figures}
    for name, (value, tolerance) in PUBLISHED.items():
        assert figures[name].published == value
        assert figures[name].tolerance == tolerance
    assert {name for name, figure in figures.items() if figure.kind == "shape"} >= SHAPES
    # Published within the row of the default.
    assert figures["indoor-parameters"].published == [984, 991, 992, 1030]


def test_three_figures_chose_a_parameter_each() -> None:
    whole = load_study(NAME)
    assert {short(each.chosen_by) for each in whole.parameters} == CALIBRATED
    for each in whole.parameters:
        (figure,) = (leaf for leaf in whole.leaves if leaf.id == each.chosen_by)
        value: Any = read_toml(whole.directory / figure.scenario)
        for key in (each.key or "").split("."):
            value = value[key]
        assert each.value.split()[0] == f"{value:g}"


def test_figures_set_what_the_source_varied() -> None:
    """Which of the tests runs, its window, its writes, its congestion control."""
    varied = {"enabled", "window_bytes", "write_bytes", "congestion"}
    for figure in load_study(NAME).leaves:
        sides = [figure.sets, *(part.get("set", []) for part in parts(figure.shape))]
        for key in (entry.partition("=")[0] for sets in sides for entry in sets):
            assert key.startswith("flow.")
            assert key.rpartition(".")[2] in varied


def parts(shape: Any) -> list[dict[str, Any]]:
    of = shape.get("of", [])
    return [*of, *(part[side] for part in of for side in ("this", "than") if side in part)]


def test_the_rows_that_chose_nothing_are_reproduced() -> None:
    outcomes = reproduce(study("indoor-tcp-default", "oai-down-default", "oai-down-4m"))
    assert [outcome.verdict for outcome in outcomes] == ["reproduced"] * 3
    # A cell of half the rate does not do.
    (slow,) = reproduce(study("indoor-tcp-default"), sets=["radio.ambr.up_mbps=0.5"])
    assert slow.verdict == "not-reproduced"


def test_the_uplink_at_its_default_window_stays_open() -> None:
    assert judged("oai-up-default").verdict == "not-reproduced"


def test_one_way_needs_the_firewall() -> None:
    assert judged("one-way-firewall").verdict == "holds"
    gone = ["path.up.0.enabled=false", "path.down.1.enabled=false"]
    refuted = judged("one-way-firewall", gone)
    assert refuted.verdict == "refuted"
    assert "pings of the PC lost, of 60: 0" in refuted.note


def test_behind_the_firewall_a_download_works_if_the_laptop_opens_it() -> None:
    path = load_study(NAME).directory / "scenario-indoor.toml"
    for flow, moves in ((3, False), (6, True)):
        sets = ["flow.*.enabled=false", f"flow.{flow}.enabled=true", "run.duration_s=10"]
        (download,) = run(path, sets)["flows"]
        assert (download["bytes_delivered"] > 0) is moves


def run(path: Any, sets: Sequence[str]) -> dict[str, Any]:
    from airpath import _core

    return {**_core.simulate(scenarios.load(path, list(sets)), 1).summary}


def test_a_wire_that_varies_refutes_the_variation_of_rtts() -> None:
    assert judged("rtt-variation").verdict == "holds"
    assert judged("rtt-variation", ["path.down.*.jitter_ms=5"]).verdict == "refuted"


def test_without_loss_no_window_tells_cubic_from_reno() -> None:
    assert judged("cubic-beats-reno").verdict == "refuted"
    lossy = ["path.down.1.probability=1e-3", "path.up.0.probability=1e-3"]
    assert judged("cubic-beats-reno", lossy).verdict == "holds"


def test_only_what_depends_on_the_window_explains_the_uplink() -> None:
    assert judged("up-window").verdict == "explained-by"
    made = study("up-window")
    (figure,) = made.figures
    without: Shape = {**figure.shape, "variants": figure.shape["variants"][:-1]}
    (outcome,) = reproduce(replace(made, figures=(replace(figure, shape=without),)))
    assert outcome.verdict == "refuted"


def test_the_accesses_differ_in_the_access_alone() -> None:
    directory = load_study(NAME).directory
    files = {name: read_toml(directory / f"scenario-rtt-{name}.toml") for name in ACCESSES}
    wire = files["wire"]
    for file in files.values():
        assert file["flow"] == wire["flow"]
        for direction in ("down", "up"):
            stages = file["path"][direction]
            assert [stage for stage in stages if stage in wire["path"][direction]] == (
                wire["path"][direction]
            )
    oai = read_toml(directory / "scenario-oai.toml")["radio"]
    assert files["private"]["radio"] == oai


@pytest.mark.parametrize("direction", ["down", "up"])
def test_wifi_like_is_what_is_shipped(direction: str) -> None:
    shipped = read_toml(scenarios.STUDIES.parents[2] / "scenarios/wifi-like.toml")
    here = read_toml(load_study(NAME).directory / "scenario-rtt-wifi.toml")
    stages = [each for each in shipped["path"][direction] if each["stage"] != "server"]
    assert all(stage in here["path"][direction] for stage in stages)
