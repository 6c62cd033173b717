"""Times in logs: those of ``date`` on a line of their own, and those in front of other lines.

A time is looked for by its parts, in any order: ``date``, ``ts``, ``ping -D``, ``iperf3
--timestamps`` with any format, loggers and PowerShell all write the same ones.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

_EPOCH = re.compile(
    r"(?<![\d.:])(?:(?P<s>[1-9]\d{8,9}(?:[.,]\d{1,9})?)|(?P<ms>\d{13})|(?P<us>\d{16})|(?P<ns>\d{19}))"
    r"(?![\d.:])"
)
"""Seconds since 1970, as ``date +%s``, ``+%s.%N`` and ``+%s%N`` write them, and smaller units."""
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_TIME = re.compile(
    r"(?<![\d:.])(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\b\.?)? ?\(?(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d(?::?\d\d)?(?!\d))?"
)
_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH = re.compile(
    r"\b(?:(?P<before>\d{1,2})[ -])?"
    r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\b\.?"
    r"(?:[ -]{1,2}(?P<after>\d{1,2})\b(?![:.]\d))?"
)
_YEAR = re.compile(r"(?<![\d:.+-])((?:19|20)\d\d)(?!\d|[:.]\d)")
_LEADING = re.compile(
    r"^(?:(?:Start|End) time: )?[\s\[(]*"
    r"(?:\d{9,10}(?:[.,]\d{1,9})?|\d{13}|\d{16}|\d{19}|"
    r"(?:(?:[^\W\d_]{1,12}[.,]{0,2}|\d{1,4}(?:[-/.]\d{1,4}){0,2}[.,]?)\s{1,3}){0,6}"
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}T)?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: [AaPp][Mm])?"
    r"(?: ?(?:(?:Z|UTC|MSK|(?!HOST)[A-Z]{1,4}T)\b|[+-]\d\d(?::?\d\d)?))?(?: \d{4})?)"
    r"[\])]?[:;,]?(?:\s+|$)"
)
"""A time at the beginning of a line, to its end."""


class Clock:
    """The last time that a log told, in seconds since 1970.

    ``now`` is None while none was told, and after a time that names no instant because its date
    or its zone is missing: then ``local`` is true. ``elapsed`` has such times too, counted from
    any beginning: only its differences mean something.
    """

    def __init__(self) -> None:
        self.now: float | None = None
        self.elapsed: float | None = None
        self.local = False

    def read(self, text: str) -> bool:
        """Whether there is a time in the text; ``now`` is then that time."""
        if found := _TIME.search(text):
            self._of_day(found, text)
        elif found := _EPOCH.search(text):
            unit = found.lastgroup or "s"
            self.now = self.elapsed = float(found[0].replace(",", ".")) * _UNITS[unit]
        return found is not None

    def tell(self, time_s: float) -> None:
        """Set the time, in seconds since 1970."""
        self.now = self.elapsed = time_s

    def strip(self, text: str) -> tuple[str, bool]:
        """The line without the time at its beginning, which is read, and whether there is one."""
        found = _LEADING.match(text)
        if found is None or not self.read(found[0]):
            return text, False
        return text[found.end() :], True

    def _of_day(self, found: re.Match[str], text: str) -> None:
        self.now = self.elapsed = None
        hour = int(found["hour"])
        if found["half"]:
            hour = hour % 12 + 12 * (found["half"] in "Pp")
        # Around the time: with it there, digits of both could be taken together.
        date = _date(f"{text[: found.start()]} | {text[found.end() :]}")
        with suppress(ValueError, OverflowError):
            time = datetime(*(date or (1970, 1, 1)), hour, int(found["minute"]),
                            int(found["second"]), int(f"{found['part'] or 0:0<6}"[:6]),
                            _zone(found["zone"]) or UTC)  # fmt: skip
            self.elapsed = time.timestamp()
            if date and found["zone"]:
                self.now = self.elapsed
        self.local |= self.now is None


def _date(text: str) -> tuple[int, int, int] | None:
    """Year, month and day; None where one of them is not told, or not in a known order."""
    if found := _YEAR_FIRST.search(text):
        return int(found[1]), int(found[2]), int(found[3])
    found, year = _MONTH.search(text), _YEAR.search(text)
    if found is None or year is None:
        return None
    day = found["after"] or found["before"]
    return (int(year[1]), _MONTHS.index(found["month"]) // 3 + 1, int(day)) if day else None


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text[0] not in "+-":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(offset if text[0] == "+" else -offset)
