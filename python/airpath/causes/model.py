"""The learned model of causes: for each one the probability that it costs a seventh or more.

Each cause has a forest: a sum of decision trees that gives the logarithm of the odds, calibrated on
cases that it was not learned from (`make causes`).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

LIKELIER_THAN_NOT = 0.5
ANY = "any"
"""The forest that tells whether anything costs a seventh."""
_FIELDS = ("feature", "threshold", "default_left", "right", "value")
_TYPES = (np.int16, np.float32, np.bool_, np.int16, np.float16)
_MOST_ODDS = 30
"""Bound: logarithms of odds beyond it are a probability of 0 or 1 in floating point."""
_STEPS = 1024
"""Values are whole multiples of one of these: that halves them in the file."""


@dataclass(frozen=True)
class Forest:
    """Trees of one cause. Nodes of all trees are in one array; a leaf has no feature (-1).

    The left one of the two nodes below a node is the next in the array, and the right one is
    ``right`` places further. ``value`` of a node is the mean of the leaves below it, by how many
    cases came there.
    """

    cause: str
    roots: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    default_left: NDArray[Any]
    right: NDArray[Any]
    value: NDArray[Any]
    slope: float = 1.0
    intercept: float = 0.0

    @classmethod
    def of(cls, cause: str, roots: Sequence[int], nodes: Iterable[tuple[Any, ...]]) -> Forest:
        """From nodes as tuples of the fields."""
        *others, values = zip(*nodes, strict=True)
        columns = zip([*others, np.round(np.array(values) * _STEPS) / _STEPS], _TYPES, strict=True)
        fields: list[NDArray[Any]] = [np.array(each, dtype=kind) for each, kind in columns]
        return cls._of(cause, np.array(roots, dtype=np.int16), fields)

    @classmethod
    def _of(
        cls, cause: str, roots: NDArray[Any], fields: Sequence[NDArray[Any]], *calibration: float
    ) -> Forest:
        feature, threshold, default_left, right, value = fields
        return cls(cause, roots, feature, threshold, default_left, right, value, *calibration)

    def calibrated(self, slope: float, intercept: float) -> Forest:
        """With a linear map of its logarithm of the odds."""
        return replace(self, slope=slope, intercept=intercept)

    def score(self, row: NDArray[np.float64]) -> float:
        """The sum of the trees' leaves."""
        return float(self.value[self._walk(row)[-1]].sum(dtype=float))

    def odds(self, row: NDArray[np.float64]) -> float:
        """The logarithm of the odds."""
        return self.slope * self.score(row) + self.intercept

    def moved(self, row: NDArray[np.float64], features: int) -> NDArray[np.float64]:
        """By how much each feature moved the logarithm of the odds, along the trees' paths."""
        found = np.zeros(features)
        paths = self._walk(row)
        for before, after in pairwise(paths):
            inner = before != after
            step = self.value[after[inner]].astype(float) - self.value[before[inner]]
            np.add.at(found, self.feature[before[inner]], step)
        return found * self.slope

    def _walk(self, row: NDArray[np.float64]) -> list[NDArray[Any]]:
        """The nodes of all trees at each depth, down to the leaves."""
        at = self.roots
        paths = [at]
        while True:
            feature = self.feature[at]
            inner = feature >= 0
            if not inner.any():
                return paths
            value = row[np.maximum(feature, 0)]
            left = np.where(np.isnan(value), self.default_left[at], value <= self.threshold[at])
            at = at + np.where(inner, np.where(left, 1, self.right[at]), 0)
            paths.append(at)


@dataclass(frozen=True)
class Answer:
    """``causes`` with their probabilities, the likeliest first.

    ``leaning``: if none is named although something is likelier there than not, all of them.
    """

    causes: list[tuple[str, float]]
    leaning: list[tuple[str, float]]


def answer(
    probabilities: Mapping[str, float], blame: float = 1.0, harmless: Collection[str] = ()
) -> Answer:
    """The best of: nothing, something unknown, a cause; and all causes likelier than not.

    The probability of something unknown is that of any cause, times that of none of the known ones.
    ``blame``: what it costs to name a cause where there is none, in right answers that are not
    given; at 1 the likeliest is best, as it is for ``harmless`` ones.
    """
    every = dict(probabilities)
    some = every.pop(ANY)
    likely = sorted(every.items(), key=lambda one: -one[1])
    cause, first = likely[0]
    # Each forest was learned by itself; that there is any cause is at least as likely as each one.
    any_cause = max(some, first)
    unknown = any_cause
    for _, sure in likely:
        unknown *= 1 - sure / any_cause
    if first >= max(unknown, (1.0 if cause in harmless else blame) * (1 - any_cause)):
        return Answer([one for one in likely if one[1] >= min(first, LIKELIER_THAN_NOT)], [])
    return Answer([], likely if any_cause > LIKELIER_THAN_NOT else [])


