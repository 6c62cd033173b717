"""Learns causes from drawn rows: for each cause a sum of trees, and a layer above them.

The layer is learned from the scores of trees that were learned without the case (cross-fitting).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpath.causes.model import ANY, Forest, Model, layer_inputs
from airpath.causes.suspect import alike
from airpath_dev.planted.draft import Pick

from .rows import Row

_SETTINGS = {
    "objective": "binary",
    "min_data_in_leaf": 8,
    "lambda_l2": 5.0,
    "feature_fraction": 0.35,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "max_bin": 63,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 2,
    "verbosity": -1,
    "seed": 1,
}
_WINDOWS = ("window_5", "window_25", "window_50", "window_75", "window_steady")
_SIZES = ("window_bdp", "window_to_flight")
"""Logarithms of windows."""
_MOST_COST = 10.0
"""What is left of the rate at least: a tenth."""
_FEWER_OF_COSTS = 5
_LARGEST = float(np.finfo(np.float32).max)
_FOLDS = 4
"""Parts of the cases: trees that were learned from the others give a part's scores."""
_PULL = 1.0
"""How strongly the layer's weights are pulled to the forest's own score alone (ridge).

Rare causes have few cases.
"""


@dataclass(frozen=True)
class Trees:
    """How many of a forest, the leaves of each, and how much each one learns."""

    count: int
    leaves: int
    rate: float = 0.1


def group_of(cause: str) -> str:
    """The first of the causes that look alike."""
    return alike(cause)[0]


TRACELESS = ("host-processor", "modem-ceiling")
"""A hop that serves a fixed number of packets per second is a link with that rate, for one flow."""


def costs_of(costs: Mapping[str, float]) -> dict[str, float]:
    """What each group of causes that leave a trace costs, as a logarithm, by its first cause."""
    found: dict[str, float] = {}
    for cause, cost in costs.items():
        if cause not in TRACELESS:
            found[group_of(cause)] = max(cost, found.get(group_of(cause), 0.0))
    return found


def labels_of(row: Row) -> set[str]:
    """The causes that cost something in the row and leave a trace, the first of each group."""
    return set(costs_of(row["costs"]))


def learn(rows: Sequence[Row], trees: Trees) -> Model:
    """Learn from rows."""
    usable = [one for one in rows if "features" in one]
    names = list(usable[0]["features"])
    values = np.array([[one["features"][name] for name in names] for one in usable])
    _blur(names, values, [one["case"] for one in usable])
    labels = [labels_of(one) for one in usable]
    cases = np.array([one["case"] for one in usable])
    fold = scattered(cases) % _FOLDS
    table = _Table(values)
    causes = sorted(set().union(*labels))
    targets = {
        cause: np.array([bool(one) if cause == ANY else cause in one for one in labels])
        for cause in [*causes, ANY]
    }
    learned = [_forest(cause, trees, table, target, fold) for cause, target in targets.items()]
    told = layer_inputs(np.stack([scores for _, scores in learned], axis=-1))
    layer = [_weights(told[:, index], each) for index, each in enumerate(targets.values())]
    costs = []
    for cause in causes:
        gains = np.array([costs_of(one["costs"]).get(cause, 0.0) for one in usable])
        gains = np.minimum(gains, math.log(_MOST_COST))
        costs.append(_costs(cause, trees, table, targets[cause], gains))
    return Model.of(names, [forest for forest, _ in learned], costs, np.stack(layer))


def _blur(names: Sequence[str], table: NDArray[np.float64], cases: Sequence[int]) -> None:
    """Blur windows: simulated ones are exact, and a kernel's move with the sizes of its buffers."""
    columns, sizes = ([names.index(name) for name in each if name in names] for each in
                      (_WINDOWS, _SIZES))  # fmt: skip
    for row, case in zip(table, cases, strict=True):
        pick = Pick(f"airpath windows {case}")
        if columns and pick.chance(0.5):
            row[columns] *= pick.uniform(0.85, 1)
            row[sizes] += pick.uniform(-0.15, 0.1)


