"""Two campaigns, or two variants of one, cell by cell and seed by seed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.campaign.results import Campaign, open_campaign
from airpath.campaign.summaries import values
from airpath.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from airpath.analysis.intervals import Difference

FIGURES = ("flows.goodput_mbps", "flows.rtt_ms_p95", "pings.rtt_ms_p95", "runs.jain_index_down")
"""The figures that are compared by default."""


def compare(
    before: Campaign | str | os.PathLike[str],
    after: Campaign | str | os.PathLike[str] | None = None,
    figures: Sequence[str] = (),
    axis: str | None = None,
    values_of_axis: tuple[str, str] | None = None,
    *,
    pairs: bool = True,
) -> pl.DataFrame:
    """Compare two campaigns, or with ``axis`` two of its values within one.

    ``axis`` is a varied key, as ``cc``, or with the two values, as ``cc=cubic,bbr``.
    Cells that both have are compared, paired by the seeds that both have. Columns: the scenario
    and the varied keys, ``figure``, ``of``, ``pairs`` (seeds), ``before``, ``after``, ``change``
    with its 95 % interval over the seeds, ``low`` and ``high``, the same in percent of ``before``
    (``change_percent``, ``low_percent``, ``high_percent``), ``p``, and ``verdict``: "same" where
    every seed has the same value in both, "higher" or "lower" where the interval leaves out 0,
    "unclear" where it does not, and "no interval" with one seed, and where all seeds have the
    same value: then an interval and ``p`` are null. A percentage is null where ``before`` is 0.
    ``pairs=False`` compares the samples as if they were independent (Welch).
    """
    import polars as pl

    from airpath.analysis.intervals import paired, unpaired

    if after is None:
        if axis is None:
            raise InputError("compare two campaigns, or one campaign with axis='NAME=X,Y'")
        after = before
    if axis is not None and "=" in axis:
        axis, values_of_axis = _named(axis)
    first = before if isinstance(before, Campaign) else open_campaign(before)
    second = after if isinstance(after, Campaign) else open_campaign(after)
    common = [name for name in first.cell_columns if name in second.cell_columns]
    if axis is not None:
        if axis not in common:
            raise InputError(f"`{axis}` was not varied\n  available: {', '.join(common)}")
        common = [name for name in common if name != axis]
    rows = []
    for figure in figures or _there(first, second):
        left, right = values(first, figure), values(second, figure)
        if axis is not None:
            one, other = values_of_axis or _two(left, axis)
            left, right = _only(left, axis, one), _only(right, axis, other)
        keys = [*common, "of"]
        means = [
            side.group_by([*keys, "seed"], maintain_order=True).agg(pl.col("value").mean())
            for side in (left, right)
        ]
        joined = means[0].join(means[1], on=[*keys, "seed"], suffix="_after", nulls_equal=True)
        for names, some in joined.sort("seed").group_by(keys, maintain_order=True):
            same = bool((some["value"] == some["value_after"]).all())
            told = (paired if pairs else unpaired)(
                some["value"].to_list(), some["value_after"].to_list()
            )
            changes = (told.change, told.low, told.high)
            percents = [
                None if one is None or not told.before else 100 * one / abs(told.before)
                for one in changes
            ]
            rows.append(
                [*names[:-1], figure, names[-1], len(some), told.before, told.after, *changes,
                 *percents, told.p, _verdict(told, same=same)]
            )  # fmt: skip
    if not rows:
        raise InputError(
            "nothing to compare: the two sides share no combination with the same figure and seed"
        )
    numbers = [
        "before", "after", "change", "low", "high", "change_percent", "low_percent",
        "high_percent", "p",
    ]  # fmt: skip
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        **{name: left.schema[name] for name in common}, "figure": pl.String, "of": pl.String,
        "pairs": pl.Int64, **dict.fromkeys(numbers, pl.Float64), "verdict": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row").sort(
        ["figure", "of", *common], maintain_order=True
    )


def _verdict(told: Difference, *, same: bool) -> str:
    if same:
        return "same"
    if told.low is None:
        return "no interval"
    if not told.told:
        return "unclear"
    return "higher" if told.change > 0 else "lower"


def _named(text: str) -> tuple[str, tuple[str, str]]:
    """The key of ``NAME=X,Y``, and its two values."""
    name, _, two = text.partition("=")
    picked = [value.strip() for value in two.split(",")]
    if len(picked) != 2:
        raise InputError(f"--axis {text}: must be NAME=X,Y with two values")
    return name, (picked[0], picked[1])


def _there(first: Campaign, second: Campaign) -> list[str]:
    """Figures that both have."""
    found = []
    for figure in FIGURES:
        table = figure.partition(".")[0]
        if table not in first.files or table not in second.files:
            continue
        if not values(first, figure).is_empty() and not values(second, figure).is_empty():
            found.append(figure)
    return found


def _two(frame: pl.DataFrame, axis: str) -> tuple[str, str]:
    found = [str(value) for value in frame[axis].unique(maintain_order=True)]
    if len(found) != 2:
        raise InputError(
            f"`{axis}` has {len(found)} values: {', '.join(found)}\n"
            f"  name two of them: --axis {axis}=A,B"
        )
    return found[0], found[1]


def _only(frame: pl.DataFrame, axis: str, value: str) -> pl.DataFrame:
    import polars as pl

    some = frame.filter(pl.col(axis).cast(pl.String) == value)
    if some.is_empty():
        found = [str(each) for each in frame[axis].unique(maintain_order=True)]
        raise InputError(f"`{axis}` has no value {value}\n  available: {', '.join(found)}")
    return some
