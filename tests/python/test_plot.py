"""Charts for papers: ``airpath plot`` and ``airpath.plot``."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.campaign.summaries import summarise
from airpath.errors import InputError
from airpath.plots import vega
from airpath.plots.figure import rows
from airpath.plots.paper import Paper

MIXED: dict[str, Any] = {
    "scenario": ["random-loss", "two-flows", "wire"],
    "seeds": 2,
    "set": ["run.duration_s=0.5"],
    "vary": [{"key": "flow.0.congestion", "name": "cc", "values": ["cubic", "bbr"]}],
}
"""Scenarios whose flows have different names, one of which depends on what is varied."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> airpath.Campaign:
    return airpath.sweep(MIXED, out=tmp_path_factory.mktemp("campaign") / "mixed", workers=1)


def test_mixed_scenarios_have_a_panel_each_with_their_first_flow(mixed: airpath.Campaign) -> None:
    chart: Any = mixed.plot()
    drawn = rows(chart.data["cells"])
    assert [(row["panel"], row["x"]) for row in drawn] == [
        (scenario, cc) for scenario in MIXED["scenario"] for cc in ("cubic", "bbr")
    ]
    first = mixed.flows.filter(scenario="two-flows", cc="bbr").sort("run")
    name = first["flow"][0]
    mean = first.filter(flow=name)["goodput_mbps"].mean()
    assert drawn[3]["v"] == pytest.approx(mean)
    assert chart.spec["resolve"]["scale"] == {"y": "independent"}
    [remark] = chart.remarks
    assert "TABLE.COLUMN@NAME shows" in remark
    named: Any = mixed.plot(figure=f"flows.goodput_mbps@{name}")
    assert named.remarks == ()


def test_categories_are_not_joined_and_numbers_are(mixed: airpath.Campaign) -> None:
    def marks(chart: Any) -> set[str]:
        every = vega.views(chart.spec)
        return {view["mark"]["type"] for view in every if isinstance(view.get("mark"), dict)}

    assert marks(mixed.plot()) == {"point", "rule"}
    assert "line" in marks(mixed.plot("cdf"))


def test_a_chart_is_as_wide_as_the_column_of_a_paper(
    mixed: airpath.Campaign, cli: Any, tmp_path: Path
) -> None:
    chart = tmp_path / "chart.svg"
    options = ["--where", "scenario=wire", "--order", "cc=bbr", "--font", "DejaVu Serif 7pt",
               "--title", "A <title>", "--ylabel", "rate", "--xlabel", "control", "--log", "y",
               "--legend", "none", "--width", "84mm", "--height", "50 mm"]  # fmt: skip
    code, _, err = cli("plot", mixed.place, *options, "--spec", "-o", str(chart))
    data, spec = (chart.with_name(f"{chart.name}{end}") for end in (".csv", ".vl.json"))
    assert (code, err) == (0, f"chart: {chart}\ndata: {data}\nspecification: {spec}\n")
    text = chart.read_text()
    size = re.search(r'width="([\d.]+)mm" height="([\d.]+)mm"', text)
    assert size
    assert float(size[1]) == pytest.approx(84)
    assert float(size[2]) == pytest.approx(50, abs=0.5)
    for said in ("A &lt;title&gt;", "rate", "control", "DejaVu Serif", "Mb/s"):
        assert said in text
    table = list(csv.DictReader(data.read_text().splitlines()))
    assert [row["cc"] for row in table] == ["bbr", "cubic"]
    means = summarise(mixed, "flows.goodput_mbps@download").filter(scenario="wire")
    by_name = dict(zip(means["cc"], means["mean"], strict=True))
    assert [float(row["goodput_mbps"]) for row in table] == [by_name[row["cc"]] for row in table]
    written = json.loads(spec.read_text())
    assert written["datasets"]["cells"][0]["x"] == "bbr"
    assert "var(--" not in spec.read_text()


def test_a_font_that_is_not_there_is_replaced_by_one_that_is(
    mixed: airpath.Campaign, cli: Any, tmp_path: Path
) -> None:
    charts = [tmp_path / name for name in ("a.png", "b.png", "c.png")]
    said = [
        cli("plot", mixed.place, "--where", "scenario=wire", *font, "-o", str(chart))[2]
        for chart, font in zip(
            charts, (["--font", "Nobody Has This"], [], ["--font", "DejaVu Serif"]), strict=True
        )
    ]
    assert said[0].startswith(
        "The font Nobody Has This is not installed; a PDF or PNG uses another one"
    )
    assert not any("not installed" in one for one in said[1:])
    replaced, standard, serif = (chart.read_bytes() for chart in charts)
    assert replaced == standard != serif


def test_two_charts_with_one_stem_keep_their_data(
    mixed: airpath.Campaign, cli: Any, tmp_path: Path
) -> None:
    for end, figure in (("svg", "flows.goodput_mbps"), ("html", "flows.rtt_ms_p95")):
        options = ["--figure", figure, "-o", str(tmp_path / f"chart.{end}")]
        assert cli("plot", mixed.place, *options)[0] == 0
    heads = [(tmp_path / f"chart.{end}.csv").read_text().splitlines()[0] for end in ("svg", "html")]
    assert heads[0] != heads[1]


def test_a_run_has_the_charts_of_its_report(tmp_path: Path) -> None:
    run = airpath.run("wire", {"run.duration_s": 1}, out=tmp_path / "run")
    chart = airpath.plot(tmp_path / "run", width="84mm")
    assert chart.title == run.plot("timeline").title
    pdf, data = chart.save(tmp_path / "chart.pdf")
    box = re.search(rb"MediaBox \[0 0 ([\d.]+) ", pdf.read_bytes())
    assert box
    assert float(box[1]) == pytest.approx(84 / 25.4 * 72, abs=0.01)
    assert data.read_text().startswith("data,s,")
    assert chart._repr_html_().startswith("<img alt=")
    with pytest.raises(InputError, match="--kind lines: for this run, choose "):
        run.plot("lines")
    with pytest.raises(InputError, match="no run or campaign nothing"):
        airpath.plot("nothing")
    with pytest.raises(InputError, match="figure is for the charts of a campaign"):
        airpath.plot(run, figure="flows.goodput_mbps")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"width": "84"}, "width is '84', but must be a length such as 84mm"),
        ({"width": "1mm"}, "from 20 mm to 2 m"),
        ({"font": "<x>"}, "font is '<x>', but must be like"),
        ({"font": "Times 800pt"}, "sizes are from 3 to 72 pt"),
        ({"log": "z"}, "log is 'z', but must be one of x, y, xy"),
        ({"legend": "up"}, "legend is 'up', but must be one of top,"),
        ({"kind": "pie"}, "--kind pie: for a campaign, choose lines, heat, cdf or boxes"),
        ({"log": "x"}, "log is x: the x axis of this chart has no numbers"),
        ({"order": ["cc=reno"]}, "--order cc=reno: no run has cc=reno\n  available: cubic, bbr"),
        ({"where": ["cc=reno"]}, "no run has cc=reno\n  available: cubic, bbr"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(
    mixed: airpath.Campaign, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        mixed.plot(**wrong)
    assert message in str(caught.value)


def test_a_chart_that_has_no_room_says_so(mixed: airpath.Campaign) -> None:
    chart: Any = mixed.plot("boxes", where=["scenario=wire"])
    with pytest.raises(InputError, match="the labels of this chart need more than 20 mm"):
        Paper(width="20mm", font="30pt").applied(chart)
