"""Directories of several runs, which the same command continues after an interruption.

A file in the directory says what the directory holds. Runs that do not count are kept as
``invalid-N``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from airpath.base.files import read_regular
from airpath.base.json import parsed
from airpath.errors import InputError
from airpath.runs.construction import remove_leftovers
from airpath.runs.directories import cannot_write, replaced_file
from airpath.runs.summary import to_json

_MOST_PLAN_BYTES = 1 << 16
_INVALID = "invalid"


def claim(out: Path, file: str, plan: Mapping[str, object], what: str) -> bool:
    """Make a directory for ``what``, or check that it has this plan; return whether it is new.

    ``plan`` is written to ``file`` and has an ``id``; a directory with another ``id`` is refused.
    Directories that killed runs left under construction are removed.
    """
    marker = out / file
    try:
        if os.path.lexists(marker):
            found = parsed(read_regular(marker, _MOST_PLAN_BYTES))
            if not isinstance(found, dict) or found.get("id") != plan["id"]:
                raise InputError(f"{out} holds another {what}; choose another --out or remove it")
            remove_leftovers(out)
            return False
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"{out} exists and is not a {what}; choose another --out or remove it")
        out.mkdir(parents=True, exist_ok=True)
        with replaced_file(marker) as aside:
            aside.write_text(to_json(plan), encoding="utf-8")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{marker} is damaged: {error}") from None
    except OSError as error:
        raise cannot_write(out, error) from None
    return True


def rename(directory: Path, final: Path) -> None:
    """Give a directory of runs its final name. Raises ``AirpathError``."""
    try:
        directory.rename(final)
    except OSError as error:
        raise cannot_write(final, error) from None


def set_aside(directory: Path, parent: Path) -> Path:
    """Keep what does not count as ``invalid-N`` in ``parent``, and return where it is."""
    number = 1
    while (parent / f"{_INVALID}-{number}").exists():
        number += 1
    rename(directory, parent / f"{_INVALID}-{number}")
    return parent / f"{_INVALID}-{number}"


def invalid(parent: Path) -> list[Path]:
    """Return the directories that were set aside in ``parent``, in order."""
    found = [
        path for path in parent.glob(f"{_INVALID}-*") if path.name[len(_INVALID) + 1 :].isdecimal()
    ]
    return sorted(found, key=lambda path: int(path.name[len(_INVALID) + 1 :]))
