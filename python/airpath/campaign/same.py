"""Where a varied key changes no figure at all, and what the counters say about why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from airpath.base.text import percent
from airpath.campaign.figures import NAMED

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign

_LIMITS = {
    "receive_window_limited_s": "the receive window",
    "send_buffer_limited_s": "the send buffer",
    "application_limited_s": "the application",
}
_ALL_LIMITS = ("cwnd_limited_s", "pacing_limited_s", *_LIMITS)
_WORTH_SAYING = 0.01
"""A limit for less of the time does not show in two digits of a rate."""


class Same(NamedTuple):
    """In how many combinations of the other keys a key changes no figure."""

    combinations: int
    same: int
    names: list[str]
    """Those combinations, as the values of the other keys."""
    why: list[str]
    """What the counters of their flows say: ``no packet was lost``."""


def same_figures(
    campaign: Campaign, axis: str, others: Sequence[str], where: Mapping[str, str]
) -> Same:
    """Compare all figures of all tables, to the last bit, between the values of a key.

    A combination counts where every seed has the same figures with every value. ``where`` keeps
    the runs with these values of other keys.
    """
    import polars as pl

    runs = _printed(campaign)
    for name, value in where.items():
        runs = runs.filter(pl.col(name).cast(pl.String) == value)
    if runs.is_empty() or runs[axis].n_unique() < 2:
        return Same(0, 0, [], [])
    every = runs[axis].n_unique()
    found = (
        runs.group_by([*others, "seed"], maintain_order=True)
        .agg(
            alike=(pl.col("print").n_unique() == 1) & (pl.col(axis).n_unique() == every),
        )
        .group_by(others or [pl.lit("").alias("")], maintain_order=True)
        .agg(pl.col("alike").all())
    )
    alike = found.filter("alike")
    names = [", ".join(map(str, row)) for row in alike.select(others).rows()] if others else []
    same = runs if not others else runs.join(alike, on=others, how="semi", nulls_equal=True)
    return Same(len(found), len(alike), names, _why(campaign, same if len(alike) else alike))


def _printed(campaign: Campaign) -> pl.DataFrame:
    """The runs' varied keys, and a fingerprint of all figures of each."""
    import polars as pl

    # How many events a simulation took is about the simulator, not the path.
    known = {"run", "key", "cell", "scenario", "seed", "events", *campaign.axes}
    prints = []
    for name in NAMED:
        if name not in campaign.files:
            continue
        table = campaign.table(name)
        columns = [
            column
            for column, kind in table.schema.items()
            if kind.is_numeric() and column not in known
        ]
        row = pl.int_range(pl.len()).over("run").alias("row")
        prints.append(table.select("run", print=pl.struct(row, *columns).hash()))
    if not prints or "runs" not in campaign.files:
        return pl.DataFrame()
    each = pl.concat(prints).group_by("run").agg(pl.col("print").bitwise_xor())
    return (
        campaign.table("runs")
        .select("run", "seed", *campaign.cell_columns)
        .join(each, on="run", maintain_order="left")
    )


def _why(campaign: Campaign, runs: pl.DataFrame) -> list[str]:
    """What is true of all flows of these runs."""
    import polars as pl

    if runs.is_empty() or "flows" not in campaign.files:
        return []
    flows = campaign.table("flows").join(runs, on="run", how="semi")
    said = []
    if "packets_lost" in flows.columns and not (flows["packets_lost"].sum() or 0):
        said.append("no packet was lost")
    there = [name for name in _ALL_LIMITS if name in flows.columns]
    limited = flows.select(pl.col(there).sum()).row(0, named=True) if there else {}
    total = sum(limited.values())
    for name, words in _LIMITS.items():
        share = limited.get(name, 0.0) / total if total else 0.0
        if share >= _WORTH_SAYING:
            said.append(f"{words} was the limit {percent(share)} of the time")
    if "slow_start_exit_s" in flows.columns and flows["slow_start_exit_s"].null_count() == len(
        flows
    ):
        said.append("slow start never ended")
    return said
