"""The third outcome of tests on the real clock: when a test is not judged, and when it fails."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import real_clock
from real_clock import OtherWork, TooLate, Usage

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest, real_clock
def pytest_configure(config):
    config.pluginmanager.register(real_clock.RealClock(config))
"""
IDLE, BUSY = OtherWork(others=0.0, stolen=0.0), OtherWork(others=0.9, stolen=0.0)


class Inside:
    """A test suite of its own, on a machine whose load is given."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester, self._monkeypatch = pytester, monkeypatch
        pytester.makeconftest(CONFTEST)
        self.outcomes: list[dict[str, Any]] = []
        self.output = ""

    def run(
        self, other_work: list[OtherWork], text: str, *, counted: bool = True
    ) -> dict[str, int]:
        """Count the outcomes where each attempt meets the next work; pytest's line has them too."""
        file = self._pytester.path / "outcomes"
        self._monkeypatch.setenv(real_clock.OUTCOMES, str(file))
        left = iter(other_work)
        self._monkeypatch.setattr(OtherWork, "since", lambda before: next(left))
        self._pytester.makepyfile(f"import pytest\nfrom real_clock import TooLate\n{text}")
        done = self._pytester.runpytest_inprocess("-p", "no:cacheprovider")
        self.output = done.stdout.str()
        self.outcomes = [json.loads(line) for line in file.read_text().splitlines()]
        assert next(left, None) is None, "it should have tried again"
        counts = Counter(one["outcome"] for one in self.outcomes)
        for outcome, count in counts.items() if counted else ():
            assert f"{count} {outcome}" in done.stdout.lines[-1], done.stdout.lines[-1]
        return dict(counts)


