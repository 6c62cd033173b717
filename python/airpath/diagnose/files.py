"""Files that somebody has of a slow network, read and told of."""

from __future__ import annotations

from typing import Any

from airpath.diagnose.capture import statements
from airpath.readers.recognise import Recognised, recognise

CAPTURES = ("pcap", "pcapng")


def diagnose(name: str, *, identify: bool = False) -> dict[str, Any]:
    """Return what a file is, and unless it is only to be identified, what it tells.

    The document has ``file``, ``kind``, ``compressed``; then ``statements`` (each with ``kind``,
    ``flow`` and ``text``) and the figures under the name of its kind (``capture``, ``ping`` or
    ``iperf3``). Raises InputError for what is not read.
    """
    found = recognise(name, read=not identify)
    document = {"file": found.name, "kind": found.kind, "compressed": found.compressed}
    if found.document is None:
        return document
    if found.kind in CAPTURES:
        said = [one.document() for one in statements(found.document)]
        return {**document, "statements": said, "capture": found.document}
    return {**document, "statements": _of_a_tool(found), found.kind: found.document}


def _of_a_tool(found: Recognised) -> list[dict[str, Any]]:
    document = found.document or {}
    said = [
        ("remark", f"{remark[0].upper()}{remark[1:]}.") for remark in document.get("remarks", [])
    ]
    if found.kind == "ping":
        said.insert(0, ("ping", _ping(document)))
    elif document.get("error"):
        said.insert(0, ("iperf3-error", f"iperf3 failed: {document['error']}."))
    else:
        said.insert(0, ("iperf3", _iperf3(document)))
    return [{"kind": kind, "flow": None, "text": text} for kind, text in said]


def _ping(document: dict[str, Any]) -> str:
    sent, lost, rtt = document["sent"], document["lost"], document["rtt_ms"]
    text = f"{lost} of {sent} echo requests had no answer"
    if not rtt:
        return f"{text}."
    return (
        f"{text}; the round trip is {rtt['min']:.4g} ms at least, {rtt['p50']:.4g} ms in the "
        f"median, {rtt['p99']:.4g} ms in the 99th percentile."
    )


def _iperf3(document: dict[str, Any]) -> str:
    goodput = document["goodput_mbps"]
    rate = "no rate" if goodput is None else f"{goodput:.4g} Mb/s"
    direction = "to the client" if document["reverse"] else "to the server"
    streams = document["streams"]
    text = f"{document['protocol']} {direction}, {streams} stream{'s' * (streams != 1)}: {rate}"
    for key, what in (("retransmissions", "segments sent again"), ("packets_lost", "packets lost")):
        if document[key] is not None:
            text += f", {document[key]} {what}"
    return f"{text}."
