"""The last lines of ``make test``: nothing is missing, and nothing else is called passed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools import ROOT, tool


@pytest.fixture(scope="module")
def outcomes() -> Any:
    """The tool as a module."""
    return tool("outcomes")


def _line(suite: str, test: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {"suite": suite, "test": test, "outcome": outcome, "real_clock": None, **more}


CLOCK: dict[str, Any] = {"real_clock": {"too_late": []}}
LATE = {"real_clock": {"too_late": ["busy"] * 4}}


def test_the_sum(outcomes: Any) -> None:
    lines = [
        {"suite": "rust", "passed": 100, "failed": 0},
        {"suite": "rust", "passed": 7, "failed": 1},
        _line("rust", "parity", "passed", **CLOCK),
        # Two parts of one test, which the harness counts as one that passed.
        _line("rust", "tunnel", "not judged", reason="busy: iperf3 gave up", **LATE),
        _line("rust", "tunnel", "passed", **CLOCK),
        _line("rust", "nat", "skipped", reason="nft is missing"),
        _line("python", "a::ping", "passed", **CLOCK),
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
        "on the real clock: 4 tests, 2 tried again because the machine was busy, "
        "2 not judged (50%)",
        "total: 107 passed, 2 failed, 2 not judged, 3 skipped, 1 left out",
    ]


def test_a_quiet_machine_has_one_line(outcomes: Any) -> None:
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
def test_what_is_left_out(
    outcomes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
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
        [ROOT / "tools/outcomes", "rust"], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout == text
    assert file.read_text() == '{"suite": "rust", "passed": 15, "failed": 2}\n'
    done = subprocess.run([ROOT / "tools/outcomes"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tools/outcomes total" in done.stderr
