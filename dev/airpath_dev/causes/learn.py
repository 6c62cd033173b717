"""Learns causes from drawn rows: for each cause a sum of trees, calibrated on cases held back."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpath.causes.model import ANY, Forest, Model
from airpath.causes.suspect import GROUPS

from .rows import Row

_ROUNDS = 90
_SETTINGS = {
    "objective": "binary",
    "learning_rate": 0.1,
    "num_leaves": 12,
    "min_data_in_leaf": 8,
    "lambda_l2": 5.0,
    "feature_fraction": 0.35,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 2,
    "verbosity": -1,
    "seed": 1,
}
_HELD = 4
"""Every fourth case calibrates."""


def group_of(cause: str) -> str:
    """The first of the causes that look alike."""
    return next((one[0] for one in GROUPS if cause in one), cause)


def learn(rows: Sequence[Row]) -> Model:
    """Learn from rows."""
    usable = [one for one in rows if "features" in one]
    names = list(usable[0]["features"])
    table = np.array([[one["features"][name] for name in names] for one in usable])
    labels = [{group_of(cause) for cause in one["costs"]} for one in usable]
    cases = np.array([one["case"] for one in usable])
    held = scattered(cases) % _HELD == 0
    causes = sorted(set().union(*labels))
    forests = []
    for cause in [*causes, ANY]:
        target = np.array([bool(one) if cause == ANY else cause in one for one in labels])
        forests.append(_forest(cause, table, target, held))
    return Model.of(names, forests)


def scattered(cases: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of cases, mixed: causes follow each other in the order of the numbers (Knuth)."""
    mixed: NDArray[np.int64] = (cases.astype(np.int64) * 2_654_435_761 % 2**32) >> 12
    return mixed


def _forest(
    cause: str, table: NDArray[np.float64], target: NDArray[np.bool_], held: NDArray[np.bool_]
) -> Forest:
    import lightgbm

    data = lightgbm.Dataset(table[~held], target[~held].astype(float))
    booster = lightgbm.train(dict(_SETTINGS), data, _ROUNDS)
    nodes: list[tuple[int, float, bool, int, int, float]] = []
    roots = [_flat(tree["tree_structure"], nodes) for tree in booster.dump_model()["tree_info"]]
    forest = Forest.of(cause, roots, nodes)
    scores = np.array([forest.score(row) for row in table[held]])
    return forest.calibrated(*_platt(scores, target[held]))


def _flat(node: dict[str, Any], nodes: list[tuple[int, float, bool, int, int, float]]) -> int:
    """Append a node and those below it, and return its number."""
    number = len(nodes)
    nodes.append((-1, 0.0, False, -1, -1, 0.0))
    if "leaf_value" in node and "split_feature" not in node:
        nodes[number] = (-1, 0.0, False, -1, -1, float(node["leaf_value"]))
        return number
    left = _flat(node["left_child"], nodes)
    right = _flat(node["right_child"], nodes)
    nodes[number] = (
        int(node["split_feature"]), float(node["threshold"]), bool(node["default_left"]),
        left, right, float(node["internal_value"]),
    )  # fmt: skip
    return number


def _platt(scores: NDArray[np.float64], target: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of the logarithm of the odds (Platt 1999), by Newton's method."""
    positive, negative = target.sum(), (~target).sum()
    wanted = np.where(target, (positive + 1) / (positive + 2), 1 / (negative + 2))
    slope, intercept = 1.0, 0.0
    for _ in range(50):
        odds = slope * scores + intercept
        p = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        weight = p * (1 - p) + 1e-9
        gradient = np.array(
            [((p - wanted) * scores).sum() + 1e-3 * (slope - 1), (p - wanted).sum()]
        )
        hessian = np.array(
            [
                [(weight * scores**2).sum() + 1e-3, (weight * scores).sum()],
                [(weight * scores).sum(), weight.sum() + 1e-6],
            ]
        )
        step = np.linalg.solve(hessian, gradient)
        slope, intercept = slope - step[0], intercept - step[1]
        if np.abs(step).max() < 1e-8:
            break
    return float(slope), float(intercept)
