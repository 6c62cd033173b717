"""Runs a drawn scenario on both clocks and keeps the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airpath.cli.console import progress_bar
from airpath.twin import runs
from airpath.twin.comparable import Comparable, make_comparable
from airpath_dev.harness import say

from .draw import Drawn


def prepared(drawn: Drawn, out: Path, congestion: Sequence[str] = ()) -> tuple[Comparable, Path]:
    """Write the scenario; also return where this build's and this kernel's runs of it are kept.

    ``congestion`` has the congestion controls that the kernel uses, as of ``airpath emulate``.
    """
    place = out / f"seed-{drawn.seed}"
    place.mkdir(parents=True, exist_ok=True)
    file = place / "scenario.toml"
    file.write_text(drawn.text, encoding="utf-8")
    comparable = make_comparable(str(file), congestion=congestion)
    return comparable, place / runs.identifier(comparable)


def run(drawn: Drawn, out: Path, seeds: int = 1) -> runs.Twin:
    """Simulate and emulate the scenario."""
    comparable, place = prepared(drawn, out)
    with progress_bar(f"seed {drawn.seed}") as progress:
        return runs.run(comparable, seeds=seeds, out=place, progress=progress, say=say)
