"""Re-measures what `airpath tune` promises with the kernel's TCP, over the emulation (root).

Each setting that is advised, and all of them together, are emulated beside the scenario as it is,
with the same seeds. Runs are kept, and the command resumes from there. Exit code 1: a gain is more
than 15 % from what was promised, or a setting makes worse what it should make better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import progress_bar
from airpath.drivers import emulate
from airpath.drivers.options import EmulationOptions
from airpath.runs.describe import figure_name, figure_text
from airpath.runs.results import Run
from airpath.study.definition import load_study
from airpath.tune.document import Changed
from airpath.tune.judge import compared
from airpath.tune.prepared import Prepared, prepared
from airpath.tune.tuning import tuned
from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, need, say

if TYPE_CHECKING:
    from airpath.tune.document import Tuning

_WITHIN = 0.15
_ATTEMPTS = 3
_RADIO = ("lte-5", "nr-private-drx", "umts-hspa-plus")
"""Cells whose rates a busy machine emulates in time."""


@dataclass(frozen=True)
class Case:
    """A scenario with settings."""

    name: str
    scenario: str
    sets: Sequence[str]


@dataclass(frozen=True)
class Judged:
    """A figure as promised and as measured."""

    case: str
    setting: str
    figure: str
    promised: float
    """After over before."""
    measured: float
    words: str

    @property
    def holds(self) -> bool:
        """Whether the measured ratio is as promised."""
        return abs(self.measured / self.promised - 1) <= _WITHIN

    @property
    def is_worse(self) -> bool:
        """Whether the figure went the other way."""
        return (self.measured - 1) * (self.promised - 1) < 0


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Cases; all by default.")] = None,
    keep: Annotated[Path, typer.Option(help="Folder of the runs.")] = ROOT / "target/tuned",
    blocks: Annotated[int, typer.Option(min=1, help="Emulated seeds of each setting.")] = 1,
) -> int:
    """Emulate what is advised for the rows of 3g-latency and for three radio presets."""
    need(root=True)
    chosen = [case for case in cases() if not names or case.name in names]
    judged: list[Judged] = []
    with progress_bar("tuned") as shown:
        for done, case in enumerate(chosen, 1):
            found = judge(case, keep / case.name, blocks)
            judged += found
            for one in found:
                say(f"{one.case}: {one.words}{'' if one.holds else ' (differs)'}")
            shown(done / len(chosen))
    return tell(judged)


def cases() -> list[Case]:
    """Return the rows of the study, and the presets."""
    study = load_study("3g-latency")
    rows = []
    for figure in study.figures:
        which = "transfer" if figure.scenario == "scenario-transfer.toml" else "main"
        rows.append(Case(figure.id.rpartition("/")[2], f"3g-latency/{which}", figure.sets))
    # A download and pings.
    radio = [Case(name, "nr-n78", [f"radio.preset={name}"]) for name in _RADIO]
    return [*rows, *radio]


def judge(case: Case, keep: Path, blocks: int) -> list[Judged]:
    """Tune a case, and emulate what is advised."""
    with prepared(case.scenario, case.sets) as ready:
        tuning = tuned(ready).document
        before = _emulated(ready, [], keep / "as-it-is", blocks)
        found: list[Judged] = []
        for place, (name, sets, base, changes) in enumerate(_promises(tuning)):
            first = before if not base else _emulated(ready, base, keep / f"{place}-base", blocks)
            after = _emulated(ready, sets, keep / str(place), blocks)
            if first is None or after is None:
                say(f"{case.name}: {name}: no emulated run counts")
                continue
            effects = compared(
                ready.compared,
                [run.summary for run in first],
                [run.summary for run in after],
            ).effects
            for change in changes:
                same = (
                    one
                    for one in effects
                    if (one.flow, one.metric) == (change["flow"], change["metric"])
                )
                for effect in same:
                    figures = [
                        figure_text(effect.metric, value)
                        for value in (
                            change["before"],
                            change["after"],
                            effect.before,
                            effect.after,
                        )
                    ]
                    words = (
                        f"{name}: {figure_name(effect.metric)} of {effect.flow}: promised "
                        f"{figures[0]} → {figures[1]}, emulated {figures[2]} → {figures[3]}"
                    )
                    found.append(
                        Judged(
                            case.name,
                            name,
                            effect.metric,
                            1 + change["change"],
                            1 + effect.change,
                            words,
                        )
                    )
        return found


def _promises(
    tuning: Tuning,
) -> Iterator[tuple[str, list[str], list[str], list[Changed]]]:
    """Name, settings, those beneath them, and promised gains."""
    sets = {one["name"]: one["set"] for one in tuning["advised"]}
    for one in tuning["advised"]:
        base = [each for name in one["beside"] for each in sets[name]]
        yield one["name"], [*base, *one["set"]], base, one["gains"]
    together = tuning["together"]
    if together is not None and len(together["names"]) > 1:
        yield "together", together["set"], [], together["gains"]


def _emulated(ready: Prepared, sets: Sequence[str], place: Path, blocks: int) -> list[Run] | None:
    runs = []
    for index in range(blocks):
        run = _run(ready, sets, place / f"seed-{index}", index)
        if run is None:
            return None
        runs.append(run)
    return runs


def _run(ready: Prepared, sets: Sequence[str], place: Path, index: int) -> Run | None:
    _, scenario = ready.seed_of(sets, index)
    for attempt in range(_ATTEMPTS):
        out = place.with_name(f"{place.name}-{scenario.sha256[:12]}-{attempt}")
        if (out / "summary.json").exists():
            run = Run.open(out)
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            seed = scenario.seed + index
            run = emulate.emulate(scenario, EmulationOptions(seed=seed, out=out, flows=True))
        if run.summary["emulation"]["invalid_because"] is None:
            return run
        say(f"{place}: does not count: {run.summary['emulation']['invalid_because']}")
    return None


def tell(judged: Sequence[Judged]) -> int:
    """Print how many promises hold, and return the exit code."""
    held = [one for one in judged if one.holds]
    worse = [one for one in judged if one.is_worse]
    print(f"{len(held)} of {len(judged)} promised gains hold within 15 %, {len(worse)} get worse")
    for one in judged:
        if not one.holds:
            print(f"  {one.case}: {one.words}")
    return FINE if len(held) == len(judged) and not worse else WRONG
