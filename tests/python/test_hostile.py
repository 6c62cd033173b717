"""Hostile and unlucky programs inside an emulation; ``make hostile`` runs them in full length."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from airpath_dev.hostile.cases import MEASURED, Case, cases, run
from emulated import needs_root


@needs_root
@pytest.mark.parametrize("case", cases(full=False), ids=lambda case: case.name)
def test_a_run_ends_whole_or_says_what_is_missing(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)


def test_the_memory_measured_is_that_of_the_run_alone(tmp_path: Path) -> None:
    own = bytearray(400 << 20)
    own[::4096] = b"x" * len(own[::4096])
    report = tmp_path / "ended.json"
    command = [sys.executable, str(MEASURED), "30", str(report), "true"]
    subprocess.run(command, check=True)
    ended = json.loads(report.read_text())
    assert ended["code"] == 0
    assert 0 < ended["peak_bytes"] < 100_000_000
