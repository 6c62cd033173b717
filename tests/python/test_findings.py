"""What ``airpath run`` says of causes: by experiment, and first."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import diagnose
from airpath.runs import describe
from airpath.runs.document import Finding, Gain, Tried

SNAPSHOTS = Path(__file__).parent / "snapshots"
FINDING = {"cause", "subject", "confidence", "evidence", "advice", "set", "gain", "costs"}
GAIN = {"metric", "before", "after", "ci95", "seeds"}


@pytest.fixture(autouse=True)
def directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "name", ["bufferbloat", "random-loss", "one-way-firewall", "small-window", "udp"]
)
def test_the_first_lines_are_the_answer(cli: Any, name: str) -> None:
    code, out, _ = cli("run", name, "--out", "here")
    assert code == 0
    first = "\n".join(out.splitlines()[:12]) + "\n"
    reference = SNAPSHOTS / f"answer-{name}.txt"
    if os.environ.get("AIRPATH_BLESS") == "1":
        reference.write_text(first, encoding="utf-8")
    assert first == reference.read_text(encoding="utf-8")


def test_the_document_has_findings_and_what_was_tried(cli: Any) -> None:
    code, out, _ = cli("run", "policer", "--json", "--out", "here")
    assert code == 0
    document = json.loads(out)
    assert document == json.loads(Path("here/summary.json").read_text())
    first, *_ = document["findings"]
    assert first.keys() == FINDING
    assert first["cause"] == "policer"
    assert first["gain"].keys() == GAIN | {"flow"}
    assert first["gain"]["metric"] in document["flows"][0]
    assert first["gain"]["seeds"] >= 3
    assert all("=" in one for one in first["set"])
    for tried in document["tried"]:
        assert tried.keys() == {"cause", "subject", "set", "outcome", "score", "gain"}
    assert document["explained"]["budget"] == "quick"
    assert document["explained"]["runs"] > 3


def test_the_run_itself_is_not_simulated_again() -> None:
    scenario = airpath.load("bufferbloat")
    run = airpath.run(scenario)
    diagnose.add(run, scenario, "quick")
    alone = airpath.explain("bufferbloat")
    assert run.findings == alone["findings"]
    explained = run.summary["explained"]
    assert explained is not None
    assert explained["runs"] == alone["runs"] - 1


def test_findings_speak_of_all_seeds() -> None:
    run = airpath.run("random-loss", repeat=5, explain="quick")
    first = run.findings[0]
    removed = describe.removed(first, run.summary["tried"])
    assert removed
    assert removed["seeds"] == 5
    assert "5 of 5 seeds" in first["evidence"]


def test_off_tries_nothing_and_says_so(cli: Any) -> None:
    code, out, _ = cli("run", "bufferbloat", "--explain", "off", "--json", "--out", "here")
    document = json.loads(out)
    assert code == 0
    assert (document["findings"], document["tried"], document["explained"]) == ([], [], None)
    _, _, err = cli("report", "here", "-o", "r.html")
    assert err == "" or "r.html" in err
    assert "was not explained" in Path("r.html").read_text()


def test_the_report_leads_with_before_and_after(cli: Any) -> None:
    assert cli("run", "bufferbloat", "--out", "here", "--report", "r.html")[0] == 0
    page = Path("r.html").read_text()
    assert page.index('class="bars"') < page.index("<h2>What was run</h2>")
    assert "Bufferbloat" in page


def test_wrong_budgets_are_refused(cli: Any) -> None:
    with pytest.raises(airpath.InputError, match="explain is 'much'"):
        airpath.run("wire", explain="much")
    code, _, err = cli("run", "wire", "--explain", "much")
    assert code == 2
    assert "much" in err


def test_ctrl_c_while_explaining_keeps_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "airpath", "run", "hypervisor", "--explain", "full"]
    command += ["--out", "here"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        summary = tmp_path / "here" / "summary.json"
        while not summary.exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.startswith("download: ")
    assert "here is complete, but was not explained" in err
    run = airpath.Run.open(tmp_path / "here")
    assert run.findings == []
    assert run.flows.height == 2


def test_a_cause_whose_advice_has_no_settings_shows_what_its_removal_does() -> None:
    gain: Gain = {
        "metric": "goodput_mbps", "flow": "download", "before": 5.0, "after": 10.0,
        "ci95": [9.0, 11.0], "seeds": 3,
    }  # fmt: skip
    finding: Finding = {
        "cause": "random-loss", "subject": "down.1.loss", "evidence": "It loses.",
        "advice": "Repair it.", "set": None, "gain": None, "costs": [gain], "confidence": 1.0,
    }  # fmt: skip
    other: Tried = {
        "cause": "random-loss", "subject": "down.2.loss", "set": [], "outcome": "Nothing.",
        "score": None, "gain": None,
    }  # fmt: skip
    tried: list[Tried] = [other, {**other, "subject": "down.1.loss", "gain": gain}]
    assert describe.finding_lines(finding, "largest cause", tried) == [
        "largest cause: random loss (down.1.loss)",
        "  It loses.",
        "  Repair it.",
        "    goodput of download before  ███████████████ 5.00 Mb/s",
        "             without the cause  ██████████████████████████████ 10 Mb/s (9.00 Mb/s to "
        "11 Mb/s)",
        "    costs: goodput of download 5.00 Mb/s → 10 Mb/s",
    ]


def test_where_no_setting_is_advised_what_it_would_take_is_named(cli: Any) -> None:
    shared = Path(__file__).parent / "scenarios/shared-uplink.toml"
    code, out, _ = cli("run", str(shared), "--json", "--out", "here")
    assert code == 0
    (loss,) = (one for one in json.loads(out)["findings"] if one["cause"] == "random-loss")
    assert loss["set"] is None
    assert re.search(
        r"No setting is advised: what was tried takes the goodput of bulk-1 from \d+ kb/s to \d+ "
        r"kb/s \(Use BBR at the sender",
        loss["advice"],
    ), loss["advice"]


def test_what_is_sent_again_is_a_cost_that_is_told(cli: Any) -> None:
    code, out, _ = cli("run", "policer", "--json", "--out", "here")
    assert code == 0
    (cost,) = json.loads(out)["findings"][0]["costs"]
    assert cost["metric"] == "retransmitted_share"
    assert cost["after"] > 1.5 * max(cost["before"], 0.01)
    told = " → ".join(
        describe.figure_text(cost["metric"], cost[when]) for when in ("before", "after")
    )
    assert told.endswith(" %")
    assert describe.gain_name(cost) == "segments sent again of download"
    assert describe.gain_text(cost) == told


def test_where_nothing_helps_the_bound_is_told() -> None:
    bound = {"cause": "link-capacity", "subject": "down.0.link", "evidence": "It is full."}
    tried = [{"score": 0.01}, {"score": None}]
    summary: Any = {"findings": [bound], "tried": tried, "explained": {"budget": "quick"}}
    assert describe.answer(summary) == [
        "no cause found: 1 change tried, none helps",
        "bound: It is full.",
    ]
    summary["explained"] = None
    assert describe.answer(summary) == []
