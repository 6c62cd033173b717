"""Documents from outside, checked against the types that the code gives them.

A type is a ``TypedDict``, ``list[…]``, ``tuple[…]``, ``dict[str, …]``, ``Literal[…]``, a union or a
plain type. ``Annotated[…, Length(…)]``, ``Range(…)`` and ``As(…)`` say more. Dictionaries may have
further keys: a newer version may have written them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

LARGEST = 2**64
"""No figure is larger than what a 64-bit counter can hold."""

_Check = Callable[[Any], Any]
"""Returns the value with what it lacks filled in. Raises ``MisfitError``."""

_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Length:
    """How many items a list has."""

    least: int
    most: int


@dataclass(frozen=True)
class Range:
    """Between which numbers a number is."""

    least: float
    most: float = LARGEST


@dataclass(frozen=True)
class As:
    """Another type to check a value against, with fewer fields if older versions wrote fewer."""

    kind: Any


class MisfitError(Exception):
    """A value that is not as its type says, and where in the document it is."""

    def __init__(self, wrong: str, place: str = "") -> None:
        super().__init__(wrong, place)
        self.wrong, self.place = wrong, place

    def within(self, outer: str) -> MisfitError:
        """Return the fault as seen from one level further out."""
        inner = self.place
        dot = "." if inner and not inner.startswith("[") else ""
        return MisfitError(self.wrong, f"{outer}{dot}{inner}")

    def __str__(self) -> str:
        return f"{self.place or 'the document'} {self.wrong}"


def fitted(value: Any, kind: Any, *, exact: bool = False) -> Any:
    """Return a document that is as its type says. Raises ``MisfitError`` for the first fault.

    A key that may be null may also be missing, because an older version did not write it: it is
    added as null. With ``exact`` nothing may be missing and nothing may be there besides.
    """
    return _check(kind, exact)(value)


def _misfit(value: Any, allowed: str) -> MisfitError:
    if value is None or isinstance(value, bool):
        said = str(value).lower().replace("none", "null")
    elif isinstance(value, dict | list):
        said = f"a {'table' if isinstance(value, dict) else 'list'}"
    elif isinstance(value, int) and abs(value) >= 1 << 70:
        # Python refuses to print what is much longer.
        said = "larger than 2^70"
    else:
        said = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}…"
    return MisfitError(f"is {said}; expected {allowed}")


@functools.cache
def _check(kind: Any, exact: bool) -> _Check:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return lambda value: value
    if origin is NotRequired:
        return _check(inner[0], exact)
    if origin is Annotated:
        as_ = next((rule.kind for rule in inner[1:] if isinstance(rule, As)), inner[0])
        return _annotated(_check(as_, exact), inner[1:])
    if origin in (Union, types.UnionType):
        return _union([one for one in inner if one is not types.NoneType], exact, inner)
    if origin is Literal:
        return _literal(inner)
    if hasattr(kind, "__required_keys__"):
        return _table(kind, exact)
    if origin is dict:
        return _dictionary(_check(inner[1], exact))
    if origin is list:
        return _items(_check(inner[0], exact))
    if origin is tuple:
        return _tuple([_check(one, exact) for one in inner])
    return _plain(kind)


def _plain(kind: type) -> _Check:
    name = _NAMES[kind]
    number = kind in (int, float)
    allowed: Any = (int, float) if kind is float else kind

    def check(value: Any) -> Any:
        if not isinstance(value, allowed) or (number and isinstance(value, bool)):
            raise _misfit(value, name)
        if number and not -LARGEST <= value <= LARGEST:
            raise _misfit(value, f"{name} up to 2^64")
        if kind is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _misfit(value, "text in UTF-8") from None
        return value

    return check


def _literal(choices: tuple[Any, ...]) -> _Check:
    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise _misfit(value, ", ".join(choices))
        return value

    return check


def _union(kinds: list[Any], exact: bool, inner: tuple[Any, ...]) -> _Check:
    checks = [_check(kind, exact) for kind in kinds]
    nullable = len(kinds) < len(inner)

    def check(value: Any) -> Any:
        if value is None and nullable:
            return None
        for one in checks[:-1]:
            try:
                return one(value)
            except MisfitError:
                continue
        try:
            return checks[-1](value)
        except MisfitError as fault:
            if nullable and not fault.place:
                raise MisfitError(f"{fault.wrong}, or null") from None
            raise

    return check


def _table(kind: Any, exact: bool) -> _Check:
    hints = get_type_hints(kind, include_extras=True)
    checks = {key: _check(hint, exact) for key, hint in hints.items()}
    nullable = {key for key, hint in hints.items() if types.NoneType in get_args(hint)}
    # With postponed annotations, TypedDict itself does not recognise NotRequired.
    required = [
        key
        for key, hint in hints.items()
        if key in kind.__required_keys__ and get_origin(hint) is not NotRequired
    ]

    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _misfit(value, "a table")
        for key in required:
            if key not in value:
                if exact or key not in nullable:
                    raise MisfitError("is missing", key)
                value[key] = None
        for key, inner in value.items():
            one = checks.get(key)
            if one is None:
                if exact:
                    raise MisfitError(f"is not in {kind.__name__}", key)
                continue
            try:
                value[key] = one(inner)
            except MisfitError as fault:
                raise fault.within(key) from None
        return value

    return check


def _dictionary(one: _Check) -> _Check:
    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _misfit(value, "a table")
        for key, inner in value.items():
            try:
                value[key] = one(inner)
            except MisfitError as fault:
                raise fault.within(str(key)) from None
        return value

    return check


def _items(one: _Check) -> _Check:
    def check(value: Any) -> Any:
        if not isinstance(value, list):
            raise _misfit(value, "a list")
        for index, inner in enumerate(value):
            try:
                value[index] = one(inner)
            except MisfitError as fault:
                raise fault.within(f"[{index}]") from None
        return value

    return check


def _tuple(checks: list[_Check]) -> _Check:
    def check(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(checks):
            raise _misfit(value, f"a list of {len(checks)}")
        for index, (one, inner) in enumerate(zip(checks, value, strict=True)):
            try:
                one(inner)
            except MisfitError as fault:
                raise fault.within(f"[{index}]") from None
        return value

    return check


def _annotated(check: _Check, rules: tuple[Any, ...]) -> _Check:
    def checked(value: Any) -> Any:
        value = check(value)
        for rule in rules:
            if isinstance(rule, Length) and not rule.least <= len(value) <= rule.most:
                most = str(rule.most) if rule.least == rule.most else f"{rule.least} to {rule.most}"
                raise MisfitError(f"has {len(value)} items; expected {most}")
            if isinstance(rule, Range) and not rule.least <= value <= rule.most:
                raise _misfit(value, f"a number from {rule.least:g} to {rule.most:g}")
        return value

    return checked