@pytest.fixture
def inside(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inside:
    """A suite of its own."""
    return Inside(pytester, monkeypatch)


WRONG = "@pytest.mark.real_clock\ndef test_it(): assert 27.3 < 26.0\n"
LATE = "@pytest.mark.real_clock\ndef test_it(): raise TooLate('99 % within 900 us')\n"


def test_on_time_and_wrong_twice_fails(inside: Inside) -> None:
    assert inside.run([IDLE, IDLE], WRONG) == {"failed": 1}
    assert [one["outcome"] for one in inside.outcomes] == ["failed"]


def test_wrong_once_on_time_is_listed(inside: Inside) -> None:
    text = """
tries = []
@pytest.mark.real_clock
def test_it():
    tries.append(1)
    assert len(tries) == 2
"""
    assert inside.run([IDLE, IDLE], text) == {"passed": 1}
    (outcome,) = inside.outcomes
    assert outcome["real_clock"]["wrong_once"].startswith("AssertionError: assert 1 == 2")
    assert "wrong once, and not again" in inside.output
    assert "::test_it: AssertionError: assert 1 == 2" in inside.output


def test_a_suite_has_three_second_tries(inside: Inside) -> None:
    text = """
tries = []
@pytest.mark.real_clock
@pytest.mark.parametrize("which", range(4))
def test_it(which):
    tries.append(which)
    assert tries.count(which) == 2
"""
    assert inside.run([IDLE] * 7, text) == {"passed": 3, "failed": 1}


def test_wrong_on_time_and_late_ever_after_fails(inside: Inside) -> None:
    assert inside.run([IDLE, *[BUSY] * 4], WRONG) == {"failed": 1}


def test_wrong_on_a_busy_machine_is_tried_four_times_and_not_judged(inside: Inside) -> None:
    assert inside.run([BUSY] * 4, WRONG) == {"not judged": 1}
    (outcome,) = inside.outcomes
    assert outcome["outcome"] == "not judged"
    assert outcome["reason"].startswith("other work took 90% of the processors: AssertionError")
    assert "27.3 < 26.0" in outcome["reason"]
    assert "1 of 1 tests on the real clock (100%)" in inside.output


def test_attempts_on_time_decide(inside: Inside) -> None:
    assert inside.run([BUSY, BUSY, IDLE, IDLE], WRONG) == {"failed": 1}


def test_right_is_right_on_a_busy_machine_too(inside: Inside) -> None:
    assert inside.run([BUSY], "@pytest.mark.real_clock\ndef test_it(): pass\n") == {"passed": 1}


def test_an_emulation_that_was_late_is_not_judged_on_an_idle_machine(inside: Inside) -> None:
    assert inside.run([IDLE] * 4, LATE) == {"not judged": 1}
    assert inside.outcomes[0]["reason"] == "99 % within 900 us"


def test_what_a_late_emulation_printed_is_enough(inside: Inside) -> None:
    said = "this run does not count: down: 99 % within 2028 us; the bound is 500 us"
    text = f"@pytest.mark.real_clock\ndef test_it(): assert 3 == 0, '{said}'\n"
    assert inside.run([IDLE] * 4, text) == {"not judged": 1}
    assert "the bound is 500 us" in inside.outcomes[0]["reason"]


def test_an_emulation_that_lost_packets_is_not_late(inside: Inside) -> None:
    said = "this run does not count: down: the kernel refused 3 packets"
    text = f"@pytest.mark.real_clock\ndef test_it(): assert 3 == 0, '{said}'\n"
    assert inside.run([IDLE, IDLE], text) == {"failed": 1}


def test_a_retry_has_fixtures_of_its_own(inside: Inside) -> None:
    """A module's fixture that was late would be late for ever."""
    text = """
made = []
@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made.append(tmp_path_factory.mktemp("run"))
    return len(made)
@pytest.mark.real_clock
def test_it(run, tmp_path):
    (tmp_path / "new").mkdir()
    assert run == 3
"""
    assert inside.run([BUSY] * 3, text) == {"passed": 1}
    assert len(inside.outcomes[0]["real_clock"]["too_late"]) == 2


def test_fixtures_may_be_late_too(inside: Inside) -> None:
    text = """
@pytest.fixture(scope="module")
def run(): raise TooLate("the first packet")
@pytest.mark.real_clock
def test_it(run): pass
@pytest.fixture
def end():
    yield
    assert False
@pytest.mark.real_clock
def test_end(end): pass
"""
    assert inside.run([IDLE] * 4 + [BUSY] * 4, text) == {"not judged": 2}


def test_tests_off_the_real_clock_are_not_retried(inside: Inside) -> None:
    text = "def test_it(): assert False\ndef test_skip(): pytest.skip('no curl')\n"
    assert inside.run([], text) == {"failed": 1, "skipped": 1}
    failed, skipped = inside.outcomes
    assert (failed["outcome"], failed["real_clock"]) == ("failed", None)
    assert (skipped["outcome"], skipped["reason"]) == ("skipped", "no curl")


def test_a_known_miss_is_listed_with_its_reason(inside: Inside) -> None:
    text = "import pytest\n@pytest.mark.xfail(strict=True, reason='not told yet')\n"
    inside.run([], f"{text}def test_it(): assert False\n", counted=False)
    (outcome,) = inside.outcomes
    assert (outcome["outcome"], outcome["reason"]) == ("skipped", "not told yet")


def test_beside_others_only_a_pass_counts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong in a worker is run again alone, and judged there."""
    outcomes, deferred = pytester.path / "outcomes", pytester.path / "deferred"
    monkeypatch.setenv(real_clock.OUTCOMES, str(outcomes))
    monkeypatch.setenv(real_clock.ALONE, str(deferred))
    monkeypatch.setenv("PYTHONPATH", str(Path(real_clock.__file__).parent))
    pytester.makeconftest(CONFTEST)
    words = "['right', \"wrong 'twice'\"]"
    pytester.makepyfile(
        "import pytest\n@pytest.mark.real_clock\n"
        f"@pytest.mark.parametrize('which', {words})\n"
        "def test_it(which): assert which == 'right'\n"
        "def test_off_the_clock(): assert False\n"
    )
    beside = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--numprocesses", "2")
    assert "1 failed, 1 passed, 1 deferred" in beside.stdout.lines[-1]
    found = [json.loads(line)["outcome"] for line in outcomes.read_text().splitlines()]
    assert sorted(found) == ["failed", "passed"]
    (name,) = deferred.read_text().splitlines()
    assert name.endswith("::test_it[wrong 'twice']")
    monkeypatch.setattr(OtherWork, "since", lambda before: IDLE)
    alone = pytester.runpytest_inprocess("-p", "no:cacheprovider", f"@{deferred}")
    assert "1 failed" in alone.stdout.lines[-1]


def test_a_documents_own_lateness_is_too_late() -> None:
    def document(because: str | None) -> dict[str, Any]:
        return {"emulation": {"valid": because is None, "invalid_because": because}}

    assert real_clock.on_time(document(None)) == document(None)
    late = "down: 99 % of the packets left within 812 us of their time; the bound is 500 us"
    with pytest.raises(TooLate, match="812 us"):
        real_clock.on_time(document(late))
    # What the host lost is for the test's own checks.
    lost = document("the kernel refused 3 packets")
    assert real_clock.on_time(lost) == lost


@pytest.mark.parametrize(
    ("work", "because"),
    [
        (OtherWork(0.049, 0.019), None),
        (OtherWork(0.051, 0.0), "other work took 5%"),
        (OtherWork(0.0, 0.021), "the hypervisor took 2%"),
    ],
)
def test_what_is_busy(work: OtherWork, because: str | None) -> None:
    assert work.busy is None if because is None else str(work.busy).startswith(because)


def test_our_own_work_is_not_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors for 10 s: 12 s of work, 9 of them ours, and 1 s stolen."""
    before = Usage(at=100.0, processors=2, busy=50.0, stolen=3.0, own=20.0)
    after = Usage(at=110.0, processors=2, busy=62.0, stolen=4.0, own=29.0)
    monkeypatch.setattr(Usage, "now", classmethod(lambda cls: after))
    assert OtherWork.since(before) == OtherWork(others=3 / 20, stolen=1 / 20)


def test_the_machine_is_measured() -> None:
    """A child's work counts as ours once it has been waited for, and as others' before."""
    before = Usage.now()
    loop = "import time\nwhile time.process_time() < 0.5: pass"
    child = subprocess.Popen([sys.executable, "-c", loop])
    time.sleep(0.1)
    child.wait()
    after = Usage.now()
    assert after.own - before.own > 0.45
    assert after.busy > before.busy
    assert after.processors >= 1
