"""What SQL can reach, which names its sources may have, and how each type is written."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.campaign.query import query
from airpath.errors import InputError
from airpath.runs.results import Run

pytest.importorskip("duckdb")

SHORT = {"run.duration_s": 0.3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, of one flow and of two."""
    place = tmp_path_factory.mktemp("runs")
    airpath.run("wire", set=SHORT, out=place / "one")
    airpath.run("two-flows", set=SHORT, out=place / "two")
    return place


@pytest.fixture
def run(runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs / "one", tmp_path / "run"))


SECRET = "the words of somebody else"

FORBIDDEN = (
    "copy flows to '{out}'",
    "copy flows to '{flows}' (format parquet, use_tmp_file false)",
    "copy (pivot flows on flow using count(*)) to '{out}'",
    "explain analyze copy flows to '{out}'",
    "export database '{out}'",
    "attach '{out}' as other",
    "create table other as select 1",
    "create persistent secret s (type http)",
    "insert into flows select * from flows",
    "select * from read_csv('{secret}')",
    "select * from read_text('{secret}')",
    "select * from read_blob('{secret}')",
    "select * from '{secret}'",
    "select * from read_parquet('{other}')",
    "select * from '{other}'",
    "select * from parquet_metadata('{other}')",
    "select * from sniff_csv('{secret}')",
    "select * from glob('{folder}/*')",
    "select * from read_json('/proc/self/environ')",
    "select * from 'https://127.0.0.1:9/x.parquet'",
    "select * from read_parquet('s3://bucket/x.parquet')",
    "select getenv('AIRPATH_SECRET')",
    "select * from variable_of_python",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "set threads = 1",
    "reset lock_configuration",
    "pragma database_list",
    "pragma threads = 1",
    "call enable_logging('QueryLog', storage = 'file', storage_path = '{out}')",
    "select * from enable_logging('QueryLog', storage = 'file', storage_path = '{out}')",
    "select 1; copy flows to '{out}'",
    "import database '{folder}'",
    "checkpoint",
)


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_a_query_reads_its_tables_and_nothing_else(
    run: Path, runs: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run.parent
    (folder / "secret.csv").write_text(f"word\n{SECRET}\n")
    monkeypatch.setenv("AIRPATH_SECRET", SECRET)
    variable_of_python = pl.DataFrame({"word": [SECRET]})
    assert len(variable_of_python) == 1
    names = {
        "out": folder / "out", "flows": run / "flows.parquet", "secret": folder / "secret.csv",
        "other": runs / "two/flows.parquet", "folder": folder,
    }  # fmt: skip
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError) as refused:
        query(sql.format(**names), run)
    assert SECRET not in str(refused.value)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "sql",
    ["select count(*) as n from flows", "from flows", "with a as (from flows) from a;",
     "values (1)", "describe flows", "show tables", "summarize flows", "select 1 -- one",
     "pivot flows on flow in ('download') using count(*)"],
)  # fmt: skip
def test_what_only_reads_is_a_query(run: Path, sql: str) -> None:
    assert len(query(sql, run)) >= 1


