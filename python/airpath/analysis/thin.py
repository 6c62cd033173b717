"""Thin a series for plotting without losing its peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

POINTS_PER_SERIES = 2_000
"""A series in a report has at most this many points."""

_KEPT = ("first", "last", "low", "high", "gap")


def thin(
    frame: pl.DataFrame,
    x: str,
    y: str,
    by: list[str] | None = None,
    limit: int = POINTS_PER_SERIES,
) -> tuple[pl.DataFrame, bool]:
    """Keep at most ``limit`` rows a series, among them the lowest and highest ``y`` of each slice.

    ``by`` names the columns that tell series apart. Returns the rows, in their order, and whether
    any were left out. Rows whose ``y`` is null mark gaps: each slice keeps its first one.
    """
    import polars as pl

    keys = list(by or [])
    over: list[Any] = keys or [pl.lit(1)]
    if frame.is_empty() or frame.select(pl.len().over(over).max()).item() <= limit:
        return frame, False
    slices = max(1, limit // len(_KEPT))
    size, place = pl.len().over(over), pl.int_range(pl.len()).over(over)
    sliced = (
        frame.with_row_index("_row")
        .sort([*keys, x, "_row"])
        .with_columns(
            pl.when(size <= limit).then(place).otherwise(place * slices // size).alias("_slice")
        )
    )
    row = pl.col("_row")
    kept = sliced.group_by([*keys, "_slice"]).agg(
        row.first().alias("first"),
        row.last().alias("last"),
        row.get(pl.col(y).arg_min()).alias("low"),
        row.get(pl.col(y).arg_max()).alias("high"),
        row.filter(pl.col(y).is_null()).first().alias("gap"),
    )
    wanted = pl.concat([kept[name] for name in _KEPT]).drop_nulls().unique()
    return frame.with_row_index("_row").filter(row.is_in(wanted.implode())).drop("_row"), True
