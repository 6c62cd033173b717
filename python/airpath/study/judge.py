"""From what was obtained to a verdict on each figure.

A choice that the source leaves open makes a figure under-specified only if it moves no other figure
of the study out, so choices that reach a figure are tried on all others that they concern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from airpath.analysis.statistics import mean_interval, percent_above
from airpath.drivers.options import Progress
from airpath.runs.summary import number
from airpath.study import verdicts
from airpath.study.bench import Bench, Request
from airpath.study.definition import Assumption, Figure, Reason, Study, Value
from airpath.study.relations import Judged, judge_relation

STEPS = 5
"""Bisections of an assumption's range in search of a value that reaches a figure."""


@dataclass(frozen=True)
class Effect:
    """What one alternative of one assumption does to one figure."""

    figure: str
    assumption: str
    alternative: str
    obtained: Value
    accepted: bool
    """Whether it meets the publication."""


class Obtained(NamedTuple):
    """What a figure obtained over the seeds; a range has no interval."""

    value: Value
    bounds: list[float] | None


@dataclass(frozen=True)
class Finding:
    """The verdict on a figure or a cell of one, and what it rests on."""

    figure: Figure
    obtained: Value | None
    ci95: list[float] | None
    verdict: str
    note: str = ""
    effects: tuple[Effect, ...] = field(default=())
    seen: bool = False
    """It chose no parameter, but was looked at when one was chosen."""

    @property
    def is_open(self) -> bool:
        """Whether it neither agrees nor was chosen or seen, so that it needs a reason."""
        return self.verdict not in verdicts.AGREE | {verdicts.CALIBRATED} and not self.seen

    @property
    def reason(self) -> Reason | None:
        """Why it does not agree; None where it does."""
        return self.figure.reason if self.is_open else None

    @property
    def reason_text(self) -> str:
        """The reason and what it rests on; empty without one."""
        return "" if self.reason is None else f"{self.reason.text} ({self.reason.rests_on})"


class Choice(NamedTuple):
    """A choice that the source leaves open."""

    assumption: Assumption
    label: str
    sets: tuple[str, ...]
    metric: str | None = None


