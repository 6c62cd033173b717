"""Rounds of a campaign with ``[until]``: which cells are to have more seeds."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airpath.campaign.definition import Until
from airpath.campaign.figures import parse_figure, unknown_column
from airpath.campaign.partitions import Frames
from airpath.campaign.plan import Plan
from airpath.campaign.work import empty_frames
from airpath.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def check(until: Until | None) -> None:
    """Refuse a figure that no run can have, before the first one. Raises ``InputError``."""
    if until is None:
        return
    figure = parse_figure(until.figure)
    table = empty_frames()[figure.table]
    numbers = [name for name, kind in table.schema.items() if kind.is_numeric() and name != "run"]
    if figure.column not in numbers:
        raise unknown_column(figure, numbers)


class Figures:
    """The figure that decides how many seeds a cell gets."""

    def __init__(self, plan: Plan, until: Until) -> None:
        self._plan, self._until = plan, until
        self._figure = parse_figure(until.figure)
        self._values: defaultdict[int, defaultdict[str, dict[int, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._runs: defaultdict[int, int] = defaultdict(int)

    def __call__(self, frames: Frames) -> None:
        """Take the rows of runs."""
        for number in frames["runs"]["run"]:
            self._runs[self._plan.run(number).cell] += 1
        table = frames.get(self._figure.table)
        if table is None:
            return
        for number, owner, value in _column(table, self._figure.column, self._figure.owner):
            if value is not None and self._figure.of in (None, owner):
                self._values[self._plan.run(number).cell][owner][number] = value

    def wanting(self) -> list[tuple[int, tuple[int, ...]]]:
        """Cells that are not known well enough, each with its next seeds."""
        from airpath.analysis.sequential import more_values

        if not self._values:
            raise InputError(f"no run has the figure {self._figure}")
        wanted = []
        first = self._plan.definition.seeds[0]
        for cell in range(len(self._plan.cells)):
            there = self._runs[cell]
            series = [
                [value for _, value in sorted(values.items())]
                for values in self._values[cell].values()
            ]
            # A figure that some seeds lack is known from those that have it.
            most = self._until.max_seeds
            more = max(
                (
                    there + max(0, more_values(values, self._until.ci, most) - len(values))
                    for values in series
                ),
                default=there,
            )
            more = min(more, most)
            if more > there:
                wanted.append((cell, tuple(range(first + there, first + more))))
        return wanted


def _column(table: pl.DataFrame, column: str, owner: str) -> list[tuple[int, str, float | None]]:
    names = table[owner].to_list() if owner else [""] * len(table)
    return list(zip(table["run"].to_list(), names, table[column].to_list(), strict=True))
