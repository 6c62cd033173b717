"""Tries mechanisms that may explain what the studies do not reproduce.

``candidates.toml`` lists the candidates: a study, limits that hold at once, and rows, each a
mechanism with its settings. ``[[candidate.vary]]`` adds a row for every joint choice. A row runs
with the study's seeds; nothing is tuned by figure. A candidate is found if a row meets every limit,
and refuted otherwise. Each row is stored in ``runs/candidates.jsonl`` at once, and is not run again
while its scenario, settings and the version are the same. The page is
docs/measured/study-candidates.md.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, NamedTuple, NotRequired

import typer

from airpath import _core
from airpath.base.text import digits
from airpath.base.toml import read_toml
from airpath.errors import InputError
from airpath.runs.summary import number
from airpath.study.bench import Bench, Request
from airpath.study.definition import Condition, Study, Variant, load_study
from airpath.study.relations import condition_met, condition_text
from airpath_dev import ROOT
from airpath_dev.harness import MEASURED, heading, say, table
from airpath_dev.harness import write as write_page

LIST = Path(__file__).with_name("candidates.toml")

SHOWN = 12
"""Rows of a search on the page; a list of mechanisms is shown in full."""


class Column(Condition):
    """A limit, or a value beside the limits."""

    less: NotRequired[list[str]]
    """Settings of a second run, whose value is subtracted."""


class Candidate(NamedTuple):
    """What may explain figures of a study, and what it has to meet."""

    id: str
    title: str
    about: str
    study: Study
    scenario: str
    """Scenario of the study that the rows run."""
    limits: tuple[Column, ...]
    """All have to be met."""
    also: tuple[Column, ...]
    """Shown beside them, and not required."""
    rows: tuple[Variant, ...]
    searched: bool
    """Whether the rows are joint choices."""


class Row(NamedTuple):
    """A mechanism, and what it gives: a value for each limit, then for each of ``also``."""

    label: str
    values: tuple[float, ...]
    met: int
    """Number of limits that are met."""


def main(
    names: Annotated[list[str] | None, typer.Argument(metavar="[CANDIDATE]...")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    kept: Path = ROOT / "runs/candidates.jsonl",
    out: Path = MEASURED / "study-candidates.md",
) -> None:
    """Try all candidates and write the page, or print those that are named."""
    known = {each.id: each for each in candidates()}
    for name in names or ():
        if name not in known:
            raise InputError(f"no candidate '{name}'; available: {', '.join(known)}")
    sections = [section(known[name], workers, kept) for name in names or known]
    if names:
        print("\n\n".join(sections))
        return
    title = heading("Mechanisms that may explain what is not reproduced", "study-candidates")
    write_page(out, ["\n\n".join([f"{title}\n{ABOUT}", *sections, chance(workers)])])


ABOUT = """\
Each section tries mechanisms on one study's figures. A row has one set of parameters for all of its
columns, and runs with the study's seeds. Limits are the published values with the tolerances of the
study; bold values meet them. A candidate is found if a row meets all of them. Verdicts of `airpath
reproduce` do not count what is found here, because the figures were seen when the mechanisms were
chosen. An ssthresh that was kept between the tests of 3g-latency has [its
own page](study-order-3g-latency.md)."""


def candidates(path: Path = LIST) -> list[Candidate]:
    """Return the candidates of a file."""
    return [_candidate(entry) for entry in read_toml(path)["candidate"]]


def _candidate(entry: dict[str, Any]) -> Candidate:
    dimensions = entry.get("vary", [])
    joint = itertools.product(*(each["choices"] for each in dimensions)) if dimensions else ()
    rows = [Variant(label=each["label"], set=each.get("set", [])) for each in entry.get("row", [])]
    rows += [
        Variant(
            label="; ".join(choice["label"] for choice in choices),
            set=[setting for choice in choices for setting in choice.get("set", [])],
        )
        for choices in joint
    ]
    return Candidate(
        entry["id"], entry["title"], entry["about"].strip(),
        load_study(entry["study"]), entry["scenario"],
        tuple(entry["limit"]), tuple(entry.get("also", ())), tuple(rows), bool(dimensions),
    )  # fmt: skip


def requests(candidate: Candidate, row: Variant, column: Column) -> list[Request]:
    """Return the runs for a cell: one, or two whose values are subtracted.

    A column's own settings come last, and replace the row's.
    """
    sets = (*row["set"], *column.get("set", []))
    pairs = [sets, (*sets, *column["less"])] if "less" in column else [sets]
    return [Request(candidate.scenario, each, column["metric"]) for each in pairs]


def tried(candidate: Candidate, workers: int, kept: Path) -> list[Row]:
    """Run every row of a candidate that is not stored."""
    bench = Bench(candidate.study, (), candidate.study.repeat, workers)
    columns = (*candidate.limits, *candidate.also)
    known = dict(read(kept))
    rows = []
    for count, row in enumerate(candidate.rows, 1):
        key = stamp(candidate, row)
        if key not in known:
            asked = [requests(candidate, row, column) for column in columns]
            bench.obtain(itertools.chain.from_iterable(asked))
            known[key] = tuple(
                _value([bench.values(each) for each in wanted], column)
                for wanted, column in zip(asked, columns, strict=True)
            )
            write(kept, key, known[key])
        values = known[key]
        limited = zip(candidate.limits, values, strict=False)
        rows.append(Row(row["label"], values, sum(condition_met(*each) for each in limited)))
        say(f"{candidate.id}: {count} of {len(candidate.rows)}")
    return rows


def stamp(candidate: Candidate, row: Variant) -> str:
    """Return a hash of everything that a row's values depend on."""
    scenario = (candidate.study.directory / candidate.scenario).read_text(encoding="utf-8")
    columns = [
        (each["metric"], each.get("set"), each.get("scale"), *each.get("less", ()))
        for each in (*candidate.limits, *candidate.also)
    ]
    study = candidate.study
    text = repr((scenario, row["set"], columns, study.repeat, study.vary, _core.__version__))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(kept: Path) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the stored rows."""
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            stored = json.loads(line)
            yield stored["row"], tuple(stored["values"])


def write(kept: Path, key: str, values: Sequence[float]) -> None:
    """Store a row."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"row": key, "values": values}) + "\n")


