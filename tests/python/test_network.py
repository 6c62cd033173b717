"""The pictures of a network: topology and rates, on the status page and in the report."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import scenario as scenarios
from airpath.emulation.oam import inventory
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.inventory import Outage
from airpath.emulation.oam.monitoring import new_status
from airpath.emulation.oam.rates import MOST_POINTS, MOST_UES
from airpath.emulation.oam.status import Status
from airpath.network import Cell, Core, Curve, Ue, curves, picture
from airpath.network.curves import nice_top
from airpath.report.network import network
from test_status import SESSION, _at

SVG = "{http://www.w3.org/2000/svg}"


def _parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def _texts(svg: ET.Element) -> list[str]:
    return [one.text or "" for one in svg.iter(f"{SVG}text")]


def _boxes(svg: ET.Element) -> dict[str, tuple[float, float]]:
    """Where each box is, by its name and state."""
    found = {}
    for box in svg.iter(f"{SVG}g"):
        title, rect = box.find(f"{SVG}title"), box.find(f"{SVG}rect")
        assert title is not None
        assert rect is not None
        found[title.text or ""] = (float(rect.attrib["x"]), float(rect.attrib["y"]))
    return found


CELLS = [Cell("west", "active"), Cell("east", "out of service", works=False)]
UES = [Ue("phone", "west", "connected"), Ue("meter", "east", "idle", linked=False)]


def test_a_picture_has_ues_cells_and_core() -> None:
    svg = _parsed(picture(CELLS, UES, Core("core", "2 sessions")))
    boxes = _boxes(svg)
    assert set(boxes) == {
        "phone: connected", "meter: idle", "west: active", "east: out of service",
        "core: 2 sessions",
    }  # fmt: skip
    # UEs are at the left, in the row of their cell; the core is at the right.
    assert boxes["phone: connected"][0] < boxes["west: active"][0] < boxes["core: 2 sessions"][0]
    assert boxes["phone: connected"][1] == boxes["west: active"][1]
    assert boxes["meter: idle"][1] == boxes["east: out of service"][1] > boxes["west: active"][1]
    # A line for each UE and each cell; those that carry nothing are dashed.
    kinds = [line.attrib["class"] for line in svg.iter(f"{SVG}line")]
    assert kinds == ["", "off", "", "off"]


def test_a_screen_reader_gets_the_picture_in_words() -> None:
    svg = _parsed(picture(CELLS, [*UES, Ue("new", None, "attaching")], Core("server", "")))
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == (
        "Network. server. Cell west: active, with phone (connected). "
        "Cell east: out of service, with meter (idle). Without a cell: new (attaching)."
    )


def test_many_ues_are_counted_and_long_names_are_cut() -> None:
    ues = [Ue(f"a-telephone-of-number-{number}", "west", "connected") for number in range(30)]
    svg = _parsed(picture([Cell("west", "active")], ues, Core("core", "30 sessions")))
    assert "and 18 more UEs" in _boxes(svg)
    assert "a-telephone-of…" in [text[:14] + "…" for text in _texts(svg) if text.endswith("…")]
    assert max(map(len, _texts(svg))) <= 15
    assert len(_boxes(svg)) == 12 + 3


def test_names_are_escaped() -> None:
    bad = '"><script>alert(1)</script>&'
    svg = _parsed(picture([Cell(bad, bad)], [Ue(bad, bad, bad)], Core(bad, bad)))
    assert not list(svg.iter(f"{SVG}script"))
    assert bad in svg.attrib["aria-label"]
    (svg,) = _parsed(f"<x>{curves([Curve(bad, [0.0], ([1.0], [0.0]))])}</x>")
    assert _texts(svg)[0] == bad


def test_a_curve_says_its_scale_and_its_end() -> None:
    (svg,) = _parsed(f"<x>{curves([Curve('cell west', [0, 1, 2], ([0, 30, 15], [0, 1, 2]))])}</x>")
    assert _texts(svg) == ["cell west", "50", "0", "0 s", "2 s"]
    assert svg.attrib["aria-label"] == (
        "cell west, Mb/s over time: down 15.00 at the end, at most 30.00; "
        "up 2.00 at the end, at most 2.00"
    )
    down, up = (one.attrib["points"].split() for one in svg.iter(f"{SVG}polyline"))
    assert (len(down), len(up)) == (3, 3)
    heights = [float(point.split(",")[1]) for point in down]
    # 30 of 50 is twice as high over the axis as 15.
    assert heights[0] - heights[1] == pytest.approx(2 * (heights[0] - heights[2]), abs=0.2)
    assert curves([]) == ""


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.03, 0.05), (1, 1), (1.1, 2), (20, 20), (21, 50), (99, 100)]
)
def test_axes_end_at_round_numbers(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


@pytest.fixture
def status(core: Any) -> Status:
    return Status(scenarios.load("handover"), Alarms(0.0005))


def test_the_status_page_has_both(status: Status) -> None:
    assert status.document()["curves"] == ""
    for second in range(4):
        status.update(_at(float(second), second, rrc="connected" if second < 3 else "handover"))
    document = status.document()
    label = _parsed(document["picture"]).attrib["aria-label"]
    assert "Cell west: active, with ue-0 (handover)." in label
    assert "Cell east: idle, with no UE." in label
    names = [_texts(svg)[0] for svg in _parsed(f"<x>{document['curves']}</x>")]
    assert names == ["whole path", "cell west", "cell east", "UE ue-0"]
    # 1 MB in each second down, a tenth of it up.
    labels = [svg.attrib["aria-label"] for svg in _parsed(f"<x>{document['curves']}</x>")]
    assert "down 8.00 at the end, at most 8.00; up 0.80 at the end" in labels[1]
    assert "down 0.00 at the end" in labels[2]
    assert labels[3].partition(",")[2] == labels[1].partition(",")[2]


OUTAGE = """
[[radio.outage]]
at_s = 2
duration_s = 1
cell = "east"

