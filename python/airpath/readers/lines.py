"""Lines as tools print them, without what loggers and shells put before them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

_ISO = re.compile(r"^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d{4}|Z)?)\] ?")
_EPOCH = re.compile(r"^\[(\d{9,10}\.\d{1,9})\] ?")
_LOGGER = re.compile(r"^ ?- \S+ - (?:DEBUG|INFO|WARNING|ERROR) - ")
"""What a log of Python has before a message."""
_MOST_CHARACTERS = 1000
"""No tool prints longer lines that mean something."""
_TITLE = re.compile(r"^(\S+):  ")


class Line(NamedTuple):
    """A line, its number from 1 and the time (seconds since 1970) that was printed before it."""

    number: int
    text: str
    time_s: float | None


def stripped(text: str, most: int = _MOST_CHARACTERS) -> Iterator[Line]:
    """The lines without line ends, titles (``iperf3 --title``) and times in front.

    A time in front is an ISO 8601 time or seconds since 1970 (``ping -D``) in brackets; one
    without a time zone says nothing. Of a line ``most`` characters count.
    """
    lines = text.splitlines()
    title = _title(lines)
    for number, whole in enumerate(lines, 1):
        if not whole:
            yield Line(number, "", None)
            continue
        line = whole[:most].rstrip("\r").removeprefix(title)
        time_s = None
        if found := _EPOCH.match(line):
            time_s = float(found[1])
        elif found := _ISO.match(line):
            with suppress(ValueError, OverflowError):
                time = datetime.fromisoformat(found[1].replace("Z", "+0000"))
                time_s = None if time.tzinfo is None else time.timestamp()
        line = line[found.end() :] if found else line
        if found and (logger := _LOGGER.match(line)):
            line = line[logger.end() :]
        yield Line(number, line, time_s)


def _title(lines: list[str]) -> str:
    """What iperf3's --title puts before each line, or nothing."""
    written = [line for line in lines if line.strip()]
    found = _TITLE.match(written[0]) if written else None
    if found is None or not all(line.startswith(found[0]) for line in written[:5]):
        return ""
    return found[0]
