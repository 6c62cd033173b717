"""One data segment and its acknowledgement on the radio, slot by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airpath.base.text import digits
from airpath.plots import vega
from airpath.plots.data import Comparison
from airpath.plots.figure import Figure, Series, Table

if TYPE_CHECKING:
    import polars as pl

_KINDS = {
    "packet": "var(--c0)",
    "block": "var(--c2)",
    "failed block": "var(--bad)",
    "grant until PUSCH": "var(--c4)",
    "awake": "var(--c5)",
    "asleep": "var(--capacity)",
    "SR": "var(--c1)",
    "BSR": "var(--c3)",
}
_MARGIN_MS = 1.0
_LONGEST_MS = 400.0
_SMALL = 400
"""Bytes: below it a packet is taken for an acknowledgement."""


def radio_segment(runs: Comparison) -> Figure | None:
    """Blocks, grants, requests and sleep around the first data segment; None without a log."""
    found = _first_segment(runs)
    if found is None:
        return None
    log, way, entered, until = found
    rows = _rows(log, way, entered, until)
    if not rows:
        return None
    lanes = [lane for lane in _lanes(way) if any(row["lane"] == lane for row in rows)]
    present = [kind for kind in _KINDS if any(row["kind"] == kind for row in rows)]
    y = {"field": "lane", "type": "nominal", "title": None, "scale": {"domain": lanes}}
    x = vega.number(
        "from", "ms since the segment came to the radio",
        scale={"domain": [-_MARGIN_MS, until - entered + _MARGIN_MS], "nice": False},
    )  # fmt: skip
    colour = {
        "field": "kind",
        "type": "nominal",
        "title": None,
        "scale": {"domain": present, "range": [_KINDS[kind] for kind in present]},
        "legend": {"columns": 8},
    }
    points = {"field": "kind", "oneOf": ["SR", "BSR"]}
    spec = {
        "width": vega.WIDTH,
        "height": 26 * len(lanes) + 10,
        "data": {"name": "radio-segment"},
        "encoding": {
            "x": x,
            "y": y,
            "color": colour,
            "tooltip": vega.tips(
                **{"kind": "what", "from": "from (ms)", "to": "to (ms)", "detail": " "}
            ),
        },
        "layer": [
            {
                "name": "zoom-radio-segment",
                "transform": [{"filter": {"not": points}}],
                "mark": {"type": "bar", "height": 12, "stroke": "var(--page)", "strokeWidth": 0.5,
                         "clip": True},
                "encoding": {"x2": {"field": "to"}},
            },
            {
                "transform": [{"filter": points}],
                "mark": {"type": "point", "shape": "triangle-up", "filled": True, "size": 70,
                         "clip": True},
            },
        ],
    }  # fmt: skip
    return Figure(
        id="radio-segment",
        title="One segment and its acknowledgement on the radio",
        how_to_read=(
            "Time runs from left to right. The segment waits and then travels in the blocks "
            "below it. Its acknowledgement triggers a scheduling request (SR), gets a grant "
            "and travels back. A gap is a wait."
        ),
        spec=vega.finished(spec),
        data={"radio-segment": [{name: [row[name] for row in rows] for name in rows[0]}]},
        table=Table(
            ["", "what", "from (ms)", "to (ms)", ""],
            [
                [row["lane"], row["kind"], digits(row["from"]), digits(row["to"]), row["detail"]]
                for row in rows
            ],
        ),
        remarks=("The chart shows the first data segment of the first flow and the first seed.",),
    )


def _lanes(way: str) -> list[str]:
    back = "up" if way == "down" else "down"
    return [
        f"segment {way}", "blocks down", "SR, BSR", "grants", "blocks up", f"ACK {back}", "DRX",
    ]  # fmt: skip


def _first_segment(runs: Comparison) -> tuple[pl.DataFrame, str, float, float] | None:
    """The log in ms, the way of the data, when the segment entered, when its ACK left."""
    import polars as pl

    flows = [flow for flow in runs.runs[0].summary["flows"] if flow["kind"] in ("bulk", "file")]
    if not flows or not runs.has_table(0, "radio_log"):
        return None
    flow, way = flows[0]["id"], flows[0]["direction"]
    back = "up" if way == "down" else "down"
    log = runs.table(0, "radio_log").with_columns(
        (pl.col("time_ns") / 1e6).alias("from"),
        (pl.coalesce("until_ns", "time_ns") / 1e6).alias("to"),
    )
    packets = log.filter(pl.col("flow") == flow)

    def times(event: str, direction: str) -> pl.DataFrame:
        return packets.filter(
            (pl.col("event") == event) & (pl.col("direction") == direction)
        ).select("from", "bytes")

    data_in, data_out = times("packet_enters", way), times("packet_leaves", way)
    ack_in, ack_out = times("packet_enters", back), times("packet_leaves", back)
    large = (data_in["bytes"] >= _SMALL).arg_true()
    if large.is_empty() or large[0] >= len(data_out):
        return None
    entered, left = data_in["from"][large[0]], data_out["from"][large[0]]
    # In order and none lost so early: the n-th that enters is the n-th that leaves.
    answers = (ack_in["from"] >= left).arg_true()
    if answers.is_empty() or answers[0] >= len(ack_out):
        return None
    until = ack_out["from"][answers[0]]
    if until - entered > _LONGEST_MS:
        return None
    ue = packets["ue"][0]
    return log.filter(pl.col("ue") == ue), str(way), float(entered), float(until)


def _rows(log: pl.DataFrame, way: str, entered: float, until: float) -> list[Series]:
    import polars as pl

    lanes = _lanes(way)
    rows: list[Series] = []

    def add(lane: str, kind: str, start: float, end: float, detail: str = "") -> None:
        if end >= entered - _MARGIN_MS and start <= until + _MARGIN_MS:
            span = {"from": round(start - entered, 4), "to": round(end - entered, 4)}
            rows.append({"lane": lane, "kind": kind, "detail": detail, **span})

    state: tuple[str, float] | None = None
    near = log.filter(pl.col("from") <= until + _MARGIN_MS)
    for row in near.iter_rows(named=True):
        start, event = row["from"], row["event"]
        if event == "block":
            detail = (
                f"MCS {row['mcs']}, {row['prbs']} PRBs, transmission {row['transmission']}, "
                f"{row['used_bytes']} of {row['bytes']} bytes used"
            )
            kind = "block" if row["received"] else "failed block"
            add(f"blocks {row['direction']}", kind, start, row["to"], detail)
        elif event == "grant":
            add(
                "grants",
                "grant until PUSCH",
                start,
                row["to"],
                f"{row['bytes']} bytes: {row['state']}",
            )
        elif event == "sr":
            add("SR, BSR", "SR", start, start, f"number {row['transmission']}")
        elif event == "bsr":
            add("SR, BSR", "BSR", start, start, f"{row['bytes']} bytes")
        elif event == "drx":
            if state is not None:
                _add_sleep(add, state, start)
            state = (row["state"] or "", start)
    if state is not None:
        _add_sleep(add, state, until + _MARGIN_MS)
    left: Any = near.filter(
        (pl.col("event") == "packet_leaves")
        & (pl.col("direction") == way)
        & (pl.col("bytes") >= _SMALL)
        & (pl.col("from") >= entered)
    )["from"].first()
    if left is None:
        return rows
    add(lanes[0], "packet", entered, float(left), "the segment")
    back = "up" if way == "down" else "down"
    asked: Any = near.filter(
        (pl.col("event") == "packet_enters")
        & (pl.col("direction") == back)
        & (pl.col("from") >= left)
    )["from"].first()
    if asked is not None:
        add(lanes[5], "packet", float(asked), until, "its acknowledgement")
    return rows


def _add_sleep(add: Any, state: tuple[str, float], end: float) -> None:
    name, start = state
    add("DRX", "asleep" if name.endswith("sleep") else "awake", start, end, name.replace("_", " "))
