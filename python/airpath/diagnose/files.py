"""Files that somebody recorded on a slow network: read and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airpath.diagnose import datagrams, outputs, points
from airpath.diagnose.capture import Statement, statements
from airpath.readers.recognise import STDIN, STDIN_NAME, Recognised, recognise

CAPTURES = ("pcap", "pcapng")


def diagnose(name: str, *, identify: bool = False) -> dict[str, Any]:
    """Return what a file is and, unless it is only to be identified, what it shows.

    The document has ``file``, ``kind``, ``compressed``; then ``statements`` (each with ``kind``,
    ``flow`` and ``text``) and the figures under the name of its kind (``capture``, or a tool's
    name). A capture also has ``causes``: ``verdict``, ``because``, and ``causes`` ranked by what
    they cost. Raises InputError for a file that cannot be read.
    """
    return describe(recognise(name, read=not identify))


def describe(found: Recognised) -> dict[str, Any]:
    """The document of a file that was recognised, and read or not."""
    document = {"file": found.name, "kind": found.kind, "compressed": found.compressed}
    if found.document is None:
        return document
    if found.kind in CAPTURES:
        told = statements(found.document) + datagrams.statements(found.document)
        told += [
            Statement("two-points", flow, pair.sentence_of_points())
            for flow, pair in points.within(found)
        ]
        said = [one.document() for one in told]
        causes = _causes(found.name, found.document)
        return {**document, "statements": said, "causes": causes, "capture": found.document}
    remarks = found.output.remarks if found.output else []
    said = [one.document() for one in outputs.statements(found.kind, found.document, remarks)]
    return {**document, "statements": said, found.kind: found.document}


def _causes(name: str, report: dict[str, Any]) -> dict[str, Any]:
    """What limits the flows; standard input cannot be read twice."""
    if name in (STDIN, STDIN_NAME):
        because = "Causes need a file, because the search reads it twice, packet by packet."
        return {"verdict": "inconclusive", "because": because, "causes": []}
    from airpath.causes import blame

    return blame(Path(name), report).document()
