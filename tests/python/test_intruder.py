"""A hostile program inside ``--user nobody`` gets neither out nor root. Needs root."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath.emulation.identity import PASSED
from airpath_dev import ROOT
from conftest import PATIENCE_S, UNEXPLAINED, command_environment, start, until
from emulated import DELAYS, skip_without

INTRUDER = ROOT / "dev/airpath_dev/hostile/intruder.py"
NOBODY = pwd.getpwnam("nobody")
MARK = "touch-what-root-has"
SECRET = "AIRPATH_TEST_SECRET"
OF_A_SHELL = ("PWD", "OLDPWD", "SHLVL", "_")


class Screen:
    """A terminal: what is typed at it, and everything that appears on it."""

    def __init__(self) -> None:
        self.keyboard, self.terminal = pty.openpty()
        self.seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def shows(self, text: str, seconds: float = 20.0) -> bool:
        """Wait for a text to appear."""
        end = time.monotonic() + seconds
        while text.encode() not in self.seen and time.monotonic() < end:
            self.drain(0.05)
        return text.encode() in self.seen

    def drain(self, seconds: float = 0.0) -> None:
        while select.select([self.keyboard], [], [], seconds)[0]:
            self.seen += os.read(self.keyboard, 1 << 16)
            seconds = 0.0

    def until_end_of(self, running: subprocess.Popen[bytes]) -> int:
        """Show what a program writes until it has ended; its exit code."""
        end = time.monotonic() + 60.0
        while running.poll() is None and time.monotonic() < end:
            self.drain(0.05)
        self.drain()
        return running.wait(0)

    def has_echo(self) -> bool:
        """Whether it is as it was, and not raw."""
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def typed_in(self) -> bytes:
        """What a program that reads from this terminal finds there."""
        modes = termios.tcgetattr(self.terminal)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self.terminal, termios.TCSANOW, modes)
        found = b""
        while select.select([self.terminal], [], [], 0.05)[0]:
            found += os.read(self.terminal, 1 << 10)
        return found


@pytest.fixture
def screen() -> Iterator[Screen]:
    one = Screen()
    yield one
    os.close(one.keyboard)
    os.close(one.terminal)


def _emulate(
    screen: Screen, scenario: Path, *words: str, **streams: Any
) -> subprocess.Popen[bytes]:
    """Start an emulation whose controlling terminal the screen is, as under a shell."""
    command = [sys.executable, "-m", "airpath", "emulate", *UNEXPLAINED, str(scenario), *words]
    attach = (
        "import fcntl, os, sys, termios; os.setsid(); "
        f"fcntl.ioctl(os.open({os.ttyname(screen.terminal)!r}, os.O_RDWR), termios.TIOCSCTTY, 0); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    environment = {**command_environment(), "TERM": "xterm", SECRET: "hidden"}
    environment.pop("SUDO_UID", None)
    terminal = screen.terminal
    return start(
        [sys.executable, "-c", attach, *command],
        cwd=scenario.parent,
        env={**environment, "LC_SETUID": str(scenario.parent / "id")},
        **{"stdin": terminal, "stdout": terminal, "stderr": terminal, **streams},
    )


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A scenario where nobody can read it, the intruder, and a set-user-ID program of root's.

    Not below pytest's directory, which is for its user alone.
    """
    with tempfile.TemporaryDirectory(prefix="airpath-nobody-") as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "wire.toml").write_text(DELAYS)
        shutil.copy(INTRUDER, place / "intruder.py")
        shutil.copy(shutil.which("id") or "", place / "id")
        (place / "id").chmod(0o4755)
        yield place / "wire.toml"


needs_intruder = skip_without("ip")


def _report(text: str) -> dict[str, Any]:
    found = re.search(r"REPORT(\{.*?\})END", text.replace("\r", "").replace("\n", ""))
    assert found is not None, text
    report: dict[str, Any] = json.loads(found[1])
    return report


def _is_kept_in(report: dict[str, Any], screen: Screen) -> None:
    assert report["uid"] == NOBODY.pw_uid
    assert report["session"]
    assert set(report["environment"]) <= {*PASSED, "LC_SETUID", "LC_CTYPE", *OF_A_SHELL}
    assert report["descriptors"] == []
    assert report["umask"] & 0o022 == 0o022
    assert report["no_new_privileges"] == "1"
    # Without them it would be root's: the file system takes set-user-ID.
    assert report["became"] == str(NOBODY.pw_uid)
    assert report["signalled"] == []
    assert os.ttyname(screen.terminal) not in report["terminals"]


PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


