"""Runs cut into batches by their measured cost: a scheduler should see seconds."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from airpath.base.choices import Explain
from airpath.campaign.plan import Numbered, Plan
from airpath.campaign.work import Batch, Done, Job

TARGET_S = 2.0
"""Processor time of a batch."""
MOST_RUNS = 5000
"""In a batch, however short they are."""
_TAILS = 3
"""Towards the end batches become smaller, so that all workers end together."""


class Batches:
    """What is still to be simulated, in the campaign's order."""

    def __init__(self, plan: Plan, explain: Explain) -> None:
        self._plan, self._explain = plan, explain
        self._todo: deque[Numbered] = deque()
        self._suspects: deque[Numbered] = deque()
        self._spent: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._spent_of_base: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(self, runs: Iterable[Numbered]) -> None:
        """Runs that are to be simulated after the others."""
        self._todo.extend(runs)

    def suspect(self, batch: Batch) -> None:
        """A batch that failed as a whole: which of its runs it was is found out later."""
        self._suspects.extend(self._plan.run(number) for number in batch.numbers)

    def next(self, slots: int) -> Batch | None:
        """Cut the next batch off, for so many workers; None if nothing waits but suspects."""
        return self.of(self._cut(slots)) if self._todo else None

    def next_suspect(self) -> Batch | None:
        """A run that was in a batch that failed, alone; None if there is none."""
        return self.of([self._suspects.popleft()]) if self._suspects else None

    def of(self, runs: list[Numbered]) -> Batch:
        """Make a batch of these runs."""
        bases: dict[int, int] = {}
        jobs: list[Job] = []
        for cell, some in _by_cell(runs):
            about = self._plan.cells[cell]
            base = bases.setdefault(about.base, len(bases))
            numbers = tuple((run.number, run.seed) for run in some)
            jobs.append(Job(base, about.sets, about.sha256, numbers))
        definitions = [self._plan.definition.bases[index] for index in bases]
        return Batch(
            tuple((base.text, base.name, base.directory) for base in definitions),
            tuple(jobs), self._explain, self._plan.version, self._plan.core,
        )  # fmt: skip

    def learn(self, batch: Batch, done: Done) -> None:
        """Note what runs cost: a batch's time, shared among its runs as their events are."""
        numbers = batch.numbers
        events = [max(1, count) for count in done.events]
        for number, count in zip(numbers, events, strict=True):
            cost = done.engine_s * count / sum(events)
            cell = self._plan.run(number).cell
            for spent in (self._spent[cell], self._spent_of_base[self._plan.cells[cell].base]):
                spent[0] += cost
                spent[1] += 1

    def cost_s(self, cell: int) -> float | None:
        """Processor time of a run of a cell: measured, or that of its scenario's other cells."""
        for spent in (
            self._spent.get(cell),
            self._spent_of_base.get(self._plan.cells[cell].base),
            *list(self._spent_of_base.values())[:1],
        ):
            if spent is not None and spent[1]:
                return spent[0] / spent[1]
        return None

    def left_s(self) -> float:
        """Processor time of what waits, about."""
        spent = [sum(column) for column in zip(*self._spent_of_base.values(), strict=True)]
        return len(self._todo) * spent[0] / spent[1] if spent and spent[1] else 0.0

    def _cut(self, slots: int) -> list[Numbered]:
        target = TARGET_S
        left = self.left_s()
        if left > 0:
            target = min(target, max(left / (slots * _TAILS), TARGET_S / 40))
        size = self._plan.definition.partition_runs
        first = self._todo[0].number // size
        taken: list[Numbered] = []
        cost = 0.0
        while self._todo and len(taken) < MOST_RUNS and self._todo[0].number // size == first:
            each = self.cost_s(self._todo[0].cell)
            if taken and (each is None or cost + each > target):
                break
            taken.append(self._todo.popleft())
            cost += each or 0.0
        return taken


def _by_cell(runs: list[Numbered]) -> Iterator[tuple[int, list[Numbered]]]:
    some: list[Numbered] = []
    for run in runs:
        if some and some[-1].cell != run.cell:
            yield some[0].cell, some
            some = []
        some.append(run)
    if some:
        yield some[0].cell, some
