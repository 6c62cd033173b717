"""JSON of iperf3: -J, --json-stream, several documents in a file, and documents cut short."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from airpath.base.json import Json
from airpath.errors import InputError
from airpath.readers.iperf_output import (
    LAST_TIME_S,
    Connection,
    Interval,
    IperfOutput,
    IperfTest,
    udp_received,
)

_MOST = 1e18
_NEXT = re.compile(r"^\{", re.MULTILINE)
_BEHIND = re.compile(r"\s*,\s*\{")
_MOST_FAILURES = 20
_INTERRUPT = "interrupt - "


def read(text: str, name: str = "iperf3") -> IperfOutput:
    """Read iperf3's JSON; InputError if this is something else, or says nothing."""
    output = IperfOutput([])
    documents = _documents(text, name, output.of_file)
    for run, document in enumerate(_streamed(documents)):
        if "start" not in document and "error" not in document:
            raise InputError(
                f'{name}: this JSON is not from iperf3 (no "start", no "error"), flent or jc'
            )
        try:
            output.tests += _tests(document, run)
        except (AttributeError, OverflowError, TypeError, ValueError) as odd:
            raise InputError(f"{name}: this JSON does not have iperf3's structure: {odd}") from None
    return output


def _documents(text: str, name: str, remarks: list[str]) -> list[Json]:
    """The objects in a text, also those of which the end is missing."""
    decoder, found = json.JSONDecoder(), []
    failures, end = 0, 0
    first: json.JSONDecodeError | None = None
    at = _next(text, 0)
    while at < len(text):
        after = _next(text, at + 1)
        try:
            # Where many are broken, each is read up to the next only: no text is read twice.
            if failures < _MOST_FAILURES:
                document, end = decoder.raw_decode(text, at)
            else:
                document, end = json.loads(text[at:after]), after
        except json.JSONDecodeError as broken:
            failures += 1
            first = first or broken
            document, end = _mended(text[at:after]), after
        except (RecursionError, ValueError):
            raise InputError(
                f"{name}: this JSON is nested too deeply, or a number is too long"
            ) from None
        if isinstance(document, dict):
            found.append(document)
        at = _next(text, end)
    if not found and first is not None:
        line, what = _broken(first)
        raise InputError(
            f"{name}: line {line}: iperf3's JSON {what}, and no complete interval precedes it. Run "
            "the test again."
        )
    if not found:
        raise InputError(f"{name}: this JSON is not an object")
    if first is not None:
        line, what = _broken(first)
        remarks.append(f"iperf3's JSON {what} at line {line}; what is complete was used")
    elif text[end:].strip("] \t\r\n"):
        remarks.append("text after the last JSON document was not read")
    return found


def _broken(error: json.JSONDecodeError) -> tuple[int, str]:
    """Line, and whether the text ends there, within a string or not, or is not JSON."""
    if error.msg.startswith("Unterminated string"):
        return error.lineno, "ends in the middle of a string"
    if not error.doc[error.pos :].strip():
        return error.doc.rstrip().count("\n") + 1, "ends"
    return error.lineno, "is broken"


def _next(text: str, at: int) -> int:
    """Where the next document begins: behind a comma, or at the beginning of a line."""
    if found := _BEHIND.match(text, at):
        return found.end() - 1
    found = _NEXT.search(text, at)
    return found.start() if found else len(text)


def _mended(text: str) -> Any:
    """What is whole of a document that is cut short, or None."""
    stack: list[str] = []
    whole, closing = 0, ""
    quoted = False
    for found in re.finditer(r'\\.|["{}\[\]]', text, re.DOTALL):
        mark = found[0]
        if mark == '"':
            quoted = not quoted
        elif quoted or mark[0] == "\\":
            continue
        elif mark in "{[":
            stack.append("}" if mark == "{" else "]")
            if len(stack) > 100:
                return None
        elif not stack or stack.pop() != mark:
            break
        else:
            whole, closing = found.end(), "".join(reversed(stack))
    if not whole:
        return None
    try:
        return json.loads(text[:whole] + closing)
    except (ValueError, RecursionError):
        return None


def _streamed(documents: list[Json]) -> Iterator[Json]:
    """Documents as -J has them; those of --json-stream (3.17 and later) are put together."""
    test: Json | None = None
    for one in documents:
        if set(one) != {"event", "data"}:
            yield one
            continue
        event, data = one["event"], one["data"]
        if test is None or event == "start":
            if test is not None:
                yield test
            test = {"start": {}, "intervals": [], "end": {}}
        if event == "interval":
            test["intervals"].append(data)
        elif event in ("start", "end", "error"):
            test[event] = data
    if test is not None:
        yield test


