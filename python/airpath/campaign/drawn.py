"""The answer of a campaign whose points are drawn: which keys move a figure, which way, how far.

No two points differ in one key alone, so values cannot be compared cell by cell. A key of numbers
is judged by Spearman's rank correlation over the points, a key of names by the ratio of geometric
means. Both average over the other keys as they were drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from airpath.base.text import digits, milliseconds, plural, rate
from airpath.campaign.goals import Factor, Outcome, outcomes, rounded

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign

LEAST_POINTS = 8
"""With fewer points each quarter of a key's values would have a single one."""
_NORMAL_95 = 1.959964
_RANK_VARIANCE = 1.06
"""Variance of Fisher's transform of a rank correlation, times the number of points less 3 (Fieller,
Hartley and Pearson 1957)."""


class Effect(NamedTuple):
    """What a key does to a figure."""

    strength: float
    """Share of the variance of the figure's ranks that goes with the key."""
    words: str
    certain: bool
    """Whether the 95 % interval excludes chance."""


def sentences(campaign: Campaign) -> tuple[list[tuple[str, str]], list[Outcome]] | None:
    """Return a sentence a key, the strongest first, and the figures; None with few points."""
    found = [_points(campaign, one) for one in outcomes(campaign)]
    found = [one for one in found if len(one.found) >= LEAST_POINTS]
    if not found:
        return None
    told: list[tuple[float, str, str]] = []
    for key in campaign.axes:
        strongest, said = 0.0, []
        for outcome in found:
            effect = _effect(campaign, outcome, key)
            if effect is not None:
                said.append(f"{outcome.goal.name}: {effect.words}")
                strongest = max(strongest, effect.strength if effect.certain else 0.0)
        if said:
            told.append((strongest, key, f"{'; '.join(said)}."))
    told.sort(key=lambda one: -one[0])
    return [(key, text) for _, key, text in told], found


def basis(found: list[Outcome]) -> str:
    """What the sentences are of."""
    points = max(len(one.found) for one in found)
    return (
        f"{plural(points, 'drawn point')}: all keys vary at once, and each sentence averages over "
        "the others. A rank correlation is 1 or -1 if the figure always rises or falls with the "
        "key, and does not see what first rises and then falls. In brackets: 95 % confidence "
        "intervals over the points."
    )


def is_numeric(campaign: Campaign, key: str) -> bool:
    """Whether a varied key has numbers."""
    return campaign.table("runs").schema[key].is_numeric()


def _points(campaign: Campaign, outcome: Outcome) -> Outcome:
    """An outcome with one row a cell: the geometric mean over its seeds."""
    import polars as pl

    cells = outcome.found.group_by(campaign.cell_columns, maintain_order=True)
    return Outcome(outcome.goal, cells.agg(pl.col("value").log().mean().exp()), outcome.left_out)


def _effect(campaign: Campaign, outcome: Outcome, key: str) -> Effect | None:
    """The effect of a key, or None if it has one value."""
    found = outcome.found
    if found[key].n_unique() < 2:
        return None
    if found["value"].n_unique() == 1:
        return Effect(0.0, "the same at every point", certain=False)
    # Scenarios differ in what is possible: ranks are those within a scenario.
    found = found.with_columns(rank=_ranks("value"))
    if is_numeric(campaign, key):
        return _trend(campaign, outcome, found, key)
    return _names(outcome, found, key)


def _ranks(column: str) -> pl.Expr:
    import polars as pl

    return (pl.col(column).rank() / pl.len()).over("scenario")


def _trend(campaign: Campaign, outcome: Outcome, found: pl.DataFrame, key: str) -> Effect:
    import numpy as np
    import polars as pl

    found = found.with_columns(at=pl.col(key).cast(pl.Float64))
    found = found.with_columns(at_rank=_ranks("at"))
    rho = float(np.corrcoef(found["at_rank"].to_numpy(), found["rank"].to_numpy())[0, 1])
    count = len(found)
    if campaign.document["sampling"] == "saltelli":
        # Most of its points repeat the values of a key; these are the independent ones.
        count = min(count, 2 * int(campaign.document["samples"]))
    low, high = correlation_interval(rho, count)
    if low <= 0 <= high:
        return Effect(rho * rho, "no trend beyond chance", certain=False)
    quarter = max(1, len(found) // 4)
    ordered = found.sort("at")["value"]
    ends = (ordered.head(quarter).median(), ordered.tail(quarter).median())
    least, most = (_shown(outcome, float(each)) for each in ends if isinstance(each, float))
    words = (
        f"{'rises' if rho > 0 else 'falls'} with it (rank correlation {rho:.2f}, "
        f"{low:.2f} to {high:.2f}); the median is {least} in the lowest quarter of its values and "
        f"{most} in the highest"
    )
    return Effect(rho * rho, words, certain=True)


def correlation_interval(rho: float, count: int) -> tuple[float, float]:
    """95 % interval of a rank correlation of ``count`` independent points, at least 4."""
    bounded = max(-1 + 1e-12, min(1 - 1e-12, rho))
    half = _NORMAL_95 * math.sqrt(_RANK_VARIANCE / (count - 3))
    return math.tanh(math.atanh(bounded) - half), math.tanh(math.atanh(bounded) + half)


def _names(outcome: Outcome, found: pl.DataFrame, key: str) -> Effect:
    """The best and the worst value of a key of names, by geometric means."""
    import polars as pl

    from airpath.analysis.intervals import unpaired

    logs = {
        str(value): some["value"].log().to_numpy()
        for (value,), some in found.group_by([key], maintain_order=True)
    }
    ranked = sorted(logs, key=lambda value: float(logs[value].mean()))
    best, worst = (ranked[-1], ranked[0]) if outcome.goal.higher else (ranked[0], ranked[-1])
    change = unpaired(logs[best].tolist(), logs[worst].tolist())
    low, high = (None if one is None else math.exp(one) for one in (change.low, change.high))
    factor = Factor(math.exp(change.change), low, high)
    ranks = found["rank"].to_numpy()
    groups = found.group_by(key).agg(pl.len().alias("size"), pl.col("rank").mean()).to_dicts()
    between = sum(group["size"] * (group["rank"] - ranks.mean()) ** 2 for group in groups)
    strength = float(between / (len(ranks) * ranks.var()))
    if factor.low is None or not factor.certain:
        return Effect(strength, "no difference beyond chance", certain=False)
    goal = outcome.goal
    words = f"{goal.most} with {best}, {goal.words(factor)} with {worst}"
    return Effect(strength, words, certain=True)


def _shown(outcome: Outcome, value: float) -> str:
    figure = outcome.goal.figure
    if figure.endswith("_mbps"):
        return rate(value)
    if "_ms" in figure:
        return milliseconds(value)
    return f"{digits(value)} s" if figure.endswith("_s") else rounded(value, 3)
