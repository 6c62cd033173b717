"""SQL over runs, campaigns and captures, by DuckDB.

The tables of each source become views. With several sources, tables of the same name are
concatenated, and the column ``source`` names each row's source.

A source may come from anybody, and so may a query. Tables have the names that airpath gives them.
Their files are reached by links with plain names, because DuckDB would take ``a[1]`` for a pattern.
A query reads these files and nothing else: it is one statement that selects, and DuckDB may neither
open other files, nor load extensions, nor change these settings.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.campaign.files import MOST_ROWS_A_BYTE
from airpath.campaign.results import Campaign, is_campaign, newest_campaign, open_campaign
from airpath.campaign.sampling import missing
from airpath.campaign.work import TABLES, empty_frames, finding_row, finding_schema
from airpath.errors import InputError, reason
from airpath.runs.results import RunDirectory

if TYPE_CHECKING:
    import polars as pl

    from airpath.runs.document import RunDocument

_OLDEST = 2
"""Before that a query could switch on a log in a file of its choice, whatever was locked."""
_ROWS = "a campaign, a run directory or a capture"

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Otherwise a name in SQL may be that of a variable in Python.
    "python_enable_replacements": "false",
}

_AS_IT_IS = frozenset((
    "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger",
    "ubigint", "float", "double", "varchar", "decimal", "blob",
))  # fmt: skip
"""Types of DuckDB that polars has too, alone and inside of others."""
_DATES = frozenset((
    "date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp with time zone",
))  # fmt: skip
"""Polars has these too, but Python only until the year 9999."""

_CAPTURE_FLOW = {
    "id": int, "protocol": str, "client": str, "client_port": int, "server": str,
    "server_port": int, "interface": int, "tunnel": str, "teids": str, "same_as": str,
    "start_s": float, "duration_s": float, "from_client_packets": int, "from_client_bytes": int,
    "from_server_packets": int, "from_server_bytes": int,
}  # fmt: skip
"""Columns of every flow of a capture; those of a protocol are there if a flow has it."""


def query(sql: str, *sources: Campaign | str | os.PathLike[str]) -> pl.DataFrame:
    """Query campaigns, run directories and captures in SQL.

    The default source is the newest campaign in ``campaigns``. A campaign has the tables ``runs``,
    ``flows``, ``groups``, ``pings``, ``links`` and ``findings``. A run has those of its directory
    and ``findings``, a measurement also ``phases`` and ``effects``. A capture has ``flows``. Raises
    ``InputError`` with DuckDB's message about the query.

    The answer has the types of DuckDB where polars has them. Whole numbers beyond 64 bits are
    ``Int128``; intervals, bit strings, enums, unions, times with a zone, and dates within lists or
    structs are strings.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise missing("duckdb", "a query") from None
    if int(duckdb.__version__.partition(".")[0]) < _OLDEST:
        raise InputError(
            f"a query needs DuckDB {_OLDEST}, and {duckdb.__version__} is installed: pip install "
            "'airpath[campaign]'"
        )
    given = list(sources) or [newest_campaign(Path("campaigns"))]
    with ExitStack() as stack:
        files = _Files(stack)
        views: dict[str, list[str]] = {}
        for source in given:
            for table, names in _tables(source, files).items():
                listed = ", ".join(map(_text, names))
                rows = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
                label = os.fspath(source.place if isinstance(source, Campaign) else source)
                told = f"{_text(label)} as source, " if len(given) > 1 else ""
                views.setdefault(table, []).append(f"select {told}* from {rows}")  # noqa: S608
        database = stack.enter_context(duckdb.connect(config=_SETTINGS))
        try:
            for table, selects in views.items():
                database.execute(f'create view "{table}" as {" union all by name ".join(selects)}')
            files.check_sizes(database)
            files.lock(database)
            return _answer(database, sql)
        except (duckdb.Error, _polars_errors()) as error:
            tables = ", ".join(sorted(views))
            raise InputError(f"{str(error).strip()}\n  tables: {tables}") from None
        except RuntimeError as error:
            # Of Ctrl-C DuckDB tells in this way.
            if "interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise


