"""Figures of a campaign's cells: means and intervals over their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.campaign.figures import FigureName, parse_figure, unknown_column
from airpath.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign


def values(campaign: Campaign, figure: str | FigureName) -> pl.DataFrame:
    """Every value of a figure: ``run``, ``cell``, ``scenario``, ``seed``, axes, ``of``, ``value``.

    ``of`` is the flow or link that it is of. Values that are null are left out. Raises
    ``InputError`` for a column or a name that is not there.
    """
    import polars as pl

    name = parse_figure(figure) if isinstance(figure, str) else figure
    if name.table not in campaign.files:
        raise InputError(f"the campaign has no rows in {name.table}")
    table = campaign.table(name.table)
    if name.column not in table.columns or not table.schema[name.column].is_numeric():
        raise unknown_column(name, [c for c, kind in table.schema.items() if kind.is_numeric()])
    owner = pl.col(name.owner) if name.owner else pl.lit("")
    ahead = ["run", "cell", "scenario", "seed", *campaign.axes]
    value = pl.col(name.column).cast(pl.Float64)
    found = table.select(*ahead, owner.alias("of"), value.alias("value"))
    if name.of is not None:
        names = found["of"].unique().sort().to_list()
        if name.of not in names:
            raise InputError(
                f"{name.table} has nothing named '{name.of}'\n  available: {', '.join(names)}"
            )
        found = found.filter(pl.col("of") == name.of)
    return found.drop_nulls("value")


def first_of_each(found: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The first flow or link of each run, and the names of the others.

    The name may depend on what was varied: a flow without a name of its own is called after its
    congestion control.
    """
    import polars as pl

    if found["of"].n_unique() <= 1:
        return found, []
    kept = found.filter(pl.col("of") == pl.col("of").first().over("run"))
    return kept.with_columns(pl.lit("").alias("of")), sorted(set(found["of"]) - set(kept["of"]))


def summarise(
    campaign: Campaign,
    figure: str | FigureName,
    by: Sequence[str] | None = None,
    found: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Mean and 95 % interval of a figure for each cell, or for each value of ``by``.

    What is not in ``by`` is averaged over: first over the cells of a seed, because these share
    their randomness, and then over seeds, from which the interval is. ``found`` has some of the
    figure's ``values``, in the order that the rows get; by default all are used.
    """
    import polars as pl

    from airpath.analysis.intervals import interval

    groups = campaign.cell_columns if by is None else list(by)
    unknown = [name for name in groups if name not in campaign.cell_columns]
    if unknown:
        raise InputError(
            f"`{unknown[0]}` was not varied\n  available: {', '.join(campaign.cell_columns)}"
        )
    if found is None:
        found = values(campaign, figure).sort("run", maintain_order=True)
    # A seed that lacks some of a group's cells would be another mean.
    each = (
        found.group_by([*groups, "of", "seed"], maintain_order=True)
        .agg(pl.col("value").mean(), pl.len().alias("cells"))
        .with_columns(pl.col("cells").max().over([*groups, "of"]).alias("most"))
        .filter(pl.col("cells") == pl.col("most"))
        .sort("seed")
    )
    rows = []
    for keys, some in each.group_by([*groups, "of"], maintain_order=True):
        bounds = interval(some["value"].to_numpy())
        rows.append([*keys, len(some), bounds.mean, bounds.low, bounds.high])
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        **{name: found.schema[name] for name in groups}, "of": pl.String, "n": pl.Int64,
        "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    }  # fmt: skip
    order = found.select(*groups, "of").unique(maintain_order=True).with_row_index("place")
    made = pl.DataFrame(rows, schema=schema, orient="row")
    return (
        made.join(order, on=[*groups, "of"], how="left", nulls_equal=True)
        .sort("place")
        .drop("place")
    )
