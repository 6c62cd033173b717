"""Flent's data files (.flent, .flent.gz): series with their units, and what the test was."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from airpath.base.json import Json
from airpath.errors import InputError
from airpath.readers.documents import json_document

_MOST = 1e18
_PING = ("ms",)
_RATE = ("Mbits/s", "Mbit/s")


class SeriesDocument(TypedDict):
    """The distribution of a series; null without a value."""

    name: str
    unit: str
    points: int
    start_s: float | None
    end_s: float | None
    min: float | None
    mean: float | None
    p50: float | None
    p95: float | None
    max: float | None


class FlentDelay(TypedDict):
    """Medians of a delay before the load, and during it."""

    name: str
    idle_ms: float | None
    loaded_ms: float | None


class FlentDocument(TypedDict):
    """What flent recorded."""

    test: str
    title: str
    host: str
    version: str
    length_s: float | None
    start_time_s: float | None
    congestion: str | None
    series: list[SeriesDocument]
    delays: list[FlentDelay]
    remarks: list[str]


@dataclass(frozen=True)
class Series:
    """One of the test's figures over time: seconds since its start, values in ``unit``."""

    name: str
    unit: str
    points: list[tuple[float, float]]

    @property
    def is_delay(self) -> bool:
        """Whether it has round trips or latencies in milliseconds."""
        return self.unit in _PING

    @property
    def is_rate(self) -> bool:
        """Whether it has rates in Mb/s."""
        return self.unit in _RATE

    def document(self) -> SeriesDocument:
        """Its distribution; percentiles by rank."""
        values = sorted(value for _, value in self.points)

        def rank(share: int) -> float | None:
            return values[-(-share * len(values) // 100) - 1] if values else None

        return {
            "name": self.name,
            "unit": self.unit,
            "points": len(values),
            "start_s": self.points[0][0] if values else None,
            "end_s": self.points[-1][0] if values else None,
            "min": values[0] if values else None,
            "mean": sum(values) / len(values) if values else None,
            "p50": rank(50),
            "p95": rank(95),
            "max": values[-1] if values else None,
        }


@dataclass
class FlentOutput:
    """What flent recorded. ``start_s``: seconds since 1970, None if that is not told."""

    test: str = ""
    title: str = ""
    host: str = ""
    version: str = ""
    length_s: float | None = None
    start_s: float | None = None
    congestion: str | None = None
    series: list[Series] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def document(self) -> FlentDocument:
        """The series' distributions, and delays before and during load where there are both."""
        return {
            "test": self.test,
            "title": self.title,
            "host": self.host,
            "version": self.version,
            "length_s": self.length_s,
            "start_time_s": self.start_s,
            "congestion": self.congestion,
            "series": [one.document() for one in self.series],
            "delays": [self._delay(one) for one in self.series if one.is_delay and one.points],
            "remarks": self.remarks,
        }

    def _delay(self, series: Series) -> FlentDelay:
        """Medians of a delay in the seconds before the first rate, between, and after the last."""
        rates = [at for one in self.series if one.is_rate for at, value in one.points if value > 0]
        idle, loaded = [], []
        for at, value in series.points:
            if rates and min(rates) <= at <= max(rates):
                loaded.append(value)
            elif not rates or at < min(rates):
                idle.append(value)
        return {
            "name": series.name,
            "idle_ms": _median(idle),
            "loaded_ms": _median(loaded),
        }


def read(text: str, name: str = "flent") -> FlentOutput:
    """Read a data file of flent; InputError if it is none, or is cut short."""
    document = json_document(text, name)
    if not isinstance(document.get("results"), dict) or "x_values" not in document:
        raise InputError(f'{name}: this JSON has no "results" and "x_values", as flent\'s has')
    try:
        return _read(document)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as odd:
        raise InputError(f"{name}: this JSON does not have flent's structure: {odd}") from None


def _read(document: Json) -> FlentOutput:
    about = document.get("metadata") or {}
    said = about.get("SERIES_META") or {}
    output = FlentOutput(
        test=str(about.get("NAME") or ""),
        title=str(about.get("TITLE") or ""),
        host=str(about.get("HOST") or ""),
        version=str(about.get("FLENT_VERSION") or ""),
        length_s=_number(about.get("LENGTH")),
    )
    output.start_s = _began(about.get("T0"), document.get("raw_values") or {})
    times = [_number(at) or 0.0 for at in document["x_values"]]
    for name, values in document["results"].items():
        meta = said.get(name) or said.get(str(name).partition("::")[0]) or {}
        unit = str(meta.get("UNITS") or "")
        points = [
            (at, number)
            for at, value in zip(times, values, strict=False)
            if (number := _number(value)) is not None
        ]
        output.series.append(Series(str(name), unit, points))
        output.congestion = output.congestion or meta.get("CONG_CONTROL")
        if len(values) != len(times):
            output.remarks.append(f"{name!r:.40} has {len(values)} values at {len(times)} times")
    failed = _number(about.get("FAILED_RUNNERS"))
    if failed:
        output.remarks.append(f"{failed:.0f} of its programs failed")
    return output


def _began(written: object, raw: Json) -> float | None:
    """When x is 0. A time without a zone is the writer's own; the first raw value tells then."""
    if written:
        time = datetime.fromisoformat(str(written).replace("Z", "+00:00"))
        if time.tzinfo is not None:
            return time.timestamp()
    first = [_number(one[0].get("t")) for one in raw.values() if one and isinstance(one[0], dict)]
    return min((at for at in first if at is not None), default=None)


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.40} is not a number")
    return float(value) if math.isfinite(value) and abs(value) < _MOST else None


def _median(values: list[float]) -> float | None:
    return sorted(values)[(len(values) - 1) // 2] if values else None
