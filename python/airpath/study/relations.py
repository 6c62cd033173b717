"""Relations that a source states in words: figures of kind "shape".

A figure's ``shape`` table names one of ``RELATIONS`` as ``compare``::

    { compare = "greater", metric = "…", this = { set = […] }, than = { set = […] } }
    { compare = "at-most", metric = "…", limit = 3, set = […] }     # or "at-least"
    { compare = "only", metric = "…", values = ["…", "…"], set = […] }   # no seed has another one
    { compare = "all", of = [{ compare = …}, …] }
    { compare = "a-variant-meets-all", variants = [{ label, set }],
      conditions = [{ label, metric, limit, set }] }       # met at the limit or below

A condition may also have a ``least``, at which or above which it is met, and a ``scale``.

``greater`` takes the mean over the seeds, or as ``statistic`` the "deviation" (standard deviation)
or the "variation" (deviation over mean); ``factor``: so many times greater; each side may have
a ``metric`` and a ``scenario`` of its own.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from airpath.base.text import digits
from airpath.errors import InputError
from airpath.runs.summary import number
from airpath.study.definition import Condition, Measured, Shape, Variant


class Measure(Protocol):
    """Runs the figure's scenario, or another one of the study."""

    def __call__(self, sets: Sequence[str], path: str, scenario: str | None = None) -> list[Any]:
        """Each seed's value of a metric, with these sets on top of the figure's."""


class Judged(NamedTuple):
    """Whether a relation holds, and what was found."""

    holds: bool
    note: str
    explained_by: str = ""
    """The fault without which it does not hold."""


Relation = Callable[[Shape, Measure], Judged]
"""Takes the ``shape`` table and how to measure."""


def judge_relation(figure: str, shape: Shape, measure: Measure) -> Judged:
    """Whether a relation holds, and what was found; ``figure`` is its name for messages."""
    compare = str(shape.get("compare", ""))
    if compare == "all":
        parts = [judge_relation(figure, part, measure) for part in shape["of"]]
        return Judged(
            all(part.holds for part in parts),
            "; ".join(part.note for part in parts),
            ", ".join(part.explained_by for part in parts if part.explained_by),
        )
    if compare not in RELATIONS:
        known = ", ".join([*RELATIONS, "all"])
        raise InputError(f"figure {figure}: no comparison '{compare}'; available: {known}")
    judged = RELATIONS[compare](shape, measure)
    label = shape.get("label")
    return judged._replace(note=f"{label}: {judged.note}") if label else judged


def _greater(shape: Shape, measure: Measure) -> Judged:
    statistic = str(shape.get("statistic", "mean"))
    if statistic not in STATISTICS:
        known = ", ".join(STATISTICS)
        raise InputError(f"no statistic '{statistic}'; available: {known}")

    def over_seeds(side: Measured) -> float:
        path = side["metric"] if "metric" in side else shape["metric"]
        values = measure(side.get("set", []), path, side.get("scenario"))
        return STATISTICS[statistic]([number(value, path) for value in values])

    this, than = over_seeds(shape["this"]), over_seeds(shape["than"])
    factor = float(shape.get("factor", 1.0))
    needed = "" if factor == 1.0 else f", needs {digits(factor)} times that"
    return Judged(this > than * factor, f"{digits(this)} against {digits(than)}{needed}")


def _at_most(shape: Shape, measure: Measure) -> Judged:
    path = shape["metric"]
    value = statistics.fmean(number(each, path) for each in measure(shape.get("set", []), path))
    return Judged(
        value <= float(shape["limit"]), f"{digits(value)}, limit {digits(shape['limit'])}"
    )


def _at_least(shape: Shape, measure: Measure) -> Judged:
    path = shape["metric"]
    value = statistics.fmean(number(each, path) for each in measure(shape.get("set", []), path))
    return Judged(
        value >= float(shape["limit"]), f"{digits(value)}, at least {digits(shape['limit'])}"
    )


def _only(shape: Shape, measure: Measure) -> Judged:
    found = Counter(str(value) for value in measure(shape.get("set", []), shape["metric"]))
    note = ", ".join(f"{value} {count}" for value, count in sorted(found.items()))
    return Judged(set(found) <= set(shape["values"]), note)


def _a_variant_meets_all(shape: Shape, measure: Measure) -> Judged:
    met: list[Variant] = []
    rows = []
    for variant in shape["variants"]:
        values = [variant_value(variant, condition, measure) for condition in shape["conditions"]]
        meets = all(map(condition_met, shape["conditions"], values))
        met += [variant] * meets
        row = ", ".join(map(digits, values))
        rows.append(f"{variant['label']}: {row}{' (all met)' if meets else ''}")
    head = ", ".join(
        f"{condition['label']} {condition_text(condition)}" for condition in shape["conditions"]
    )
    # A variant that sets nothing is no fault.
    plain = any(not variant["set"] for variant in met)
    explained = "" if plain else " or ".join(str(variant["label"]) for variant in met)
    return Judged(bool(met), f"{head}. {'; '.join(rows)}", explained)


def variant_value(variant: Variant, condition: Condition, measure: Measure) -> float:
    """What a variant obtains of a condition's metric: the mean over the seeds."""
    path = condition["metric"]
    sets = [*variant["set"], *condition.get("set", [])]
    values = measure(sets, path, condition.get("scenario"))
    scale = float(condition.get("scale", 1))
    return statistics.fmean(number(value, path) for value in values) * scale


def condition_met(condition: Condition, value: float) -> bool:
    """Whether a value is within a condition's bounds."""
    return float(condition.get("least", -math.inf)) <= value <= float(condition["limit"])


def condition_text(condition: Condition) -> str:
    """A condition's bounds in words."""
    limit = digits(condition["limit"])
    least = condition.get("least")
    return f"at most {limit}" if least is None else f"{digits(least)} to {limit}"


def _deviation(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _variation(values: list[float]) -> float:
    return _deviation(values) / statistics.fmean(values)


RELATIONS: dict[str, Relation] = {
    "greater": _greater,
    "at-most": _at_most,
    "at-least": _at_least,
    "only": _only,
    "a-variant-meets-all": _a_variant_meets_all,
}
"""Comparisons by name."""

STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "deviation": _deviation,
    "variation": _variation,
}
"""Statistics over the seeds by name."""
