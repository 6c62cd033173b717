"""Settings of a configuration file, each with its value and its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from airpath.errors import InputError

Scalar: TypeAlias = str | int | float | bool | None
Path: TypeAlias = tuple[str, ...]

MOST_BYTES = 1 << 20
"""The largest public file that was found has 60 kB; a file of this size is read in 0.3 s."""
MOST_SETTINGS = 5_000
"""Ten times as many as the longest public file has."""
MOST_DEPTH = 32
"""The deepest public file has 9 levels."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.*-]{0,99}")
_SECRET = re.compile(r"[0-9a-fA-F]{12}")  # a key has 32 such digits, an IMSI 14 or 15
_WHOLE = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_LONGEST_SHOWN = 40


@dataclass(frozen=True)
class Setting:
    """One value in a file. Elements of a list are counted from 0 in the path."""

    path: Path
    value: Scalar
    file: str
    line: int

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)

    @property
    def place(self) -> str:
        """File and line, as compilers write them."""
        return f"{self.file}:{self.line}"

    def wrong(self, why: str) -> InputError:
        """The error for a value that cannot be used."""
        return InputError(f"{self.place}: `{self.name}` {why}")


def unreadable(file: str, line: int, why: str) -> InputError:
    """The error for a place in a file that cannot be read."""
    return InputError(f"{file}:{line}: {why}")


def scalar(text: str) -> Scalar:
    """The value that an unquoted word stands for, as YAML's core schema and INI files have it.

    >>> scalar("0x1f"), scalar("-1.5"), scalar("yes"), scalar(""), scalar("n78")
    (31, -1.5, True, None, 'n78')
    """
    if text in ("", "~", "null"):
        return None
    if len(text) < _LONGEST_SHOWN:
        if _WHOLE.fullmatch(text):
            return int(text, 16 if "x" in text.lower() else 10)
        if _REAL.fullmatch(text):
            return float(text)
    return _BOOLS.get(text.lower(), text)


def shown(value: Scalar) -> str:
    """A value in an error message, shortened."""
    if value is None:
        return "empty"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def check_name(name: str, file: str, line: int) -> str:
    """Return a setting's name, which is listed; raises ``InputError`` if it is not one."""
    if _SECRET.search(name):
        raise unreadable(file, line, "a name of a setting has a number of 12 or more digits")
    if not _NAME.fullmatch(name):
        raise unreadable(
            file,
            line,
            f"{shown(name)} is not the name of a setting: it must have 1 to 100 letters, digits, "
            "'_', '-', '.' and '*'",
        )
    return name


class Collected:
    """Settings while a file is read: bounded, and without repeated names."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._rows: dict[Path, Setting] = {}

    def add(self, path: Path, value: Scalar, line: int) -> None:
        """Add one; raises ``InputError`` if there are too many, or this one a second time."""
        if path in self._rows:
            first = self._rows[path].line
            raise unreadable(
                self.file, line, f"`{'.'.join(path)}` is set again; line {first} sets it too"
            )
        if len(self._rows) >= MOST_SETTINGS:
            raise unreadable(self.file, line, f"the file has more than {MOST_SETTINGS} settings")
        self._rows[path] = Setting(path, value, self.file, line)

    def has(self, path: Path) -> bool:
        """Whether the file has set this already."""
        return path in self._rows

    def rows(self) -> list[Setting]:
        """All settings, in the order of the file."""
        return list(self._rows.values())


class Settings:
    """The settings of all files of one program, by path; remembers which were used."""

    def __init__(self, files: Iterable[list[Setting]]) -> None:
        self._rows: dict[Path, Setting] = {}
        self._used: set[Path] = set()
        self.replaced: list[tuple[Setting, Setting]] = []
        self._cut: set[Path] = set()
        for rows in files:
            self._merge(rows)
            if rows and rows[-1].value is None:
                self._cut.add(rows[-1].path)

    def get(self, path: str) -> Setting | None:
        """The setting with a dotted path, if a file has it. It counts as used."""
        return self.at(tuple(path.split(".")))

    def at(self, path: Path) -> Setting | None:
        """The setting at a path, if a file has it. It counts as used.

        Raises ``InputError`` if a file ends where the group of this setting begins.
        """
        for group in self._cut.intersection(path[:size] for size in range(1, len(path))):
            raise self._rows[group].wrong(
                "is empty at the end of the file: is the file truncated? Add its settings, "
                "or remove it"
            )
        found = self._rows.get(path)
        if found is not None:
            self._used.add(path)
        return found

    def has(self, *group: str) -> bool:
        """Whether a group has a setting."""
        size = len(group)
        return any(len(path) > size and path[:size] == group for path in self._rows)

    def elements(self, *path: str) -> list[str]:
        """The elements of a list, or the names in a group, in the order of the file."""
        size = len(path)
        names = (row[size] for row in self._rows if len(row) > size and row[:size] == path)
        return list(dict.fromkeys(names))

    def left(self) -> Iterator[Setting]:
        """The settings that were not used, in the order of the files."""
        return (row for path, row in self._rows.items() if path not in self._used)

    def _merge(self, rows: list[Setting]) -> None:
        """Add a file's settings; they replace those of earlier files, lists as a whole."""
        lists = {path for row in rows for path in _lists(row.path)}
        paths = {row.path for row in rows}
        for path in [path for path in self._rows if any(one in lists for one in _lists(path))]:
            if path not in paths:
                del self._rows[path]
        for row in rows:
            earlier = self._rows.pop(row.path, None)
            if earlier is not None and earlier.value != row.value:
                self.replaced.append((earlier, row))
            self._rows[row.path] = row


def _lists(path: Path) -> Iterator[Path]:
    """The paths of the lists that this path goes through."""
    return (path[:at] for at, part in enumerate(path) if part.isdigit())
