"""What the benches share: building and running a program, progress, tables."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from airpath.cli.console import progress_bar
from airpath.errors import AirpathError
from airpath_dev import ROOT, profiled
from airpath_dev.harness import FINE, WRONG, say

VALGRIND = shutil.which("valgrind")
PEERS = ROOT / "benches/peers/build"
LOGGING = 1.6
"""ns-3's largest speed-up without logging (benches/peers/README.md)."""

Row = dict[str, Any]


class BenchError(AirpathError):
    """A failure that the user can fix, such as a missing program."""


def build(
    name: str, package: str = "airpath-sim", environment: Mapping[str, str] = os.environ
) -> Path:
    """Builds a Rust bench of a package and returns its executable."""
    command = ["cargo", "bench", "-q", "-p", package, "--bench", name, "--no-run"]
    say(f"building the bench {name}")
    try:
        done = subprocess.run(
            [*command, "--message-format=json"],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            check=False,
        )
    except FileNotFoundError:
        raise BenchError("cargo is not there: install Rust (https://rustup.rs)") from None
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0:
        rendered = [(message.get("message") or {}).get("rendered") or "" for message in messages]
        raise BenchError(f"`{' '.join(command)}` failed\n{''.join(rendered)}".rstrip())
    for message in messages:
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise BenchError(f"`{' '.join(command)}` names no executable")


@dataclass(frozen=True)
class Builds:
    """How airpath's programs are built, and its description in the tables."""

    environment: Mapping[str, str]
    said: str

    def program(self, name: str) -> Path:
        return build(name, environment=self.environment)


def builds(plain: bool) -> Builds:
    """Return profile-guided builds, as for wheels, unless this machine cannot make them."""
    if plain:
        return Builds(
            os.environ, "airpath as `tools/setup` builds it, without a profile (`--plain`)"
        )
    say("making a profile of runs")
    try:
        environment = profiled.profiled(
            profiled.PLACE / "benches", lambda counts: build("shipped", environment=counts), train
        )
    except profiled.MissingError as error:
        say(f"WITHOUT A PROFILE: {error}")
        return Builds(os.environ, f"**airpath WITHOUT a profile, slower than a wheel is: {error}**")
    except profiled.ProfileError as error:
        raise BenchError(str(error)) from None
    return Builds(environment, "airpath built with a profile of shipped scenarios, as wheels are")


def train(program: Path, environment: Mapping[str, str]) -> None:
    """Runs the training cases of a profile, each in a separate process."""
    for case in profiled.cases():
        profiled.call([str(program), *case], "training failed", {**environment})


def peer_program(name: str) -> Path | None:
    """Returns a program of ns-3 if it is built; otherwise says how to build it."""
    program = PEERS / name
    if program.is_file():
        return program
    say(
        f"ns-3 is left out: {program.relative_to(ROOT)} is missing. To build it:\n"
        f"  benches/peers/install.sh && make -C benches/peers {name}"
    )
    return None


def measure(command: list[str]) -> Row:
    """Runs a bench that prints one line of JSON, and returns it."""
    try:
        done = subprocess.run(command, text=True, capture_output=True, check=False)
    except OSError as error:
        raise BenchError(f"cannot run {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise BenchError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.returncode}")
    row: Row = json.loads(done.stdout)
    if row["delivered_segments"]:
        row["ns_per_segment"] = row["cpu_s"] * 1e9 / row["delivered_segments"]
    return row


def repeat(label: str, times: int, call: Callable[[], Any]) -> list[Any]:
    """Return the results of `times` calls; shows a bar on a terminal, else prints one line."""
    if times and not sys.stderr.isatty():
        say(f"{label}, {times} x")
    results = []
    with progress_bar(label) as shown:
        for number in range(times):
            results.append(call())
            shown((number + 1) / times)
    return results


def callgrind(command: list[str]) -> tuple[int, str]:
    """Return the instructions of a command and its output; its environment is always the same."""
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [VALGRIND or "", "--tool=callgrind", f"--callgrind-out-file={place}/out", *command],
            capture_output=True, text=True, check=False, cwd=place, env={},
        )  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"callgrind failed: {done.stderr.strip()[-400:]}")
    return collected(done.stderr), done.stdout


def collected(said: str) -> int:
    """Return the number of instructions from callgrind's output."""
    found = re.search(r"Collected\s*:\s*(\d+)", said)
    if found is None:
        raise BenchError(f"callgrind says no count: {said.strip()}")
    return int(found[1])


class Results:
    """Measurements, printed and written after each step. Steps that failed are named at the end,
    and the results of the others are kept."""

    def __init__(self, document: Row, file: Path | None = None) -> None:
        self.document = document
        self.failed: list[str] = []
        self._file = file

    def say(self, parts: Iterable[str]) -> None:
        """Print paragraphs, and write the document with the results so far."""
        for part in parts:
            print(f"{part}\n", flush=True)
        if self._file is not None:
            text = json.dumps(self.document, indent=2) + "\n"
            self._file.write_text(text, encoding="utf-8")

    def step(
        self, name: str, call: Callable[[], Any], render: Callable[[Any], Iterable[str]]
    ) -> None:
        """Measure one entry of the document, and print it if anything was measured."""
        if found := self.attempt(name, call):
            self.document[name] = found
            self.say(render(found))

    def each(self, name: str, cases: Iterable[Any], call: Callable[[Any], Row]) -> list[Row]:
        """Return rows for the cases that could be measured."""
        rows = (self.attempt(f"{name}, {case}", partial(call, case)) for case in cases)
        return [row for row in rows if row is not None]

    def attempt(self, name: str, call: Callable[[], Any]) -> Any:
        """Return the result of the call; None if it failed."""
        try:
            return call()
        except (BenchError, OSError, subprocess.CalledProcessError) as error:
            self.failed.append(name)
            said = getattr(error, "stderr", None) or ""
            say(f"{name} failed: {error}\n{said}".rstrip())
            return None

    def end(self) -> int:
        """Print which steps failed, and return the exit code."""
        if self.failed:
            say(f"failed: {'; '.join(self.failed)}")
        return WRONG if self.failed else FINE


def about() -> Row:
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "system": f"{platform.system()} {platform.machine()}",
        "rustc": first_line(["rustc", "--version"]),
        "commit": first_line(["git", "describe", "--always", "--dirty"]),
        "command": f"airpath-dev {' '.join(sys.argv)}",
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    cores = sum(line.startswith("processor") for line in lines)
    return f"{name}, {cores} cores"


def first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip().split("\n")[0]


def middle(rows: list[Row], key: str) -> float:
    return float(median(row[key] for row in rows))


def spread(rows: list[Row], key: str, form: str) -> str:
    values = [row[key] for row in rows]
    return f"{form.format(min(values))}–{form.format(max(values))}" if len(values) > 1 else ""
