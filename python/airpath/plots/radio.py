"""What the radio did: blocks, errors, queue and sleep of each UE over time."""

from __future__ import annotations

from airpath.plots import vega
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure, Series, Spec

_MOST_UES = 4
_HEIGHT = 70
_PANELS = {
    "prbs": ("PRBs", "PRBs in each interval"),
    "mcs": ("index", "MCS, mean of new blocks"),
    "bler": ("share", "First transmissions that failed"),
    "queue_bytes": ("bytes", "Bytes waiting"),
    "awake": ("share", "DRX Active Time"),
}


def radio(runs: Comparison) -> Figure | None:
    """A panel for each UE and figure of the first run; None without a radio."""
    if not runs.runs[0].summary.get("radio"):
        return None
    ues = runs.table(0, "radio")["ue"].unique(maintain_order=True).to_list()
    data = _data(runs, ues[:_MOST_UES])
    panels, still = [], []
    for ue in ues[:_MOST_UES]:
        mine = [each for each in data if each["ue"] == ue]
        for column, (_, title) in _PANELS.items():
            if _says_something(mine, column):
                panels.append(_panel(runs, ue, column, mine))
            elif column != "awake":
                still.append(f"{ue}: {title}")
    remarks = ["Long series are downsampled to their peaks."] if runs.downsampled else []
    if still:
        remarks.append(f"Not shown, because they are 0 throughout: {'; '.join(still)}.")
    if len(ues) > _MOST_UES:
        remarks.append(
            f"The table `radio` has {len(ues) - _MOST_UES} more UEs, which the chart leaves out."
        )
    if runs.several:
        remarks.append("The chart shows the first run.")
    return Figure(
        id="radio",
        title="Radio: what the cell gave each UE",
        how_to_read=(
            "Downlink and uplink share the axis. If bytes are waiting but there are few PRBs, "
            "the UE waits for grants, sleeps, or shares the cell. PRBs without waiting bytes "
            "are padding. A dashed line marks a change of cell."
        ),
        spec=vega.stacked(panels, 10),
        data={"radio": data, "moves": runs.moves()},
        table=vega.time_table(
            data, runs.duration_s, **{column: title for column, (_, title) in _PANELS.items()}
        ),
        remarks=tuple(remarks),
    )


def _data(runs: Comparison, ues: list[str]) -> list[Series]:
    """One series a UE and direction."""
    import polars as pl

    frame = runs.table(0, "radio").filter(pl.col("ue").is_in(ues))
    name = pl.concat_str("ue", pl.lit("."), "direction").alias("s")
    figures = [pl.col(column).cast(pl.Float64) for column in _PANELS]
    made = runs.compact([frame.select("t", name, *figures)], list(_PANELS))
    for each in made:
        each["ue"], _, each["way"] = each["s"].rpartition(".")
    return made


def _says_something(data: list[Series], column: str) -> bool:
    """A UE that never sleeps is as dull as one without errors."""
    values = {value for each in data for value in each.get(column, ()) if value is not None}
    return bool(values - {0.0}) and (column != "awake" or values != {1.0})


def _panel(runs: Comparison, ue: str, column: str, data: list[Series]) -> Spec:
    unit, title = _PANELS[column]
    ways = {"domain": ["down", "up"], "range": ["var(--c0)", "var(--c1)"]}
    line = {"type": "line", "interpolate": "step-before", "strokeWidth": 1.2, "clip": True}
    top = vega.nice_top(vega.highest(data, column))
    return {
        "title": f"{ue}: {title}",
        "width": vega.WIDTH,
        "height": _HEIGHT,
        "data": {"name": "radio"},
        "encoding": {"x": vega.time(runs.duration_s)},
        "layer": [
            {
                "name": f"zoom-{column}-{data[0]['k']}",
                "transform": [{"filter": {"field": "ue", "equal": ue}}],
                "mark": line,
                "encoding": {
                    "y": vega.up_to(column, unit, top),
                    "color": {"field": "way", "type": "nominal", "title": None, "scale": ways},
                    "tooltip": vega.tips(**{"t": "time (s)", "way": "direction", column: title}),
                },
            },
            *vega.moves(ue),
        ],
    }
