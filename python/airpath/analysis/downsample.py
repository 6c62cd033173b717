"""Thin a series for plotting without losing its peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

POINTS_PER_SERIES = 3_000
"""A series in a report has at most this many points."""


def downsample(
    frame: pl.DataFrame,
    x: str,
    y: Sequence[str],
    by: Sequence[str] = (),
    limit: int = POINTS_PER_SERIES,
) -> tuple[pl.DataFrame, bool]:
    """Keep at most ``limit`` rows a series: lowest and highest of each ``y`` in slices of ``x``.

    ``by`` names the columns that tell series apart. Returns the rows, in their order, and whether
    any were left out. Rows in which a ``y`` is null mark gaps: each slice keeps its first one.
    """
    import polars as pl

    over: list[Any] = list(by) or [pl.lit(1)]
    if frame.is_empty() or frame.select(pl.len().over(over).max()).item() <= limit:
        return frame, False
    row = pl.col("_row")
    kept = [row.first(), row.last()]
    for name in y:
        value = pl.col(name)
        kept += [row.get(value.arg_min()), row.get(value.arg_max())]
        kept += [row.filter(value.is_null()).first()]
    slices = max(1, limit // len(kept))
    size, place = pl.len().over(over), pl.int_range(pl.len()).over(over)
    numbered = frame.with_row_index("_row")
    sliced = numbered.sort([*by, x, "_row"]).with_columns(
        pl.when(size <= limit).then(place).otherwise(place * slices // size).alias("_slice")
    )
    found = sliced.group_by([*by, "_slice"]).agg(*(kept[i].alias(str(i)) for i in range(len(kept))))
    wanted = pl.concat([found[str(i)] for i in range(len(kept))]).drop_nulls().unique()
    return numbered.filter(row.is_in(wanted.implode())).drop("_row"), True
