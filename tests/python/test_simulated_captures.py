"""A simulation as a capture: tshark reads it, and it tells what the run itself records."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

import airpath
from airpath import _core
from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath_dev.recorded.judge import judge

CASES = range(6)


def _drawn(seed: int) -> str:
    """A download over a link, with loss, jitter or both, from a profile of Linux."""
    draw = Random(seed)
    rate, delay = draw.uniform(3, 40), draw.uniform(5, 60)
    loss = draw.choice([0, 0.002, 0.02])
    queue = draw.randint(20, 200)
    return f"""
[run]
duration_s = 8
seed = {seed + 1}
[[path.down]]
stage = "link"
rate_mbps = {rate:.3f}
queue_packets = {queue}
[[path.down]]
stage = "loss"
probability = {loss}
[[path.down]]
stage = "delay"
delay_ms = {delay:.3f}
[[path.up]]
stage = "delay"
delay_ms = {delay:.3f}
[[path.up]]
stage = "loss"
probability = {draw.choice([0, 0.01])}
[[flow]]
id = "transfer"
kind = "bulk"
direction = "{draw.choice(["down", "up"])}"
opened_by = "{draw.choice(["sender", "receiver"])}"
congestion = "{draw.choice(["cubic", "reno", "bbr"])}"
profile = "linux-6.1"
duration_s = 6
"""


@pytest.mark.parametrize("seed", CASES)
def test_a_capture_tells_what_the_run_records(tmp_path: Path, seed: int) -> None:
    scenario = tmp_path / "drawn.toml"
    scenario.write_text(_drawn(seed))
    run = airpath.run(scenario, out=tmp_path / "run", capture=True)
    report: Any = _core.read_capture(tmp_path / "run/capture.pcapng")
    (flow,) = run.summary["flows"]
    sender = "server" if flow["direction"] == "down" else "ue"
    names = [one["name"] for one in report["interfaces"]]
    assert names == ["server", "ue"]
    (seen,) = (one for one in report["flows"] if names[one["interface"]] == sender)
    assert not report["skipped"]
    assert seen["same_as"] == [one["id"] for one in report["flows"] if one is not seen]
    streams = [seen["tcp"][name] for name in ("from_client", "from_server")]
    stream = max(streams, key=lambda one: one["data_bytes"])
    assert stream["retransmissions"]["packets"] == flow["retransmitted_segments"]
    assert stream["acks_of_unseen"] == 0
    recorded: Any = flow["rtt_ms"]
    for figure in ("p50", "p95"):
        ours, theirs = stream["rtt_timestamps_ms"][figure], recorded[figure]
        assert ours == pytest.approx(theirs, rel=0.01), figure


@pytest.mark.parametrize("number", range(8))
def test_a_drawn_capture_tells_what_the_run_records(tmp_path: Path, number: int) -> None:
    """Over cells and wires, with losses and overtaking; `make captures-recorded` has more.

    The tail of the round trips is left to it: a percentile of few samples moves in steps.
    """
    judged = judge(1, number, tmp_path)
    assert not set(judged.faults) - {"p95"}, judged


def test_without_the_option_the_bytes_are_the_same(tmp_path: Path) -> None:
    scenario = tmp_path / "drawn.toml"
    scenario.write_text(_drawn(2))

    def hashes(name: str, *, capture: bool) -> dict[str, str]:
        airpath.run(scenario, out=tmp_path / name, capture=capture, repeat=2)
        tables = sorted((tmp_path / name).rglob("*.parquet"))
        assert tables
        return {
            str(file.relative_to(tmp_path / name)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in tables
        }

    assert hashes("with", capture=True) == hashes("without", capture=False)
    assert len(list((tmp_path / "with").rglob("capture.pcapng"))) == 2
    assert not list((tmp_path / "without").rglob("*.pcapng"))


def test_tshark_reads_it_without_complaint(cli: Any, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is missing")
    scenario = tmp_path / "all.toml"
    scenario.write_text(
        _drawn(1)
        .replace("duration_s = 8", "duration_s = 4")
        .replace("duration_s = 6", "duration_s = 2")
        + '[[flow]]\nkind = "ping"\ninterval_ms = 200\n'
        + '[[flow]]\nkind = "udp"\nrate_mbps = 1\nduration_s = 2\n'
    )
    code, _, err = cli(
        "run", str(scenario), "--out", str(tmp_path / "r"), "--capture", "--explain", "off"
    )
    assert code == 0, err
    file = str(tmp_path / "r/capture.pcapng")
    fields = ("_ws.malformed", "_ws.expert.severity", "ip.checksum.status", "frame.interface_name")
    options = ["-o", "ip.check_checksum:TRUE", "-n", "-T", "fields", "-E", "separator=|"]
    options += [part for field in fields for part in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", file, *options], check=False, capture_output=True, text=True
    )
    complaints = [one for one in done.stderr.splitlines() if not one.startswith("Running as")]
    assert (done.returncode, complaints) == (0, [])
    rows = [line.split("|") for line in done.stdout.splitlines()]
    error = str(0x800000)
    assert {row[0] for row in rows} == {""}
    assert not [row for row in rows if error in row[1].split(",")]
    assert {row[2] for row in rows} == {"1"}, "a checksum of IP is wrong"
    assert {row[3] for row in rows} == {"server", "ue"}
    report: Any = _core.read_capture(file)
    pings = [one["icmp"] for one in report["flows"] if one["icmp"]]
    assert {one["unasked"] for one in pings} == {0}
    assert min(one["replies"] for one in pings) >= 15
    (udp,) = (
        one["udp"]["from_client"]["sequence"]
        for one in report["flows"]
        if one["udp"] and one["interface"] == 1
    )
    assert udp["header"] == "iperf3"
    assert udp["expected"] == pytest.approx(167, abs=3)


def test_a_run_accounts_for_its_time_and_is_captured(tmp_path: Path) -> None:
    loaded = airpath.load("lte-20", {"run.duration_s": 2})
    plain, file = tmp_path / "plain.pcapng", tmp_path / "accounted.pcapng"
    _core.simulate(loaded, 1, capture=plain)
    both = _core.simulate(loaded, 1, accounted=True, capture=file).summary
    alone = _core.simulate(loaded, 1, accounted=True).summary
    assert both["breakdowns"]
    assert both["breakdowns"] == alone["breakdowns"]
    assert file.read_bytes() == plain.read_bytes()
    assert len(file.read_bytes()) > 100_000


def test_a_capture_needs_a_place() -> None:
    with pytest.raises(InputError, match="capture needs out"):
        airpath.run("wire", capture=True)


@pytest.mark.parametrize(("control", "paces"), [("bbr", True), ("cubic", False)])
def test_who_paces_is_told_from_who_does_not(tmp_path: Path, control: str, paces: bool) -> None:
    sets = {
        "flow.0.congestion": control, "flow.0.profile": "linux-6.18", "run.duration_s": 15,
    }  # fmt: skip
    airpath.run("bufferbloat", sets, out=tmp_path / "run", capture=True)
    told = diagnose(str(tmp_path / "run/capture.pcapng"))
    kinds = [one["kind"] for one in told["statements"]]
    assert ("pacing" in kinds) == paces
    flows = [one["tcp"] for one in told["capture"]["flows"] if one["tcp"]]
    sending = [one["from_client"]["sending"] for one in flows]
    alone = [one["unprompted"] for one in sending if one]
    assert None in alone
    (share,) = [one for one in alone if one is not None]
    assert share > 0.8 if paces else share < 0.05
