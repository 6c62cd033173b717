"""`make fuzz-coverage`: what it prints, and what it says where something is missing."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath.base.toml import read_toml
from airpath_dev import ROOT, coverage


@pytest.fixture
def fuzz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The tool as a module, with a working directory of the test's."""
    module, before = coverage, signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(module, "WORK", tmp_path)
    yield module
    signal.signal(signal.SIGTERM, before)


def _program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


ENDS_WELL = """
import signal, sys
def end(*_):
    print("#20\tDONE   cov: 41 ft: 90 corp: 7/1b lim: 4 exec/s: 9 rss: 44Mb")
    print("stat::number_of_executed_units: 1234567", flush=True)
    sys.exit(0)
signal.signal(signal.SIGUSR1, end)
while True: pass
"""
CRASHES = """
import sys
print("#9\tNEW    cov: 3 ft: 4 corp: 2/9b lim: 4 exec/s: 0 rss: 4Mb")
print("thread '<unnamed>' panicked at crates/emu/src/gtpu.rs:9:5:")
print("artifact_prefix='x'; Test unit written to /x/crash-0a")
print("stat::number_of_executed_units: 10")
sys.exit(77)
"""
IS_SLOW = """
print("#9\tNEW    cov: 3 ft: 4 corp: 2/9b lim: 4 exec/s: 0 rss: 4Mb")
print("artifact_prefix='x'; Test unit written to /x/slow-unit-0b")
print("stat::number_of_executed_units: 10")
"""


def test_a_slow_input_is_told_and_is_no_crash(
    fuzz: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _program(tmp_path / "gtpu", IS_SLOW)
    monkeypatch.setattr(fuzz, "build", lambda: tmp_path)
    assert fuzz.run_all(["gtpu"], 1.0) == 0
    _, row, *said = capsys.readouterr().out.splitlines()
    assert row.split()[-1] == "0"
    assert said == [f"gtpu took 10 s or longer: {tmp_path / 'gtpu'} /x/slow-unit-0b"]


def test_a_target_runs_for_its_processor_time_and_is_told_of(fuzz: Any, tmp_path: Path) -> None:
    result = fuzz.run(_program(tmp_path / "gtpu", ENDS_WELL), 1.0)
    assert (result.executions, result.coverage, result.corpus) == (1_234_567, 41, 7)
    assert not result.crashes
    assert 1.0 <= result.seconds < 3.0
    assert result.row()[2] == "1,234,567"


def test_a_crash_is_one_and_says_where(
    fuzz: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _program(tmp_path / "gtpu", CRASHES)
    monkeypatch.setattr(fuzz, "build", lambda: tmp_path)
    assert fuzz.run_all(["gtpu"], 1.0) == 1
    head, row, *said = capsys.readouterr().out.splitlines()
    assert head.split() == " ".join(fuzz.HEAD).split()
    assert row.split()[-1] == "1"
    assert said == [
        "gtpu crashed: thread '<unnamed>' panicked at crates/emu/src/gtpu.rs:9:5:",
        f"  to repeat it: {tmp_path / 'gtpu'} /x/crash-0a",
    ]


def test_a_target_does_not_outlive_the_tool(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    tells = f"import os, pathlib\npathlib.Path({str(started)!r}).write_text(str(os.getpid()))\n"
    _program(tmp_path / "gtpu", tells + ENDS_WELL)
    code = (
        "from pathlib import Path\nfrom airpath_dev import coverage as fuzz\n"
        f"place = Path({str(tmp_path)!r})\n"
        "fuzz.WORK, fuzz.build = place, lambda: place\nfuzz.main(['run', '600', 'gtpu'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "dev")}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text(encoding="ascii")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not Path(f"/proc/{started.read_text(encoding='ascii')}").exists()


def test_an_end_without_a_word_is_a_crash_too(fuzz: Any, tmp_path: Path) -> None:
    result = fuzz.run(_program(tmp_path / "gtpu", "raise SystemExit(9)"), 1.0)
    assert result.crashes == [f"ended with 9: see {tmp_path / 'gtpu.log'}"]


def test_what_is_missing_is_said_and_not_checked_is_no_success(tmp_path: Path) -> None:
    _program(tmp_path / "cargo", "raise SystemExit('error: toolchain nightly is not installed')")
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "airpath_dev", "fuzz-coverage", "run", "1"],
        cwd=ROOT / "dev",
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 3
    assert "nightly Rust is missing: `rustup toolchain install nightly" in done.stderr


@pytest.mark.parametrize("words", [[], ["run"], ["run", "0"], ["run", "x"], ["run", "9", "none"]])
def test_bad_use(fuzz: Any, words: list[str]) -> None:
    assert fuzz.main(words) == 2


def test_a_corpus_has_the_files_that_cover_most(
    fuzz: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file that covers much comes before small ones that cover little."""
    for name, length in (("a", 5), ("b", 1), ("c", 900)):
        (tmp_path / name).write_bytes(bytes(length))
    head = "\n".join(["3", "1", *(str(tmp_path / name) for name in "abc")])
    said = "STARTED 0 5\nFT 0 1 2\nCOV 0 1\nSTARTED 1 1\nFT 1 2\nCOV 1\nFT 2 1 3 4 5\nCOV 2 3\n"
    covers = fuzz.read_control(f"{head}\n{said}")
    assert covers[tmp_path / "c"] == {"1", "3", "4", "5"}
    assert [one.name for one in fuzz.most_covering(covers)] == ["c", "b"]
    monkeypatch.setattr(fuzz, "MOST_FILES", 1)
    assert [one.name for one in fuzz.most_covering(covers)] == ["c"]


def test_each_target_has_a_corpus_that_is_small(fuzz: Any) -> None:
    names = fuzz.targets()
    assert sorted(entry["name"] for entry in read_toml(ROOT / "fuzz/Cargo.toml")["bin"]) == names
    files = {name: [*(ROOT / "fuzz/corpus" / name).iterdir()] for name in names}
    assert all(files.values())
    assert sorted(files) == sorted(place.name for place in (ROOT / "fuzz/corpus").iterdir())
    every = [file for kept in files.values() for file in kept]
    assert len(every) <= 500
    assert sum(file.stat().st_size for file in every) <= 500_000
    # Each is replayed by a test of its crate.
    tests = "".join(one.read_text(encoding="utf-8") for one in ROOT.glob("crates/*/src/fuzz.rs"))
    assert all(f'replay("{name}", super::{name})' in tests for name in names)
