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
from typing import Any, cast

import pytest

import airpath
from airpath import diagnose
from airpath.documents import Finding, FlowSummary, Gain, Tried
from airpath.runs import describe
from airpath.runs.summary import _combine_entry

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
    assert "means over 5 seeds" in first["evidence"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "modem-blocks",
            [
                "Each USB transfer at down.1.modem takes 0.4 ms",
                "\n    rmnet: ethtool -C DEVICE tx-aggr-max-bytes 32768",
                "480 Mb/s at down.2.link, without the packet-rate limit of down.1.modem:",
                "\n  modem (down.1.modem) ",
            ],
        ),
        (
            "wifi-like",
            [
                "between the access network and the server takes 12 ms",
                "\n  Place the server next to the access network.",
            ],
        ),
        (
            "lte-20",
            [
                "in the UE's uplink buffer (radio.far.up). In the settings, radio.ue.0 is near",
                "in the base station's downlink buffer (radio.near.down). The uplink, which ",
                "\nlargest cause of high RTT (p95) of upload: bufferbloat (radio.far.up)",
            ],
        ),
        (
            "jitter-reorder",
            [
                "\n    goodput of download on the path as it is ",
                "\n    costs, compared with the path as it is: RTT (p95) of download ",
                "(one bandwidth-delay product at the smallest RTT)",
            ],
        ),
        (
            "hypervisor",
            [
                "the receive rings of all stalling hosts dropped 1,844 packets",
                "The receive ring of down.0.host holds 256 packets",
            ],
        ),
        (
            "proxy",
            [
                "limited by the proxy's receive window: the proxy's other connection drains more",
                "\nRTT of download, server to proxy, 103 ms mean:",
                "\nRTT of download, proxy to UE, 13 ms mean:",
            ],
        ),
    ],
)
def test_findings_name_what_they_are_about(cli: Any, name: str, said: list[str]) -> None:
    code, out, _ = cli("run", name, "--out", "here")
    assert code == 0
    assert [one for one in said if one not in out] == []


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
    assert '<span class="cause">bufferbloat</span>' in page


def test_wrong_budgets_are_refused(cli: Any) -> None:
    with pytest.raises(airpath.InputError, match="explain is 'much'"):
        airpath.run("wire", explain=cast("Any", "much"))
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
        "largest cause: random-loss (down.1.loss)",
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
        r"No setting is advised: with the best one, \"Use BBR at the sender.*\", "
        r"the goodput of bulk-1 goes from \d+ kb/s to \d+ kb/s",
        loss["advice"],
    ), loss["advice"]


def test_what_is_sent_again_is_a_cost_that_is_told() -> None:
    cost: Gain = {
        "metric": "retransmitted_share", "flow": "download", "before": 0.02, "after": 0.05,
        "ci95": [0.04, 0.06], "seeds": 3,
    }  # fmt: skip
    assert describe.gain_name(cost) == "retransmitted segments of download"
    assert describe.gain_text(cost) == "2 % → 5 %"


def test_a_transfer_that_does_not_complete_has_no_completion_time(cli: Any, tmp_path: Path) -> None:
    """Not in findings, in what was tried, in a comparison or in a report."""
    scenario = tmp_path / "stuck.toml"
    scenario.write_text(STUCK)
    code, out, _ = cli("run", str(scenario), "--json", "--report", "page.html")
    assert code == 0
    found = json.loads(out)["findings"][0]
    assert (found["cause"], found["gain"]["before"]) == ("mtu", None)
    assert "did not complete within the run of 3 s" in found["evidence"]
    page = Path("page.html").read_text()
    assert "did not complete" in page
    assert "3000 s" not in out + page
    shown = cli("run", str(scenario))[1]
    assert "file: 0 Mb/s" in shown or "did not complete within the run" in shown
    clamped = ("--try", "flow.0.mss_bytes=1300")
    code, out, _ = cli("whatif", str(scenario), *clamped, "--seeds", "2", "--json")
    assert code == 0
    (row,) = [row for row in json.loads(out)["rows"] if row["metric"] == "completed_s"]
    stuck, done = row["cells"]
    assert (stuck["mean"], stuck["ci95"], stuck["values"]) == (None, None, [None, None])
    assert done["mean"] > 0
    assert done["change"] is None
    assert row["winner"] is None, "nothing is random here"
    shown = cli("whatif", str(scenario), *clamped, "--seeds", "2")[1]
    assert "did not complete" in shown


