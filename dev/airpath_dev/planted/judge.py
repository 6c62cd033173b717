"""A case, its capture at the server, what that blames, and whether it is right."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from airpath import _core
from airpath.causes import blame
from airpath.runs.summary import to_json

from .capture import capture
from .draw import LEAST_GAIN, Case, draw, figures


@dataclass(frozen=True)
class Outcome:
    """``named``: the causes in the order in which they were ranked, the first of each group."""

    case: str
    cause: str | None
    words: str
    gain: float
    is_severe: bool
    traceless: str | None
    named: tuple[str, ...]
    right: bool


def outcome(seed: int, number: int, place: Path, *, emulated: bool) -> Outcome:
    """Draw, run, capture, blame. A file of a case that was judged already is taken as it is.

    Raises RuntimeError if the case cannot be drawn or run.
    """
    kept = place / f"{seed}-{number}.outcome.json"
    if kept.exists():
        return read(kept)
    case = draw(seed, number)
    file = capture(case, place, emulated=emulated)
    if emulated and case.cause:
        case = as_emulated(case, place / f"{case.name}.run" / "summary.json")
    found = judge(case, file)
    file.unlink()
    shutil.rmtree(place / f"{case.name}.run")
    partial = kept.with_suffix(".partial")
    partial.write_text(to_json(asdict(found)))
    partial.rename(kept)
    return found


def as_emulated(case: Case, summary: Path) -> Case:
    """The case with what its cause costs where the kernel sends.

    A kernel need not be held back by what holds a simulated sender back: it fills a send buffer by
    whole batches, for one. Such a cause has no trace.
    """
    now = figures(json.loads(summary.read_text())).get(case.figure or "")
    if now is None:
        return case
    cost = math.log(case.without / now)
    none = "the kernel is not held back by it" if cost < LEAST_GAIN / 2 else None
    return replace(case, gain=cost, traceless=case.traceless or none)


def judge(case: Case, file: Path) -> Outcome:
    """What the capture blames. A healthy path is right if nothing is blamed."""
    named = tuple(one.causes[0] for one in blame(file, _core.read_capture(file)).suspects)
    right = not named if case.cause is None else bool(named) and named[0] in case.allowed
    return Outcome(
        case.name, case.cause, case.words, case.gain, case.is_severe, case.traceless, named, right
    )


def read(file: Path) -> Outcome:
    """An outcome that was written."""
    raw: dict[str, Any] = json.loads(file.read_text())
    return Outcome(**{**raw, "named": tuple(raw["named"])})
