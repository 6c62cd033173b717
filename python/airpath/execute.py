"""Run a scenario for one or more seeds, in threads: the simulator releases the GIL.

Seeds are independent, so the number of workers changes how long it takes and nothing else.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from airpath import provenance as prov
from airpath import scenario as scenarios
from airpath import summary
from airpath.errors import AirpathError, InputError, reason
from airpath.results import MemoryTables, Run, RunDirectory
from airpath.rundir import PendingDirectory, cannot_write

if TYPE_CHECKING:
    from airpath import _core

Progress = Callable[[float], None]
"""Called from the calling thread with the share of the work done, 0 to 1."""

_POLL_S = 0.1
Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def run(
    scenario: str | os.PathLike[str] | _core.Scenario,
    set: scenarios.Sets = None,  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    repeat: int = 1,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Run:
    """Simulate a scenario (a file, the name of a shipped one, or a loaded one).

    ``repeat`` runs use the seeds ``seed``, ``seed + 1``, …; ``seed`` defaults to the scenario's.
    Without ``out`` the tables stay in memory; with it they are also written to that directory,
    which must not exist or be empty.

    >>> import airpath
    >>> run = airpath.run("3g-umts", set={"flow.0.window_bytes": 65536})  # doctest: +SKIP
    >>> run.flows["goodput_mbps"]  # doctest: +SKIP
    """
    if isinstance(scenario, str | os.PathLike):
        loaded = scenarios.load(scenario, set)
    elif set is not None:
        raise TypeError("a loaded scenario takes no set: give it to airpath.load()")
    else:
        loaded = scenario
    directory = None if out is None else Path(out)
    return execute(loaded, seed=seed, repeat=repeat, workers=workers, out=directory)


def execute(
    scenario: _core.Scenario,
    *,
    seed: int | None = None,
    repeat: int = 1,
    workers: int | None = None,
    out: Path | None = None,
    default_parent: Path | None = None,
    command: list[str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Do what ``run`` says; ``default_parent`` writes to a directory of its own in there."""
    if repeat < 1:
        raise InputError("repeat must be at least 1")
    first = scenario.seed if seed is None else seed
    if first < 0 or first + repeat - 1 >= 1 << 64:
        raise InputError("a seed is a whole number from 0 to 18446744073709551615")
    seeds = list(range(first, first + repeat))
    identifier = prov.run_id(scenario, first, repeat)
    record = prov.provenance(scenario, seeds, command, identifier)
    started = time.monotonic()
    numbered = out is None and default_parent is not None
    if out is None and default_parent is not None:
        out = default_parent / f"{scenarios.stem(scenario)}-{identifier}"
    holder = nullcontext() if out is None else PendingDirectory(out, numbered=numbered)
    with holder as pending:
        results: dict[int, _core.Result] = {}
        keep = pending is None or repeat == 1

        def one(one_seed: int, tick: Callable[[float], bool]) -> dict[str, Any]:
            began = time.monotonic()
            result = _simulate(scenario, one_seed, tick)
            if keep:
                results[one_seed] = result
            document = summary.of_result(result, scenario, identifier, time.monotonic() - began)
            if pending is not None:
                place = pending.path if repeat == 1 else pending.path / f"seed-{one_seed}"
                _write_seed(place, result, scenario, one_seed, document if repeat > 1 else None)
            return document

        documents = in_threads(one, seeds, workers, scenario.duration_s, progress)
        document = summary.combine(documents, identifier, time.monotonic() - started)
        if pending is None:
            return Run(document, record, scenario.resolved_toml, MemoryTables(results))
        record["wall_s"] = document["run"]["wall_s"]
        RunDirectory(pending.path).write(document, record, scenario.resolved_toml)
        final = pending.commit()
    tables = MemoryTables(results) if keep else RunDirectory(final).tables(seeds)
    return Run(document, record, scenario.resolved_toml, tables, final)


def in_threads(
    work: Callable[[Job, Callable[[float], bool]], Outcome],
    jobs: list[Job],
    workers: int | None,
    duration_s: float,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Do ``work(job, tick)`` for each job and return the outcomes in the order of the jobs.

    ``tick(simulated seconds)`` returns False when the work should stop. The first failure, or
    Ctrl-C, stops everything that still runs before it is raised.
    """
    if workers is not None and workers < 1:
        raise InputError("workers must be at least 1")
    stop = threading.Event()
    done = [0.0] * len(jobs)

    def numbered(index: int) -> Outcome:
        def tick(simulated_s: float) -> bool:
            done[index] = min(1.0, simulated_s / duration_s) if duration_s > 0 else 0.0
            return not stop.is_set()

        if stop.is_set():
            raise KeyboardInterrupt
        outcome = work(jobs[index], tick)
        done[index] = 1.0
        return outcome

    pool = ThreadPoolExecutor(min(workers or os.cpu_count() or 1, max(1, len(jobs))))
    futures = [pool.submit(numbered, index) for index in range(len(jobs))]
    try:
        pending: set[Future[Outcome]] = {*futures}
        while pending:
            finished, pending = wait(pending, _POLL_S, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            if progress is not None:
                progress(sum(done) / len(done))
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def _simulate(scenario: _core.Scenario, seed: int, tick: Callable[[float], bool]) -> _core.Result:
    from airpath import _core

    try:
        return _core.simulate(scenario, seed, tick)
    except OSError as error:
        raise AirpathError(f"simulation failed: {reason(error)}") from error


def _write_seed(
    place: Path,
    result: _core.Result,
    scenario: _core.Scenario,
    seed: int,
    document: dict[str, Any] | None,
) -> None:
    try:
        place.mkdir(exist_ok=True)
        result.write_parquet(str(place), prov.table_metadata(scenario, seed))
        if document is not None:
            summary.write_json(place / "summary.json", document)
    except OSError as error:
        raise cannot_write(place, error) from None
