"""Damages run directories at random and gives them to every command that takes one.

Exit codes: 0, each was read or refused in a line; 1, one was not: it is in target/fuzz/runs, or all
took too much memory; 2, bad use.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Annotated, Any

import polars as pl
import typer

import airpath
from airpath.cli import app
from airpath.cli.console import guarded
from airpath.errors import AirpathError, InputError
from airpath.explorer.begin import begin
from airpath.runs.results import Run, RunDirectory
from airpath.runs.tables import TABLES
from airpath.twin import compare as twin
from airpath.twin.runs import Counted
from airpath_dev.harness import WRONG

from .check import bounded
from .faults import Attempt, Seconds, Seed, fuzz
from .mutate import damaged

_DRAWN = 0.01
"""Share of the reports whose charts are also drawn."""
MOST_MEMORY = 1 << 30
"""Limit for the peak memory of the whole program."""

SCENARIOS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("two-flows", {"run.duration_s": 2}, 1),
    ("wire", {"run.duration_s": 1, "run.ack_table": True, "flow.0.streams": 2}, 2),
    ("handover", {"run.duration_s": 2, "run.radio_log": True}, 1),
    ("proxy", {"run.duration_s": 1}, 1),
    ("udp", {"run.duration_s": 1, "run.ack_table": True}, 2),
)
_EMULATED: dict[str, Any] = {
    "valid": True, "invalid_because": None, "directions": {"down": {"lateness_us": {
        "p50": 1.0, "p99": 2.0, "p99_9": 3.0, "max": 4.0}}, "up": {"lateness_us": None}},
    "parity": {"left": 5, "dropped": 0, "same": True, "first_difference": None},
    "ack_gaps": {}, "programs": [], "failed_flows": [],
}  # fmt: skip
_GAIN = {
    "metric": "goodput_mbps", "flow": "download", "before": 1.0, "after": 2.0, "ci95": [1.5, 2.5],
    "seeds": 1,
}  # fmt: skip
_EXPLAINED: dict[str, Any] = {
    "findings": [{"cause": "receive-window", "subject": "download", "confidence": 1.0,
                  "evidence": "it was full", "advice": "raise it", "set": ["a.b=1"],
                  "gain": _GAIN, "costs": [_GAIN]}],
    "tried": [{"cause": "receive-window", "subject": "download", "set": ["a.b=1"],
               "outcome": "better", "score": 0.5, "gain": _GAIN}],
    "breakdowns": [{"id": "download", "delay_ms": None,
                    "rtt_ms": {"mean": 9.0, "samples": 3, "parts": [
                        {"part": "sr", "place": "down.0.link", "ms": 9.0, "share": 1.0}]},
                    "goodput_mbps": {"capacity": 9.0, "place": None, "goodput": 3.0, "parts": [
                        {"part": "headers", "mbps": 6.0, "share": 0.66}]}}],
    "explained": {"budget": "quick", "seeds": 1, "runs": 3, "events": 9, "because": None},
}  # fmt: skip


def make(place: Path) -> list[Path]:
    """Run directories to begin with: one or two seeds, a radio, a proxy, findings, an emulation."""
    made = []
    for name, sets, repeat in SCENARIOS:
        directory = place / name
        airpath.run(name, sets, repeat=repeat, out=directory)
        file = directory / "summary.json"
        document = {**json.loads(file.read_text()), **_EXPLAINED}
        if name == "udp":
            document["emulation"] = _EMULATED
        file.write_text(json.dumps(document))
        made.append(directory)
    return made


def tampered(
    pick: Random, known: Sequence[Path], place: Path, damages: Sequence[_Damage] = ()
) -> Path:
    """A copy of one of the directories, with one to three damages."""
    target = place / "run"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(pick.choice(known), target)
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        files = sorted(path for path in target.rglob("*") if _is_damageable(path))
        documents = [path for path in files if path.suffix in (".json", ".toml")]
        how, which = pick.choice(damages or _DAMAGES)
        paths = {"document": documents, "table": sorted(set(files) - set(documents))}
        chosen = paths.get(which, files)
        if chosen:
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                how(pick, pick.choice(chosen))
    return target


def _is_damageable(path: Path) -> bool:
    """Whether it is a file, of a size to read."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 30


