"""``make audit``: whatever keeps it from looking is said, and is no "nothing found"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airpath_dev import ROOT
from airpath_dev import audit as audit_tool


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The tool as a module, on a machine whose path is ``bin``."""
    module = audit_tool
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(module, "TOOLS", tmp_path / "none")
    return module


class Tools:
    """Auditors that are shell scripts."""

    def __init__(self, audit: Any, place: Path) -> None:
        self._audit, self._place = audit, place

    def add(self, name: str, script: str, install: str = "exit 9") -> Any:
        program = self._place / "bin" / name
        if script:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        install = install.replace("PROGRAM", str(program))
        return self._audit.Auditor(name, ("sh", "-c", install), ("known",), "CVE-1", ("ours",))


@pytest.fixture
def tools(audit: Any, tmp_path: Path) -> Tools:
    """Tools on that machine."""
    return Tools(audit, tmp_path)


FINDS = 'if test "$1" = known; then echo "CVE-1 is there"; exit 1; fi'
BLIND = "echo everything is fine"
OFFLINE = "echo 'error: failed to fetch the advisory database' >&2; exit 1"


def test_both_looked_and_found_nothing(
    audit: Any, tools: Tools, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.ask_all([tools.add("airpath-deny", FINDS), tools.add("airpath-pip", FINDS)]) == 0
    assert capsys.readouterr().out.count("found CVE-1 where it is, and nothing here") == 2


@pytest.mark.parametrize(
    ("script", "because"),
    [
        (BLIND, "it does not find CVE-1 in what has it: everything is fine"),
        (OFFLINE, "in what has it: error: failed to fetch the advisory database"),
        ("exit 1", "in what has it: it says nothing"),
        (
            f"{FINDS}\necho 'polars: not found on PyPI and could not be audited'",
            "it left something out: polars: not found",
        ),
        ("", "it cannot be installed: no index"),
    ],
)
def test_who_does_not_find_what_is_known_has_not_checked(
    audit: Any,
    tools: Tools,
    capsys: pytest.CaptureFixture[str],
    script: str,
    because: str,
) -> None:
    blind = tools.add("airpath-deny", script, install="echo no index >&2; exit 1")
    assert audit.ask_all([blind, tools.add("airpath-pip", FINDS)]) == 3
    said = capsys.readouterr().out
    assert "airpath-deny: not checked, " in said
    assert because in said
    assert "airpath-pip: found CVE-1" in said


def test_a_vulnerability_counts_for_more_than_what_was_not_looked_at(
    audit: Any, tools: Tools, capsys: pytest.CaptureFixture[str]
) -> None:
    finds = tools.add("airpath-pip", f"{FINDS}\necho CVE-2 in polars; exit 1")
    assert audit.ask_all([tools.add("airpath-deny", BLIND), finds]) == 1
    assert "airpath-pip:\nCVE-2 in polars" in capsys.readouterr().out


def test_a_tool_that_is_missing_is_installed(audit: Any, tools: Tools) -> None:
    install = f"printf '#!/bin/sh\\n{FINDS}\\n' >PROGRAM; chmod +x PROGRAM"
    assert audit.ask_all([tools.add("airpath-deny", "", install.replace("%", "%%"))]) == 0
    # An installation that leaves nothing behind is none.
    assert audit.ask_all([tools.add("airpath-other", "", "true")]) == 3


def test_a_database_that_never_answers_has_not_been_asked(
    audit: Any, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PATIENCE_S", 0.2)
    assert audit.ask_all([tools.add("airpath-deny", "exec sleep 60")]) == 3


def test_what_is_known_to_be_vulnerable_is_pinned_and_not_airpaths(audit: Any) -> None:
    known = ROOT / "tools/known-vulnerable"
    lock = (known / "Cargo.lock").read_text(encoding="utf-8")
    assert 'name = "smallvec"\nversion = "1.6.0"' in lock
    pins = (known / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert pins[-1] == "urllib3==1.24.1"
    assert 'members = ["crates/*", "examples", "examples/cubic"]' in (
        ROOT / "Cargo.toml"
    ).read_text(encoding="utf-8")
    said = [auditor.number for auditor in audit.AUDITORS]
    readme = (known / "README.md").read_text(encoding="utf-8")
    assert all(number in readme for number in said)
