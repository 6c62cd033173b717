"""SIGINT and SIGTERM, at any moment of any command: an end at once, a code, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airpath import _core
from airpath import scenario as scenarios
from airpath.cli import _COMMANDS, _GROUPS
from conftest import DOWNLINK, command_environment, start, until

PATIENCE_S = 20.0
"""A machine that is busy; what does not obey takes minutes."""

LONG = """
[run]
duration_s = 100000
sample_interval_ms = 50000
[[path.down]]
stage = "link"
rate_mbps = 1000
[[path.down]]
stage = "delay"
delay_ms = 5
[[path.up]]
stage = "delay"
delay_ms = 5
[[flow]]
kind = "bulk"
"""

WORDS = {
    "run": ("run", "long.toml", "--explain", "off"),
    "repeat": ("run", "long.toml", "--repeat", "4", "--explain", "off"),
    "explain": ("run", DOWNLINK, "--explain", "full", "--set", "run.duration_s=20000"),
    "whatif": ("whatif", "long.toml", "--try", "path.down.0.rate_mbps=2"),
    "diagnose": ("diagnose", "pipe"),
    "reproduce": ("reproduce",),
    "sweep": ("sweep", "sweep.toml"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with what the commands read."""
    (tmp_path / "long.toml").write_text(LONG)
    (tmp_path / "sweep.toml").write_text(
        'scenario = "long.toml"\nseeds = 2\n'
        '[[vary]]\nkey = "path.down.0.rate_mbps"\nvalues = [1, 2]\n'
    )
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def _start(place: Path, *words: str) -> subprocess.Popen[Any]:
    return start(
        [sys.executable, "-c", "from airpath.__main__ import main; main()", *words],
        cwd=place,
        env=command_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _catches(running: subprocess.Popen[Any], number: signal.Signals) -> bool:
    """Whether a process has a handler of a signal: ``SigCgt`` of proc_pid_status(5)."""
    status = Path(f"/proc/{running.pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def _has_begun(running: subprocess.Popen[Any]) -> bool:
    """Whether airpath has a say in what signals do."""
    return until(lambda: running.poll() is not None or _catches(running, signal.SIGTERM))


def _ends(running: subprocess.Popen[Any], number: signal.Signals) -> str:
    """Send it a signal; what it said. It has the signal's code, and shows no traceback."""
    running.send_signal(number)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in said, said
    assert running.returncode == 128 + number, said
    return str(said)


@pytest.mark.parametrize("command", [*_COMMANDS, *_GROUPS])
def test_a_command_may_be_interrupted_while_it_is_imported(place: Path, command: str) -> None:
    """SIGTERM has a handler from airpath's first line on; before that SIGINT is Python's."""
    number = signal.SIGTERM if command == "run" else signal.SIGINT
    running = _start(place, command, "--help")
    assert _has_begun(running)
    assert _ends(running, number) in ("", "error: interrupted; nothing was kept\n")


@pytest.mark.parametrize("name", WORDS)
def test_a_command_may_be_interrupted_while_it_works(place: Path, name: str) -> None:
    """At two moments after it has begun."""
    moments = ((0.15, signal.SIGINT), (0.7, signal.SIGTERM))
    started = [_start(place, *WORDS[name]) for _ in moments]
    assert all(_has_begun(running) for running in started)
    began = time.monotonic()
    for running, (delay_s, number) in zip(started, moments, strict=True):
        time.sleep(max(0.0, began + delay_s - time.monotonic()))
        _ends(running, number)


SCENARIO = scenarios.load("wire", {"run.duration_s": 100_000, "run.sample_interval_ms": 50_000})
SOURCE, NAME = SCENARIO.given[:2]
CALLS: dict[str, Callable[[Path], object]] = {
    "simulate": lambda _: _core.simulate(SCENARIO, 1),
    "simulate, captured": lambda place: _core.simulate(SCENARIO, 1, capture=place / "c.pcapng"),
    "simulate_batch": lambda _: _core.simulate_batch([(0, SCENARIO, 1)], 1, None),
    "explain": lambda _: _core.explain(SCENARIO, 1, 1, "quick", 1, []),
    "compare": lambda _: _core.compare(SCENARIO, [SCENARIO, SCENARIO], [1], 1),
    "check_variants": lambda _: _core.check_variants(SOURCE, NAME, None, [[]] * 1_000_000, 1),
    "read_capture": lambda place: _core.read_capture(place / "pipe"),
    "read_segments": lambda place: _core.read_segments(place / "pipe", 0, True),
    "read_flows": lambda place: _core.read_flows(place / "pipe", [], 1),
    "view_flows": lambda place: _core.view_flows(place / "pipe", [], 1, 1),
}


class Stopped(Exception):  # noqa: N818 - as KeyboardInterrupt
    """Raised by a handler of this test's."""


@pytest.mark.parametrize("name", CALLS)
def test_a_call_into_rust_ends_when_a_handler_raises(place: Path, name: str) -> None:
    """Whatever the call is about, also where it waits for a file that says nothing."""

    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    # A writer who says nothing.
    silent = os.open(place / "pipe", os.O_RDWR)
    began = time.monotonic()
    timer.start()
    try:
        with pytest.raises(Stopped):
            CALLS[name](place)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
        os.close(silent)
    assert time.monotonic() - began < PATIENCE_S


def test_a_handler_that_raises_nothing_stops_nothing() -> None:
    noted: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: noted.append(number))
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        variants = [[f"run.seed={seed}"] for seed in range(300)]
        found = _core.check_variants(SOURCE, NAME, None, variants, 1)
        assert all(said is None for _, said in found)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert noted == [signal.SIGUSR1]