def test_a_large_sort_leaves_nothing_behind(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    found = query("select range as n from range(300000) order by hash(range) limit 3", run)
    assert len(found) == 3
    assert not list((tmp_path / "tmp").iterdir())


def test_files_that_are_no_tables_are_no_tables(run: Path, tmp_path: Path) -> None:
    """A name was SQL once, and could write any file."""
    victim = tmp_path / "victim"
    flows = run / "flows.parquet"
    told = f"x\" as select 1; copy (select 1) to '{victim}'; create view \"y".replace("/", "%")
    for name in (told, 'flows" as select 7 as flow; --', "information_schema", "main", "other"):
        shutil.copy(flows, run / f"{name}.parquet")
    tables = query("show tables", run)["name"].to_list()
    assert set(tables) <= {*airpath.runs.tables.TABLES, "findings"}
    assert len(query("from flows", run)) == 1
    assert not victim.exists()


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/hostname", "flows", "fifo", "folder"])
def test_a_table_is_a_file(run: Path, target: str) -> None:
    links = run / "links.parquet"
    links.unlink()
    if target == "fifo":
        os.mkfifo(links)
    elif target == "folder":
        links.mkdir()
    else:
        links.symlink_to(run / "flows.parquet" if target == "flows" else target)
    with pytest.raises(InputError, match=r"links\.parquet: it is (a link|not a regular file)"):
        query("from links", run)


def test_a_damaged_table_is_said(run: Path) -> None:
    (run / "links.parquet").write_bytes(b"PAR1" + bytes(90) + b"PAR1")
    with pytest.raises(InputError, match=r"links\.parquet is damaged: "):
        query("from links", run)


NAMES = (
    "a[1]", "a*", "a?", "{a1,b}", "a\\[1]", "a[1]*?{'\"}", "a'b", 'a"b', "a\nb", " a b ", "~root",
    "~", "a%31", "$HOME", "file:", "a#b", "-a", "year=2020", "é",
)  # fmt: skip


def laid(runs: Path, folder: Path, names: Iterable[str]) -> None:
    """The run of two flows by each name, among runs that a pattern would find."""
    for other in ("a1", "a[1]x", "b", "ab"):
        shutil.copytree(runs / "one", folder / other)
    for name in names:
        shutil.copytree(runs / "two", folder / name)


def test_names_are_no_patterns(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(runs, tmp_path, NAMES)
    monkeypatch.chdir(tmp_path)
    found = {name: len(Run.open(name).flows) for name in NAMES}
    assert found == dict.fromkeys(NAMES, 2)
    sql = "select source, count(*) as n from flows group by source"
    for paths in (NAMES, [str(tmp_path / name) for name in NAMES]):
        assert dict(query(sql, "a1", *paths).rows()) == {"a1": 1, **dict.fromkeys(paths, 2)}


CAMPAIGN = {
    "scenario": "wire", "set": ["run.duration_s=0.3"], "seeds": 2,
    "vary": [{"key": "flow.0.congestion", "name": "cc", "values": ["reno", "cubic"]}],
}  # fmt: skip


@pytest.mark.parametrize("name", ["a[1]*?{'\"}", "~"])
def test_every_command_takes_such_a_name(
    runs: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    laid(runs, tmp_path, [name])
    monkeypatch.chdir(tmp_path)
    done = airpath.sweep(CAMPAIGN, out=f"{name}c", workers=1)
    assert len(done.flows) == 4
    again = airpath.sweep(CAMPAIGN, out=f"{name}c", workers=1, resume=True)
    assert again.document["recovered"] == 4
    for words, shown in (
        (("query", "select count(*) as n from flows", f"{name}c", "--format", "csv"), "n\n4"),
        (("compare", f"{name}c", "--axis", "cc", "--format", "csv"), "flows.goodput_mbps"),
        (("report", f"{name}c", "-o", f"{name}c.html"), ""),
        (("report", name, "a1", "-o", f"{name}.html"), ""),
        (("plot", f"{name}c", "-o", f"{name}c.svg"), ""),
    ):
        code, out, err = cli(*words)
        assert (code, shown in out) == (0, True), (words, out, err)
    assert Path(f"{name}.html").stat().st_size > 0
    assert Path(f"{name}c.svg").stat().st_size > 0


def test_a_folder_for_temporary_files_may_have_such_a_name(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a[1]'*").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a[1]'*"))
    assert len(query("from flows", run)) == 1


WRITTEN = {
    "true": (True, "true"),
    "7": (7, "7"),
    "sum(7)": (7, "7"),
    "170141183460469231731687303715884105727::hugeint": (2**127 - 1, str(2**127 - 1)),
    "2.50::decimal(5, 2)": (2.5, "2.50"),
    "1e300::double": (1e300, "1e+300"),
    "'nan'::double": (None, "NaN"),
    "'-infinity'::double": (None, "-inf"),
    "null": (None, ""),
    "'a,\"b\"'": ('a,"b"', 'a,"b"'),
    "date '2024-02-29'": ("2024-02-29", "2024-02-29"),
    "time '10:20:30.5'": ("10:20:30.500", "10:20:30.500"),
    "timestamp '2024-02-29 10:20:30'": ("2024-02-29T10:20:30.000000",) * 2,
    "timestamp_ns '2024-02-29 10:20:30.123456789'": ("2024-02-29T10:20:30.123456789",) * 2,
    "timezone('UTC', timestamp '2024-02-29 10:20:30')::timestamptz at time zone 'UTC'":
        ("2024-02-29T10:20:30.000000",) * 2,
    "'10:20:30+02'::timetz": ("10:20:30+02",) * 2,
    "interval '1 month 2 days 3 seconds'": ("1 month 2 days 00:00:03",) * 2,
    "'7b4c0d6e-0000-4000-8000-000000000001'::uuid": ("7b4c0d6e-0000-4000-8000-000000000001",) * 2,
    "'\\xAB\\x00'::blob": ("ab00", "ab00"),
    "'101'::bit": ("101", "101"),
    "'x'::enum('x', 'y')": ("x", "x"),
    "union_value(k := 5)": ("5", "5"),
    "[1, null, 3]": ([1, None, 3], "[1, null, 3]"),
    "[]": ([], "[]"),
    "['nan'::double, 1]": ([None, 1.0], "[null, 1.0]"),
    "[date '2024-02-29']": (["2024-02-29"], '["2024-02-29"]'),
    "{'a': 1, 'b c': ['x', 'é'], 'd': 0.5::decimal(2, 1)}":
        ({"a": 1, "b c": ["x", "é"], "d": 0.5}, '{"a": 1, "b c": ["x", "é"], "d": 0.5}'),
    "[{'b': '\\xFF'::blob, 'h': 5::hugeint, 'i': interval 1 day}]":
        ([{"b": "ff", "h": "5", "i": "1 day"}], '[{"b": "ff", "h": "5", "i": "1 day"}]'),
}  # fmt: skip


def test_each_type_is_valid_json_and_csv(run: Path, cli: Any) -> None:
    columns = (f"{value} as c{place}" for place, value in enumerate(WRITTEN))
    sql = f"select {', '.join(columns)}"
    code, out, err = cli("query", sql, str(run), "--format", "json")
    assert (code, err) == (0, "")
    (row,) = json.loads(out, parse_constant=pytest.fail)
    assert dict(zip(WRITTEN, row.values(), strict=True)) == {
        value: as_json for value, (as_json, _) in WRITTEN.items()
    }
    code, out, err = cli("query", sql, str(run), "--format", "csv")
    assert (code, err) == (0, "")
    _, line, *_ = csv.reader(io.StringIO(out))
    assert dict(zip(WRITTEN, line, strict=True)) == {
        value: as_csv for value, (_, as_csv) in WRITTEN.items()
    }
    assert cli("query", sql, str(run))[0] == 0


def test_every_type_of_duckdb_is_written_or_refused(run: Path, cli: Any) -> None:
    import duckdb

    types = duckdb.connect().execute("describe select * from test_all_types()").fetchall()
    # As many values as this has no enum that anybody writes.
    names = [name for name, *_ in types if name != "large_enum"]
    beyond = [
        name for name in names if name in ("date", "timestamp", "timestamp_s", "timestamp_tz")
    ]
    for name in beyond:
        code, _, err = cli("query", f'select "{name}" from test_all_types()', str(run))
        assert (code, "a date beyond the year 9999: cast it to varchar" in err) == (2, True)
    others = [name for name in names if name not in (*beyond, "timestamp_ms")]
    assert len(others) > 40
    columns = (f'"{name}"' for name in others)
    sql = f"select {', '.join(columns)} from test_all_types()"
    for form in ("json", "csv", "table"):
        code, out, err = cli("query", sql, str(run), "--format", form)
        assert (code, err) == (0, "")
        if form == "json":
            assert len(json.loads(out, parse_constant=pytest.fail)) == 3
        elif form == "csv":
            assert {len(row) for row in csv.reader(io.StringIO(out)) if row} == {len(others)}


def test_columns_of_one_name_are_told_apart(run: Path) -> None:
    found = query("select 1 as a, 2 as a, 3 as a_2, 4 as a", run)
    assert found.row(0) == (1, 2, 3, 4)
    assert len(set(found.columns)) == 4


EMPTY = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")


def test_a_capture_without_packets_has_a_table_without_rows(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "empty.pcap").write_bytes(EMPTY)
    code, out, err = cli(
        "query", "select count(*) as n, max(duration_s) as longest, min(client) from flows",
        str(tmp_path / "empty.pcap"), "--format", "json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert json.loads(out) == [{"n": 0, "longest": None, "min(client)": None}]
    found = query("from flows", tmp_path / "empty.pcap")
    assert found.schema["from_client_bytes"] == pl.Int64


def test_an_older_duckdb_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckdb.__version__", "1.5.6")
    with pytest.raises(InputError, match=r"a query needs DuckDB 2, and 1\.5\.6 is installed"):
        query("from flows", run)


def test_runs_are_not_compared_as_campaigns(run: Path, cli: Any) -> None:
    code, out, said = cli("compare", str(run), str(run))
    assert (code, out) == (2, "")
    assert "is a run directory, not a campaign folder: `airpath report A B`" in said
