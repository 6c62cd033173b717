"""What a worker does: simulate a batch of runs and return their rows as one packed file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath.campaign.keys import key_of
from airpath.errors import AirpathError

if TYPE_CHECKING:
    import polars as pl

    from airpath import _core
    from airpath.base.choices import Explain
    from airpath.documents import Finding

TABLES = ("runs", "flows", "groups", "pings", "links", "findings")
"""``findings`` has rows only if they were asked for."""


@dataclass(frozen=True)
class Job:
    """Runs of one cell."""

    base: int
    """Which of the batch's scenarios."""
    sets: tuple[str, ...] = field(repr=False)
    """Maybe with secrets, which a log must not show."""
    sha256: str
    """Of the scenario, as the client has it."""
    runs: tuple[tuple[int, int], ...]
    """Number and seed of each."""


@dataclass(frozen=True)
class Batch:
    """The batch that is sent to a worker."""

    bases: tuple[tuple[str, str, str | None], ...] = field(repr=False)
    """Text, name and directory of each scenario; the text maybe with secrets."""
    jobs: tuple[Job, ...]
    explain: Explain
    version: str
    core: str

    @property
    def numbers(self) -> list[int]:
        """The runs in it."""
        return [number for job in self.jobs for number, _ in job.runs]


@dataclass(frozen=True)
class Done:
    """What a worker returns."""

    packed: bytes
    engine_s: float
    """Processor time of the simulations, also of those that explain runs."""
    events: tuple[int, ...]
    """Of each run, in order; 0 for one that failed."""


class OtherCoreError(AirpathError):
    """A worker has another airpath than the client."""


def simulate(batch: Batch, keep_on: Callable[[], bool] | None = None) -> Done:
    """Simulate a batch on one thread. A run that fails has a row that says so."""
    from airpath import _core
    from airpath.runs.provenance import core_hash

    if (batch.version, batch.core) != (_core.__version__, core_hash() or ""):
        raise OtherCoreError(
            f"this worker has airpath {_core.__version__} with core {str(core_hash())[:12]}, "
            f"the campaign has {batch.version} with core {batch.core[:12]}: install the same "
            "version everywhere"
        )
    ready: list[tuple[int, _core.Scenario, int]] = []
    failed: dict[int, str] = {}
    for job in batch.jobs:
        text, name, directory = batch.bases[job.base]
        try:
            scenario = _core.parse(text, name, directory, list(job.sets))
        except _core.ScenarioError as error:
            failed |= {number: str(error) for number, _ in job.runs}
            continue
        if scenario.sha256 != job.sha256:
            raise OtherCoreError(
                f"{name} is a different scenario on this worker: check that its files are here"
            )
        ready += [(number, scenario, seed) for number, seed in job.runs]
    before_s = _core.worked_s()
    result = _core.simulate_batch(ready, 1, keep_on)
    frames = {name: frame(result.table(name)) for name in result.table_names()}
    frames["findings"] = _findings(ready, batch.explain)
    engine_s = _core.worked_s() - before_s
    events = dict(zip((number for number, _, _ in ready), result.events, strict=True))
    if failed:
        frames["runs"] = failed_rows(failed, frames["runs"])
    frames["runs"] = with_keys(frames["runs"], batch)
    return Done(pack(frames), engine_s, tuple(events.get(number, 0) for number in batch.numbers))


def with_keys(runs: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Say of each run its key, and whether it was explained."""
    import polars as pl

    keys = {
        number: key_of(job.sha256, seed, batch.version, batch.core)
        for job in batch.jobs
        for number, seed in job.runs
    }
    key = pl.Series("key", [keys[number] for number in runs["run"]], dtype=pl.String)
    return runs.with_columns(key, pl.lit(batch.explain).alias("explained"))


def failed_rows(failed: dict[int, str], others: pl.DataFrame | None = None) -> pl.DataFrame:
    """Rows of ``runs`` for those that failed, among the others; without keys."""
    import polars as pl

    if others is None:
        others = empty_frames()["runs"].drop("key", "explained")
    rows = pl.DataFrame(
        {"run": list(failed), "status": ["failed"] * len(failed), "error": list(failed.values())},
        schema_overrides={"run": pl.UInt64},
    )
    return pl.concat([others, rows], how="diagonal").sort("run").select(others.columns)


def empty_frames() -> dict[str, pl.DataFrame]:
    """Every table without rows."""
    from airpath import _core

    nothing = _core.simulate_batch([], 1, None)
    frames = {name: frame(nothing.table(name)) for name in nothing.table_names()}
    nothing_done = Batch((), (), "off", "", "")
    frames["runs"] = with_keys(frames["runs"], nothing_done)
    return {**frames, "findings": _findings([], "off")}


def frame(table: Any) -> pl.DataFrame:
    """A table of the core; names as text."""
    import polars as pl
    import polars.selectors as cs

    return pl.DataFrame(table).with_columns(cs.categorical().cast(pl.String))


def pack(frames: dict[str, pl.DataFrame]) -> bytes:
    """All tables in one file; one that was cut off cannot be read."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, table in frames.items():
            if not table.is_empty():
                inner = io.BytesIO()
                table.write_ipc(inner)
                # Without a date the same rows are the same bytes.
                file.writestr(zipfile.ZipInfo(f"{name}.arrow"), inner.getvalue())
    return packed.getvalue()


def unpack(packed: bytes) -> dict[str, pl.DataFrame]:
    """Read what ``pack`` wrote. Raises ``ValueError`` if it is damaged."""
    import polars as pl

    frames = {}
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as file:
            for member in file.infolist():
                table = member.filename.removesuffix(".arrow")
                # What is not compressed is not larger than the file.
                if table not in TABLES or member.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"no campaign has a table {table[:40]!r}")
                frames[table] = pl.read_ipc(io.BytesIO(file.read(member)))
    except (
        zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError,
        pl.exceptions.PolarsError, pl.exceptions.PanicException,
    ) as error:  # fmt: skip
        raise ValueError(str(error)) from None
    return frames


def _findings(ready: list[tuple[int, _core.Scenario, int]], budget: Explain) -> pl.DataFrame:
    """What limits each run: its findings, the largest first."""
    import polars as pl

    from airpath import _core

    rows: list[dict[str, object]] = []
    for number, scenario, seed in ready:
        if budget == "off":
            break
        answer = _core.explain(scenario, seed, 1, budget, 1, [])
        for place, found in enumerate(answer["findings"]):
            rows.append({"run": number, **finding_row(place, found)})
    return pl.DataFrame(rows, schema={"run": pl.UInt64, **finding_schema()})


def finding_row(place: int, found: Finding) -> dict[str, object]:
    """A finding as a row; the largest has place 0."""
    gain = found["gain"]
    return {
        "place": place,
        "cause": found["cause"],
        "subject": found["subject"],
        "confidence": found["confidence"],
        "evidence": found["evidence"],
        "advice": found["advice"],
        "set": None if found["set"] is None else " ".join(found["set"]),
        "gain_metric": None if gain is None else gain["metric"],
        "gain_flow": None if gain is None else gain["flow"],
        "gain_before": None if gain is None else gain["before"],
        "gain_after": None if gain is None else gain["after"],
    }


def finding_schema() -> dict[str, pl.DataType | type[pl.DataType]]:
    """Columns of such rows."""
    import polars as pl

    text, number = pl.String, pl.Float64
    return {
        "place": pl.UInt32, "cause": text, "subject": text, "confidence": number,
        "evidence": text, "advice": text, "set": text, "gain_metric": text, "gain_flow": text,
        "gain_before": number, "gain_after": number,
    }  # fmt: skip
