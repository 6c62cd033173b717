"""``requirements.lock``: what `make demo` and CI install, by version and hash."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from airpath.base.toml import read_toml
from airpath_dev import ROOT

PROJECT = read_toml(ROOT / "pyproject.toml")["project"]
ASKED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
"""What ``tools/setup`` installs."""
PYTHONS = ("3.11", "3.12", "3.13")


def _locked() -> list[tuple[Requirement, int]]:
    """Each entry of the lock, with how many hashes it has."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return [
        (Requirement(line.split(" --hash=")[0].strip()), len(re.findall(r"--hash=sha256:", line)))
        for line in lines
    ]


def _environment(python: str) -> dict[str, str]:
    return {
        "python_version": python, "python_full_version": f"{python}.1", "sys_platform": "linux",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
    }  # fmt: skip


def test_each_entry_is_one_version_with_its_hashes() -> None:
    entries = _locked()
    assert len(entries) > 50
    for entry, hashes in entries:
        assert [clause.operator for clause in entry.specifier] == ["=="], entry
        assert hashes > 0, entry


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_what_the_project_asks_for(python: str) -> None:
    """`make lock` was forgotten if this fails."""
    environment = _environment(python)
    chosen: dict[str, Version] = {}
    for entry, _ in _locked():
        if entry.marker is None or entry.marker.evaluate(environment):
            assert entry.name not in chosen, f"{entry.name} has two versions for Python {python}"
            chosen[entry.name] = Version(str(entry.specifier).removeprefix("=="))
    for wanted in map(Requirement, ASKED):
        if wanted.marker is None or wanted.marker.evaluate(environment):
            name = wanted.name.lower().replace("_", "-")
            assert name in chosen, f"{name} is missing"
            assert chosen[name] in wanted.specifier, f"{name} {chosen[name]}"


def test_what_users_may_install_is_tested_with_the_versions_of_the_lock() -> None:
    developers = {Requirement(each).name.lower() for each in ASKED}
    for extra, wanted in PROJECT["optional-dependencies"].items():
        if extra != "rl":  # only an example needs it, and PyTorch is too large for every build
            assert {Requirement(each).name.lower() for each in wanted} <= developers, extra
