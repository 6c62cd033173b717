"""How much of each link was used."""

from __future__ import annotations

from airpath.plots import marks
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
    notes = ["Long series are thinned to their peaks."] if runs.thinned else []
    if everything > MOST_LINKS:
        notes.append(f"{everything - MOST_LINKS} more links are in the tables, not in the chart.")
    silent = [each["s"] for each in data if not marks.highest([each], "throughput_mbps")]
    if silent:
        notes.append(f"Nothing crossed {', '.join(silent)}.")
    busy = [each for each in data if each["s"] not in silent]
    if not busy:
        return None
    rows = [_row(runs, each["s"], f"var(--c{index[each['s']] % 8})") for each in busy]
    return Figure(
        id="links",
        title="Links: throughput against capacity",
        how_to_read=(
            "Grey is what the link could carry, the line what it did: grey above the line is "
            "capacity that no one used."
        ),
        spec=marks.stacked(rows, 12),
        data={"links": data},
        table=marks.time_table(
            data, runs.duration_s, throughput_mbps="throughput (Mb/s)",
            capacity_mbps="capacity (Mb/s)", queue_delay_ms="queue delay (ms)",
        ),
        notes=tuple(notes),
    )  # fmt: skip


def _row(runs: Comparison, label: str, shade: str) -> Spec:
    data = [each for each in runs.links() if each["s"] == label]
    top = marks.nice_top(marks.highest(data, "throughput_mbps", "capacity_mbps"))
    tips = marks.tips(
        t="time (s)", throughput_mbps="throughput (Mb/s)", capacity_mbps="capacity (Mb/s)"
    )
    area = {"type": "area", "interpolate": "step-before", "clip": True, "color": "var(--capacity)"}
    line = {"type": "line", "interpolate": "step-before", "clip": True, "strokeWidth": 1.4}
    return {
        "title": label,
        "width": marks.WIDTH,
        "height": _HEIGHT,
        "data": {"name": "links"},
        "transform": [{"filter": {"field": "s", "equal": label}}],
        "encoding": {"x": marks.time(runs.duration_s)},
        "layer": [
            {"mark": area, "encoding": {
                "y": marks.up_to("capacity_mbps", "Mb/s", top), "tooltip": tips}},
            {"name": f"zoom-{data[0]['k']}", "mark": {**line, "color": shade}, "encoding": {
                "y": marks.up_to("throughput_mbps", "Mb/s", top)}},
        ],
    }  # fmt: skip
