"""JSON documents of tools, or why a text is none."""

from __future__ import annotations

import json
from typing import Any

from airpath.errors import InputError


def json_document(text: str, name: str) -> dict[str, Any]:
    """The JSON object that a text is; InputError if it is none, or is cut short."""
    try:
        document = json.loads(text.lstrip("\ufeff"))
    except json.JSONDecodeError as broken:
        raise InputError(f"{name}: line {broken.lineno}: not JSON: {broken.msg}") from None
    except (RecursionError, ValueError):
        raise InputError(
            f"{name}: this JSON is nested too deeply, or a number is too long"
        ) from None
    if not isinstance(document, dict):
        raise InputError(f"{name}: this JSON is not an object")
    return document
