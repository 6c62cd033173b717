"""Run published studies and judge each figure.

A figure is *reproduced* if the obtained value is within its tolerance. If it is not, every
assumption of the study is varied over its plausible range, one at a time: when that reaches the
published value the figure is *under-specified* by the source, and the note names the parameter
and the range; otherwise it is *not reproduced*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from airpath import scenario as scenarios
from airpath.analysis.statistics import Interval, mean_interval
from airpath.errors import InputError
from airpath.execute import Progress, in_threads
from airpath.study import Alternative, Assumption, Figure, Study
from airpath.text import digits

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
    metric: str
    assumption: str = ""
    label: str = ""


@dataclass(frozen=True)
class Effect:
    """What one alternative of one assumption does to one figure."""

    figure: str
    assumption: str
    alternative: str
    obtained: float


@dataclass(frozen=True)
class Outcome:
    """One figure: published against obtained."""

    figure: Figure
    obtained: float | None
    ci95: list[float] | None
    verdict: str
    note: str = ""
    effects: tuple[Effect, ...] = field(default=())

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


class Measure(Protocol):
    """Runs the figure's scenario, or another one of the study, and reads one metric."""

    def __call__(self, sets: Sequence[str], metric: str, scenario: str | None = None) -> Interval:
        """Mean over the seeds of a metric, with these sets on top of the figure's."""


Shape = Callable[[dict[str, Any], Measure], tuple[bool, str]]
"""Takes the figure's ``shape`` table and what measures; says whether it holds, why."""


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
    if count < 1:
        raise InputError("repeat must be at least 1")
    bench = _Bench(study, tuple(sets), count, workers)
    values = [figure for figure in study.figures if figure.kind == "value"]
    cases = [Case(figure, (), figure.metric) for figure in values]
    for figure in values:
        for assumption in study.assumptions:
            if assumption.concerns(figure.id):
                cases += [_varied(figure, assumption, each) for each in assumption.alternatives]
    obtained = dict(zip(cases, bench.run(cases, progress), strict=True))
    judged = {figure.id: _judge(study, figure, obtained) for figure in values}
    for figure in study.figures:
        if figure.kind == "shape":
            judged[figure.id] = _judge_shape(bench, figure)
    return [judged[figure.id] for figure in study.figures]


def document(studies: Sequence[tuple[Study, Sequence[Outcome]]]) -> dict[str, Any]:
    """Document of ``reproduce --json``."""
    return {
        "studies": [
            {"id": study.id, "figures": [outcome.as_dict() for outcome in outcomes]}
            for study, outcomes in studies
        ]
    }


def metric(summary: dict[str, Any], path: str) -> float:
    """Look up ``flow.0.goodput_mbps``, ``ping.0.rtt_ms.p50`` or ``link.0.utilisation``."""
    section, index, *rest = path.split(".")
    place: Any = summary[f"{section}s"][int(index)]
    for key in rest:
        place = None if place is None else place[key]
    if not isinstance(place, int | float):
        raise InputError(f"metric {path} has no value in this run")
    return float(place)


class _Bench:
    """Runs cases, each with all seeds, in threads."""

    def __init__(
        self, study: Study, sets: tuple[str, ...], repeat: int, workers: int | None
    ) -> None:
        self.study, self.sets, self.repeat, self.workers = study, sets, repeat, workers

    def run(self, cases: Sequence[Case], progress: Progress | None = None) -> list[Interval]:
        from airpath import _core

        loaded = [self._load(case) for case in cases]
        jobs = [
            (index, scenario.seed + offset)
            for index, scenario in enumerate(loaded)
            for offset in range(self.repeat)
        ]

        def one(job: tuple[int, int], tick: Callable[[float], bool]) -> float:
            index, seed = job
            result = _core.simulate(loaded[index], seed, tick)
            case = cases[index]
            return metric(result.summary, case.metric) * case.figure.scale

        longest = max((scenario.duration_s for scenario in loaded), default=1.0)
        values = in_threads(one, jobs, self.workers, longest, progress)
        return [
            mean_interval(values[start : start + self.repeat])
            for start in range(0, len(values), self.repeat)
        ]

    def _load(self, case: Case) -> _core.Scenario:
        path = self.study.directory / case.figure.scenario
        return scenarios.load(path, [*case.figure.sets, *case.sets, *self.sets])


def _varied(figure: Figure, assumption: Assumption, alternative: Alternative) -> Case:
    where = alternative.metric or figure.metric
    return Case(figure, alternative.sets, where, assumption.id, alternative.label)


