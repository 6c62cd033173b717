"""Where the time goes: from the core to the terminal, the document and the report."""

import json
import math
import re
from itertools import pairwise
from typing import Any

import pytest

import airpath
from airpath.plots import figures
from airpath.plots.figure import rows
from airpath.runs import describe

SHORT = {"run.duration_s": 5}


@pytest.fixture(scope="module", name="run")
def explained() -> airpath.Run:
    return airpath.run("lte-20", set=SHORT, explain="quick")


def test_parts_sum_to_what_the_run_measured(run: airpath.Run) -> None:
    flows = {flow["id"]: flow for flow in run.summary["flows"]}
    breakdowns = run.summary["breakdowns"]
    assert [each["id"] for each in breakdowns] == ["download", "upload"]
    for each in breakdowns:
        times, rates = each["rtt_ms"], each["goodput_mbps"]
        measured = flows[each["id"]]["rtt_ms"]
        assert times
        assert rates
        assert measured
        assert math.isclose(sum(part["ms"] for part in times["parts"]), times["mean"])
        assert math.isclose(times["mean"], measured["mean"], rel_tol=0.01)
        lost = sum(part["mbps"] for part in rates["parts"])
        assert math.isclose(rates["goodput"] + lost, rates["capacity"])
        assert rates["goodput"] == flows[each["id"]]["goodput_mbps"]
        assert rates["place"] == ("radio.near.down" if each["id"] == "download" else "radio.far.up")


def test_the_terminal_shows_them_below_the_answer(cli: Any) -> None:
    code, out, _ = cli("run", "wire", "--set", "run.duration_s=5", "--out", "here")
    assert code == 0
    lines = out.splitlines()
    answered = next(i for i, line in enumerate(lines) if line.startswith("bottleneck: "))
    capacity = next(i for i, line in enumerate(lines) if line.startswith("capacity for download, "))
    rtt = next(i for i, line in enumerate(lines) if line.startswith("RTT of download, "))
    assert answered < capacity < rtt
    assert lines[rtt + 1].split()[0] == "propagation"
    assert "40 ms" in lines[rtt + 1]
    assert any(line.startswith("  queue (down.0.link) ") for line in lines[rtt:])


def test_nobody_asked_nothing_is_said(cli: Any) -> None:
    code, out, _ = cli("run", "wire", "--set", "run.duration_s=5", "--explain", "off", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["breakdowns"] == []
    assert describe.breakdowns(document) == []


def test_many_flows_are_not_told_at_length(run: airpath.Run) -> None:
    one = run.summary["breakdowns"][0]
    lines = describe.breakdowns({**run.summary, "breakdowns": [one] * 5})
    assert lines[-1] == "--json has 2 more breakdowns"


def test_the_report_draws_a_bar_for_each(run: airpath.Run) -> None:
    figure = next(each for each in figures([run]) if each.id == "breakdown")
    totals: dict[str, float] = {}
    for series in figure.data["breakdown"]:
        totals[series["bar"]] = totals.get(series["bar"], 0.0) + series["v"][0]
    assert list(totals) == [
        "capacity for download", "RTT of download", "capacity for upload", "RTT of upload",
    ]  # fmt: skip
    assert all(math.isclose(total, 100, abs_tol=0.5) for total in totals.values()), totals
    assert not any(each.id == "breakdown" for each in figures([airpath.run("wire", set=SHORT)]))


def test_each_part_has_its_name_its_amount_and_its_place_in_the_whole() -> None:
    run = airpath.run("bufferbloat", {"run.duration_s": 5}, explain="quick")
    chart = figures([run])[0]
    assert chart.id == "breakdown"
    found = rows(chart.data["breakdown"])
    for name in {row["bar"] for row in found}:
        parts = [row for row in found if row["bar"] == name]
        assert parts[0]["from"] == 0
        assert all(one["to"] == two["from"] for one, two in pairwise(parts))
        assert parts[-1]["to"] == pytest.approx(100, abs=1)
    queue = next(row for row in found if row["bar"] == "RTT of download" and "queue" in row["s"])
    assert re.fullmatch(r"\d+ ms, \d+ %", queue["text"])


def test_figures_of_a_simulation_of_an_emulated_run_are_marked() -> None:
    """A recorded run is explained by simulations of it; a simulated one by itself."""
    run = airpath.run("bufferbloat", {"run.duration_s": 5}, explain="quick")
    finding: Any = run.findings[0]
    said = describe.answer(run.summary)
    assert not any("re-simulated" in line for line in [*said, *describe.breakdowns(run.summary)])
    emulated: Any = {**run.summary, "emulation": {"scenario_flows": False}}
    said = describe.answer(emulated)
    assert any("before (re-simulated)" in line for line in said)
    assert any("with the advice (re-simulated)" in line for line in said)
    tables = [line for line in describe.breakdowns(emulated) if line.endswith(":")]
    assert tables
    assert all("(re-simulated)" in line for line in tables)
    late: Any = {**finding, "cause": "emulation-host", "gain": finding["gain"]}
    bars = describe.before_and_after(late, [], resimulated=True)
    assert ["re-simulated" in label for label, _, _ in bars] == [False, True]
    run.summary = emulated
    assert "(re-simulated)" in figures([run])[0].data["breakdown"][0]["bar"]


def test_flows_of_programs_begin_with_what_carried_most() -> None:
    """iperf3's first connection controls the test; a scenario's flows keep their order."""
    run = airpath.run("two-flows", {"run.duration_s": 2})
    control: Any = {**run.summary["flows"][0], "id": "control", "bytes_delivered": 491}
    flows = [control, *run.summary["flows"]]
    programs: Any = {**run.summary, "flows": flows, "emulation": {"scenario_flows": False}}
    assert [flow["id"] for flow in describe.ordered(programs)][-1] == "control"
    own: Any = {**programs, "emulation": {"scenario_flows": True}}
    assert describe.ordered(own)[0]["id"] == "control"
    assert describe.sentences(programs)[0].split(":")[0] != "control"
