"""What ``airpath tune`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from airpath.base.text import plural
from airpath.runs.describe import figure_name, figure_text
from airpath.tune.settings import HOSTS

if TYPE_CHECKING:
    from airpath.tune.document import Advised, Changed, Line, Rejected, Tuning


_PARTS: tuple[Literal["names"], Literal["left_out"]] = ("names", "left_out")


def sentences(answer: Tuning) -> list[str]:
    """Return the advised settings with their gain and harm, then what else was tried."""
    names = [one["name"] for one in answer["advised"]]
    paragraphs = [_advised(one, names) for one in answer["advised"]]
    paragraphs.append(_together(answer))
    if answer["rejected"]:
        lines = [f"  {line}" for line in _rejected(answer["rejected"])]
        paragraphs.append(["tried and not advised:", *lines])
    paragraphs.append(_footer(answer))
    return [line for one in paragraphs if one for line in [*one, ""]][:-1]


def _advised(one: Advised, names: list[str]) -> list[str]:
    number = names.index(one["name"]) + 1
    beside = [names.index(each) + 1 for each in one["beside"]]
    on_top = f", on top of {_numbers(beside)}" if beside else ""
    lines = [
        *_settings(one["lines"]),
        *(f"needs: {need}" for need in one["needs"]),
        *_effects(one["gains"], one["harms"]),
    ]
    return [f"({number}) {one['name']}{on_top}", *(f"    {line}" for line in lines)]


def effect_text(one: Changed) -> str:
    """``goodput of download 135 kb/s → 309 kb/s (+129 %, +120 to +138)``."""
    low, high = one["ci95"]
    metric = one["metric"]
    figures = f"{figure_text(metric, one['before'])} → {figure_text(metric, one['after'])}"
    if one["before"] == 0:
        return f"{figure_name(metric)} of {one['flow']} {figures}"
    change = f"{100 * one['change']:+.0f} %"
    if round(100 * low) != round(100 * high):
        change += f", {100 * low:+.0f} to {100 * high:+.0f}"
    return f"{figure_name(metric)} of {one['flow']} {figures} ({change})"


def _settings(lines: Sequence[Line]) -> list[str]:
    return [f"{HOSTS[line['end']]}: {text}" for line in lines for text in line["text"]]


def _effects(gains: Sequence[Changed], harms: Sequence[Changed]) -> list[str]:
    said = [f"gain: {effect_text(one)}" for one in gains]
    return said + ([f"harm: {effect_text(one)}" for one in harms] or ["harm: none"])


def _together(answer: Tuning) -> list[str]:
    together = answer["together"]
    if together is None:
        return ["no setting helps this path"]
    if len(answer["advised"]) == 1:
        return []
    chosen, left = (
        [number for number, one in enumerate(answer["advised"], 1) if one["name"] in together[key]]
        for key in _PARTS
    )
    if len(chosen) == 1:
        return [f"use only {_numbers(chosen)}: the other settings add nothing, or do harm"]
    lines = [f"    {line}" for line in _effects(together["gains"], together["harms"])]
    said = [f"use {_numbers(chosen)} together:", *lines]
    return [*said, f"    not together with these: {_numbers(left)}"] if left else said


def _numbers(numbers: Sequence[int]) -> str:
    """``(1), (2) and (4)``."""
    words = [f"({number})" for number in numbers]
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _rejected(rejected: Sequence[Rejected]) -> list[str]:
    """Settings of one kind that were rejected for the same reason share a line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in rejected:
        alike.setdefault((one["kind"], one["because"]), []).append(one["name"])
    return [
        f"{names[0] if len(names) == 1 else f'{kind} ({len(names)} settings)'}: {because}"
        for (kind, because), names in alike.items()
    ]


def _footer(answer: Tuning) -> list[str]:
    lines = [
        f"Means over {plural(answer['seeds'], 'paired seed')} of a simulation with the TCP of "
        f"{answer['profile']}; in brackets the change and its 95 % confidence interval."
    ]
    if answer["missing"]:
        lines.append(f"Not in the simulation: {', '.join(answer['missing'])}.")
    return [
        *lines,
        *(f"The kernel differs from the scenario: {one}." for one in answer["not_as_kernel"]),
    ]