def _judge(study: Study, figure: Figure, obtained: dict[Case, Interval]) -> Outcome:
    base = obtained[Case(figure, (), figure.metric)]
    effects = tuple(
        Effect(figure.id, case.assumption, case.label, interval.mean)
        for case, interval in obtained.items()
        if case.assumption and case.figure is figure
    )
    if figure.accepts(base.mean):
        return Outcome(figure, base.mean, base.bounds, REPRODUCED, "", effects)
    reached = []
    for assumption in study.assumptions:
        values = [effect.obtained for effect in effects if effect.assumption == assumption.id]
        if values and _reaches(figure, assumption, [base.mean, *values]):
            low, high = min(base.mean, *values), max(base.mean, *values)
            reached.append(f"{assumption.name} ({digits(low)} to {digits(high)} {figure.unit})")
    if reached:
        note = f"depends on what the source leaves out: {'; '.join(reached)}"
        return Outcome(figure, base.mean, base.bounds, UNDER_SPECIFIED, note, effects)
    return Outcome(figure, base.mean, base.bounds, NOT_REPRODUCED, _widest(base, effects), effects)


def _reaches(figure: Figure, assumption: Assumption, values: list[float]) -> bool:
    if any(figure.accepts(value) for value in values):
        return True
    # Between two named alternatives there is nothing; between two bounds there is.
    above = figure.low is not None and min(values) < figure.low
    below = figure.high is not None and max(values) > figure.high
    return assumption.continuous and above and below


def _widest(base: Interval, effects: Sequence[Effect]) -> str:
    if not effects:
        return ""
    values = [base.mean, *(effect.obtained for effect in effects)]
    return f"the assumptions move it from {digits(min(values))} to {digits(max(values))} only"


def _judge_shape(bench: _Bench, figure: Figure) -> Outcome:
    compare = str(figure.shape.get("compare", ""))
    if compare not in SHAPES:
        raise InputError(
            f"figure {figure.id}: no comparison '{compare}'; there are {', '.join(SHAPES)}"
        )

    def measure(sets: Sequence[str], metric: str, scenario: str | None = None) -> Interval:
        where = replace(figure, scenario=scenario or figure.scenario)
        return bench.run([Case(where, tuple(sets), metric)])[0]

    holds, note = SHAPES[compare](figure.shape, measure)
    return Outcome(figure, None, None, REPRODUCED if holds else NOT_REPRODUCED, note)


def _greater(shape: dict[str, Any], measure: Measure) -> tuple[bool, str]:
    # { compare = "greater", metric, factor = 1.0, this = { set }, than = { set } }; each side may
    # have a metric and a scenario of its own
    def side(which: dict[str, Any]) -> float:
        where = which.get("metric") or shape["metric"]
        return measure(which.get("set", []), where, which.get("scenario")).mean

    this, than = side(shape["this"]), side(shape["than"])
    factor = float(shape.get("factor", 1.0))
    needed = "" if factor == 1.0 else f", needs {digits(factor)} times as much"
    return this > than * factor, f"{digits(this)} against {digits(than)}{needed}"


def _at_most(shape: dict[str, Any], measure: Measure) -> tuple[bool, str]:
    # { compare = "at-most", metric, limit, set }
    value = measure(shape.get("set", []), shape["metric"]).mean
    return value <= float(shape["limit"]), f"{digits(value)}, limit {digits(shape['limit'])}"


def _a_variant_meets_all(shape: dict[str, Any], measure: Measure) -> tuple[bool, str]:
    # { compare = "a-variant-meets-all", variants = [{ label, set }],
    #   conditions = [{ label, metric, limit, set }] }; a condition is met at the limit or below
    found, rows = False, []
    for variant in shape["variants"]:
        values = [
            measure([*variant["set"], *condition.get("set", [])], condition["metric"]).mean
            for condition in shape["conditions"]
        ]
        limits = [float(condition["limit"]) for condition in shape["conditions"]]
        meets = all(value <= limit for value, limit in zip(values, limits, strict=True))
        found = found or meets
        row = ", ".join(map(digits, values))
        rows.append(f"{variant['label']}: {row}{' (all met)' if meets else ''}")
    head = ", ".join(
        f"{condition['label']} at most {digits(condition['limit'])}"
        for condition in shape["conditions"]
    )
    return found, f"{head}. {'; '.join(rows)}"


SHAPES: dict[str, Shape] = {
    "greater": _greater,
    "at-most": _at_most,
    "a-variant-meets-all": _a_variant_meets_all,
}
"""Comparisons for figures of kind "shape", by name."""
