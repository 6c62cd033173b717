"""How much of each link was used."""

from __future__ import annotations

from airpath.plots import vega
from airpath.plots.data import MOST_LINKS, Comparison
from airpath.plots.figure import Figure, Spec

_HEIGHT = 80


def links(runs: Comparison) -> Figure | None:
    """Throughput over capacity, one row a link; None if no run has a link."""
    data = runs.links()
    if not data:
        return None
    index = {label: run for run, _, label in runs.link_labels()}
    everything = sum(len(run.summary["links"]) for run in runs.runs)
    remarks = ["Long series are downsampled to their peaks."] if runs.downsampled else []
    if everything > MOST_LINKS:
        remarks.append(
            f"The tables have {everything - MOST_LINKS} more links, which the chart leaves out."
        )
    silent = [each["s"] for each in data if not vega.highest([each], "throughput_mbps")]
    if silent:
        remarks.append(f"No packets passed {', '.join(silent)}.")
    busy = [each for each in data if each["s"] not in silent]
    if not busy:
        return None
    rows = [_row(runs, each["s"], f"var(--c{index[each['s']] % 8})") for each in busy]
    return Figure(
        id="links",
        title="Links: throughput against capacity",
        how_to_read=(
            "The grey area is what the link could carry, and the line is what it carried. Grey "
            "above the line is unused capacity."
        ),
        spec=vega.stacked(rows, 12),
        data={"links": data},
        table=vega.time_table(
            data, runs.duration_s, throughput_mbps="throughput (Mb/s)",
            capacity_mbps="capacity (Mb/s)", queue_delay_ms="queue delay (ms)",
        ),
        remarks=tuple(remarks),
    )  # fmt: skip


def _row(runs: Comparison, label: str, shade: str) -> Spec:
    data = [each for each in runs.links() if each["s"] == label]
    top = vega.nice_top(vega.highest(data, "throughput_mbps", "capacity_mbps"))
    tips = vega.tips(
        t="time (s)", throughput_mbps="throughput (Mb/s)", capacity_mbps="capacity (Mb/s)"
    )
    area = {"type": "area", "interpolate": "step-before", "clip": True, "color": "var(--capacity)"}
    line = {"type": "line", "interpolate": "step-before", "clip": True, "strokeWidth": 1.4}
    return {
        "title": label,
        "width": vega.WIDTH,
        "height": _HEIGHT,
        "data": {"name": "links"},
        "transform": [{"filter": {"field": "s", "equal": label}}],
        "encoding": {"x": vega.time(runs.duration_s)},
        "layer": [
            {"mark": area, "encoding": {
                "y": vega.up_to("capacity_mbps", "Mb/s", top), "tooltip": tips}},
            {"name": f"zoom-{data[0]['k']}", "mark": {**line, "color": shade}, "encoding": {
                "y": vega.up_to("throughput_mbps", "Mb/s", top)}},
        ],
    }  # fmt: skip
