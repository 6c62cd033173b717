"""Simulates and emulates randomly drawn scenarios and compares the two (root).

Each is emulated twice. The difference between the kernel runs is shown beside the difference
between airpath and the kernel. A figure that is outside its limit, but differs no more than the
kernel runs from each other, is undecided and counted separately.

The result of a seed is stored in a file, for this build and this kernel. A large set of seeds can
be run in parts: each command runs its missing seeds, and a command for all seeds writes the page.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from airpath.base.toml import parse_toml
from airpath.cli.console import progress_bar
from airpath.runs.summary import write_json
from airpath.twin import compare, runs
from airpath.twin.comparable import Comparable
from airpath_dev import ROOT
from airpath_dev.harness import FINE, NOT_CHECKED, WRONG, Count, Seed, heading, say, table, write

from .draw import Drawn, draw
from .place import prepared

CAUSES = Path(__file__).with_name("causes.toml")
"""Why a drawn scenario differs, by its seed, as it was found by looking."""
NOT_JUDGED_SHARE = 0.05
AGREEING_SHARE = 0.90
RESULT = "result.json"
EMULATIONS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
"""Directories of the emulated runs."""

AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"


@dataclass(frozen=True)
class Judged:
    """One figure of one flow."""

    figure: compare.Figure
    kernel: float | None
    """Distance of the emulated runs, as the difference is given: relative, or in base RTTs."""
    verdict: str


@dataclass(frozen=True)
class Result:
    """One drawn scenario; without figures if no emulated run counts."""

    drawn: Drawn
    figures: Sequence[Judged]
    refused: Sequence[str]
    """Why emulated runs do not count."""

    @property
    def verdict(self) -> str:
        """Of the scenario."""
        found = {judged.verdict for judged in self.figures}
        if not self.figures:
            return "not judged"
        return next((one for one in (DIFFERS, UNDECIDED) if one in found), AGREES)


def judge(figure: compare.Figure) -> Judged | None:
    """Judge a figure of which the kernel has several values; None for one without a limit."""
    if figure.limit is None or figure.verdict == compare.NOT_COMPARABLE:
        return None
    kernel = _distance(figure)
    if figure.verdict == compare.AGREES:
        return Judged(figure, kernel, AGREES)
    present = [value is not None for value in figure.emulated]
    if any(present) and not all(present):
        # The kernel does now one thing and now the other.
        return Judged(figure, kernel, UNDECIDED)
    if kernel is None or figure.difference is None:
        return Judged(figure, kernel, DIFFERS)
    inside = abs(figure.difference) <= kernel
    return Judged(figure, kernel, UNDECIDED if inside else DIFFERS)


def _distance(figure: compare.Figure) -> float | None:
    """How far the kernel is from itself, in the measure of the figure's difference."""
    values = [value for value in figure.emulated if value is not None]
    ours = compare.mean(figure.simulated)
    if len(values) < 2 or not ours:
        return None
    apart = max(values) - min(values)
    if figure.name != compare.EXIT:
        return apart / abs(ours)
    gap = statistics.fmean(values) - ours
    # Base RTTs are what the difference counts in.
    return None if not figure.difference or not gap else abs(apart * figure.difference / gap)