class _Files:
    """Parquet files under plain names, in a directory of this process."""

    def __init__(self, stack: ExitStack) -> None:
        folder = tempfile.gettempdir()
        # For DuckDB these make a name a pattern.
        parent = "/tmp" if re.search(r"[*?\[\]{}\\]", folder) else folder  # noqa: S108 - private
        self._folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="airpath-", dir=parent))
        )
        self._names: list[str] = []
        self._real: list[str] = []
        self._bytes = 0

    def link(self, path: Path) -> str:
        """Return another name for a file. Raises ``InputError`` for anything else."""
        try:
            about = path.lstat()
            real = path.resolve()
        except OSError as error:
            raise InputError(f"cannot read {path}: {reason(error)}") from None
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"{path} is not a file; a source is {_ROWS}")
        name = self._new()
        name.symlink_to(real)
        self._real.append(str(real))
        self._bytes += about.st_size
        return str(name)

    def keep(self, data: bytes) -> str:
        """Keep what is elsewhere, and return its name."""
        name = self._new()
        name.write_bytes(data)
        self._bytes += len(data)
        return str(name)

    def check_sizes(self, database: Any) -> None:
        """Refuse files that were made to fill memory."""
        listed = ", ".join(map(_text, self._names))
        rows = f"select sum(num_rows) from parquet_file_metadata([{listed}])"  # noqa: S608
        (count,) = database.execute(rows).fetchone()
        if (count or 0) > MOST_ROWS_A_BYTE * self._bytes:
            raise InputError("the tables claim more rows than files of their size can hold")

    def lock(self, database: Any) -> None:
        """Let a query reach these files and no others."""
        # By their names and by where these lead to.
        allowed = ", ".join(map(_text, (*self._names, *self._real)))
        database.execute(f"set temp_directory = {_text(str(self._folder / 'spill'))}")
        database.execute(f"set allowed_paths = [{allowed}]")
        database.execute("set enable_external_access = false")
        database.execute("set lock_configuration = true")

    def _new(self) -> Path:
        name = self._folder / f"{len(self._names) + 1}.parquet"
        self._names.append(str(name))
        return name


def _tables(source: Campaign | str | os.PathLike[str], files: _Files) -> dict[str, list[str]]:
    """Names of the tables of a source, each with its files."""
    if isinstance(source, Campaign):
        return _of_campaign(source, files)
    text = os.fspath(source)
    if is_campaign(text):
        return _of_campaign(open_campaign(text), files)
    path = Path(text)
    if path.is_dir():
        return _of_run(path, files)
    if path.is_file():
        return _of_capture(path, files)
    raise InputError(f"there is no {text}; a source is {_ROWS}")


def _of_campaign(campaign: Campaign, files: _Files) -> dict[str, list[str]]:
    found = {}
    for table in TABLES:
        names = []
        for file in campaign.files.get(table, []):
            path = campaign.store.path(file)
            names.append(
                files.keep(campaign.store.read(file) or b"") if path is None else files.link(path)
            )
        found[table] = names or [_kept(empty_frames()[table], files)]
    return found


def _of_run(path: Path, files: _Files) -> dict[str, list[str]]:
    found = {
        table: [files.link(file) for file in there]
        for table, there in RunDirectory(path).table_files().items()
    }
    if not found:
        raise InputError(f"{path} has no tables; a source is {_ROWS}")
    for table, frame in _summarised(RunDirectory(path).open().summary).items():
        found[table] = [_kept(frame, files)]
    return found


def _summarised(summary: RunDocument) -> dict[str, pl.DataFrame]:
    """Tables that a run has only in its summary; a measurement has its phases and effects too."""
    import polars as pl

    rows = [finding_row(place, one) for place, one in enumerate(summary["findings"])]
    found = {"findings": pl.DataFrame(rows, schema=finding_schema())}
    if "measured" in summary:
        from airpath.measure.document import effect_rows, phase_rows

        kinds = {int: pl.Int64, float: pl.Float64, str: pl.String}
        for name, (columns, lines) in {
            "phases": phase_rows(summary["measured"]),
            "effects": effect_rows(summary["measured"]),
        }.items():
            schema = {column: kinds[kind] for column, kind in columns.items()}
            found[name] = pl.DataFrame(lines, schema=schema, orient="row")
    return found