def use(directory: Path, commands: Sequence[Sequence[str]]) -> Counter[str]:
    """Read a directory whole, and give it to commands; how it went. Raises what is a fault."""
    ended: Counter[str] = Counter()
    with bounded():
        ended["opened" if _read(directory) else "refused"] += 1
    for words in commands:
        said, errors = io.StringIO(), io.StringIO()
        with bounded(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = guarded(partial(app, [*words], prog_name="airpath", standalone_mode=False))
        text = errors.getvalue()
        assert code in (0, 1, 2), f"{words[0]} ended with {code}"
        assert "Traceback" not in text, text
        assert code == 0 or text.startswith("error: "), text
        ended[f"{words[0]} {code}"] += 1
    return ended


def commands(pick: Random, directory: Path, place: Path) -> list[list[str]]:
    """Every command that takes a run directory; `explore` does in `use`."""
    run, page, scenario = str(directory), str(place / "page.html"), directory / "scenario.toml"
    # It starts a JavaScript engine.
    drawn = ["--figures", str(place / "figures")] if pick.random() < _DRAWN else []
    words = [
        ["report", *pick.choice(([run], [run], [run, run])), "-o", page, *drawn],
        ["query", f"select * from {pick.choice(TABLES)} limit 3", run, "--format", "json"],
        ["plot", run, "-o", str(place / "a.svg")],
        ["compare", run, run],
        ["diagnose", run, "--json"],
        ["fit", run, "--json"],
        ["whatif", run, "--try", "seed=2"],
    ]
    # Who names a pipe waits for what comes through it.
    return [*words, ["scenario", "check", str(scenario)]] if not scenario.is_fifo() else words


def _read(directory: Path) -> bool:
    """Read everything that is in it; False if it is refused."""
    try:
        run = Run.open(directory)
        for name in TABLES:
            if run.has_table(name):
                run.table(name)
        RunDirectory(directory).table_files()
        json.dumps([run.summary, run.provenance], allow_nan=False)
        repr(run)
        run._repr_html_()
    except InputError as refused:
        _in_a_line(refused)
        return False
    try:
        begin(str(directory))
        _compare(run)
    except AirpathError as refused:
        _in_a_line(refused)
    return True


def _in_a_line(refused: AirpathError) -> None:
    text = str(refused).splitlines()
    assert text, "refused without a word"
    assert len(text[0]) < 2000, text[0][:2000]


def _compare(run: Run) -> None:
    """As a twin does with its two runs."""
    if "emulation" not in run.summary or run.summary["emulation"]["parity"] is None:
        return
    pair = Counted(1, run, run)
    two: Any = SimpleNamespace(valid=[pair], comparable=SimpleNamespace(reasons={}))
    json.dumps([twin.row(figure) for figure in twin.compare(two)])
    twin.overall(two, twin.compare(two))


_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1e308, -1e308, 1e-320, 10**400, 2**64, float("nan"), float("inf"), "",
    "x", "\ud800", "</script><script>alert(1)</script>", "\x1b[31m\u202e", "var(--x)", "../..",
    [], {}, [[]], [None], {"": None}, ["a"], [1, 2, 3], "x" * 10_000,
)  # fmt: skip
_SEEDS: tuple[Any, ...] = (
    [], ["../.."], ["1/../.."], [-1], [2**70], [1.5], [True], [1, 1], [1, 2, 3], list(range(3000)),
    None, "1", {"1": 1}, [None], [[1]], [10**5000],
)  # fmt: skip


def _json(document: Any) -> str:
    """JSON with numbers that Python does not print on its own."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(document)
    finally:
        sys.set_int_max_str_digits(before)


def _bytes(pick: Random, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(damaged(pick, [data or b"\n"]))


def _flip(pick: Random, path: Path) -> None:
    """Some bytes, most often of a table's footer."""
    data = bytearray(path.read_bytes())
    if data:
        start = pick.choice((0, 0, max(0, len(data) - 600), max(0, len(data) - 3000)))
        for _ in range(pick.choice((1, 2, 5, 40))):
            data[pick.randrange(start, len(data))] = pick.randrange(256)
        path.write_bytes(data)


def _value(pick: Random, path: Path) -> None:
    """Another value somewhere in a document, or one that is missing."""
    if path.suffix != ".json":
        return _bytes(pick, path)
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    place = document
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = pick.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or pick.random() < 0.15:
            if isinstance(place, dict) and pick.random() < 0.3:
                del place[key]
            elif isinstance(place, list) and pick.random() < 0.2:
                place *= pick.choice((0, 2, 300))
            else:
                place[key] = pick.choice(_VALUES)
            break
        place = inner
    path.write_text(_json(document))
    return None


def _seeds(pick: Random, path: Path) -> None:
    file = next((one / "provenance.json" for one in path.parents if (one / "provenance.json")
                 .is_file()), None)  # fmt: skip
    if file is not None:
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(file.read_bytes())
            if isinstance(document, dict):
                file.write_text(_json({**document, "seeds": pick.choice(_SEEDS)}))


def _nested(pick: Random, path: Path) -> None:
    opened = pick.choice((b"[", b'{"a":', b"a = [", b"[[", b"a.", b"[a."))
    path.write_bytes(opened * 50_000)


def _not_text(_: Random, path: Path) -> None:
    path.write_bytes(b"\xff\xfe" + path.read_bytes())


def _empty(_: Random, path: Path) -> None:
    path.write_bytes(b"")


def _gone(_: Random, path: Path) -> None:
    path.unlink()


def _link(pick: Random, path: Path) -> None:
    other = path.with_name("summary.json")
    path.unlink()
    path.symlink_to(pick.choice(("/dev/zero", "/etc/passwd", path.name, "missing", "/", other)))


def _linked_seed(pick: Random, path: Path) -> None:
    """A directory of a seed that is a link out of the run."""
    if path.parent.name.startswith("seed-"):
        away = path.parent.rename(path.parent.with_name(f"away-{path.parent.name}"))
        path.parent.symlink_to(pick.choice((away, Path("/"), Path("missing"))))