def run(
    drawn: Drawn,
    out: Path,
    *,
    again: bool = False,
    congestion: Sequence[str] = (),
    names: Collection[str] = (),
    most: int = 2,
) -> Result:
    """What a scenario came to: simulated, emulated twice and compared, unless that was done.

    ``again``: the kernel part of an earlier build is reused, and only the simulation runs again.
    ``congestion`` has the congestion controls that the kernel uses. Only the figures in ``names``
    are judged, if there are any. While one of them differs, the scenario is emulated again, up to
    ``most`` times: two runs may be alike by chance. What has differed does not agree any more; it
    is undecided at best.
    """
    comparable, place = prepared(drawn, out, congestion)
    kept = _kept(drawn, place / RESULT)
    if kept is not None:
        return kept
    if again and not place.exists():
        _take_over(comparable, place)
    done: list[runs.Twin] = []
    figures: list[Judged] = []
    differed: set[tuple[str, str]] = set()
    for name in EMULATIONS[:most]:
        if len(done) >= 2 and all(one.verdict != DIFFERS for one in figures):
            break
        if done:
            # All are of one seed, which is simulated once.
            emulated = shutil.ignore_patterns("emulated", "attempt", "invalid-*")
            shutil.copytree(
                place / EMULATIONS[0], place / name, ignore=emulated, dirs_exist_ok=True
            )
        with progress_bar(f"seed {drawn.seed}, {name}") as progress:
            done.append(runs.run(comparable, out=place / name, progress=progress, say=say))
        pairs = [pair for one in done for pair in one.pairs]
        joined = runs.Twin(done[0].id, comparable, pairs, place)
        figures = _judged(joined, names, differed)
        if len(joined.valid) < min(len(pairs), 2):
            break
        if len(joined.valid) >= 2:
            differed |= {_key(one) for one in figures if one.verdict == DIFFERS}
    refused = [why for pair in pairs for why in pair.invalid]
    result = Result(drawn, figures if len(joined.valid) >= 2 else [], refused)
    write_json(
        place / RESULT,
        {"figures": [asdict(one) for one in result.figures], "refused": result.refused},
    )
    return result


def _judged(
    twin: runs.Twin, names: Collection[str], differed: Collection[tuple[str, str]]
) -> list[Judged]:
    """Judge the figures in ``names``, or all; ``differed`` are those that did with fewer runs."""
    found = (judge(figure) for figure in compare.compare(twin))
    return [
        replace(one, verdict=UNDECIDED) if one.verdict == AGREES and _key(one) in differed else one
        for one in found
        if one and (not names or one.figure.name in names)
    ]


def _key(judged: Judged) -> tuple[str, str]:
    return judged.figure.flow, judged.figure.name


def _take_over(comparable: Comparable, place: Path) -> None:
    """Move the emulated runs of the same scenario and kernel, which another build carried."""
    for other in sorted(place.parent.iterdir()):
        plan = other / "first" / runs.PLAN
        if not plan.is_file():
            continue
        found = json.loads(plan.read_text(encoding="utf-8"))
        same = (comparable.scenario.sha256, comparable.kernel)
        if (found["scenario_sha256"], found["kernel"]) != same:
            continue
        other.rename(place)
        (place / RESULT).unlink(missing_ok=True)
        for simulated in place.glob("*/seed-*/simulated"):
            shutil.rmtree(simulated)
        for kept in place.glob(f"*/{runs.PLAN}"):
            write_json(kept, {**found, "id": runs.identifier(comparable)})
        return


def _kept(drawn: Drawn, file: Path) -> Result | None:
    """What was kept of a scenario; None: nothing."""
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    figures = [
        Judged(compare.Figure(**one["figure"]), one["kernel"], one["verdict"])
        for one in found["figures"]
    ]
    return Result(drawn, figures, found["refused"])


def main(
    seed: Seed = 1,
    count: Count = 16,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/twin-random",
    page: Annotated[
        Path | None, typer.Option(envvar="PAGE", help="Write the page there as well.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Begin no seed after so long; the next command goes on.")
    ] = None,
    again: Annotated[
        bool, typer.Option(help="Simulate with this build beside what the kernel did for another.")
    ] = False,
) -> int:
    """Draw COUNT scenarios, from SEED on.

    The exit code is 1 if too few figures agree, and 3 if the time was over before all were done.
    """
    begun = time.monotonic()
    results: list[Result] = []
    for one in range(seed, seed + count):
        if minutes is not None and time.monotonic() - begun > 60 * minutes:
            say(f"{len(results)} of {count} are done; the same command goes on")
            return NOT_CHECKED
        result = run(draw(one), out, again=again)
        results.append(result)
        say(f"seed {one}: {result.drawn.shape}: {result.verdict}")
    lines = markdown(results)
    print("\n".join(lines))
    if page is not None:
        write(page, lines)
    return FINE if passes(results) else WRONG


