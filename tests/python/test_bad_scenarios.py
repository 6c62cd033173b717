"""Each fault of a scenario is one clear message with its place, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

import airpath
from airpath.errors import InputError
from conftest import Command

GOOD = """\
title = "t"
[run]
duration_s = 2
[[path.down]]
stage = "link"
rate_mbps = 5
queue_packets = 50
[[flow]]
id = "a"
kind = "bulk"
"""
TRACE = GOOD.replace('"link"', '"trace"').replace("rate_mbps = 5", 'file = "t.trace"')


def test_the_good_one_is_good(airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(GOOD)
    done = airpath_command("scenario", "check", "s.toml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "s.toml: ok\n", "")


@pytest.mark.parametrize(
    ("scenario", "trace", "words"),
    [
        (TRACE, None, ["s.toml:6", "t.trace", "No such file"]),
        (TRACE, "", ["s.toml:6", "t.trace", "empty"]),
        (TRACE, "1\n2\n3\n4\n5\n6\nseven\n8\n", ["t.trace", "line 7", "a whole number of ms"]),
        (TRACE, "1\n2\n9\n4\n", ["t.trace", "line 4", "before the previous"]),
        (GOOD.replace("queue_packets", "queue_packts"), None, ["s.toml:7", "queue_packets"]),
        (GOOD.replace("= 5\n", "= -5\n"), None, ["s.toml:6", "-5", "must be from 0.000001"]),
        (GOOD + 'window_bytes = "64 k"\n', None, ["s.toml:11", "window_bytes", '"64 k"', "bytes"]),
        (GOOD + '[[flow]]\nid = "a"\nkind = "bulk"\n', None, ['two flows have the id "a"']),
        ("", None, ["needs at least one"]),
        ("title = ", None, ["s.toml:1"]),
    ],
    ids=[
        "missing trace", "empty trace", "text in line 7", "stamps go backwards", "misspelt key",
        "negative rate", "window of 64 k", "two flows of one name", "empty file", "no TOML",
    ],
)  # fmt: skip
def test_one_clear_message(
    airpath_command: Command, tmp_path: Path, scenario: str, trace: str | None, words: list[str]
) -> None:
    (tmp_path / "s.toml").write_text(scenario)
    if trace is not None:
        (tmp_path / "t.trace").write_text(trace)
    before = sorted(tmp_path.iterdir())
    for command in (["run"], ["scenario", "check"]):
        done = airpath_command(*command, "s.toml")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("error: ") == 1
        assert "Traceback" not in done.stderr
        for word in words:
            assert word in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_set_that_is_wrong_names_itself(airpath_command: Command) -> None:
    done = airpath_command("run", "wire", "--set", "flow.0.windw_bytes=1")
    assert done.returncode == 2
    assert done.stderr.count("error: ") == 1
    assert "flow.0.windw_bytes" in done.stderr


def test_a_file_that_is_not_text(airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b"title = \xff\xfe")
    done = airpath_command("run", "s.toml")
    assert (done.returncode, done.stderr) == (
        2, "error: s.toml is not text: byte 8 is not UTF-8\n",
    )  # fmt: skip


def test_drop_tail_is_spelt_one_way() -> None:
    told = airpath.load("lte-20", {"radio.rlc.aqm": "drop_tail"})
    assert told.sha256 == airpath.load("lte-20", {"radio.rlc.aqm": "drop-tail"}).sha256
    assert 'aqm = "drop-tail"' in told.resolved_toml
    assert "drop_tail" not in told.resolved_toml
    link = airpath.load("bufferbloat", {"path.down.0.aqm": "drop_tail"})
    assert link.sha256 == airpath.load("bufferbloat", {"path.down.0.aqm": "drop-tail"}).sha256
    with pytest.raises(InputError, match='must be one of "drop-tail", "codel"'):
        airpath.load("bufferbloat", {"path.down.0.aqm": "drop tail"})