class Judge:
    """Judges the figures and cells of a study."""

    def __init__(self, study: Study, bench: Bench) -> None:
        self.study, self.bench = study, bench

    def findings(self, progress: Progress | None = None) -> list[Finding]:
        """The verdict on each of ``study.leaves``."""
        judged = [figure for figure in self.study.leaves if not figure.left_out]
        wanted = [request for figure in judged for request in self._requests(figure)]
        for figure in judged:
            for choice in self._choices(figure):
                wanted += self._requests(figure, choice)
        self.bench.obtain(wanted, progress)
        return [self._with_seen(self._finding(figure)) for figure in self.study.leaves]

    def _with_seen(self, finding: Finding) -> Finding:
        parameter = self.study.seen_for(finding.figure.id)
        if parameter is None or finding.verdict == verdicts.CALIBRATED:
            return finding
        said = f"was seen when {parameter.name} was chosen: {parameter.value}"
        note = f"{said}; {finding.note}" if finding.note else said
        return replace(finding, note=note, seen=True)

    def _finding(self, figure: Figure) -> Finding:
        if figure.left_out:
            shape = figure.kind == "shape"
            verdict = verdicts.NOT_JUDGED if shape else verdicts.NOT_EXPRESSIBLE
            return Finding(figure, None, None, verdict, figure.left_out)
        if figure.kind == "shape":
            shape_verdict, note = self._shape(figure)
            return Finding(figure, None, None, shape_verdict, note)
        return self._value(figure)

    def _value(self, figure: Figure) -> Finding:
        base = self.obtained(figure)
        choices = self._choices(figure)
        effects = tuple(
            Effect(
                figure.id,
                choice.assumption.id,
                choice.label,
                found.value,
                figure.accepts(*found),
            )
            for choice in choices
            for found in [self.obtained(figure, choice)]
        )
        parameter = self.study.chose(figure.id)
        if figure.accepts(*base):
            verdict = verdicts.REPRODUCED if parameter is None else verdicts.CALIBRATED
            note = (
                ""
                if parameter is None
                else f"{parameter.name} was chosen to match it: {parameter.value}"
            )
            return Finding(figure, base.value, base.bounds, verdict, note, effects)
        verdict, note = self._reached(figure, base.value, choices)
        if figure.accepts(base.value) and base.bounds is not None:
            said = " to ".join(map(figure.text, base.bounds))
            note = f"the interval, {said}, excludes it by more than a third; {note}".rstrip("; ")
        if parameter is not None:
            note = (
                f"although {parameter.name} was chosen to match it: {parameter.value}; {note}"
            ).rstrip("; ")
        return Finding(figure, base.value, base.bounds, verdict, note, effects)

    def _shape(self, figure: Figure) -> tuple[str, str]:
        judged = self._relation(figure)
        if not judged.holds:
            return self._made_to_hold(figure, judged.note)
        if judged.explained_by:
            return verdicts.EXPLAINED_BY, f"{judged.explained_by}. {judged.note}"
        return verdicts.HOLDS, judged.note

    def _made_to_hold(self, figure: Figure, note: str) -> tuple[str, str]:
        """Whether a choice makes a relation hold that does not, and what it does to the others."""
        reached: list[tuple[int, str]] = []
        moved: list[str] = []
        for choice in self._choices(figure):
            judged = self._relation(figure, choice)
            if not judged.holds:
                continue
            self._note(figure, choice, judged.note, reached, moved)
        if reached:
            return verdicts.UNDER_SPECIFIED, f"{note}; {self._depends(reached)}"
        return verdicts.REFUTED, "; ".join([note, *moved])

    def _note(
        self,
        figure: Figure,
        choice: Choice,
        obtained: str,
        reached: list[tuple[int, str]],
        moved: list[str],
    ) -> None:
        """Note a choice that reaches a figure, among those that move another one out or not."""
        within, others = self._inside(figure, choice)
        told = f"{choice.assumption.name}: {choice.label} ({obtained})"
        if others:
            moved.append(f"{told} moves {', '.join(others)} out")
        else:
            reached.append((within, told))

    def _depends(self, reached: Sequence[tuple[int, str]]) -> str:
        """The choices that reach a figure, the one with which most figures are inside first."""
        of_all = len(self._judged())
        told = "; ".join(
            f"{told}, {within} of {of_all} figures inside"
            for within, told in sorted(reached, key=lambda each: -each[0])
        )
        return f"depends on what the source leaves open: {told}"

    def _reached(self, figure: Figure, base: Value, choices: Sequence[Choice]) -> tuple[str, str]:
        """Whether a choice reaches a figure that is out, and what it does to the others."""
        reached: list[tuple[int, str]] = []
        moved: list[str] = []
        for assumption in self.study.assumptions:
            own = [choice for choice in choices if choice.assumption is assumption]
            values = [base, *(self.obtained(figure, choice).value for choice in own)]
            inside = [each for each in own if _reaches(figure, self.obtained(figure, each), base)]
            if not inside:
                between = self._between(figure, assumption, own, base)
                inside = [between] if between is not None else []
            for choice in inside:
                self._note(figure, choice, _span(figure, values), reached, moved)
        if reached:
            return verdicts.UNDER_SPECIFIED, self._depends(reached)
        values = [base, *(self.obtained(figure, choice).value for choice in choices)]
        note = f"the assumptions move it only from {_span(figure, values)}" if choices else ""
        return verdicts.NOT_REPRODUCED, "; ".join(moved) or note

    def _between(
        self, figure: Figure, assumption: Assumption, bounds: Sequence[Choice], base: Value
    ) -> Choice | None:
        """A value between the two bounds of an assumption that reaches a figure, by bisection."""
        if not assumption.continuous or len(bounds) != 2:
            return None
        ends = [float(choice.sets[0].partition("=")[2]) for choice in bounds]
        found = [self.obtained(figure, choice).value for choice in bounds]
        target = figure.low if figure.low is not None else figure.high
        if target is None or any(isinstance(value, tuple) for value in found):
            return None
        rises = [value < target for value in found if not isinstance(value, tuple)]
        if rises[0] == rises[1]:
            return None
        key = bounds[0].sets[0].partition("=")[0]
        whole = all(end.is_integer() for end in ends)
        for _ in range(STEPS):
            middle: float = sum(ends) / 2
            text = f"{middle:.0f}" if whole else f"{middle:.6g}"
            choice = Choice(assumption, f"{key.rsplit('.', 1)[-1]} = {text}", (f"{key}={text}",))
            self.bench.obtain(self._requests(figure, choice))
            found_between = self.obtained(figure, choice)
            value = found_between.value
            if _reaches(figure, found_between, base):
                return choice
            if isinstance(value, tuple):
                return None
            ends[0 if (value < target) == rises[0] else 1] = middle
        return None

    def _judged(self) -> list[Figure]:
        return [figure for figure in self.study.leaves if not figure.left_out]

    def _inside(self, reached: Figure, choice: Choice) -> tuple[int, list[str]]:
        """How many figures of the study are in with a choice, and which it moves out.

        It holds for all that run the same scenario, also where the assumption names others.
        """
        concerned = [each for each in self._judged() if _holds_for(choice, each, reached.scenario)]
        self.bench.obtain(request for each in concerned for request in self._requests(each, choice))
        within, moved = 0, []
        for figure in self._judged():
            was_in = self._is_in(figure, None)
            is_in = self._is_in(figure, choice) if figure in concerned else was_in
            within += is_in
            if was_in and not is_in:
                moved.append(_short(self.study, figure))
        return within, moved

    def _is_in(self, figure: Figure, choice: Choice | None) -> bool:
        if figure.kind == "shape":
            return self._relation(figure, choice).holds
        return figure.accepts(*self.obtained(figure, choice))

    def obtained(self, figure: Figure, choice: Choice | None = None) -> Obtained:
        """What a figure obtains, as the study has it or with a choice."""
        columns = [
            [number(value, request.metric) * figure.scale for value in self.bench.values(request)]
            for request in self._value_requests(figure, choice)
        ]
        if len(columns) == 1:
            interval = mean_interval(columns[0])
        elif figure.against is not None:
            interval = percent_above(*columns)
        else:
            low, high = (mean_interval(column).mean for column in columns)
            return Obtained((low, high), None)
        return Obtained(interval.mean, interval.bounds)

    def _choices(self, figure: Figure) -> list[Choice]:
        """What moves a figure; of a relation, what names it.

        Anything tells two rates apart that are nearly alike.
        """
        shape = figure.kind == "shape"
        return [
            Choice(assumption, each.label, each.sets, each.metric)
            for assumption in self.study.assumptions
            if assumption.concerns(figure.id) and (assumption.figures or not shape)
            for each in assumption.alternatives
        ]

    def _requests(self, figure: Figure, choice: Choice | None = None) -> list[Request]:
        if figure.kind == "shape":
            asked: list[Request] = []
            self._relation(figure, choice, asked)
            return asked
        return self._value_requests(figure, choice)

    def _value_requests(self, figure: Figure, choice: Choice | None) -> list[Request]:
        sets = choice.sets if choice is not None else ()
        metrics = figure.metrics
        if choice is not None and choice.metric is not None:
            metrics = (choice.metric,)
        variants = [figure.sets] if figure.against is None else [figure.sets, figure.against]
        return [
            Request(figure.scenario, (*variant, *sets), metric)
            for variant in variants
            for metric in metrics
        ]

    def _relation(
        self, figure: Figure, choice: Choice | None = None, asked: list[Request] | None = None
    ) -> Judged:
        """Judge a shape; with ``asked``, only note what it asks for."""
        more = choice.sets if choice is not None else ()

        def measure(sets: Sequence[str], path: str, scenario: str | None = None) -> list[Any]:
            where = figure.scenario if scenario is None else scenario
            request = Request(where, (*figure.sets, *sets, *more), path)
            if asked is None:
                return self.bench.values(request)
            asked.append(request)
            return [1.0]

        return judge_relation(figure.id, figure.shape, measure)


