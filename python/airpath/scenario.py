"""Find and load scenarios: files, or shipped ones by name.

>>> scenario = load("wire", {"flow.0.window_bytes": 20_000})
>>> scenario.title
'A wire: 10 Mb/s, 40 ms there and back'
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from airpath.base.files import read_within
from airpath.base.secrets import redacted
from airpath.base.text import file_name
from airpath.errors import InputError, InputTypeError, reason

if TYPE_CHECKING:
    from airpath import _core

STUDIES = Path(__file__).parent / "studies"
"""Published experiments; see ``airpath.study``."""

BUILT_IN = "builtin:"
"""Before the name of a shipped scenario, where a file has that name too."""

Sets: TypeAlias = Mapping[str, object] | Iterable[str] | None
"""``{"flow.0.window_bytes": 65536}`` or ``["flow.0.window_bytes=65536"]``."""


def load(
    name_or_path: str | os.PathLike[str], sets: Sets = None, *, option: str = "--set"
) -> _core.Scenario:
    """Load a scenario file, or a shipped scenario by its name, with keys set on top.

    Messages about ``sets`` call them ``option``.

    Raises ``InputError`` with a readable message if there is no such scenario or it has errors.
    """
    text, name, directory = read(name_or_path)
    return parse(text, name, directory, sets, option=option)


def parse(
    text: str,
    name: str,
    directory: str | None = None,
    sets: Sets = None,
    *,
    option: str = "--set",
) -> _core.Scenario:
    """Parse a scenario from its text; messages call it ``name``, and ``sets`` ``option``."""
    from airpath import _core

    entries = set_list(sets)
    for each in (name, text, directory or "", *entries):
        _check_text(each)
    try:
        return _core.parse(text, name, directory, entries, option)
    except _core.ScenarioError as error:
        raise InputError(str(error)) from error


def with_sets(base: _core.Scenario, entries: list[str], option: str) -> _core.Scenario:
    """Set more keys of a scenario, which messages say ``option`` gave."""
    from airpath import _core

    for each in entries:
        _check_text(each)
    try:
        return base.with_sets(entries, option)
    except _core.ScenarioError as error:
        raise InputError(str(error)) from error


def read(name_or_path: str | os.PathLike[str]) -> tuple[str, str, str | None]:
    """Return text, name for messages and directory for relative files of a scenario."""
    if not isinstance(name_or_path, str | os.PathLike):
        raise InputTypeError(
            f"a scenario must be a file, the name of a shipped one or the result of load(), "
            f"not {name_or_path!r}"
        )
    given = os.fspath(name_or_path)
    if not _is_text(given) or "\0" in given:
        raise InputError(f"{given!r} is not the name of a scenario: it is not UTF-8 text")
    path = Path(given)
    if given in (studies := study_scenarios()) and not path.exists():
        file = studies[given]
        return _read_file(file), given, str(file.parent)
    if _looks_like_a_path(given):
        return _read_file(path), given, str(path.parent)
    shipped = shipped_scenarios()
    name = given.removeprefix(BUILT_IN)
    # Unlike pathlib's this is false for a name that is too long.
    if name != given or not os.path.isfile(path):  # noqa: PTH113
        if name in shipped:
            return shipped[name], name, None
        raise InputError(f"no scenario named '{name}'{_suggestion(name, shipped)}")
    if given in shipped:
        raise InputError(
            f"'{given}' is both a shipped scenario and a file here; use {BUILT_IN}{given} or "
            f"./{given}"
        )
    return _read_file(path), given, str(path.parent)


def radio_presets() -> dict[str, str]:
    """Names and descriptions of the presets that ``[radio]`` can start from."""
    from airpath import _core

    return dict(_core.radio_presets())


def shipped_scenarios() -> dict[str, str]:
    """Names and TOML texts of the scenarios that come with airpath, sorted by name."""
    from airpath import _core

    return dict(sorted(_core.shipped()))


def study_scenarios() -> dict[str, Path]:
    """Names and files of the studies' scenarios: ``5g-drx/main``, ``5g-drx/external``."""
    found = {}
    # By the stem, so that a study's main scenario comes first.
    for file in sorted(STUDIES.glob("*/scenario*.toml"), key=lambda file: (file.parent, file.stem)):
        which = file.stem.removeprefix("scenario").removeprefix("-") or "main"
        found[f"{file.parent.name}/{which}"] = file
    return found


def set_list(sets: Sets, argument: str = "set") -> list[str]:
    """Normalise to ``KEY=VALUE`` entries as the command line takes them."""
    if sets is None:
        return []
    if isinstance(sets, str):
        return [sets]
    if isinstance(sets, Mapping):
        return [f"{key}={_toml_value(value)}" for key, value in sets.items()]
    entries = list(sets) if isinstance(sets, Iterable) else [sets]
    for entry in entries:
        if not isinstance(entry, str):
            raise InputTypeError(
                f"{argument} takes KEY=VALUE strings or a dictionary, not {redacted(repr(entry))}"
            )
    return entries


def stem(scenario: _core.Scenario) -> str:
    """Short name that is safe as the name of a directory."""
    return file_name(Path(scenario.name).name.removesuffix(".toml"), "scenario")


def _check_text(given: str) -> None:
    if not _is_text(given):
        raise InputError(f"{redacted(repr(given))[:82]} is not UTF-8 text")


def _is_text(given: str) -> bool:
    """Whether the text can be encoded as UTF-8; a command line may hold any bytes."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def _looks_like_a_path(given: str) -> bool:
    return given.endswith(".toml") or os.sep in given or given in ("", ".", "..")


def _read_file(path: Path) -> str:
    try:
        return read_within(path).decode()
    except FileNotFoundError:
        name = path.name.removesuffix(".toml")
        hint = _suggestion(name, shipped_scenarios(), listing=False)
        raise InputError(f"no scenario file {path}{hint}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read scenario file {path}: {reason(error)}") from None


def _suggestion(name: str, shipped: Iterable[str], *, listing: bool = True) -> str:
    if name in radio_presets():
        return (
            f"; that is a radio preset\n  a scenario with a radio takes it: airpath run nr-n78 "
            f"--set radio.preset={name}"
        )
    if own := [each for each in study_scenarios() if each.startswith(f"{name}/")]:
        return (
            f", but a study; its scenarios are: {', '.join(own)}\n  one of them: airpath run "
            f"{own[0]}; the whole study: airpath reproduce {name}"
        )
    near = difflib.get_close_matches(name, list(shipped), n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"{hint}\n  available: {', '.join(shipped)}" if listing else hint


def _toml_value(value: object) -> str:
    # JSON's booleans, numbers, strings and arrays of them are TOML too.
    if isinstance(value, bool | int | float | str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    told = redacted(repr(value))
    raise InputTypeError(f"a scenario key takes a number, string, boolean or list, not {told}")
