"""Files that somebody recorded on a slow network: read and explained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

from airpath.causes import clock, tools
from airpath.diagnose import datagrams, outputs, points
from airpath.diagnose.capture import Statement, StatementDocument, statements
from airpath.diagnose.told import judged, told_by
from airpath.readers.recognise import STDIN, STDIN_NAME, Recognised, recognise

if TYPE_CHECKING:
    from airpath.causes.rank import BlameDocument
    from airpath.documents import CaptureReport
    from airpath.readers.flent import FlentDocument
    from airpath.readers.iperf_output import IperfDocument
    from airpath.readers.nuttcp import NuttcpDocument
    from airpath.readers.ping import PingDocument
    from airpath.readers.ss import SsDocument


class FileDocument(TypedDict):
    """A file's kind and figures; the figures are under the name of the kind."""

    file: str
    kind: str
    compressed: bool
    statements: NotRequired[list[StatementDocument]]
    causes: NotRequired[BlameDocument]
    capture: NotRequired[CaptureReport]
    ping: NotRequired[PingDocument]
    iperf2: NotRequired[IperfDocument]
    iperf3: NotRequired[IperfDocument]
    nuttcp: NotRequired[NuttcpDocument]
    ss: NotRequired[SsDocument]
    flent: NotRequired[FlentDocument]


def diagnose(name: str, *, identify: bool = False) -> FileDocument:
    """Return what a file is and, unless it is only to be identified, what it shows.

    The document has ``file``, ``kind``, ``compressed``; then ``statements`` (each with ``kind``,
    ``flow`` and ``text``) and the figures under the name of its kind (``capture``, or a tool's
    name). A capture also has ``causes``: ``verdict``, ``because``, and ``causes`` ranked by what
    they cost. Raises InputError for a file that cannot be read.
    """
    return describe(recognise(name, read=not identify))


def describe(found: Recognised, *, alone: bool = True) -> FileDocument:
    """The document of a file that was recognised, and read or not.

    If it is not ``alone``, what a tool printed is judged together with the other files.
    """
    document: FileDocument = {
        "file": found.name,
        "kind": found.kind,
        "compressed": found.compressed,
    }
    if found.capture is not None:
        # Standard input cannot be read twice.
        again = found.name not in (STDIN, STDIN_NAME)
        stepped = clock.steps(Path(found.name), found.capture) if again else []
        told = statements(found.capture, stepped) + datagrams.statements(found.capture)
        pairs = points.within(found)
        told += [
            Statement("two-points", flow["id"], pair.sentence_of_points())
            for flow, _, pair in pairs
        ]
        document["statements"] = [one.document() for one in told]
        document["causes"] = _causes(found, pairs, stepped)
        document["capture"] = found.capture
    elif found.output is not None:
        figures = found.output.document()
        said = outputs.statements(found.output, figures)
        document["statements"] = [one.document() for one in said]
        if alone and (test := told_by([found.output])):
            document["causes"] = tools.blame(test).document()
            if text := judged(found.output):
                document["statements"].append(Statement("judged-test", None, text).document())
        return cast("FileDocument", {**document, found.kind: figures})
    return document


def _causes(
    found: Recognised, pairs: Sequence[points.PairOfFlows], stepped: Sequence[clock.Step]
) -> BlameDocument:
    """What limits the flows; standard input cannot be read twice."""
    if found.name in (STDIN, STDIN_NAME):
        because = "Causes need a file, because the search reads it twice, packet by packet."
        return {"verdict": "inconclusive", "because": because, "causes": []}
    from airpath.causes import blame

    if doubtful := list(clock.doubts(found.report, stepped)):
        return {"verdict": "inconclusive", "because": " ".join(doubtful), "causes": []}
    return blame(Path(found.name), found.report, points.between(found, pairs)).document()
