"""The runs of a twin: each seed simulated and emulated. Complete runs are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airpath import scenario as scenarios
from airpath.drivers import emulate, simulate
from airpath.drivers.emulate import CAPTURE
from airpath.drivers.options import MOST_SEEDS, EmulationOptions, SimulationOptions
from airpath.errors import InputError
from airpath.runs import provenance as prov
from airpath.runs.claim import claim, rename, set_aside
from airpath.runs.construction import remove_leftovers
from airpath.runs.results import Run
from airpath.twin.comparable import Comparable

if TYPE_CHECKING:
    from airpath import _core

ATTEMPTS = 3
"""An emulated run that was too late is done again, up to this often."""

PLAN = "twin.json"

Judge = Callable[[Run], str | None]
"""Says why an emulated run does not count; None: it does."""


@dataclass(frozen=True)
class Pair:
    """One seed."""

    seed: int
    simulated: Run
    emulated: Run | None
    """None: no attempt counts."""
    invalid: list[str] = field(default_factory=list)
    """Why attempts do not count."""


class Counted(NamedTuple):
    """A seed whose emulated run counts."""

    seed: int
    simulated: Run
    emulated: Run


@dataclass(frozen=True)
class Twin:
    """All seeds of a scenario."""

    id: str
    comparable: Comparable
    pairs: Sequence[Pair]
    directory: Path

    @property
    def valid(self) -> list[Counted]:
        """Seeds whose emulated run counts."""
        return [
            Counted(pair.seed, pair.simulated, pair.emulated)
            for pair in self.pairs
            if pair.emulated is not None
        ]


def default_directory(comparable: Comparable) -> Path:
    """The default directory of a twin: the same one for the same scenario."""
    return Path("runs") / f"twin-{scenarios.stem(comparable.scenario)}-{identifier(comparable)}"


def identifier(comparable: Comparable) -> str:
    """Twelve hexadecimal digits: equal for equal scenario, core, kernel and congestion controls."""
    parts = [comparable.scenario.sha256, str(prov.core_hash()), comparable.kernel]
    parts += [repr(choice.identity) for choice in comparable.congestion]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def run(
    comparable: Comparable,
    *,
    seeds: int = 1,
    out: Path | None = None,
    progress: Callable[[float], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
    command: list[str] | None = None,
    judge: Judge | None = None,
) -> Twin:
    """Run what is missing from a twin.

    If ``out`` holds a part of this twin, the rest is run; another twin is refused. ``judge`` may
    reject an emulated run that the lateness bound accepts; it finds a capture in the run's
    directory, which is removed afterwards.
    """
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"seeds must be from 1 to {MOST_SEEDS}")
    out = out or default_directory(comparable)
    _claim(out, comparable)
    first = comparable.scenario.seed
    pairs = []
    for index in range(seeds):

        def tick(share: float, done: int = index) -> None:
            if progress is not None:
                progress((done + share) / seeds)

        place = out / f"seed-{first + index}"
        both = comparable.of_seed(index)
        seed = first + index
        options = EmulationOptions(
            seed=seed,
            out=place / "attempt",
            flows=True,
            parity=True,
            capture=judge is not None,
            congestion=comparable.congestion,
            progress=tick,
            command_line=command,
        )
        pairs.append(_pair(both, seed, options, place, tick, say, judge))
    return Twin(identifier(comparable), comparable, pairs, out)


def _pair(
    both: tuple[_core.Scenario, _core.Scenario],
    seed: int,
    options: EmulationOptions,
    place: Path,
    tick: Callable[[float], None],
    say: Callable[[str], None],
    judge: Judge | None,
) -> Pair:
    command = options.command_line
    remove_leftovers(place)
    simulated, emulated = place / "simulated", place / "emulated"
    if not simulated.exists():
        simulate.execute(both[0], SimulationOptions(seed=seed, out=simulated, command_line=command))
    reasons: list[str] = []
    while not emulated.exists() and len(reasons) < ATTEMPTS:
        done = emulate.emulate(both[1], options)
        why = done.summary["emulation"]["invalid_because"]
        if judge is not None:
            why = why or judge(done)
            (place / "attempt" / CAPTURE).unlink(missing_ok=True)
        if why is None:
            rename(place / "attempt", emulated)
        else:
            set_aside(place / "attempt", place)
            say(f"seed {seed}: a run does not count: {why}")
            reasons.append(why)
    tick(1.0)
    counted = _emulated(emulated) if emulated.exists() else None
    return Pair(seed, Run.open(simulated), counted, reasons)


def _emulated(directory: Path) -> Run:
    """Read an emulated run that a twin has kept."""
    run = Run.open(directory)
    if "emulation" not in run.summary or run.summary["emulation"]["parity"] is None:
        raise InputError(f"{directory} is not an emulated run of a twin: its summary has no parity")
    return run


def _claim(out: Path, comparable: Comparable) -> None:
    """Make the directory of a twin, or make sure that it is this one's."""
    plan = {
        "id": identifier(comparable),
        "scenario": comparable.scenario.name,
        "scenario_sha256": comparable.scenario.sha256,
        "kernel": comparable.kernel,
        "profile": comparable.profile,
    }
    claim(out, PLAN, plan, "twin")
