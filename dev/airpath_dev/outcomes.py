"""Counts the outcomes of all tests: passed, not judged, skipped, left out.

    cargo test … | airpath-dev outcomes rust    copies cargo's output, and counts
    airpath-dev outcomes total                  prints the sum

Both suites append one JSON object per line to the file that AIRPATH_OUTCOMES names. A real-clock
test that the machine kept from being judged has neither passed nor failed (docs/adr/0029).
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airpath_dev import ROOT

FILE = "AIRPATH_OUTCOMES"
RESULT = re.compile(r"test result: .*? (\d+) passed; (\d+) failed;")
LEFT_OUT = re.compile(r'#\[ignore = "([^"]+)"\](?:\s*(?:#\[.*\]|//.*))*\s*(?:async )?fn (\w+)')
FAILED = re.compile(r"    (\w+(?:::\w+)*)$")
"""The name of a failed test in cargo's list under `failures:`."""
SEED = "PROPTEST_RNG_SEED"
NEEDS_ROOT = "needs root"
WORST = ("failed", "not judged", "skipped", "passed")


def relay() -> None:
    """Copy cargo's output, say how to repeat failed tests, and append the counts to the file."""
    passed = failed = 0
    listed: list[str] = []
    names: list[str] = []
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()
        if found := RESULT.match(line):
            passed, failed = passed + int(found[1]), failed + int(found[2])
            names, listed = names + listed, []
        elif line == "failures:\n":
            # cargo prints `failures:` twice: before the tests' output, and before their names.
            listed = []
        elif found := FAILED.match(line):
            listed.append(found[1])
    for name in names if SEED in os.environ else ():
        print(f"To draw the same cases again: {SEED}={os.environ[SEED]} make rust-test TEST={name}")
    if FILE in os.environ:
        counts = {"suite": "rust", "passed": passed, "failed": failed}
        with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(counts) + "\n")


def left_out(root: Path) -> list[tuple[str, str]]:
    """Return names and reasons of the ignored Rust tests that were not run."""
    found = []
    for source in sorted(root.glob("crates/**/*.rs")):
        for reason, name in LEFT_OUT.findall(source.read_text(encoding="utf-8")):
            if reason != NEEDS_ROOT or os.geteuid() != 0:
                found.append((name, reason))
    return found


def by_test(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each test's worst outcome, because a test may have several parts."""
    tests: dict[str, dict[str, Any]] = {}
    for line in lines:
        if "test" in line:
            known = tests.setdefault(line["test"], line)
            if WORST.index(line["outcome"]) < WORST.index(known["outcome"]):
                tests[line["test"]] = line
    return tests


def report(lines: list[dict[str, Any]], ignored: list[tuple[str, str]]) -> list[str]:
    """Return the lines to print."""
    tests = by_test(lines)
    counts = Counter(test["outcome"] for test in tests.values() if test["suite"] == "python")
    for line in lines:
        if "passed" in line:
            counts.update(passed=line["passed"], failed=line["failed"])
    # The Rust harness counts these tests as passed.
    missed = [test for test in tests.values() if test["outcome"] in ("not judged", "skipped")]
    for test in missed:
        if test["suite"] == "rust":
            counts.update({test["outcome"]: 1, "passed": -1})
    said = []
    for title in ("not judged", "skipped"):
        reasons = Counter(
            f"{test['test']}: {test['reason']}" if title == "not judged" else test["reason"]
            for test in missed
            if test["outcome"] == title
        )
        if reasons:
            said.append(f"{title}:")
            said += [f"  {reason}" + (f" ({count} tests)" if count > 1 else "")
                     for reason, count in sorted(reasons.items())]  # fmt: skip
    if ignored:
        said += ["left out:", *(f"  {name}: {reason}" for name, reason in ignored)]
    clock = [
        test for test in tests.values() if test.get("real_clock") and test["outcome"] != "skipped"
    ]
    unsteady = [
        f"  {test['test']}: {test['real_clock']['wrong_once']}"
        for test in clock
        if test["outcome"] == "passed" and test["real_clock"].get("wrong_once")
    ]
    if unsteady:
        said += ["wrong once on time, and not in a second attempt:", *unsteady]
    again = sum(bool(test["real_clock"]["too_late"]) for test in clock)
    late = sum(test["outcome"] == "not judged" for test in clock)
    if clock:
        said.append(
            f"on the real clock: {len(clock)} tests, {again} tried again because the machine was "
            f"busy, {late} not judged ({late / len(clock):.0%})"
        )
    said.append(
        f"total: {counts['passed']} passed, {counts['failed']} failed, {counts['not judged']} not "
        f"judged, {counts['skipped']} skipped, {len(ignored)} left out"
    )
    return said


def total() -> None:
    """Print the sum of the outcomes in the file."""
    file = Path(os.environ[FILE])
    began = file.with_name(file.name + ".began")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    said = report(lines, left_out(ROOT))
    seconds = time.time() - began.stat().st_mtime
    said[-1] += f"; {seconds // 60:.0f} min {seconds % 60:.0f} s"
    print("\n" + "\n".join(said))


def main(words: Sequence[str]) -> int:
    """Do as the words say."""
    match words:
        case ["rust"]:
            relay()
        case ["total"]:
            total()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0