def _of_capture(path: Path, files: _Files) -> dict[str, list[str]]:
    import polars as pl

    from airpath import _core

    try:
        report = _core.read_capture(path)
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: {error}; a source is {_ROWS}") from None
    rows = []
    for flow in report["flows"]:
        plain: dict[str, object] = {}
        for key, value in flow.items():
            plain |= (
                {f"{key}_{inner}": each for inner, each in value.items()}
                if isinstance(value, dict)
                else {key: value}
            )
        rows.append(
            {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in plain.items()}
        )
    kinds = {int: pl.Int64, float: pl.Float64, str: pl.String}
    schema = {name: kinds[kind] for name, kind in _CAPTURE_FLOW.items()}
    every = pl.DataFrame(schema=schema)
    told = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    return {"flows": [_kept(pl.concat([every, told], how="diagonal"), files)]}


def _kept(frame: pl.DataFrame, files: _Files) -> str:
    import io

    written = io.BytesIO()
    frame.write_parquet(written)
    return files.keep(written.getvalue())


def _answer(database: Any, sql: str) -> pl.DataFrame:
    """The result of a query as a polars frame."""
    import duckdb
    import polars as pl

    statements = database.extract_statements(sql)
    if not statements:
        raise InputError("the query is empty\n  for example: select * from flows")
    if len(statements) > 1:
        raise InputError(f"these are {len(statements)} statements\n  allowed: one query")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = str(statements[0].type).rpartition(".")[2]
        raise InputError(
            f"{kind} is not a query; a query only reads\n"
            "  allowed: SELECT, WITH, FROM, VALUES, DESCRIBE, SHOW and SUMMARIZE"
        )
    asked = database.sql(sql)
    # Two columns may have one name, so that each is told by its place.
    columns = [
        f"{_column(f'#{place}', kind)} as c{place}"
        for place, kind in enumerate(asked.types, start=1)
    ]
    found = pl.DataFrame(asked.project(", ".join(columns)))
    large = [f"c{place}" for place, kind in enumerate(asked.types, start=1) if kind.id == "hugeint"]
    names = _different(asked.columns)
    return found.with_columns(pl.col(large).cast(pl.Int128)).rename(
        dict(zip(found.columns, names, strict=True))
    )


def _different(names: list[str]) -> list[str]:
    """Names of columns, where a name that was there before gets a number."""
    found: list[str] = []
    for name in names:
        number, other = 1, name
        while other in found:
            number, other = number + 1, f"{name}_{number}"
        found.append(other)
    return found


def _column(column: str, kind: Any) -> str:
    """SQL of a column as polars can have it."""
    name = str(kind)
    if kind.id in _DATES or name.lower() in _DATES:
        beyond = "error('a date beyond the year 9999: cast it to varchar')"
        bounds = f"cast('0001-01-02' as {name}) and cast('9999-12-30' as {name})"
        return f"case when {column} not between {bounds} then {beyond} else {column} end"
    if kind.id in ("time", "timestamp_ns", '"null"', "null", "sqlnull"):
        return column
    wanted = _type(kind)
    return column if wanted == name else f"cast({column} as {wanted})"


def _type(kind: Any) -> str:
    """SQL of a type with texts for what polars, or JSON, has not."""
    if kind.id in _AS_IT_IS:
        return str(kind)
    if kind.id in ("list", "array"):
        return f"{_type(kind.children[0][1])}[]"
    if kind.id == "struct" and kind.children:
        fields = (f"{_name(name)} {_type(child)}" for name, child in kind.children)
        return f"struct({', '.join(fields)})"
    if kind.id == "map":
        return f"map(varchar, {_type(kind.children[1][1])})"
    return "varchar"


def _polars_errors() -> type[Exception]:
    import polars as pl

    return pl.exceptions.PolarsError


def _name(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    """Quote a string for SQL."""
    return "'" + text.replace("'", "''") + "'"
