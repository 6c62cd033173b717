"""The radio, from scenario to chart, with the compiled core."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import airpath
from airpath.errors import AirpathError
from airpath.plots import figures
from airpath.scenario import parse

SETS = {
    "run.duration_s": 2,
    "run.radio_log": True,
    "radio.sr.period_ms": 20,
}


@pytest.fixture(scope="module")
def run(core: Any) -> airpath.Run:
    return airpath.run("lte-20", set=SETS)


def test_the_log_tells_how_a_syn_gets_up(run: airpath.Run) -> None:
    first = run.radio_log.filter(pl.col("ue") == run.radio_log["ue"][0])
    events = first["event"].to_list()
    assert events[:5] == ["packet_enters", "sr", "grant", "bsr", "block"]
    blocks = first.filter(pl.col("event") == "block")
    assert (blocks["until_ns"] - blocks["time_ns"]).unique().to_list() == [1_000_000]
    assert blocks["mcs"].is_between(0, 28).all()


def test_requests_come_at_their_period(run: airpath.Run) -> None:
    requests = run.radio_log.filter(pl.col("event") == "sr")
    for ue in requests["ue"].unique():
        times = requests.filter(pl.col("ue") == ue)["time_ns"]
        assert (times % 20_000_000).n_unique() == 1


def test_the_report_shows_the_radio(run: airpath.Run) -> None:
    made = {figure.id: figure for figure in figures([run])}
    assert {"radio", "radio-segment"} <= made.keys()
    lanes = str(made["radio-segment"].spec)
    assert "segment down" in lanes
    assert "ACK up" in lanes
    assert {entry["id"] for entry in run.summary["radio"]} == {
        "near.down", "near.up", "far.down", "far.up",
    }  # fmt: skip


def test_radio_charts_name_their_axes_and_lines(run: airpath.Run) -> None:
    radio = next(figure for figure in figures([run]) if figure.id == "radio")
    assert len(radio.spec["vconcat"]) >= 6
    for panel in radio.spec["vconcat"]:
        line = panel["layer"][0]["encoding"]
        assert line["y"]["title"] in {"PRBs", "index", "share", "bytes"}
        assert line["color"].get("legend", "shown") is not None


def test_handovers_are_marked_where_they_happen() -> None:
    moved = airpath.run("nsa", set={"run.duration_s": 25})
    commands = moved.events.filter(pl.col("kind") == "handover_command")
    assert commands.height == 2
    radio = next(figure for figure in figures([moved]) if figure.id == "radio")
    [series] = radio.data["moves"]
    assert series["t"] == [10.0, 20.0]
    assert series["cell"] == ["leg", "anchor"]
    for panel in radio.spec["vconcat"]:
        marked = [view for view in panel["layer"] if view.get("data") == {"name": "moves"}]
        assert [view["mark"]["type"] for view in marked] == ["rule", "text"]


def test_no_panel_is_all_zero() -> None:
    """One UE, a perfect channel: no error and no sleep."""
    perfect = """
        run.duration_s = 1
        radio = { preset = "nr-n78", ue = [{ name = "ue-0", channel = { sinr_db = 60 } }] }
        flow = [{ kind = "bulk", profile = "linux-6.1" }]
    """
    still = airpath.run(parse(perfect, "perfect"))
    assert still.radio["bler"].max() in (None, 0.0)
    radio = next(figure for figure in figures([still]) if figure.id == "radio")
    titles = [panel["title"] for panel in radio.spec["vconcat"]]
    assert "ue-0: PRBs in each interval" in titles
    assert "ue-0: First transmissions that failed" not in titles
    assert any("0 throughout" in note and "failed" in note for note in radio.remarks)


def test_without_the_log_the_chart_is_left_out(core: Any) -> None:
    run = airpath.run("lte-20", set={"run.duration_s": 0.5})
    assert "radio-segment" not in {figure.id for figure in figures([run])}
    with pytest.raises(AirpathError, match=r"run\.radio_log = true"):
        _ = run.radio_log
