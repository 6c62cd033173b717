"""What a capture of a phase's streams shows: the probabilities of causes, by the one diagnosis."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from airpath import _core
from airpath.base.shapes import MisfitError, fitted
from airpath.base.text import printable
from airpath.causes.features import features
from airpath.causes.model import packaged
from airpath.causes.rank import MODEL, groups_of, read, suspected
from airpath.documents import CaptureReport
from airpath.errors import AirpathError
from airpath.measure.control import ProtocolError
from airpath.measure.document import Shown
from airpath.readers.flows import LEAST_BYTES, main_sender, total_bytes

LIKELY = 0.05
"""Causes that are less likely are not described."""
_MOST_CERTAIN = 1e-4
"""No single capture is surer than this: others of the same path count, too."""


def prepare() -> None:
    """Read the model, for a process that may not be able to after it gives up its rights."""
    packaged(MODEL)


def judged(packets: bytes, ports: Collection[int]) -> Shown | None:
    """Judge the streams with these client ports in a capture; None if they show too little."""
    if not packets:
        return None
    number = os.memfd_create("airpath capture")
    try:
        with os.fdopen(number, "wb", closefd=False) as file:
            file.write(packets)
        return _of(Path(f"/proc/self/fd/{number}"), ports)
    except (AirpathError, OSError, ValueError):
        return None
    finally:
        os.close(number)


def from_json(value: object) -> Shown | None:
    """Read what the far end sent. Raises ``ProtocolError`` if it is damaged."""
    if value is None:
        return None
    try:
        found: Shown = fitted(value, Shown)
    except MisfitError as fault:
        raise ProtocolError(f"the far end's capture is damaged: {fault}") from None
    for one in found["causes"]:
        one["evidence"], one["advice"] = printable(one["evidence"]), printable(one["advice"])
    return found


def _of(file: Path, ports: Collection[int]) -> Shown | None:
    whole = _core.read_capture(file)
    own = [
        one
        for one in whole["flows"]
        if one["tcp"] and one["client_port"] in ports and total_bytes(one) >= LEAST_BYTES
    ]
    report: CaptureReport = {**whole, "flows": own}
    chosen = [(one, main_sender(one)) for one in own]
    groups = groups_of(file, report, chosen, read(file, chosen))
    if not groups:
        return None
    group = max(groups, key=lambda one: sum(each.wire_bytes for each in one.transfers))
    found = features(group, report)
    every = packaged(MODEL).probabilities(found)
    likely = [
        suspected(cause, sure, group, found)
        for cause, sure in every.items()
        if cause in packaged(MODEL).costs and sure >= LIKELY
    ]
    return {
        "probabilities": {cause: round(sure, 5) for cause, sure in every.items()},
        "causes": [
            {
                "cause": one.cause,
                "cost": None if one.cost is None else round(one.cost, 3),
                "evidence": one.evidence,
                "advice": one.advice,
            }
            for one in likely
        ],
    }


def pooled(several: Iterable[Shown]) -> dict[str, float]:
    """Probabilities from captures of the same path: the mean of the logarithms of the odds."""
    each = [one["probabilities"] for one in several]
    if not each:
        return {}
    names = set(each[0]).intersection(*each[1:])
    found = {}
    for name in sorted(names):
        sure = np.clip([one[name] for one in each], _MOST_CERTAIN, 1 - _MOST_CERTAIN)
        found[name] = float(1 / (1 + np.exp(-np.mean(np.log(sure / (1 - sure))))))
    return found
