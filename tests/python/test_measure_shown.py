"""What users see of a measurement afterwards: `airpath query` and the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath.campaign.query import query
from airpath.report import write_report
from airpath.runs.results import Run
from measured_runs import written
from test_measure_compare import figures, plan


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shown") / "run"
    return written(place, plan(), figures(queue=4))  # type: ignore[arg-type]


def test_query_has_findings_phases_and_effects(measured: Path) -> None:
    (first, *_) = query("select * from findings order by place", measured).to_dicts()
    assert (first["cause"], first["subject"]) == ("bufferbloat", "down")
    assert (first["gain_before"], first["gain_after"]) == (pytest.approx(160), pytest.approx(40))
    summary = Run.open(measured).summary["measured"]
    phases = query("select * from phases order by number", measured).to_dicts()
    assert [one["treatment"] for one in phases] == [one["treatment"] for one in summary["phases"]]
    steady = "select avg(steady_mbps) as mean from phases where kind = 'tcp'"
    assert query(steady, measured)["mean"][0] > 5
    effects = query("select * from effects where treatment = 'paced'", measured).to_dicts()
    rate = next(one for one in effects if one["metric"] == "steady_mbps")
    assert rate["low"] <= rate["factor"] <= rate["high"]
    assert rate["factor"] == pytest.approx(0.85)


def test_findings_of_runs_and_measurements_are_one_table(measured: Path) -> None:
    both = query("select source, count(*) as many from findings group by 1", measured, measured)
    assert both["many"][0] >= 2


def test_the_report_shows_effects_phases_and_causes(measured: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_report([Run.open(measured)], page)
    text = page.read_text()
    assert "What each treatment changed" in text
    assert "down, paced" in text
    assert "The phases" in text
    assert "bufferbloat" in text
    assert "This is the twin" in text
    assert "measure (real clock)" in text
    assert "There was no loss" not in text
    # Without samples there is nothing to draw.
    assert "What happened, over time" not in text
