"""Read TOML on every supported Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from airpath.errors import InputError, reason

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises ``InputError`` with file and place of the fault."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
