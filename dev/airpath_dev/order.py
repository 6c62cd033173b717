"""Searches whether an ssthresh kept between a study's tests explains its figures.

BSD keeps a route's ssthresh from one connection to the next (``route.metrics = "bsd"``), so that a
test depends on those before it. For each joint choice of ``[[search]]`` the command runs each row
with several kept ssthreshs: is there one with which the figure is within its tolerance? Where every
row has one, it searches the order of the rows, in which each test begins with what the earlier ones
left, and the ssthresh that was kept before the first. The table goes to
docs/measured/study-order-STUDY.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from airpath import _core
from airpath import scenario as scenarios
from airpath.base.toml import parse_toml
from airpath.errors import InputError
from airpath.runs.summary import lookup, number
from airpath.study.definition import Figure, Study, load_study
from airpath_dev.harness import MEASURED, heading, say, table
from airpath_dev.harness import write as write_page
from airpath_dev.search import Joint, bounds, choices, judged, short

KEPT = (None, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0, 22.0, 32.0, 45.0)
"""ssthreshs in segments that a row is tried with; None: the route has none. The link of 1350 kb/s
and 400 ms holds 46 segments."""

STEP = 0.25
"""A kept ssthresh is rounded to this, in segments, before the next test begins with it: an eighth
of the smallest one. Otherwise each order would need runs of its own."""

HEADERS = 40
"""IPv4 and TCP headers, which BSD adds to each segment of a kept ssthresh."""

DRAIN_S = 60
"""Seconds after a test in which what is queued arrives: 1 MB at 350 kb/s takes 23."""

Ssthresh = float | None
"""In segments; None: none is kept, or there was no reduction."""


class Outcome(NamedTuple):
    """A row's run."""

    value: float
    """The figure's."""
    left: Ssthresh
    """What the route keeps afterwards, in segments."""


class Tests:
    """The rows of a study under one joint choice; each run is made once."""

    def __init__(self, study: Study, joint: Joint) -> None:
        self.study, self.figures = study, judged(study)
        picked = choices(study, joint)
        self.sets = [entry for each in picked for entry in each.sets]
        self.metric = next((each.metric for each in picked if each.metric), None)
        self.scenario = study.directory / self.figures[0].scenario
        self.duration_s = scenarios.load(self.scenario, self.sets).duration_s + DRAIN_S
        self._known: dict[tuple[int, Ssthresh], Outcome] = {}

    def run(self, row: int, kept: Ssthresh) -> Outcome:
        """Run a row with a kept ssthresh."""
        if (row, kept) not in self._known:
            self._known[row, kept] = self._run(self.figures[row], kept)
        return self._known[row, kept]

    def _run(self, figure: Figure, kept: Ssthresh) -> Outcome:
        sets = [*figure.sets, *self.sets, "flow.0.route.metrics=bsd"]
        if kept is not None:
            sets.append(f"flow.0.route.ssthresh_segments={kept}")
        scenario = scenarios.load(self.scenario, [*sets, f"run.duration_s={self.duration_s}"])
        result = _core.simulate(scenario, scenario.seed)
        metric = self.metric or figure.metrics[0]
        value = number(lookup(result.summary, metric), metric) * figure.scale
        return Outcome(value, kept_after(kept, last_ssthresh(result), scenario))

    def accepts(self, row: int, kept: Ssthresh) -> bool:
        """Whether a row with a kept ssthresh is within its tolerance."""
        return self.figures[row].accepts(self.run(row, kept).value)


def last_ssthresh(result: _core.Result) -> Ssthresh:
    """Return the ssthresh at the end of the first flow, in segments; None before a reduction."""
    import polars as pl

    samples = pl.DataFrame(result.table("samples"))
    found: Any = samples["ssthresh_segments"].drop_nulls()
    return None if found.is_empty() else float(found[-1])


