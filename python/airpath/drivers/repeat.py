"""Emulate a scenario several times, with successive seeds, into one run directory.

The directory has the form of a simulation with several seeds. Each ``seed-N`` is a run directory of
its own, and the documents at the top are about all runs. These documents are replaced after every
run, so that the directory is complete whenever this process ends. The same command with ``--out``
continues the series. A run that does not count, because the host was late, is kept as ``invalid-N``
and its seed is repeated.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airpath import scenario as scenarios
from airpath.base.numbers import seeds_from
from airpath.base.stopping import StoppedError, deferred
from airpath.base.text import plural
from airpath.drivers import emulate
from airpath.drivers.options import MOST_SEEDS, EmulationOptions
from airpath.errors import AirpathError, InputError
from airpath.runs import provenance as prov
from airpath.runs import summary
from airpath.runs.claim import claim, invalid, set_aside
from airpath.runs.directories import default_name
from airpath.runs.results import Run, RunDirectory

if TYPE_CHECKING:
    from airpath import _core
    from airpath.runs.document import InvalidRun

PLAN = "repeat.json"
"""File in the directory that says what is repeated."""

Observed = Callable[[EmulationOptions, str], AbstractContextManager[EmulationOptions]]
"""Adds observers to the options of one run, as long as the context lasts. The text is the label of
its progress bar."""

Say = Callable[[str], None]
Work = TypeVar("Work")


class InvalidError(AirpathError):
    """The host was late in every run."""

    exit_code = emulate.INVALID


def repeat(
    scenario: _core.Scenario, options: EmulationOptions, count: int, observed: Observed, say: Say
) -> Run:
    """Emulate with ``count`` seeds, counted up from that of ``options``, and return all as one run.

    A run that does not count is repeated after the others; there are at most ``count`` repetitions.
    Raises ``StoppedError`` for Ctrl-C if any run is complete.
    """
    if not 1 <= count <= MOST_SEEDS:
        raise InputError(f"--repeat must be from 1 to {MOST_SEEDS}")
    seeds = seeds_from(scenario.seed if options.seed is None else options.seed, count)
    plan = plan_of(scenario, options, seeds[0])
    out = options.out or default_directory(scenarios.stem(scenario), str(plan["id"]))
    is_new = claim(out, PLAN, plan, "repeated emulation")
    series = _Series(scenario, options, out, seeds)

    def attempt(seed: int) -> bool:
        place = out / f"seed-{seed}"
        label = f"emulating {len(series.runs) + 1} of {count}"
        with observed(replace(options, seed=seed, out=place), label) as complete:
            run = uninterrupted(scenario, complete)
        with deferred():
            counts = series.take(run)
            series.write()
        say(f"seed {seed}: {verdict(run)}")
        return counts

    series.find()
    if series.runs:
        say(f"{plural(len(series.runs), 'run')} found in {out}")
    try:
        until_valid([seed for seed in seeds if seed not in series.runs], attempt, extra=count)
    except (KeyboardInterrupt, SystemExit, AirpathError) as stopped:
        with deferred():
            # A run that was complete when the signal arrived is included.
            series.find()
            series.write()
            if is_new and not (series.runs or series.invalid):
                remove_empty(out, PLAN)
        if not series.runs or isinstance(stopped, SystemExit):
            raise
        continues = f"the same command with --out {out} continues"
        if isinstance(stopped, KeyboardInterrupt | StoppedError):
            raise StoppedError(out, series.partial(), continues) from None
        raise type(stopped)(f"{stopped}\n  finished runs are kept in {out}: {continues}") from None
    if not series.runs:
        raise InvalidError(none_counts(len(series.invalid), series.invalid[-1]["because"], out))
    return RunDirectory(out).open()


class _Series:
    """Runs of a directory: those that count, by seed, and those that do not."""

    def __init__(
        self, scenario: _core.Scenario, options: EmulationOptions, out: Path, seeds: list[int]
    ) -> None:
        self.scenario, self.options, self.out, self.seeds = scenario, options, out, seeds
        self.runs: dict[int, Run] = {}
        self.invalid: list[InvalidRun] = []

    def find(self) -> None:
        """Read the runs that are already in the directory."""
        self.invalid = [_invalid(Run.open(place), place) for place in invalid(self.out)]
        for place in sorted(self.out.glob("seed-*")):
            if place.name.removeprefix("seed-").isdecimal() and place.is_dir():
                self.take(Run.open(place))

    def take(self, run: Run) -> bool:
        """Add a run to the series; return whether it counts."""
        place = run.directory
        if place is None or "emulation" not in run.summary:
            raise InputError(f"{place} is not an emulated run")
        (seed,) = run.seeds
        if run.summary["emulation"]["invalid_because"] is not None:
            self.invalid.append(_invalid(run, set_aside(place, self.out)))
            return False
        self.runs[seed] = run
        return True

    def partial(self) -> list[str]:
        """Return why the series is incomplete."""
        done = sorted(self.runs)
        own = [
            f"seed {seed}: {because}" if len(done) > 1 else because
            for seed in done
            for because in self.runs[seed].partial
        ]
        tried = {run["seed"] for run in self.invalid}
        missing = [seed for seed in self.seeds if seed not in self.runs]
        late = [f"no run with seed {seed} counts" for seed in missing if seed in tried]
        left = len(missing) - len(late)
        if left:
            late.append(f"it was interrupted: {left} of {len(self.seeds)} seeds are missing")
        return own + late

    def write(self) -> None:
        """Replace the documents about all runs, if any counts."""
        if not self.runs:
            return
        done = sorted(self.runs)
        runs = [self.runs[seed] for seed in done]
        identifier = _hash(*(run.id for run in runs))
        wall_s = sum(run.summary["run"]["wall_s"] for run in runs)
        document = summary.combine([run.summary for run in runs], identifier, wall_s)
        document["run"]["partial"] = self.partial()
        document["run"]["invalid"] = self.invalid
        record = prov.provenance(self.scenario, done, self.options.command_line, identifier)
        record.update(
            {
                "driver": "emulate",
                "started": runs[0].provenance["started"],
                "wall_s": document["run"]["wall_s"],
                "partial": document["run"]["partial"],
            }
        )
        RunDirectory(self.out).replace(document, record, self.scenario.resolved_toml)


def _invalid(run: Run, place: Path) -> InvalidRun:
    because = run.summary["emulation"]["invalid_because"] or "it was set aside"
    return {"seed": run.seeds[0], "because": because, "directory": place.name}


def until_valid(work: Iterable[Work], attempt: Callable[[Work], bool], *, extra: int) -> list[Work]:
    """Attempt each piece of work, and repeat attempts that do not count after the others.

    At most ``extra`` attempts are repetitions. Returns the work of which no attempt counted.
    """
    waiting, never = deque(work), []
    while waiting:
        one = waiting.popleft()
        if attempt(one):
            continue
        if extra > 0:
            extra -= 1
            waiting.append(one)
        else:
            never.append(one)
    return never


def uninterrupted(scenario: _core.Scenario, options: EmulationOptions) -> Run:
    """Emulate; raise ``KeyboardInterrupt`` if Ctrl-C or a signal ended the command.

    The directory of such a run is removed, because the run is shorter than the others.
    """
    run = emulate.emulate(scenario, options)
    if run.summary["emulation"]["interrupted"]:
        if run.directory is not None:
            shutil.rmtree(run.directory, ignore_errors=True)
        raise KeyboardInterrupt
    return run


def plan_of(scenario: _core.Scenario, options: EmulationOptions, seed: int) -> dict[str, object]:
    """Describe what is emulated; runs of one series have the same ``id``."""
    what: dict[str, object] = {
        "scenario_sha256": scenario.sha256,
        "core_sha256": prov.core_hash(),
        "kernel": platform.release(),
        "seed": seed,
        "command": list(options.command),
        "servers": list(options.servers),
        "place": options.place,
        "flows": options.flows,
        "user": options.user,
    }
    if options.congestion:
        what["congestion"] = [choice.identity for choice in options.congestion]
    return {"id": _hash(*map(repr, what.values())), "scenario": scenario.name, **what}


def default_directory(stem: str, identifier: str) -> Path:
    """Return a directory below ``runs`` that does not exist."""
    return Path("runs") / default_name(stem, _hash(identifier, str(time.time_ns())))


def remove_empty(out: Path, plan: str) -> None:
    """Remove a directory that was made for runs, if it contains only its plan."""
    if [entry.name for entry in out.iterdir()] == [plan]:
        (out / plan).unlink()
        with suppress(OSError):
            out.rmdir()


def verdict(run: Run) -> str:
    """Say how punctual a run was, and whether it counts."""
    emulation = run.summary["emulation"]
    if emulation["invalid_because"] is not None:
        return f"does not count: {emulation['invalid_because']}"
    late = [way["lateness_us"] for way in emulation["directions"].values()]
    most = max((one["p99"] for one in late if one), default=0.0)
    failed = f", exit code {code}" if (code := emulation["exit_code"]) else ""
    return f"99 % of the packets were at most {most:.0f} us late{failed}"


def none_counts(count: int, because: str, out: Path, noun: str = "run") -> str:
    """Say that there is no result."""
    whole = f"the {noun} does not count" if count == 1 else f"none of {count} {noun}s counts"
    return f"{whole}: {because}\n  the results are kept in {out}"


def runs_of(run: Run) -> list[Run]:
    """Return the runs of a repeated emulation, or the run itself if it is a single one."""
    directory = run.directory
    if directory is None or "invalid" not in run.summary["run"]:
        return [run]
    return [Run.open(directory / f"seed-{seed}") for seed in run.seeds]


def exit_code(run: Run) -> int:
    """Return the exit code: that of the first run whose exit code is not 0.

    If there is no such run, the code is 3 if no run of a seed counts, and 1 if the result is
    partial.
    """
    if "invalid" not in run.summary["run"]:
        return emulate.exit_code(run)
    for one in runs_of(run):
        if code := int(one.summary["emulation"].get("exit_code", 0)):
            return code
    tried = {late["seed"] for late in run.summary["run"].get("invalid", [])}
    if tried - set(run.seeds):
        return emulate.INVALID
    return int(bool(run.partial))


def sentences(run: Run) -> list[str]:
    """Report how the runs went, what is missing, and how often a run was repeated."""
    if "invalid" not in run.summary["run"]:
        return emulate.sentences(run)
    late = len(run.summary["run"].get("invalid", []))
    kept = "is kept as invalid-1" if late == 1 else f"are kept as invalid-1 to invalid-{late}"
    said = [f"{plural(late, 'run')} did not count and {kept}"] if late else []
    return said + [f"partial, because {because}" for because in run.partial]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
