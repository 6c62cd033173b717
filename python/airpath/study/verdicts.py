"""The verdicts on published figures: one list, which the command, its JSON and the docs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not-reproduced"
UNDER_SPECIFIED = "under-specified"
CALIBRATED = "calibrated"
EXPLAINED_BY = "explained-by"
NOT_EXPRESSIBLE = "not-expressible"
HOLDS = "holds"
REFUTED = "refuted"
NOT_JUDGED = "not-judged"


class Verdict(NamedTuple):
    """A verdict, and what it means in one sentence."""

    name: str
    about: str
    """``value``, ``shape`` or both: which kind of figure has it."""
    meaning: str


VERDICTS = (
    Verdict(
        REPRODUCED,
        "value",
        "The obtained value is within the figure's tolerance, and its interval does not exclude "
        "the published value by more than a third of that value.",
    ),
    Verdict(
        CALIBRATED,
        "value",
        "The value is within the tolerance, but the figure was used to choose a parameter of the "
        "model, so it is an input and not a result. Each parameter is chosen by one figure only.",
    ),
    Verdict(
        UNDER_SPECIFIED,
        "value or shape",
        "The figure does not agree as specified, but does (or the relation holds) with another "
        "value of something that the source leaves open, while no other figure of the study leaves "
        "its tolerance. The note names the choice.",
    ),
    Verdict(
        NOT_REPRODUCED,
        "value",
        "The value is outside the tolerance, or its interval excludes the published value by more "
        "than a third of that value, and no listed choice brings it inside.",
    ),
    Verdict(NOT_EXPRESSIBLE, "value", "The model cannot express what was measured."),
    Verdict(HOLDS, "shape", "The relation on which the source bases its argument holds."),
    Verdict(
        EXPLAINED_BY,
        "shape",
        "The relation holds only with a fault that was searched for; the note names the fault.",
    ),
    Verdict(REFUTED, "shape", "The relation does not hold."),
    Verdict(NOT_JUDGED, "shape", "The relation was not judged; the note says why."),
)
"""All of them, in the order in which they are listed."""

AGREE = frozenset({REPRODUCED, HOLDS})
"""Verdicts by which a figure agrees with its source as a result of the model."""

ACCOUNTED = AGREE | {UNDER_SPECIFIED}
"""Verdicts by which the model does not contradict the source: its open choices may decide."""


class Counts(NamedTuple):
    """How many figures agree, of all and of those that were not used for calibration."""

    agree: int
    of_all: int
    not_calibrated: int
    by_verdict: dict[str, int]
    accounted: int
    """Those that agree and those that are under-specified."""
    seen: int
    """Figures that chose no parameter, but were seen when one was chosen."""
    seen_accounted: int
    """How many of ``accounted`` were seen in this way."""
    open: int
    """Those that neither agree nor were seen: each needs a reason."""
    reasons: int
    """How many of ``open`` have a written reason."""

    def text(self) -> str:
        """One line for people."""
        kinds = ", ".join(f"{count} {name}" for name, count in self.by_verdict.items())
        said = (
            f"{self.agree} of {self.of_all} figures agree, "
            f"{self.agree} of the {self.not_calibrated} not used for calibration; "
            f"with under-specified figures, {self.accounted} of {self.not_calibrated}"
        )
        if self.seen:
            said += (
                f", and {self.accounted - self.seen_accounted} of the "
                f"{self.not_calibrated - self.seen} not seen during calibration either"
            )
        said += f" ({kinds})"
        if self.open:
            said += (
                f"; of the {self.open} that do not agree, and were neither used nor seen, "
                f"{self.reasons} have a written reason"
            )
        return said

    def as_dict(self) -> dict[str, object]:
        """The entry of ``reproduce --json``."""
        return {
            "agree": self.agree,
            "figures": self.of_all,
            "figures_not_calibrated": self.not_calibrated,
            "accounted": self.accounted,
            "figures_not_seen": self.not_calibrated - self.seen,
            "accounted_not_seen": self.accounted - self.seen_accounted,
            "open": self.open,
            "reasons": self.reasons,
            "verdicts": self.by_verdict,
        }


def count(verdicts: Iterable[str], seen: Iterable[str] = (), reasons: int = 0) -> Counts:
    """Count verdicts; a calibrated figure is never among those that agree.

    ``seen`` repeats the verdicts of figures that were seen when a parameter was chosen;
    ``reasons``: how many figures that do not agree have a written reason.
    """
    found, looked_at = Counter(verdicts), Counter(seen)
    order = [verdict.name for verdict in VERDICTS]
    unknown = set(found) - set(order)
    if unknown:
        raise ValueError(f"not a verdict: {', '.join(sorted(unknown))}")
    total = found.total()
    agree = sum(found[name] for name in AGREE)
    seen_agree = sum(looked_at[name] for name in AGREE)
    not_seen = total - found[CALIBRATED] - (looked_at.total() - looked_at[CALIBRATED])
    return Counts(
        agree=agree,
        of_all=total,
        not_calibrated=total - found[CALIBRATED],
        by_verdict={name: found[name] for name in order if found[name]},
        accounted=sum(found[name] for name in ACCOUNTED),
        seen=looked_at.total() - looked_at[CALIBRATED],
        seen_accounted=sum(looked_at[name] for name in ACCOUNTED),
        open=not_seen - (agree - seen_agree),
        reasons=reasons,
    )


def together(verdicts: Iterable[str]) -> str:
    """The verdict on a figure of several cells: that of its predictions, the worst of them.

    Only a figure all of whose cells chose a parameter is calibrated.
    """
    predictions = [verdict for verdict in verdicts if verdict != CALIBRATED]
    order = (NOT_EXPRESSIBLE, NOT_REPRODUCED, UNDER_SPECIFIED, REPRODUCED)
    return next((verdict for verdict in order if verdict in predictions), CALIBRATED)
