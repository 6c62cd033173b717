"""Run a scenario for one or more seeds, in threads: the simulator releases the GIL.

Seeds are independent, so the number of workers changes how long it takes and nothing else.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from airpath import diagnose
from airpath import scenario as scenarios
from airpath.base import forked
from airpath.base.numbers import seeds_from, worker_count
from airpath.base.stopping import StoppedError, deferred
from airpath.drivers.options import Progress, SimulationOptions
from airpath.errors import AirpathError, InputError, InputTypeError, reason
from airpath.runs import provenance as prov
from airpath.runs import summary
from airpath.runs.directories import PendingDirectory, cannot_write, default_name
from airpath.runs.results import MemoryTables, Run, RunDirectory

if TYPE_CHECKING:
    from airpath import _core
    from airpath.base.choices import Explain
    from airpath.congestion import Control, Controls
    from airpath.runs.document import Provenance, RunDocument

CAPTURE = "capture.pcapng"
"""The packets at both ends, in the directory of their seed, if they were asked for."""

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
    explain: Explain = "off",
    capture: bool = False,
    congestion: Controls | None = None,
) -> Run:
    """Simulate a scenario (a file, the name of a shipped one, or a loaded one).

    ``repeat`` runs use the seeds ``seed``, ``seed + 1``, …; ``seed`` defaults to the scenario's.
    Without ``out`` the tables stay in memory; with it they are also written to that directory,
    which must not exist or be empty. A seed that fails does not affect the others: the run's
    ``partial`` says what is missing, and so does a warning.

    ``explain`` is "off", "quick" or "full": what limits the run is found by running the scenario
    again without each possible cause, ten to thirty times, and becomes ``run.findings``.

    ``capture`` adds ``capture.pcapng`` to the directory: the headers of every packet at the server
    and at the UEs, one interface for each. It changes nothing else.

    ``congestion`` replaces the congestion control of flows by objects of your own, by their place
    in the file: ``{"flow.0": Mine()}``; see ``airpath.congestion``. A string is the file of a
    shared library, as in ``set={"flow.0.congestion": "./libmine.so"}``; loading it runs its code.
    Raises ``InputError`` if one of them raises an exception, which is then its cause, or sets an
    impossible window.

    >>> import airpath
    >>> run = airpath.run("wire", set={"flow.0.window_bytes": 20_000}, repeat=2)
    >>> run.flows.select("seed", "flow").rows()
    [(1, 'download'), (2, 'download')]
    >>> round(run.summary["flows"][0]["goodput_mbps"], 1)
    3.4
    """
    from airpath import _core
    from airpath.congestion import libraries as split

    if not isinstance(scenario, _core.Scenario):
        sets, libraries = split(scenarios.set_list(set))
        congestion = {**libraries, **(congestion or {})}
        loaded = scenarios.load(scenario, sets)
    elif set is not None:
        raise InputTypeError(
            "set cannot be combined with a loaded scenario: pass it to airpath.load()"
        )
    else:
        loaded = scenario
    diagnose.check(explain)
    if congestion and explain != "off":
        raise InputError(
            "explain needs airpath's own congestion control algorithms: leave out congestion"
        )
    directory = None if out is None else Path(out)
    run = execute(
        loaded,
        SimulationOptions(
            seed=seed,
            repeat=repeat,
            workers=workers,
            out=directory,
            capture=capture,
            congestion=congestion,
        ),
    )
    diagnose.add(run, loaded, explain, workers=workers)
    if run.partial:
        warnings.warn(f"the run is partial, because {'; '.join(run.partial)}", stacklevel=2)
    return run


def execute(scenario: _core.Scenario, options: SimulationOptions) -> Run:
    """Simulate a loaded scenario."""
    forked.check()
    seeds = seeds_from(scenario.seed if options.seed is None else options.seed, options.repeat)
    controls = _controls(scenario, options)
    sources = {f"flow.{control.index}": control.source for control in controls}
    identifier = prov.run_id(scenario, seeds[0], options.repeat, sources)
    record = prov.provenance(scenario, seeds, options.command_line, identifier)
    if sources:
        record["congestion"] = sources
    started = time.monotonic()
    out = options.out
    if options.parent is not None:
        out = options.parent / default_name(scenarios.stem(scenario), identifier)
    numbered = options.parent is not None
    holder = nullcontext() if out is None else PendingDirectory(out, numbered=numbered)
    with holder as pending:
        work = _Seeds(scenario, identifier, pending, seeds, capture=options.capture)
        work.controls = controls
        stopped: BaseException | None = None
        try:
            in_threads(work.one, seeds, options.workers, scenario.duration_s, options.progress)
        except (KeyboardInterrupt, SystemExit) as error:
            if pending is None or not work.documents:
                raise
            stopped = error
        with deferred():
            done, documents, partial = work.outcome()
            document = summary.combine(documents, identifier, time.monotonic() - started)
            document["run"]["partial"] = partial
            record["seeds"], record["partial"] = done, partial
            if pending is None:
                run = Run(document, record, scenario.resolved_toml, MemoryTables(work.results))
            else:
                record["wall_s"] = document["run"]["wall_s"]
                final = _finish(pending, document, record, scenario.resolved_toml)
                tables = RunDirectory(final).tables(done)
                kept = MemoryTables(work.results) if work.keep else tables
                run = Run(document, record, scenario.resolved_toml, kept, final)
    run.figures = work.figures
    if isinstance(stopped, KeyboardInterrupt) and run.directory is not None:
        raise StoppedError(run.directory, partial) from None
    if stopped is not None:
        raise stopped
    return run


class _Seeds:
    """The outcome of each seed. One that fails does not affect the others."""

    def __init__(
        self,
        scenario: _core.Scenario,
        identifier: str,
        pending: PendingDirectory | None,
        seeds: list[int],
        *,
        capture: bool,
    ) -> None:
        self.capture = capture
        self.scenario, self.identifier, self.pending = scenario, identifier, pending
        self.seeds = seeds
        self.controls: Sequence[Control] = ()
        self.keep = pending is None or len(seeds) == 1
        """Whether the tables stay in memory."""
        self.results: dict[int, _core.Result] = {}
        self.documents: dict[int, RunDocument] = {}
        self.figures: dict[int, _core.RunFigures] = {}
        self.failed: dict[int, BaseException] = {}

    def one(self, seed: int, tick: Callable[[float], bool]) -> None:
        """Simulate a seed, and write it."""
        try:
            self.documents[seed] = self._one(seed, tick)
        except (KeyboardInterrupt, SystemExit):
            raise
        # A panic of the simulator is no Exception.
        except BaseException as error:
            self.failed[seed] = error
            self.results.pop(seed, None)
            if self.pending is not None and len(self.seeds) > 1:
                shutil.rmtree(self._place(seed), ignore_errors=True)

    def outcome(self) -> tuple[list[int], list[RunDocument], list[str]]:
        """Seeds that are complete, their documents, and why others are not.

        Raises the first failure if no seed is complete.
        """
        if not self.documents:
            raise self.failed[min(self.failed)]
        done = [seed for seed in self.seeds if seed in self.documents]
        documents = [self.documents[seed] for seed in done]
        partial = list(summary.combine(documents, "", 0.0)["run"]["partial"])
        partial += [
            f"seed {seed} failed: {str(self.failed[seed]) or type(self.failed[seed]).__name__}"
            for seed in self.seeds
            if seed in self.failed
        ]
        missing = len(self.seeds) - len(done) - len(self.failed)
        if missing:
            partial.append(f"it was interrupted: {missing} of {len(self.seeds)} seeds are missing")
            if self.pending is not None:
                for seed in set(self.seeds) - self.documents.keys():
                    shutil.rmtree(self._place(seed), ignore_errors=True)
        return done, documents, partial

    def _place(self, seed: int) -> Path:
        if self.pending is None:
            raise RuntimeError("only with a directory")
        path = self.pending.path
        return path if len(self.seeds) == 1 else path / f"seed-{seed}"

    def _one(self, seed: int, tick: Callable[[float], bool]) -> RunDocument:
        began = time.monotonic()
        capture = None
        if self.capture and self.pending is not None:
            place = self._place(seed)
            try:
                place.mkdir(exist_ok=True)
            except OSError as error:
                raise cannot_write(place, error) from None
            capture = place / CAPTURE
        result = _simulate(self.scenario, seed, tick, capture, self.controls)
        if self.keep:
            self.results[seed] = result
        self.figures[seed] = result.figures
        document = summary.of_result(
            result, self.scenario, self.identifier, time.monotonic() - began
        )
        if self.pending is None:
            return document
        place = self._place(seed)
        try:
            place.mkdir(exist_ok=True)
            missing = write_tables(result, place, prov.table_metadata(self.scenario, seed))
            if missing and len(self.seeds) > 1:
                raise AirpathError("; ".join(missing))
            document["run"]["partial"] += missing
            if result.capture_lacks is not None:
                document["run"]["partial"].append(result.capture_lacks)
            if len(self.seeds) > 1:
                summary.write_json(place / "summary.json", document)
        except OSError as error:
            raise cannot_write(place, error) from None
        return document


def write_tables(result: _core.Result, place: Path, metadata: dict[str, str]) -> list[str]:
    """Write the tables and return what is missing. Raises ``AirpathError`` if all are."""
    failed = result.write_parquet(place, metadata)
    if failed and len(failed) == len(result.table_names()):
        raise AirpathError(f"cannot write {place}: {failed[0][1]}")
    return [f"table {name} could not be written: {why}" for name, why in failed]


def _finish(
    pending: PendingDirectory, document: RunDocument, record: Provenance, toml: str
) -> Path:
    """Write the documents and name the directory; if that fails, keep what was written."""
    try:
        pending.free_reserve()
        RunDirectory(pending.path).write(document, record, toml)
    except AirpathError as error:
        raise kept_failed(pending, error) from None
    return pending.commit()


def kept_failed(pending: PendingDirectory, error: AirpathError) -> AirpathError:
    """Keep a failed run as ``NAME.failed``; the error that says so."""
    kept = pending.keep_failed()
    if kept is None:
        return error
    return type(error)(f"{error}\n  what was written is kept: {kept}")


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
    threads = worker_count(workers)
    stop = threading.Event()
    done = [0.0] * len(jobs)

    def numbered(index: int) -> Outcome:
        def tick(now_s: float) -> bool:
            done[index] = min(1.0, now_s / duration_s) if duration_s > 0 else 0.0
            return not stop.is_set()

        if stop.is_set():
            raise KeyboardInterrupt
        outcome = work(jobs[index], tick)
        done[index] = 1.0
        return outcome

    pool = ThreadPoolExecutor(min(threads, max(1, len(jobs))))
    futures: list[Future[Outcome]] = []
    # Not concurrent.futures.wait: Ctrl-C in the middle of it leaves futures locked for ever.
    ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
    try:
        with deferred():
            for index in range(len(jobs)):
                futures.append(pool.submit(numbered, index))
                futures[-1].add_done_callback(ended.put)
        pending, told_s = len(jobs), 0.0
        while pending:
            with suppress(Empty):
                ended.get(timeout=_POLL_S).result()
                pending -= 1
            now_s = time.monotonic()
            if progress is not None and (not pending or now_s - told_s >= _POLL_S):
                told_s = now_s
                progress(sum(done) / len(done))
    finally:
        stop.set()
        # Who presses Ctrl-C twice would find threads that still write.
        with deferred():
            pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def _controls(scenario: _core.Scenario, options: SimulationOptions) -> list[Control]:
    if options.congestion is None:
        return []
    from airpath.congestion import controls

    return controls(scenario, options.congestion)


def _simulate(
    scenario: _core.Scenario,
    seed: int,
    tick: Callable[[float], bool],
    capture: Path | None,
    controls: Sequence[Control],
) -> _core.Result:
    from airpath import _core

    congestion = [(control.index, control.name, control.decides) for control in controls]
    try:
        return _core.simulate(scenario, seed, tick, capture=capture, congestion=congestion)
    except _core.CongestionError as error:
        raise InputError(str(error)) from error.__cause__
    except OSError as error:
        raise AirpathError(f"simulation failed: {reason(error)}") from error
