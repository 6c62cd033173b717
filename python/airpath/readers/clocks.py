"""Times that ``date`` and ``ts`` put into a log: on a line of their own, or in front of others."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

_EPOCH = re.compile(r"^(\d{10}(?:[.,]\d{1,9})?)(?:\s+|$)")
_MILLISECONDS = re.compile(r"^(?:(?:Start|End) time: )?(\d{13})\s*$")
_ISO = re.compile(
    r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?(?:\s+|$)"
)
_DATE = re.compile(
    r"^[A-Z][a-z]{2},? (?:(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2})|"
    r"(?P<first>\d{1,2}) (?P<then>[A-Z][a-z]{2}) (?P<when>\d{4})) +"
    r"(?P<time>\d{1,2}:\d\d:\d\d)(?P<half> [AP]M)? (?P<zone>[A-Z]{1,5}|[+-]\d{2,4})"
    r"(?: (?P<year>\d{4}))?\s*$"
)
_LOCAL = re.compile(r"^(?:[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d:\d\d(?:\.\d+)?;?(?:\s+|$)")
_ZONES = ("UTC", "GMT", "Z")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


class Clock:
    """The last time that a log told. ``local``: a time was met that names no instant."""

    def __init__(self) -> None:
        self.local = False
        self._now: float | None = None

    def strip(self, text: str) -> tuple[float | None, str]:
        """The line's time in seconds since 1970, or the last one's before it, and the rest."""
        if found := _EPOCH.match(text):
            self._now = float(found[1].replace(",", "."))
        elif found := _MILLISECONDS.match(text):
            self._now = int(found[1]) / 1000
        elif found := _ISO.match(text):
            zone = (found[4] or "").replace("Z", "+00:00")
            self._set(f"{found[1]}T{found[2]}.{(found[3] or '0')[:6]:0<6}{zone}", bool(zone))
        elif found := _DATE.match(text):
            self._of_date(found)
        elif found := _LOCAL.match(text):
            self.local, self._now = True, None
        return self._now, text[found.end() :] if found else text

    def _of_date(self, found: re.Match[str]) -> None:
        month = _MONTHS.find(found["month"] or found["then"]) // 3 + 1
        day, year = int(found["day"] or found["first"]), found["year"] or found["when"]
        hour, rest = found["time"].split(":", 1)
        if found["half"]:
            hour = str(int(hour) % 12 + 12 * (found["half"] == " PM"))
        zone = "+00:00" if found["zone"] in _ZONES else found["zone"]
        known = bool(year) and zone[0] in "+-"
        self._set(f"{year}-{month:02}-{day:02}T{int(hour):02}:{rest}{zone if known else ''}", known)

    def _set(self, iso: str, absolute: bool) -> None:
        self._now = None
        with suppress(ValueError, OverflowError):
            time = datetime.fromisoformat(iso)
            if absolute:
                self._now = time.timestamp()
        self.local |= self._now is None
