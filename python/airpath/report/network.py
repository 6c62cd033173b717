"""The network of a run in its report, in the pictures that the status page has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from airpath.base.json import Json
from airpath.base.text import plural
from airpath.base.toml import parse_toml
from airpath.pictures import Cell, Core, Curve, Ue, curves, picture
from airpath.runs.tables import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

    from airpath.runs.results import Run

MOST_UES = 8
"""With a curve; the table ``radio`` has them all."""

MOST_POINTS = 300
"""Of a curve; each is the mean of the intervals before it."""


@dataclass(frozen=True)
class Network:
    """What the template shows; markup."""

    picture: str
    curves: str
    left_out: int
    """UEs without a curve."""


def network(run: Run) -> Network | None:
    """Return the pictures of a run's first seed; None without a radio."""
    import markupsafe

    radio = parse_toml(run.scenario_toml).get("radio")
    if radio is None or not run.summary.get("radio"):
        return None
    table = _table(run)
    drawn = _picture(run, radio, table)
    ues = table["ue"].unique(maintain_order=True).to_list()
    named = [f"cell {name}" for name in _cells(radio)] + [f"UE {name}" for name in ues[:MOST_UES]]
    lines = [_curve(table, name) for name in named]
    # Names are escaped where the pictures are made.
    return Network(
        picture=markupsafe.Markup(drawn),  # noqa: S704
        curves=markupsafe.Markup(curves(lines)),  # noqa: S704
        left_out=max(0, len(ues) - MOST_UES),
    )


def _table(run: Run) -> pl.DataFrame:
    """Return rates by time in seconds, UE, cell and direction."""
    import polars as pl

    table = run.radio
    if "seed" in table.columns:
        table = table.filter(pl.col("seed") == run.seeds[0])
    return table.select(
        (pl.col("time_ns") / NS_PER_S).alias("t"),
        *(pl.col(name).cast(pl.String) for name in ("ue", "cell", "direction")),
        pl.col("throughput_mbps").alias("mbps"),
    )


def _cells(radio: Json) -> list[str]:
    return [radio["name"], *(one["name"] for one in radio.get("neighbour", []))]


def _picture(run: Run, radio: Json, table: pl.DataFrame) -> str:
    """Draw where UEs were at the end, and what each carried in the mean."""
    import polars as pl

    ends = table.group_by("ue", maintain_order=True).agg(pl.col("cell").last())
    last = dict(ends.iter_rows())
    count = max(1, table["t"].n_unique())

    def mean(column: str, name: str) -> str:
        total = cast("float", table.filter(pl.col(column) == name)["mbps"].sum())
        return f"{total / count:.1f} Mb/s"

    cells = [Cell(name, mean("cell", name)) for name in _cells(radio)]
    ues = [
        Ue(ue["name"], last[ue["name"]], mean("ue", ue["name"]))
        if ue["name"] in last
        else Ue(ue["name"], cells[0].name, "no traffic", linked=False)
        for ue in radio["ue"]
    ]
    sessions = run.summary.get("emulation", {}).get("sessions", [])
    core = Core("core", plural(len(sessions), "session")) if sessions else Core("server", "")
    return picture(cells, ues, core)


def _curve(table: pl.DataFrame, name: str) -> Curve:
    """Return the rates of ``cell NAME`` or ``UE NAME``, thinned by means."""
    import polars as pl

    kind, _, which = name.partition(" ")
    times = table["t"].unique().sort()
    step = -(-len(times) // MOST_POINTS)
    # Every curve has the run's times: what is left out carried nothing.
    place = pl.DataFrame({"t": times}).with_row_index("row").with_columns(pl.col("row") // step)
    ends = place.group_by("row").agg(pl.col("t").max(), pl.len().alias("intervals")).sort("row")
    mine = table.filter(pl.col(kind.lower()) == which).join(place, on="t")
    rates = []
    for way in ("down", "up"):
        carried = mine.filter(pl.col("direction") == way).group_by("row").agg(pl.col("mbps").sum())
        joined = ends.join(carried, on="row", how="left").sort("row")
        rates.append((joined["mbps"].fill_null(0.0) / joined["intervals"]).to_list())
    return Curve(name, ends["t"].to_list(), (rates[0], rates[1]))
