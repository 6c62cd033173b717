"""Which runs a campaign has, in which order, each with its key.

A cell is one base scenario at one point; it has a run for each seed. Runs are numbered through:
the first cell's seeds, then the second's. With ``[until]`` further rounds follow, which number on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from airpath.base.secrets import redacted
from airpath.campaign import sampling
from airpath.campaign.definition import MOST_CELLS, Base, Definition, Scalar
from airpath.campaign.keys import key_of
from airpath.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_CHECKED_AT_ONCE = 2000
_MOST_LETTERS = 60
_TOLD = 5
"""Problems are listed up to this many."""


class Cell(NamedTuple):
    """A base scenario at a point."""

    base: int
    values: tuple[Scalar, ...]
    sets: tuple[str, ...]
    sha256: str
    """Of the whole scenario."""


class Numbered(NamedTuple):
    """One run."""

    number: int
    cell: int
    seed: int


@dataclass
class Plan:
    """A campaign whose every scenario was checked."""

    definition: Definition
    cells: list[Cell]
    version: str
    core: str
    """Hash of the compiled core."""

    def __post_init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: list[tuple[int, tuple[int, ...]]] = []
        self.runs = 0
        self.add([(cell, self.definition.seeds) for cell in range(len(self.cells))])

    @property
    def axes(self) -> list[str]:
        """Names of the columns of what is varied."""
        return [axis.name for axis in self.definition.axes]

    def base(self, cell: int) -> Base:
        """The scenario that a cell starts from."""
        return self.definition.bases[self.cells[cell].base]

    def add(self, blocks: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """Number on: cells, each with seeds."""
        for cell, seeds in blocks:
            self._starts.append(self.runs)
            self._blocks.append((cell, seeds))
            self.runs += len(seeds)

    def run(self, number: int) -> Numbered:
        """Return a run by its number."""
        block = bisect_right(self._starts, number) - 1
        cell, seeds = self._blocks[block]
        return Numbered(number, cell, seeds[number - self._starts[block]])

    def key(self, run: Numbered) -> str:
        """32 hexadecimal digits: equal for equal scenario, seed, version and core."""
        return key_of(self.cells[run.cell].sha256, run.seed, self.version, self.core)

    def partition(self, number: int) -> range:
        """The runs of a partition."""
        size = self.definition.partition_runs
        return range(number * size, min((number + 1) * size, self.runs))

    def frame(self, runs: Sequence[Numbered]) -> pl.DataFrame:
        """What stands before the figures of each run: number, key, cell, scenario, seed, values."""
        import polars as pl

        cells = [self.cells[run.cell] for run in runs]
        columns: dict[str, pl.Series] = {
            "run": pl.Series([run.number for run in runs], dtype=pl.UInt64),
            "key": pl.Series([self.key(run) for run in runs], dtype=pl.String),
            "cell": pl.Series([run.cell for run in runs], dtype=pl.UInt32),
            "scenario": pl.Series(
                [self.definition.bases[cell.base].name for cell in cells], dtype=pl.String
            ),
            "seed": pl.Series([run.seed for run in runs], dtype=pl.UInt64),
        }
        for index, axis in enumerate(self.definition.axes):
            kind = self._kinds()[index]
            values = [cell.values[index] for cell in cells]
            told = [str(value) for value in values] if kind == pl.String else values
            columns[axis.name] = pl.Series(told, dtype=kind)
        return pl.DataFrame(columns)

    def _kinds(self) -> list[pl.DataType | type[pl.DataType]]:
        """Type of each axis's column, from all that it can be."""
        import polars as pl

        kinds: list[pl.DataType | type[pl.DataType]] = []
        for axis in self.definition.axes:
            types = {type(choice.label) for choice in axis.choices}
            if axis.ranged:
                kinds.append(pl.Int64 if axis.whole else pl.Float64)
            elif types == {bool}:
                kinds.append(pl.Boolean)
            elif types == {int}:
                kinds.append(pl.Int64)
            elif types <= {int, float}:
                kinds.append(pl.Float64)
            else:
                kinds.append(pl.String)
        return kinds


def make(definition: Definition, threads: int = 1) -> Plan:
    """Check every scenario of a campaign. Raises ``InputError`` that names those that are wrong."""
    from airpath import _core
    from airpath.runs.provenance import core_hash

    _refuse_figures(definition)
    number = sampling.size(definition) * len(definition.bases)
    if number > MOST_CELLS:
        raise InputError(
            f"{definition.at('vary')}: the campaign has {number} combinations\n"
            f"  allowed: {MOST_CELLS}"
        )
    cells: list[Cell] = []
    wrong: list[_Refused] = []
    for index, base in enumerate(definition.bases):
        every = list(sampling.points(definition))
        for start in range(0, len(every), _CHECKED_AT_ONCE):
            some = every[start : start + _CHECKED_AT_ONCE]
            sets = [[*definition.sets, *settings] for _, settings in some]
            found = _core.check_variants(base.text, base.name, base.directory, sets, threads)
            for (values, _), settings, (sha256, message) in zip(some, sets, found, strict=True):
                if sha256 is None:
                    wrong.append(_Refused(base, values, settings, message or ""))
                else:
                    cells.append(Cell(index, values, tuple(settings), sha256))
    if wrong:
        told = _problems(definition, wrong, number)
        more = [f"  and {len(told) - _TOLD} more"] if len(told) > _TOLD else []
        raise InputError("\nerror: ".join(told[:_TOLD]) + "".join(f"\n{each}" for each in more))
    return Plan(definition, cells, _core.__version__, core_hash() or "")


def _refuse_figures(definition: Definition) -> None:
    """Refuse an axis that is named as a column of the tables is."""
    from airpath.campaign.work import empty_frames

    columns = {column for table in empty_frames().values() for column in table.columns}
    for index, axis in enumerate(definition.axes):
        if axis.name in columns:
            raise InputError(
                f"{definition.at('vary', index, 'name')}: `{axis.name}` is the name of a "
                "column in the tables\n  allowed: another name"
            )


class _Refused(NamedTuple):
    """A cell that cannot be run, and why."""

    base: Base
    values: tuple[Scalar, ...]
    settings: Sequence[str]
    message: str


def _problems(definition: Definition, wrong: list[_Refused], cells: int) -> list[str]:
    """Each problem once; with the first cell that has it, unless all of them do."""
    found: dict[str, list[_Refused]] = {}
    for refused in wrong:
        for problem in refused.message.removeprefix("error: ").split("\nerror: "):
            told = problem
            for setting in (*definition.sets, *refused.settings):
                told = told.removeprefix(f"--set {redacted(setting)}: ")
            found.setdefault(f"{_culprit(definition, problem)}: {told}", []).append(refused)
    lines = []
    for problem, having in found.items():
        first = having[0]
        point = ", ".join(
            f"{axis.name[:_MOST_LETTERS]} = {str(value)[:_MOST_LETTERS]}"
            for axis, value in zip(definition.axes, first.values, strict=True)
        )
        where = f"\n  {first.base.name} cannot be run with {point}" if len(having) < cells else ""
        lines.append(f"{problem}{where}")
    return lines


def _culprit(definition: Definition, message: str) -> str:
    """Where the key stands that the message is about."""
    part = "key" if ": unknown key" in message else "values"
    for index, axis in enumerate(definition.axes):
        keys = set(axis.keys)
        keys |= {text.partition("=")[0].strip() for each in axis.choices for text in each.sets}
        if any(key in message for key in keys):
            return definition.at("vary", index, part)
    if any(text.partition("=")[0].strip() in message for text in definition.sets):
        return definition.at("set")
    return definition.at("scenario")