def _renamed_seed(pick: Random, path: Path) -> None:
    if path.parent.name.startswith("seed-"):
        path.parent.rename(path.parent.with_name(pick.choice(("seed-9", "seed-", "seed--1"))))


def _pipe(_: Random, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(_: Random, path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sparse(_: Random, path: Path) -> None:
    os.truncate(path, 1 << 40)


def _strange_name(pick: Random, path: Path) -> None:
    names = ('a"b.parquet', "a'; drop.parquet", "*.parquet", "\x1b[31m.parquet", "runs.parquet")
    shutil.copy(path, path.with_name(pick.choice(names)))


def _other_table(pick: Random, path: Path) -> None:
    others = sorted(one for one in path.parent.iterdir() if one.is_file() and one != path)
    if others:
        shutil.copy(pick.choice(others), path)


def _columns(pick: Random, path: Path) -> None:
    """Columns that are missing, renamed, of another type, or have other values."""
    try:
        with path.open("rb") as file:
            frame = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        return
    if not frame.columns:
        return
    name = pick.choice(frame.columns)
    odd = pick.choice(
        (
            pl.lit(None),
            pl.lit(float("nan")),
            pl.lit(float("inf")),
            pl.lit(-(2**63)),
            pl.lit(2**63 - 1),
            pl.lit("x"),
            pl.lit("</script>\x1b[31m"),
            pl.lit(b"\xff"),
            pl.lit([1]),
            pl.struct(a=pl.lit(1)),
            pl.lit(1e308),
            pl.lit(0),
            pl.lit(True),
        )
    )
    how = pick.randrange(8)
    with contextlib.suppress(pl.exceptions.PolarsError):
        kind = frame.schema[name]
        if how == 0:
            frame = frame.drop(name)
        elif how == 1:
            frame = frame.rename({name: "other"})
        elif how == 2:
            frame = frame.with_columns(odd.alias(name))
        elif how == 3:
            frame = frame.with_columns(odd.cast(kind, strict=False).alias(name))
        elif how == 4:
            frame = frame.clear()
        elif how == 5:
            frame = frame.with_columns(odd.alias(f"more {name}"))
        elif how == 6:
            frame = frame.sample(fraction=1.0, shuffle=True, seed=pick.randrange(99))
        else:
            few = frame.with_columns(odd.cast(kind, strict=False).alias(name))
            frame = pl.concat([frame, few.head(1)])
    frame.write_parquet(path)


def _rows(pick: Random, path: Path) -> None:
    """Hundreds of rows for each byte."""
    with contextlib.suppress(pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        with path.open("rb") as file:
            schema = pl.read_parquet_schema(file)
        count = pick.choice((2_000_000, 4_000_000))
        one = {name: pl.Series(name, [None], kind) for name, kind in [*schema.items()][:3]}
        one["time_ns"] = pl.Series("time_ns", [0], pl.Int64())
        (
            pl.DataFrame(one)
            .lazy()
            .select(pl.all().repeat_by(count).explode())
            .sink_parquet(path, compression="zstd")
        )


def _declared(pick: Random, path: Path) -> None:
    """Some number of the footer, made as large as its bytes allow."""
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    if 12 < footer < len(data) - 12:
        at = len(data) - 8 - pick.randrange(1, min(footer, 4000))
        for place in range(at, min(at + pick.choice((1, 3, 4)), len(data) - 9)):
            data[place] = 0xFF
        data[min(at + 4, len(data) - 9)] = 0x7F
        path.write_bytes(data)


_Damage = tuple[Callable[[Random, Path], None], str]
_DAMAGES: tuple[_Damage, ...] = (
    *((_value, "document"),) * 12, *((_bytes, "document"),) * 3, (_nested, "document"),
    (_not_text, "document"), *((_seeds, "any"),) * 2, (_empty, "any"), (_gone, "any"),
    *((_link, "any"),) * 2, (_linked_seed, "table"), (_renamed_seed, "table"), (_pipe, "any"),
    (_directory, "any"), (_sparse, "any"), (_strange_name, "table"), (_other_table, "table"),
    *((_columns, "table"),) * 5, *((_flip, "table"),) * 4, *((_declared, "table"),) * 2,
    (_bytes, "table"),
)  # fmt: skip
_SLOW: tuple[_Damage, ...] = ((_rows, "table"),)


def main(
    seconds: Seconds = 600, seed: Seed = None, count: Annotated[int, typer.Argument()] = 1 << 60
) -> int:
    """Damage run directories at random, at most COUNT, and give them to each command."""
    code = fuzz("runs", seconds, seed, attempts, most=count)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    if memory > MOST_MEMORY:
        print(f"That is more than {MOST_MEMORY >> 20} MiB.")
        return WRONG
    return code


def attempts(pick: Random, place: Path) -> list[Attempt]:
    """Return the attempts on one run directory, which is read and given to each command."""
    known = make(place)
    damages = _DAMAGES * 3 + _SLOW

    def attempt() -> Iterable[str]:
        directory = tampered(pick, known, place, damages)
        return use(directory, commands(pick, directory, place)).elements()

    return [(place / "run", attempt)]
