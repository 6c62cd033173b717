"""How round-trip times are distributed."""

from __future__ import annotations

import math
from collections.abc import Callable

from airpath.base.text import count, digits
from airpath.plots import vega
from airpath.plots.data import Comparison, Flow
from airpath.plots.figure import Figure, Series, Spec, Table

_HEIGHT = 220
_SLICES = 100
_LOG_FROM = 12.0
"""Use a logarithmic axis when the longest RTT is this many times the shortest."""
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

Bucket = tuple[float, float, int]
"""Lower edge, upper edge in ms, samples."""


def rtt_distribution(runs: Comparison) -> Figure | None:
    """Cumulative distribution and density of RTTs by flow; None without a sample."""
    buckets = {each.label: found for each in runs.series if (found := _buckets(runs, each))}
    if not buckets:
        return None
    lowest = min(found[0][0] for found in buckets.values())
    highest = max(found[-1][1] for found in buckets.values())
    log = lowest > 0 and highest / lowest >= _LOG_FROM
    domain = (lowest * 0.95, highest * 1.05) if log else (0.0, vega.nice_top(highest))
    steps = [_steps(label, found) for label, found in buckets.items()]
    density = [_density(label, found, domain, log) for label, found in buckets.items()]
    x = vega.number(
        "rtt", "RTT (ms)" + (", logarithmic" if log else ""),
        scale={"type": "log" if log else "linear", "domain": list(domain), "nice": False},
        axis={"grid": True, "format": ",.3~f", "tickCount": 8},
    )  # fmt: skip
    middle = math.sqrt(domain[0] * domain[1]) if log else domain[1] / 2
    seeds = any(len(run.seeds) > 1 for run in runs.runs)
    return Figure(
        id="rtt",
        title="RTT: distribution",
        how_to_read=(
            "The height of the upper curve is the share of samples with at most this RTT. "
            "A steep curve means a steady RTT; a long shoulder to the right is queueing or "
            f"retransmission. The lower curve is the share in each of {_SLICES} equal slices of "
            "the axis."
        ),
        spec=vega.stacked([_cumulative(runs, steps, x, middle), _slices(runs, density, x)], 12),
        data={"rtt": steps, "density": density},
        table=Table(
            ["", "samples", *(f"{share:.0%} up to (ms)" for share in _SHARES)],
            [
                [label, count(sum(n for _, _, n in found)), *(_quantile(found, q) for q in _SHARES)]
                for label, found in buckets.items()
            ],
        ),
        remarks=("The chart has the samples of all seeds.",) if seeds else (),
    )


def _buckets(runs: Comparison, flow: Flow) -> list[Bucket]:
    """A flow's histogram, all seeds together."""
    import polars as pl

    histogram = runs.runs[flow.run].rtt_histogram.filter(pl.col("flow") == flow.flow)
    summed = histogram.group_by("low_ms", "high_ms").agg(pl.col("count").sum())
    return summed.sort("low_ms").rows()


def _steps(label: str, buckets: list[Bucket]) -> Series:
    """The curve through both edges of each bucket: level where there is none."""
    total, below = sum(n for _, _, n in buckets), 0
    rtt, share = [], []
    for low, high, n in buckets:
        rtt += [round(low, 4), round(high, 4)]
        share += [round(below / total, 5), round((below + n) / total, 5)]
        below += n
    return {"s": label, "rtt": rtt, "share": share}


def _density(label: str, buckets: list[Bucket], domain: tuple[float, float], log: bool) -> Series:
    """Shares of equal slices of the axis; a bucket is spread evenly over its own width."""
    at: Callable[[float], float] = math.log if log else float
    start, width = at(domain[0]), (at(domain[1]) - at(domain[0])) / _SLICES
    total = sum(n for _, _, n in buckets)
    shares = [0.0] * (_SLICES + 1)
    for low, high, n in buckets:
        first, last = (at(low) - start) / width, (at(high) - start) / width
        for place in range(int(first), min(int(last), _SLICES - 1) + 1):
            part = (min(last, place + 1) - max(first, place)) / (last - first)
            shares[place] += n / total * part
    edges = [start + place * width for place in range(_SLICES + 1)]
    rtt = [round(math.exp(edge) if log else edge, 4) for edge in edges]
    return {"s": label, "rtt": rtt, "share": [round(share, 5) for share in shares]}


def _cumulative(runs: Comparison, steps: list[Series], x: Spec, middle: float) -> Spec:
    labels = [each["s"] for each in steps]
    palette = runs.palette(labels)
    few = len(labels) <= vega.FEW
    pings = {series.label for series in runs.of_kind("ping")} if runs.several else set()
    dashes = [[5, 3] if label in pings else [1, 0] for label in labels]
    axis = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]}
    y = vega.number("share", "share of samples", scale={"domain": [0, 1]}, axis=axis)
    line = {
        "mark": {"type": "line", "strokeWidth": 1.6, "clip": True},
        "encoding": {
            "y": y,
            # Pings are dashed where they share the colour of their run.
            "strokeDash": {
                "field": "s", "type": "nominal", "legend": None,
                "scale": {"domain": labels, "range": dashes},
            },
            "tooltip": vega.tips(s="flow", rtt="RTT (ms)", share="share up to it"),
        },
    }  # fmt: skip
    # Names beside the curves, each at its own height, so that they cannot touch: right of a curve
    # in the left half of the axis, left of it in the right half.
    beside = []
    for place, (each, shade) in enumerate(zip(steps, palette, strict=True)):
        height = 0.84 - 0.15 * place
        at = next(r for r, share in zip(each["rtt"], each["share"], strict=True) if share >= height)
        name = vega.label(each["s"], shade, x, y, left=at > middle)
        beside.append({**name, "data": {"values": [{"rtt": at, "share": height}]}})
    return {
        "width": vega.WIDTH,
        "height": _HEIGHT,
        "data": {"name": "rtt"},
        "encoding": {"x": x, "color": vega.colour(labels, palette, legend=not few)},
        "layer": [line, *(beside if few else [])],
    }


def _slices(runs: Comparison, density: list[Series], x: Spec) -> Spec:
    labels = [each["s"] for each in density]
    axis = {"format": "%", "tickCount": 3}
    return {
        "title": "Density",
        "width": vega.WIDTH,
        "height": _HEIGHT // 3,
        "data": {"name": "density"},
        "mark": {"type": "area", "line": True, "interpolate": "step-after", "fillOpacity": 0.2,
                 "clip": True},
        "encoding": {
            "x": x,
            "y": vega.number("share", "share", stack=None, axis=axis),
            "color": {**vega.colour(labels, runs.palette(labels)), "legend": None},
            "tooltip": vega.tips(s="flow", rtt="from (ms)", share="share"),
        },
    }  # fmt: skip


def _quantile(buckets: list[Bucket], share: float) -> str:
    """Upper edge of the bucket that it is in."""
    wanted, below = share * sum(n for _, _, n in buckets), 0
    for _, high, n in buckets:
        below += n
        if below >= wanted:
            return digits(high)
    raise AssertionError("the shares of all buckets are 1")
