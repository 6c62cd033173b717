"""Compares what airpath, tshark and tcptrace say of captures: `make captures-compared`.

    python -m compared [FOLDER] [--page FILE]

The folder is AIRPATH_PCAPS if none is given. Exit codes: 0, equal or explained; 1, a difference is
unexplained; 2, bad use; 3, not compared, because something is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .judge import Compared, compare
from .page import page, table, unexplained

_TOOLS = ("tshark", "editcap", "tcptrace")


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


def main(words: Sequence[str]) -> int:
    """Do as the words say."""
    rest = list(words)
    target = None
    if "--page" in rest:
        at = rest.index("--page")
        if at + 1 == len(rest):
            print(__doc__, file=sys.stderr)
            return 2
        target = Path(rest[at + 1])
        del rest[at : at + 2]
    folder = rest[0] if rest else os.environ.get("AIRPATH_PCAPS", "")
    if len(rest) > 1 or (folder and not Path(folder).is_dir()):
        print(__doc__, file=sys.stderr)
        return 2
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing or not folder:
        why = f"{', '.join(missing)} is missing" if missing else "AIRPATH_PCAPS names no folder"
        print(f"not compared: {why}", file=sys.stderr)
        return 3
    compared: list[Compared] = []
    for path in captures(Path(folder)):
        if sys.stderr.isatty():
            print(f"{len(compared) + 1} {path.name}", file=sys.stderr)
        compared.append(compare(path))
    rows = table(compared)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
        figures = zip(row[2:], widths[2:], strict=True)
        print("  ".join([*cells, *(cell.rjust(width) for cell, width in figures)]).rstrip())
    if target:
        target.write_text(page(compared, versions()), encoding="utf-8")
    left = unexplained(compared)
    for one in left:
        print(f"{one.where}: {one.figure}: {one.ours} here, {one.theirs} by {one.reader}")
    print(f"{len(compared)} captures; {len(left)} differences are unexplained.")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
