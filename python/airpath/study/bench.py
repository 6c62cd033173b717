"""Runs what figures ask for: each scenario with each setting once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from airpath import scenario as scenarios
from airpath.drivers.options import Progress
from airpath.drivers.simulate import in_threads
from airpath.runs.summary import lookup
from airpath.study.definition import Study

if TYPE_CHECKING:
    from airpath import _core


class Request(NamedTuple):
    """A metric of a scenario of the study, with something set."""

    scenario: str
    sets: tuple[str, ...]
    metric: str


class Bench:
    """Runs a study's scenarios with all seeds, in threads, and keeps what was asked for."""

    def __init__(
        self, study: Study, sets: tuple[str, ...], repeat: int, workers: int | None
    ) -> None:
        self.study, self.sets, self.repeat, self.workers = study, sets, repeat, workers
        self._values: dict[Request, list[Any]] = {}

    def obtain(self, requests: Iterable[Request], progress: Progress | None = None) -> None:
        """Run what was not obtained before."""
        from airpath import _core

        metrics: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for request in dict.fromkeys(requests):
            if request not in self._values:
                metrics.setdefault((request.scenario, request.sets), []).append(request.metric)
        plans = list(metrics)
        loaded = [self._load(*plan) for plan in plans]
        jobs = [
            (index, scenario.seed + offset)
            for index, scenario in enumerate(loaded)
            for offset in range(self.repeat)
        ]

        def one(job: tuple[int, int], tick: Callable[[float], bool]) -> list[Any]:
            index, seed = job
            varied = self.study.varied(seed)
            scenario = self._load(*plans[index], varied) if varied else loaded[index]
            summary = _core.simulate(scenario, seed, tick).summary
            return [lookup(summary, path) for path in metrics[plans[index]]]

        longest = max((scenario.duration_s for scenario in loaded), default=1.0)
        rows = in_threads(one, jobs, self.workers, longest, progress)
        for index, (scenario, sets) in enumerate(plans):
            seeds = rows[index * self.repeat : (index + 1) * self.repeat]
            for metric, values in zip(metrics[plans[index]], zip(*seeds, strict=True), strict=True):
                self._values[Request(scenario, sets, metric)] = list(values)

    def values(self, request: Request) -> list[Any]:
        """Each seed's value; it has to be obtained first."""
        return self._values[request]

    def _load(self, path: str, sets: Sequence[str], varied: Sequence[str] = ()) -> _core.Scenario:
        return scenarios.load(self.study.directory / path, [*varied, *sets, *self.sets])