def _tests(document: Json, run: int) -> list[IperfTest]:
    start, end = document.get("start") or {}, document.get("end") or {}
    intervals = document.get("intervals") or []
    streams = [_interval(one) for interval in intervals for one in interval.get("streams") or []]
    settings = start.get("test_start") or {}
    server = "accepted_connection" in start
    # Debian's 3.12 says so in the names of the sums alone.
    both = bool(settings.get("bidir")) or any(
        name.endswith("_bidir_reverse") for one in (end, *intervals) for name in one
    )
    tests = []
    for second in (False, True) if both else (False,):
        test = _test(start, run, server, bool(settings.get("reverse")) or second)
        # The side that reports sends in the first direction, unless it is the server.
        test.streams = [one for one in streams if not both or one.sender is (second is server)]
        if both:
            test.connections = [
                one
                for one in test.connections
                if one.stream in {row.stream for row in test.streams}
            ]
        test.error = document.get("error")
        _totals(test, end, "_bidir_reverse" if second else "")
        _close(test, document.get("error"))
        tests.append(test)
    far = document.get("server_output_json")
    if isinstance(far, dict):
        for test, of_server in zip(tests, _tests(far, run), strict=False):
            test.far = of_server
    return tests


def _test(start: Json, run: int, server: bool, reverse: bool) -> IperfTest:
    settings = start.get("test_start") or {}
    time_s = _number((start.get("timestamp") or {}).get("timesecs"))
    return IperfTest(
        version=str(start.get("version") or ""),
        protocol=str(settings.get("protocol") or "TCP"),
        reverse=reverse,
        server=server,
        run=run,
        cookie=str(start.get("cookie") or ""),
        omit_s=_number(settings.get("omit")) or 0.0,
        target_bps=_number(settings.get("target_bitrate")) or None,
        start_time_s=time_s if time_s is not None and 0 < time_s < LAST_TIME_S else None,
        connections=[
            Connection(
                int(one.get("socket", -1)),
                str(one.get("local_host")),
                int(one.get("local_port") or 0),
                str(one.get("remote_host")),
                int(one.get("remote_port") or 0),
            )
            for one in start.get("connected") or []
        ],
    )


def _close(test: IperfTest, error: object) -> None:
    told = None if error is None else str(error)
    if told is not None and told.startswith(_INTERRUPT):
        test.remarks.append(f"it was ended by a signal: {told.removeprefix(_INTERRUPT)}")
        told = None
    test.error = told
    total = test.received or test.sent
    test.complete = error is None and total is not None
    if test.error is None and not test.streams and total is None:
        test.remarks.append("iperf3 reports no interval, no total and no error")
    elif test.error is None and total is None:
        test.remarks.append("iperf3's totals are missing: the test or its output was cut short")


def _interval(one: Json) -> Interval:
    return Interval(
        int(one.get("socket", -1)),
        _number(one.get("start")) or 0.0,
        _number(one.get("end")) or 0.0,
        round(_number(one.get("bytes")) or 0),
        _number(one.get("bits_per_second")) or 0.0,
        bool(one.get("omitted")),
        one.get("sender") if isinstance(one.get("sender"), bool) else None,
        _count(one.get("retransmits")),
        _count(one.get("snd_cwnd")) or None,
        _count(one.get("rtt")) or None,
        _number(one.get("jitter_ms")),
        _count(one.get("lost_packets")),
        _count(one.get("packets")),
    )


def _number(value: object) -> float | None:
    """A finite number, or None where nothing was written; ValueError for anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        raise ValueError(f"{value!r:.40} is not a number")
    return float(value)


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None else round(number)


def _is_nothing(test: IperfTest, attribute: str) -> bool:
    """Whether a total of 0 was counted, and does not stand for one that is not known.

    A client that sent has its receiver's total from the exchange of results at the end.
    """
    if not any(one.bytes for one in test.counted()):
        return bool(test.streams)
    exchanged = test.error is None and not test.server
    return exchanged and not test.reverse and attribute == "received"


def _totals(test: IperfTest, end: Json, which: str) -> None:
    names = [("sent", f"sum_sent{which}"), ("received", f"sum_received{which}")]
    if test.protocol == "UDP" and names[1][1] not in end and f"sum{which}" in end:
        # Up to 3.10 there is one sum: bytes as sent, losses as received.
        names = [("sent", f"sum{which}")]
    for attribute, key in names:
        if not isinstance(end.get(key), dict):
            continue
        total = _interval(end[key])
        if attribute == "sent" and len(names) > 1:
            # A sender of UDP knows of no losses, and writes zeros.
            total = replace(total, lost=None)
        if total.bytes or total.packets or _is_nothing(test, attribute):
            setattr(test, attribute, total)
        elif test.streams:
            test.remarks.append(f"{key} is 0, although intervals are not: it was not exchanged")
    if test.protocol == "UDP" and test.received is None and test.sent is not None:
        test.received = udp_received(test.sent)
    if test.protocol == "UDP" and len(names) == 1 and test.received is not None:
        test.remarks.append("for UDP, received is sent less lost")
