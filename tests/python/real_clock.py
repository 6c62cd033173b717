"""Tests on the real clock: did the machine let them judge?

A test marked ``real_clock`` starts programs that have to be on time. On a busy machine they are
not, and a wrong figure then says nothing about airpath. Such a test has three outcomes:

- it passes; if a check went wrong once on time, and not again in a second attempt, it passed but is
  listed as wrong once;
- it fails: a check went wrong twice although the machine was on time;
- it is not judged: in each of four attempts either the emulation itself said that its packets were
  late (:func:`on_time`, or in what the command printed, which the check that failed tells), or a
  check went wrong while the machine had other work (:class:`OtherWork`).

Beside other tests, in a worker of pytest-xdist, only a pass counts. A test that goes wrong there is
deferred: its name is written to the file that ``AIRPATH_DEFERRED`` names, and pytest runs the
deferred tests again, alone.

What is not judged is listed with its reasons at the end, and is never called passed. What was wrong
once is listed as well; after :data:`SECOND_TRIES` of these the next wrong test fails at once.
docs/adr/0029-real-clock-tests.md says why these measures, and where the thresholds come from.
"""

from __future__ import annotations

import json
import os
import re
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

RETRIES = 3

SECOND_TRIES = 3
"""So many tests of a suite may go wrong once on time; a fault of airpath makes more wrong."""

OTHERS = 0.05
"""A machine is busy if others use more than this share of its processors' time."""

STOLEN = 0.02
"""Likewise, if the hypervisor takes more than this share for other machines."""

LATE = re.compile(r"this run does not count: (.*; the bound is [^\n]*)")
"""What the command prints of an emulation that was late."""

MARK = "real_clock"
NOT_JUDGED = "not judged"
DEFERRED = "deferred"
WRONG_ONCE = "wrong once, and not again"

OUTCOMES = "AIRPATH_OUTCOMES"
"""Names a file to which each suite adds its outcomes, a JSON object a line."""

ALONE = "AIRPATH_DEFERRED"
"""Variable that names a file for the deferred tests, one name per line."""


class TooLate(Exception):  # noqa: N818 - a test that cannot judge is no error
    """The machine did not let the test judge."""


