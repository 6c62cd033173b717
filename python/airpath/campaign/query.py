"""SQL over runs, campaigns and captures, by DuckDB.

Each source has its tables as views; of several sources the rows of tables of one name stand
together, and the column ``source`` says which they are of.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.campaign.results import Campaign, is_campaign, newest_campaign, open_campaign
from airpath.campaign.sampling import missing
from airpath.campaign.work import TABLES, empty_frames
from airpath.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_ROWS = "a campaign, a run directory or a capture"


def query(sql: str, *sources: Campaign | str | os.PathLike[str]) -> pl.DataFrame:
    """Ask campaigns, run directories and captures in SQL.

    Without a source it is the newest campaign in ``campaigns``. Tables of a campaign: ``runs``,
    ``flows``, ``groups``, ``pings``, ``links``, ``findings``; of a run those of its directory; of a
    capture ``flows``. Raises ``InputError`` with what DuckDB says of the query.
    """
    import polars as pl

    try:
        import duckdb
    except ModuleNotFoundError:
        raise missing("duckdb", "a query") from None
    given = list(sources) or [newest_campaign(Path("campaigns"))]
    with duckdb.connect() as database:
        views: dict[str, list[str]] = {}
        for number, source in enumerate(given):
            for table, relation in _relations(database, source, number).items():
                label = os.fspath(source.place if isinstance(source, Campaign) else source)
                told = f"select {_text(label)} as source, * from {relation}"  # noqa: S608 - quoted
                plain = f"select * from {relation}"  # noqa: S608 - made above
                views.setdefault(table, []).append(plain if len(given) == 1 else told)
        for table, selects in views.items():
            database.execute(f'create view "{table}" as {" union all by name ".join(selects)}')
        try:
            answer = database.execute(sql)
            if answer is None:
                raise InputError("the query is empty\n  for example: select * from flows")
            names = [column[0] for column in answer.description]
            # Not arrow: that would want another package.
            columns = answer.fetchnumpy() if _simple(answer.description) else None
            if columns is not None:
                return pl.DataFrame({name: _series(columns[name]) for name in names})
            return pl.DataFrame(
                answer.fetchall(), schema=names, orient="row", infer_schema_length=None
            )
        except duckdb.Error as error:
            tables = ", ".join(sorted(views))
            raise InputError(f"{str(error).strip()}\n  tables: {tables}") from None


def _relations(
    database: Any, source: Campaign | str | os.PathLike[str], number: int
) -> dict[str, str]:
    """Names of the tables of a source, each with what to select from."""
    if isinstance(source, Campaign):
        return _of_campaign(database, source, number)
    text = os.fspath(source)
    if is_campaign(text):
        return _of_campaign(database, open_campaign(text), number)
    path = Path(text)
    if path.is_dir():
        return _of_run(path)
    if path.is_file():
        return _of_capture(database, path, number)
    raise InputError(f"there is no {text}; a source is {_ROWS}")


def _of_campaign(database: Any, campaign: Campaign, number: int) -> dict[str, str]:
    relations = {}
    local = "://" not in campaign.place
    for table in TABLES:
        files = campaign.files.get(table, [])
        if files and local:
            place = Path(campaign.place.removeprefix("file://"))
            listed = ", ".join(_text(str(place / file)) for file in files)
            relations[table] = f"read_parquet([{listed}])"
            continue
        frame = campaign.table(table) if files else empty_frames()[table]
        relations[table] = _registered(database, frame, f"source_{number}_{table}")
    return relations


def _of_run(path: Path) -> dict[str, str]:
    found: dict[str, list[Path]] = {}
    for file in sorted(path.glob("*.parquet")) + sorted(path.glob("seed-*/*.parquet")):
        found.setdefault(file.stem, []).append(file)
    if not found:
        raise InputError(f"{path} has no tables; a source is {_ROWS}")
    return {
        table: f"read_parquet([{', '.join(_text(str(file)) for file in files)}], "
        "union_by_name = true)"
        for table, files in found.items()
    }


def _of_capture(database: Any, path: Path, number: int) -> dict[str, str]:
    import json

    import polars as pl

    from airpath import _core

    try:
        report = _core.read_capture(path)
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: {error}; a source is {_ROWS}") from None
    rows = []
    for flow in report["flows"]:
        plain: dict[str, Any] = {}
        for key, value in flow.items():
            plain |= (
                {f"{key}_{inner}": each for inner, each in value.items()}
                if isinstance(value, dict)
                else {key: value}
            )
        rows.append(
            {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in plain.items()}
        )
    if not rows:
        raise InputError(f"{path} has no flow of IP, so there is nothing to ask of it")
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return {"flows": _registered(database, frame, f"source_{number}_flows")}


def _registered(database: Any, frame: pl.DataFrame, name: str) -> str:
    """Put a frame into the database by a Parquet file: DuckDB would take it by pyarrow."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        frame.write_parquet(file)
        rows = f"select * from read_parquet({_text(str(file))})"  # noqa: S608 - quoted
        database.execute(f'create table "{name}" as {rows}')
    return f'"{name}"'


def _simple(description: Any) -> bool:
    """Whether all columns are numbers or texts."""
    plain = {"NUMBER", "STRING", "Bool"}
    kinds = {str(column[1]) for column in description}
    return all(
        kind in plain or kind.startswith(("BIGINT", "UBIGINT", "INTEGER", "UINTEGER", "DOUBLE",
                                          "VARCHAR", "BOOLEAN", "FLOAT", "HUGEINT"))
        for kind in kinds
    )  # fmt: skip


def _series(column: Any) -> Any:
    import numpy as np
    import polars as pl

    if isinstance(column, np.ma.MaskedArray):
        values = column.data.tolist()
        masks = np.ma.getmaskarray(column)
        return pl.Series([None if gone else v for v, gone in zip(values, masks, strict=True)])
    return pl.Series(column.tolist() if column.dtype == object else column)


def _text(text: str) -> str:
    """A text of SQL."""
    return "'" + text.replace("'", "''") + "'"
