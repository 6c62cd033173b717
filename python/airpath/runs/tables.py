"""Names of the result tables, and reading them back."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from airpath.base import forked
from airpath.base.files import open_regular
from airpath.base.shapes import LARGEST
from airpath.errors import InputError
from airpath.runs import parquet

if TYPE_CHECKING:
    import polars as pl

    from airpath import _core

TABLES = (
    "flows", "samples", "links", "acks", "pings", "events", "rtt_histogram", "proxies", "radio",
    "radio_log", "groups",
)  # fmt: skip
"""``acks`` exists only if the scenario sets ``run.ack_table``, ``groups`` only with a flow that has
``streams``, ``proxies`` only with a proxy, ``radio`` only with a radio, ``radio_log`` only if
``run.radio_log`` is set."""

NS_PER_S = 1_000_000_000


def read_table(directory: Path, name: str) -> pl.DataFrame | None:
    """Read a table of a run directory; None if the run has no such table.

    Its columns are those that airpath writes (``crates/record``). One that may be null may also be
    missing, because an older version did not write it; others are left out. Raises ``InputError``.
    """
    with _checked(directory, name) as file:
        return None if file is None else _frame(file, name)


def table_file(directory: Path, name: str) -> Path | None:
    """Return the file of a table, for something else to read; None if there is none.

    It is a regular file with the columns of that table, and takes no more memory than its size
    allows. Raises ``InputError``.
    """
    with _checked(directory, name) as file:
        return None if file is None else directory / f"{name}.parquet"


@contextmanager
def _checked(directory: Path, name: str) -> Iterator[BinaryIO | None]:
    """A table's file, once it is known what it is; what fails with it is an ``InputError``."""
    forked.check()
    import polars as pl

    path = directory / f"{name}.parquet"
    try:
        file = open_regular(path)
    except FileNotFoundError:
        yield None
        return
    with file:
        try:
            parquet.check(file)
            _check_columns(file, name)
            yield file
        except parquet.DamagedError as error:
            raise InputError(f"{path} is damaged: {error}") from None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
        except pl.exceptions.PanicException:
            raise InputError(f"{path} is damaged: its pages cannot be read") from None


def _check_columns(file: BinaryIO, name: str) -> None:
    types = _types()
    schema = _schema(file)
    for column, kind, nullable in _columns()[name]:
        found = schema.get(column)
        if found is None and not nullable:
            raise parquet.DamagedError(f"it has no column {column}")
        if found is not None and found != types[kind]:
            raise parquet.DamagedError(
                f"the column {column} has the type {found}; expected {types[kind]}"
            )


def _frame(file: BinaryIO, name: str) -> pl.DataFrame:
    """The columns of a table, with values that they can have."""
    import polars as pl

    columns, types, schema = _columns()[name], _types(), _schema(file)
    frame = pl.read_parquet(file, columns=[one for one, _, _ in columns if one in schema])
    for column, kind, nullable in columns:
        if column not in schema:
            continue
        if not nullable and frame[column].null_count():
            raise parquet.DamagedError(f"the column {column} has nulls, which it must not have")
        if kind == "f64" and not frame[column].is_between(-LARGEST, LARGEST).all():
            raise parquet.DamagedError(f"the column {column} has values out of range")
    return frame.select(
        pl.col(column) if column in schema else pl.lit(None, types[kind]).alias(column)
        for column, kind, _ in columns
    )


def _schema(file: BinaryIO) -> dict[str, pl.DataType]:
    import polars as pl

    file.seek(0)
    schema = pl.read_parquet_schema(file)
    file.seek(0)
    return dict(schema)


def write_table(
    directory: Path, name: str, columns: Mapping[str, Sequence[object]], metadata: dict[str, str]
) -> None:
    """Write a table of a run from columns of equal length; those that are not given are null."""
    import polars as pl

    types = _types()
    length = len(next(iter(columns.values()), ()))
    series = [
        pl.Series(column, columns.get(column, [None] * length), dtype=types[kind])
        for column, kind, _ in _columns()[name]
    ]
    pl.DataFrame(series).write_parquet(directory / f"{name}.parquet", metadata=metadata)


@functools.cache
def _columns() -> dict[str, list[tuple[str, str, bool]]]:
    from airpath import _core

    return _core.table_columns()


@functools.cache
def _types() -> dict[str, pl.DataType]:
    """Types of polars by those of the core."""
    import polars as pl

    return {
        "i64": pl.Int64(), "u64": pl.UInt64(), "u32": pl.UInt32(), "f64": pl.Float64(),
        "bool": pl.Boolean(), "text": pl.String(), "name": pl.Categorical(),
    }  # fmt: skip


def result_table(result: _core.Result, name: str) -> pl.DataFrame | None:
    """Return a table of a simulator result as a frame, without a copy."""
    forked.check()
    import polars as pl

    try:
        return pl.DataFrame(result.table(name))
    except KeyError:
        return None
