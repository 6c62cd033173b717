"""Several flows from one, and a setting for all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import airpath
from conftest import Command

WIRE = """\
[run]
duration_s = 2
[[path.down]]
stage = "link"
rate_mbps = 8
queue_packets = 50
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
id = "a"
kind = "bulk"
streams = 3
"""


def test_streams_are_flows_and_a_group(airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(WIRE)
    done = airpath_command("run", "s.toml", "--json", "--out", "out")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [flow["id"] for flow in summary["flows"]] == ["a.1", "a.2", "a.3"]
    [group] = summary["groups"]
    total = sum(flow["goodput_mbps"] for flow in summary["flows"])
    assert group["goodput_mbps"] == pytest.approx(total)
    assert 1 / 3 <= group["jain_index"] <= 1


def test_a_star_sets_every_stream(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WIRE)
    run = airpath.run(file, set={"flow.*.congestion": "reno"}, out=tmp_path / "out")
    assert run.flows["congestion"].to_list() == ["reno"] * 3
    assert run.groups.select("group", "streams").rows() == [("a", 3)]
