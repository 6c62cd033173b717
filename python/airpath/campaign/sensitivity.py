"""Which of the varied keys determines an outcome: Sobol indices (SALib)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.campaign.sampling import missing, problem
from airpath.campaign.summaries import values
from airpath.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from airpath.campaign.results import Campaign


def sensitivity(campaign: Campaign, figure: str) -> pl.DataFrame:
    """Sobol indices of a figure, of means over seeds; one row for each varied key and flow.

    Columns: ``scenario``, ``of``, ``key``, ``first`` and ``first_ci95`` (the share of the variance
    that the key explains alone), ``total`` and ``total_ci95`` (with its interactions).
    Raises ``InputError`` for a campaign that was not sampled by Saltelli's scheme, or where a run
    lacks the figure.
    """
    import polars as pl

    if campaign.document["sampling"] != "saltelli":
        raise InputError(
            f'{campaign.place} was sampled by "{campaign.document["sampling"]}"\n'
            '  Sobol indices need sampling = "saltelli"'
        )
    found = values(campaign, figure)
    size = int(campaign.document["samples"]) * (2 * len(campaign.axes) + 2)
    rows = []
    for (scenario, of), some in found.group_by(["scenario", "of"], maintain_order=True):
        means = some.group_by("cell").agg(pl.col("value").mean()).sort("cell")
        if len(means) != size:
            raise InputError(
                f"{len(means)} of {size} points of {scenario} have {figure} of {of or 'the run'}: "
                "Sobol indices need all points"
            )
        indices = sobol_indices(means["value"].to_numpy(), len(campaign.axes))
        rows += [(scenario, of, *row) for row in _named(campaign.axes, indices)]
    names = ["scenario", "of", "key", "first", "first_ci95", "total", "total_ci95"]
    return pl.DataFrame(rows, schema=names, orient="row")


def sobol_indices(outcomes: npt.NDArray[np.float64], dimensions: int) -> dict[str, list[float]]:
    """First-order and total indices ``S1``, ``ST`` of outcomes at the points of Saltelli's scheme.

    ``S1_conf`` and ``ST_conf`` are half their 95 % intervals. What does not vary has zeros.
    """
    import numpy as np

    try:
        from SALib.analyze import sobol
    except ModuleNotFoundError:
        raise missing("SALib", "sensitivity") from None
    if np.ptp(outcomes) == 0:
        return {name: [0.0] * dimensions for name in ("S1", "S1_conf", "ST", "ST_conf")}
    found = sobol.analyze(problem(dimensions), outcomes, calc_second_order=True, seed=1)
    return {name: [float(v) for v in found[name]] for name in ("S1", "S1_conf", "ST", "ST_conf")}


def _named(
    axes: list[str], found: dict[str, list[float]]
) -> list[tuple[str, float, float, float, float]]:
    return [
        (axis, found["S1"][at], found["S1_conf"][at], found["ST"][at], found["ST_conf"][at])
        for at, axis in enumerate(axes)
    ]
