"""Searches the values that a study's source leaves open for most figures within tolerance.

``[[search]]`` of ``study.toml`` lists what is varied jointly. The command tries joint choices in a
random order from a seed, the study's own first, until all are tried or the budget, a number of
runs, is spent. Each result is stored in ``runs/search/STUDY.jsonl`` at once, and is not run again
while the scenarios, the figures' settings and the version are the same. The figures with a value
in one scenario are judged: ``searched`` of ``study.toml``, or the scenario with most figures. The
table goes to docs/measured/study-search-STUDY.md, and for reports to ``search.json`` in the study.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, NamedTuple

import typer

from airpath import _core
from airpath.analysis.statistics import percent_above
from airpath.errors import InputError
from airpath.runs.summary import number
from airpath.study.bench import Bench, Request
from airpath.study.definition import Alternative, Figure, Study, load_study, study_names
from airpath.study.joint import Joint as Shown
from airpath.study.joint import Row, write_joint
from airpath_dev import ROOT
from airpath_dev.harness import MEASURED, heading, say, table
from airpath_dev.harness import write as write_page

AT_ONCE = 40
"""Number of joint choices that run before their results are stored."""

SHOWN = 8

Joint = tuple[int, ...]
"""The index of the choice in each dimension."""


class Tried(NamedTuple):
    """A joint choice and the value of each figure."""

    joint: Joint
    obtained: tuple[float, ...]


def main(
    names: Annotated[list[str] | None, typer.Argument(metavar="[STUDY]...")] = None,
    budget: Annotated[
        int, typer.Option(envvar="BUDGET", help="Runs of a study, at most.")
    ] = 30_000,
    seed: Annotated[int, typer.Option(help="Of the order.")] = 1,
    kept: Path = ROOT / "runs/search",
    out: Annotated[Path | None, typer.Option(help="The page of one study.")] = None,
) -> None:
    """Search jointly what the studies leave open: those that list something, or those named."""
    for name in names or study_names():
        study = load_study(name)
        if not study.search and names:
            raise InputError(f"{study.id} lists nothing to vary")
        if study.search:
            tried = search(study, budget, seed, kept / f"{study.id}.jsonl")
            say(f"{len(tried)} of {size(study)} joint choices")
            write_page(out or MEASURED / f"study-search-{study.id}.md", markdown(study, tried))
            if out is None:
                write_joint(study, shown(study, tried))


def size(study: Study) -> int:
    """Return the number of joint choices."""
    total = 1
    for dimension in study.search:
        total *= len(dimension.choices)
    return total


def judged(study: Study) -> list[Figure]:
    """Return the figures with a value in the searched scenario."""
    values = [each for each in study.leaves if each.kind == "value" and not each.left_out]
    most = max((each.scenario for each in values), key=[e.scenario for e in values].count)
    scenario = study.searched or most
    return [each for each in values if each.scenario == scenario]


def search(study: Study, budget: int, seed: int, kept: Path) -> list[Tried]:
    """Try joint choices until the budget is spent; stored results do not count against it."""
    figures = judged(study)
    known = dict(read(kept, stamp(study)))
    order = list(itertools.product(*(range(len(each.choices)) for each in study.search)))
    own, others = order[0], order[1:]
    random.Random(seed).shuffle(others)
    keys = {joint: key(study, joint) for joint in (own, *others)}
    tried = {joint: Tried(joint, known[found]) for joint, found in keys.items() if found in known}
    left = [joint for joint in (own, *others) if joint not in tried]
    left = left[: budget // (len(figures) * study.repeat)]
    for start in range(0, len(left), AT_ONCE):
        some = left[start : start + AT_ONCE]
        found = obtain(study, figures, some)
        write(kept, study, found)
        tried.update((each.joint, each) for each in found)
        say(f"{start + len(some)} of {len(left)}")
    return [tried[joint] for joint in (own, *others) if joint in tried]


def obtain(study: Study, figures: Sequence[Figure], joints: Sequence[Joint]) -> list[Tried]:
    bench = Bench(study, (), study.repeat, None)
    bench.obtain(
        asked for joint in joints for figure in figures for asked in requests(study, figure, joint)
    )

    def value(figure: Figure, joint: Joint) -> float:
        columns = [
            [number(each, asked.metric) * figure.scale for each in bench.values(asked)]
            for asked in requests(study, figure, joint)
        ]
        return fmean(columns[0]) if len(columns) == 1 else percent_above(*columns).mean

    return [Tried(joint, tuple(value(figure, joint) for figure in figures)) for joint in joints]


def requests(study: Study, figure: Figure, joint: Joint) -> list[Request]:
    """Return the runs that a figure needs: one, or two variants to compare."""
    concerned = zip(study.search, choices(study, joint), strict=True)
    picked = [choice for dimension, choice in concerned if dimension.concerns(figure.id)]
    sets = [entry for choice in picked for entry in choice.sets]
    metric = next((choice.metric for choice in picked if choice.metric), figure.metrics[0])
    variants = [figure.sets] if figure.against is None else [figure.sets, figure.against]
    return [Request(figure.scenario, (*variant, *sets), metric) for variant in variants]


def choices(study: Study, joint: Joint) -> list[Alternative]:
    return [each.choices[place] for each, place in zip(study.search, joint, strict=True)]


def key(study: Study, joint: Joint) -> str:
    """Return a joint choice's settings as text, independent of the order of the study's lists."""
    picked = choices(study, joint)
    return "; ".join(
        [*sorted(entry for each in picked for entry in each.sets)]
        + [each.metric for each in picked if each.metric]
    )


def stamp(study: Study) -> str:
    """Return a hash of the scenarios, the figures' settings and the version, but not of texts."""
    files = sorted(study.directory.glob("*.toml"))
    scenarios = [file.read_text(encoding="utf-8") for file in files if file.name != "study.toml"]
    figures = [(e.id, e.scenario, e.sets, e.against, e.metrics, e.scale) for e in judged(study)]
    own = sorted((each.name, each.figures) for each in study.search if each.figures)
    text = repr((scenarios, figures, own, study.repeat, study.vary, _core.__version__))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(kept: Path, mark: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    if not kept.exists():
        return
    for line in kept.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["stamp"] == mark and "sets" in row:
            yield row["sets"], tuple(row["obtained"])


def write(kept: Path, study: Study, found: Sequence[Tried]) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    mark = stamp(study)
    with kept.open("a", encoding="utf-8") as file:
        for each in found:
            row = {"stamp": mark, "sets": key(study, each.joint), "obtained": each.obtained}
            file.write(json.dumps(row) + "\n")


def markdown(study: Study, tried: Sequence[Tried]) -> list[str]:
    """Return the page: what was varied, the best joint choices, and their results."""
    figures = judged(study)
    own = tried[0]
    columns = [f"{short(study, each)}, {each.unit}" for each in figures]
    most = max(len(inside(figures, each)) for each in tried)
    lines = [
        heading(f"Joint search over what {study.id} leaves open", "study-search"),
        f"{len(tried)} of {size(study)} joint choices were tried on the {len(figures)} figures of",
        f"[{study.id}](../guides/studies.md#{study.id}) that have a value and use its main "
        "scenario.",
        "Bold values are within the figure's tolerance.",
        "",
        table(
            "varied | choices, the study's own first",
            ((each.name, "; ".join(one.label for one in each.choices)) for each in study.search),
        ),
        "",
        table(
            " | ".join(["figures within tolerance", "joint choice", *columns]),
            [
                ["", "*published*", *(f"*{bounds(each)}*" for each in figures)],
                *(row(study, figures, each) for each in best(figures, tried)),
            ],
        ),
        "",
        f"The best joint choices bring {most} of {len(figures)} figures within tolerance (number "
        f"of such choices: {sum(len(inside(figures, e)) == most for e in tried)}), the study's own "
        f"choice {len(inside(figures, own))}.",
        "",
    ]
    kept = inside(figures, own)
    gains = [each for each in tried if inside(figures, each) > kept]
    if gains:
        gained = sorted({figures[i].id for each in gains for i in inside(figures, each) - kept})
        names = ", ".join(name.partition("/")[2] for name in gained)
        lines.append(
            f"Joint choices bring these within tolerance without losing another figure: {names}."
        )
    else:
        lines.append("No joint choice brings a figure within tolerance without losing another one.")
    lost = [each for index, each in enumerate(figures) if not any_has(figures, tried, index)]
    if lost:
        names = ", ".join(short(study, each) for each in lost)
        lines.append(f"No joint choice brings these within tolerance, whatever it loses: {names}.")
    return lines


def bounds(figure: Figure) -> str:
    """Return the published value or range without its unit."""
    return figure.published_text().removesuffix(figure.unit).strip()


def any_has(figures: Sequence[Figure], tried: Sequence[Tried], index: int) -> bool:
    return any(index in inside(figures, each) for each in tried)


def inside(figures: Sequence[Figure], tried: Tried) -> frozenset[int]:
    """Return the indices of the figures that are within their tolerance."""
    pairs = enumerate(zip(figures, tried.obtained, strict=True))
    return frozenset(index for index, (figure, value) in pairs if figure.accepts(value))


def changes(tried: Tried) -> tuple[int, Joint]:
    """Return a sort key that puts fewer changes from the study first."""
    return sum(place > 0 for place in tried.joint), tried.joint


def best(figures: Sequence[Figure], tried: Sequence[Tried]) -> list[Tried]:
    """Return the study's own choice, then those with most figures within tolerance."""
    ranked = sorted(tried, key=lambda each: (-len(inside(figures, each)), changes(each)))
    return [tried[0], *(each for each in ranked[:SHOWN] if each is not tried[0])]


def said(study: Study, tried: Tried) -> str:
    """Return how a joint choice differs from the study."""
    picked = zip(choices(study, tried.joint), tried.joint, study.search, strict=True)
    return "; ".join(f"{each.name}: {choice.label}" for choice, place, each in picked if place)


def cells(figures: Sequence[Figure], tried: Tried) -> list[tuple[str, bool]]:
    """Return each figure's value, and whether it is within tolerance."""
    return [
        (figure.text(value), figure.accepts(value))
        for figure, value in zip(figures, tried.obtained, strict=True)
    ]


def row(study: Study, figures: Sequence[Figure], tried: Tried) -> list[str]:
    marked = [f"**{text}**" if isin else text for text, isin in cells(figures, tried)]
    return [str(len(inside(figures, tried))), said(study, tried) or "the study", *marked]


def shown(study: Study, tried: Sequence[Tried]) -> Shown:
    """Return the page's rows for a report."""
    figures = judged(study)
    return Shown(
        f"{len(tried)} of {size(study)} joint choices were tried.",
        tuple(f"{short(study, each)} ({each.unit})" for each in figures),
        tuple(
            Row(
                len(inside(figures, each)),
                said(study, each) or "as the study has it",
                tuple(cells(figures, each)),
            )
            for each in best(figures, tried)
        ),
    )


def short(study: Study, figure: Figure) -> str:
    return figure.id.removeprefix(f"{study.id}/")
