"""What was run: the key parameters of a scenario, and what differs between scenarios."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NotRequired, TypedDict, cast

from airpath.base.shapes import MisfitError, fitted
from airpath.base.text import count, digits, exact_size, plural
from airpath.base.toml import parse_toml
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath.runs.results import Run

_UNITS = {
    "mbps": "Mb/s", "ms": "ms", "s": "s", "packets": "packets", "segments": "segments",
}  # fmt: skip
_NAMED = ("id", "kind", "stage", "ue")
_LONG = 1 << 15
"""Characters of a scenario that is shown whole."""
_MOST_TABLES = 10
"""Of a longer one, flows and other tables of a kind that are shown."""
_LONGEST = 1 << 20
_MOST_PARSED = 1 << 24
"""Characters that are parsed to find out what is a default: what is left then counts as none."""
_LARGEST = 2**64
"""Larger numbers are shown as they are written."""
_TABLE = re.compile(r"^\[\[?([^\[\]\n]+)\]\]?$", re.MULTILINE)


class _Stage(TypedDict):
    stage: str


class _Cell(TypedDict, total=False):
    name: object
    preset: object


class _Mobility(TypedDict, total=False):
    a3: object


class _Path(TypedDict, total=False):
    down: list[_Stage]
    up: list[_Stage]


class _Flow(TypedDict):
    id: NotRequired[object]
    kind: str


class _Drx(TypedDict, total=False):
    enabled: bool


class _Ue(TypedDict, total=False):
    count: int
    drx: _Drx


class _Radio(_Cell, total=False):
    neighbour: list[_Cell]
    ue: list[_Ue]
    mobility: _Mobility
    handover: list[dict[str, object]]
    outage: list[dict[str, object]]


class _Scenario(TypedDict, total=False):
    """What is read here of a scenario, which may come from anybody."""

    path: _Path
    radio: _Radio
    flow: list[_Flow]


class Setup(NamedTuple):
    """A run's scenario as a page shows it."""

    toml: str
    """With every default."""
    given: str
    """Without."""
    left_out: str
    """What a long scenario has besides, in words; empty: nothing."""
    tables: _Scenario
    """What ``toml`` says."""
    given_tables: _Scenario


def setup(run: Run) -> Setup:
    """Return what was run; of very many flows, UEs or stages the first.

    Raises ``InputError`` for what is no scenario.
    """
    toml, left_out = _shortened(run.scenario_toml)
    place = f"{run.directory / 'scenario.toml'}" if run.directory else f"the scenario of {run.id}"
    if len(toml) > _LONGEST:
        raise InputError(f"{place} is not a scenario: it has {len(toml)} characters")
    try:
        tables = fitted(parse_toml(toml), _Scenario)
        short = given(toml)
        return Setup(toml, short, left_out, tables, cast("_Scenario", parse_toml(short)))
    except (ValueError, MisfitError) as error:
        raise InputError(f"{place} is not a scenario: {error}") from None


def _shortened(toml: str) -> tuple[str, str]:
    """A scenario of a length to show, and what was left out of it."""
    if len(toml) <= _LONG:
        return toml, ""
    starts = [(found.start(), found[0], found[1]) for found in _TABLE.finditer(toml)]
    if not starts:
        return toml, ""
    ends = [start for start, _, _ in starts[1:]] + [len(toml)]
    kept, seen = [toml[: starts[0][0]]], Counter[str]()
    dropped: str | None = None
    for (start, head, name), end in zip(starts, ends, strict=True):
        if head.startswith("[["):
            seen[name] += 1
            dropped = name if seen[name] > _MOST_TABLES else None
        elif dropped is not None and not name.startswith(f"{dropped}."):
            dropped = None
        if dropped is None:
            kept.append(toml[start:end])
    more = [f"{count(n - _MOST_TABLES)} [[{name}]]" for name, n in seen.items() if n > _MOST_TABLES]
    return "".join(kept), ", ".join(more)


def parameters(whole: _Scenario, scenario: _Scenario) -> list[tuple[str, list[str]]]:
    """Name and items of each row: the path both ways, the radio, and the flows.

    Of stages and flows only what is no default, hence in the second.
    """
    path = scenario.get("path", _Path())
    rows = [
        (way, [_words(str(stage["stage"]), stage) for stage in stages])
        for way, stages in (("down", path.get("down", [])), ("up", path.get("up", [])))
    ]
    if "radio" in whole:
        rows.append(("radio", _radio(whole["radio"])))
    for index, flow in enumerate(scenario.get("flow", [])):
        kind = str(flow["kind"])
        rows.append((str(flow.get("id", f"{kind}-{index}")), [_words(kind, flow)]))
    return [(name, items or ["an ideal wire"]) for name, items in rows]


