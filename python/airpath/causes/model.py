"""The learned model of causes: for each one the probability that it costs a seventh or more.

Each cause has a forest: a sum of decision trees that gives its score. A linear layer turns the
scores of all forests into the logarithm of each cause's odds (stacked generalisation, Wolpert
1992). Its weights were learned from scores of cases that the trees had not seen (`make causes`).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

LIKELIER_THAN_NOT = 0.5
_HARMLESS = 2.0
"""What naming a cause wrongly costs that blames neither the path nor a host, in right answers."""
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

    @classmethod
    def of(cls, cause: str, roots: Sequence[int], nodes: Iterable[tuple[Any, ...]]) -> Forest:
        """From nodes as tuples of the fields."""
        *others, values = zip(*nodes, strict=True)
        columns = zip([*others, np.round(np.array(values) * _STEPS) / _STEPS], _TYPES, strict=True)
        fields: list[NDArray[Any]] = [np.array(each, dtype=kind) for each, kind in columns]
        return cls._of(cause, np.array(roots, dtype=np.int16), fields)

    @classmethod
    def _of(cls, cause: str, roots: NDArray[Any], fields: Sequence[NDArray[Any]]) -> Forest:
        feature, threshold, default_left, right, value = fields
        return cls(cause, roots, feature, threshold, default_left, right, value)

    def score(self, row: NDArray[np.float64]) -> float:
        """The sum of the trees' leaves."""
        return float(self.value[self._walk(row)[-1]].sum(dtype=float))

    def moved(self, row: NDArray[np.float64], features: int) -> NDArray[np.float64]:
        """By how much each feature moved the score, along the trees' paths."""
        found = np.zeros(features)
        paths = self._walk(row)
        for before, after in pairwise(paths):
            inner = before != after
            step = self.value[after[inner]].astype(float) - self.value[before[inner]]
            np.add.at(found, self.feature[before[inner]], step)
        return found

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
    given; at 1 the likeliest is best. ``harmless`` ones cost two at most.
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
    cost = min(blame, _HARMLESS) if cause in harmless else blame
    if first >= max(unknown, cost * (1 - any_cause)):
        return Answer([one for one in likely if one[1] >= min(first, LIKELIER_THAN_NOT)], [])
    return Answer([], likely if any_cause > LIKELIER_THAN_NOT else [])


