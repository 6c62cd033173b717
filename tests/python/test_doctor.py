"""``airpath doctor``: what it says of a machine that lacks something."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from airpath import doctor
from conftest import Command


def _found(name: str) -> doctor.Finding:
    return next(found for found in doctor.examine() if found.name == name)


def test_what_is_missing_comes_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    findings = doctor.examine()
    assert _found("ip").remedy == "apt-get install iproute2"
    assert _found("root").remedy == "run it with sudo"
    assert not doctor.as_json(findings)["emulate"]
    assert doctor.as_json(findings)["simulate"]


def test_a_program_that_is_there_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ip").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _found("ip").detail == str(tmp_path / "ip")


def test_the_command(airpath_command: Command) -> None:
    done = airpath_command("doctor", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    names = [found["name"] for found in document["findings"]]
    assert len(names) == len(set(names)) > 8
    text = airpath_command("doctor").stdout
    assert all(name in text for name in names)
