"""Compares the figures of airpath, tshark and tcptrace for captures.

Exit codes: 0, equal or explained; 1, a difference is unexplained; 2, bad use; 3, not compared,
because something is missing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from airpath_dev.harness import FINE, MEASURED, WRONG, NotCheckedError, install, need, table, write

from .judge import Compared, compare
from .page import HEAD, page, rows, unexplained

Folder = Annotated[
    Path | None, typer.Argument(envvar="AIRPATH_PCAPS", exists=True, file_okay=False)
]


def captures(root: Path) -> list[Path]:
    """The captures of a folder, by their names."""
    return sorted(path for path in root.rglob("*") if path.is_file() and ".pcap" in path.name)


def versions() -> list[str]:
    """What is compared with."""
    said = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=False)
    tshark = said.stdout.split()[2] if said.stdout else ""
    said = subprocess.run(["tcptrace", "-h"], capture_output=True, text=True, check=False)
    words = (said.stdout + said.stderr).split()
    tcptrace = words[words.index("version") + 1] if "version" in words else ""
    return [f"tshark {tshark}".strip(), f"tcptrace {tcptrace}".strip()]


def main(
    folder: Folder = None,
    file: Annotated[Path, typer.Option("--page")] = MEASURED / "captures-compared.md",
) -> int:
    """Compare what airpath, tshark and tcptrace say of FOLDER's captures, and write the page."""
    if folder is None:
        raise NotCheckedError("AIRPATH_PCAPS names no folder")
    install("tshark", "tcptrace")
    need("tshark", "editcap", "tcptrace")
    compared: list[Compared] = []
    for path in captures(folder):
        if sys.stderr.isatty():
            print(f"{len(compared) + 1} {path.name}", file=sys.stderr)
        compared.append(compare(path))
    print(table(HEAD, rows(compared), padded=True))
    write(file, page(compared, versions()))
    left = unexplained(compared)
    for one in left:
        print(f"{one.where}: {one.figure}: {one.ours} here, {one.theirs} by {one.reader}")
    print(f"{len(compared)} captures; {len(left)} differences are unexplained.")
    return WRONG if left else FINE