def totals(results: Sequence[Result]) -> Counter[str]:
    """How many figures have which verdict."""
    return Counter(judged.verdict for result in results for judged in result.figures)


def passes(results: Sequence[Result]) -> bool:
    """Whether enough figures agree, and enough scenarios were judged."""
    found = totals(results)
    judged = found[AGREES] + found[DIFFERS]
    silent = sum(not result.figures for result in results)
    return found[AGREES] >= AGREEING_SHARE * judged and silent <= NOT_JUDGED_SHARE * len(results)


def markdown(results: Sequence[Result]) -> list[str]:
    """The page."""
    seeds = [result.drawn.seed for result in results]
    return [
        heading(
            "Random twins: scenarios drawn at random, simulated and emulated",
            f"twin-random SEED={seeds[0]} COUNT={len(seeds)}",
        ),
        "`dev/airpath_dev/twin/draw.py` draws these scenarios, and `causes.toml` beside it has the",
        "causes. Each ran once on the virtual clock with the simulated TCP and twice on the real",
        "clock with the kernel's. The limits are those of",
        "[the chosen twins](twin.md): goodput 5 %, median RTT 10 %, 95th percentile 20 %, the end",
        "of slow start one base RTT and 20 % in cwnd. A figure outside its limit is *undecided* if",
        "the two emulated runs differ from each other at least as much. Emulated runs for which",
        "the machine was too late were repeated, until three did not count.",
        "",
        *body(results, "seed"),
    ]


def body(results: Sequence[Result], causes_of: str) -> list[str]:
    """Totals, scenarios, and a section for each that does not agree in everything.

    ``causes_of`` is what the keys of its causes begin with.
    """
    found = totals(results)
    judged = found[AGREES] + found[DIFFERS]
    share = found[AGREES] / judged if judged else 0.0
    verdicts = Counter(result.verdict for result in results)
    lines = [
        f"**{found[AGREES]} of {judged} judged figures agree ({share:.1%}); {found[UNDECIDED]} are",
        f"undecided. Of {len(results)} scenarios {verdicts[AGREES]} agree in all figures,",
        f"{verdicts[UNDECIDED]} are undecided, {verdicts[DIFFERS]} differ and",
        f"{verdicts['not judged']} were not judged.**",
        "",
        table(
            "seed: | scenario | verdict",
            ((one.drawn.seed, one.drawn.shape, one.verdict) for one in results),
        ),
    ]
    causes = parse_toml(CAUSES.read_text(encoding="utf-8")) if CAUSES.exists() else {}
    for result in results:
        lines += _section(result, causes.get(f"{causes_of}-{result.drawn.seed}"))
    return lines


def _section(result: Result, cause: str | None) -> list[str]:
    out = [one for one in result.figures if one.verdict != AGREES]
    if not out and result.figures:
        return []
    lines = ["", f"## Seed {result.drawn.seed}", "", f"{result.drawn.shape}.", ""]
    if not result.figures:
        return [*lines, "No two emulated runs count:", "", *(f"- {why}" for why in result.refused)]
    rows = []
    for one in out:
        figure = one.figure
        kernel = "" if one.kernel is None else compare.distance_text(figure.name, one.kernel)
        verdict = one.verdict + (f": {figure.note}" if figure.note else "")
        told = (figure.difference_text(), kernel, verdict)
        rows.append((figure.flow, figure.name, *figure.sides("none"), *told))
    head = "flow | figure | simulated: | emulated: | difference: | between kernel runs: | verdict"
    lines.append(table(head, rows))
    if any(one.verdict == DIFFERS for one in out):
        lines += ["", f"Cause: {cause or 'not looked into yet.'}"]
    return lines
