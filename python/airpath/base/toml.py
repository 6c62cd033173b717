"""Read TOML, with errors that name the file and the place."""

from __future__ import annotations

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
