"""The emulated runs of a judgement: all congestion controls interleaved, block by block.

Each block runs everything once, in random order, so that slow changes of the machine affect all
congestion controls alike. A run that does not count, because the host was late, is repeated after
the others. Complete runs are kept, and the same command continues.
"""

from __future__ import annotations

import hashlib
import platform
import random
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from airpath import scenario as scenarios
from airpath.base.stopping import StoppedError
from airpath.drivers import repeat
from airpath.drivers.options import EmulationOptions
from airpath.emulation.congestion import Congestion, check, parse
from airpath.errors import AirpathError, InputError
from airpath.judge import definition
from airpath.runs import provenance as prov
from airpath.runs.claim import claim, rename, set_aside
from airpath.runs.results import Run

PLAN = "judge.json"
ATTEMPT = "attempt"
"""Where a run is, in the directory, until it counts."""

MOST_BLOCKS = 100

Progress = Callable[[float], None]
Say = Callable[[str], None]


class Candidate(NamedTuple):
    """A congestion control that is judged, or that others meet."""

    label: str
    congestion: Congestion

    @property
    def identity(self) -> str:
        """What makes its runs different from others."""
        return repr(self.congestion.identity)


class Trial(NamedTuple):
    """One run: a congestion control alone on a path, or beside a peer."""

    block: int
    path: str
    tested: Candidate
    peer: Candidate | None

    @property
    def place(self) -> str:
        """Directory of the run, below that of the judgement."""
        peer = "alone" if self.peer is None else self.peer.label
        return f"block-{self.block + 1}/{self.path}-{self.tested.label}-{peer}"


class Judgement(NamedTuple):
    """All runs of a judgement."""

    candidates: list[Candidate]
    peers: list[str]
    """Labels of the host's congestion controls that each meets."""
    runs: dict[Trial, Run]
    missing: list[Trial]
    """Trials of which no attempt counted."""
    directory: Path


def judge(
    texts: Sequence[str],
    *,
    blocks: int,
    out: Path | None = None,
    command_line: list[str] | None = None,
    progress: Progress = lambda _: None,
    say: Say = lambda _: None,
) -> Judgement:
    """Emulate everything that a judgement of these congestion controls needs.

    ``texts`` are names of the host's congestion controls or BPF objects. CUBIC always runs too: the
    others are compared with it. Raises ``InputError`` for wrong input, ``AirpathError`` for what
    the kernel refuses, and ``StoppedError`` for Ctrl-C once anything is complete.
    """
    if not 1 <= blocks <= MOST_BLOCKS:
        raise InputError(f"the number of blocks is {blocks}, but must be from 1 to {MOST_BLOCKS}")
    candidates = _candidates(texts)
    check([one.congestion for one in candidates])
    peers = [
        candidate_of(name, candidates) for name in definition.HOST_PEERS if _on_host(name, say)
    ]
    plan = _plan(candidates, peers)
    out = out or repeat.default_directory("judge", str(plan["id"]))
    claim(out, PLAN, plan, "judgement")
    _write_scenarios(out)
    trials = list(_trials(candidates, peers, blocks))
    runs = {trial: Run.open(out / trial.place) for trial in trials if (out / trial.place).exists()}
    if runs:
        say(f"{len(runs)} of {len(trials)} runs found in {out}")

    def attempt(trial: Trial) -> bool:
        share = len(runs) / len(trials)
        progress(share)
        because = _emulate(trial, out, command_line)
        if because is not None:
            kept = set_aside(out / ATTEMPT, out)
            say(f"{trial.place}: does not count: {because} ({kept.name})")
            return False
        (out / trial.place).parent.mkdir(exist_ok=True)
        rename(out / ATTEMPT, out / trial.place)
        runs[trial] = Run.open(out / trial.place)
        return True

    left = [trial for trial in trials if trial not in runs]
    try:
        missing = repeat.until_valid(left, attempt, extra=len(trials))
    except KeyboardInterrupt:
        if not runs:
            raise
        done = f"{len(runs)} of {len(trials)} runs"
        continues = f"the same command with --out {out} continues"
        raise StoppedError(out, [f"only {done} are complete"], continues) from None
    if not runs:
        raise repeat.InvalidError(
            repeat.none_counts(len(left), "the host delayed packets too long in every run", out)
        )
    return Judgement(candidates, [peer.label for peer in peers], runs, missing, out)


