"""Where in a TOML file a key stands, for messages about it."""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]
"""``("vary", 1, "values")``: the key ``values`` of the second ``[[vary]]``."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]#]+?)\s*\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*=""")


def place(text: str, path: Path) -> tuple[int, int]:
    """Line and column, from 1, of a key; of what holds it, where it has no line of its own."""
    found = _places(text)
    while path:
        if path in found:
            return found[path]
        path = path[:-1]
    return 1, 1


def _places(text: str) -> dict[Path, tuple[int, int]]:
    found: dict[Path, tuple[int, int]] = {}
    table: Path = ()
    counts: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            name = header[2].strip("\"'")
            where: Path = (name,)
            if header[1] == "[[":
                where = (name, counts[name])
                counts[name] += 1
            table = where
            found.setdefault(table, (number, header.start(2) + 1))
        elif key := _KEY.match(line):
            found.setdefault((*table, key[1].strip("\"'")), (number, key.start(1) + 1))
    return found