def _reaches(figure: Figure, obtained: Obtained, base: Value) -> bool:
    """Whether a choice brings a figure in: nearer than it was, not by a wider interval alone."""
    return figure.accepts(*obtained) and figure.miss(obtained.value) < figure.miss(base)


def _holds_for(choice: Choice, figure: Figure, scenario: str) -> bool:
    """Whether a choice that was made for a scenario changes what a figure runs."""
    if choice.assumption.concerns(figure.id):
        return True
    if figure.scenario != scenario or "scenario" in str(figure.shape):
        return False
    # What the figure itself varied is not open in it.
    own = {entry.partition("=")[0] for entry in figure.sets}
    return not own & {entry.partition("=")[0] for entry in choice.sets}


def _short(study: Study, figure: Figure) -> str:
    return figure.id.removeprefix(f"{study.id}/")


def _span(figure: Figure, values: list[Value]) -> str:
    """The smallest and the largest; of ranges, those with the lowest and the highest end."""
    low = min(values, key=lambda value: value[0] if isinstance(value, tuple) else value)
    high = max(values, key=lambda value: value[1] if isinstance(value, tuple) else value)
    word = "and" if isinstance(low, tuple) else "to"
    return f"{figure.text(low)} {word} {figure.text(high)} {figure.unit}"