def candidate_of(name: str, candidates: Sequence[Candidate]) -> Candidate:
    """Return one of the host's congestion controls: the candidate, if it is one."""
    known = (one for one in candidates if one.label == name and one.congestion.elf is None)
    return next(known, Candidate(name, Congestion(None, name)))


def _candidates(texts: Sequence[str]) -> list[Candidate]:
    found: list[Candidate] = []
    for text in texts:
        choice = parse(text)
        if choice.flow is not None:
            raise InputError(
                f"{text}: a congestion control algorithm is judged on all paths: leave out FLOW="
            )
        label = choice.name or Path(choice.file or "").name.removesuffix(".o").removesuffix(".bpf")
        if label in (one.label for one in found) or "/" in label:
            raise InputError(f"{text}: another congestion control algorithm has the name `{label}`")
        if label in definition.HOST_PEERS and choice.elf is not None:
            raise InputError(
                f"{text}: the host's own `{label}` has this name in the results; rename the file"
            )
        found.append(Candidate(label, choice))
    if "cubic" not in (one.label for one in found):
        found.append(Candidate("cubic", Congestion(None, "cubic")))
    return found


def _on_host(name: str, say: Say) -> bool:
    """Whether the host has a congestion control; the kernel loads its module if it has to."""
    with socket.socket() as asked:
        try:
            asked.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except PermissionError:
            return True
        except OSError:
            say(f"this host has no {name}: nothing is judged beside it")
            return False
    return True


def _plan(candidates: Sequence[Candidate], peers: Sequence[Candidate]) -> dict[str, object]:
    what = {
        "set": definition.SET,
        "core_sha256": prov.core_hash(),
        "kernel": platform.release(),
        "congestion": [one.identity for one in candidates],
        "peers": [one.label for one in peers],
    }
    digits = hashlib.sha256("\n".join(map(repr, what.values())).encode()).hexdigest()[:12]
    return {"id": digits, **what}


def _trials(
    candidates: Sequence[Candidate], peers: Sequence[Candidate], blocks: int
) -> Iterator[Trial]:
    """Yield the runs of all blocks, each block in an order of its own.

    Two congestion controls meet once on a path, whichever of the two is judged.
    """
    for block in range(blocks):
        trials: list[Trial] = []
        for case in definition.CASES:
            trials += [Trial(block, case.path, one, None) for one in candidates]
            met: set[frozenset[str]] = set()
            for one in candidates:
                others = [peer for peer in peers if peer.label in case.peers]
                others += [one] if definition.ITSELF in case.peers else []
                for peer in others:
                    both = frozenset((one.label, peer.label))
                    if both not in met:
                        met.add(both)
                        trials.append(Trial(block, case.path, one, peer))
        random.Random(f"{definition.SET} {block}").shuffle(trials)  # noqa: S311 - no secret
        yield from trials


def _scenario_file(out: Path, path: str, *, pair: bool) -> Path:
    return out / "paths" / f"{path}-{'pair' if pair else 'alone'}.toml"


def _write_scenarios(out: Path) -> None:
    (out / "paths").mkdir(exist_ok=True)
    for case in definition.CASES:
        for pair in (False, True):
            text = definition.scenario(case.path, pair=pair)
            _scenario_file(out, case.path, pair=pair).write_text(text, encoding="utf-8")


def _emulate(trial: Trial, out: Path, command_line: list[str] | None) -> str | None:
    """Run a trial; return why it does not count, or None if it counts."""
    shutil.rmtree(out / ATTEMPT, ignore_errors=True)
    choices = [replace(trial.tested.congestion, flow="tested")]
    if trial.peer is not None:
        choices.append(replace(trial.peer.congestion, flow="peer"))
    loaded = scenarios.load(_scenario_file(out, trial.path, pair=trial.peer is not None))
    options = EmulationOptions(
        flows=True,
        seed=trial.block + 1,
        out=out / ATTEMPT,
        congestion=choices,
        command_line=command_line,
    )
    run = repeat.uninterrupted(loaded, options)
    emulation = run.summary["emulation"]
    for failed in emulation["failed_flows"]:
        raise AirpathError(f"{trial.place}: flow {failed['id']} failed: {failed['because']}")
    return emulation["invalid_because"]