[[radio.outage]]
at_s = 10
duration_s = 5
"""


def test_a_cell_out_of_service_is_drawn_so(core: Any, tmp_path: Path) -> None:
    text = dict(core.shipped())["handover"]
    (tmp_path / "out.toml").write_text(text + OUTAGE)
    scenario = scenarios.load(tmp_path / "out.toml")
    assert inventory.outages(scenario) == [
        Outage("east", 2, 3),
        Outage("west", 10, 15),
        Outage("east", 10, 15),
    ]
    known = new_status(scenario)
    for time_s, states in ((1.0, "idle"), (2.0, "out of service"), (3.0, "idle")):
        known.update(_at(time_s, int(time_s)))
        assert known.document()["cells"][1]["state"] == states
        svg = _parsed(known.document()["picture"])
        assert f"Cell east: {states}" in svg.attrib["aria-label"]
        alarms = [alarm["name"] for alarm in known.document()["alarms"]]
        assert alarms == ["cell_out_of_service"] * (states != "idle")


@pytest.mark.parametrize(
    "failures",
    ["", "[radio.link_adaptation]\nfixed_bler = 0.1\n"],
    ids=["by the channel", "at a fixed rate"],
)
def test_nothing_arrives_from_a_cell_out_of_service(
    core: Any, failures: str, tmp_path: Path
) -> None:
    """A UE without another cell has nothing meanwhile, and all of its rate before and after."""
    text = f"""
[run]
duration_s = 9
[radio]
preset = "lte-20"
[[radio.outage]]
at_s = 3
duration_s = 2
{failures}[radio.mobility]
link_failure = false
[[flow]]
kind = "udp"
rate_mbps = 10
"""
    (tmp_path / "out.toml").write_text(text)
    run = airpath.run(tmp_path / "out.toml")
    down = run.radio.filter(pl.col("direction").cast(pl.String) == "down")
    seconds = down["time_ns"] / 1e9
    during = down.filter((seconds > 3.2) & (seconds <= 5.0))
    before = down.filter((seconds > 1.0) & (seconds <= 3.0))
    after = down.filter(seconds > 8.0)
    assert during["throughput_mbps"].max() == 0
    assert before["throughput_mbps"].mean() == pytest.approx(10, rel=0.05)
    assert after["throughput_mbps"].mean() == pytest.approx(10, rel=0.05)


def test_points_and_curves_have_a_bound(status: Status) -> None:
    for number in range(2 * MOST_POINTS):
        status.update(_at(1.0 + number / 2, number))
    (first, *_) = _parsed(f"<x>{status.document()['curves']}</x>")
    down = next(first.iter(f"{SVG}polyline"))
    assert len(down.attrib["points"].split()) == MOST_POINTS
    assert _texts(first)[-2:] == ["1 s", f"{MOST_POINTS} s"]


def test_the_core_has_its_pool_and_sessions(core: Any, tmp_path: Path) -> None:
    known = Status(scenarios.load("lte-private"), Alarms(0.0005))
    document = known.document()["core"]
    assert document is not None
    assert (document["access"], document["addresses"], document["in_use"]) == ("lte", 253, 0)
    known.attached([SESSION])
    document = known.document()["core"]
    assert document is not None
    assert document["in_use"] == 1
    sessions: Any = document["sessions"]
    assert [session["address"] for session in sessions] == ["10.45.0.2"]
    assert not {"key", "opc"} & set(sessions[0])
    assert Status(scenarios.load("wire"), Alarms(0.0005)).document()["core"] is None


def test_the_report_shows_the_same(core: Any, tmp_path: Path) -> None:
    run = airpath.run("handover", set={"run.duration_s": 20}, out=tmp_path / "run")
    drawn = network(run)
    assert drawn is not None
    boxes = _boxes(_parsed(drawn.picture))
    mean = run.radio["throughput_mbps"].sum() / run.radio["time_ns"].n_unique()
    assert f"ue-0: {mean:.1f} Mb/s" in boxes
    svgs = list(_parsed(f"<x>{drawn.curves}</x>"))
    assert [_texts(svg)[0] for svg in svgs] == ["cell west", "cell east", "UE ue-0"]
    assert _texts(svgs[0])[-1] == "20 s"
    most = [float(re.findall(r"at most ([\d.]+)", svg.attrib["aria-label"])[0]) for svg in svgs]
    assert most[2] == max(most[:2])
    from airpath.report import write_report

    write_report([run], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert drawn.picture in page
    assert drawn.curves in page
    assert network(airpath.run("wire")) is None


def test_ues_without_traffic_are_drawn_and_many_have_no_curve(core: Any, tmp_path: Path) -> None:
    ues = [f'[[radio.ue]]\nname = "u{number}"\n' for number in range(11)]
    flows = [f'[[flow]]\nkind = "ping"\nue = "u{number}"\n' for number in range(10)]
    text = '[run]\nduration_s = 2\n[radio]\npreset = "lte-20"\n'
    (tmp_path / "many.toml").write_text(text + "".join([*ues, *flows]))
    drawn = network(airpath.run(tmp_path / "many.toml"))
    assert drawn is not None
    boxes = _boxes(_parsed(drawn.picture))
    assert "u10: no traffic" in boxes
    assert "u9: 0.0 Mb/s" in boxes
    names = [_texts(svg)[0] for svg in _parsed(f"<x>{drawn.curves}</x>")]
    assert len(names) == 1 + MOST_UES
    assert drawn.left_out == 10 - MOST_UES
