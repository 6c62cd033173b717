"""Plants causes at random and lets `airpath measure` find them over the emulation (root).

The measurement meets the kernel's TCP over the path and cell of the scenario, and nothing tells it
what was planted. Causes that need a flow of their own (an application that pauses, a rival) are not
drawn. Judgments are kept, and the command resumes from there. Exit code 1: fewer than 90 % of the
causes are named first, or more than 3 % of the healthy paths are blamed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Literal

import typer

from airpath.cli.console import progress_bar
from airpath.runs.summary import to_json
from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, emulated, need, say
from airpath_dev.planted.draw import Case, draw

_WANTED, _HEALTHY = 0.9, 0.97
_OF_A_FLOW = {
    "application-limited", "cross-traffic", "congestion-control", "one-way-path", "nat-binding",
    "fragmentation", "send-buffer", "test-too-short",
}  # fmt: skip
"""Causes that are in the flows of a scenario, and not on its path or in its hosts."""
_INVALID = 3
_ATTEMPTS = 3


@dataclass(frozen=True)
class Judged:
    """A measured case; ``named``: the causes in their order."""

    case: str
    cause: str | None
    words: str
    gain: float
    named: tuple[str, ...]
    right: bool
    carried_bytes: int
    lasted_s: float
    problem: str = ""
    """Why there is no result."""


def main(
    seed: Annotated[int, typer.Argument(help="The seed of the cases.", envvar="SEED")],
    number: Annotated[int, typer.Argument(help="How many cases.", envvar="COUNT")],
    keep: Annotated[Path, typer.Option(help="Folder of the results.")] = ROOT / "target/measured",
    at_once: Annotated[int, typer.Option(min=1, help="Measurements at the same time.")] = 1,
    far: Annotated[
        Literal["airpath", "iperf3", "ping"], typer.Option(help="As in `airpath measure`.")
    ] = "airpath",
) -> int:
    """Measure randomly drawn paths with planted causes, and judge what is named first."""
    need(root=True)
    keep.mkdir(parents=True, exist_ok=True)
    numbers = _numbers(seed, number)
    found: list[Judged] = []
    with ThreadPoolExecutor(at_once) as pool, progress_bar("measured") as shown:
        for one in pool.map(partial(judge, keep, far=far), numbers):
            found.append(one)
            shown(len(found) / number)
            say(f"{one.case}: {one.words}: {', '.join(one.named) or one.problem or 'nothing'}")
    return tell(found)


def _numbers(seed: int, number: int) -> Iterator[Case]:
    """The first cases whose cause is on the path."""
    left = number
    for at in count():
        if left == 0:
            return
        try:
            case = draw(seed, at)
        except RuntimeError as error:
            say(f"{seed}-{at} is left out: {error}")
            continue
        if case.cause not in _OF_A_FLOW:
            left -= 1
            yield case


def judge(keep: Path, case: Case, *, far: str = "airpath") -> Judged:
    """Emulate a case with a measurement inside, and judge it, unless its judgment is kept."""
    kept = keep / f"{case.name}.json"
    if kept.exists():
        raw = json.loads(kept.read_text())
        return Judged(**{**raw, "named": tuple(raw["named"])})
    scenario, out = keep / f"{case.name}.toml", keep / f"{case.name}.run"
    scenario.write_text(case.text)
    problem = "late"
    for _ in range(_ATTEMPTS):
        problem = _measure(scenario, out, keep / f"{case.name}.token", up=case.up, far=far)
        if problem != "late":
            break
    found = _judged(case, out, problem)
    if not problem:
        partial_ = kept.with_suffix(".partial")
        partial_.write_text(to_json(asdict(found)))
        partial_.rename(kept)
    return found


def _measure(scenario: Path, out: Path, token: Path, *, up: bool, far: str) -> str:
    """Run the measurement; why there is no result, or nothing."""
    shutil.rmtree(out, ignore_errors=True)
    token.touch(0o600)
    token.write_text("0123456789abcdef" * 2)
    airpath = f"{sys.executable} -m airpath"
    direction = [] if far == "ping" else ["--direction", "up" if up else "down"]
    server, access = (
        f"{airpath} serve --user root --token-file {token}",
        ["--token-file", str(token)],
    )
    if far != "airpath":
        server, access = "sh -c 'exec iperf3 -s >/dev/null'", ["--far", far]
    command = [*airpath.split(), "measure", "server", *access, "--out", str(out), *direction]
    done = emulated(scenario, out, server, [*command, "--seed", "1"])
    if done.returncode == _INVALID:
        return "late"
    if not (out / "summary.json").exists():
        lines = [one for one in done.stderr.splitlines() if one.startswith("error:")]
        return lines[-1] if lines else f"exit code {done.returncode}"
    return ""


def _judged(case: Case, out: Path, problem: str) -> Judged:
    named: tuple[str, ...] = ()
    carried, lasted = 0, 0.0
    if not problem:
        summary = json.loads((out / "summary.json").read_text())
        causes = (one["cause"] for one in summary["findings"])
        named = tuple(one for one in causes if not one.endswith("-capacity"))
        carried = summary["measured"]["carried_bytes"]
        lasted = summary["run"]["duration_s"]
    right = not problem and (bool(named) and named[0] in case.allowed if case.cause else not named)
    return Judged(
        case.name, case.cause, case.words, case.gain, named, right, carried, lasted, problem
    )


def tell(found: Sequence[Judged]) -> int:
    """Print what was right by kind, and return the exit code."""
    for cause in sorted({one.cause or "" for one in found}):
        same = [one for one in found if (one.cause or "") == cause]
        print(f"{cause or 'healthy':22} {sum(one.right for one in same):3} of {len(same):3}")
    for one in found:
        if not one.right:
            print(f"  {one.case} {one.words}: {', '.join(one.named) or one.problem or 'nothing'}")
    planted = [one.right for one in found if one.cause]
    healthy = [one.right for one in found if not one.cause]
    enough = all(
        sum(part) >= wanted * len(part)
        for part, wanted in ((planted, _WANTED), (healthy, _HEALTHY))
    )
    return FINE if enough else WRONG
