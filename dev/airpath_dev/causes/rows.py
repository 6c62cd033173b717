"""Draws cases in parallel and keeps one row for each view of each run: features and costs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from airpath.cli.console import progress_bar
from airpath_dev.planted.draft import Pick

from .draw import draw
from .view import views

_SHARD = 20

Row = dict[str, Any]


def rows(seed: int, count: int, place: Path, workers: int) -> Iterator[Row]:
    """The rows of COUNT cases, which are kept in shards in that directory and taken from there."""
    place.mkdir(parents=True, exist_ok=True)
    shards = range((count + _SHARD - 1) // _SHARD)
    with ProcessPoolExecutor(workers) as pool, progress_bar("drawn") as shown:
        for done, file in enumerate(pool.map(partial(_shard, seed, place), shards)):
            for line in file.read_text().splitlines():
                yield json.loads(line)
            shown((done + 1) / len(shards))


def _shard(seed: int, place: Path, shard: int) -> Path:
    file = place / f"{seed}-{shard}.jsonl"
    if file.exists():
        return file
    warnings.simplefilter("ignore")
    lines = []
    for number in range(shard * _SHARD, (shard + 1) * _SHARD):
        pick = Pick(f"airpath views {seed} {number}")
        try:
            for drawn in draw(seed, number):
                case = {"case": number, "words": drawn.words}
                for view in views(drawn, pick):
                    for is_main, found in view.features:
                        costs = drawn.costs if is_main else {}
                        row = {"view": view.point, "costs": costs, "features": found}
                        lines.append(json.dumps(case | row))
                    if view.told is not None:
                        lines.append(json.dumps(case | {"costs": drawn.costs, "told": view.told}))
        except Exception as error:  # a run that cannot be made says why, and is no case
            lines.append(json.dumps({"case": number, "failed": repr(error)[:400]}))
    partial_file = file.with_suffix(".partial")
    partial_file.write_text("\n".join(lines) + "\n")
    partial_file.rename(file)
    return file
