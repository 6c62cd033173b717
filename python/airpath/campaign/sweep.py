"""Run a campaign: check it, estimate it, simulate the missing runs, store them."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airpath.base.choices import Explain
from airpath.base.numbers import worker_count
from airpath.base.secrets import redacted
from airpath.base.signals import INTERRUPTED, TERMINATED
from airpath.base.stopping import deferred
from airpath.campaign import definition as definitions
from airpath.campaign import plan as plans
from airpath.campaign import rounds, work
from airpath.campaign.batches import Batches
from airpath.campaign.definition import EXPLAIN, Definition, Until
from airpath.campaign.files import DOCUMENT, CampaignDocument
from airpath.campaign.local import LocalEngine, Outcome
from airpath.campaign.partitions import Frames, Partitions
from airpath.campaign.plan import Plan
from airpath.campaign.results import Campaign, open_campaign, read_document
from airpath.campaign.rounds import Figures
from airpath.campaign.store import Store, open_store
from airpath.campaign.work import Batch, Done, OtherCoreError
from airpath.errors import AirpathError, InputError
from airpath.runs.source import source

if TYPE_CHECKING:
    from airpath.base.choices import Cluster, Explain

Told = Callable[[str], None]
"""Takes a line of progress."""
Progress = Callable[[float], None]
"""Takes the share of the runs that are done."""

_SAMPLE = 8
_AHEAD = 2
"""Batches for each worker that are handed over at a time: one at work, one that waits for it."""
_SPACE = 1.2
"""How much more space than estimated there has to be."""


class Engine(Protocol):
    """Simulates batches."""

    @property
    def slots(self) -> int:
        """How many batches run at once; it may change."""

    def submit(self, batch: Batch) -> None:
        """Hand a batch over."""

    def next(self) -> Outcome:
        """Wait for a batch to end."""

    def ended(self) -> list[Outcome]:
        """Batches that have ended and were not asked for."""

    def close(self) -> None:
        """Stop the running batches."""


class InterruptedCampaignError(AirpathError):
    """SIGINT or SIGTERM arrived, as the exit code tells; finished runs are kept."""

    def __init__(self, message: str, stop: BaseException) -> None:
        super().__init__(message)
        self.exit_code = TERMINATED if isinstance(stop, SystemExit) else INTERRUPTED


@dataclass
class Estimate:
    """What a campaign will take, from a sample of its runs."""

    runs: int
    cells: int
    seeds: int
    """Seeds of each cell, before ``[until]`` adds some."""
    waiting: int
    """Runs that are still to be simulated."""
    sample: int
    run_s: float
    """Processor time of a run."""
    run_bytes: float
    workers: int

    def sentence(self) -> str:
        """For people."""
        from airpath.base.text import plural, runs_of, size, two_digits

        there = self.runs - self.waiting
        told = runs_of(self.runs, self.cells, self.seeds)
        if there:
            told += f", {there} of them done"
        if self.sample == 0:
            return told
        left = self.waiting * self.run_s
        cpu = f"{_duration(left)} of CPU time"
        if self.workers > 1 and left >= 1:
            cpu += f" ({_duration(left / self.workers)} with {plural(self.workers, 'worker')})"
        results = size(self.runs * self.run_bytes, two_digits)
        return f"{told}, about {cpu}, {results} of results"


@dataclass
class Tally:
    """The time that was spent."""

    engine_s: float = 0.0
    wall_s: float = 0.0
    worker_s: float = 0.0
    """Of each worker the time that it was there."""
    simulated: int = 0
    workers: int = 0
    """The most at a time."""
    costs: list[float] = field(default_factory=list)

    @property
    def overhead(self) -> float | None:
        """1 - engine time / (workers × wall), where workers may have come and gone."""
        return 1 - self.engine_s / self.worker_s if self.worker_s > 0 and self.simulated else None

    def passed(self, wall_s: float, workers: int) -> None:
        """Note time that has passed with so many workers."""
        self.wall_s += wall_s
        self.worker_s += wall_s * workers
        self.workers = max(self.workers, workers)


def sweep(
    campaign: str | os.PathLike[str] | Mapping[str, object] | Definition,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: Any = None,
    cluster: Cluster | None = None,
    resume: bool = False,
    until: Until | None = None,
    explain: Explain | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
    tell: Told | None = None,
) -> Campaign:
    """Run a campaign: a file, a shipped one by its name, or a mapping with the keys of a file.

    ``out`` is a folder or a URL (default: ``campaigns/NAME``). ``workers`` threads of this machine
    simulate, or those of a Dask ``scheduler`` (an address, a cluster or a client), or of a
    ``cluster`` that is started for the campaign: "local" or "slurm". The results do not depend on
    this. With ``resume``, runs that are already in ``out`` are not simulated again.

    Raises ``InputError`` for a campaign that cannot be run, before any run starts.

    ::

        windows = {"key": "flow.0.window_bytes", "values": [20_000, 40_000]}
        campaign = airpath.sweep({"scenario": "wire", "seeds": 2, "vary": [windows]}, out="windows")
        campaign.flows.select("flow.0.window_bytes", "seed", "goodput_mbps")
    """
    made = campaign if isinstance(campaign, Definition) else definitions.load(campaign)
    if until is not None:
        made = dataclasses.replace(made, until=until)
    made = _explained(made, explain)
    place = Path("campaigns") / made.name if out is None else out
    number = check_engine(workers, scheduler, cluster)
    rounds.check(made.until)
    plan = plans.make(made, os.cpu_count() or 1)
    store = open_store(place)
    _refuse(store, resume)
    store.lock()
    try:
        engine = begin(number, scheduler, cluster)
        try:
            run = _Sweep(
                plan, store, engine, progress or (lambda _: None), tell or (lambda _: None)
            )
            run.go(retry_failed)
        finally:
            engine.close()
    finally:
        store.unlock()
    return open_campaign(place)


def _explained(campaign: Definition, explain: Explain | None) -> Definition:
    if explain is None:
        return campaign
    if explain not in EXPLAIN:
        raise InputError(f'explain is "{explain}"; allowed: {", ".join(EXPLAIN)}')
    return dataclasses.replace(campaign, explain=explain)


def estimate(
    campaign: Definition, workers: int | None = None, explain: Explain | None = None
) -> Estimate:
    """Check a campaign and estimate it from a sample of its runs; nothing is written."""
    campaign = _explained(campaign, explain)
    rounds.check(campaign.until)
    plan = plans.make(campaign, os.cpu_count() or 1)
    number = worker_count(workers)
    engine = LocalEngine(min(number, _SAMPLE))
    try:
        batches = Batches(plan, campaign.explain)
        spent, amounts = [], []
        chosen = _spread(list(range(plan.runs)))
        for run in chosen:
            engine.submit(batches.of([plan.run(run)]))
        for _ in chosen:
            _, outcome = engine.next()
            if isinstance(outcome, BaseException):
                raise outcome
            spent.append(outcome.engine_s)
            amounts.append(_amount(work.unpack(outcome.packed)))
    finally:
        engine.close()
    mean, amount = sum(spent) / len(spent), sum(amounts) / len(amounts)
    return Estimate(
        plan.runs, len(plan.cells), len(plan.definition.seeds), plan.runs, len(chosen), mean,
        amount, number,
    )  # fmt: skip


def check_engine(workers: int | None, scheduler: Any, cluster: str | None) -> int:
    """How many workers are wanted. Raises ``InputError`` for what does not go together."""
    number = worker_count(workers)
    if scheduler is not None and cluster is not None:
        raise InputError("give either a scheduler or a cluster: a cluster brings its own scheduler")
    if scheduler is not None and workers is not None:
        raise InputError(
            "--workers cannot be combined with a scheduler, which knows its own workers"
        )
    if cluster is not None and workers is None:
        raise InputError("a cluster needs a number of workers: --workers")
    return number


def begin(workers: int, scheduler: Any, cluster: str | None) -> Engine:
    """Start the requested engine."""
    if scheduler is None and cluster is None:
        return LocalEngine(workers)
    from airpath.campaign import dask

    return dask.at(scheduler) if cluster is None else dask.cluster(cluster, workers)


class _Sweep:
    """One campaign on one engine."""

    def __init__(
        self, plan: Plan, store: Store, engine: Engine, progress: Progress, tell: Told
    ) -> None:
        self.plan, self.store, self.engine = plan, store, engine
        self.progress, self.tell = progress, tell
        self.definition = plan.definition
        until = self.definition.until
        self.figures = None if until is None else Figures(plan, until)
        self.kept = Partitions(
            store, plan, self.definition.explain, None if until is None else self.figures
        )
        self.batches = Batches(plan, self.definition.explain)
        self.tally = Tally(workers=engine.slots)
        self.since, self.slots = time.monotonic(), engine.slots
        self.at_work = 0
        self.alone: Batch | None = None
        """The suspect that runs with nothing beside it."""

    def go(self, retry_failed: bool) -> None:
        """Run the campaign."""
        began = datetime.datetime.now(datetime.UTC)
        for name in self.kept.recover(retry_failed=retry_failed):
            self.tell(f"{self.store.place}/{name} is damaged: its runs are simulated again")
        self._describe(began, complete=False)
        try:
            self._rounds()
        except (KeyboardInterrupt, SystemExit) as stop:
            with deferred():
                self._take_ended()
                self._describe(began, complete=False)
            raise InterruptedCampaignError(self._kept_sentence("interrupted"), stop) from None
        except AirpathError as error:
            if isinstance(error, OtherCoreError):
                raise
            with deferred():
                self._take_ended()
            raise type(error)(self._kept_sentence(str(error))) from None
        with deferred():
            self.kept.finish()
            self._describe(began, complete=True)

    def _rounds(self) -> None:
        asked, sampled = 0, False
        while True:
            todo = self.kept.wanted(range(asked, self.plan.runs))
            asked = self.plan.runs
            self.since = time.monotonic()
            try:
                if not sampled:
                    todo = self._sample(todo)
                    sampled = True
                self.batches.add(todo)
                self._drive()
            finally:
                self._pass()
            more = [] if self.figures is None else self.figures.wanting()
            if not more:
                return
            self.plan.add(more)
            self.tell(f"{len(more)} combinations need more seeds: {self.plan.runs} runs in all")

    def _sample(self, todo: list[plans.Numbered]) -> list[plans.Numbered]:
        """Simulate a few runs from all over the campaign, and estimate the rest."""
        chosen = [todo[index] for index in _spread(list(range(len(todo))))]
        amounts: list[float] = []
        for run in chosen:
            self._submit(self.batches.of([run]))
        while self.at_work:
            done = self._next()
            if done is not None:
                amounts.append(_amount(work.unpack(done.packed)))
        costs = self.tally.costs
        about = Estimate(
            self.plan.runs, len(self.plan.cells), len(self.plan.definition.seeds), len(todo),
            len(costs),
            sum(costs) / len(costs) if costs else 0.0,
            sum(amounts) / len(amounts) if amounts else 0.0, self.engine.slots,
        )  # fmt: skip
        self.tell(about.sentence())
        free = self.store.free_bytes()
        needed = len(todo) * about.run_bytes * _SPACE
        if free is not None and needed > free:
            from airpath.base.text import size

            raise AirpathError(
                f"{self.store.place} has {size(free)} of disk space left, but the campaign "
                f"needs about {size(needed)}"
            )
        picked = {run.number for run in chosen}
        return [run for run in todo if run.number not in picked]

    def _drive(self) -> None:
        while True:
            while self.at_work < self.engine.slots * _AHEAD:
                batch = self.batches.next(self.engine.slots)
                if batch is None:
                    break
                self._submit(batch)
            if not self.at_work:
                # With nothing else at work a run that brings its worker down takes no other along.
                self.alone = self.batches.next_suspect()
                if self.alone is None:
                    return
                self._submit(self.alone)
            self._next()

    def _next(self) -> Done | None:
        """Wait for a batch and keep its results."""
        ended = self.engine.next()
        self._pass()
        return self._take(*ended)

    def _pass(self) -> None:
        """Count the time since the last call, with the workers that there were then."""
        now = time.monotonic()
        self.tally.passed(now - self.since, self.slots)
        self.since, self.slots = now, self.engine.slots

    def _submit(self, batch: Batch) -> None:
        self.engine.submit(batch)
        self.at_work += 1

    def _take(self, batch: Batch, outcome: Done | BaseException) -> Done | None:
        """Keep the results of a batch."""
        self.at_work -= 1
        if isinstance(outcome, OtherCoreError | InputError | MemoryError):
            raise outcome
        if isinstance(outcome, BaseException):
            self._failed(batch, outcome)
            return None
        self.kept.accept(outcome.packed)
        self.batches.learn(batch, outcome)
        self.tally.engine_s += outcome.engine_s
        self.tally.simulated += len(batch.numbers)
        self.tally.costs.append(outcome.engine_s / max(1, len(batch.numbers)))
        self.progress(len(self.kept.done) / self.plan.runs)
        return outcome

    def _failed(self, batch: Batch, error: BaseException) -> None:
        """Handle a batch that killed its worker: try its runs alone before they count as failed."""
        if batch is not self.alone:
            self.batches.suspect(batch)
            return
        number = batch.numbers[0]
        told = redacted(f"{type(error).__name__}: {error}".strip())
        rows = work.with_keys(work.failed_rows({number: told}), batch)
        self.kept.accept(work.pack({"runs": rows}))

    def _take_ended(self) -> None:
        """Keep what has ended since."""
        try:
            for batch, outcome in self.engine.ended():
                if isinstance(outcome, Done):
                    self._take(batch, outcome)
        except AirpathError as error:
            self.tell(str(error))

    def _kept_sentence(self, why: str) -> str:
        return (
            f"{why}; {len(self.kept.done)} of {self.plan.runs} runs are kept in "
            f"{self.store.place}: continue with --resume"
        )

    def _describe(self, began: datetime.datetime, *, complete: bool) -> None:
        """Write what the campaign is, and what it took."""
        from airpath.runs.provenance import command_line

        about = self.definition
        until = about.until
        document: CampaignDocument = {
            "name": about.name,
            "title": redacted(about.title),
            "file": about.file,
            "text": redacted(about.text),
            "scenarios": [base.name for base in about.bases],
            "axes": self.plan.axes,
            "sampling": about.sampling,
            "samples": about.samples,
            "sampling_seed": about.sampling_seed,
            "seeds": len(about.seeds),
            "until": None if until is None else dataclasses.asdict(until),
            "compare": about.compare,
            "against": about.against,
            "explain": about.explain,
            "cells": len(self.plan.cells),
            "runs": self.plan.runs,
            "done": len(self.kept.done),
            "failed": len(self.kept.failed),
            "complete": complete,
            "version": self.plan.version,
            "source": source(),
            "core_sha256": self.plan.core,
            "command": command_line(),
            "started": began.isoformat(timespec="seconds"),
            "workers": self.tally.workers,
            "simulated": self.tally.simulated,
            "recovered": self.kept.recovered,
            "engine_s": round(self.tally.engine_s, 3),
            "wall_s": round(self.tally.wall_s, 3),
            "overhead": self.tally.overhead,
        }
        self.store.write(DOCUMENT, (json.dumps(document, indent=1) + "\n").encode())


def _refuse(store: Store, resume: bool) -> None:
    """Refuse to overwrite a campaign or to write into a folder with other contents."""
    document = read_document(store)
    if document is not None and not resume:
        raise InputError(
            f"{store.place} has {document['done']} of {document['runs']} runs already\n"
            "  --resume continues it; --out chooses another folder"
        )
    if document is None and store.others():
        told = " and is not a campaign that can be resumed" if resume else ""
        raise InputError(
            f"{store.place} exists and is not empty{told}; choose another --out or remove it"
        )


def _spread(numbers: list[int]) -> list[int]:
    """A few of them, evenly from all over."""
    count = min(_SAMPLE, len(numbers))
    return sorted(
        {numbers[(2 * index + 1) * len(numbers) // (2 * count)] for index in range(count)}
    )


def _amount(frames: Frames) -> float:
    """Bytes of the rows, as they are in memory: Parquet takes less."""
    return float(sum(table.estimated_size() for table in frames.values()))


def _duration(seconds: float) -> str:
    from airpath.base.text import two_digits

    for least, unit, name in ((6000, 3600, "h"), (100, 60, "min"), (1, 1, "s")):
        if seconds >= least:
            return f"{two_digits(seconds / unit)} {name}"
    return f"{two_digits(seconds * 1000)} ms"
