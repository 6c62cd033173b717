"""Fuzzes the readers of untrusted input, guided by coverage.

    airpath-dev fuzz-coverage run SECONDS [TARGET...]   runs each target for SECONDS of CPU time
    airpath-dev fuzz-coverage corpus [TARGET...]        puts the fewest files that cover what was
                                                        found into fuzz/corpus

Targets are built by nightly Rust and cargo-fuzz, with the versions of Cargo.lock. Inputs are kept
in target/fuzz between runs. Exit codes: 0, no target crashed; 1, one did; 2, bad use; 3, not
checked, because something is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airpath_dev import ROOT

FUZZ = ROOT / "fuzz"
WORK = ROOT / "target/fuzz"
TOOLS = ROOT / "target/tools"
LARGEST = dict.fromkeys(("scenario", "capture", "second_reading"), 4096)
LARGEST |= {"drive_log": 1024, "trace": 256}
"""Largest input in bytes; `LARGEST_PACKET` is for all other targets."""
LARGEST_PACKET = 512
MOST_FILES = 64
"""Largest number of files in a committed corpus."""
STATUS = re.compile(r"^#\d+\s.*?cov: (\d+) ft: (\d+) corp: (\d+)/")
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s+(\d+)")
CRASHED = re.compile(r"Test unit written to (\S+)")


class MissingError(Exception):
    """A tool is missing; the text says how to get it."""


@dataclass
class Result:
    """The result of a target, read from its log."""

    target: str
    executions: int = 0
    coverage: int = 0
    features: int = 0
    corpus: int = 0
    crashes: list[str] | None = None
    slow: list[str] = field(default_factory=list)
    """Inputs that took 10 s or longer. They are not crashes: a busy machine makes inputs slow."""
    seconds: float = 0.0
    said: str = ""

    def row(self) -> list[str]:
        """Return the cells of this target's row."""
        crashes = len(self.crashes or [])
        rate = self.executions / self.seconds if self.seconds else 0.0
        figures = [f"{self.seconds:.0f}", f"{self.executions:,}", f"{rate:,.0f}"]
        return [self.target, *figures, *map(str, (self.coverage, self.corpus, crashes))]


HEAD = ["target", "CPU s", "executions", "per CPU s", "edges covered", "corpus", "crashes"]


def targets() -> list[str]:
    """Return the names of all targets."""
    return sorted(source.stem for source in (FUZZ / "fuzz_targets").glob("*.rs"))


def build() -> Path:
    """Build all targets and return their folder."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(TOOLS / "bin")])
    environment = {**os.environ, "PATH": path}
    nightly = ask(["cargo", "+nightly", "--version"], environment)
    if nightly is None:
        raise MissingError(
            "nightly Rust is missing: `rustup toolchain install nightly --profile minimal`"
        )
    if ask(["cargo", "+nightly", "fuzz", "--version"], environment) is None:
        print("installing cargo-fuzz", file=sys.stderr, flush=True)
        install = ["cargo", "+nightly", "install", "--quiet", "--locked", "--root", str(TOOLS)]
        if subprocess.run([*install, "cargo-fuzz"], check=False).returncode != 0:
            raise MissingError("cargo-fuzz is missing: `cargo install cargo-fuzz`")
    # Use the shipped versions of dependencies; cargo adds libFuzzer's.
    shutil.copy(ROOT / "Cargo.lock", FUZZ / "Cargo.lock")
    command = ["cargo", "+nightly", "fuzz", "build"]
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
        raise MissingError("the targets do not build: see above")
    said = ask(["rustc", "+nightly", "-vV"], environment) or ""
    host = next(line.split()[1] for line in said.splitlines() if line.startswith("host:"))
    return FUZZ / "target" / host / "release"


def ask(command: Sequence[str], environment: dict[str, str]) -> str | None:
    """Return a command's output; None if it fails or does not exist."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def options(target: str) -> list[str]:
    """Return libFuzzer's options for a target."""
    said = [f"-max_len={LARGEST.get(target, LARGEST_PACKET)}", "-rss_limit_mb=2048", "-timeout=60"]
    if target == "scenario":
        said.append(f"-dict={dictionary()}")
    return said


def dictionary() -> Path:
    """Write libFuzzer's dictionary: words of the scenario reference and the shipped scenarios."""
    text = (ROOT / "docs/reference/scenario.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([A-Za-z0-9_.\[\]\"=-]+)`", text))
    for scenario in (ROOT / "scenarios").glob("*.toml"):
        said = scenario.read_text(encoding="utf-8")
        words |= set(re.findall(r"^(\[.*\]|\w+ = .*)$", said, re.MULTILINE))
    file = WORK / "scenario.dict"
    file.parent.mkdir(parents=True, exist_ok=True)
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in sorted(words))
    usable = (word for word in quoted if word.isascii() and len(word) <= 60)
    file.write_text("".join(f'"{word}"\n' for word in usable), encoding="ascii")
    return file


def run(program: Path, seconds: float) -> Result:
    """Run a target for `seconds` of processor time, or until it crashes."""
    target = program.name
    found, artifacts, log = (
        WORK / "found" / target,
        WORK / "crashes" / target,
        WORK / f"{target}.log",
    )
    for directory in (found, artifacts):
        directory.mkdir(parents=True, exist_ok=True)
    command = [str(program), *options(target), f"-artifact_prefix={artifacts}/"]
    command += ["-print_final_stats=1", str(found), str(FUZZ / "corpus" / target)]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_odr_violation=0"}
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, cwd=WORK, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            used = wait(process, seconds)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    result = read_log(target, log.read_text(encoding="utf-8", errors="replace"))
    result.seconds = used
    if process.returncode != 0 and not result.crashes:
        result.crashes = [f"ended with {process.returncode}: see {log}"]
    return result


