"""Values in the tables of a campaign's file, each checked, and what is wrong with them, by line."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import Any, TypeGuard, TypeVar

from airpath.base.json import Json
from airpath.base.secrets import redacted
from airpath.campaign.key_lines import Path as Where
from airpath.campaign.key_lines import place

Choice = TypeVar("Choice", bound=str)
_LARGEST = sys.float_info.max
_MEANT = (
    dict.fromkeys(("base", "scenarios", "network"), "scenario")
    | dict.fromkeys(("repeat", "repeats", "repetitions", "replications", "runs"), "seeds")
    | dict.fromkeys(("throughput", "rate", "speed"), "goodput_mbps")
    | {"rtt": "rtt_ms_p95"}
)
"""Names that people use for a key or a column, and the key or column."""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A question with what was probably meant by an unknown name; empty if nothing is near."""
    meant = _MEANT.get(name)
    near = [meant] if meant in known else difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else ""


class Checked:
    """Reads values out of a file's tables and collects what is wrong with them."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.problems: list[tuple[int, str]] = []
        """Each with its line."""

    def known(self, table: Json, known: tuple[str, ...], at: Where, where: str) -> None:
        """Note each key of a table that is not one of the known; ``where`` says which table."""
        for key in table:
            if key not in known:
                told = f"{did_you_mean(key, known)} allowed here: {', '.join(known)}".lstrip()
                self.wrong((*at, key), f"unknown key `{key[:60]}` {where}", told, plain=True)

    def one_of(
        self,
        table: Json,
        key: str,
        allowed: tuple[Choice, ...],
        default: Choice,
        at: Where = (),
    ) -> Choice:
        """Return a text that is one of those allowed; the default if it is another."""
        value = table.get(key, default)
        for one in allowed:
            if one == value:
                return one
        near = difflib.get_close_matches(str(value), allowed, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        told = f"{hint}allowed: {', '.join(allowed)}"
        self.wrong((*at, key), f"`{key}` is {shown(value)}", told, plain=True)
        return default

    def word(self, table: Json, key: str, at: Where, default: str) -> str:
        """Return a text; the default if it is none."""
        value = table.get(key, default)
        if isinstance(value, str):
            return value
        self.wrong((*at, key), f"`{key}` is {shown(value)}", "a string")
        return default

    def whole(self, table: Json, key: str, at: Where, default: int, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``; the default if it is none."""
        value = table.get(key, default)
        if is_whole(value) and low <= value <= high:
            return int(value)
        self.wrong((*at, key), f"`{key}` is {shown(value)}", f"a whole number from {low} to {high}")
        return default

    def wrong(self, where: Where, what: str, allowed: str = "", *, plain: bool = False) -> None:
        """Note what is wrong at a key, and what is allowed there; ``plain`` as it stands."""
        line, column = place(self.text, where)
        at = f"{self.file}:{line}:{column}" if self.text else self.file
        told = allowed if plain or not allowed else f"allowed: {allowed}"
        self.problems.append((line, f"{at}: {what}" + (f"\n  {told}" if told else "")))


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether it is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether it is a number that a double can have; true and false, NaN and infinity are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def shown(value: Any) -> str:
    """Return a value as messages have it, without secrets, cut off if it is long."""
    text = redacted(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."
