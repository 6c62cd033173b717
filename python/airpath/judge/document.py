"""The document of a judgement."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TypedDict

from airpath.judge import definition
from airpath.judge.trials import Judgement
from airpath.judge.verdicts import Fault, Row


class CandidateEntry(TypedDict):
    """A congestion control that was judged."""

    congestion: str
    file: str | None
    sha256: str | None


class FaultEntry(TypedDict):
    """What is wrong with a congestion control, on a path."""

    congestion: str
    path: str
    fault: str
    because: str
    criterion: str


class JudgeDocument(TypedDict):
    """All figures of a judgement. ``set`` is the version of the paths, to cite."""

    set: str
    version: str
    kernel: str
    blocks: int
    duration_s: float
    from_s: float
    congestion: list[CandidateEntry]
    rows: list[Row]
    faults: list[FaultEntry]
    missing: list[str]
    """Runs of which no attempt counted."""
    directory: str


def document(
    done: Judgement, rows: Sequence[Row], faults: Sequence[Fault], blocks: int
) -> JudgeDocument:
    """Return the document of a judgement."""
    from airpath import _core

    return {
        "set": definition.SET,
        "version": _core.__version__,
        "kernel": platform.release(),
        "blocks": blocks,
        "duration_s": definition.DURATION_S,
        "from_s": definition.FROM_S,
        "congestion": [
            {
                "congestion": one.label,
                "file": one.congestion.file,
                "sha256": one.congestion.sha256,
            }
            for one in done.candidates
        ],
        "rows": list(rows),
        "faults": [
            {
                "congestion": fault.congestion,
                "path": fault.path,
                "fault": fault.fault,
                "because": fault.because,
                "criterion": fault.criterion,
            }
            for fault in faults
        ],
        "missing": [trial.place for trial in done.missing],
        "directory": str(done.directory),
    }
