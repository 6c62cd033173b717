"""Read TOML, with errors that name the file and the place, and write it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from airpath.base.files import read_within
from airpath.base.json import Json
from airpath.errors import InputError, reason


def parse_toml(text: str) -> Json:
    """Parse TOML that is known to be sound; raises ``ValueError`` if it is not."""
    try:
        data: Json = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return data


def read_toml(path: Path) -> Json:
    """Read a TOML file. Raises ``InputError`` with file and place of the fault."""
    try:
        return parse_toml(read_within(path).decode())
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: Json, path: tuple[str, ...] = ()) -> str:
    """Return the TOML text of a parsed document; parsing the text returns an equal document.

    >>> print(toml_text({"a": 1, "b": [{"c": "x"}], "d": {"e": [0.5, True]}}), end="")
    a = 1
    <BLANKLINE>
    [[b]]
    c = "x"
    <BLANKLINE>
    [d]
    e = [0.5, true]
    """
    lines, tables = [], []
    for key, value in table.items():
        place = (*path, key if _BARE.fullmatch(key) else _string(key))
        if isinstance(value, dict):
            tables.append(f"\n[{'.'.join(place)}]\n{toml_text(value, place)}")
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            header = f"\n[[{'.'.join(place)}]]\n"
            tables += [f"{header}{toml_text(one, place)}" for one in value]
        else:
            lines.append(f"{place[-1]} = {_value(value)}\n")
    return "".join(lines + tables)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_string(key)} = {_value(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    # TOML writes numbers and booleans as JSON does.
    return json.dumps(value)


def _string(text: str) -> str:
    """Return a TOML string: a JSON string in which DEL is also escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