def of_any(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the forests tell of whether there is any cause; the last one is the one of `ANY`.

    Rows of logarithms of odds: by that forest, of the likeliest cause, and of any one of the causes
    if they were independent of each other; and 1.
    """
    own, every = odds[..., -1], np.clip(odds[..., :-1], -_MOST_ODDS, _MOST_ODDS)
    none = np.logaddexp(0, every).sum(axis=-1)
    some = none + np.log(-np.expm1(-none))
    return np.stack([own, every.max(axis=-1), some, np.ones_like(own)], axis=-1)


@dataclass(frozen=True)
class Model:
    """What was learned of all causes.

    ``together``: the weights of `of_any`.
    """

    names: tuple[str, ...]
    forests: Mapping[str, Forest]
    costs: Mapping[str, Forest]
    together: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        forests: Iterable[Forest],
        costs: Iterable[Forest],
        together: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    ) -> Model:
        """From forests of probabilities, of which the last one is of `ANY`, and of costs."""
        odds, cost = ({one.cause: one for one in some} for some in (forests, costs))
        return cls(tuple(names), odds, cost, np.array(together, dtype=float))

    def row(self, features: Mapping[str, float]) -> NDArray[np.float64]:
        """Features in the model's order; NaN for one that is not known."""
        return np.array(
            [features.get(name, np.nan) for name in self.names], dtype=np.float32
        ).astype(float)

    def probabilities(self, features: Mapping[str, float]) -> dict[str, float]:
        """By cause, and ``any``."""
        row = self.row(features)
        odds = np.array([one.odds(row) for one in self.forests.values()])
        odds[-1] = of_any(odds) @ self.together
        return dict(zip(self.forests, _probability(odds).tolist(), strict=True))

    def cost(self, cause: str, features: Mapping[str, float]) -> float:
        """The share of the rate, or of the delay, that the cause takes if it is there."""
        return 1 - float(np.exp(-max(0.0, self.costs[cause].score(self.row(features)))))

    def moved(self, cause: str, features: Mapping[str, float]) -> list[tuple[str, float]]:
        """Features by how much they raised the logarithm of the odds, the most first."""
        row = self.row(features)
        by_feature = self.forests[cause].moved(row, len(self.names))
        order = np.argsort(-by_feature, kind="stable")
        return [(self.names[index], float(by_feature[index])) for index in order]

    def write(self, file: Path | BinaryIO) -> None:
        """Write it; the same model gives the same bytes."""
        arrays: dict[str, NDArray[Any]] = {"names": np.array(self.names), "any": self.together}
        for what, forests in (("odds", self.forests), ("cost", self.costs)):
            for cause, one in forests.items():
                arrays[f"{what}/{cause}/roots"] = one.roots
                arrays[f"{what}/{cause}/calibration"] = np.array([one.slope, one.intercept])
                for name in _FIELDS:
                    arrays[f"{what}/{cause}/{name}"] = getattr(one, name)
        np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def read(cls, file: Path | BinaryIO) -> Model:
        """Raises ``ValueError`` and ``OSError``."""
        with np.load(file, allow_pickle=False) as raw:
            roots = [name.removesuffix("/roots") for name in raw.files if name.endswith("/roots")]
            found: dict[str, list[Forest]] = {"odds": [], "cost": []}
            for place in roots:
                what, _, cause = place.partition("/")
                fields = [raw[f"{place}/{name}"] for name in _FIELDS]
                calibration = map(float, raw[f"{place}/calibration"])
                found[what].append(Forest._of(cause, raw[f"{place}/roots"], fields, *calibration))
            return cls.of(raw["names"].tolist(), found["odds"], found["cost"], raw["any"])


def _probability(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-np.clip(odds, -_MOST_ODDS, _MOST_ODDS)))


@functools.cache
def packaged(name: str) -> Model:
    """A model that the package has (`make causes`)."""
    with resources.files("airpath.causes").joinpath(name).open("rb") as file:
        return Model.read(cast("BinaryIO", file))
