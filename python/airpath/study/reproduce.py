"""Run published studies and judge each figure; ``airpath.study.verdicts`` lists the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from airpath.drivers.options import MOST_SEEDS, Progress
from airpath.errors import InputError
from airpath.study import verdicts
from airpath.study.bench import Bench
from airpath.study.definition import Figure, Published, Study, Value
from airpath.study.judge import Effect, Finding, Judge


class EffectDocument(TypedDict):
    """The effect of an alternative, in JSON."""

    figure: str
    assumption: str
    alternative: str
    obtained: object


class ReasonDocument(TypedDict):
    """Why a figure does not agree."""

    rests_on: str
    """``computed``, ``contradiction`` or ``not-given``."""
    text: str


class CellDocument(TypedDict):
    """One number of a figure: published and obtained values."""

    id: str
    published: Published
    obtained: Value | None
    ci95: list[float] | None
    verdict: str
    note: str
    reason: ReasonDocument | None


class OutcomeDocument(TypedDict):
    """One figure in JSON; for a figure with cells, ``obtained`` and ``ci95`` are lists."""

    id: str
    published: Published
    obtained: Value | list[Value | None] | None
    ci95: list[float] | list[list[float] | None] | None
    verdict: str
    note: str
    reason: ReasonDocument | None
    unit: str
    tolerance: float
    effects: list[EffectDocument]
    cells: NotRequired[list[CellDocument]]


class StudyDocument(TypedDict):
    """A study in JSON."""

    id: str
    figures: list[OutcomeDocument]
    parameters: list[dict[str, object]]
    counts: dict[str, object]


class ReproduceDocument(TypedDict):
    """The output of ``reproduce --json``."""

    studies: list[StudyDocument]
    counts: dict[str, object]
    verdicts: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """One figure: published against obtained."""

    figure: Figure
    findings: tuple[Finding, ...]
    """Those of its cells, or its own."""

    @property
    def verdict(self) -> str:
        """The figure's verdict; with cells, that of its predictions."""
        if not self.figure.cells:
            return self.findings[0].verdict
        return verdicts.together(finding.verdict for finding in self.findings)

    @property
    def obtained(self) -> Value | list[Value | None] | None:
        """What was obtained; of cells a list; None for a shape."""
        values = [finding.obtained for finding in self.findings]
        return values if self.figure.cells else values[0]

    @property
    def ci95(self) -> list[float] | list[list[float] | None] | None:
        """The confidence interval; of cells a list."""
        intervals = [finding.ci95 for finding in self.findings]
        return intervals if self.figure.cells else intervals[0]

    @property
    def note(self) -> str:
        """The reason for the verdict."""
        if not self.figure.cells:
            return self.findings[0].note
        return "; ".join(
            f"{finding.figure.id.rpartition('/')[2]}: {finding.note}"
            for finding in self.findings
            if finding.note
        )

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The effect of each alternative."""
        return tuple(effect for finding in self.findings for effect in finding.effects)

    def obtained_text(self) -> str:
        """What was obtained, with its unit; empty for a shape."""
        return ", ".join(filter(None, map(obtained_text, self.findings)))

    def as_dict(self) -> OutcomeDocument:
        """Return the entry of ``reproduce --json``."""
        entry: OutcomeDocument = {
            "id": self.figure.id,
            "published": self.figure.published,
            "obtained": self.obtained,
            "ci95": self.ci95,
            "verdict": self.verdict,
            "note": self.note,
            "reason": None if self.figure.cells else _reason(self.findings[0]),
            "unit": self.figure.unit,
            "tolerance": self.figure.tolerance,
            "effects": [
                {
                    "figure": effect.figure,
                    "assumption": effect.assumption,
                    "alternative": effect.alternative,
                    "obtained": effect.obtained,
                }
                for effect in self.effects
            ],
        }
        if self.figure.cells:
            entry["cells"] = [_cell(finding) for finding in self.findings]
        return entry


def obtained_text(finding: Finding) -> str:
    """What a figure or a cell obtained, with its unit; empty for a shape."""
    if finding.obtained is None:
        return ""
    return f"{finding.figure.text(finding.obtained)} {finding.figure.unit}"


def reproduce(
    study: Study,
    *,
    sets: Sequence[str] = (),
    repeat: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run every figure of a study, vary its assumptions, and judge."""
    count = study.repeat if repeat is None else repeat
    if not 1 <= count <= MOST_SEEDS:
        raise InputError(f"repeat must be from 1 to {MOST_SEEDS}")
    bench = Bench(study, tuple(sets), count, workers)
    findings = iter(Judge(study, bench).findings(progress))
    return [
        Outcome(figure, tuple(next(findings) for _ in figure.leaves)) for figure in study.figures
    ]


def counts(outcomes: Sequence[Outcome]) -> verdicts.Counts:
    """How many figures agree, each cell counted by itself."""
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    return verdicts.count(
        (finding.verdict for finding in findings),
        (finding.verdict for finding in findings if finding.seen),
        sum(finding.reason is not None for finding in findings),
    )


def document(studies: Sequence[tuple[Study, Sequence[Outcome]]]) -> ReproduceDocument:
    """Document of ``reproduce --json``."""
    return {
        "studies": [
            {
                "id": study.id,
                "figures": [outcome.as_dict() for outcome in outcomes],
                "parameters": [
                    {
                        "name": each.name,
                        "value": each.value,
                        "of": each.of,
                        "chosen_by": each.chosen_by,
                        "seen": each.seen,
                    }
                    for each in study.parameters
                ],
                "counts": counts(outcomes).as_dict(),
            }
            for study, outcomes in studies
        ],
        "counts": counts([each for _, outcomes in studies for each in outcomes]).as_dict(),
        "verdicts": {verdict.name: verdict.meaning for verdict in verdicts.VERDICTS},
    }


def _cell(finding: Finding) -> CellDocument:
    return {
        "id": finding.figure.id,
        "published": finding.figure.published,
        "obtained": finding.obtained,
        "ci95": finding.ci95,
        "verdict": finding.verdict,
        "note": finding.note,
        "reason": _reason(finding),
    }


def _reason(finding: Finding) -> ReasonDocument | None:
    reason = finding.reason
    return None if reason is None else {"rests_on": reason.rests_on, "text": reason.text}