def layer_inputs(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The columns that the layer weighs: one row for each cause, and the last one for `ANY`.

    The columns are the row's own score; the highest score of any cause; the score of "any of them"
    if causes were independent of each other; the probability that each cause's score stands for;
    and 1. ``scores`` are of the causes and, last, of `ANY`; there may be many rows of them.
    """
    own = np.clip(scores, -_MOST_ODDS, _MOST_ODDS)
    every = own[..., :-1]
    none = np.logaddexp(0, every).sum(axis=-1, keepdims=True)
    some = none + np.log(-np.expm1(-none))
    most = every.max(axis=-1, keepdims=True)
    shared = np.concatenate([most, some, _probability(every), np.ones_like(none)], axis=-1)
    return np.concatenate(
        [own[..., None], np.broadcast_to(shared[..., None, :], (*own.shape, shared.shape[-1]))],
        axis=-1,
    )


@dataclass(frozen=True)
class Model:
    """What was learned of all causes.

    ``layer``: the weights of `layer_inputs`, a row for each forest.
    """

    names: tuple[str, ...]
    forests: Mapping[str, Forest]
    costs: Mapping[str, Forest]
    layer: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        forests: Iterable[Forest],
        costs: Iterable[Forest],
        layer: NDArray[np.float64],
    ) -> Model:
        """From forests of scores, of which the last one is of `ANY`, and of costs."""
        scores, cost = ({one.cause: one for one in some} for some in (forests, costs))
        return cls(tuple(names), scores, cost, layer)

    def row(self, features: Mapping[str, float]) -> NDArray[np.float64]:
        """Features in the model's order; NaN for one that is not known."""
        return np.array(
            [features.get(name, np.nan) for name in self.names], dtype=np.float32
        ).astype(float)

    def probabilities(self, features: Mapping[str, float]) -> dict[str, float]:
        """By cause, and ``any``."""
        row = self.row(features)
        scores = np.array([one.score(row) for one in self.forests.values()])
        odds = (layer_inputs(scores) * self.layer).sum(axis=-1)
        return dict(zip(self.forests, _probability(odds).tolist(), strict=True))

    def cost(self, cause: str, features: Mapping[str, float]) -> float:
        """The share of the rate, or of the delay, that the cause takes if it is there."""
        return 1 - float(np.exp(-max(0.0, self.costs[cause].score(self.row(features)))))

    def moved(self, cause: str, features: Mapping[str, float]) -> list[tuple[str, float]]:
        """Features by how much they raised the cause's score, the most first."""
        row = self.row(features)
        by_feature = self.forests[cause].moved(row, len(self.names))
        order = np.argsort(-by_feature, kind="stable")
        return [(self.names[index], float(by_feature[index])) for index in order]

    def write(self, file: Path | BinaryIO) -> None:
        """Write it; the same model gives the same bytes.

        Thresholds of a feature are few, and a node has the number of its own among them.
        """
        forests = [*self.forests.values(), *self.costs.values()]
        every = {name: np.concatenate([getattr(one, name) for one in forests]) for name in _FIELDS}
        roots = np.concatenate([one.roots for one in forests])
        cuts = [
            np.unique(every["threshold"][every["feature"] == index])
            for index in range(len(self.names))
        ]
        number = np.zeros(len(every["feature"]), dtype=np.min_scalar_type(max(map(len, cuts))))
        for index, of_feature in enumerate(cuts):
            ours = every["feature"] == index
            number[ours] = np.searchsorted(of_feature, every["threshold"][ours])
        np.savez_compressed(
            file,
            allow_pickle=False,
            names=np.array(self.names),
            layer=self.layer,
            causes=np.array(list(self.forests)),
            costs=np.array(list(self.costs)),
            trees=np.array([len(one.roots) for one in forests]),
            nodes=np.array([len(one.feature) for one in forests]),
            roots=roots,
            cuts=np.concatenate(cuts),
            cut_counts=np.array([len(one) for one in cuts]),
            cut=number,
            **{name: every[name] for name in _FIELDS if name != "threshold"},
        )

    @classmethod
    def read(cls, file: Path | BinaryIO) -> Model:
        """Raises ``ValueError`` and ``OSError``."""
        with np.load(file, allow_pickle=False) as packed:
            raw = {name: packed[name] for name in packed.files}
        first = np.cumsum(raw["cut_counts"]) - raw["cut_counts"]
        is_inner = raw["feature"] >= 0
        raw["threshold"] = np.zeros(len(is_inner), dtype=np.float32)
        which = first[raw["feature"][is_inner]] + raw["cut"][is_inner]
        raw["threshold"][is_inner] = raw["cuts"][which]
        causes = [*raw["causes"].tolist(), *raw["costs"].tolist()]
        ends = np.cumsum(raw["nodes"])[:-1]
        fields = zip(*(np.split(raw[name], ends) for name in _FIELDS), strict=True)
        roots = np.split(raw["roots"], np.cumsum(raw["trees"])[:-1])
        forests = [
            Forest._of(cause, of_it, nodes)
            for cause, of_it, nodes in zip(causes, roots, fields, strict=True)
        ]
        count = len(raw["causes"])
        return cls.of(raw["names"].tolist(), forests[:count], forests[count:], raw["layer"])


def _probability(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-np.clip(odds, -_MOST_ODDS, _MOST_ODDS)))


@functools.cache
def packaged(name: str) -> Model:
    """A model that the package has (`make causes`)."""
    with resources.files("airpath.causes").joinpath(name).open("rb") as file:
        return Model.read(cast("BinaryIO", file))