def _value(found: Sequence[Sequence[Any]], column: Column) -> float:
    """Return the mean over the seeds; NaN if a seed has none: its rate is never steady."""
    if any(None in each for each in found):
        return math.nan
    path = column["metric"]
    means = [fmean(number(value, path) for value in each) for each in found]
    return (means[0] - sum(means[1:])) * float(column.get("scale", 1))


def section(candidate: Candidate, workers: int, kept: Path) -> str:
    """Return the section of a candidate: verdict, and a table of its rows."""
    rows = tried(candidate, workers, kept)
    columns = (*candidate.limits, *candidate.also)
    every = len(candidate.limits)
    shown = rows
    if candidate.searched:
        shown = [rows[0], *(each for each in best(rows) if each is not rows[0])][:SHOWN]
    body = [["*limit*", "", *map(_bounds, columns)]]
    body += [[row.label, str(row.met), *cells(row, columns)] for row in shown]
    head = [candidate.id.partition("/")[2], f"limits met, of {every}:"]
    also = ", ".join(each["label"] for each in candidate.also)
    beside = f" Beside them, not required: {also}." if also else ""
    return "\n".join(
        [
            f"## {candidate.title}",
            candidate.about,
            "",
            f"{verdict(rows, every)}{beside}",
            "",
            table([*head, *(each["label"] for each in columns)], body),
        ]
    )


def verdict(rows: Sequence[Row], every: int) -> str:
    """Return whether the candidate is found, and with which rows."""
    met = [row.label for row in rows if row.met == every]
    if met:
        names = " / ".join(met)
        return f"**Found**: {len(met)} of {len(rows)} rows meet all {every} limits: {names}."
    most = max(row.met for row in rows)
    return f"**Refuted**: none of {len(rows)} rows meets all {every} limits; the best meet {most}."


