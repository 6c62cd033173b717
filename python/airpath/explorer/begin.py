"""What the explorer begins with: a shipped scenario, a file, or the scenario of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from airpath import scenario as scenarios
from airpath.base.toml import parse_toml
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath.runs.results import Run

USUAL = "bufferbloat"
FILE_KEYS = ("file", "subscribers", "keys")
"""Keys that name a file: a trace, the subscribers of a core network and what encrypts them."""


class Begin(TypedDict, total=False):
    """The page's first state, as ``explorer/src/start.ts`` reads it."""

    shipped: str
    """Name of a shipped scenario; otherwise there is a text."""
    text: str
    name: str
    sets: list[str]
    seed: int


def begin(what: str | None, sets: scenarios.Sets = None) -> Begin:
    """Return what to begin with.

    Raises ``InputError`` if there is no such scenario or run, if it is faulty, or if it needs a
    trace file: a browser reads no files.
    """
    given = scenarios.set_list(sets)
    if what is None:
        what = USUAL
    if Path(what, "summary.json").is_file():
        return _of_run(what, given)
    loaded = scenarios.load(what, given)
    check_files(loaded.resolved_toml)
    text, name, _ = scenarios.read(what)
    if name in scenarios.shipped_scenarios() and text == scenarios.shipped_scenarios()[name]:
        return {"shipped": name, "sets": given}
    name = Path(name).name if name.endswith(".toml") else f"{name.replace('/', '-')}.toml"
    return {"text": text, "name": name, "sets": given}


def _of_run(directory: str, sets: list[str]) -> Begin:
    from airpath.runs.results import Run

    run = Run.open(directory)
    begun = begin_run(run)
    scenarios.parse(begun["text"], begun["name"], sets=sets)
    return {**begun, "sets": sets}


def begin_run(run: Run) -> Begin:
    """Return the scenario and first seed of a run. Raises ``InputError`` if it needs a file."""
    text = run.scenario_toml
    check_files(text)
    name = run.directory.resolve().name if run.directory else run.id
    return {"text": text, "name": f"{name}.toml", "sets": [], "seed": run.seeds[0]}


def check_files(resolved: str) -> None:
    """Raise ``InputError`` if a scenario, with all its keys, names a file of its own."""
    try:
        tables = parse_toml(resolved)
    except ValueError as error:
        raise InputError(f"the scenario is not TOML: {error}") from None
    for file in files(tables):
        if not file.startswith(scenarios.BUILT_IN):
            raise InputError(
                f"the scenario needs the file {file}, but the explorer, a page in a browser, "
                "cannot read files; use `airpath run`"
            )


def files(value: Any) -> Iterator[str]:
    """Values of the keys that name a file."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in FILE_KEYS and isinstance(inner, str):
                yield inner
            else:
                yield from files(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from files(inner)
