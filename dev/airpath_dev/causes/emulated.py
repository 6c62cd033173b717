"""Emulates drawn cases with iperf3, ss and ping, and counts which causes their outputs show (root).

The cases are those of ``make causes`` with another seed, as far as iperf3 can send them. Judged are
the JSON of iperf3's sender, that of its receiver, and the sender's with ss and ping beside it: is
the cause among the two that are named, and is a healthy path blamed? Runs are kept in ``--keep``,
and the command resumes from there.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from airpath.causes import tools
from airpath.causes.model import packaged
from airpath.causes.suspect import alike
from airpath.cli.console import progress_bar
from airpath.diagnose.told import told_by
from airpath.errors import AirpathError
from airpath.readers.recognise import recognise
from airpath_dev import ROOT
from airpath_dev.harness import FINE, Count, Seed, emulable, say

from .draw import TALK, Drawn, draw
from .learn import labels_of

_AT_ONCE = 2
_OF_FLOWS = ("window_bytes", "send_buffer_bytes", "receive_buffer_bytes", "read_rate_mbps",
             "write_times_s", "size_bytes", "slow_start", "duration_s")  # fmt: skip
"""Keys of a transfer that iperf3 cannot have."""


def main(
    seed: Seed = 7,
    count: Count = 120,
    keep: Annotated[Path, typer.Option(help="Folder of the runs.")] = ROOT / "target/causes-tools",
) -> int:
    """Emulate COUNT drawn cases with iperf3, and judge what it, ss and ping tell."""
    if not emulable(count):
        return FINE
    keep.mkdir(parents=True, exist_ok=True)
    chosen = [one for _, one in zip(range(count), _cases(seed), strict=False)]
    with ThreadPoolExecutor(_AT_ONCE) as pool, progress_bar("emulated") as shown:
        for done, _ in enumerate(pool.map(partial(_emulate, keep), chosen)):
            shown((done + 1) / len(chosen))
    for outputs in (("sender",), ("receiver",), ("sender", "ss", "ping")):
        say(f"{' and '.join(outputs)}: {_judged(keep, chosen, outputs)}")
    return FINE


def _cases(seed: int) -> Iterator[tuple[str, Drawn]]:
    number = 0
    while True:
        for index, one in enumerate(draw(seed, number)):
            flows = tomllib.loads(one.text)["flow"]
            transfers = [flow for flow in flows if flow["kind"] == "bulk"]
            same = len({flow.get("congestion") for flow in transfers}) == 1
            plain = not any(key in flow for flow in transfers for key in _OF_FLOWS)
            plain = plain and not any(flow["kind"] == "udp" for flow in flows)
            if same and plain and not one.words.startswith(TALK):
                yield f"{seed}-{number}-{index}", one
        number += 1


def _emulate(keep: Path, case: tuple[str, Drawn]) -> None:
    name, drawn = case
    place = keep / name
    if place.exists():
        return
    scenario, run = keep / f"{name}.toml", keep / f"{name}.run"
    scenario.write_text(_with_programs(drawn))
    shutil.rmtree(run, ignore_errors=True)
    command = [sys.executable, "-m", "airpath", "emulate", str(scenario), "--user", "root"]
    done = subprocess.run(
        [*command, "--explain", "off", "--out", str(run)],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if not (run / "programs").exists():
        say(f"{name} is not judged: {done.stderr.strip()[-300:]}")
        return
    shutil.copytree(run / "programs", place)
    shutil.rmtree(run)


def _with_programs(drawn: Drawn) -> str:
    """The scenario with iperf3, ss and ping, which run instead of its flows."""
    parsed = tomllib.loads(drawn.text)
    seconds = parsed["run"]["duration_s"]
    transfers = [one for one in parsed["flow"] if one["kind"] == "bulk"]
    client = f"exec iperf3 -c server -J -t {max(2, round(seconds) - 1)} -P {len(transfers)}"
    client += f" -C {transfers[0].get('congestion', 'cubic')}{'' if drawn.up else ' -R'}"
    sender = "ue" if drawn.up else "server"
    often = "while :; do date -u +%Y-%m-%dT%H:%M:%S.%NZ; ss -tin; sleep 0.5; done"
    programs: list[dict[str, Any]] = [
        {"name": "server", "at": "server", "command": "exec iperf3 -s -J", "wait_for": "listen"},
        {"name": "ss", "at": sender, "command": often},
        {"name": "ping", "command": "exec ping -D -i 0.25 server"},
        {"name": "transfer", "command": client, "start_s": 0.2, "ends_run": True},
    ]
    longer = f"duration_s = {seconds + 20}"
    text = [re.sub(r"^duration_s = .*", longer, drawn.text, count=1, flags=re.MULTILINE)]
    text += [
        "\n".join(["[[program]]", *(f"{key} = {json.dumps(value)}" for key, value in one.items())])
        for one in programs
    ]
    text += ["[emulation]\nlateness_bound_ms = 5\nhost_bound_ms = 5\n"]
    return "\n".join(text) + "\n"


def _judged(keep: Path, cases: Sequence[tuple[str, Drawn]], outputs: tuple[str, ...]) -> str:
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for name, drawn in cases:
        found = _named(keep / name, drawn.up, outputs)
        if found is None:
            continue
        planted = labels_of({"costs": drawn.costs})
        if drawn.costs and not planted:
            continue  # To one flow it is a link with that rate.
        what = "+".join(sorted(planted)) or "healthy"
        every[what] += 1
        right[what] += bool(planted & found) if planted else not found
    healthy = every.pop("healthy", 0)
    blamed = healthy - right.pop("healthy", 0)
    rows = ", ".join(f"{what} {right[what]}/{every[what]}" for what in sorted(every))
    total = max(1, sum(every.values()))
    return (
        f"{sum(right.values())} of {sum(every.values())} ({sum(right.values()) / total:.0%}) among "
        f"the two named, {blamed} of {healthy} healthy blamed: {rows}"
    )


def _named(place: Path, up: bool, outputs: tuple[str, ...]) -> set[str] | None:
    """The causes that those outputs show; None if they have no test."""
    files = {"sender": "transfer.stdout", "receiver": "server.stdout"}
    if not up:
        files = {"sender": "server.stdout", "receiver": "transfer.stdout"}
    names = [files.get(one, f"{one}.stdout") for one in outputs]
    read: list[Any] = []
    for name in names:
        try:
            read.append(recognise(str(place / name)).output)
        except (AirpathError, OSError):
            continue
    test = told_by(read)
    if test is None:
        return None
    blamed = tools.blame(test)
    if blamed.verdict == "bound":
        return set()
    every = packaged(tools.MODEL).probabilities(tools.features(test))
    return {one for cause, _ in tools.likeliest(every) for one in alike(cause)}
