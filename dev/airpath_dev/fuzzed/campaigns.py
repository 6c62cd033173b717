"""Damages campaign files and campaign folders at random and reads them.

The damage is other bytes, values and names, links, pipes, and tables with other columns. Exit
codes: 0, each was read or refused; 1, one was not: it is in target/fuzz/campaigns; 2, bad use.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

import airpath
from airpath.campaign import definition, plan, sampling
from airpath.campaign.files import FOLDERS
from airpath.campaign.summaries import summarise
from airpath.errors import AirpathError

from .check import bounded
from .faults import Attempt, Seconds, Seed, fuzz
from .mutate import damaged

MOST_S = 120
"""Of wall time, as what waits for a pipe takes no processor time; the machine may be busy."""
_MOST_MEMORY = 4 << 30
_MOST_CELLS = 500
_MOST_WORDS = 200_000
_CAMPAIGN = {
    "scenario": "random-loss", "set": ["run.duration_s=0.2"], "seeds": 3, "partition_runs": 4,
    "vary": [{"key": "flow.0.congestion", "name": "cc", "values": ["reno", "cubic"]}],
}  # fmt: skip
_LONGER = {**_CAMPAIGN, "seeds": 6, "partition_runs": 12}
FILE = """\
title = "Short"
scenario = ["wire", "random-loss"]
set = ["run.duration_s=0.2"]
seeds = 10
sampling = "latin-hypercube"
samples = 8
[[vary]]
key = ["path.down.0.rate_mbps"]
name = "rate"
low = 1
high = 10
scale = "log"
[[vary]]
name = "cc"
choices = [{ label = "r", set = ["flow.0.congestion=reno"] }, { label = "c", set = [] }]
[until]
ci = 0.1
figure = "flows.goodput_mbps@download"
max_seeds = 20
"""
_NAMES = (
    "../x", "/etc/passwd", "flows/../../x", "", ".", "flows", "a\nb", "\x1b[31m", "x" * 300,
    "part-00000-0123456789abcdef.parquet", "parts/00000.json", "seed", "\u202e", "run",
)  # fmt: skip


class Drawn:
    """Campaigns to begin with: a file, a folder that is complete and one that was stopped."""

    def __init__(self, place: Path) -> None:
        self.texts = [FILE.encode()]
        self.texts += [path.read_bytes() for path in definition.shipped_campaigns().values()]
        self.folders = [place / "complete", place / "stopped"]
        airpath.sweep(_CAMPAIGN, out=self.folders[0], workers=1)

        calls = iter(range(1_000_000))

        def stop(_: float) -> None:
            if next(calls) == 1:
                raise KeyboardInterrupt

        # Eight runs are at work when it is stopped.
        with suppress(AirpathError):
            airpath.sweep(_LONGER, out=self.folders[1], workers=1, progress=stop)


def check_file(data: bytes, place: Path) -> str:
    """Read a campaign file; ``read`` or ``refused``. Raises what is a fault."""
    file = place / "c.toml"
    file.write_bytes(data)

    def read() -> None:
        made = definition.load(file)
        if sampling.size(made) * len(made.bases) <= _MOST_CELLS:
            plan.make(made)

    return _attempt(read)


def check_folder(pick: Random, drawn: Drawn, place: Path) -> tuple[str, list[str]]:
    """Tamper with a campaign's folder and read it; what was done to it, and what came of each way.

    Raises what is a fault; the folder is ``place / "out"`` then.
    """
    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    (place / "x").write_text("mine")
    shutil.copytree(pick.choice(drawn.folders), out)
    done = []
    for _ in range(pick.choice((1, 1, 2, 3))):
        how = pick.choice(_TAMPERINGS)
        how(pick, out)
        done.append(how.__name__.strip("_"))
    ways: list[Callable[[], Any]] = [lambda: _tables(out), lambda: _sql(out)]
    if pick.random() < 0.3:
        ways.append(lambda: _page(out))
    if pick.random() < 0.4:
        ways.append(lambda: airpath.sweep(_CAMPAIGN, out=out, workers=1, resume=True))
    answers = [_attempt(way) for way in ways]
    if (place / "x").read_text() != "mine":
        raise AssertionError("a file outside of the campaign was changed")
    return " ".join(done), answers


def _tables(out: Path) -> None:
    campaign = airpath.open_campaign(out)
    repr(campaign)
    assert isinstance(campaign.complete, bool)
    for table in campaign.tables():
        campaign.table(table)
    for figure in ("flows.goodput_mbps", "links.utilisation_fraction"):
        summarise(campaign, figure)
    airpath.compare(campaign, campaign, axis="cc", values_of_axis=("reno", "cubic"))


def _sql(out: Path) -> None:
    for sql in ("select count(*) from runs join flows using (run)", "from flows", "from links"):
        airpath.query(sql, out)


def _page(out: Path) -> None:
    from airpath.report.campaign import context

    context(airpath.open_campaign(out))


def _attempt(way: Callable[[], object]) -> str:
    with bounded(None, MOST_S):
        try:
            way()
            answer = "read"
        except AirpathError as refused:
            answer = str(refused)
    assert answer.partition("\n")[0], "refused without a word"
    assert len(answer) < _MOST_WORDS, "refused with too many words"
    return "read" if answer == "read" else "refused"


# --- What is done to a folder ---------------------------------------------------------------------


def _any(pick: Random, out: Path) -> Path:
    files = sorted(path for path in out.rglob("*") if path.is_file() and not path.is_symlink())
    return pick.choice(files) if files else out / "campaign.json"


def _of(pick: Random, out: Path, pattern: str) -> Path | None:
    found = [path for path in sorted(out.glob(pattern)) if path.is_file()]
    return pick.choice(found) if found else None


def _bytes(pick: Random, out: Path) -> None:
    """Other bytes in any file."""
    path = _any(pick, out)
    if path.is_file():
        path.write_bytes(damaged(pick, [path.read_bytes()]))


def _value(pick: Random, out: Path) -> None:
    """Another value in a document."""
    path = _of(pick, out, pick.choice(("campaign.json", "parts/*.json", "manifest.json")))
    if path is None:
        return
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return
    place, key = document, None
    while isinstance(place, dict) and place:
        key = pick.choice(sorted(place))
        if not isinstance(place[key], dict) or pick.random() < 0.2:
            break
        place = place[key]
    if key is not None and isinstance(place, dict):
        values: tuple[Any, ...] = (
            *_NAMES, None, True, -1, 0, 7, 2**70, 0.5, float("nan"), [], {}, ["cc"], ["cc", "cc"],
            ["x"], {"x": 1}, {"flows": {}}, "saltelli", "random",
        )  # fmt: skip
        if pick.random() < 0.3:
            del place[key]
        else:
            place[key] = pick.choice(values)
        path.write_text(json.dumps(document), encoding="utf-8")


def _deep(pick: Random, out: Path) -> None:
    """A document with very many levels."""
    path = _of(pick, out, pick.choice(("campaign.json", "parts/*.json")))
    if path is not None:
        path.write_text("[" * 100_000)


def _rehashed(pick: Random, out: Path) -> None:
    """Other bytes in a table, with the hash of these in its document."""
    _replace(pick, out, lambda data: damaged(pick, [data]))


def _remade(pick: Random, out: Path) -> None:
    """A table with other columns or rows, with its hash."""

    def other(data: bytes) -> bytes:
        try:
            table = pl.read_parquet(io.BytesIO(data))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return data
        column = pick.choice(table.columns)
        changes: list[Callable[[], pl.DataFrame]] = [
            lambda: table.drop(column),
            lambda: table.rename({column: "other"}),
            lambda: table.with_columns(pl.lit(None).alias(column)),
            lambda: table.with_columns(pl.lit("x").alias(column)),
            lambda: table.with_columns(pl.lit(float("nan")).alias(column)),
            lambda: table.with_columns(pl.lit([1, 2]).alias(column)),
            lambda: table.with_columns(pl.lit(2**63, dtype=pl.UInt64).alias(column)),
            lambda: pl.concat([table, table]),
            table.clear,
            lambda: table.select(pl.repeat(0, 30_000_000, dtype=pl.UInt8).alias("run")),
            lambda: table.sample(fraction=1, shuffle=True, seed=pick.randrange(1000)),
        ]
        written = io.BytesIO()
        pick.choice(changes)().write_parquet(written)
        return written.getvalue()

    _replace(pick, out, other)


def _replace(pick: Random, out: Path, change: Callable[[bytes], bytes]) -> None:
    part = _of(pick, out, "parts/*.json")
    if part is None:
        return
    try:
        said = json.loads(part.read_text(encoding="utf-8"))
        table = pick.choice(sorted(said["files"]))
        about = said["files"][table]
        old = out / about["name"]
        # What was tampered with before may lead anywhere.
        if not old.is_file() or old.is_symlink() or out not in old.resolve().parents:
            return
        data = change(old.read_bytes())
        digest = hashlib.sha256(data).hexdigest()
        name = f"{table}/part-{said['partition']:05}-{digest[:16]}.parquet"
        (out / name).write_bytes(data)
        said["files"][table] |= {"name": name, "sha256": digest, "bytes": len(data)}
    except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError):
        return
    part.write_text(json.dumps(said), encoding="utf-8")


def _piece(pick: Random, out: Path) -> None:
    """Other bytes in a piece, with the hash of these in its name."""
    piece = _of(pick, out, "pieces/*.zip")
    if piece is None:
        return
    data = damaged(pick, [piece.read_bytes()])
    name, _, _ = piece.name.rpartition("-")
    piece.with_name(f"{name}-{hashlib.sha256(data).hexdigest()[:16]}.zip").write_bytes(data)
    if pick.random() < 0.5:
        piece.unlink()


def _name(pick: Random, out: Path) -> None:
    """Another name for a file."""
    path = _any(pick, out)
    if path.is_file():
        with suppress(OSError, ValueError):
            path.rename(path.with_name(pick.choice(_NAMES).replace("/", "_")))


def _gone(pick: Random, out: Path) -> None:
    """No file."""
    _any(pick, out).unlink(missing_ok=True)


def _special(pick: Random, out: Path) -> None:
    """A link, a pipe, a folder or nothing where a file was."""
    path = _any(pick, out)
    path.unlink(missing_ok=True)
    kind = pick.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.write_bytes(b"")
    else:
        path.symlink_to(("/dev/zero", "/nowhere", out.parent / "x")[kind - 3])


def _folder(pick: Random, out: Path) -> None:
    """A link or a file where a folder was."""
    path = out / pick.choice(FOLDERS[1:])
    if path.is_symlink() or path.is_file():
        return
    shutil.rmtree(path, ignore_errors=True)
    if pick.random() < 0.5:
        path.symlink_to(out.parent)
    else:
        path.write_text("x")


_TAMPERINGS: tuple[Callable[[Random, Path], None], ...] = (
    _bytes, _value, _value, _value, _deep, _rehashed, _remade, _remade, _piece, _name, _gone,
    _special, _folder,
)  # fmt: skip


def main(seconds: Seconds = 600, seed: Seed = None) -> int:
    """Damage campaign files and the folders of campaigns at random and have them read."""
    return fuzz("campaigns", seconds, seed, attempts, most_memory=_MOST_MEMORY)


def attempts(pick: Random, place: Path) -> list[Attempt]:
    """Return the attempts of one round: one folder, then ten files."""
    drawn = Drawn(place / "drawn")

    def folder() -> list[str]:
        return [f"folders {answer}" for answer in check_folder(pick, drawn, place)[1]]

    def file() -> list[str]:
        return [f"files {check_file(damaged(pick, drawn.texts), place)}"]

    return [(place / "out", folder), *[(place / "c.toml", file)] * 10]
