"""A case as a self-contained page: what is blamed, and captures' flows down to single packets."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath import _core
from airpath.base.text import digits, plural
from airpath.causes.suspect import SuspectDocument, costs
from airpath.diagnose.files import FileDocument
from airpath.diagnose.together import Together
from airpath.documents import CaptureReport, FlowReport
from airpath.errors import InputError
from airpath.plots.figure import Table
from airpath.readers.flows import End, main_sender, stream, tcp_flows, total_bytes
from airpath.report.render import script_json, write_page

if TYPE_CHECKING:
    import markupsafe

MOST_FLOWS = 5
"""Flows that are drawn: those with the most bytes."""
_DETAIL = ((8_192, 12_000), (2_048, 2_000))
"""Bins and single packets of the largest flow, and of the others: 5 MB in all at the most."""
_LEAST_SEGMENTS = 10


def write_case_report(
    files: Sequence[tuple[str, FileDocument]], joined: Together | None, path: Path
) -> None:
    """Write the page of files that ``diagnose`` told of, each with the name to read it again by.

    An existing file is replaced only by a complete one. Raises InputError if the only file is a
    capture without a flow to draw.
    """
    write_page(path, "capture.html.j2", **context(files, joined))


def context(
    files: Sequence[tuple[str, FileDocument]], joined: Together | None
) -> dict[str, object]:
    """What the page says."""
    views: list[dict[str, object]] = []
    told = []
    several = len(files) > 1
    for number, (name, document) in enumerate(files):
        capture = document.get("capture")
        wanted = _wanted(capture) if capture else []
        if not several and capture and not wanted:
            raise InputError(
                f"{document['file']}: no TCP flow has {_LEAST_SEGMENTS} segments with data, so "
                "there is nothing to draw"
            )
        for flow, end in wanted:
            bins, packets = _DETAIL[min(len(views), 1)]
            (view,) = _core.view_flows(Path(name), [(flow["id"], end == "client")], bins, packets)
            shows = stream(flow, end)["limits"] is not None
            named = {"name": _name(flow, end), "flow": flow["id"], "limits": shows, "file": number}
            views.append({**named, **_packed(view)})
        about = document["kind"] if capture is None else _about(capture)
        flows = _table(capture) if capture and wanted else None
        told.append(_file(number, document["file"], about, document, flows))
    if joined is not None:
        told.append(_file(len(files), "together", "all files", joined, None))
    title = files[0][1]["file"] + (f" and {len(files) - 1} more" if several else "")
    return {
        "title": title,
        "several": several,
        "files": told,
        "names": [view["name"] for view in views],
        "views": script_json(views),
        "viewer": _script(),
    }


def _file(
    number: int, name: str, about: str, document: FileDocument | Together, flows: Table | None
) -> dict[str, object]:
    """What the page says of a file, or of all together."""
    causes = document.get("causes")
    return {
        "number": number,
        "name": name,
        "about": about,
        "asked": causes is not None,
        "blamed": [_cause(one) for one in causes["causes"]] if causes else [],
        "because": causes["because"] if causes else "",
        "flows": flows,
        "statements": [one["text"] for one in document.get("statements", [])],
    }


def _wanted(capture: CaptureReport) -> list[tuple[FlowReport, End]]:
    """Flows, and the end whose data is drawn; of a packet's several points the first."""
    told: set[int] = set()
    found = []
    for flow in sorted(tcp_flows(capture), key=lambda flow: -total_bytes(flow)):
        end = main_sender(flow)
        enough = stream(flow, end)["data_packets"] >= _LEAST_SEGMENTS
        if enough and not told.intersection(flow["same_as"]):
            found.append((flow, end))
        told.add(flow["id"])
    return found[:MOST_FLOWS]


def _name(flow: FlowReport, end: End) -> str:
    client = f"{flow['client']}:{flow['client_port']}"
    server = f"{flow['server']}:{flow['server_port']}"
    ways = {"client": f"{client} to {server}", "server": f"{server} to {client}"}
    return f"Flow {flow['id']}: {ways[end]}"


def _packed(found: object) -> Any:
    """Columns of numbers as base64."""
    if isinstance(found, bytes):
        return base64.b64encode(found).decode()
    if isinstance(found, dict):
        return {key: _packed(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_packed(value) for value in found]
    return found


def _script() -> markupsafe.Markup:
    import markupsafe

    return markupsafe.Markup(  # noqa: S704
        Path(__file__).with_name("capture.js").read_text(encoding="utf-8")
    )


def _about(capture: CaptureReport) -> str:
    return (
        f"{capture['packets']:,} packets in {digits(capture['duration_s'])} s, "
        f"{plural(len(capture['flows']), 'flow')}; no payload is in this page."
    )


def _cause(cause: SuspectDocument) -> dict[str, object]:
    name = " or ".join(cause["causes"])
    return {**cause, "name": name, "costs": costs(cause)}


def _table(capture: CaptureReport) -> Table:
    heads = ["flow", "data of", "s", "MB", "Mb/s", "RTT ms (min, median, 95 %)", "retransmitted"]
    rows = []
    for flow, end in _wanted(capture):
        data = stream(flow, end)
        rtt = data["rtt_ms"]
        trips = "" if not rtt else ", ".join(map(digits, (rtt["min"], rtt["p50"], rtt["p95"])))
        rows.append(
            [
                str(flow["id"]),
                _name(flow, end).split(": ", 1)[1],
                digits(flow["duration_s"]),
                digits(data["data_bytes"] / 1e6),
                "" if data["goodput_mbps"] is None else digits(data["goodput_mbps"]),
                trips,
                str(data["retransmissions"]["packets"]),
            ]
        )
    return Table(heads, rows)