def best(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that meet most limits first."""
    return sorted(rows, key=lambda row: -row.met)


def cells(row: Row, columns: Sequence[Column]) -> Iterator[str]:
    """Yield the values of a row; those that meet their limit are bold."""
    for column, value in zip(columns, row.values, strict=True):
        text = "never" if math.isnan(value) else digits(value)
        yield f"**{text}**" if _bounds(column) and condition_met(column, value) else text


def _bounds(column: Column) -> str:
    """Return the bounds of a column; empty if every value is allowed."""
    if not math.isinf(column["limit"]):
        return f"*{condition_text(column)}*"
    return f"*at least {digits(column['least'])}*" if "least" in column else ""


PAIRS = 3
"""Pairs of runs that the source made, CUBIC and BBR in turn."""

DRAWN = 12
"""Seeds of each control; 48,400 pairs of triples."""

PUBLISHED = (300.0, 468.0, 327.0), (730.0, 523.0, 526.0)
"""Mb/s of CUBIC and of BBR on China Mobile's phone."""

MODULE = (343.0, 323.0, 325.0), (359.0, 339.0, 358.0)
"""Mb/s of CUBIC and of BBR over China Unicom's module."""


def chance(workers: int) -> str:
    """Return the sections on the probability that equal controls differ as published."""
    bench = Bench(load_study("nr-bbr-cubic"), (), DRAWN, workers)
    asked = [
        Request("scenario-mobile.toml", (f"flow.0.congestion={each}",), "group.0.goodput_mbps")
        for each in ("cubic", "bbr")
    ]
    bench.obtain(asked)
    cubic, bbr = ([float(value) for value in bench.values(each)] for each in asked)
    ratio = fmean(PUBLISHED[1]) / fmean(PUBLISHED[0])
    return CHANCE.format(
        pairs=PAIRS, drawn=DRAWN, won=0.5**PAIRS, either=2 * 0.5**PAIRS,
        ways=math.comb(2 * PAIRS, PAIRS), order=ahead(*PUBLISHED), module=ahead(*MODULE),
        cubic=f"{digits(min(cubic))} to {digits(max(cubic))}",
        bbr=f"{digits(min(bbr))} to {digits(max(bbr))}",
        ahead=wins(cubic, bbr), three=wins(cubic, bbr) ** PAIRS,
        ratio=ratio, exceeding=exceeding(cubic, bbr, ratio),
    )  # fmt: skip


CHANCE = """\
## nr-bbr-cubic: is it chance that BBR won every pair?
On China Mobile's phone BBR had 730, 523 and 526 Mb/s, CUBIC 300, 468 and 327, in turn.

- If neither control is better, BBR wins {pairs} of {pairs} pairs with a probability of {won:.3f},
  and one of the two wins all with {either:.2f}. Runs of a pair follow each other, so a slow drift
  of the radio does not change that.
- All of BBR's runs are faster than all of CUBIC's. If the six are exchangeable, that happens in
  {order} of the {ways} ways to divide them.
- In the model, {drawn} runs of each, with a channel that is drawn for each seed, have {cubic} Mb/s
  with CUBIC and {bbr} with BBR. If every run meets a channel of its own, BBR is ahead in
  {ahead:.2f} of pairs, in three of three with {three:.2f}, and its mean of three is at least the
  published {ratio:.2f} times CUBIC's in {exceeding:.3f} of draws.

## nr-bbr-cubic: is BBR faster over the module?
Over the USB module BBR had 359, 339 and 358 Mb/s, CUBIC 343, 323 and 325. If the six runs are
exchangeable, BBR leads by at least this much in {module} of the {ways} ways to divide them."""


def ahead(low: Sequence[float], high: Sequence[float]) -> int:
    """Return in how many divisions of all runs the one side has at least the sum of ``high``."""
    return sum(sum(each) >= sum(high) for each in itertools.combinations([*low, *high], len(high)))


def wins(low: Sequence[float], high: Sequence[float]) -> float:
    """Return the fraction of pairs in which ``high`` is ahead."""
    return fmean(float(b > a) for a in low for b in high)


def exceeding(low: Sequence[float], high: Sequence[float], ratio: float) -> float:
    """Return the fraction of pairs of triples whose means differ at least by this ratio."""
    sums = [[sum(each) for each in itertools.combinations(side, PAIRS)] for side in (low, high)]
    return fmean(float(b >= a * ratio) for a in sums[0] for b in sums[1])
