"""JSON as RFC 8259 has it."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""A JSON or TOML table that nothing has checked yet: for modules that parse one."""


def parsed(text: str | bytes) -> Any:
    """The value that a text says.

    Raises ValueError for what is no JSON (RFC 8259 6: neither NaN nor infinite numbers) and for
    numbers beyond a double, RecursionError for what is nested too deeply.
    """
    return json.loads(text, parse_constant=_refused, parse_float=_finite)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not allowed in JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large for a double")
    return number
