"""Charts and pages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

import airpath
from airpath.base.text import digits
from airpath.base.toml import parse_toml
from airpath.errors import AirpathError
from airpath.plots import figures
from airpath.plots.theme import DARK, LIGHT, coloured
from airpath.plots.vega import nice_top, spread
from airpath.report import write_figures, write_report
from airpath.report.entries import tables
from airpath.report.render import library
from airpath.report.setup import given, parameters
from airpath.report.view import _title
from airpath.runs.results import Run
from conftest import DOWNLINK

NAME = DOWNLINK


class References(HTMLParser):
    """Everything in a page that could make a browser fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"src", "href", "srcset", "action", "data", "poster"} and value:
                self.found.append(value)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def external(page: str) -> list[str]:
    parser = References()
    parser.feed(page)
    style = " ".join(re.findall(r"<style>.*?</style>", page, re.DOTALL))
    urls = re.findall(r"url\([^)]*\)|@import", style)
    return urls + [value for value in parser.found if not value.startswith("data:")]


def written(path: Path, *runs: Run) -> str:
    write_report(runs, path)
    return path.read_text(encoding="utf-8")


def test_the_report_is_one_file_that_fetches_nothing(tmp_path: Path) -> None:
    page = written(tmp_path / "report.html", airpath.run(NAME))
    assert external(page) == []
    assert "default-src 'none'" in page
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_report_says_what_the_command_says(tmp_path: Path) -> None:
    run = airpath.run(NAME, {"flow.0.receive_buffer_bytes": 40_000}, explain="quick")
    page = written(tmp_path / "report.html", run)
    for words in ("download", "limited by the receive window", "receive-window", run.id, "seed 1"):
        assert words in page
    assert run.scenario_toml.splitlines()[0] in page.replace("&#34;", '"')


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    """Those that may be any text: a scenario's title, and the directories that are compared."""
    run = airpath.run(NAME, {"title": "</script><img src=x>"}, out=tmp_path / "<img src=y>")
    page = written(tmp_path / "report.html", run, airpath.run(NAME))
    assert external(page) == []
    assert "&lt;/script&gt;&lt;img src=x&gt;" in page
    assert "&lt;img src=y&gt;" in page
    assert "<img src=x>" not in page
    assert "<img src=y>" not in page


def test_runs_are_compared(tmp_path: Path) -> None:
    wide = airpath.run(NAME, out=tmp_path / "wide")
    narrow = airpath.run(NAME, {"flow.0.window_bytes": 20_000}, repeat=3, out=tmp_path / "narrow")
    page = written(tmp_path / "report.html", wide, narrow)
    assert "What differs" in page
    assert "Goodput by seed" in page
    assert page.count("The scenario with every default") == 2
    timeline = figures([wide, narrow])[0]
    assert '"wide"' in json.dumps(timeline.spec)
    assert '"narrow"' in json.dumps(timeline.spec)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (10.0, 11.2, "+12 %"), (10.0, 9.95, "-0.5 %"), (10.0, 91.0, "9.10 times"), (3, 3, "same"),
        (0, 4, "+4"), (4, 0, "-100 %"), (None, 4, ""),
    ],
)  # fmt: skip
def test_a_change_is_said_in_percent_or_times(before: Any, after: Any, text: str) -> None:
    from airpath.report.entries import _change

    assert _change(before, after) == text


def test_runs_are_named_by_what_differs(tmp_path: Path) -> None:
    """One or two keys; where more differs, or nothing, by their directories."""
    from airpath.plots.data import run_labels

    base = airpath.run("wire", {"run.duration_s": 1}, out=tmp_path / "base")
    bbr = {"run.duration_s": 1, "flow.0.congestion": "bbr"}
    slow = {**bbr, "path.down.0.rate_mbps": 2}
    other = airpath.run("wire", bbr, out=tmp_path / "other")
    third = airpath.run("wire", slow, out=tmp_path / "third")
    again = airpath.run("wire", slow, out=tmp_path / "again")
    far = {**slow, "path.up.0.delay_ms": 50, "flow.0.receive_buffer_bytes": 100_000}
    fourth = airpath.run("wire", far, out=tmp_path / "fourth")
    assert run_labels([base, other]) == ["cubic", "bbr"]
    assert run_labels([base, third]) == ["rate 10 Mb/s, cubic", "rate 2 Mb/s, bbr"]
    assert run_labels([third, again]) == ["third", "again"]
    assert run_labels([base, fourth]) == ["base", "fourth"]