def kept_after(kept: Ssthresh, ssthresh: Ssthresh, scenario: _core.Scenario) -> Ssthresh:
    """Return what BSD keeps after a connection that ends with ``ssthresh``, rounded to STEP.

    The rule is that of ``crates/tcp/src/route.rs``; a connection without a reduction ends with an
    ssthresh far above any window, which is kept only if the route has one already.
    """
    flow = parse_toml(scenario.resolved_toml)["flow"][0]
    mss, send_buffer = int(flow["mss_bytes"]), int(flow["send_buffer_bytes"])
    if ssthresh is None or (kept is None and ssthresh * mss >= send_buffer // 2):
        return kept
    left = max(round(ssthresh), 2) * (mss + HEADERS) / mss
    mean = left if kept is None else (kept + left) / 2
    return round(mean / STEP) * STEP


class Orders(NamedTuple):
    """The orders of the rows in which every figure is within its tolerance."""

    before: Ssthresh
    """What the route keeps before the first."""
    many: int
    first: tuple[int, ...]
    values: tuple[float, ...]
    """What the rows of the first order give."""


def orders(tests: Tests, before: Ssthresh) -> Orders | None:
    """Return the orders in which every row is within its tolerance; None: there is none."""
    known: dict[tuple[frozenset[int], Ssthresh], tuple[int, tuple[int, ...]]] = {}

    def after(left: frozenset[int], kept: Ssthresh) -> tuple[int, tuple[int, ...]]:
        """Return the number of orders of the rows that are left, and the first."""
        if not left:
            return 1, ()
        if (left, kept) not in known:
            count, first = 0, tuple[int, ...]()
            for row in sorted(left):
                if tests.accepts(row, kept):
                    more, rest = after(left - {row}, tests.run(row, kept).left)
                    first = first or ((row, *rest) if more else ())
                    count += more
            known[left, kept] = count, first
        return known[left, kept]

    count, first = after(frozenset(range(len(tests.figures))), before)
    return Orders(before, count, first, followed(tests, before, first)) if count else None


def followed(tests: Tests, before: Ssthresh, rows: Sequence[int]) -> tuple[float, ...]:
    """Return what the rows give, one after the other."""
    kept, values = before, []
    for row in rows:
        value, kept = tests.run(row, kept)
        values.append(value)
    return tuple(values)


class Tried(NamedTuple):
    """A joint choice."""

    joint: Joint
    with_none: frozenset[int]
    """Rows within tolerance if no test knows of another."""
    with_some: frozenset[int]
    """Rows within tolerance with some kept ssthresh or with none."""
    as_listed: int
    """Rows within tolerance in the order in which the study lists them, with the best ssthresh kept
    before the first."""
    orders: tuple[Orders, ...]
    """For each ssthresh kept before the first test that has one."""


def attempt(study: Study, joint: Joint) -> Tried:
    """Try a joint choice."""
    tests = Tests(study, joint)
    rows = range(len(tests.figures))
    accepted = {kept: {row for row in rows if tests.accepts(row, kept)} for kept in KEPT}
    some = frozenset(set().union(*accepted.values()))
    listed = max(
        sum(
            figure.accepts(value)
            for figure, value in zip(tests.figures, followed(tests, kept, rows), strict=True)
        )
        for kept in KEPT
    )
    found: list[Orders] = []
    if len(some) == len(rows):
        found = [each for kept in KEPT if (each := orders(tests, kept)) is not None]
    return Tried(joint, frozenset(accepted[None]), some, listed, tuple(found))


FIXED = ("length of the test", "congestion control", "the end that counts")
"""What stays as the study has it: the source names the system, and the others are iperf's."""


def joints(study: Study) -> list[Joint]:
    """Return the joint choices of everything that is not fixed."""
    sizes = [range(1 if each.name in FIXED else len(each.choices)) for each in study.search]
    return list(itertools.product(*sizes))


def main(
    name: Annotated[str, typer.Argument(metavar="STUDY")] = "3g-latency",
    workers: Annotated[int, typer.Option(help="Threads.")] = 2,
    out: Annotated[Path | None, typer.Option(help="The page.")] = None,
) -> None:
    """Search the order of a study's tests, and what BSD kept before the first."""
    study = load_study(name)
    if not study.search:
        raise InputError(f"{study.id} lists nothing to vary")
    tried: list[Tried] = []
    with ThreadPoolExecutor(workers) as threads:
        for each in threads.map(lambda joint: attempt(study, joint), joints(study)):
            tried.append(each)
            if len(tried) % 100 == 0:
                say(f"{len(tried)} of {len(joints(study))}")
    own = Tests(study, joints(study)[0])
    write_page(out or MEASURED / f"study-order-{study.id}.md", markdown(study, own, tried))


def markdown(study: Study, own: Tests, tried: Sequence[Tried]) -> list[str]:
    """Return the page."""
    figures = judged(study)
    count = len(figures)
    every = [each for each in tried if len(each.with_some) == count]
    ordered = [each for each in tried if each.orders]
    unaided = [each for each in ordered if any(one.before is None for one in each.orders)]
    alone, some = (
        max(len(found) for found in sets)
        for sets in ([each.with_none for each in tried], [each.with_some for each in tried])
    )
    listed = max(each.as_listed for each in tried)
    names = [short(study, each) for each in figures]
    lines = [
        heading(f"An ssthresh kept between the tests of {study.id}", "study-order"),
        "BSD keeps a route's ssthresh and averages it when a connection ends",
        '(`route.metrics = "bsd"`), so that a test depends on the tests before it. Of',
        f"[{study.id}](../guides/studies.md#{study.id}), the {count} figures that have a value and",
        "use its main scenario were run with each of these kept ssthreshs, in segments:",
        f"{', '.join('none' if kept is None else f'{kept:g}' for kept in KEPT)}. This was done for",
        f"{len(tried)} joint choices of what [the search](study-search-{study.id}.md) varies.",
        f"Fixed are {', '.join(FIXED)}.",
        "",
        "With the study's own choice (bold: within the figure's tolerance):",
        "",
        table(
            ["kept ssthresh", *names],
            [
                ["*published*", *(f"*{bounds(each)}*" for each in figures)],
                *(["none" if kept is None else f"{kept:g}", *cells(own, kept)] for kept in KEPT),
            ],
        ),
        "",
        f"- No test knows of another: {alone} of {count} figures are within tolerance at most.",
        f"- Each test may begin with any kept ssthresh: {some} of {count} at most. All are under",
        f"  {len(every)} joint choices.",
        "- The tests follow each other in the order in which the study lists them, and the route",
        f"  keeps any of these ssthreshs before the first: {listed} of {count} at most.",
        f"- The tests follow each other in any order: {count} of {count} in some order under",
        f"  {len(ordered)} joint choices. If the route keeps nothing before the first, under",
        f"  {len(unaided)}.",
    ]
    shown = sorted(ordered, key=lambda each: (sum(map(bool, each.joint)), each.joint))[:SHOWN]
    if shown:
        lines += [
            "",
            f"Of the {math.factorial(count)} orders, this many have every figure within tolerance:",
            "",
            table(
                "joint choice | kept before the first | orders: | the first of them",
                [
                    [
                        said_of(study, each.joint),
                        "none" if one.before is None else f"{one.before:g}",
                        one.many,
                        ", ".join(
                            f"{names[row]} ({figures[row].text(value)})"
                            for row, value in zip(one.first, one.values, strict=True)
                        ),
                    ]
                    for each in shown
                    for one in each.orders[:1]
                ],
            ),
        ]
    return lines


SHOWN = 8
"""Joint choices on the page."""


def said_of(study: Study, joint: Joint) -> str:
    """Return how a joint choice differs from the study."""
    picked = zip(choices(study, joint), joint, study.search, strict=True)
    words = "; ".join(f"{each.name}: {choice.label}" for choice, place, each in picked if place)
    return words or "the study"


def cells(tests: Tests, kept: Ssthresh) -> list[str]:
    """Return what a kept ssthresh gives in each row."""
    texts = []
    for row, figure in enumerate(tests.figures):
        text = figure.text(tests.run(row, kept).value)
        texts.append(f"**{text}**" if tests.accepts(row, kept) else text)
    return texts
