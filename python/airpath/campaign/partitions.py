"""Rows on their way to the disk: each batch as a piece at once, whole partitions as Parquet.

::

    OUT/runs/part-00003-HASH.parquet      and flows, groups, pings, links, findings
    OUT/parts/00003.json                  last: names, sizes and hashes of these files
    OUT/pieces/00004-17-HASH.zip          batches of partitions that are not whole yet
    OUT/failed/run-17.toml                the scenario of a run that failed

A partition has the runs of the campaign's order, whoever simulated them and in whatever batches, so
its bytes depend on the campaign alone.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airpath.base.secrets import redacted
from airpath.campaign.files import (
    FAILED,
    MANIFEST,
    PARTS,
    PIECES,
    DamagedError,
    Manifest,
    NamedFile,
    PartDocument,
    TableFile,
    check_columns,
    part_document,
    read_rows,
)
from airpath.campaign.plan import Numbered, Plan
from airpath.campaign.store import Store
from airpath.campaign.work import TABLES, empty_frames, pack, unpack
from airpath.errors import AirpathError

if TYPE_CHECKING:
    import polars as pl

    from airpath.base.choices import Explain

Frames = dict[str, "pl.DataFrame"]


@dataclass(frozen=True)
class _Source:
    """A file with rows: a whole partition, or a piece."""

    part: PartDocument | None
    piece: str | None


class Partitions:
    """The part of a campaign that is done."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        explain: Explain,
        observe: Callable[[Frames], None] | None = None,
    ) -> None:
        """``observe`` is shown the rows of every run once, with the number of each."""
        self.store, self.plan, self.explain = store, plan, explain
        self.done: set[int] = set()
        self.failed: dict[int, str] = {}
        self.recovered = 0
        """Runs that were there already."""
        self._observe = observe
        self._rows: defaultdict[int, list[Frames]] = defaultdict(list)
        self._counts: defaultdict[int, int] = defaultdict(int)
        self._written: dict[int, PartDocument] = {}
        self._pieces: defaultdict[int, list[str]] = defaultdict(list)
        self._sources: list[_Source] = []
        self._known: dict[str, tuple[int, int]] = {}
        self._parts: dict[int, PartDocument] = {}
        self._raw = empty_frames()

    # --- What was there ---------------------------------------------------------------------

    def recover(self, *, retry_failed: bool = False) -> list[str]:
        """Find what an earlier, perhaps killed, process left. Returns what was damaged."""
        damaged: list[str] = []
        for name in self.store.names(PARTS):
            try:
                part = read_part(self.store, name)
                tables = {table: self._read(part, table) for table in ("runs", *part["files"])}
            except DamagedError:
                damaged.append(name)
                continue
            self._parts[part["partition"]] = part
            self._add_source(_Source(part, None), tables["runs"], retry_failed)
        for name in self.store.names(PIECES):
            try:
                frames = self._read_piece(name)
            except DamagedError:
                damaged.append(name)
                self.store.remove(name)
                continue
            self._add_source(_Source(None, name), frames["runs"], retry_failed)
        return damaged

    def _add_source(self, source: _Source, runs: pl.DataFrame, retry_failed: bool) -> None:
        for number, key, status, explained in runs.select(
            "run", "key", "status", "explained"
        ).iter_rows():
            if explained == self.explain and not (retry_failed and status == "failed"):
                self._known.setdefault(key, (len(self._sources), number))
        self._sources.append(source)

    def wanted(self, numbers: Iterable[int]) -> list[Numbered]:
        """Of these runs, which still have to be simulated; what was there is taken."""
        taken: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        todo: list[Numbered] = []
        by_partition: defaultdict[int, list[int]] = defaultdict(list)
        size = self.plan.definition.partition_runs
        for number in numbers:
            if number not in self.done:
                by_partition[number // size].append(number)
        for partition, some in by_partition.items():
            runs = [self.plan.run(number) for number in some]
            if self._is_written(partition, runs):
                continue
            for run in runs:
                known = self._known.get(self.plan.key(run)) if self._known else None
                if known is None:
                    todo.append(run)
                else:
                    # Equal cells have equal keys: one row may become several.
                    taken[known[0]].append((known[1], run.number))
        found = []
        for source, renumber in taken.items():
            frames = self._frames_of(self._sources[source], renumber)
            self.recovered += len(renumber)
            if self._sources[source].part is not None:
                # The partition that takes its place would take its other rows away.
                packed = pack(frames)
                self.store.write(f"{PIECES}{source:05}-moved-{_digest(packed)[:16]}.zip", packed)
            found.append(frames)
        for frames in found:
            self._add(frames)
        return todo

    def _is_written(self, partition: int, runs: list[Numbered]) -> bool:
        """Take a whole partition as it is, if it has these runs and no others."""
        part = self._parts.get(partition)
        if part is None or not self._full(partition, len(runs)):
            return False
        if part["keys_sha256"] != _digest_of([self.plan.key(run) for run in runs]):
            return False
        if self._read(part, "runs")["run"].to_list() != [run.number for run in runs]:
            return False
        if any(self._known.get(self.plan.key(run)) is None for run in runs):
            return False
        self._written[partition] = part
        self.done.update(run.number for run in runs)
        self.recovered += len(runs)
        for number, error in self._read(part, "runs").select("run", "error").iter_rows():
            if error is not None:
                self.failed[number] = error
        if self._observe is not None:
            self._observe({name: self._read(part, name) for name in part["files"]})
        return True

    def _frames_of(self, source: _Source, renumber: list[tuple[int, int]]) -> Frames:
        import polars as pl

        if source.part is not None:
            frames = {name: self._read(source.part, name) for name in source.part["files"]}
        else:
            frames = self._read_piece(source.piece or "")
        numbers = pl.DataFrame(renumber, schema={"run": pl.UInt64, "new": pl.UInt64}, orient="row")
        return {
            name: table.select(self._raw[name].columns)
            .join(numbers, on="run", how="inner", maintain_order="left")
            .with_columns(pl.col("new").alias("run"))
            .drop("new")
            for name, table in frames.items()
        }

    def _read_piece(self, name: str) -> Frames:
        data = self.store.read(name) or b""
        if _digest(data)[:16] != name.rpartition("-")[2].removesuffix(".zip"):
            raise DamagedError("its contents do not match the hash in its name")
        try:
            frames = unpack(data)
        except ValueError as error:
            raise DamagedError(str(error)) from None
        for table, rows in frames.items():
            if rows.schema != self._raw[table].schema:
                raise DamagedError(f"its table {table} has the wrong columns")
            check_columns(rows, table)
        if "runs" not in frames:
            raise DamagedError("it has no runs")
        return frames

    def _read(self, part: PartDocument, table: str) -> pl.DataFrame:
        """Rows of a whole partition. Raises ``DamagedError`` if they are not as they should be."""
        import polars as pl

        if table not in part["files"]:
            return self._raw[table]
        data = self.store.read(part["files"][table]["name"])
        if data is None:
            raise AirpathError(f"{self.store.place}/{part['files'][table]['name']} is gone")
        rows = read_rows(data, table)
        raw = self._raw[table].schema
        if any(rows.schema.get(name) != kind for name, kind in raw.items()):
            raise DamagedError(f"its table {table} has the wrong columns")
        first, last = part["first"], part["first"] + part["runs"] - 1
        if not rows.select(pl.col("run").is_between(first, last).all()).item():
            raise DamagedError(f"its table {table} has runs of other partitions")
        return rows

    # --- What comes -------------------------------------------------------------------------

    def accept(self, packed: bytes) -> int:
        """Keep a batch, and write its partition if that is whole now; how many runs it had."""
        frames = unpack(packed)
        numbers = frames["runs"]["run"]
        first = int(numbers[0])
        partition = first // self.plan.definition.partition_runs
        name = f"{PIECES}{partition:05}-{first}-{_digest(packed)[:16]}.zip"
        self.store.write(name, packed)
        self._pieces[partition].append(name)
        self._add(frames)
        return len(numbers)

    def _add(self, frames: Frames) -> None:
        import polars as pl

        if self._observe is not None:
            self._observe(frames)
        size = self.plan.definition.partition_runs
        runs = frames["runs"]
        for number, error in runs.select("run", "error").iter_rows():
            if number in self.done:
                raise RuntimeError(f"two workers delivered run {number}")
            self.done.add(number)
            if error is not None:
                self.failed[number] = error
                self._keep_failed(self.plan.run(number), error)
        for partition in sorted({number // size for number in runs["run"]}):
            within = pl.col("run").is_between(partition * size, (partition + 1) * size - 1)
            own = {name: table.filter(within) for name, table in frames.items()}
            self._rows[partition].append(own)
            self._counts[partition] += len(own["runs"])
            if self._full(partition, self._counts[partition]):
                self._write(partition)

    def finish(self) -> Manifest:
        """Write what is left, and the manifest last."""
        for partition in sorted(self._rows):
            self._write(partition)
        numbers = sorted(self._written)
        if sum(self._written[number]["runs"] for number in numbers) != self.plan.runs:
            raise RuntimeError("a run is missing")
        for name in self.store.names(PIECES):
            self.store.remove(name)
        for name in self.store.names(PARTS):
            if int(name[len(PARTS) :].partition(".")[0]) not in self._written:
                self.store.remove(name)
        files: list[NamedFile] = [
            {"table": table, **self._written[number]["files"][table]}
            for table in TABLES
            for number in numbers
            if table in self._written[number]["files"]
        ]
        self._remove_others({file["name"] for file in files})
        manifest: Manifest = {
            "complete": True, "runs": self.plan.runs, "failed": len(self.failed), "files": files,
        }  # fmt: skip
        self.store.write(MANIFEST, _json(manifest))
        return manifest

    def _remove_others(self, named: set[str]) -> None:
        """Remove tables that an earlier form of the campaign left."""
        for table in TABLES:
            for name in self.store.names(f"{table}/"):
                if name not in named:
                    self.store.remove(name)

    def _full(self, partition: int, runs: int) -> bool:
        """Whether no more runs come to a partition; with rounds that is only known at its size."""
        if self.plan.definition.until is not None:
            return runs == self.plan.definition.partition_runs
        return runs == len(self.plan.partition(partition))

    def _write(self, partition: int) -> None:
        import polars as pl

        rows = self._rows.pop(partition)
        merged = {
            name: pl.concat(some, rechunk=True).sort("run", maintain_order=True)
            for name in TABLES
            if (some := [frames[name] for frames in rows if name in frames])
        }
        expected = list(self.plan.partition(partition))
        if merged["runs"]["run"].to_list() != expected:
            raise RuntimeError(f"partition {partition} has the wrong runs")
        runs = [self.plan.run(number) for number in expected]
        about = self.plan.frame(runs)
        old = self._parts.get(partition)
        files: dict[str, TableFile] = {}
        for name, table in merged.items():
            if table.is_empty():
                continue
            columns = [column for column in about.columns if column != "key"]
            ahead = ["run", "key", *columns[1:]] if name == "runs" else columns
            joined = table.join(about.select(columns), on="run", how="left", maintain_order="left")
            data = _parquet(joined.select(*ahead, *(c for c in table.columns if c not in ahead)))
            path = f"{name}/part-{partition:05}-{_digest(data)[:16]}.parquet"
            self.store.write(path, data)
            files[name] = {
                "name": path, "sha256": _digest(data), "bytes": len(data), "rows": len(table),
            }  # fmt: skip
        part: PartDocument = {
            "partition": partition, "first": expected[0], "runs": len(expected),
            "keys_sha256": _digest_of([self.plan.key(run) for run in runs]), "files": files,
        }  # fmt: skip
        self.store.write(f"{PARTS}{partition:05}.json", _json(part))
        self._written[partition] = part
        for name in self._pieces.pop(partition, []):
            self.store.remove(name)
        if old is not None:
            now = {file["name"] for file in files.values()}
            for file in old["files"].values():
                if file["name"] not in now:
                    self.store.remove(file["name"])

    def _keep_failed(self, run: Numbered, error: str) -> None:
        """Write the scenario of a run that failed, so that it can be run alone: as it was resolved.

        There it has hashes for secrets.
        """
        from airpath import _core

        base, cell = self.plan.base(run.cell), self.plan.cells[run.cell]
        told = "\n".join(f"# {line}" for line in redacted(error).splitlines())
        try:
            scenario = _core.parse(base.text, base.name, base.directory, list(cell.sets))
            resolved = scenario.resolved_toml
        except _core.ScenarioError:
            # A file that it names has gone since.
            resolved = redacted(base.text)
        text = (
            f"# Run {run.number} of the campaign failed, with seed {run.seed}:\n{told}\n# Alone: "
            f"airpath run THIS-FILE --seed {run.seed}\n\n{resolved}"
        )
        self.store.write(f"{FAILED}run-{run.number}.toml", text.encode())


def read_part(store: Store, name: str, *, check: bool = True) -> PartDocument:
    """Read the manifest of a partition.

    Raises ``DamagedError`` if that, or with ``check`` one of its files, is not whole.
    """
    part = part_document(store.read(name) or b"", name)
    for file in part["files"].values() if check else ():
        data = store.read(file["name"])
        if data is None or _digest(data) != file["sha256"] or len(data) != file["bytes"]:
            raise DamagedError(f"{file['name']} is incomplete")
    return part


def _parquet(table: pl.DataFrame) -> bytes:
    written = io.BytesIO()
    # One row group, so that the bytes do not depend on how the rows came.
    rows = max(1, len(table))
    table.rechunk().write_parquet(written, compression="zstd", row_group_size=rows)
    return written.getvalue()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(texts: Sequence[str]) -> str:
    return _digest("\n".join(texts).encode())


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()