def test_long_runs_are_downsampled_and_say_so(tmp_path: Path) -> None:
    run = airpath.run(NAME, {"run.sample_interval_ms": 2})
    assert run.samples.height == 10_000
    timeline = figures([run])[0]
    assert any("downsampled" in note for note in timeline.remarks)
    assert 1000 < len(timeline.data["flows"][0]["t"]) <= 3000
    page = written(tmp_path / "report.html", run)
    assert "downsampled" in page
    assert len(page) < 4_000_000


def test_short_runs_are_not_downsampled() -> None:
    assert not any("downsampled" in note for note in figures([airpath.run(NAME)])[0].remarks)


def test_many_flows_do_not_bloat() -> None:
    from airpath.scenario import parse

    text = Path(NAME).read_text(encoding="utf-8")
    flow = text.partition('[[flow]]\nid = "download"')[2].partition("[[flow]]")[0]
    more = "".join(f'[[flow]]\nid = "more-{index}"{flow}' for index in range(29))
    run = airpath.run(parse(text + more, "many"))
    timeline = figures([run])[0]
    assert "more flows, which the charts leave out" in " ".join(timeline.remarks)
    assert len(json.dumps([timeline.spec, timeline.data])) < 2_000_000


def test_every_chart_says_how_to_read_it_and_has_units() -> None:
    run = airpath.run(NAME, repeat=3)
    made = figures([run])
    assert [figure.id for figure in made] == ["timeline", "seeds", "rtt", "links"]
    for figure in made:
        assert len(figure.how_to_read) > 40
        text = json.dumps(figure.spec)
        assert re.search(r'"title": "[^"]*(Mb/s|\(ms\)|\(s\))', text)
        assert "http" not in text


def test_one_zoom_for_all_panels() -> None:
    spec = figures([airpath.run(NAME)])[0].spec
    assert len(spec["vconcat"]) == 4
    assert spec["resolve"]["scale"]["x"] == "shared"
    zoom = next(param for param in spec["params"] if param["name"] == "zoom")
    assert len(zoom["views"]) == 4


def test_themes_have_the_same_colours_and_leave_no_token() -> None:
    assert LIGHT.keys() == DARK.keys()
    for theme in (LIGHT, DARK):
        for figure in figures([airpath.run(NAME)]):
            assert "var(" in json.dumps(figure.spec)
            assert "var(" not in json.dumps(coloured(figure.spec, theme))


def test_charts_share_their_data(tmp_path: Path) -> None:
    """The queue of the timeline and the chart of the links are drawn from one table."""
    run = airpath.run(NAME)
    timeline, _, links = figures([run])
    assert timeline.data["links"] is links.data["links"]
    page = written(tmp_path / "report.html", run)
    charts = re.findall(r'id="charts">(.*?)</script>', page, re.DOTALL)
    assert charts[0].count('"capacity_mbps":[') == len(run.summary["links"])


def test_a_report_needs_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own Vega draws; it has been put together once and for all."""
    assert "window.vegaEmbed" in library()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert "window.vegaEmbed" in written(tmp_path / "report.html", airpath.run(NAME))


def test_without_scripts_there_are_tables(tmp_path: Path) -> None:
    run = airpath.run(NAME, repeat=3)
    page = written(tmp_path / "report.html", run).replace("<wbr>", "")
    assert ".live .still { display: none; }" in page
    for figure in figures([run]):
        assert len(figure.table.rows) >= 2, figure.id
        assert {len(row) for row in figure.table.rows} == {len(figure.table.heads)}
        assert all(f">{cell}</td>" in page for cell in figure.table.rows[-1])
    goodput = [float(row[2]) for row in figures([run])[0].table.rows if row[0] == "download"]
    assert sum(goodput) / len(goodput) == pytest.approx(
        run.flows.filter(flow="download", seed=1)["goodput_mbps"][0], rel=0.02
    )


@pytest.mark.parametrize(
    ("name", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")]
)
def test_figures_for_papers(tmp_path: Path, name: str, start: bytes) -> None:
    paths = write_figures([airpath.run(NAME)], tmp_path / "figures", [name])
    assert [path.name for path in paths] == [f"{i}.{name}" for i in ("timeline", "rtt", "links")]
    assert all(path.read_bytes().startswith(start) for path in paths)


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(self: Path, *_: Any, **__: Any) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    run = airpath.run(NAME)
    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(AirpathError, match="No space left"):
        write_report([run], path)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_labels_move_apart() -> None:
    placed = spread([(50.0, "a"), (51.0, "b"), (119.0, "c"), (120.0, "d")], 13.0, 120.0)
    ys = [y for y, _ in placed]
    assert all(later - earlier >= 13.0 for earlier, later in pairwise(ys))
    assert max(ys) <= 120.0


@pytest.mark.parametrize(
    ("value", "top"),
    [(0, 1), (0.045, 0.05), (0.97, 1), (1.0, 1.2), (1.3, 1.5), (9.9, 12), (97, 100), (1234, 1500)],
)
def test_axes_end_at_round_numbers(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def cells(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table after a heading."""
    table = page.partition(f"<h2>{heading}</h2>")[2].partition("</table>")[0]
    rows = table.replace("\n", "").split("<tr>")[1:]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_runs_of_different_scenarios_are_titled_by_them() -> None:
    labels = [f"run-{number}" for number in range(5)]
    assert _title(["A wire"], labels[:1]) == "A wire"
    assert _title(["A wire"], labels[:2]) == "A wire: run-0 against run-1"
    assert _title(["A wire"], labels) == "A wire: 5 runs"
    assert _title(["A wire", "A radio"], labels[:2]) == "A wire against A radio"
    assert _title(["A wire", "A radio"], labels) == "A wire against A radio: 5 runs"
    assert _title(["A wire", "A radio", "B", "C"], labels) == "A wire against 3 other scenarios"


