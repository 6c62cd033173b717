"""Run published studies and judge each figure.

A figure is *reproduced* if the obtained value is within its tolerance. If it is not, every
assumption of the study is varied over its plausible range, one at a time: when that reaches the
published value the figure is *under-specified* by the source, and the note names the parameter
and the range; otherwise it is *not reproduced*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from airpath import scenario as scenarios
from airpath.analysis.statistics import mean_interval, percent_above
from airpath.drivers.simulate import MOST_SEEDS, Progress, in_threads
from airpath.errors import InputError
from airpath.runs.summary import lookup, number
from airpath.study.definition import Alternative, Assumption, Figure, Study, Value
from airpath.study.relations import judge_relation

if TYPE_CHECKING:
    from airpath import _core

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
UNDER_SPECIFIED = "under-specified"


@dataclass(frozen=True)
class Case:
    """A figure under one set of assumptions; what is run."""

    figure: Figure
    sets: tuple[str, ...]
    metrics: tuple[str, ...]
    assumption: str = ""
    label: str = ""


@dataclass(frozen=True)
class Effect:
    """What one alternative of one assumption does to one figure."""

    figure: str
    assumption: str
    alternative: str
    obtained: Value


@dataclass(frozen=True)
class Outcome:
    """One figure: published against obtained."""

    figure: Figure
    obtained: Value | None
    ci95: list[float] | None
    verdict: str
    note: str = ""
    effects: tuple[Effect, ...] = field(default=())

    def obtained_text(self) -> str:
        """What was obtained, with its unit; empty for a shape."""
        if self.obtained is None:
            return ""
        return f"{self.figure.text(self.obtained)} {self.figure.unit}"

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of ``reproduce --json``."""
        return {
            "id": self.figure.id,
            "published": self.figure.published,
            "obtained": self.obtained,
            "ci95": self.ci95,
            "verdict": self.verdict,
            "note": self.note,
            "unit": self.figure.unit,
            "tolerance": self.figure.tolerance,
            "effects": [
                {
                    "assumption": effect.assumption,
                    "alternative": effect.alternative,
                    "obtained": effect.obtained,
                }
                for effect in self.effects
            ],
        }


Plan = tuple[Figure, tuple[str, ...], tuple[str, ...]]
"""What to simulate for a figure: what is set, and the metrics to read."""


class Obtained(NamedTuple):
    """What a case obtained over the seeds; a range has no interval."""

    value: Value
    bounds: list[float] | None


