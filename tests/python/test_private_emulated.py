"""``make studies-emulated``: what it asks for, what it writes, and what it says without root."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from airpath import scenario as scenarios
from airpath.base.toml import parse_toml, read_toml
from airpath.errors import AirpathError
from airpath_dev import private
from airpath_dev.harness import run
from emulated import needs


def test_without_root_it_says_what_is_absent_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    page = tmp_path / "page.md"
    assert run(private.main, ["--page", str(page)]) == 0
    assert "not checked: it needs root" in capsys.readouterr().err
    assert not page.exists()


def test_without_a_program_it_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nft" else name)
    assert run(private.main, []) == 0
    assert "not checked: nft is missing" in capsys.readouterr().err


def test_a_point_sets_what_iperf3_is_told() -> None:
    point = private.Point("down", "1M", "reno", lost_scale=True)
    loaded = scenarios.load(private.SCENARIO, point.sets(7))
    programs = parse_toml(loaded.resolved_toml)["program"]
    commands = {each["name"]: each["command"] for each in programs if each.get("enabled", True)}
    assert commands["test"] == "exec iperf3 -4 -J -c server -t 7 -C reno -R -w 1M"
    assert list(commands) == ["buffers", "middlebox", "iperf3-server", "test"]
    plain = scenarios.load(private.SCENARIO, private.Point("up", "", "cubic").sets(7))
    enabled = [
        each["name"] for each in parse_toml(plain.resolved_toml)["program"] if each["enabled"]
    ]
    assert enabled == ["iperf3-server", "test"]


def test_a_row_whose_middlebox_failed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/middlebox.stderr").write_text("Operation not supported\n")
    programs: list[Any] = [{"name": "iperf3-server", "code": 143}, {"name": "middlebox", "code": 0}]
    failed: Any = {"name": "middlebox", "code": 1}
    private.check(programs, tmp_path)
    with pytest.raises(AirpathError, match="middlebox ended with 1: Operation not supported"):
        private.check([*programs, failed], tmp_path)


def test_cell_and_way_are_those_of_the_simulated_rows() -> None:
    here = read_toml(private.SCENARIO)
    simulated = read_toml(private.SCENARIO.parent / "scenario-oai.toml")
    radio = {key: value for key, value in here["radio"].items() if key != "ue"}
    assert radio == simulated["radio"]
    for direction in ("down", "up"):
        assert all(stage in simulated["path"][direction] for stage in here["path"][direction])


def test_the_page_marks_what_was_late() -> None:
    good, late = (
        private.Obtained(5.6, 0, valid=True),
        private.Obtained(0.0089, 3, valid=False),
    )
    obtained = {
        private.Point("down", "1M", "cubic"): good,
        private.Point("up", "", "cubic", lost_scale=True): late,
    }
    text = "\n".join(private.markdown({"ping": "20 of 20"}, obtained, 15))
    assert "| down | 1M | 5.60 Mb/s / 0 |  | 5.72 Mb/s |" in text
    assert "| up | the kernel's default | 8.90 kb/s / 3 (late) | 62.2 kb/s |" in text
    assert "which are marked: 1 of 2." in text


@needs("ip", "iperf3", "nft", "ping", "tshark")
def test_a_ue_attaches_and_a_lost_window_scale_holds_it_back(tmp_path: Path) -> None:
    database = tmp_path / "subscribers.db"
    private.enrol(database)
    out = private.attach(database, tmp_path)
    assert out["address from the pool"].startswith("10.45.0.")
    assert "0% packet loss" in out["ping"]
    assert out["ICMP in GTP-U, according to tshark"] == "40 packets, 2 TEIDs"
    lost = private.measure(private.Point("up", "", "cubic", lost_scale=True), database, tmp_path, 3)
    assert lost.mbps < 0.1
    assert json.dumps(lost)
