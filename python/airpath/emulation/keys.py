"""Keys of USIMs from a file or standard input: one a line, IMSI, K and OPc.

A run writes hashes where the scenario has keys. When such a copy runs again, the keys come from a
file, and their hashes must be those.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from airpath.base.files import read_private, read_within
from airpath.errors import InputError, reason

if TYPE_CHECKING:
    from airpath import _core

STANDARD_INPUT = "-"
_HASH = "sha256:"
_NAMES = {"key": "key (K)", "opc": "OPc"}


def read(file: str) -> dict[str, tuple[str, str]]:
    """K and OPc by IMSI. Messages name the line and never what stands there."""
    keys = {}
    for number, line in enumerate(_lines(file), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        fits = len(words) == 3 and re.fullmatch(r"[0-9]{14,15}", words[0])
        if not fits or not all(re.fullmatch(r"[0-9a-fA-F]{32}", word) for word in words[1:]):
            raise InputError(
                f"{_name(file)}, line {number}: expected IMSI, K and OPc: 14 or 15 digits, and "
                "32 hexadecimal digits twice"
            )
        if words[0] in keys:
            raise InputError(
                f"{_name(file)}, line {number}: IMSI {words[0]} is already in the file"
            )
        keys[words[0]] = (words[1].lower(), words[2].lower())
    return keys


def of_imsi(file: str, imsi: str) -> tuple[str, str]:
    """K and OPc of one subscriber."""
    keys = read(file)
    if imsi not in keys:
        raise InputError(f"{_name(file)} has no IMSI {imsi}")
    return keys[imsi]


_SECRETS: tuple[Literal["key", "opc"], ...] = ("key", "opc")


def completed(core: _core.CoreNetwork) -> list[_core.CoreUe]:
    """UEs of ``Scenario.core`` with the keys that they have in ``core.keys``."""
    from airpath import _core

    file: str | None = core.get("keys")
    known = {} if file is None else read(file)
    ues = []
    for ue in core["ues"]:
        found = known.get(ue["imsi"])
        own = ue.copy()
        for place, name in enumerate(_SECRETS):
            given = ue[name]
            if given is not None and not given.startswith(_HASH):
                continue
            who = f"UE '{ue['name']}' (IMSI {ue['imsi']})"
            if file is None:
                has = "no" if given is None else "only the hash of its"
                raise InputError(
                    f"{who}: the scenario has {has} {_NAMES[name]}; give the file with the keys: "
                    "--set core.keys=FILE"
                )
            if found is None:
                raise InputError(f"{who}: {_name(file)} has no keys for it")
            if given is not None and _core.secret_hash(name, ue["imsi"], found[place]) != given:
                raise InputError(
                    f"{who}: its {_NAMES[name]} in {_name(file)} is not that of the run that "
                    "wrote this scenario: the hashes differ"
                )
            own[name] = found[place]
        ues.append(own)
    return ues


def _lines(file: str) -> list[str]:
    try:
        if file == STANDARD_INPUT:
            data = read_within(sys.stdin.buffer, _name(file))
        else:
            data = read_private(Path(file))
    except OSError as error:
        raise InputError(f"cannot read {_name(file)}: {reason(error)}") from None
    try:
        return data.decode().splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{_name(file)} is not text") from None


def _name(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else file
