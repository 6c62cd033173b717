"""A suspect: a cause, or several that cannot be told apart from where the capture was taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

Groups = tuple[tuple[str, ...], ...]

GROUPS: Groups = (
    ("drx", "uplink-access", "ack-batching", "interrupt-moderation", "aggregation-timer"),
    ("random-loss", "radio-loss", "fragmentation"),
    ("policer", "short-queue"),
    ("one-way-path", "nat-binding"),
    ("mtu", "vpn"),
)
"""Causes that look alike to an observer. No others are merged."""


_DIGITS = 3
"""Of shares in JSON; times have microseconds."""
_OF = 100
"""Tests; no answer is sure to more than one in so many."""


class SuspectDocument(TypedDict):
    """A suspect in JSON."""

    causes: list[str]
    cost: float | None
    confidence: float | None
    flows: list[int]
    evidence: str
    frames: list[int]
    at_s: list[float]
    advice: str


@dataclass(frozen=True)
class Suspect:
    """A cause with its evidence.

    ``cost`` is the share of the rate, or of the round trip, that it is estimated to take away, 0 to
    1; None where the path was never full, so that nobody knows what it carries. ``confidence`` is
    the probability that it costs a seventh or more; None: it is seen, not inferred. ``frames`` are
    numbers of packets in the file to look at, from 1 on; ``at_s`` are seconds after its first
    packet.
    """

    cause: str
    cost: float | None
    evidence: str
    flows: tuple[int, ...]
    frames: tuple[int, ...] = ()
    at_s: tuple[float, ...] = ()
    advice: str = ""
    confidence: float | None = None
    groups: Groups = GROUPS
    """Causes that look alike in this capture."""

    @property
    def causes(self) -> tuple[str, ...]:
        """The cause and those that look the same from here."""
        return alike(self.cause, self.groups)

    def document(self) -> SuspectDocument:
        """For JSON."""
        return {
            "causes": list(self.causes),
            "cost": None if self.cost is None else round(float(self.cost), _DIGITS),
            "confidence": self.confidence,
            "flows": list(self.flows),
            "evidence": self.evidence,
            "frames": list(self.frames),
            "at_s": [round(at, 2 * _DIGITS) for at in self.at_s],
            "advice": self.advice,
        }


def alike(cause: str, groups: Groups = GROUPS) -> tuple[str, ...]:
    """The cause and those that look the same from one point."""
    return next((group for group in groups if cause in group), (cause,))


def in_words(likely: Iterable[tuple[str, float]]) -> str:
    """Causes and their probabilities."""
    return ", ".join(f"{' or '.join(alike(cause))} ({sure:.0%})" for cause, sure in likely)


def costs(suspect: SuspectDocument) -> str:
    """What it costs, and how sure that is, in words."""
    share = suspect["cost"]
    cost = "its cost is unknown" if share is None else f"costs about {share:.0%}"
    sure = suspect["confidence"]
    if sure is None:
        return cost
    right = max(1, min(_OF - 1, round(_OF * sure)))
    return f"{cost}; when airpath is this sure, it is right in {right} of {_OF} tests"
