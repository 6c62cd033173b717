"""Emulates drawn cases with the kernel's TCP, and judges their captures at both ends (root).

The cases are those of ``make causes`` with another seed. Judged is what ``airpath diagnose`` says:
is a planted cause first, is a healthy path blamed, and how often is it right where it says p? Runs
of which the host was late are repeated once, and left out if that is late too. Recordings are kept
in ``--keep``, and the command resumes from there.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from airpath import _core
from airpath.causes import blame
from airpath.causes.rank import OF_THE_TEST
from airpath.cli.console import progress_bar
from airpath_dev import ROOT
from airpath_dev.harness import FINE, Count, Seed, emulable, heading, say, table, write
from airpath_dev.planted.capture import at_point

from .command import calibration_error
from .draw import Drawn, draw
from .learn import costs_of, group_of

_AT_ONCE = 2
_ATTEMPTS = 2
_POINTS = ("server", "ue")
_LATE_MS = 5
"""Later than that, what a capture shows may be the host's doing."""
_BINS = 5
_HALF = math.log(2)
"""What costs a half of the rate, as a logarithm."""


@dataclass(frozen=True)
class Judged:
    """A capture at one end: what planted causes cost, and those that are named, with how sure."""

    name: str
    words: str
    point: str
    planted: Mapping[str, float]
    named: tuple[tuple[str, float], ...]

    @property
    def first(self) -> str | None:
        """The cause that is named first."""
        return self.named[0][0] if self.named else None

    @property
    def is_right(self) -> bool:
        """A planted one is."""
        return self.first in self.planted


