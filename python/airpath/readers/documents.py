"""JSON documents of tools, or why a text is none."""

from __future__ import annotations

import json

from airpath.base.json import Json, parsed
from airpath.errors import InputError


def json_document(text: str, name: str) -> Json:
    """The JSON object that a text is; InputError if it is none, or is cut short."""
    try:
        document = parsed(text.lstrip("\ufeff"))
    except json.JSONDecodeError as broken:
        raise InputError(f"{name}: line {broken.lineno}: not JSON: {broken.msg}") from None
    except RecursionError:
        raise InputError(f"{name}: this JSON is nested too deeply") from None
    except ValueError as wrong:
        raise InputError(f"{name}: not JSON: {wrong}") from None
    if not isinstance(document, dict):
        raise InputError(f"{name}: this JSON is not an object")
    return document
