"""Damaged files through the whole of `airpath diagnose`; `make fuzz-diagnosed` has more."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airpath_dev.fuzzed import diagnosed

_COUNT = 15


@pytest.fixture(scope="module")
def begin(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Files to begin with."""
    return diagnosed.known(tmp_path_factory.mktemp("begin"))


def test_damaged_files_are_told_of_or_refused(begin: list[bytes], tmp_path: Path) -> None:
    """Others with each commit."""
    pick = Random(f"airpath diagnosed {os.environ.get('PROPTEST_RNG_SEED', '0')}")
    ended = set()
    for _ in range(_COUNT):
        given = diagnosed.files(pick, begin, tmp_path / "given")
        ended.add(diagnosed.diagnose(given, tmp_path / "page.html"))
    assert len(ended) > 1


def test_the_check_can_fail(
    begin: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any, *, alone: bool) -> dict[str, Any]:
        raise KeyError("flows")

    monkeypatch.setattr("airpath.diagnose.files.describe", broken)
    file = tmp_path / "ping"
    file.write_bytes(begin[0])
    with pytest.raises(KeyError):
        diagnosed.diagnose([file], tmp_path / "page.html")
