"""HyStart's state in the table of acknowledgements, and its picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.plots import figures
from airpath.plots.figure import Figure
from airpath.runs.results import Run

VERSIONS = ["hystart-4.19", "hystart-5.6", "hystart-5.8", "hystart-5.16", "hystart-6.14"]
WIRE = {
    "run.ack_table": True,
    "run.duration_s": 3,
    "path.down.0.rate_mbps": 50,
    "path.down.0.queue_packets": 2000,
    "flow.0.profile": "linux-6.1",
    "flow.0.congestion": "cubic",
}


def download(**sets: Any) -> Run:
    """The shipped wire at 50 Mb/s, where trains end slow start."""
    return airpath.run("wire", WIRE | sets)


def exit_of(run: Run) -> dict[str, Any]:
    return run.events.filter(pl.col("kind") == "slow_start_exit").to_dicts()[0]


def picture(*runs: Run) -> Figure | None:
    return next((figure for figure in figures(runs) if figure.id == "hystart"), None)


def rate(mbps: float) -> dict[str, Any]:
    return {"path.down.0.rate_mbps": mbps}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mbps", [4, 50])
def test_the_columns_agree_with_the_exit(version: str, mbps: float) -> None:
    run = download(**{"flow.0.slow_start": version, **rate(mbps)})
    end = exit_of(run)
    # At 4 Mb/s acknowledgements are more than 2 ms apart, and no train.
    assert end["reason"] == ("delay" if mbps == 4 or version == "hystart-5.16" else "ack_train")
    acks = run.table("acks")
    shown = acks.filter(pl.col("round_rtt_threshold_ms").is_not_null())
    assert shown["time_ns"][-1] == end["time_ns"] < acks["time_ns"][-1]
    assert acks.filter(pl.col("cwnd_segments") < 16)["round_samples"].is_null().all()
    tested = shown.filter(pl.col("round_samples").is_not_null())
    assert tested["round_samples"].max() == 8
    over = tested["ack_train_ms"] > tested["ack_train_limit_ms"]
    risen = tested["round_min_rtt_ms"] > tested["round_rtt_threshold_ms"]
    # The ninth sample of a round and those after it are compared.
    compared = (tested["round_samples"] == 8) & (tested["round_samples"].shift(1) == 8)
    by_delay = (risen & compared).fill_null(False)
    assert over.to_list()[-1] == (end["reason"] == "ack_train")
    assert by_delay.to_list()[-1] == (end["reason"] == "delay")
    assert not over[:-1].any()
    assert not by_delay[:-1].any()
    found = run.summary["flows"][0]["slow_start_exit"]
    assert found is not None
    if end["reason"] == "delay":
        assert tested["round_min_rtt_ms"][-1] == pytest.approx(found["round_rtt_ms"])


def test_hystart_pp_shows_its_conservative_slow_start() -> None:
    run = download(**{"flow.0.slow_start": "hystart++"})
    acks, end = run.table("acks"), exit_of(run)
    assert end["reason"] == "css"
    shown = acks.filter(pl.col("css").is_not_null())
    assert shown["time_ns"][-1] == end["time_ns"]
    assert shown["ack_train_ms"].is_null().all()
    # CSS begins as the round's minimum reaches the threshold, and that minimum is its baseline.
    begins = (pl.col("css") & ~pl.col("css").shift(1)).fill_null(False)
    threshold = pl.col("round_rtt_threshold_ms")
    rows = shown.with_columns(begins=begins, before=threshold.shift(1))
    first = rows.filter(pl.col("begins"))
    assert first.height >= 1
    assert (first["round_min_rtt_ms"] >= first["before"]).all()
    assert (first["round_min_rtt_ms"] == first["round_rtt_threshold_ms"]).all()
    stays = rows.filter(pl.col("css") & ~pl.col("begins"))
    assert stays.height > 100
    assert (stays["round_rtt_threshold_ms"] == stays["before"]).all()


@pytest.mark.parametrize("start", ["none", "hystart-6.14"])
def test_without_hystart_nothing_is_shown(start: str) -> None:
    congestion = "cubic" if start == "none" else "bbr"
    run = download(**{"flow.0.slow_start": start, "flow.0.congestion": congestion})
    columns = ["round_min_rtt_ms", "round_rtt_threshold_ms", "round_samples", "ack_train_ms",
               "ack_train_limit_ms", "css"]  # fmt: skip
    assert all(run.table("acks")[column].is_null().all() for column in columns)
    assert picture(run) is None


def test_there_is_no_picture_without_the_table() -> None:
    assert picture(download(**{"run.ack_table": False})) is None


def words(figure: Figure) -> str:
    return json.dumps([figure.spec, figure.data])


def test_the_picture_has_both_tests_and_the_exit() -> None:
    run = download(**{"flow.0.slow_start": "hystart-6.14"})
    figure = picture(run)
    assert figure is not None
    end = exit_of(run)
    assert len(figure.spec["vconcat"]) == 3
    assert figure.data["hystart-exit"] == [
        {
            "t": [round(end["time_ns"] / 1e9, 6)],
            "reason": ["ACK train"],
            "cwnd": [f"cwnd {end['cwnd_segments']}"],
        }
    ]
    # Slow start and a little more, although the run is longer.
    start, until = figure.spec["vconcat"][0]["encoding"]["x"]["scale"]["domain"]
    assert start < end["time_ns"] / 1e9 < until < 1.2 * end["time_ns"] / 1e9
    drawn = {series["s"]: series for series in figure.data["hystart"]}
    assert {*drawn} == {"RTT samples", "the round's minimum", "smallest RTT plus threshold"}
    acks = run.table("acks")
    rtts = acks.filter(pl.col("time_ns") <= until * 1e9)["rtt_ms"].drop_nulls()
    assert len(drawn["RTT samples"]["t"]) == rtts.len()
    phases = figure.data["hystart-phases"]
    assert [phase["s"] for phase in phases] == ["sampling phase"]
    rounds = len(figure.table.rows)
    assert rounds == len(phases[0]["t"]) >= 4
    assert all(begin < end for begin, end in zip(phases[0]["t"], phases[0]["to"], strict=True))
    # The last round's train is longer than its limit.
    *_, train, limit, cwnd = figure.table.rows[-1]
    assert float(train) >= float(limit)
    assert cwnd == f"{end['cwnd_segments']}"


def test_the_picture_of_hystart_pp_has_its_own_terms() -> None:
    figure = picture(download(**{"flow.0.slow_start": "hystart++"}))
    assert figure is not None
    assert figure.title.startswith("HyStart++")
    assert len(figure.spec["vconcat"]) == 2
    for word in ("currentRoundMinRTT", "lastRoundMinRTT + RttThresh", "cssBaselineMinRtt"):
        assert word in words(figure)
    assert [phase["s"] for phase in figure.data["hystart-phases"]] == ["sampling phase", "CSS"]


def test_a_slow_start_that_does_not_end_is_drawn_as_far_as_it_goes() -> None:
    figure = picture(download(**{"run.duration_s": 0.3, **rate(1000)}))
    assert figure is not None
    assert "hystart-exit" not in figure.data
    assert figure.title == "HyStart: slow start did not end"


def test_of_several_flows_and_seeds_the_first_is_drawn() -> None:
    run = airpath.run("wire", WIRE | {"flow.0.streams": 2}, repeat=2)
    figure = picture(run)
    assert figure is not None
    assert "The chart shows the flow download.1." in figure.remarks
    assert "The chart shows the first seed." in figure.remarks


def test_runs_side_by_side_have_a_picture_each(tmp_path: Path) -> None:
    runs = [
        airpath.run("wire", WIRE | {"flow.0.slow_start": version}, out=tmp_path / version)
        for version in ("hystart-4.19", "hystart++", "none")
    ]
    made = [figure for figure in figures(runs) if figure.id.startswith("hystart")]
    assert [figure.id for figure in made] == ["hystart-1", "hystart-2"]
    assert [figure.title for figure in made] == [
        "HyStart: why slow start ended, hystart-4.19",
        "HyStart++: why slow start ended, hystart++",
    ]
    # Charts of one page share their data by name.
    assert not made[0].data.keys() & made[1].data.keys()


def test_a_run_of_before_these_columns_has_no_picture(tmp_path: Path) -> None:
    out = tmp_path / "run"
    airpath.run("wire", WIRE, out=out)
    assert picture(Run.open(out)) is not None
    acks = pl.read_parquet(out / "acks.parquet")
    acks.select(acks.columns[:8]).write_parquet(out / "acks.parquet")
    assert picture(Run.open(out)) is None
