"""Learns the causes of slow transfers from drawn runs, and judges what was learned on others.

The rows that are drawn are kept in ``--keep``, and the command resumes from there. The models go
into the package (python/airpath/causes: causes.npz, tools.npz), each with where it came from
(.json): the same seed and count give the same bytes. Needs the dependency group ``learn``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from airpath.causes import rank, tools
from airpath.causes.model import ANY, Answer, Model
from airpath.runs.summary import to_json
from airpath_dev import ROOT
from airpath_dev.harness import FINE, Count, NotCheckedError, Seed, say
from airpath_dev.planted.draft import Pick

from .draw import TALK
from .learn import Trees, labels_of, learn, scattered
from .rows import Row, rows
from .told import told

_MODELS = ROOT / "python/airpath/causes"
_OF_CAPTURES, _OF_TOOLS = Trees(400, 12, rate=0.055), Trees(250, 8, rate=0.07)
_JUDGED = 10
"""Every tenth case is not learned from."""


def main(
    seed: Seed = 1,
    count: Count = 8_280,
    keep: Annotated[Path, typer.Option(help="Folder of the rows.")] = ROOT / "target/causes",
    write: Annotated[bool, typer.Option(help="Replace the package's models.")] = True,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(help="Only learn all causes but this one, and judge what is said of it."),
    ] = None,
) -> int:
    """Draw COUNT cases, learn causes from them, and judge the models on a tenth of them.

    One model is for captures, and one for what iperf3, ss and ping tell.
    """
    if find_spec("lightgbm") is None:
        raise NotCheckedError("LightGBM is missing: .venv/bin/pip install lightgbm")
    every = list(rows(seed, count, keep, os.cpu_count() or 1))
    captured = [one for one in every if "features" in one]
    for cause in leave_out or ():
        say(f"{cause} left out: {left_out(captured, cause)}")
    if leave_out:
        return FINE
    models = (
        (rank.MODEL, captured, _OF_CAPTURES, rank.best),
        (tools.MODEL, list(_of_tools(every)), _OF_TOOLS, tools.best),
    )
    for name, some, trees, best in models:
        cases = np.array([one["case"] for one in some])
        judged = scattered(cases) // 64 % _JUDGED == 0
        learned = learn([one for one, held in zip(some, judged, strict=True) if not held], trees)
        held = [one for one, is_held in zip(some, judged, strict=True) if is_held]
        found = judge(learned, held, best)
        for what, value in found.items():
            say(f"{name}: {what}: {value}")
        if write:
            with (_MODELS / name).open("wb") as file:
                learned.write(file)
            whole = {"seed": seed, "cases": count, "rows": len(some), "judged": len(held), **found}
            (_MODELS / name).with_suffix(".json").write_text(to_json(whole) + "\n")
    return FINE


def _of_tools(every: Sequence[Row]) -> Iterator[Row]:
    """Rows of what tools would have told; connections that say little are no tests."""
    for one in every:
        if "told" in one and not one["words"].startswith(TALK):
            for told_of_it in told(one["told"], Pick(f"airpath tools {one['case']}")):
                yield one | {"features": tools.features(told_of_it)}


def left_out(every: Sequence[Row], cause: str) -> str:
    """What is said of a cause that was not learned: unknown, nothing, or which others."""
    alone = [one for one in every if labels_of(one) == {cause}]
    learned = learn([one for one in every if cause not in labels_of(one)], _OF_CAPTURES)
    said: Counter[str] = Counter()
    for row in alone:
        found = rank.best(learned.probabilities(row["features"]))
        named = found.causes[0][0] if found.causes else ""
        said[named or ("unknown" if found.leaning else "nothing")] += 1
    return ", ".join(f"{name} {count / len(alone):.0%}" for name, count in said.most_common())


def judge(
    learned: Model, held: Sequence[Row], best: Callable[[dict[str, float]], Answer]
) -> dict[str, Any]:
    """How often the first cause is a planted one, by cause, and how sure the model is.

    ``best``: what is answered, given the probabilities.
    """
    right: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    blamed = healthy = 0
    sure: list[tuple[float, bool]] = []
    for row in held:
        planted = labels_of(row)
        found = learned.probabilities(row["features"])
        named = best(found).causes
        found.pop(ANY)
        if not planted:
            healthy += 1
            blamed += bool(named)
        for cause in planted:
            cases[cause] += 1
            right[cause] += bool(named) and named[0][0] in planted
        sure += [(value, cause in planted) for cause, value in found.items()]
    return {
        "first": round(sum(right.values()) / max(1, sum(cases.values())), 3),
        "healthy blamed": round(blamed / max(1, healthy), 3),
        "calibration error": round(calibration_error(sure), 3),
        "causes": {
            cause: {"cases": cases[cause], "first": right[cause]} for cause in sorted(learned.costs)
        },
    }


def calibration_error(sure: Sequence[tuple[float, bool]], bins: int = 10) -> float:
    """Mean distance between what answers of 10 % or more say and how often they are right."""
    told = np.array([one for one in sure if one[0] >= 1 / bins], dtype=float)
    if not len(told):
        return 0.0
    which = np.minimum((told[:, 0] * bins).astype(int), bins - 1)
    apart = [
        abs(told[which == one, 0].mean() - told[which == one, 1].mean()) * (which == one).mean()
        for one in range(bins)
        if (which == one).any()
    ]
    return float(sum(apart))
