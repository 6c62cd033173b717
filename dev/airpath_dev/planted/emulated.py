"""Emulates scenarios with planted causes, and counts which causes their findings name first (root).

`make findings` draws the scenarios and keeps them: those with a cause as planted-NUMBER-CAUSE.toml
(`FINDINGS_KEEP`), those without one as healthy-NUMBER.toml (`FINDINGS_KEEP_HEALTHY`). Emulations
that were too late to count are repeated. Judgments are kept, and the command resumes from there.
Exit code 1: fewer than 90 % of the causes are named first, or more than 2 % of the healthy
scenarios are blamed. Exit code 3: some scenarios are not judged, because every emulation was late.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from airpath.cli.console import progress_bar
from airpath.errors import InputError
from airpath.runs.summary import to_json
from airpath_dev import ROOT
from airpath_dev.harness import FINE, NOT_CHECKED, WRONG, need, say

_WANTED = 0.9
_HEALTHY = 0.98
_ATTEMPTS = 4
_INVALID = 3
_HARMLESS = "application-limited"
"""Cause that may be named for a healthy run: some flows need less than the path carries."""


@dataclass(frozen=True)
class Emulated:
    """A judged scenario. ``named`` has the ranked causes; ``because`` says why there is none.

    The scenario is not ``judged`` if every emulation was too late to count.
    """

    name: str
    cause: str | None
    named: tuple[str, ...]
    because: str | None
    attempts: int
    judged: bool = True

    @property
    def right(self) -> bool:
        """Whether the cause is named first, or a healthy scenario is not blamed."""
        if self.cause:
            return self.named[:1] == (self.cause,)
        return set(self.named) <= {_HARMLESS}


def main(
    directories: Annotated[list[Path], typer.Argument(help="Folders of scenarios.")],
    keep: Annotated[Path, typer.Option(help="Folder of the results.")] = ROOT
    / "target/findings-emulated",
    at_once: Annotated[int, typer.Option(min=1, help="Emulations at the same time.")] = 1,
) -> int:
    """Emulate every scenario in DIRECTORIES and judge its findings."""
    need(root=True)
    files = [file for one in directories for file in sorted(one.glob("*-[0-9]*.toml"))]
    if not files:
        raise InputError(f"no scenario in {', '.join(map(str, directories))}")
    keep.mkdir(parents=True, exist_ok=True)
    found = []
    with ThreadPoolExecutor(at_once) as pool, progress_bar("emulated") as shown:
        for one in pool.map(partial(judge, keep=keep), files):
            found.append(one)
            shown(len(found) / len(files))
    return tell(found)


def judge(file: Path, keep: Path) -> Emulated:
    """Return the judgment of a scenario; emulate the scenario unless its judgment is kept."""
    kept = keep / f"{file.stem}.json"
    if kept.exists():
        raw: dict[str, Any] = json.loads(kept.read_text())
        return Emulated(**{**raw, "named": tuple(raw["named"])})
    kind, _, rest = file.stem.partition("-")
    cause = rest.partition("-")[2] if kind == "planted" else None
    run = keep / f"{file.stem}.run"
    because = None
    attempt, late = 0, True
    while late and attempt < _ATTEMPTS:
        attempt += 1
        shutil.rmtree(run, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "airpath", "emulate", str(file), "--flows", "--out", str(run)],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        late = done.returncode == _INVALID
    named: tuple[str, ...] = ()
    if late:
        shutil.rmtree(run, ignore_errors=True)
        why = " ".join(line for line in done.stderr.splitlines() if "does not count" in line)
        return Emulated(file.stem, cause, named, why, attempt, judged=False)
    if done.returncode:
        because = done.stderr.strip() or f"exit code {done.returncode}"
    else:
        summary = json.loads((run / "summary.json").read_text())
        causes = [finding["cause"] for finding in summary["findings"]]
        named = tuple(one for one in causes if not one.endswith("-capacity"))
        because = (summary["explained"] or {}).get("because")
    shutil.rmtree(run, ignore_errors=True)
    result = Emulated(file.stem, cause, named, because, attempt)
    written = kept.with_suffix(".partial")
    written.write_text(to_json(asdict(result)))
    written.rename(kept)
    return result


def tell(found: Sequence[Emulated]) -> int:
    """Print which findings were right, and return the exit code."""
    planted = [one for one in found if one.cause and one.judged]
    healthy = [one for one in found if not one.cause and one.judged]
    late = [one for one in found if not one.judged]
    for cause in sorted({one.cause for one in planted if one.cause}):
        same = [one for one in planted if one.cause == cause]
        print(f"{cause:22} {sum(one.right for one in same):3} of {len(same):3}")
    if healthy:
        print(
            f"{'healthy, none named':22} {sum(one.right for one in healthy):3} of {len(healthy):3}"
        )
    for one in found:
        if one.judged and not one.right:
            said = ", ".join(one.named) or one.because or "nothing"
            print(f"  {one.name}: {said}")
    for one in healthy:
        if one.right and one.because:
            print(f"  {one.name}: nothing could be tried: {one.because}")
    say(f"{sum(one.attempts - 1 for one in found)} emulations were too late, and repeated")
    for one in late:
        print(f"  {one.name} is not judged: {one.because}")
    enough = _part(planted) >= _WANTED and _part(healthy) >= _HEALTHY
    return WRONG if not enough else NOT_CHECKED if late else FINE


def _part(cases: Sequence[Emulated]) -> float:
    return sum(one.right for one in cases) / len(cases) if cases else 1.0
