"""Prints the SHA-256 of every table of shipped scenarios and studies, to check a refactoring.

    make hashes >before;  …;  make hashes >after;  diff before after

Each sorted line has a run, a table and its hash. A hash covers the table's schema (names, Arrow
types, what may be null) and its values, floats by their bits. It does not cover metadata or the
Parquet encoding. `summary` is the run's document without the number of events, which fast paths
reduce: a build with the feature `reference` prints the same lines. Runs have the scenario's own
seed and the table of acknowledgements. The runs of a study are those of its figures, with the
settings of each figure, but without the alternatives to the study's assumptions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import nanoarrow
import numpy as np
import polars as pl
import typer

from airpath import _core, scenario
from airpath.errors import InputError
from airpath.study.definition import Figure, Study, load_study, study_names

_WORK = "events"
"""Number of events that the simulator processed."""


@dataclass(frozen=True)
class Job:
    """One run."""

    name: str
    scenario: str
    sets: tuple[str, ...]


def main(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...")] = None,
    workers: Annotated[int | None, typer.Option(help="At the same time.")] = os.cpu_count(),
) -> None:
    """Print the SHA-256 of every table of each shipped scenario and study, or of those named."""
    shipped = sorted(name for name, _ in _core.shipped())
    there = [*shipped, *study_names()]
    if unknown := sorted({*(names or ())} - {*there}):
        raise InputError(f"no scenario or study is named {', '.join(unknown)}")
    jobs = [job for name in names or there for job in jobs_of(name, shipped)]
    with ThreadPoolExecutor(workers) as pool:
        print("\n".join(sorted(line for lines in pool.map(hashes, jobs) for line in lines)))


def jobs_of(name: str, shipped: list[str]) -> Iterator[Job]:
    """Return the runs of a scenario, or of a study's figures."""
    if name in shipped:
        yield Job(name, name, ())
    if name in study_names():
        yield from study_jobs(load_study(name))


def study_jobs(study: Study) -> Iterator[Job]:
    """Yield each figure's runs: its own, the one it is compared with, and those of its shape."""
    varied = study.varied(1)
    for figure in study.figures:
        variants = list(dict.fromkeys(sides(figure)))
        for number, (file, sets) in enumerate(variants):
            label = figure.id if len(variants) == 1 else f"{figure.id}#{number}"
            yield Job(label, str(study.directory / file), (*varied, *sets))


def sides(figure: Figure) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the scenario and the settings of each of a figure's runs."""
    yield figure.scenario, figure.sets
    if figure.against is not None:
        yield figure.scenario, figure.against
    for shape in parts(figure.shape):
        # The variants of a shape run in the scenarios of its conditions.
        files = [one.get("scenario", figure.scenario) for one in shape.get("conditions", ())]
        for variant in shape.get("variants", ()):
            yield from ((file, (*figure.sets, *variant.get("set", ()))) for file in files)
    for shape in parts(figure.shape, leave="variants"):
        if "set" in shape or "scenario" in shape:
            where = shape.get("scenario", figure.scenario)
            yield where, (*figure.sets, *shape.get("set", ()))


def parts(value: Any, leave: str = "") -> Iterator[dict[str, Any]]:
    """Return every nested table, except those under the key ``leave``."""
    if isinstance(value, dict):
        yield value
        value = [each for key, each in value.items() if key != leave]
    for each in value if isinstance(value, list) else ():
        yield from parts(each, leave)


def hashes(job: Job) -> list[str]:
    """Return the printed lines of one run."""
    loaded = scenario.load(job.scenario, [*job.sets, "run.ack_table=true"])
    result = _core.simulate(loaded, loaded.seed)
    lines = [f"{job.name} {name} {digest(result, name)}" for name in result.table_names()]
    document = {key: value for key, value in result.summary.items() if key != _WORK}
    # JSON has the shortest decimal number that is read back as the same bits.
    text = json.dumps(document, sort_keys=True)
    return [*lines, f"{job.name} summary {hashlib.sha256(text.encode()).hexdigest()}"]


def digest(result: _core.Result, name: str) -> str:
    """Return the hash of one table."""
    schema = nanoarrow.c_array_stream(result.table(name)).get_schema()
    frame = pl.DataFrame(result.table(name))
    hashed = hashlib.sha256()
    for index, series in enumerate(frame.get_columns()):
        field = schema.child(index)
        # Codes of the Arrow C data interface: format `g` is a double, flag 2 is nullable.
        values = "" if field.dictionary is None else field.dictionary.format
        words = [field.name, field.format, values, str(field.flags), str(len(series))]
        hashed.update(json.dumps(words).encode())
        hashed.update(series.is_null().to_numpy().tobytes())
        for part in value_bytes(series):
            hashed.update(part)
    return hashed.hexdigest()


def value_bytes(series: pl.Series) -> Iterator[bytes]:
    """Return the values as little-endian bytes; null is 0 or empty."""
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        numbers = series.fill_null(False if series.dtype == pl.Boolean else 0).to_numpy()
        yield np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).tobytes()
        return
    text = series.cast(pl.String).fill_null("")
    yield text.str.len_bytes().cast(pl.UInt64).to_numpy().astype("<u8").tobytes()
    yield "".join(text).encode()
