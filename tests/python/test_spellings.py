"""Old spellings of keys, a key of every flow, and several flows from one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import airpath
from airpath import scenario
from airpath.errors import OldSpellingWarning
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
frto = true
"""


def test_an_old_spelling_is_one_line_on_stderr(airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(WIRE)
    done = airpath_command("run", "s.toml", "--set", "flow.0.sack=true", "--json", "--out", "out")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert told == [
        "warning: s.toml:14:1: `frto` is now `recovery.frto`; the old spelling still works",
        "warning: --set flow.0.sack=true: `sack` is now `options.sack`; the old spelling "
        "still works",
    ]
    summary = json.loads(done.stdout)
    assert [flow["id"] for flow in summary["flows"]] == ["a.1", "a.2", "a.3"]
    [group] = summary["groups"]
    total = sum(flow["goodput_mbps"] for flow in summary["flows"])
    assert group["goodput_mbps"] == pytest.approx(total)
    assert 1 / 3 <= group["jain_index"] <= 1


def test_python_warns_and_keeps_the_warnings(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WIRE)
    with pytest.warns(OldSpellingWarning, match="`frto` is now `recovery.frto`"):
        loaded = scenario.load(file)
    assert len(loaded.warnings) == 1
    file.write_text(WIRE.replace("frto", "recovery.frto"))
    run = airpath.run(file, set={"flow.*.congestion": "reno"}, out=tmp_path / "out")
    assert scenario.load(file).warnings == []
    assert run.flows["congestion"].to_list() == ["reno"] * 3
    assert run.groups.select("group", "streams").rows() == [("a", 3)]