def wait(process: subprocess.Popen[bytes], seconds: float) -> float:
    """Stop a target when its processor time is used up; return the processor time it took."""
    asked, used = 0.0, 0.0
    # A target that blocks never uses up its processor time.
    patience = time.monotonic() + 20 * seconds + 600
    while process.poll() is None and time.monotonic() < patience:
        used = processor_time(process.pid) or used
        if used >= seconds and not asked:
            # On SIGUSR1 libFuzzer prints its statistics and exits with 0.
            process.send_signal(signal.SIGUSR1)
            asked = time.monotonic()
        if asked and time.monotonic() > asked + 120:
            break
        time.sleep(0.2)
    return used


def processor_time(pid: int) -> float | None:
    """Return the processor time of a process, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_log(target: str, log: str) -> Result:
    """Return the result from libFuzzer's log."""
    result = Result(target, crashes=[])
    for line in log.splitlines():
        if found := STATUS.match(line):
            result.coverage, result.features, result.corpus = (int(one) for one in found.groups())
        elif found := EXECUTED.match(line):
            result.executions = int(found[1])
        elif found := CRASHED.search(line):
            if Path(found[1]).name.startswith("slow-unit-"):
                result.slow.append(found[1])
            else:
                result.crashes = [*(result.crashes or []), found[1]]
        if "panicked at" in line or line.startswith("SUMMARY:"):
            result.said = result.said or line.strip()
    return result


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows as aligned columns: names to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        name, *figures = row
        cells = (cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *cells]))
    return "\n".join(lines)


def run_all(names: Sequence[str], seconds: float) -> int:
    """Run targets one after the other and print their results."""
    place, results = build(), []
    for name in names:
        print(f"{name}: {seconds:.0f} s of processor time", file=sys.stderr, flush=True)
        results.append(run(place / name, seconds))
    print(table([HEAD, *(result.row() for result in results)]))
    crashed = [result for result in results if result.crashes]
    for result in crashed:
        print(f"{result.target} crashed: {result.said}")
        for crash in result.crashes or []:
            print(f"  to repeat it: {place / result.target} {crash}")
    for result in results:
        for unit in result.slow:
            print(f"{result.target} took 10 s or longer: {place / result.target} {unit}")
    return 1 if crashed else 0


def minimise(names: Sequence[str]) -> int:
    """Replace the committed corpora by the files that cover most of what was found."""
    place = build()
    for name in names:
        corpus, merged = FUZZ / "corpus" / name, WORK / "merged" / name
        shutil.rmtree(merged, ignore_errors=True)
        merged.mkdir(parents=True)
        control = merged.with_suffix(".control")
        control.unlink(missing_ok=True)
        command = [str(place / name), *options(name), "-set_cover_merge=1", "-use_counters=0"]
        command += [f"-merge_control_file={control}", str(merged), str(corpus)]
        command.append(str(WORK / "found" / name))
        done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stderr[-2000:], file=sys.stderr)
            return 1
        found = read_control(control.read_text(encoding="utf-8", errors="replace"))
        kept = {file.name: file.read_bytes() for file in most_covering(found)}
        for old in corpus.iterdir():
            # Keep the inputs of faults that were fixed.
            if not old.name.startswith("fault-"):
                old.unlink()
        for file, data in kept.items():
            (corpus / file).write_bytes(data)
        print(f"{name}: {len(kept)} of {len(found)} files, {sum(map(len, kept.values()))} bytes")
    return 0


def read_control(text: str) -> dict[Path, set[str]]:
    """Return the coverage of each file, from libFuzzer's merge control file."""
    lines = text.splitlines()
    files = lines[2 : 2 + int(lines[0])]
    found = (line.split() for line in lines if line.startswith("FT "))
    return {Path(files[int(number)]): set(features) for _, number, *features in found}


def most_covering(files: dict[Path, set[str]]) -> list[Path]:
    """Return at most `MOST_FILES` files, each chosen because it adds the most coverage."""
    kept: list[Path] = []
    covered: set[str] = set()
    left = dict(sorted(files.items(), key=lambda one: (one[0].stat().st_size, one[0].name)))
    while left and len(kept) < MOST_FILES:
        best = max(left, key=lambda file: len(left[file] - covered))
        if left[best] <= covered:
            break
        kept.append(best)
        covered |= left.pop(best)
    return kept


def main(words: Sequence[str]) -> int:
    """Run the subcommand in `words`."""
    # On SIGTERM, exit by exception, so that `run` also stops the running target.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    known = targets()
    match words:
        case ["run", seconds, *names] if re.fullmatch(r"[1-9]\d*", seconds):
            pass
        case ["corpus", *names]:
            seconds = ""
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    if unknown := [name for name in names if name not in known]:
        print(f"no target {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    try:
        chosen = names or known
        return run_all(chosen, float(seconds)) if seconds else minimise(chosen)
    except MissingError as missing:
        print(f"fuzz: not checked: {missing}", file=sys.stderr)
        return 3