def main(
    seed: Seed = 7,
    count: Count = 60,
    keep: Annotated[Path, typer.Option(help="Folder of the recordings.")] = ROOT
    / "target/causes-captured",
    page: Annotated[Path | None, typer.Option(help="Write a page of the figures.")] = None,
) -> int:
    """Emulate the runs of COUNT drawn cases, and judge their captures."""
    if not emulable(count):
        return FINE
    keep.mkdir(parents=True, exist_ok=True)
    cases = [
        (f"{seed}-{number}-{index}", one)
        for number in range(count)
        for index, one in enumerate(draw(seed, number))
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool, progress_bar("emulated") as shown:
        for done, _ in enumerate(pool.map(partial(_record, keep), cases)):
            shown((done + 1) / len(cases))
    on_time = [one for one in cases if (keep / one[0] / "ue.pcapng").exists()]
    say(f"{len(on_time)} of {len(cases)} runs were on time")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = [one for some in pool.map(partial(_judged, keep), on_time) for one in some]
    for point in _POINTS:
        say(f"{point}: {summary([one for one in found if one.point == point])}")
    if page is not None:
        about = f"{len(on_time)} of {len(cases)} runs of {count} cases were on time"
        write(page, _page(f"SEED={seed} COUNT={count}", about, found))
    return FINE


def _record(keep: Path, case: tuple[str, Drawn]) -> None:
    name, drawn = case
    place, run, scenario = keep / name, keep / f"{name}.run", keep / f"{name}.toml"
    if place.exists():
        return
    bounds = f"lateness_bound_ms = {_LATE_MS}\nhost_bound_ms = {_LATE_MS}\n"
    scenario.write_text(f"{drawn.text}\n[emulation]\n{bounds}")
    command = [sys.executable, "-m", "airpath", "emulate", str(scenario), "--flows", "--capture"]
    for _ in range(_ATTEMPTS):
        shutil.rmtree(run, ignore_errors=True)
        done = subprocess.run(
            [*command, "--explain", "off", "--out", str(run)],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode == 0:
            break
    partial_place = keep / f"{name}.partial"
    partial_place.mkdir(exist_ok=True)
    if done.returncode == 0:
        for point in _POINTS:
            at_point(run / "capture.pcapng", partial_place / f"{point}.pcapng", point)
    else:
        say(f"{name} is not judged: {done.stderr.strip()[-200:]}")
    partial_place.rename(place)
    shutil.rmtree(run, ignore_errors=True)


def _judged(keep: Path, case: tuple[str, Drawn]) -> list[Judged]:
    name, drawn = case
    planted = costs_of(drawn.costs)
    if drawn.costs and not planted:
        return []  # To one flow it is a link with that rate.
    found = []
    for point in _POINTS:
        file = keep / name / f"{point}.pcapng"
        suspects = blame(file, _core.read_capture(file)).suspects
        named = tuple((group_of(one.cause), one.confidence or 1.0) for one in suspects)
        found.append(Judged(name, drawn.words, point, planted, named))
    return found


def summary(found: Sequence[Judged]) -> str:
    """How many have the right cause first, and how many healthy paths are blamed."""
    ill, well = _parted(found)
    right = sum(one.is_right for one in ill)
    most = [(one, max(one.planted.values())) for one in ill]
    by_cost = ", ".join(
        f"{sum(one.is_right for one in some)} of {len(some)} that cost {words}"
        for words, some in (
            ("a half or more", [one for one, cost in most if cost >= _HALF]),
            ("less", [one for one, cost in most if cost < _HALF]),
        )
    )
    blamed = [one for one in well if one.named]
    of_path = sum(one.first not in OF_THE_TEST for one in blamed)
    error = calibration_error(sureness(found))
    return (
        f"a planted cause first in {right} of {len(ill)} ({right / max(1, len(ill)):.0%}: "
        f"{by_cost}), another one in {sum(bool(one.named) for one in ill) - right}; of "
        f"{len(well)} healthy paths "
        f"{len(blamed)} have a cause named, {of_path} one of the path or of a host; calibration "
        f"error {error:.1%}"
    )


def _parted(found: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    return [one for one in found if one.planted], [one for one in found if not one.planted]


def sureness(found: Sequence[Judged]) -> list[tuple[float, bool]]:
    """How sure each named cause is, and whether it is right."""
    return [(sure, cause in one.planted) for one in found for cause, sure in one.named]


def _page(made: str, about: str, found: Sequence[Judged]) -> list[str]:
    lines = [
        heading("Causes inferred from captures of emulated transfers", f"causes-captured {made}"),
        f"The kernel's TCP sends over drawn paths with none, one or two planted causes; {about}. "
        "Each run was captured next to both ends, and each capture was judged alone.",
    ]
    for point in _POINTS:
        here = [one for one in found if one.point == point]
        where = "server" if point == "server" else "UE"
        lines += [f"\n## Captured at the {where}\n", f"{_sentence(summary(here))}.\n"]
        lines += [
            table("cause | a half: | first: | less: | first: | another: | none:", _by_cause(here))
        ]
        lines += ["\nOf causes that are named as this likely, so many were planted:\n"]
        lines += [table("said | mean: | named: | planted:", _reliability(here))]
    blamed = [one for one in found if one.named and not one.planted]
    if blamed:
        lines += ["\n## Healthy paths with a cause named\n"]
        rows = [(one.name, one.words, one.point, *one.named[0]) for one in blamed]
        lines += [table("run | path | captured at | cause | said:", rows)]
    return lines


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _by_cause(found: Sequence[Judged]) -> list[tuple[object, ...]]:
    ill, _ = _parted(found)
    rows: list[tuple[object, ...]] = []
    for cause in sorted({cause for one in ill for cause in one.planted}):
        mine = [one for one in ill if cause in one.planted]
        row: list[object] = [cause]
        for is_half in (True, False):
            some = [one for one in mine if (one.planted[cause] >= _HALF) is is_half]
            row += [len(some), sum(one.is_right for one in some)]
        none = sum(not one.named for one in mine)
        right = sum(one.is_right for one in mine)
        rows.append((*row, len(mine) - right - none, none))
    return rows


def _reliability(found: Sequence[Judged]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    sure = sureness(found)
    for number in range(_BINS):
        low, high = number / _BINS, (number + 1) / _BINS
        here = [one for one in sure if low <= one[0] and (one[0] < high or number == _BINS - 1)]
        if here:
            mean = sum(said for said, _ in here) / len(here)
            right = sum(is_right for _, is_right in here)
            rows.append((f"{low:.0%} to {high:.0%}", f"{mean:.0%}", len(here),
                         f"{right / len(here):.0%}"))  # fmt: skip
    return rows