def reproduce(
    study: Study,
    *,
    sets: Sequence[str] = (),
    repeat: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run every figure of a study, its assumptions varied one at a time, and judge."""
    count = study.repeat if repeat is None else repeat
    if not 1 <= count <= MOST_SEEDS:
        raise InputError(f"repeat must be from 1 to {MOST_SEEDS}")
    bench = _Bench(study, tuple(sets), count, workers)
    values = [figure for figure in study.figures if figure.kind == "value"]
    cases = [Case(figure, (), figure.metrics) for figure in values]
    for figure in values:
        for assumption in study.assumptions:
            if assumption.concerns(figure.id):
                cases += [_varied(figure, assumption, each) for each in assumption.alternatives]
    obtained = dict(zip(cases, bench.obtain(cases, progress), strict=True))
    judged = {figure.id: _judge(study, figure, obtained) for figure in values}
    for figure in study.figures:
        if figure.kind == "shape":
            judged[figure.id] = _judge_relation(bench, figure)
    return [judged[figure.id] for figure in study.figures]


def document(studies: Sequence[tuple[Study, Sequence[Outcome]]]) -> dict[str, Any]:
    """Document of ``reproduce --json``."""
    return {
        "studies": [
            {"id": study.id, "figures": [outcome.as_dict() for outcome in outcomes]}
            for study, outcomes in studies
        ]
    }


class _Bench:
    """Runs cases, each with all seeds, in threads."""

    def __init__(
        self, study: Study, sets: tuple[str, ...], repeat: int, workers: int | None
    ) -> None:
        self.study, self.sets, self.repeat, self.workers = study, sets, repeat, workers

    def obtain(self, cases: Sequence[Case], progress: Progress | None = None) -> list[Obtained]:
        """What the figures obtain in their cases."""
        plans = [
            (case.figure, (*sets, *case.sets), case.metrics)
            for case in cases
            for sets in _variants(case.figure)
        ]
        measured = iter(self.measure(plans, progress))
        return [_obtained(case, [next(measured) for _ in _variants(case.figure)]) for case in cases]

    def measure(
        self, plans: Sequence[Plan], progress: Progress | None = None
    ) -> list[list[list[Any]]]:
        """Each plan's metrics, and of each metric each seed's value."""
        from airpath import _core

        loaded = [self._load(plan) for plan in plans]
        jobs = [
            (index, scenario.seed + offset)
            for index, scenario in enumerate(loaded)
            for offset in range(self.repeat)
        ]

        def one(job: tuple[int, int], tick: Callable[[float], bool]) -> list[Any]:
            index, seed = job
            varied = self.study.varied(seed)
            scenario = self._load(plans[index], varied) if varied else loaded[index]
            summary = _core.simulate(scenario, seed, tick).summary
            return [lookup(summary, path) for path in plans[index][2]]

        longest = max((scenario.duration_s for scenario in loaded), default=1.0)
        rows = in_threads(one, jobs, self.workers, longest, progress)
        return [
            [list(column) for column in zip(*rows[start : start + self.repeat], strict=True)]
            for start in range(0, len(rows), self.repeat)
        ]

    def _load(self, plan: Plan, varied: Sequence[str] = ()) -> _core.Scenario:
        figure, sets, _ = plan
        path = self.study.directory / figure.scenario
        return scenarios.load(path, [*varied, *sets, *self.sets])


def _variants(figure: Figure) -> list[tuple[str, ...]]:
    return [figure.sets] if figure.against is None else [figure.sets, figure.against]


def _obtained(case: Case, measured: Sequence[list[list[Any]]]) -> Obtained:
    scale = case.figure.scale
    columns = [
        [number(value, path) * scale for value in column]
        for variant in measured
        for path, column in zip(case.metrics, variant, strict=True)
    ]
    if len(columns) == 1:
        interval = mean_interval(columns[0])
    elif case.figure.against is not None:
        interval = percent_above(*columns)
    else:
        low, high = (mean_interval(column).mean for column in columns)
        return Obtained((low, high), None)
    return Obtained(interval.mean, interval.bounds)


def _varied(figure: Figure, assumption: Assumption, alternative: Alternative) -> Case:
    where = (alternative.metric,) if alternative.metric else figure.metrics
    return Case(figure, alternative.sets, where, assumption.id, alternative.label)


def _judge(study: Study, figure: Figure, obtained: dict[Case, Obtained]) -> Outcome:
    base = obtained[Case(figure, (), figure.metrics)]
    effects = tuple(
        Effect(figure.id, case.assumption, case.label, each.value)
        for case, each in obtained.items()
        if case.assumption and case.figure is figure
    )
    if figure.accepts(base.value):
        return Outcome(figure, base.value, base.bounds, REPRODUCED, "", effects)
    reached = []
    for assumption in study.assumptions:
        values = [effect.obtained for effect in effects if effect.assumption == assumption.id]
        if values and _reaches(figure, assumption, [base.value, *values]):
            reached.append(f"{assumption.name} ({_span(figure, [base.value, *values])})")
    if reached:
        note = f"depends on what the source leaves out: {'; '.join(reached)}"
        return Outcome(figure, base.value, base.bounds, UNDER_SPECIFIED, note, effects)
    note = ""
    if effects:
        values = [base.value, *(effect.obtained for effect in effects)]
        note = f"the assumptions move it only from {_span(figure, values)}"
    return Outcome(figure, base.value, base.bounds, NOT_REPRODUCED, note, effects)


def _reaches(figure: Figure, assumption: Assumption, values: list[Value]) -> bool:
    if any(figure.accepts(value) for value in values):
        return True
    numbers = [value for value in values if not isinstance(value, tuple)]
    if len(numbers) < len(values):
        return False
    # Between two named alternatives there is nothing; between two bounds there is.
    above = figure.low is not None and min(numbers) < figure.low
    below = figure.high is not None and max(numbers) > figure.high
    return assumption.continuous and above and below


def _span(figure: Figure, values: list[Value]) -> str:
    """The smallest and the largest; of ranges, those with the lowest and the highest end."""
    low = min(values, key=lambda value: value[0] if isinstance(value, tuple) else value)
    high = max(values, key=lambda value: value[1] if isinstance(value, tuple) else value)
    word = "and" if isinstance(low, tuple) else "to"
    return f"{figure.text(low)} {word} {figure.text(high)} {figure.unit}"


def _judge_relation(bench: _Bench, figure: Figure) -> Outcome:
    def measure(sets: Sequence[str], path: str, scenario: str | None = None) -> list[Any]:
        where = figure if scenario is None else replace(figure, scenario=scenario)
        return bench.measure([(where, (*figure.sets, *sets), (path,))])[0][0]

    holds, note = judge_relation(figure.id, figure.shape, measure)
    return Outcome(figure, None, None, REPRODUCED if holds else NOT_REPRODUCED, note)
