"""Runs hostile programs inside an emulation at full length and prints a table (root)."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from airpath_dev.harness import FINE, WRONG, need, table

from .cases import cases, run


def main(names: Annotated[list[str] | None, typer.Argument(metavar="[CASE]...")] = None) -> int:
    """Run those cases whose names are given, or all. Exit code 1: one went wrong."""
    need(root=True, exit_code=FINE)
    failed = 0
    print(table("case | how it ended | s:", []))
    for case in cases():
        if names and case.name not in names:
            continue
        began, said = time.monotonic(), "as it should"
        with tempfile.TemporaryDirectory() as place:
            try:
                ended = run(case, Path(place))
                if ended.partial:
                    said += f"; partial, because {'; '.join(ended.partial)}"
            except Exception as wrong:
                failed += 1
                said = f"**{type(wrong).__name__}** " + " ".join(str(wrong).split())[-400:]
        print(f"| {case.name} | {said} | {time.monotonic() - began:.1f} |", flush=True)
    return WRONG if failed else FINE