class _Table:
    """Features of all rows. All trees share the few thresholds of a feature."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        import lightgbm

        self.values = values
        self._cut = lightgbm.Dataset(values, params=dict(_SETTINGS), free_raw_data=False)

    def booster(
        self,
        settings: dict[str, Any],
        rows: NDArray[np.bool_],
        target: NDArray[np.float64],
        rounds: int,
    ) -> Any:
        """Learn the target from some of the rows."""
        import lightgbm

        some = lightgbm.Dataset(self.values[rows], target[rows], reference=self._cut)
        return lightgbm.train(settings, some, rounds)


def _costs(
    cause: str,
    trees: Trees,
    table: _Table,
    target: NDArray[np.bool_],
    gains: NDArray[np.float64],
) -> Forest:
    settings = _SETTINGS | {
        "objective": "regression",
        "num_leaves": trees.leaves,
        "learning_rate": trees.rate,
    }
    return _flattened(cause, table.booster(settings, target, gains, trees.count // _FEWER_OF_COSTS))


def scattered(cases: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of cases, mixed: causes follow each other in the order of the numbers (Knuth)."""
    mixed: NDArray[np.int64] = (cases.astype(np.int64) * 2_654_435_761 % 2**32) >> 12
    return mixed


def _forest(
    cause: str,
    trees: Trees,
    table: _Table,
    target: NDArray[np.bool_],
    fold: NDArray[np.int64],
) -> tuple[Forest, NDArray[np.float64]]:
    """The forest, learned from all cases, and each case's score by trees learned from others."""
    settings = _SETTINGS | {"num_leaves": trees.leaves, "learning_rate": trees.rate}
    wanted = target.astype(float)
    scores = np.zeros(len(target))
    for number in range(_FOLDS):
        held = fold == number
        booster = table.booster(settings, ~held, wanted, trees.count)
        scores[held] = booster.predict(table.values[held], raw_score=True)
    whole = table.booster(settings, fold >= 0, wanted, trees.count)
    return _flattened(cause, whole), scores


def _flattened(cause: str, booster: Any) -> Forest:
    nodes: list[tuple[int, float, bool, int, float]] = []
    roots = [_flat(tree["tree_structure"], nodes) for tree in booster.dump_model()["tree_info"]]
    return Forest.of(cause, roots, nodes)


def _flat(node: dict[str, Any], nodes: list[tuple[int, float, bool, int, float]]) -> int:
    """Append a node and those below it, and return its number."""
    number = len(nodes)
    nodes.append((-1, 0.0, False, -1, 0.0))
    if "leaf_value" in node and "split_feature" not in node:
        nodes[number] = (-1, 0.0, False, -1, float(node["leaf_value"]))
        return number
    _flat(node["left_child"], nodes)
    right = _flat(node["right_child"], nodes)
    nodes[number] = (
        int(node["split_feature"]), min(node["threshold"], _LARGEST), bool(node["default_left"]),
        right - number, float(node["internal_value"]),
    )  # fmt: skip
    return number


def _weights(told: NDArray[np.float64], target: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights of columns that sum to the logarithm of the odds, by Newton's method.

    Targets are smoothed as by Platt (1999). The first column and the last, the intercept, are free.
    """
    positive, negative = target.sum(), (~target).sum()
    wanted = np.where(target, (positive + 1) / (positive + 2), 1 / (negative + 2))
    first: NDArray[np.float64] = np.eye(told.shape[1])[0]
    weights = first
    pull = np.full(told.shape[1], _PULL)
    # A weak pull keeps these finite.
    pull[[0, -1]] = 1e-3
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(told @ weights, -30, 30)))
        gradient = told.T @ (p - wanted) + pull * (weights - first)
        hessian = (told.T * (p * (1 - p) + 1e-9)) @ told + np.diag(pull)
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return weights
