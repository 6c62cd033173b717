"""The source's figures, redrawn from its numbers beside what was obtained: SVG without scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from airpath.base.text import digits

if TYPE_CHECKING:
    from airpath.study.definition import Chart
    from airpath.study.judge import Finding

HEIGHT, TOP, BOTTOM, LEFT = 180.0, 16.0, 44.0, 52.0
GROUP, BAR = 116.0, 30.0


class Bar(NamedTuple):
    """A bar, with the whisker that belongs to it: a tolerance or a confidence interval."""

    value: float
    low: float
    high: float
    label: str = ""
    """What is written below it; empty: the value."""


def draw(chart: Chart, findings: Mapping[str, Finding]) -> str:
    """One SVG: for each figure what was published, with its tolerance, and what was obtained.

    Args:
        chart: Which figures; all have one unit.
        findings: By the figure's name.

    """
    import markupsafe

    pairs = [bars(findings[figure]) for figure in chart.figures]
    ticks = _ticks(max((bar.high for pair in pairs for bar in pair if bar), default=1.0) or 1.0)
    most = ticks[-1]
    width = LEFT + GROUP * len(pairs)
    parts = [
        f'<svg class="study-chart" viewBox="0 0 {width:.0f} {TOP + HEIGHT + BOTTOM:.0f}" '
        f'width="{width:.0f}" role="img" aria-label="{markupsafe.escape(chart.title)}">'
    ]
    for tick in ticks:
        y = TOP + HEIGHT * (1 - tick / most)
        parts.append(f'<path class="grid" d="M{LEFT:.0f} {y:.1f}H{width:.0f}"/>')
        parts.append(f'<text class="end" x="{LEFT - 6:.0f}" y="{y + 4:.1f}">{digits(tick)}</text>')
    for index, (label, pair) in enumerate(zip(chart.labels, pairs, strict=True)):
        left = LEFT + GROUP * index
        for place, (kind, bar) in enumerate(zip(("published", "obtained"), pair, strict=True)):
            x = left + 22 + place * (BAR + 8)
            parts += _bar(kind, x, bar, most)
        parts.append(
            f'<text class="mid" x="{left + 56:.0f}" y="{TOP + HEIGHT + 32:.0f}">'
            f"{markupsafe.escape(label)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _ticks(most: float) -> list[float]:
    """Round ticks from 0, at most six, the last at or above ``most``."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(each * power for each in (0.2, 0.5, 1.0, 2.0) if most <= 5 * each * power)
    return [step * count for count in range(math.ceil(most / step) + 1)]


def bars(finding: Finding) -> tuple[Bar | None, Bar | None]:
    """What was published and what was obtained; None where there is none."""
    figure, value = finding.figure, finding.obtained
    low, high = figure.low, figure.high
    published = None
    if low is not None and high is not None:
        spare = figure.tolerance
        published = Bar((low + high) / 2, low - abs(low) * spare, high + abs(high) * spare)
    elif high is not None:
        published = Bar(high, 0.0, high, f"< {digits(high)}")
    if value is None:
        return published, None
    if isinstance(value, tuple):
        return published, Bar(sum(value) / 2, *value)
    bounds: Sequence[float] = finding.ci95 or (value, value)
    return published, Bar(value, bounds[0], bounds[1])


def _bar(kind: str, x: float, bar: Bar | None, most: float) -> list[str]:
    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - max(value, 0.0) / most)

    import markupsafe

    middle = x + BAR / 2
    if bar is None:
        return [f'<text class="mid" x="{middle:.0f}" y="{TOP + HEIGHT - 4:.0f}">none</text>']
    top, floor = y(bar.value), TOP + HEIGHT
    return [
        f'<rect class="{kind}" x="{x:.0f}" y="{top:.1f}" width="{BAR:.0f}" '
        f'height="{floor - top:.1f}"/>',
        f'<path class="whisker" d="M{middle:.0f} {y(bar.low):.1f}V{y(bar.high):.1f}"/>',
        f'<text class="mid" x="{middle:.0f}" y="{floor + 14:.0f}">'
        f"{markupsafe.escape(bar.label or digits(bar.value))}</text>",
    ]
