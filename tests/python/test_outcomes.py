"""The last lines of ``make test``: nothing is missing, and nothing else is called passed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airpath.base.toml import read_toml
from airpath_dev import ROOT, outcomes

COMMAND = [sys.executable, "-m", "airpath_dev", "outcomes"]


def _line(suite: str, test: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {"suite": suite, "test": test, "outcome": outcome, "real_clock": None, **more}


CLOCK: dict[str, Any] = {"real_clock": {"too_late": []}}
LATE = {"real_clock": {"too_late": ["busy"] * 4}}


def test_the_sum() -> None:
    lines = [
        {"suite": "rust", "passed": 100, "failed": 0},
        {"suite": "rust", "passed": 7, "failed": 1},
        _line("rust", "parity", "passed", **CLOCK),
        # Two parts of one test, which the harness counts as one that passed.
        _line("rust", "tunnel", "not judged", reason="busy: iperf3 gave up", **LATE),
        _line("rust", "tunnel", "passed", **CLOCK),
        _line("rust", "nat", "skipped", reason="nft is missing"),
        _line("python", "a::ping", "passed", **CLOCK),
        _line("python", "a::once", "passed", real_clock={"too_late": [], "wrong_once": "3 > 2"}),
        _line("python", "a::late", "not judged", reason="busy: 27 < 26", **LATE),
        _line("python", "a::text", "passed"),
        _line("python", "a::wrong", "failed"),
        _line("python", "a::curl", "skipped", reason="apt-get install curl"),
        _line("python", "a::curl2", "skipped", reason="apt-get install curl"),
    ]
    said = outcomes.report(lines, [("huge", "15 million packets")])
    assert said == [
        "not judged:",
        "  a::late: busy: 27 < 26",
        "  tunnel: busy: iperf3 gave up",
        "skipped:",
        "  apt-get install curl (2 tests)",
        "  nft is missing",
        "left out:",
        "  huge: 15 million packets",
        "wrong once on time, and not in a second attempt:",
        "  a::once: 3 > 2",
        "on the real clock: 5 tests, 2 tried again because the machine was busy, "
        "2 not judged (40%)",
        "total: 108 passed, 2 failed, 2 not judged, 3 skipped, 1 left out",
    ]


def test_a_quiet_machine_has_one_line() -> None:
    lines = [{"suite": "rust", "passed": 2, "failed": 0}, _line("python", "a", "passed")]
    (total,) = outcomes.report(lines, [])
    assert total == "total: 3 passed, 0 failed, 0 not judged, 0 skipped, 0 left out"


SOURCE = """
#[test]
#[ignore = "15 million packets"]
fn huge() {}

#[test]
#[ignore = "needs root"]
// Why.
#[should_panic]
fn as_root() {}

#[test]
fn small() {}
"""


@pytest.mark.parametrize("user", [0, 1000])
def test_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    (tmp_path / "crates/x/tests").mkdir(parents=True)
    (tmp_path / "crates/x/tests/a.rs").write_text(SOURCE)
    monkeypatch.setattr("os.geteuid", lambda: user)
    as_root = [] if user == 0 else [("as_root", "needs root")]
    assert outcomes.left_out(tmp_path) == [("huge", "15 million packets"), *as_root]


def test_cargos_output_is_passed_on_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "outcomes"
    monkeypatch.setenv("AIRPATH_OUTCOMES", str(file))
    text = (
        "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n"
        "error: test result: FAILED is no result\n"
        "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n"
    )
    done = subprocess.run(
        [*COMMAND, "rust"], input=text, capture_output=True, text=True, check=True, cwd=ROOT / "dev"
    )
    assert done.stdout == text
    assert file.read_text() == '{"suite": "rust", "passed": 15, "failed": 2}\n'
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, cwd=ROOT / "dev")
    assert done.returncode == 2
    assert "airpath-dev outcomes total" in done.stderr


def test_what_failed_is_printed_with_the_command_that_repeats_it() -> None:
    said = """
running 2 tests
F.
failures:

---- gtpu::tests::odd stdout ----
    not::a::test
proptest: minimal failing input: 7

failures:
    gtpu::tests::odd

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
"""
    environment = {"PATH": "/usr/bin:/bin", "PROPTEST_RNG_SEED": "42"}
    done = subprocess.run(
        [*COMMAND, "rust"],
        cwd=ROOT / "dev",
        input=said,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    repeat = "PROPTEST_RNG_SEED=42 make rust-test TEST=gtpu::tests::odd"
    assert done.stdout == f"{said}To draw the same cases again: {repeat}\n"


def test_the_seed_is_the_commits(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / ".cargo").mkdir()
    shutil.copy(ROOT / "tools/seed", tmp_path / "tools")
    shutil.copy(ROOT / ".cargo/config.toml", tmp_path / ".cargo")

    def seed() -> int:
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
        done = subprocess.run(
            [tmp_path / "tools/seed"], capture_output=True, text=True, check=True, env=environment
        )
        return int(done.stdout)

    configured = read_toml(ROOT / ".cargo/config.toml")["env"]["PROPTEST_RNG_SEED"]
    assert seed() == int(configured)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    seeds = set()
    for number in range(3):
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", str(number)], check=True)
        seeds.add(seed())
    assert len(seeds) == 3
    assert all(0 <= one < 2**64 for one in seeds)


def test_counterexamples_are_kept() -> None:
    for kept in (
        "crates/emu/proptest-regressions/gtpu.txt",
        "crates/path/tests/laws.proptest-regressions",
    ):
        ignored = subprocess.run(["git", "check-ignore", "-q", kept], cwd=ROOT, check=False)
        if ignored.returncode == 128:
            pytest.skip("this is no git repository")
        assert ignored.returncode == 1, f"{kept} would be ignored"
