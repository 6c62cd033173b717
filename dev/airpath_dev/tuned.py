"""Re-measures what `airpath tune` promises with the kernel's TCP, over the emulation (root).

Each setting that is advised, and all of them together, are emulated beside the scenario as it is,
with the same seeds. Runs are kept, and the command resumes from there. Exit code 1: a gain is more
than 15 % from what was promised, or a setting makes worse what it should make better.
"""

from __future__ import annotations

import shutil
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
from airpath.tune.judge import LEAST, THROUGHPUT, Effect, compared
from airpath.tune.prepared import Prepared, prepared
from airpath.tune.tuning import tuned
from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, need, say

if TYPE_CHECKING:
    from airpath.tune.document import Changed, Tuning

_WITHIN = 0.15
_ATTEMPTS = 3
_RADIO = {"lte-5": 5, "nr-fdd-20": 0, "umts-hspa-plus": 20}
"""Presets with an SINR in dB at which a busy machine emulates them in time, at 10 to 15 Mb/s."""


@dataclass(frozen=True)
class Case:
    """A scenario with settings."""

    name: str
    scenario: str
    sets: Sequence[str]


@dataclass(frozen=True)
class Promise:
    """Settings, those beneath them, and what they change."""

    name: str
    sets: Sequence[str]
    base: Sequence[str]
    gains: Sequence[Changed]
    harms: Sequence[Changed]


@dataclass(frozen=True)
class Judged:
    """A figure as promised and as measured."""

    case: str
    promised: float
    """After over before."""
    measured: float
    words: str

    @property
    def holds(self) -> bool:
        """Whether the measured change is within 15 % of the promised one."""
        return self.promised != 1 and _alike(self.measured - 1, self.promised - 1)

    @property
    def is_alike(self) -> bool:
        """Whether the figure, relative to that without the setting, is within 15 % as well.

        For large reductions this is the stricter test, for small changes it is no test.
        """
        return _alike(self.measured, self.promised)

    @property
    def is_worse(self) -> bool:
        """Whether the figure went the other way, or fell although nothing was announced."""
        return self.promised == 1 or (self.measured - 1) * (self.promised - 1) < 0


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
    # The median of ten pings, one each second, would be chance.
    pings = "flow.1.interval_ms=100"
    radio = [
        Case(name, "nr-n78", [f"radio.preset={name}", f"radio.channel.sinr_db={sinr_db}", pings])
        for name, sinr_db in _RADIO.items()
    ]
    return [*rows, *radio]


def judge(case: Case, keep: Path, blocks: int, most: int | None = None) -> list[Judged]:
    """Tune a case, and emulate what is advised, or only the ``most`` valuable settings."""
    found: list[Judged] = []
    with prepared(case.scenario, case.sets) as ready:
        promises = list(_promises(tuned(ready).document))[:most]
        for promise in promises:
            before = _emulated(ready, promise.base, keep, blocks)
            after = _emulated(ready, promise.sets, keep, blocks)
            if before is None or after is None:
                say(f"{case.name}: {promise.name}: no emulated run counts")
                continue
            summaries = [[run.summary for run in runs] for runs in (before, after)]
            found += _compared(case, promise, compared(ready.compared, *summaries).effects)
    return found


def _compared(case: Case, promise: Promise, effects: Sequence[Effect]) -> Iterator[Judged]:
    """Judge the promised gains, and throughputs that fall although no harm was announced."""
    gains = {(one["flow"], one["metric"]): one for one in promise.gains}
    harms = {(one["flow"], one["metric"]) for one in promise.harms}
    for effect in effects:
        figure = (effect.flow, effect.metric)
        of = f"{promise.name}: {figure_name(effect.metric)} of {effect.flow}:"
        emulated = _words(effect.metric, effect.before, effect.after)
        measured = 1 + effect.change
        if (gain := gains.get(figure)) is not None:
            promised = _words(effect.metric, gain["before"], gain["after"])
            words = f"{of} promised {promised}, emulated {emulated}"
            yield Judged(case.name, 1 + gain["change"], measured, words)
        elif figure not in harms and effect.metric in THROUGHPUT and effect.improvement < -LEAST:
            yield Judged(case.name, 1.0, measured, f"{of} unchanged in simulation, {emulated}")


def _words(metric: str, before: float, after: float) -> str:
    return f"{figure_text(metric, before)} → {figure_text(metric, after)}"


def _promises(tuning: Tuning) -> Iterator[Promise]:
    sets = {one["name"]: one["set"] for one in tuning["advised"]}
    for one in tuning["advised"]:
        base = [each for name in one["beside"] for each in sets[name]]
        yield Promise(one["name"], [*base, *one["set"]], base, one["gains"], one["harms"])
    together = tuning["together"]
    if together is not None and len(together["names"]) > 1:
        gains, harms = together["gains"], together["harms"]
        yield Promise("together", together["set"], [], gains, harms)


def _emulated(ready: Prepared, sets: Sequence[str], place: Path, blocks: int) -> list[Run] | None:
    runs = [_run(ready, sets, place, index) for index in range(blocks)]
    counted = [run for run in runs if run is not None]
    return counted if len(counted) == blocks else None


def _run(ready: Prepared, sets: Sequence[str], place: Path, index: int) -> Run | None:
    _, scenario = ready.seed_of(sets, index)
    seed = scenario.seed + index
    out = place / f"{scenario.sha256[:12]}-{seed}"
    if (out / "summary.json").exists():
        return Run.open(out)
    place.mkdir(parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        run = emulate.emulate(scenario, EmulationOptions(seed=seed, out=out, flows=True))
        because = run.summary["emulation"]["invalid_because"]
        if because is None:
            return run
        say(f"{out}: does not count: {because}")
        shutil.rmtree(out)
    return None


def _alike(measured: float, promised: float) -> bool:
    return abs(measured / promised - 1) <= _WITHIN


def tell(judged: Sequence[Judged]) -> int:
    """Print how many promises hold, and return the exit code."""
    held = sum(one.holds for one in judged)
    alike = sum(one.is_alike for one in judged)
    worse = sum(one.is_worse for one in judged)
    print(f"{held} of {len(judged)} promised gains hold within 15 %, {worse} get worse")
    print(f"{alike} of {len(judged)} figures are within 15 % of those promised")
    for one in judged:
        if not (one.holds and one.is_alike):
            print(f"  {one.case}: {one.words}")
    return FINE if held == len(judged) and not worse else WRONG
