"""Checks airpath's dependencies for known vulnerabilities; needs a network.

cargo-deny queries RustSec's database, pip-audit PyPI's. Each is installed if it is missing. It
must first find a vulnerability that has been known for years (tools/known-vulnerable), because
with a database that is empty or does not answer it would find nothing at all. Exit codes:

    0  both tools ran and found nothing
    1  a vulnerability, or a licence, ban or source that deny.toml does not allow
    3  not checked: a tool or its database is not available
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airpath_dev import ROOT
from airpath_dev.harness import NOT_CHECKED, WRONG, say

KNOWN = ROOT / "tools/known-vulnerable"
TOOLS = ROOT / "target/tools"
SKIPPED = "could not be audited"
"""What pip-audit prints, with exit code 0, for a package that its database does not know."""
PATIENCE_S = float(os.environ.get("AIRPATH_AUDIT_PATIENCE_S", "1800"))
"""Time limit for one command, long enough to build cargo-deny from source."""


@dataclass(frozen=True)
class Auditor:
    """One of the two tools, cargo-deny and pip-audit."""

    name: str
    install: tuple[str, ...]
    known: tuple[str, ...]
    """Arguments that check the known-vulnerable package."""
    number: str
    """The number of the vulnerability that this check must report."""
    ours: tuple[str, ...]
    """Arguments that check airpath."""

    def program(self) -> str | None:
        """The tool's executable in PATH, beside this Python, or built by an earlier call."""
        places = [os.environ.get("PATH", ""), str(Path(sys.executable).parent), f"{TOOLS}/bin"]
        return shutil.which(self.name, path=os.pathsep.join(places))


AUDITORS = (
    Auditor(
        name="cargo-deny",
        install=("cargo", "install", "--quiet", "--locked", "--root", str(TOOLS), "cargo-deny"),
        known=("--manifest-path", str(KNOWN / "Cargo.toml"), "check", "advisories"),
        number="RUSTSEC-2021-0003",
        ours=("--all-features", "check", "advisories", "bans", "licenses", "sources"),
    ),
    Auditor(
        name="pip-audit",
        install=(sys.executable, "-m", "pip", "install", "--quiet", "pip-audit"),
        known=(
            *("--aliases", "on", "--no-deps", "--disable-pip"),
            *("--requirement", str(KNOWN / "requirements.txt")),
        ),
        number="CVE-2019-11324",
        ours=(
            *("--disable-pip", "--require-hashes"),
            *("--requirement", str(ROOT / "requirements.lock")),
        ),
    ),
)


def main() -> int:
    """Look for known vulnerabilities of what airpath depends on."""
    return ask_all(AUDITORS)


def ask_all(auditors: Sequence[Auditor]) -> int:
    """Run all tools; WRONG from one tool takes precedence over NOT_CHECKED from another."""
    codes = [audit(auditor) for auditor in auditors]
    return WRONG if WRONG in codes else max(codes)


def audit(auditor: Auditor) -> int:
    """Run one tool, print what it found, and return the exit code."""
    if auditor.program() is None:
        say(f"installing {auditor.name}")
        if (failed := run(auditor.install)).returncode != 0:
            return not_checked(auditor, f"it cannot be installed: {last_line(failed)}")
    program = auditor.program()
    if program is None:
        return not_checked(auditor, "it is not there after its installation")
    tried = run([program, *auditor.known])
    if auditor.number not in tried.stdout + tried.stderr:
        return not_checked(
            auditor, f"it does not find {auditor.number} in what has it: {last_line(tried)}"
        )
    looked = run([program, *auditor.ours])
    if looked.returncode != 0:
        print(f"{auditor.name}:\n{looked.stdout}{looked.stderr}".rstrip())
        return WRONG
    if SKIPPED in looked.stdout + looked.stderr:
        return not_checked(auditor, f"it left something out: {last_line(looked)}")
    print(f"{auditor.name}: found {auditor.number} where it is, and nothing here")
    return 0


def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command and capture its output; a command that cannot be run counts as failed."""
    try:
        return subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"no answer within {PATIENCE_S:.0f} s")
    except OSError as error:
        return subprocess.CompletedProcess(words, 1, "", f"{words[0]}: {error.strerror}")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of output that is not empty."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines()]
    return next((line for line in reversed(lines) if line), "it says nothing")


def not_checked(auditor: Auditor, because: str) -> int:
    """Print why a tool could not check airpath."""
    print(f"{auditor.name}: not checked, {because}")
    return NOT_CHECKED
