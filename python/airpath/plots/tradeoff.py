"""Rate against delay: each value of a varied key is one point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airpath.base.text import digits
from airpath.campaign.goals import GOODPUT, Factor, Outcome, factor
from airpath.campaign.verdict import Verdict
from airpath.plots import vega
from airpath.plots.figure import Figure, Series, Spec, Table

_HEIGHT = 240
_COLUMNS = 3
_MOST_PANELS = 12
_HALF = 0.5
"""A lowest value above this share of the highest would leave half of an axis from 0 empty."""
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

if TYPE_CHECKING:
    import polars as pl


def tradeoff(answer: Verdict) -> Figure | None:
    """Draw the first rate against the first delay; None without both.

    Where the verdict averages over other keys, the axes have factors against the value that the
    others are compared with, because a mean over a slow and a fast path would be that of the fast
    one. What matters most for the comparison has a panel for each value, with scales of its own.
    """
    found = answer.outcomes
    if len(found) < 2 or found[0].goal is not GOODPUT or not found[1].goal.is_delay:
        return None
    apart, compared = answer.apart, answer.compared
    panels = found[0].found[apart].unique(maintain_order=True).to_list() if apart else [""]
    data = [point for panel in panels[:_MOST_PANELS] for point in _points(answer, found[:2], panel)]
    name = found[1].goal.name
    units = ("", "") if answer.averaged else (" (Mb/s)", " (ms)")
    versus = f", {answer.against} = 1" if answer.averaged else ""
    return Figure(
        id="tradeoff",
        title=f"What {compared} trades: goodput against {name}",
        how_to_read=_how_to_read(answer),
        spec=vega.finished(_spec(data, answer, name, versus)),
        data={"tradeoff": data},
        table=Table(
            [apart, compared, f"goodput{units[0]}{versus}", f"{name}{units[1]}{versus}"],
            [
                [each["panel"], each["s"], digits(each["rate"][0]), digits(each["delay"][0])]
                for each in data
            ],
        ),
        remarks=(f"The first {_MOST_PANELS} values of {apart} are shown.",)
        if len(panels) > _MOST_PANELS
        else (),
        columns={
            **({"panel": apart} if apart else {}), "s": compared,
            **{f"{axis}{end}": f"{axis}{end}" for axis in ("rate", "delay")
               for end in ("", "_low", "_high")},
        },
    )  # fmt: skip


def _how_to_read(answer: Verdict) -> str:
    said = [
        f"One point is one value of {answer.compared}; better is up and to the right, where the "
        "rate is high and the delay short.",
    ]
    if answer.averaged:
        said.append(
            f"Both are relative to {answer.against}, as geometric means over "
            f"{' and '.join(answer.averaged)}."
        )
    said.append("The bars are 95 % confidence intervals over the seeds.")
    if answer.apart:
        said.append(f"Each value of {answer.apart} has a panel with scales of its own.")
    return " ".join(said)


def _points(answer: Verdict, both: Sequence[Outcome], panel: str) -> list[Series]:
    """One series a value of the compared key."""
    import polars as pl

    apart, compared = answer.apart, answer.compared
    if apart:
        both = [replace(one, found=one.found.filter(pl.col(apart) == panel)) for one in both]
    made: list[Series] = []
    for value in both[0].found[compared].unique(maintain_order=True).to_list():
        rate, delay = (_mean(one.found, answer, value) for one in both)
        if rate is not None and delay is not None:
            made.append({
                "panel": panel, "s": value,
                "rate": [rate.mean], "rate_low": [rate.low], "rate_high": [rate.high],
                "delay": [delay.mean], "delay_low": [delay.low], "delay_high": [delay.high],
            })  # fmt: skip
    return made


def _mean(found: pl.DataFrame, answer: Verdict, value: str) -> Factor | None:
    """The mean of one value, or its factor where there are means over other keys."""
    from airpath.analysis.intervals import interval

    if answer.averaged:
        if value == answer.against:
            return Factor(1.0, 1.0, 1.0, same=True)
        return factor(found, answer.compared, value, answer.against, answer.averaged)
    seeds = found.filter(found[answer.compared] == value).sort("seed")["value"]
    return Factor(*interval(seeds.to_numpy())) if len(seeds) else None


def _spec(data: list[Series], answer: Verdict, name: str, versus: str) -> Spec:
    labels = list(dict.fromkeys(str(each["s"]) for each in data))
    panels = list(dict.fromkeys(str(each["panel"]) for each in data))
    seconds, rates = ({}, {}) if answer.averaged else (vega.si("s", 1e-3), vega.si("b/s", 1e6))
    x = _axis("delay", name[:1].upper() + name[1:] + versus, data, seconds)
    x["scale"] = {**x["scale"], "reverse": True}
    y = _axis("rate", f"Goodput{versus}", data, rates)
    shape = {
        "field": "s", "type": "nominal", "title": None,
        "scale": {"domain": labels,
                  "range": [_SHAPES[at % len(_SHAPES)] for at in range(len(labels))]},
    }  # fmt: skip
    palette = [f"var(--c{index % 8})" for index in range(len(labels))]
    rule = {"type": "rule", "strokeWidth": 1.5, "clip": True}
    tip = vega.tips(s=" ", panel="at", rate=f"goodput{versus}", delay=f"{name}{versus}")
    layers: list[Spec] = [
        {"mark": rule, "transform": [{"filter": "isValid(datum.delay_low)"}],
         "encoding": {"x": {**x, "field": "delay_low"}, "x2": {"field": "delay_high"}, "y": y}},
        {"mark": rule, "transform": [{"filter": "isValid(datum.rate_low)"}],
         "encoding": {"y": {**y, "field": "rate_low"}, "y2": {"field": "rate_high"}, "x": x}},
        {"mark": {"type": "point", "filled": False, "size": 90, "strokeWidth": 2.5, "opacity": 1},
         "encoding": {"x": x, "y": y, "shape": shape, "tooltip": tip}},
    ]  # fmt: skip
    colour = vega.colour(labels, palette, legend=True)
    view: Spec = {"height": _HEIGHT, "encoding": {"color": colour}, "layer": layers}
    if len(panels) == 1:
        return {"data": {"name": "tradeoff"}, "width": vega.WIDTH, **view}
    columns = min(len(panels), _COLUMNS if len(panels) != 4 else 2)
    return {
        "data": {"name": "tradeoff"},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels,
                  "header": {"labelFontWeight": 600, "labelColor": "var(--ink)"}},
        "columns": columns,
        "spec": {"width": vega.WIDTH // columns - 70, **view},
        "resolve": {"scale": {"x": "independent", "y": "independent"},
                    "axis": {"x": "independent", "y": "independent"}},
    }  # fmt: skip


def _axis(field: str, title: str, data: Sequence[Series], ticks: Spec) -> Spec:
    """An axis from 0, or from a panel's values where they lie far from 0, which its title says.

    It is logarithmic where they span a decade.
    """
    spans: dict[str, list[float]] = {}
    for each in data:
        ends = (*each[field], *each[f"{field}_low"], *each[f"{field}_high"])
        spans.setdefault(str(each["panel"]), []).extend(end for end in ends if end is not None)
    scale: Spec = {"zero": True, "nice": True}
    far = any(_HALF * max(span) < min(span) < max(span) for span in spans.values())
    if any(map(vega.wide, spans.values())):
        scale = vega.LOG
    elif far:
        scale = {"zero": False, "nice": True, "padding": 10}
        title += " (axes may not start at 0)" if len(spans) > 1 else " (axis does not start at 0)"
    return vega.number(field, title, scale=scale, axis={**ticks, "tickCount": 5})