def test_the_mean_of_seeds_that_completed_is_no_completion_time() -> None:
    flow = {"id": "file", "kind": "file", "goodput_mbps": 1.0, "direction": "down"}
    both = _combine_entry([{**flow, "completed_s": 1.0}, {**flow, "completed_s": None}])
    assert both["completed_s"] is None
    assert both["values"]["completed_s"] == [1.0, None]
    assert (
        describe.incomplete(cast(FlowSummary, both))
        == "did not complete within the run in 1 of 2 seeds"
    )


STUCK = """
[run]
duration_s = 3
[[path.down]]
stage = "mtu"
mtu_bytes = 1400
[[path.down]]
stage = "delay"
delay_ms = 5
[[path.up]]
stage = "delay"
delay_ms = 5
[[flow]]
id = "file"
kind = "file"
size_bytes = 100000
"""


def test_where_nothing_helps_the_bound_is_told() -> None:
    bound = {"cause": "link-capacity", "subject": "down.0.link", "evidence": "It is full."}
    entry = {"cause": "placement", "subject": "down.0.server", "gain": None}
    tried = [{**entry, "score": 0.01}, {**entry, "score": None}]
    summary: Any = {"findings": [bound], "tried": tried, "explained": {"budget": "quick"}}
    assert describe.answer(summary) == [
        "nothing to fix: the link itself is the limit; removing these did not help: placement "
        "(down.0.server)",
        "bottleneck: It is full.",
    ]
    summary["explained"] = None
    assert describe.answer(summary) == []


@pytest.mark.parametrize(("after", "says"), [(104.0, False), (107.0, True)])
def test_a_test_that_is_short_for_its_path_says_so(after: float, says: bool) -> None:
    longer: Any = {
        "cause": "test-too-short",
        "subject": "download",
        "set": ["run.duration_s=40", "flow.0.duration_s=30"],
        "outcome": "",
        "score": 0.07,
        "gain": {"metric": "goodput_mbps", "flow": "download", "before": 100.0, "after": after,
                 "ci95": None, "seeds": 1},
    }  # fmt: skip
    summary: Any = {"findings": [], "tried": [longer], "explained": {"budget": "quick"}}
    line = (
        "the test of download is short for its path: over 30 s, goodput 100 Mb/s → 107 Mb/s (+7 %)"
    )
    assert (line in describe.answer(summary)) == says


def test_ten_seconds_from_across_an_ocean_are_short(cli: Any, tmp_path: Path) -> None:
    """Slow start takes a part of 10 s that no single cause is worth."""
    server = '[[path.{}]]\nstage = "server"\nplace = "ocean"\n'
    flow = '[[flow]]\nid = "download"\nkind = "bulk"\nprofile = "linux-4.19"\nduration_s = 10\n'
    (tmp_path / "ocean.toml").write_text(
        "[run]\nduration_s = 10\n"
        + server.format("up")
        + server.format("down")
        + '[radio]\npreset = "lte-20"\n'
        + flow
    )
    code, out, err = cli("run", str(tmp_path / "ocean.toml"), "--out", str(tmp_path / "run"))
    assert code == 0, err
    assert "removing these did not help: " in out
    (line,) = (line for line in out.splitlines() if line.startswith("the test of download is "))
    assert "over 40 s, goodput 134 Mb/s → 142 Mb/s" in line
    report = tmp_path / "r.html"
    assert cli("report", str(tmp_path / "run"), "-o", str(report))[0] == 0
    assert f"<p>The {line.removeprefix('the ')}.</p>" in report.read_text(encoding="utf-8")
