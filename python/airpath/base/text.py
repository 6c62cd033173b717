"""Quantities as people write them: three significant digits and a unit; and text on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

_CONTROLS = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)
"""Controls of C0 and C1 but tabs and ends of lines, and those of bidirectional text (UAX #9)."""


def printable(text: str) -> str:
    """Text that a terminal shows as it is: what would control the terminal is escaped, as in JSON.

    So are the bytes of a file's name that are no text.
    """
    shown = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return shown.encode(errors="backslashreplace").decode()


def file_name(text: str, otherwise: str) -> str:
    """Text as a name that is safe for a file; ``otherwise`` if nothing is left of it."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in text).lstrip(".-")
    return safe or otherwise


def digits(value: float) -> str:
    """Three significant digits, never in exponent form."""
    magnitude = abs(value)
    if magnitude >= 99.95:
        return _grouped(value)
    if magnitude >= 9.995:
        return f"{value:.1f}".removesuffix(".0")
    if magnitude >= 0.9995:
        return f"{value:.2f}"
    return f"{value:.3g}" if magnitude >= 0.001 or value == 0 else f"{value:.4f}"


def two_digits(value: float) -> str:
    """At most two significant digits, never in exponent form: ``4.4``, ``2200``."""
    return short(float(f"{value:.2g}"))


def short(value: float) -> str:
    """At most three significant digits, never in exponent form: ``4``, ``4.36``, ``2210``."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def count(value: float) -> str:
    """``4``, ``12,500``; the mean of counts keeps a digit: ``2.5``."""
    if value == round(value):
        return _grouped(value)
    return digits(value) if value >= 99.95 else f"{value:.1f}"


def rate(mbps: float | None) -> str:
    """``4.36 Mb/s``, ``430 kb/s``."""
    if mbps is None:
        return "no rate"
    if abs(mbps) >= 999.5:
        return f"{digits(mbps / 1000)} Gb/s"
    if abs(mbps) >= 0.9995 or mbps == 0:
        return f"{digits(mbps)} Mb/s"
    return f"{digits(mbps * 1000)} kb/s"


def milliseconds(value: float | None) -> str:
    """``61 ms``, ``1.24 s``."""
    if value is None:
        return "none"
    if abs(value) >= 999.5:
        return f"{digits(value / 1000)} s"
    return f"{digits(value)} ms" if abs(value) < 9.995 else f"{value:.0f} ms"


def size(amount: float, digits: Callable[[float], str] = digits) -> str:
    """``64 kB`` (1 kB = 1000 bytes)."""
    if amount >= 999_500:
        return f"{digits(amount / 1e6)} MB"
    if amount >= 999.5:
        return f"{digits(amount / 1e3)} kB"
    return f"{amount:.0f} B"


def exact_size(amount: int) -> str:
    """Bytes without rounding: ``64 KiB``, ``64 kB``, ``65537 B``."""
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10), ("MB", 10**6), ("kB", 10**3)):
        if amount >= step and amount % step == 0:
            return f"{count(amount // step)} {unit}"
    return f"{count(amount)} B"


def percent(share: float) -> str:
    """``12 %``; a share too small to round to 1 % keeps a digit more."""
    value = share * 100
    return f"{value:.0f} %" if value >= 0.95 or value == 0 else f"{value:.2g} %"


def moment(written: str) -> str:
    """``2026-11-29 14:55:06 UTC`` for a time as documents have it, ISO 8601 with ``+00:00``."""
    utc = written.removesuffix("+00:00")
    return written if utc == written else f"{utc.replace('T', ' ')} UTC"


def plural(number: float, noun: str) -> str:
    """``1 loss``, ``2 losses``."""
    if number == 1:
        return f"1 {noun}"
    return f"{count(number)} {noun}{'es' if noun.endswith('s') else 's'}"


def runs_of(runs: int, combinations: int, seeds: int) -> str:
    """``4 runs (2 combinations x 2 seeds)``, or ``5 runs of 2 combinations``."""
    told, many = plural(runs, "run"), plural(combinations, "combination")
    if runs != combinations * seeds:
        return f"{told} of {many}"
    return f"{told} ({many} x {plural(seeds, 'seed')})"


def replies(lost: int, sent: int) -> str:
    """How many echo requests had a reply."""
    if not lost and sent > 1:
        return f"all {sent} echo requests were answered"
    return f"{lost} of {sent} echo requests had no reply"


def _grouped(value: float) -> str:
    """A whole number; from five digits on in groups of three."""
    return f"{value:,.0f}" if abs(value) >= 9999.5 else f"{value:.0f}"
