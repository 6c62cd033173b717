"""What campaigns answer: SQL, charts, comparisons, sensitivity, a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.analysis.intervals import interval
from airpath.campaign.sensitivity import sensitivity
from airpath.campaign.summaries import summarise, values
from airpath.errors import InputError
from airpath.plots.campaign import Places, draw
from airpath.plots.export import rendered
from airpath.plots.figure import rows
from campaigns import SHORT


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> airpath.Campaign:
    return airpath.sweep(SHORT, out=tmp_path_factory.mktemp("campaign") / "short", workers=2)


def test_sql_sees_what_python_sees(campaign: airpath.Campaign) -> None:
    sql = (
        "select cc, queue, avg(goodput_mbps) as mean, count(*) as n from flows "
        "group by all order by 1, 2"
    )
    found = airpath.query(sql, campaign.place)
    means = (
        campaign.table("flows")
        .group_by("cc", "queue")
        .agg(pl.col("goodput_mbps").mean().alias("mean"), pl.len().alias("n"))
        .sort("cc", "queue")
    )
    assert found["mean"].to_list() == pytest.approx(means["mean"].to_list())
    assert found["n"].to_list() == [5] * 8
    assert found["cc"].to_list() == means["cc"].to_list()


def test_sql_joins_runs_campaigns_and_captures(campaign: airpath.Campaign, tmp_path: Path) -> None:
    run = airpath.run("wire", out=tmp_path / "run")
    sql = "select source, count(*) as n from flows group by 1 order by 2"
    found = airpath.query(sql, campaign.place, tmp_path / "run")
    assert found.rows() == [(str(tmp_path / "run"), 1), (campaign.place, 40)]
    count = airpath.query("select count(*) from samples", tmp_path / "run").item()
    assert count == len(run.samples)


def test_sql_that_is_wrong_is_said_with_the_tables(campaign: airpath.Campaign) -> None:
    with pytest.raises(InputError, match=r"goodput(.|\n)*tables: findings, flows, groups"):
        airpath.query("select goodput from flows", campaign.place)
    with pytest.raises(InputError, match="there is no nowhere; a source is a campaign"):
        airpath.query("select 1", "nowhere")
    for empty in ("", "-- nothing"):
        with pytest.raises(InputError, match="the query is empty"):
            airpath.query(empty, campaign.place)


def test_sql_keeps_kinds_and_nulls(campaign: airpath.Campaign) -> None:
    found = airpath.query(
        "select 1 as i, 1.5::double as f, 'a' as s, true as b, null::double as n, [1, 2] as l, "
        "2.50::decimal(5, 2) as d from runs limit 1", campaign.place,
    )  # fmt: skip
    row = found.row(0)
    assert row[:5] == (1, 1.5, "a", True, None)
    assert list(row[5]) == [1, 2]


def test_means_and_intervals_are_those_of_the_seeds(campaign: airpath.Campaign) -> None:
    found = summarise(campaign, "flows.goodput_mbps")
    assert len(found) == 8
    row = found.filter(cc="cubic", queue=50).row(0, named=True)
    some = campaign.table("flows").filter(cc="cubic", queue=50)["goodput_mbps"].to_list()
    assert (row["mean"], row["low"], row["high"]) == interval(some)[:]
    both = summarise(campaign, "flows.goodput_mbps", ["queue"]).filter(queue=50).row(0, named=True)
    assert both["n"] == 5, "the cells of one seed are one value"


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (
            "flows.throughput",
            "table flows has no column `throughput`; did you mean `goodput_mbps`?",
        ),
        ("flows.speed", "table flows has no column `speed`; did you mean `goodput_mbps`?"),
        ("flows.goodput_mbps@uplink", "flows has nothing named 'uplink'\n  available: "),
        ("pings.rtt_ms_p50", "the campaign has no rows in pings"),
        ("a.b.c", "`a.b.c` is not a figure\n  allowed: TABLE.COLUMN"),
    ],
)
def test_a_figure_that_is_not_there_is_said(
    campaign: airpath.Campaign, figure: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        values(campaign, figure)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("kind", ["lines", "heat", "cdf", "boxes"])
def test_charts_show_every_value_and_can_be_rendered(campaign: airpath.Campaign, kind: str) -> None:
    figure = draw(campaign, kind, "flows.goodput_mbps")
    (data,) = figure.data.values()
    drawn = rows(data)
    assert len(drawn) == {"lines": 8, "heat": 8, "cdf": 2 * 20, "boxes": 8}[kind]
    if kind != "cdf":
        means = summarise(campaign, "flows.goodput_mbps")["mean"]
        if kind != "boxes":
            assert sorted(row["v"] for row in drawn) == pytest.approx(sorted(means))
    svg = rendered(figure, "svg").decode()
    assert "Goodput" in svg
    assert "b/s" in svg
    assert "cubic" in svg
    assert svg.count("<path") > 8


def test_a_chart_can_be_of_some_cells(campaign: airpath.Campaign) -> None:
    figure = draw(campaign, "lines", "links.utilisation_fraction@down.0.link", where=["cc=reno"])
    assert len(rows(figure.data["cells"])) == 4
    with pytest.raises(InputError, match="`cd` was not varied"):
        draw(campaign, "lines", "flows.goodput_mbps", Places(x="cd"))
    with pytest.raises(InputError, match="`cd=1` is not a NAME=VALUE"):
        draw(campaign, "lines", "flows.goodput_mbps", where=["cd=1"])


def test_variants_are_compared_seed_by_seed(campaign: airpath.Campaign) -> None:
    found = airpath.compare(campaign, campaign, ["flows.goodput_mbps"], "cc", ("reno", "cubic"))
    assert found["queue"].to_list() == [20, 50, 100, 200]
    assert found["pairs"].to_list() == [5] * 4
    flows = campaign.table("flows").filter(queue=100).sort("seed")
    pair = [flows.filter(cc=cc)["goodput_mbps"].to_list() for cc in ("reno", "cubic")]
    change = [b - a for a, b in zip(*pair, strict=True)]
    row = found.filter(queue=100).row(0, named=True)
    assert (row["change"], row["low"], row["high"]) == pytest.approx(interval(change)[:])


def test_campaigns_are_compared_cell_by_cell(campaign: airpath.Campaign, tmp_path: Path) -> None:
    """A loss more often: goodput falls in every cell, and pairs tell."""
    other = {**SHORT, "set": [*SHORT["set"], "path.down.0.rate_mbps=2"]}
    airpath.sweep(other, out=tmp_path / "other", workers=2)
    found = airpath.compare(campaign.place, tmp_path / "other", ["flows.goodput_mbps"])
    assert len(found) == 8
    assert all(change < 0 for change in found["change"])
    same = airpath.compare(campaign.place, campaign.place, ["flows.goodput_mbps"])
    assert set(same["change"]) == {0.0}


def test_pairs_find_two_percent_in_real_runs(tmp_path: Path) -> None:
    """A link that is 2 % faster, behind random loss whose luck both share."""
    definition = {
        "scenario": "random-loss", "seeds": 20, "set": ["run.duration_s=10"],
        "vary": [{"key": "path.down.0.rate_mbps", "name": "rate", "values": [10.0, 10.2]}],
    }  # fmt: skip
    done = airpath.sweep(definition, out=tmp_path / "out", workers=2)
    figure = ["flows.rtt_ms_mean"]
    told = airpath.compare(done, done, figure, "rate").row(0, named=True)
    missed = airpath.compare(done, done, figure, "rate", pairs=False).row(0, named=True)
    assert told["low"] * told["high"] > 0, told
    assert missed["low"] * missed["high"] < 0, missed


def test_sensitivity_finds_the_key_that_decides(tmp_path: Path) -> None:
    definition = {
        "scenario": "wire", "set": ["run.duration_s=2"], "sampling": "saltelli", "samples": 128,
        "vary": [
            {"key": "path.down.0.rate_mbps", "name": "rate", "low": 1, "high": 20},
            {"key": "run.sample_interval_ms", "name": "nothing", "low": 100, "high": 200,
             "integer": True},
        ],
    }  # fmt: skip
    done = airpath.sweep(definition, out=tmp_path / "out", workers=2)
    found = sensitivity(done, "flows.goodput_mbps@download")
    totals = dict(zip(found["key"], found["total"], strict=True))
    assert totals["rate"] == pytest.approx(1, abs=0.1)
    assert totals["nothing"] == pytest.approx(0, abs=0.02)
    grid = airpath.sweep({"scenario": "wire", "seeds": 1}, out=tmp_path / "grid", workers=1)
    with pytest.raises(InputError, match='was sampled by "grid"'):
        sensitivity(grid, "flows.goodput_mbps")


def test_the_commands_answer(cli: Any, campaign: airpath.Campaign, tmp_path: Path) -> None:
    place = campaign.place
    code, out, _ = cli("query", "select count(*) as n from flows", place, "--format", "json")
    assert (code, json.loads(out)) == (0, [{"n": 40}])
    code, out, _ = cli("query", "select cc, queue from flows limit 2", place)
    assert out.split() == ["cc", "queue", "reno", "20", "reno", "20"]
    code, out, _ = cli("compare", place, "--axis", "cc=reno,cubic", "--format", "csv")
    assert out.splitlines()[0].startswith("scenario,queue,figure,of,pairs,before,after,change,low")
    code, _, err = cli("compare", place)
    told = "error: compare two campaigns, A B, or one campaign with --axis NAME=X,Y\n"
    assert (code, err) == (2, told)
    chart = tmp_path / "chart.html"
    code, _, err = cli("plot", place, "--kind", "heat", "-o", str(chart))
    assert (code, err) == (0, f"chart: {chart}\ndata: {chart}.csv\n")
    assert "viridis" in chart.read_text()
    code, _, err = cli("plot", place, "-o", str(tmp_path / "chart.gif"))
    assert code == 2
    assert "must end in .html, .svg, .png or .pdf" in err
    page = tmp_path / "page.html"
    code, _, err = cli("report", place, "-o", str(page))
    assert (code, err) == (0, f"report: {page}\n")
    text = page.read_text()
    assert "short runs" in text
    assert "40 runs (8 combinations x 5 seeds); varied: cc, queue." in text
    assert "there are no findings" in text
