"""Run directories that anybody may have made: read, or refused in a line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import _core
from airpath.errors import InputError
from airpath.runs import parquet
from airpath.runs.results import Run, RunDirectory
from airpath.runs.tables import TABLES, read_table
from airpath.twin import runs as twins
from airpath_dev.fuzzed import runs as fuzzed
from airpath_dev.fuzzed.check import bounded

_COUNT = 60
_WITH_A_COMMAND = 6
"""Every sixth is given to a command."""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs with one and two seeds, a radio, a proxy, findings, an emulation's section."""
    return fuzzed.make(tmp_path_factory.mktemp("known"))


@pytest.fixture
def run(known: list[Path], tmp_path: Path) -> Path:
    """A run of one seed to do damage to."""
    return Path(shutil.copytree(known[0], tmp_path / "run"))


@pytest.fixture
def two_seeds(known: list[Path], tmp_path: Path) -> Path:
    """A run of two."""
    return Path(shutil.copytree(known[1], tmp_path / "run"))


def changed(file: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON document."""
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def read_whole(directory: Path) -> None:
    """Read everything that is in a directory."""
    opened = Run.open(directory)
    for name in TABLES:
        if opened.has_table(name):
            opened.table(name)


def refused(directory: Path) -> str:
    """What is said of a directory that is not read."""
    with bounded(), pytest.raises(InputError) as error:
        read_whole(directory)
    text = str(error.value)
    assert "\n" not in text
    return text.replace(f"{directory}", "RUN")


def test_runs_as_airpath_writes_them_are_read(known: list[Path]) -> None:
    for directory in known:
        opened = Run.open(directory)
        files = RunDirectory(directory).table_files()
        assert {"flows", "samples", "links", "pings", "events", "rtt_histogram"} <= files.keys()
        for name, of_seeds in files.items():
            assert len(of_seeds) == len(opened.seeds)
            assert opened.table(name).columns[1:] == [one for one, _, _ in COLUMNS[name]]


COLUMNS = _core.table_columns()


def test_the_columns_are_those_of_the_reference() -> None:
    assert COLUMNS.keys() == set(TABLES)
    assert COLUMNS["pings"][3] == ("rtt_ms", "f64", True)


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("summary.json", lambda it: it["flows"][0].update(goodput_mbps="fast"),
         "RUN/summary.json is damaged: flows[0].goodput_mbps is 'fast'; expected a number, or "
         "null"),
        ("summary.json", lambda it: it["flows"][1].pop("id"),
         "RUN/summary.json is damaged: flows[1].id is missing"),
        ("summary.json", lambda it: it.update(pings={}),
         "RUN/summary.json is damaged: pings is a table; expected a list"),
        ("summary.json", lambda it: it["findings"][0]["gain"].update(metric="luck"),
         "RUN/summary.json is damaged: findings[0].gain.metric is 'luck'; expected "
         "goodput_mbps, completed_s, "),
        ("summary.json", lambda it: it["findings"][0]["gain"].update(ci95=[1.0]),
         "RUN/summary.json is damaged: findings[0].gain.ci95 has 1 items; expected 2"),
        ("summary.json", lambda it: it["links"][0].update(utilisation=float("nan")),
         "RUN/summary.json is damaged: NaN is not allowed in JSON"),
        ("summary.json", lambda it: it["run"].update(events=10**30),
         "RUN/summary.json is damaged: run.events is larger than 2^70; expected a whole number"),
        ("summary.json", lambda it: it["run"].update(duration_s=-1),
         "RUN/summary.json is damaged: run.duration_s is -1; expected a number from 0"),
        ("summary.json", lambda it: it.update(emulation={"valid": True}),
         "RUN/summary.json is damaged: emulation.directions is missing"),
        ("provenance.json", lambda it: it.update(seeds=["../.."]),
         "RUN/provenance.json is damaged: seeds[0] is '../..'; expected a whole number"),
        ("provenance.json", lambda it: it.update(seeds=[]),
         "RUN/provenance.json is damaged: seeds has 0 items; expected 1 to 100000"),
        ("provenance.json", lambda it: it.update(seeds=[2**64]),
         "RUN/provenance.json is damaged: seeds[0] is 18446744073709551616; expected"),
        ("provenance.json", lambda it: it.update(seeds=[3, 3]),
         "RUN/provenance.json is damaged: seeds has a duplicate"),
        ("provenance.json", lambda it: it.update(seeds=[3, 4]),
         "RUN is damaged: it has no directory seed-3"),
        ("provenance.json", lambda it: it.update(scenario="wire"),
         "RUN/provenance.json is damaged: scenario is 'wire'; expected a table"),
        ("provenance.json", lambda it: it.update(command="rm"),
         "RUN/provenance.json is damaged: command is 'rm'; expected a list, or null"),
    ],
)  # fmt: skip
def test_the_file_and_the_field_are_named(
    run: Path, file: str, change: Callable[[Any], object], said: str
) -> None:
    changed(run / file, change)
    assert refused(run).startswith(said)


@pytest.mark.parametrize("name", ["summary.json", "provenance.json", "scenario.toml"])
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("endless", "it is a link"),
        ("elsewhere", "it is a link"),
        ("to itself", "it is a link"),
        ("pipe", "it is not a regular file"),
        ("directory", "it is not a regular file"),
        ("sparse", "it is larger than 128 MiB"),
    ],
)
def test_only_regular_files_are_read(run: Path, name: str, what: str, said: str) -> None:
    file = run / name
    if what == "sparse":
        os.truncate(file, 1 << 40)
    else:
        file.rename(run.parent / "moved")
        targets = {"endless": "/dev/zero", "elsewhere": "../moved", "to itself": name}
        if what in targets:
            file.symlink_to(targets[what])
        elif what == "pipe":
            os.mkfifo(file)
        else:
            file.mkdir()
    assert refused(run) == f"cannot read RUN/{name}: {said}"


def test_a_table_or_a_seed_that_leads_out_of_the_directory_is_refused(two_seeds: Path) -> None:
    table = two_seeds / "seed-2/flows.parquet"
    table.rename(two_seeds.parent / "flows.parquet")
    table.symlink_to("../../flows.parquet")
    assert refused(two_seeds) == "cannot read RUN/seed-2/flows.parquet: it is a link"
    (two_seeds / "seed-2").rename(two_seeds.parent / "away")
    (two_seeds / "seed-2").symlink_to("../away")
    assert refused(two_seeds) == "RUN is damaged: it has no directory seed-2"


def test_nested_documents_are_refused(run: Path) -> None:
    (run / "summary.json").write_text("[" * 100_000)
    assert "recursion" in refused(run)
    (run / "summary.json").write_bytes(b"\xff")
    assert refused(run) == "RUN/summary.json is damaged: it is not text"


def rewritten(run: Path, *columns: pl.Expr, drop: str | None = None) -> str:
    """Write the samples with other columns; what is said of them."""
    file = run / "samples.parquet"
    frame = pl.read_parquet(file, glob=False).with_columns(*columns)
    (frame if drop is None else frame.drop(drop)).write_parquet(file)
    return refused(run).removeprefix("RUN/samples.parquet is damaged: ")


def test_tables_have_the_columns_that_airpath_writes(run: Path) -> None:
    shutil.copy(run / "samples.parquet", run / "kept")

    def said(*columns: pl.Expr, drop: str | None = None) -> str:
        shutil.copy(run / "kept", run / "samples.parquet")
        return rewritten(run, *columns, drop=drop)

    assert said(drop="flow") == "it has no column flow"
    wrong = said(pl.lit("x").alias("time_ns"))
    assert wrong == "the column time_ns has the type String; expected Int64"
    assert said(pl.lit([1]).alias("time_ns")).startswith("the column time_ns has the type List")
    missing = said(pl.lit(None, pl.Int64).alias("time_ns"))
    assert missing == "the column time_ns has nulls, which it must not have"
    for odd in (float("inf"), float("nan"), -1e300):
        wrong = said(pl.lit(odd).alias("rtt_ms"))
        assert wrong == "the column rtt_ms has values out of range"


def test_an_older_table_lacks_what_may_be_null_and_a_newer_one_has_more(run: Path) -> None:
    file = run / "samples.parquet"
    frame = pl.read_parquet(file, glob=False)
    frame.drop("receive_window_segments").with_columns(new=1).write_parquet(file)
    read = read_table(run, "samples")
    assert read is not None
    assert read.columns == frame.columns
    assert read["receive_window_segments"].null_count() == read.height


def check(path: Path) -> None:
    with path.open("rb") as file:
        parquet.check(file)


def footer(file: Path) -> tuple[bytearray, int]:
    """The bytes of a table, and where its footer begins."""
    data = bytearray(file.read_bytes())
    return data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.parametrize("what", ["rows", "text"])
def test_a_bomb_is_refused_before_it_is_unpacked(
    run: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four million equal rows, or a name of 64 MiB, in a file of some kilobytes."""
    file = run / "samples.parquet"
    frame = pl.read_parquet(file, glob=False)
    if what == "rows":
        pl.select(
            pl.repeat(frame[name][0], 4_000_000, dtype=frame.schema[name]).alias(name)
            for name in ("time_ns", "flow", "goodput_mbps", "delivered_bytes")
        ).write_parquet(file)
    else:
        name = pl.lit("x" * (1 << 26)).cast(pl.Categorical).alias("flow")
        frame.head(1).with_columns(name).write_parquet(file)
    assert file.stat().st_size < 100_000

    def unpacked(*_: object, **__: object) -> None:
        raise AssertionError("it is unpacked")

    monkeypatch.setattr(pl, "read_parquet", unpacked)
    with pytest.raises(InputError, match=r"bytes would take .* in memory; at most"):
        read_table(run, "samples")


def test_a_page_that_lies_about_its_size_is_refused(run: Path) -> None:
    """Its pages have other rows than its footer says."""
    frame = pl.DataFrame({"a": pl.Series([7] * 1000, dtype=pl.Int64)})
    file = run / "one.parquet"
    frame.write_parquet(file, compression="zstd", statistics=False)
    data, start = footer(file)
    check(file)
    for place in range(start, len(data)):
        # Whatever byte is wrong, it is read or refused.
        file.write_bytes(data[:place] + bytes([data[place] ^ 0x15]) + data[place + 1 :])
        with contextlib.suppress(parquet.DamagedError):
            check(file)
    at = data.index(b"\xd0\x0f", start)  # 1000, in the footer.
    data[at : at + 2] = b"\xd2\x0f"
    file.write_bytes(data)
    with pytest.raises(parquet.DamagedError, match="not have the number of rows"):
        check(file)


def test_a_file_is_no_view_of_sql_by_its_name(run: Path, cli: Any) -> None:
    shutil.copy(run / "flows.parquet", run / 'x" as select 1; --.parquet')
    assert 'x"' not in str(RunDirectory(run).table_files())
    code, said, _ = cli("query", "select count(*) as n from flows", str(run), "--format", "csv")
    assert (code, said) == (0, f"n\n{read_table(run, 'flows').height}\n")  # type: ignore[union-attr]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_refused(run: Path, number: str) -> None:
    """In keys that no version of airpath knows, too."""
    file = run / "summary.json"
    file.write_text(file.read_text().replace("{", f'{{"further": [{number}],', 1))
    with pytest.raises(InputError, match=r"summary\.json is damaged: "):
        Run.open(run)


def test_damaged_directories_are_read_or_refused(known: list[Path], tmp_path: Path) -> None:
    """Others with each commit; `make fuzz-runs` has more."""
    pick = Random(f"airpath runs {os.environ.get('PROPTEST_RNG_SEED', '0')}")
    ended: dict[str, int] = {}
    for number in range(_COUNT):
        directory = fuzzed.tampered(pick, known, tmp_path)
        every = fuzzed.commands(pick, directory, tmp_path)
        words = [pick.choice(every)] if number % _WITH_A_COMMAND == 0 else []
        for how, times in fuzzed.use(directory, words).items():
            ended[how] = ended.get(how, 0) + times
    assert ended["opened"] > 0
    assert ended["refused"] > _COUNT // 4


def test_the_check_can_fail(known: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> Run:
        raise KeyError("flows")

    monkeypatch.setattr("airpath.runs.results.RunDirectory.open", broken)
    with pytest.raises(KeyError):
        fuzzed.use(known[0], [])


def test_a_twin_takes_no_other_run_for_one_that_it_kept(known: list[Path], tmp_path: Path) -> None:
    parity = twins._emulated(known[-1]).summary["emulation"]["parity"]
    assert parity is not None
    assert parity["same"]
    with pytest.raises(InputError, match="two-flows is not an emulated run of a twin: its summary"):
        twins._emulated(known[0])
    wire: Any = SimpleNamespace(
        scenario=airpath.load("wire"), kernel="6.1", profile=None, congestion=[]
    )
    for target, said in (("/dev/zero", "it is a link"), ("missing", "it is a link")):
        place = tmp_path / target.strip("/").replace("/", "-")
        place.mkdir()
        (place / twins.PLAN).symlink_to(target)
        with bounded(), pytest.raises(InputError, match=said):
            twins._claim(place, wire)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for text in (b"[" * 20_000, b"\xff", b"{"):
        (damaged / twins.PLAN).write_bytes(text)
        with pytest.raises(InputError, match=r"twin\.json is damaged"):
            twins._claim(damaged, wire)


def test_old_summaries_are_still_read(run: Path) -> None:
    def older(document: dict[str, Any]) -> None:
        for section in ("groups", "proxies", "radio", "fairness", "tried", "explained"):
            document.pop(section)
        document["run"].pop("partial")

    changed(run / "summary.json", older)
    opened = Run.open(run)
    assert opened.summary["proxies"] == []
    assert opened.summary["explained"] is None
    assert airpath.Run.open(run).partial == []
