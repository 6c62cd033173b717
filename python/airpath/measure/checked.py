"""Fields of JSON from a peer: each function returns a field, or raises ``ProtocolError``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from airpath.measure.control import ProtocolError


def table(value: object, what: str) -> dict[str, Any]:
    """An object; ``what`` names it in the error."""
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} is not an object")
    return value


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number from 0 that JSON keeps exactly (RFC 8259 6)."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def whole(fields: Mapping[str, object], key: str) -> int:
    """A whole number of at least 0."""
    value = fields.get(key)
    if not is_whole(value):
        raise ProtocolError(f"{key} must be a whole number of at least 0")
    return value


def number(fields: Mapping[str, object], key: str) -> float:
    """A number of at least 0."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise ProtocolError(f"{key} must be a number of at least 0")
    return value


def text(fields: Mapping[str, object], key: str) -> str | None:
    """Text of at most 500 characters, or nothing."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(f"{key} is not text")
    return None if value is None else value[:500]


def rows(fields: Mapping[str, object], key: str, most: int) -> list[Any]:
    """A list of at most ``most`` entries."""
    value = fields.get(key)
    if not isinstance(value, list) or len(value) > most:
        raise ProtocolError(f"{key} is not a list of at most {most} entries")
    return value


def numbers(fields: Mapping[str, object], key: str, most: int) -> list[float | None]:
    """A list of at most ``most`` numbers from 0, or nothing in their places."""
    found = rows(fields, key, most)
    return [None if value is None else number({key: value}, key) for value in found]


def pairs(fields: Mapping[str, object], key: str, most: int) -> list[tuple[int, int]]:
    """A list of at most ``most`` pairs of whole numbers from 0."""
    found = rows(fields, key, most)
    for pair in found:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(is_whole, pair))):
            raise ProtocolError(f"{key} is not a list of pairs of whole numbers")
    return [(one, other) for one, other in found]
