"""Runs the Python tests with many more programs in PATH, or with the fewest.

``strangers``: the end of PATH has programs that airpath does not need and that fail if they are
run. With ``--packages`` the programs of unpacked packages come first: see ``make test-strangers``.
``least``: PATH has only the programs that README asks for and that Debian calls essential. Tests
that need others must be skipped with a reason; no test may fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

STRANGERS = (
    *("iperf", "nuttcp", "fping", "busybox", "toybox", "netperf", "flent", "mtr", "traceroute"),
    *("tracepath", "hping3", "nmap", "ncat", "socat", "owping", "qperf", "sockperf", "wget"),
    *("ethtool", "tc-bpf", "file", "groups", "link", "run", "command", "name", "at", "largest"),
)
"""Programs that no test needs, some with names that are words of the guides."""
FAILS = """#!/bin/sh
echo "$0 is a stranger and was run: $*" >&2
exit 66
"""
ESSENTIAL = (
    *("sh", "bash", "env", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname"),
    *("basename", "echo", "expr", "false", "head", "id", "install", "ln", "ls", "mkdir", "mkfifo"),
    *("mknod", "mktemp", "mv", "nice", "nproc", "od", "printf", "pwd", "readlink", "realpath"),
    *("rm", "rmdir", "seq", "sha256sum", "sleep", "sort", "stat", "stty", "sync", "tail", "tee"),
    *("test", "timeout", "touch", "tr", "true", "truncate", "tty", "uname", "uniq", "wc", "who"),
    *("yes", "grep", "sed", "awk", "find", "xargs", "tar", "gzip", "gunzip", "diff", "cmp"),
    *("mount", "umount", "unshare", "setpriv", "setsid", "nsenter", "flock", "taskset", "kill"),
    *("ps", "script", "hostname", "login", "su", "perl", "dpkg", "apt-get"),
)
"""Debian's essential packages, as far as anything might ask for them."""
ASKED_FOR = (
    *("git", "make", "cc", "gcc", "ld", "as", "ar", "cargo", "rustc", "rustup", "rustdoc"),
    *("python3", "pip"),
)
"""README: Rust and Python; a compiler comes with rustup's linker, git with the clone."""


class Machine(StrEnum):
    """Which programs are in PATH."""

    STRANGERS = "strangers"
    LEAST = "least"


def main(
    machine: Machine,
    pytest: Annotated[list[str] | None, typer.Argument(metavar="[-- PYTEST...]")] = None,
    packages: Annotated[Path | None, typer.Option(help="A folder with unpacked packages.")] = None,
) -> int:
    """Run pytest with the PATH of the machine that is asked for."""
    with tempfile.TemporaryDirectory(prefix="airpath-machine-") as folder:
        place = Path(folder)
        path = least(place) if machine is Machine.LEAST else strangers(place, packages)
        words = [sys.executable, "-m", "pytest", "-q", "-rs", *(pytest or ())]
        return subprocess.run(words, env={**os.environ, "PATH": path}, check=False).returncode


def strangers(place: Path, packages: Path | None) -> str:
    """PATH with programs that nobody asked for."""
    for name in STRANGERS:
        (place / name).write_text(FAILS)
        (place / name).chmod(0o755)
    first = []
    if packages is not None:
        first = [str(packages.resolve() / each) for each in ("usr/bin", "usr/sbin", "bin", "sbin")]
    return os.pathsep.join([*first, os.environ["PATH"], str(place)])


def least(place: Path) -> str:
    """PATH without anything that README does not ask for."""
    for name in (*ESSENTIAL, *ASKED_FOR):
        if program := shutil.which(name):
            (place / name).symlink_to(program)
    return str(place)