def test_a_comparison_begins_with_its_results(tmp_path: Path) -> None:
    one = airpath.run("two-flows", {"run.duration_s": 20}, out=tmp_path / "one")
    sets = {"run.duration_s": 20, "flow.1.congestion": "cubic"}
    two = airpath.run("two-flows", sets, repeat=2, out=tmp_path / "two")
    page = written(tmp_path / "report.html", one, two)
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings[:3] == ["Results", "What happened, over time", "What differs"]
    head, *rows = cells(page, "Results")
    assert head == ["", "reno", "cubic", "change"]
    assert "reno against cubic</h1>" in page
    found = {name: values for name, *values in rows}
    for name in ("cubic: goodput", "reno: RTT, median", "reno: time-outs (RTO)"):
        assert len(found[name]) == 3
    assert "±" not in found["cubic: goodput"][0]
    assert "±" in found["cubic: goodput"][1]
    jain = one.summary["fairness"][0]["jain_index"]
    assert found["down: Jain&#39;s index"][0] == digits(jain)
    assert cells(page, "What differs")[1][0] == "flow.1.<wbr>congestion"


def test_how_fairly_flows_share_stands_first(tmp_path: Path) -> None:
    run = airpath.run("two-flows", {"run.duration_s": 20})
    page = written(tmp_path / "report.html", run)
    first = page.partition("<h2>")[0]
    index = digits(run.summary["fairness"][0]["jain_index"])
    assert f"Jain&#39;s index {index} over 2 flows" in first


def test_many_entries_are_rows() -> None:
    run = airpath.run("handover", {"run.duration_s": 1})
    shown = {table.heads[0]: table for table in tables(run)}
    assert shown["links"].heads[1:] == ["radio.ue-0.down", "radio.ue-0.up"]
    few = run.summary["flows"]
    run.summary["flows"] = [few[0] | {"id": f"flow-{index}"} for index in range(9)]
    assert [row[0] for row in tables(run)[0].rows] == [f"flow-{index}" for index in range(9)]


@pytest.mark.parametrize("name", ["bufferbloat", "nr-n78", "handover", "trace-driven", "proxy"])
def test_a_scenario_without_its_defaults_means_the_same(name: str) -> None:
    from airpath.scenario import load, parse

    scenario = load(name)
    short = given(scenario.resolved_toml) + "\n"
    assert parse(short, "short").resolved_toml == scenario.resolved_toml
    assert len(short.splitlines()) < len(scenario.resolved_toml.splitlines()) / 3
    lines = [line for line in short.splitlines() if line and not line.startswith("[")]
    for line in lines:
        try:
            other = parse(short.replace(f"{line}\n", "", 1), "short").resolved_toml
        except AirpathError:
            continue
        assert other != scenario.resolved_toml, f"{line} could go"


def test_a_scenario_that_cannot_be_read_again_is_shown_whole() -> None:
    toml = '[[path.down]]\nstage = "link"\nfile = "gone.trace"\n'
    assert given(toml) == toml


def test_the_receive_window_is_drawn_with_cwnd() -> None:
    limited = airpath.run("small-window")
    windows = limited.samples["receive_window_segments"].drop_nulls()
    assert windows.max() == 65_536 // 1448
    timeline = figures([limited])[0]
    cwnd = next(panel for panel in timeline.spec["vconcat"] if "cwnd" in panel["title"])
    drawn = [layer["encoding"].get("y", {}).get("field") for layer in cwnd["layer"]]
    assert "receive_window_segments" in drawn
    assert max(timeline.data["flows"][0]["receive_window_segments"]) == 65_536 // 1448
    assert not any("receive window" in note for note in timeline.remarks)
    wide = figures([airpath.run("bufferbloat")])[0]
    assert any("the receive window of 11,586 segments" in note for note in wide.remarks)


