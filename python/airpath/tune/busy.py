"""The rates of a path while packets wait in its longest queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from airpath.runs.tables import result_table

if TYPE_CHECKING:
    from airpath import _core
    from airpath.tune.settings import Direction

_FEW_S = 4
"""Fewer seconds say nothing of a range."""


class Rates(NamedTuple):
    """IP bits that a queue released in a second, Mb/s."""

    least: float
    """5th percentile."""
    mean: float
    most: float
    """95th percentile."""


def busy(result: _core.Result, direction: Direction) -> Rates | None:
    """Return the rates of the seconds in which the longest queue of a direction was never empty.

    None if there are fewer than four: nothing waits for long.
    """
    queues = [*_radio(result, direction), *_links(result, direction)]
    if not queues:
        return None
    longest = max(queues, key=lambda one: float(one["queue_delay_ms"].fill_null(0).sum()))
    second = (pl.col("time_ns") - 1) // 1_000_000_000
    rates = sorted(
        longest.group_by(second.alias("second"))
        .agg(pl.col("throughput_mbps").mean(), pl.col("queue_packets").min())
        .filter(pl.col("queue_packets") > 0)["throughput_mbps"]
        .to_list()
    )
    if len(rates) < _FEW_S:
        return None
    tail = len(rates) // 20
    return Rates(rates[tail], sum(rates) / len(rates), rates[-1 - tail])


def _radio(result: _core.Result, direction: Direction) -> list[pl.DataFrame]:
    table = result_table(result, "radio")
    if table is None:
        return []
    return table.filter(pl.col("direction") == direction).partition_by("ue", "cell")


def _links(result: _core.Result, direction: Direction) -> list[pl.DataFrame]:
    table = result_table(result, "links")
    if table is None:
        return []
    own = pl.col("link").cast(pl.String).str.starts_with(f"{direction}.")
    return table.filter(own).partition_by("link")
