"""A scenario under construction: its keys, and where the value of each comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from airpath.deployed.settings import Scalar, Setting, Settings, shown
from airpath.errors import InputError

T = TypeVar("T")
Value: TypeAlias = str | int | float | bool
Convert: TypeAlias = Callable[[Scalar], Value]
Source: TypeAlias = Literal["file", "default", "assumed"]


@dataclass(frozen=True)
class Program:
    """A program whose files are read, in the version whose source the defaults are from."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Entry:
    """One key of the scenario: ``radio.cell.scs_khz``, with the comment that goes with it."""

    key: str
    value: Value
    source: Source
    comment: str
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True)
class Row:
    """One line of a program's table: a setting, and the key that it becomes.

    ``default`` is the program's own, before conversion. Without one, a setting that is not in the
    file leaves the key as the preset has it.
    """

    key: str
    setting: str
    convert: Convert
    default: Scalar = None


@dataclass(frozen=True)
class Found(Generic[T]):
    """A converted value; ``setting`` is ``None`` where the file is silent."""

    value: T
    name: str
    setting: Setting | None


def wrong(found: Iterable[Found[Any]], why: str) -> InputError:
    """The error for values that do not go together, at the first that is in a file."""
    settings = [each.setting for each in found if each.setting is not None]
    return settings[0].wrong(why) if settings else InputError(why)


@dataclass(frozen=True)
class NotModelled:
    """A setting that airpath does not use; ``why`` is empty if it is not about the radio or TCP."""

    setting: Setting
    why: str


@dataclass
class Draft:
    """Keys of a scenario, from the settings of one program."""

    program: Program
    settings: Settings
    reasons: Sequence[tuple[str, str]] = ()
    entries: dict[str, Entry] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def find(
        self, scopes: Sequence[str], name: str, convert: Callable[[Scalar], T]
    ) -> Found[T] | None:
        """A setting in the first scope that has it, converted.

        Raises ``InputError`` with file, line and what is allowed if it cannot be converted.
        """
        for scope in scopes:
            setting = self.settings.get(f"{scope}.{name}" if scope else name)
            if setting is not None:
                return Found(_converted(setting, convert), name, setting)
        return None

    def sure(
        self, scopes: Sequence[str], name: str, convert: Callable[[Scalar], T], default: Scalar
    ) -> Found[T]:
        """A setting, or the program's default before conversion."""
        found = self.find(scopes, name, convert)
        return Found(convert(default), name, None) if found is None else found

    def take(self, rows: Iterable[Row], *scopes: str) -> None:
        """Fill in the keys of a table."""
        for row in rows:
            found = self.find(scopes, row.setting, row.convert)
            if found is None and row.default is not None:
                found = Found(row.convert(row.default), row.setting, None)
            if found is not None:
                self.put(row.key, found.value, found)

    def put(self, key: str, value: Value, *from_: Found[Any], why: str = "") -> None:
        """Set a key to a value that was worked out from settings or their defaults."""
        given = [each.setting for each in from_ if each.setting is not None]
        silent = [each.name for each in from_ if each.setting is None]
        parts = [f"{each.place} {each.path[-1]}" for each in given]
        if silent:
            names = silent if len(silent) == 1 else [each.rsplit(".", 1)[-1] for each in silent]
            parts.append(f"default of {self.program}: {', '.join(names)}")
        comment = "; ".join([", ".join(parts), why] if why else [", ".join(parts)])
        source: Source = "file" if given else "default"
        self.entries[key] = Entry(key, value, source, comment, tuple(given))

    def default(self, key: str, value: Value, why: str) -> None:
        """Set a key to what the program does without any setting for it."""
        comment = f"default of {self.program}: {why}"
        self.entries[key] = Entry(key, value, "default", comment)

    def assume(self, key: str, value: Value, why: str, *used: Found[Any]) -> None:
        """Set a key to a value that no file and no program gives."""
        settings = tuple(each.setting for each in used if each.setting is not None)
        self.entries[key] = Entry(key, value, "assumed", f"assumed: {why}", settings)

    def not_modelled(self) -> list[NotModelled]:
        """The settings that were not used, with the reason for those that matter."""
        rows = [NotModelled(each, self._reason(each)) for each in self.settings.left()]
        again = [
            NotModelled(earlier, f"{later.place} sets it too, and the later file counts")
            for earlier, later in self.settings.replaced
        ]
        return rows + again

    def _reason(self, setting: Setting) -> str:
        name = setting.name
        return next((why for pattern, why in self.reasons if fnmatchcase(name, pattern)), "")


@dataclass(frozen=True)
class Station:
    """A program for base stations: how its settings are recognised, and turned into keys."""

    program: Program
    cell: tuple[str, ...]
    """What at least one file must have: the cell."""
    names: frozenset[str]
    """Groups at the top of its files."""
    draft: Callable[[Settings, int], Draft]


def _converted(setting: Setting, convert: Callable[[Scalar], T]) -> T:
    try:
        return convert(setting.value)
    except ValueError as error:
        raise setting.wrong(f"is {shown(setting.value)}, but must be {error}") from None


def whole(value: Scalar) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        number = _number_in(value)
        if number is None or number != int(number):
            raise ValueError("a whole number")
        return int(number)
    return value


def number(value: Scalar) -> float | int:
    """A number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        found = _number_in(value)
        if found is None:
            raise ValueError("a number")
        return found
    return value


def flag(value: Scalar) -> bool:
    """True or false, also as 1 and 0."""
    words: dict[object, bool] = {"yes": True, "true": True, "no": False, "false": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError("true or false")


def word(value: Scalar) -> str:
    """A word."""
    if not isinstance(value, str):
        raise ValueError("a word")
    return value


def within(least: int, most: int) -> Callable[[Scalar], int]:
    """A whole number in a range."""

    def convert(value: Scalar) -> int:
        try:
            found = whole(value)
        except ValueError:
            found = least - 1
        if not least <= found <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return found

    return convert


def times(factor: int) -> Callable[[Scalar], int]:
    """A whole number in another unit."""
    return lambda value: whole(value) * factor


def one_more(value: Scalar) -> int:
    """Transmissions, from a number of retransmissions."""
    return within(0, 27)(value) + 1


def or_infinite(value: Scalar) -> int | str:
    """A whole number; -1 and other negative ones stand for infinity."""
    found = whole(value)
    return "infinity" if found < 0 else found


def kilobytes(value: Scalar) -> int | str:
    """Bytes, from kilobytes as in pollByte of RRC; negative ones stand for infinity."""
    found = whole(value)
    return "infinity" if found < 0 else 1000 * found


def choice(**words: T) -> Callable[[Scalar], T]:
    """One of some words, whatever their case."""

    def convert(value: Scalar) -> T:
        key = str(value).lower()
        if isinstance(value, bool) or key not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return words[key]

    return convert


def one_of(names: dict[int, T]) -> Callable[[Scalar], T]:
    """One of some numbers, each of which stands for a value, as in an ASN.1 enumeration."""

    def convert(value: Scalar) -> T:
        if isinstance(value, bool) or not isinstance(value, int) or value not in names:
            plain = all(each == name for each, name in names.items())
            words = [str(each) if plain else f"{each} ({name})" for each, name in names.items()]
            raise ValueError(f"one of {', '.join(words)}")
        return names[value]

    return convert


def _number_in(value: Scalar) -> float | int | None:
    """The number that a quoted text or a number is."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return None
