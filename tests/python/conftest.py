"""Fixtures: the command in this process, and in a process of its own.

All tests need the compiled module; without it they fail, because a suite that skips them proves
nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from real_clock import RealClock

Command = Callable[..., "subprocess.CompletedProcess[str]"]

PATIENCE_S = 300.0
"""A program that has not ended by then hangs, however busy the machine is."""

UNEXPLAINED = ("--explain", "off")
"""For what is not about findings: explaining takes longer than most of these runs."""

DOWNLINK = str(Path(__file__).parent / "scenarios/downlink.toml")
"""A download and a ping over 20 s, simulated in some milliseconds; losses depend on the seed."""


def pytest_configure(config: pytest.Config) -> None:
    """Let tests on the real clock be judged only where the machine is on time."""
    config.pluginmanager.register(RealClock(config))
    config.addinivalue_line("markers", "unhurried: computes, and may wait for a processor")
    # A shell starts what is in the background with SIGINT ignored, and its children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def core() -> Any:
    """The compiled module."""
    try:
        from airpath import _core
    except ImportError as error:
        pytest.fail(f"airpath._core does not import: {error}; build it with `maturin develop`")
    return _core


@pytest.fixture
def airpath_command(core: Any, tmp_path: Path) -> Command:
    """Run ``airpath ARGUMENTS`` in an empty directory; no terminal, no colours."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(*arguments, cwd=tmp_path)

    return call


def run_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``airpath ARGUMENTS`` in a directory."""
    return subprocess.run(
        [sys.executable, "-m", "airpath", *arguments],
        cwd=cwd,
        env=command_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def start_command(*arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[Any]:
    """Start ``airpath ARGUMENTS`` in a directory; ``options`` are those of ``Popen``."""
    words = [sys.executable, "-m", "airpath", *arguments]
    return start(words, cwd=cwd, env=command_environment(), **options)


_started: list[subprocess.Popen[Any]] = []


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a program that does not outlive the test, however that ends."""
    process = subprocess.Popen(words, **options)
    _started.append(process)
    return process


@pytest.fixture(autouse=True)
def _nothing_outlives_a_test() -> Iterator[None]:
    yield
    for process in _started:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    _started.clear()


def command_environment() -> dict[str, str]:
    """Environment of the command: what a snapshot may depend on is fixed."""
    return {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}


def until(true: Callable[[], object], seconds: float = 60.0) -> bool:
    """Wait for something; whether it came."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def wire(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A scenario: what the test's module calls ``WIRE``."""
    path = tmp_path / "wire.toml"
    path.write_text(request.module.WIRE)
    return path


@pytest.fixture
def cli(
    core: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Run the command line in this process, in a directory of its own: ``code, stdout, stderr``."""
    from airpath.cli import app
    from airpath.cli.console import guarded

    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = guarded(lambda: app(list(arguments), prog_name="airpath", standalone_mode=False))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