def on_time(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document of an emulation whose packets were on time; else raise ``TooLate``.

    For tests whose checks mean nothing otherwise. Packets that the host lost are no lateness: the
    checks have to answer for them.
    """
    emulation = document["emulation"]
    because = emulation["invalid_because"]
    if because is not None and "; the bound is " in because:
        raise TooLate(f"the emulation was late: {because}")
    return document


@dataclass(frozen=True)
class Usage:
    """Seconds of processor time so far, summed over the processors that this process may use."""

    at: float
    processors: int
    busy: float
    stolen: float
    own: float

    @classmethod
    def now(cls) -> Usage:
        """Read ``/proc/stat`` (proc(5)) and getrusage(2)."""
        allowed = os.sched_getaffinity(0)
        busy = stolen = 0
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
            name, *numbers = line.split()
            if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in allowed:
                # Without interrupts: most are our own packets'.
                user, nice, system, _idle, _iowait, _irq, _softirq, steal, *_ = map(int, numbers)
                busy += user + nice + system
                stolen += steal
        tick = 1 / os.sysconf("SC_CLK_TCK")
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        own = sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))
        return cls(time.monotonic(), len(allowed), busy * tick, stolen * tick, own)


@dataclass(frozen=True)
class OtherWork:
    """What went to others during a test, as shares of the machine's processor time."""

    others: float
    stolen: float

    @classmethod
    def since(cls, before: Usage) -> OtherWork:
        """From ``before`` until now; children count once they have been waited for."""
        after = Usage.now()
        whole = max((after.at - before.at) * before.processors, 1e-9)
        others = (after.busy - before.busy) - (after.own - before.own)
        return cls(max(0.0, others) / whole, (after.stolen - before.stolen) / whole)

    @property
    def busy(self) -> str | None:
        """Why the machine was busy; ``None`` if it was not."""
        if self.others > OTHERS:
            return f"other work took {self.others:.0%} of the processors"
        if self.stolen > STOLEN:
            return f"the hypervisor took {self.stolen:.0%} of the processors"
        return None


@dataclass
class Attempts:
    """What became of one test on the real clock."""

    too_late: list[str] = field(default_factory=list)
    """Why attempts did not count."""
    wrong_once: str | None = None
    """What went wrong on time, before the second attempt."""
    other_work: list[OtherWork] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def outcome(self) -> dict[str, Any]:
        """Return what the file of outcomes says about it."""
        return {
            "too_late": self.too_late,
            "wrong_once": self.wrong_once,
            "others": [round(work.others, 3) for work in self.other_work],
            "stolen": [round(work.stolen, 3) for work in self.other_work],
            "seconds": [round(seconds, 1) for seconds in self.seconds],
        }


class RealClock:
    """The pytest plugin: attempts, the third outcome, and the lists at the end."""

    def __init__(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", f"{MARK}: judges only where the machine is on time")
        self._raised: list[BaseException] = []
        self._second_tries = 0
        self._outcomes: dict[str, dict[str, Any]] = {}
        # A worker of pytest-xdist sends its reports to the process that writes them down.
        is_worker = hasattr(config, "workerinput")
        self._file = None if is_worker else os.environ.get(OUTCOMES) or None
        alone = os.environ.get(ALONE) or None
        self._defers = is_worker and alone is not None
        self._alone = None if is_worker else alone

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run a test until it could judge, or has been late four times; what is wrong, twice."""
        if item.get_closest_marker(MARK) is None:
            return None
        attempts = Attempts()
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        while True:
            late_before = len(attempts.too_late)
            reports = self._attempt(item, nextitem, attempts)
            if not any(report.failed for report in reports):
                break
            if self._defers:
                _call(DEFERRED, item, reports, _first_line(self._raised))
                break
            if len(attempts.too_late) > RETRIES:
                # What was wrong on time is no matter of the machine.
                if attempts.wrong_once is None:
                    _call(NOT_JUDGED, item, reports, attempts.too_late[-1])
                break
            if len(attempts.too_late) == late_before:
                if attempts.wrong_once is not None or self._second_tries == SECOND_TRIES:
                    break
                self._second_tries += 1
                attempts.wrong_once = _first_line(self._raised)
            # What was late may be a fixture of the module: all are made again.
            item.session._setupstate.teardown_exact(None)
        for report in reports:
            report.real_clock = attempts.outcome()  # type: ignore[attr-defined]
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _attempt(
        self, item: pytest.Item, nextitem: pytest.Item | None, attempts: Attempts
    ) -> list[pytest.TestReport]:
        self._raised.clear()
        before = Usage.now()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        work = OtherWork.since(before)
        attempts.other_work.append(work)
        attempts.seconds.append(time.monotonic() - before.at)
        if any(report.failed for report in reports):
            late = next(filter(None, map(_said_late, self._raised)), None)
            if late is not None:
                attempts.too_late.append(late)
            elif work.busy is not None:
                attempts.too_late.append(f"{work.busy}: {_first_line(self._raised)}")
        return reports

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep what a test raised."""
        if call.excinfo is not None:
            self._raised.append(call.excinfo.value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> tuple[str, str, str] | None:
        """Name an outcome that is neither a pass nor a failure."""
        for name, letter in ((NOT_JUDGED, "J"), (DEFERRED, "d")):
            if getattr(report, "real_clock_outcome", None) == name:
                return name, letter, name.upper()
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a test's outcome from the reports of its three parts."""
        # The reports of two workers alternate. A test of a group ends in "@GROUP" for them alone.
        name = re.sub(r"@[\w-]+$", "", report.nodeid)
        last = self._outcomes.setdefault(
            name,
            {"suite": "python", "test": name, "outcome": "passed",
             "real_clock": getattr(report, "real_clock", None)},
        )  # fmt: skip
        if hasattr(report, "real_clock_outcome"):
            last.update(outcome=report.real_clock_outcome, reason=report.real_clock_reason)
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            # A miss that is known (xfail) is no pass either.
            reason = getattr(report, "wasxfail", reason)
            last.update(outcome="skipped", reason=reason.removeprefix("Skipped: "))
        elif report.failed:
            last.update(outcome="failed")

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes, and the names of deferred tests."""
        outcomes = self._outcomes.values()
        deferred = [one for one in outcomes if one["outcome"] == DEFERRED]
        decided = [one for one in outcomes if one["outcome"] != DEFERRED]
        if self._file is not None:
            # One write, so that the lines do not mix with those of another suite.
            lines = "".join(f"{json.dumps(outcome)}\n" for outcome in decided)
            with Path(self._file).open("ab", buffering=0) as file:
                file.write(lines.encode())
        if self._alone is not None:
            names = [f"{outcome['test']}\n" for outcome in deferred]
            Path(self._alone).write_text("".join(names), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List what was wrong once, and what was not judged."""
        outcomes = self._outcomes.values()
        clock = [one for one in outcomes if one["real_clock"] and one["outcome"] == "passed"]
        unsteady = [one for one in clock if one["real_clock"]["wrong_once"] is not None]
        if unsteady:
            terminalreporter.section(WRONG_ONCE)
        for one in unsteady:
            terminalreporter.write_line(f"{one['test']}: {one['real_clock']['wrong_once']}")
        missed = [one for one in outcomes if one["outcome"] == NOT_JUDGED]
        if not missed:
            return
        count = len(missed) + len(clock)
        terminalreporter.section(NOT_JUDGED)
        for one in missed:
            terminalreporter.write_line(f"{one['test']}: {one['reason']}")
        terminalreporter.write_line(
            f"{len(missed)} of {count} tests on the real clock ({len(missed) / count:.0%})"
        )


def _said_late(error: BaseException) -> str | None:
    """Why an emulation was late, where an error tells of it."""
    if isinstance(error, TooLate):
        return str(error)
    said = LATE.search(str(error))
    return f"the emulation was late: {said[1]}" if said else None


def _call(outcome: str, item: pytest.Item, reports: Sequence[pytest.TestReport], why: str) -> None:
    """Make the failed reports of a test say that it was not judged, or is deferred."""
    file, line, _ = item.location
    for report in reports:
        if report.failed:
            report.outcome = "skipped"
            report.longrepr = (file, line or 0, f"{outcome}: {why}")
            report.real_clock_outcome = outcome  # type: ignore[attr-defined]
            report.real_clock_reason = why  # type: ignore[attr-defined]


def _first_line(raised: Sequence[BaseException]) -> str:
    said = f"{type(raised[0]).__name__}: {raised[0]}" if raised else ""
    return next((line for line in said.splitlines() if line.strip()), "")[:200]