def test_the_distribution_has_both_edges_of_every_bucket() -> None:
    run = airpath.run("bufferbloat", {"run.duration_s": 20})
    rtt = next(figure for figure in figures([run]) if figure.id == "rtt")
    for series, density in zip(rtt.data["rtt"], rtt.data["density"], strict=True):
        histogram = run.rtt_histogram.filter(flow=series["s"]).sort("low_ms")
        assert series["rtt"][::2] == pytest.approx(histogram["low_ms"].to_list(), abs=1e-4)
        assert series["rtt"][1::2] == pytest.approx(histogram["high_ms"].to_list(), abs=1e-4)
        # Level from the upper edge of one bucket to the lower edge of the next.
        assert series["share"][0] == 0
        assert series["share"][1:-1:2] == series["share"][2::2]
        assert series["share"][-1] == 1
        assert sum(density["share"]) == pytest.approx(1, abs=1e-3)


def test_samples_of_one_value_are_one_step() -> None:
    """Where they were joined by a line, 160 equal pings looked like a spread."""
    steady = airpath.run("wire", {"run.duration_s": 5})
    rtt = next(figure for figure in figures([steady]) if figure.id == "rtt")
    for series in rtt.data["rtt"]:
        half = next(i for i, share in enumerate(series["share"]) if share >= 0.5)
        assert series["rtt"][half] / series["rtt"][half - 1] < 1.01


def test_what_was_run_names_cells_and_how_ues_move() -> None:
    def items(toml: str) -> list[str]:
        tables: Any = parse_toml(toml)
        return dict(parameters(tables, tables)).get("radio", [])

    alone = '[radio]\nname = "west"\npreset = "lte-20"\n[[radio.ue]]\nname = "phone"\n'
    more = "[[radio.ue]]\ncount = 3\n[radio.ue.drx]\nenabled = true\n"
    beside = '[[radio.neighbour]]\nname = "leg"\npreset = "nr-n78"\n'
    assert items(alone) == ["lte-20", "1 UE"]
    assert items(alone + more) == ["lte-20", "4 UEs", "DRX"]
    cells = ["west: lte-20", "leg: nr-n78", "1 UE"]
    assert items(alone + beside + "[radio.mobility]\na3 = true\n") == [*cells, "event A3"]
    planned = '[[radio.handover]]\nat_s = 1\nto = "leg"\n'
    assert items(alone + beside + planned) == [*cells, "1 planned handover"]
    outage = "[[radio.outage]]\nat_s = 1\nduration_s = 2\n"
    off = outage + "enabled = false\n"
    assert items(alone + outage + outage + off) == ["lte-20", "1 UE", "2 cell outages"]
    assert items(alone + off) == ["lte-20", "1 UE"]
    assert items("[run]\nduration_s = 1\n") == []


def test_what_was_run_is_what_is_no_default() -> None:

    def rows_of(scenario: str, sets: Mapping[str, object] | None = None) -> dict[str, list[str]]:
        toml = airpath.load(scenario, sets).resolved_toml
        whole, short = cast("Any", (parse_toml(toml), parse_toml(given(toml))))
        return dict(parameters(whole, short))

    rows = rows_of("bufferbloat")
    assert rows["down"] == ["link: rate 2 Mb/s, queue 500 packets", "delay: 25 ms"]
    assert rows["download"] == ["bulk"]
    assert rows["ping"] == ["ping: interval 200 ms"]
    window = {"flow.0.receive_buffer_bytes": 65536}
    assert rows_of("bufferbloat", window)["download"] == ["bulk: receive buffer 64 KiB"]
    # A preset's own values are defaults; the radio is named by what it has.
    assert rows_of("nr-drx")["radio"] == ["nr-private-drx", "1 UE", "DRX"]


def test_goodput_beyond_the_link_is_explained() -> None:
    """Data after a lost packet reaches the application at once; the grey area is the link."""
    sets = {"path.down.0.queue_packets": 60, "run.duration_s": 30}
    run = airpath.run("bufferbloat", sets)
    timeline = figures([run])[0]
    above = any("after a lost packet" in text for text in timeline.remarks)
    goodput = max(
        value for flow in timeline.data["flows"] for value in flow.get("smooth", []) if value
    )
    assert above
    assert goodput > run.summary["links"][0]["capacity_mbps"]
    panel = timeline.spec["vconcat"][0]
    assert panel["layer"][0]["data"] == {"name": "links"}
    assert "grey is what the busiest link carried" in panel["title"]
    quiet = figures([airpath.run("wire", {"run.duration_s": 1})])[0]
    assert not any("after a lost packet" in text for text in quiet.remarks)
