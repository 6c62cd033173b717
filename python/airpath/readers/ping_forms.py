"""Pings in other forms than ping's own: the JSON of jc, and tables (CSV) with a column of RTTs."""

from __future__ import annotations

import csv
import math
import re

from airpath.base.json import Json
from airpath.errors import InputError
from airpath.readers.documents import json_document
from airpath.readers.ping import NO_ANSWER, PingOutput, PingRun, Reply

_COLUMN = re.compile(r"^(?:rtt|time|latency|ping)[ _]*[\[(]?ms[\])]?$", re.IGNORECASE)
_LOST = ("", "-", "*", "timeout", "lost")
_MOST = 1e9


def read_json(text: str, name: str = "ping") -> PingOutput:
    """Read what jc made of ping's output; InputError if it is something else."""
    document = json_document(text, name)
    if "packets_transmitted" not in document or "responses" not in document:
        raise InputError(
            f'{name}: this JSON has no "packets_transmitted", unlike jc\'s ping output'
        )
    try:
        return _of_jc(document)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as odd:
        raise InputError(
            f"{name}: this JSON does not have the structure of jc's ping output: {odd}"
        ) from None


def _of_jc(document: Json) -> PingOutput:
    output = PingRun(address=str(document.get("destination_ip") or ""), complete=True)
    remarks = []
    output.sent = int(document["packets_transmitted"])
    output.received = int(document["packets_received"])
    if document.get("data_bytes") is not None:
        output.payload_bytes = int(document["data_bytes"])
    for key, said in (("min", "min"), ("mean", "avg"), ("max", "max"), ("mdev", "stddev")):
        if (value := document.get(f"round_trip_ms_{said}")) is not None:
            output.printed[key] = _number(value)
    for one in document["responses"]:
        if one.get("type") == "reply" and one.get("time_ms") is not None:
            time = one.get("timestamp")
            output.replies.append(
                Reply(
                    int(one.get("icmp_seq") or 0),
                    _number(one["time_ms"]),
                    str(one.get("response_ip") or ""),
                    None if one.get("ttl") is None else int(one["ttl"]),
                    None if time is None else _number(time, 1e11),
                    bool(one.get("duplicate")),
                )
            )
        elif one.get("type") == "unparsable_line":
            remarks.append(f"jc did not understand: {one.get('unparsed_line')!s:.60}")
        else:
            seq = one.get("icmp_seq")
            what = str(one.get("type") or "error").replace("_", " ")
            what = NO_ANSWER if what == "timeout" else what
            output.errors.append((None if seq is None else int(seq), what))
    return PingOutput([output], remarks)


def read_table(text: str, name: str = "ping") -> PingOutput:
    """Read a table of which a column has RTTs in milliseconds (``RTT [ms]``), one probe a row."""
    lines = text.lstrip("\ufeff").splitlines()
    head = next(csv.reader(lines[:1]), []) if lines and len(lines[0]) < 10_000 else []
    columns = [at for at, cell in enumerate(head) if _COLUMN.match(cell.strip())]
    if len(columns) != 1 or len(head) < 2:
        raise InputError(f"{name}: this is not a table with one column of RTTs in ms")
    output = PingRun(complete=True)
    for number, line in enumerate(lines[1:], 2):
        row = next(csv.reader([line[:10_000]]), [])
        if not row:
            continue
        cell = row[columns[0]].strip() if len(row) > columns[0] else ""
        output.sent += 1
        if cell.lower() in _LOST:
            output.errors.append((output.sent, NO_ANSWER))
            continue
        try:
            rtt = _number(float(cell))
        except ValueError:
            raise InputError(
                f"{name}: line {number}: {head[columns[0]]} is {cell[:40]!r}, which is not an "
                "RTT in ms"
            ) from None
        output.replies.append(Reply(output.sent, rtt, "", None, None, False))
        output.received += 1
    if not output.sent:
        raise InputError(f"{name}: the table of RTTs has no row")
    return PingOutput([output])


def _number(value: object, most: float = _MOST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.40} is not a number")
    if not math.isfinite(value) or not 0 <= value < most:
        raise ValueError(f"{value!r:.40} is out of range")
    return float(value)
