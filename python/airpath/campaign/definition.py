"""Campaign files: what is varied, how it is sampled, with how many seeds.

::

    title = "Which buffer, with which congestion control?"
    scenario = "bufferbloat"        # or several: ["wire", "lte-20"]
    set = ["run.duration_s=5"]      # optional: for every run
    seeds = 10                      # or a list of seeds; optional: first_seed
    sampling = "grid"               # list, random, latin-hypercube, sobol, saltelli
    compare = "buffer"              # optional: the key whose values the report compares
    against = "deep"                # optional: the value with which it compares the others

    [[vary]]
    key = "flow.0.congestion"       # or several keys that get the same value
    values = ["reno", "cubic"]

    [[vary]]
    name = "buffer"                 # the column's name; with a key it is the key
    choices = [
      { label = "shallow", set = ["path.down.0.queue_packets=20"] },
      { label = "deep", set = ["path.down.0.queue_packets=500"] },
    ]

    [[vary]]
    key = "path.down.0.rate_mbps"   # for the samplings that draw
    low = 1
    high = 100
    scale = "log"

    [until]                         # optional: more seeds until this is known well enough
    ci = 0.02                       # half of the 95 % interval over the mean
    figure = "flows.goodput_mbps"
    max_seeds = 400

``docs/guides/campaigns.md`` says what each key is for.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airpath import scenario as scenarios
from airpath.base.choices import Explain
from airpath.base.files import read_within
from airpath.base.json import Json
from airpath.base.numbers import LARGEST_SEED
from airpath.base.secrets import redacted
from airpath.base.text import file_name
from airpath.base.toml import parse_toml
from airpath.campaign.checked import Checked, is_number, is_whole, shown
from airpath.campaign.key_lines import Path as Where
from airpath.campaign.key_lines import place
from airpath.diagnose import BUDGETS
from airpath.errors import InputError, InputTypeError, reason

SAMPLINGS = ("grid", "list", "random", "latin-hypercube", "sobol", "saltelli")
DRAWN = SAMPLINGS[2:]
EXPLAIN: tuple[Explain, ...] = ("off", *BUDGETS)
SCALES = ("linear", "log")
MOST_SEEDS = 1_000_000
_MOST_NAMED = 3
_SCENARIOS = 'a scenario file, a shipped one, or a list of these, e.g. scenario = "bufferbloat"'
_VARY = (
    'a table for each key that varies:\n    [[vary]]\n    key = "flow.0.congestion"\n'
    '    values = ["cubic", "bbr"]'
)
MOST_CELLS = 10_000_000
RESERVED = ("run", "key", "cell", "scenario", "seed", "status", "error", "explained")
"""Columns that every table has, or that ``runs`` has."""

Scalar = bool | int | float | str


@dataclass(frozen=True)
class Choice:
    """One named alternative."""

    label: Scalar
    sets: tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """One thing that is varied: named alternatives, or a range."""

    name: str
    choices: tuple[Choice, ...] = ()
    keys: tuple[str, ...] = ()
    """Of a range."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    """Only whole numbers."""

    @property
    def ranged(self) -> bool:
        """Whether it is a range."""
        return not self.choices


@dataclass(frozen=True)
class Until:
    """How well a figure is to be known before a cell gets no more seeds."""

    ci: float
    """Half of the 95 % confidence interval over the mean."""
    figure: str = "flows.goodput_mbps"
    max_seeds: int = 1000


@dataclass(frozen=True)
class Base:
    """A scenario that the campaign starts from."""

    name: str
    text: str
    directory: str | None


@dataclass(frozen=True)
class Definition:
    """A campaign file, checked."""

    name: str
    """Short, safe as the name of a directory."""
    file: str
    """What messages call it."""
    text: str
    title: str
    bases: tuple[Base, ...]
    sets: tuple[str, ...]
    seeds: tuple[int, ...]
    axes: tuple[Axis, ...]
    sampling: str = "grid"
    samples: int = 0
    sampling_seed: int = 1
    explain: Explain = "off"
    partition_runs: int = 2000
    until: Until | None = None
    compare: str = ""
    """The varied key whose values the report compares; empty: the first with few values."""
    against: str = ""
    """The value with which it compares the others; empty: the first."""
    lines: dict[Where, tuple[int, int]] = field(default_factory=dict, compare=False)

    def at(self, *path: str | int) -> str:
        """``FILE:LINE:COLUMN`` of a key."""
        line, column = place(self.text, path)
        return f"{self.file}:{line}:{column}" if self.text else self.file


def load(given: str | os.PathLike[str] | Mapping[str, object]) -> Definition:
    """Load a campaign file, a shipped one by its name, or what a file would say as a mapping.

    Raises ``InputError`` that names file, line, key, what is wrong and what is allowed.
    """
    if isinstance(given, Mapping):
        return _Reader("the campaign", "", Path(), dict(given)).definition(_name(given))
    if not isinstance(given, str | os.PathLike):
        raise InputTypeError(f"a campaign must be a file or a mapping, not {given!r}")
    path = Path(given)
    shipped = shipped_campaigns()
    if not path.suffix and os.sep not in str(given) and not os.path.lexists(path):
        if str(given) not in shipped:
            near = difflib.get_close_matches(str(given), list(shipped), n=1, cutoff=0.5)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise InputError(
                f"no campaign named '{given}'{hint}\n  available: {', '.join(shipped)}; "
                "the name of a file ends in .toml"
            )
        path = shipped[str(given)]
    try:
        text = read_within(path).decode()
    except FileNotFoundError:
        raise InputError(f"no campaign file {path}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read campaign file {path}: {reason(error)}") from None
    return parse(text, os.fspath(given), path.parent, path.stem)


def _name(given: Mapping[str, object]) -> str:
    """What a campaign without a file is called: its scenarios, as long as they are few."""
    listed = given.get("scenario")
    names = [one for one in (listed if isinstance(listed, list) else [listed]) if one]
    stems = [Path(str(one)).stem for one in names]
    if len(stems) > _MOST_NAMED:
        stems = [stems[0], f"and-{len(stems) - 1}-more"]
    return "-".join(stems)


def parse(text: str, file: str, directory: Path, name: str) -> Definition:
    """Parse a campaign's text; ``file`` is what messages call it."""
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from None
    return _Reader(file, text, directory, data).definition(name)