@functools.lru_cache(maxsize=64)
def given(toml: str) -> str:
    """What of a scenario is not a default: without the rest it means the same.

    The whole of it where that cannot be found out, as with a trace that is not there any more.
    """
    from airpath import _core

    left = _MOST_PARSED

    def meaning(lines: list[str]) -> str | None:
        nonlocal left
        text = "\n".join(lines)
        left -= len(text)
        if left < 0:
            return None
        try:
            return _core.parse(text, "scenario", None, []).resolved_toml
        except _core.ScenarioError:
            return None

    def without_defaults(kept: list[str], start: int, end: int) -> list[str]:
        """Drop what can go between two lines, in as large pieces as possible."""
        if meaning(rest := kept[:start] + kept[end:]) == whole:
            return rest
        if end - start == 1:
            return kept
        middle = (start + end) // 2
        # Tables fall together: cut where one begins.
        heads = [place for place in range(start + 1, end) if kept[place].startswith("[")]
        middle = min(heads, key=lambda place: abs(place - middle), default=middle)
        return without_defaults(without_defaults(kept, middle, end), start, middle)

    lines = [line for line in toml.splitlines() if line]
    if (whole := meaning(lines)) is None:
        return toml
    kept = without_defaults(lines, 0, len(lines))
    return "\n".join(f"\n{line}" if line.startswith("[") else line for line in kept).strip()


def differences(runs: Sequence[Setup]) -> list[list[str]]:
    """Keys that are not the same in every run, nor a default in all, with the value in each."""
    if len(runs) < 2:
        return []
    flat = [_flat(run.tables) for run in runs]
    keys = dict.fromkeys(key for run in runs for key in _flat(run.given_tables))
    return [
        [key, *(_value(one.get(key, "not set")) for one in flat)]
        for key in keys
        if len({repr(one.get(key)) for one in flat}) > 1
    ]


def named(key: str, value: str) -> str:
    """A key's value in words: ``queue 20 packets``, ``bbr``."""
    name = key.rpartition(".")[2]
    if value[:1].isalpha() and value not in ("true", "false", "not set"):
        return value
    what, _, unit = name.rpartition("_")
    if unit in _UNITS:
        return f"{what} {value} {_UNITS[unit]}".replace("_", " ")
    return f"{name.replace('_', ' ')} {value}"


def _radio(radio: _Radio) -> list[str]:
    """Cells by preset, UEs, and how they move."""
    neighbours = radio.get("neighbour", [])
    items = [str(radio.get("preset", ""))]
    if neighbours:
        items = [f"{cell.get('name')}: {cell.get('preset')}" for cell in (radio, *neighbours)]
    ues = radio.get("ue", [])
    number = sum(int(ue.get("count", 1)) for ue in ues)
    items.append(plural(number, "UE"))
    if any(ue.get("drx", _Drx()).get("enabled") for ue in ues):
        items.append("DRX")
    if radio.get("mobility", _Mobility()).get("a3"):
        items.append("event A3")
    if radio.get("handover"):
        items.append(plural(len(radio["handover"]), "planned handover"))
    outages = [one for one in radio.get("outage", []) if one.get("enabled", True)]
    if outages:
        items.append(plural(len(outages), "cell outage"))
    return items


def _words(name: str, table: Mapping[str, object]) -> str:
    """``link: rate 2 Mb/s, queue 500 packets``."""
    words = []
    for key, value in table.items():
        what, _, unit = key.rpartition("_")
        if key in _NAMED:
            continue
        what = "" if what == name else f"{what} "
        if unit == "bytes" and isinstance(value, int) and abs(value) < _LARGEST:
            words.append(f"{what}{exact_size(value)}")
        elif unit in _UNITS:
            words.append(f"{what}{_value(value)} {_UNITS[unit]}")
        else:
            words.append(f"{key} {_value(value)}")
    return f"{name}: {', '.join(words).replace('_', ' ')}" if words else name


def _value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= _LARGEST:
        return str(value).lower() if isinstance(value, bool) else str(value)
    return count(value) if isinstance(value, int) else digits(value)


def _flat(value: object, prefix: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(str(index), item) for index, item in enumerate(value)]
    else:
        return {prefix: value}
    flat: dict[str, object] = {}
    for key, item in items:
        flat.update(_flat(item, f"{prefix}.{key}" if prefix else key))
    return flat