@needs_intruder
@pytest.mark.parametrize("how", ["command", "server", "program", "input of a file", "live"])
def test_a_program_of_another_user_stays_in(screen: Screen, nobodys: Path, how: str) -> None:
    line = f"{PYTHON} {nobodys.parent / 'intruder.py'} {MARK}"
    words = ["--user", "nobody", "--out", str(nobodys.parent / "run")]
    streams: dict[str, Any] = {}
    match how:
        case "server":
            words += ["--server", f"exec {line} >&2", "--", "true"]
        case "program":
            nobodys.write_text(DELAYS + f'\n[[program]]\nname = "a"\ncommand = "exec {line}"\n')
        case "live":
            words += ["--live", "--", *line.split()]
        case _:
            words += ["--no-live", "--", *line.split()]
    if how == "input of a file":
        streams["stdin"] = subprocess.DEVNULL
    running = _emulate(screen, nobodys, *words, **streams)
    code = screen.until_end_of(running)
    text = screen.seen.decode(errors="replace")
    if how == "program":
        text = (nobodys.parent / "run/programs/a.stdout").read_text()
    assert code in (0, 3), text
    _is_kept_in(_report(text), screen)
    # Nobody types for the shell that has this terminal afterwards.
    assert screen.has_echo()
    assert MARK.encode() not in screen.typed_in()
    assert b"hidden" not in screen.seen


@needs_intruder
def test_a_shell_inside_has_jobs_sizes_and_keys(screen: Screen, nobodys: Path) -> None:
    screen.resize(33, 99)
    running = _emulate(screen, nobodys, "--user", "nobody", "--", "sh", "-i")
    assert screen.shows("$ "), screen.seen
    assert not screen.has_echo()
    screen.type("stty size; echo a-$((1+1))\n")
    assert screen.shows("33 99"), screen.seen
    assert screen.shows("a-2"), screen.seen
    screen.resize(44, 111)

    def is_resized() -> bool:
        # The new size arrives by a signal, when the machine gets to it.
        screen.type("stty size\n")
        return screen.shows("44 111", 1.0)

    assert until(is_resized, 20.0), screen.seen
    # Ctrl-C ends what is in the foreground, and nothing else.
    screen.type("sleep 600; echo b-$((1+2))\n")
    until(lambda: False, 0.5)
    screen.type("\x03")
    screen.type("echo c-$((2+2))\n")
    assert screen.shows("c-4"), screen.seen
    # Jobs: what Ctrl-Z stops comes back to the foreground.
    screen.type("sleep 600\n")
    until(lambda: False, 0.5)
    screen.type("\x1a")
    assert screen.shows("topped"), screen.seen
    screen.type("fg\n")
    until(lambda: False, 0.5)
    screen.type("\x03")
    screen.type("echo d-$((2+3))\n")
    assert screen.shows("d-5"), screen.seen
    screen.type("exit 7\n")
    assert screen.until_end_of(running) == 7, screen.seen
    assert screen.has_echo()


@needs_intruder
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_the_terminal_is_as_before_however_airpath_ends(
    screen: Screen, nobodys: Path, number: signal.Signals
) -> None:
    running = _emulate(screen, nobodys, "--", "sh", "-c", "echo here; sleep 600")
    assert screen.shows("here"), screen.seen
    assert not screen.has_echo()
    running.send_signal(number)
    running.wait(PATIENCE_S)
    assert until(screen.has_echo)


@needs_intruder
def test_a_command_that_ignores_sigterm_is_ended_all_the_same(
    screen: Screen, nobodys: Path
) -> None:
    running = _emulate(screen, nobodys, "--", "sh", "-c", "trap '' TERM; echo here; sleep 600; :")
    assert screen.shows("here"), screen.seen
    running.send_signal(signal.SIGTERM)
    assert screen.until_end_of(running) == 128 + signal.SIGTERM, screen.seen
    assert b"run directory" in screen.seen


@needs_intruder
def test_a_variable_that_is_named_is_passed_on(nobodys: Path) -> None:
    words = ["emulate", str(nobodys), "--user", "nobody"]
    script = ["--", "sh", "-c", f'echo "<$TERM ${SECRET}>"']

    def ask(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "airpath", *words, *more, *script],
            cwd=nobodys.parent,
            env={**command_environment(), SECRET: "hidden"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    assert "<dumb >" in ask().stdout
    assert "<dumb hidden>" in ask("--env", SECRET).stdout
    missing = ask("--env", "NO_SUCH_VARIABLE")
    assert missing.returncode == 2
    assert "--env NO_SUCH_VARIABLE: no such environment variable" in missing.stderr
