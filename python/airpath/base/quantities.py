"""Quantities as people type them in options: ``2GB``, ``100 Mb/s``, ``30 min``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airpath.errors import InputError

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]*)\s*")
_SIZES = {
    "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}  # fmt: skip
_RATES = {"kb/s": 1e-3, "mb/s": 1.0, "gb/s": 1e3}
_RATE_SPELLINGS = {"bit": "b/s", "bit/s": "b/s", "bps": "b/s"}
_TIMES = {"s": 1.0, "min": 60.0, "h": 3600.0}


def size_from(text: str, option: str) -> int:
    """Bytes of ``500MB``, ``2 GB`` or ``64KiB``; raises InputError that names the option.

    >>> size_from("2GB", "--data"), size_from("64 KiB", "--data")
    (2000000000, 65536)
    """
    return round(_value(text, option, _SIZES, "a size such as 500MB, 2GB or 64KiB"))


def rate_from(text: str, option: str) -> float:
    """Mb/s of ``100Mb/s``, ``100Mbit`` or ``1 Gbit/s``; raises InputError that names the option.

    >>> rate_from("1.5Gbit/s", "--rate"), rate_from("800 kb/s", "--rate")
    (1500.0, 0.8)
    """
    return _value(text, option, _RATES, "a rate such as 100Mb/s or 1Gbit/s (bits, not bytes)")


def time_from(text: str, option: str) -> float:
    """Seconds of ``90s``, ``10min`` or ``2h``; raises InputError that names the option.

    >>> time_from("10 min", "--time")
    600.0
    """
    return _value(text, option, _TIMES, "a time such as 90s, 10min or 2h")


def _value(text: str, option: str, units: Mapping[str, float], allowed: str) -> float:
    found = _NUMBER.fullmatch(text)
    if found is not None:
        # MB/s would be bytes.
        unit = found[2].lower() if units is not _RATES or "B" not in found[2] else ""
        for spelling, plain in _RATE_SPELLINGS.items():
            if units is _RATES and unit.endswith(spelling) and unit not in units:
                unit = unit.removesuffix(spelling) + plain
                break
        factor = units.get(unit)
        if factor is not None and float(found[1]) > 0:
            return float(found[1]) * factor
    raise InputError(f"{option} {text}: expects {allowed}")