def shipped_campaigns() -> dict[str, Path]:
    """Names and files of the campaigns that come with airpath."""
    here = Path(__file__).parent / "shipped"
    return {path.stem: path for path in sorted(here.glob("*.toml"))}


class _Reader(Checked):
    """Reads a campaign's tables and collects what is wrong with them."""

    def __init__(self, file: str, text: str, directory: Path, data: Json) -> None:
        super().__init__(file, text)
        self.directory, self.data = directory, data

    def definition(self, name: str) -> Definition:
        """Return the campaign, or raise what is wrong, all of it."""
        data = self.data
        allowed = (
            "title", "scenario", "set", "seeds", "first_seed", "sampling", "samples",
            "sampling_seed", "explain", "partition_runs", "vary", "until", "compare", "against",
        )  # fmt: skip
        self.known(data, allowed, (), "at the top level")
        sampling = self.one_of(data, "sampling", SAMPLINGS, "grid")
        axes = self._axes(sampling)
        compare, against = self._compared(axes)
        made = Definition(
            name=file_name(name, "campaign"),
            file=self.file,
            text=self.text,
            title=self.word(data, "title", (), name),
            bases=self._bases(),
            sets=self._sets(data.get("set", []), ("set",)),
            seeds=self._seeds(),
            axes=axes,
            sampling=sampling,
            samples=self._samples(sampling),
            sampling_seed=self.whole(data, "sampling_seed", (), 1, 0, 2**32 - 1),
            explain=self.one_of(data, "explain", EXPLAIN, "off"),
            partition_runs=self.whole(data, "partition_runs", (), 2000, 1, 1_000_000),
            until=self._until(),
            compare=compare,
            against=against,
        )
        if self.problems:
            first, *more = (text for _, text in sorted(self.problems, key=lambda one: one[0]))
            raise InputError("\n".join([first, *(f"error: {each}" for each in more)]))
        return made

    def _bases(self) -> tuple[Base, ...]:
        names = self.data.get("scenario")
        if names is None:
            self.wrong((), "`scenario` is missing", _SCENARIOS)
            return ()
        listed = names if isinstance(names, list) else [names]
        if not listed or not all(isinstance(one, str) for one in listed):
            self.wrong(("scenario",), f"`scenario` is {names!r}", "a name, or a list of names")
            return ()
        if len(set(listed)) < len(listed):
            self.wrong(("scenario",), "`scenario` has a duplicate", "each once")
        bases = []
        for one in listed:
            beside = self.directory / one
            try:
                given = str(beside) if one.endswith(".toml") and os.path.lexists(beside) else one
                text, _, directory = scenarios.read(given)
            except InputError as error:
                self.wrong(("scenario",), str(error))
                continue
            place = None if directory is None else str(Path(directory).resolve())
            bases.append(Base(one, text, place))
        return tuple(bases)

    def _seeds(self) -> tuple[int, ...]:
        first = self.whole(self.data, "first_seed", (), 1, 0, LARGEST_SEED)
        seeds = self.data.get("seeds", 1)
        if is_whole(seeds) and 1 <= seeds <= MOST_SEEDS:
            if first + seeds - 1 > LARGEST_SEED:
                self.wrong(("first_seed",), "the last seed is too large", f"to {LARGEST_SEED}")
            return tuple(range(first, first + seeds))
        if isinstance(seeds, list) and seeds:
            right = all(is_whole(seed) and 0 <= seed <= LARGEST_SEED for seed in seeds)
            if right and len(set(seeds)) == len(seeds):
                if "first_seed" in self.data:
                    self.wrong(
                        ("first_seed",), "`first_seed` needs `seeds` to be a number, not a list"
                    )
                return tuple(seeds)
        allowed = f"a number from 1 to {MOST_SEEDS}, or a list of distinct seeds, 0 or larger"
        self.wrong(("seeds",), f"`seeds` is {shown(seeds)}", allowed)
        return (1,)

    def _samples(self, sampling: str) -> int:
        if sampling not in DRAWN:
            if "samples" in self.data:
                self.wrong(
                    ("samples",), f"`samples` has no effect with sampling \"{sampling}\"",
                    f"only with sampling {', '.join(DRAWN)}",
                )  # fmt: skip
            return 0
        if "samples" not in self.data:
            self.wrong(("sampling",), f'`samples` is missing: how many points "{sampling}" draws')
        number = self.whole(self.data, "samples", (), 1, 1, MOST_CELLS)
        if sampling in ("sobol", "saltelli") and number & (number - 1):
            self.wrong(
                ("samples",), f"`samples` is {number}", "a power of two, for Sobol's sequence"
            )
        return number

    def _axes(self, sampling: str) -> tuple[Axis, ...]:
        tables = self.data.get("vary", [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            self.wrong(("vary",), "`vary` is not a list of tables", _VARY)
            return ()
        axes = [self._axis(table, ("vary", at), sampling) for at, table in enumerate(tables)]
        made = [axis for axis in axes if axis is not None]
        names = [axis.name for axis in made]
        for name in sorted({name for name in names if names.count(name) > 1}):
            where = ("vary", len(names) - 1 - names[::-1].index(name))
            self.wrong(
                where, f"two [[vary]] tables have the name `{name}`", "a different `name` for each"
            )
        if sampling in DRAWN and not made:
            self.wrong(("sampling",), f'"{sampling}" has nothing to draw', "[[vary]], one or more")
        lengths = {len(axis.choices) for axis in made}
        if sampling == "list" and len(lengths) > 1:
            told = ", ".join(f"{axis.name} has {len(axis.choices)}" for axis in made)
            self.wrong(("sampling",), f'"list" needs equally many values in each [[vary]]: {told}')
        return tuple(made)

    def _compared(self, axes: tuple[Axis, ...]) -> tuple[str, str]:
        """The key whose values are compared, and the value with which."""
        compare = self.word(self.data, "compare", (), "")
        against = self.data.get("against", "")
        axis = next((one for one in axes if one.name == compare), None)
        if compare and axis is None:
            names = ", ".join(f"`{one.name}`" for one in axes)
            self.wrong(
                ("compare",), f"`compare` is {compare}", f"one of the names in [[vary]]: {names}"
            )
        if against != "":
            labels = [one.label for one in axis.choices] if axis else []
            if against not in labels:
                told = ", ".join(map(shown, labels)) or "needs `compare`"
                self.wrong(("against",), f"`against` is {shown(against)}", told)
        # As the tables' columns have it when they are text.
        return compare, str(against).lower() if isinstance(against, bool) else str(against)

    def _axis(self, table: Json, where: Where, sampling: str) -> Axis | None:
        known = ("name", "key", "values", "choices", "low", "high", "scale", "integer")
        self.known(table, known, where, "in [[vary]]")
        ways = [way for way in ("values", "choices", "low") if way in table]
        if len(ways) != 1:
            told = " and ".join(f"`{way}`" for way in ways) or "neither"
            self.wrong(where, f"[[vary]] has {told}",
                        "`values`, `choices`, or `low` and `high`: one of them")  # fmt: skip
            return None
        keys = self._keys(table, where)
        name = self.word(table, "name", where, " ".join(keys))
        if not name and not self.problems:
            self.wrong(where, "[[vary]] with `choices` has no `name`", "the name of its column")
        if name in RESERVED:
            self.wrong((*where, "name"), f"`{name}` is the name of a column in every campaign",
                        "another name")  # fmt: skip
        if ways == ["low"]:
            return self._range(table, where, sampling, name, keys)
        for other in ("high", "scale", "integer"):
            if other in table:
                self.wrong(
                    (*where, other), f"`{other}` applies only to a range", "with `low` and `high`"
                )
        if ways == ["choices"]:
            if keys:
                self.wrong(
                    (*where, "key"),
                    "`key` cannot be combined with `choices`: each choice has its own `set`",
                )
            choices = self._choices(table["choices"], (*where, "choices"))
        else:
            choices = self._values(table["values"], (*where, "values"), keys)
        return Axis(name, choices) if choices else None

    def _range(
        self, table: Json, where: Where, sampling: str, name: str, keys: tuple[str, ...]
    ) -> Axis | None:
        if sampling not in DRAWN:
            self.wrong((*where, "low"), f"a range does not work with sampling \"{sampling}\"",
                        f"`values` or `choices`; or sampling {', '.join(DRAWN)}")  # fmt: skip
            return None
        low, high = table.get("low"), table.get("high")
        if not is_number(low) or not is_number(high) or not low < high:
            self.wrong((*where, "low"), f"the range is from {shown(low)} to {shown(high)}",
                        "two numbers, `low` below `high`")  # fmt: skip
            return None
        log = self.one_of(table, "scale", SCALES, "linear", where) == "log"
        if log and low <= 0:
            self.wrong((*where, "low"), f'`low` is {low} with scale "log"', "above 0")
            return None
        whole = table.get("integer", False)
        if not isinstance(whole, bool):
            self.wrong((*where, "integer"), f"`integer` is {shown(whole)}", "true or false")
        return Axis(name, (), keys, float(low), float(high), log, whole is True)

    def _keys(self, table: Json, where: Where) -> tuple[str, ...]:
        key = table.get("key")
        keys = key if isinstance(key, list) else [key]
        if key is None:
            if "choices" not in table:
                self.wrong(where, "[[vary]] has no `key`", _VARY)
            return ()
        if not keys or not all(isinstance(one, str) and one.strip() for one in keys):
            self.wrong(
                (*where, "key"), f"`key` is {shown(key)}", "a dotted path, or a list of them"
            )
            return ()
        return tuple(keys)

    def _values(self, values: Any, where: Where, keys: tuple[str, ...]) -> tuple[Choice, ...]:
        if not isinstance(values, list) or not values:
            self.wrong(where, f"`values` is {shown(values)}", "a list of one or more values")
            return ()
        choices = []
        for value in values:
            if not isinstance(value, bool | int | float | str):
                self.wrong(
                    where, f"`values` has {shown(value)}", ("numbers, strings, true and false")
                )
                return ()
            sets = tuple(set_texts(keys, value))
            if any(redacted(text) != text for text in sets):
                told = "`choices`, each with a `label` that may appear in every table"
                self.wrong(
                    where, f"{', '.join(keys)} is secret, but `values` appear in every table", told
                )
                return ()
            choices.append(Choice(value, sets))
        if len({(type(each.label), each.label) for each in choices}) < len(choices):
            self.wrong(where, "`values` has a duplicate", "each once")
        return tuple(choices)

    def _choices(self, tables: Any, where: Where) -> tuple[Choice, ...]:
        if not isinstance(tables, list) or not tables:
            self.wrong(where, f"`choices` is {shown(tables)}", "a list of one or more choices")
            return ()
        choices = []
        for table in tables:
            if not isinstance(table, dict) or not isinstance(table.get("label"), str):
                self.wrong(
                    where, f"a choice is {shown(table)}", '{ label = "…", set = ["KEY=VALUE"] }'
                )
                return ()
            if redacted(table["label"]) != table["label"]:
                self.wrong(where, "a `label` contains a subscriber's key", "another `label`")
                return ()
            self.known(table, ("label", "set"), where, f'in the choice "{table["label"]}"')
            choices.append(Choice(table["label"], self._sets(table.get("set", []), where)))
        if len({each.label for each in choices}) < len(choices):
            self.wrong(where, "two choices have the same `label`", "each its own")
        return tuple(choices)

    def _sets(self, sets: Any, where: Where) -> tuple[str, ...]:
        if isinstance(sets, list) and all(isinstance(one, str) and "=" in one for one in sets):
            return tuple(sets)
        self.wrong(where, f"`set` is {shown(sets)}", 'a list of "KEY=VALUE"')
        return ()

    def _until(self) -> Until | None:
        table = self.data.get("until")
        if table is None:
            return None
        if not isinstance(table, dict):
            self.wrong(("until",), f"`until` is {shown(table)}", "a table [until]")
            return None
        self.known(table, ("ci", "figure", "max_seeds"), ("until",), "in [until]")
        ci = table.get("ci")
        if not is_number(ci) or not 0 < ci < 1:
            self.wrong(("until", "ci"), f"`ci` is {shown(ci)}", "a share of the mean: 0.02 is 2 %")
            return None
        if not isinstance(self.data.get("seeds", 1), int):
            self.wrong(("seeds",), "[until] needs `seeds` to be a number, not a list")
        elif self.data.get("seeds", 1) < 10:
            self.wrong(("seeds",), f"`seeds` is {self.data.get('seeds', 1)} with [until]",
                        "at least 10: with fewer, an interval means little")  # fmt: skip
        from airpath.campaign.figures import parse_figure

        figure = self.word(table, "figure", ("until",), "flows.goodput_mbps")
        try:
            parse_figure(figure)
        except InputError as error:
            self.wrong(("until", "figure"), str(error))
        most = self.whole(table, "max_seeds", ("until",), 1000, 10, MOST_SEEDS)
        return Until(float(ci), figure, most)


def set_texts(keys: tuple[str, ...], value: Scalar) -> list[str]:
    """``KEY=VALUE`` for each key, as ``--set`` takes them."""
    return scenarios.set_list(dict.fromkeys(keys, value))
