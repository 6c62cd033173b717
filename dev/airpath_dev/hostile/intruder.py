"""Run inside by ``--user NAME``: tries to get out, and prints as JSON what it could do.

    python intruder.py MARK

On a terminal it first tries to type MARK for whoever is at airpath's terminal.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_DESCRIPTORS = 4096


def main() -> None:
    """Try everything."""
    mark = sys.argv[1]
    descriptors = _descriptors()
    status = dict(
        line.split(":\t", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":\t" in line
    )
    report: dict[str, Any] = {
        "uid": os.getuid(),
        "session": os.getsid(0) == os.getpid(),
        "environment": sorted(os.environ),
        "descriptors": descriptors,
        "umask": os.umask(0),
        "no_new_privileges": status["NoNewPrivs"],
        "became": _became(),
        "signalled": _signalled(),
        "terminals": _terminals(),
        "typed": _typed(mark),
    }
    print("REPORT" + json.dumps(report) + "END", flush=True)


def _descriptors() -> list[int]:
    found = []
    for number in range(3, MOST_DESCRIPTORS):
        with suppress(OSError):
            os.fstat(number)
            found.append(number)
    return found


def _became() -> str:
    """As whom a set-user-ID program runs that this one starts: a copy of `id` that is root's."""
    done = subprocess.run(
        [os.environ["LC_SETUID"], "-u"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _signalled() -> list[int]:
    """Processes other than its own that it can send something."""
    found = []
    for number in range(2, 1 << 16):
        if number != os.getpid():
            with suppress(OSError):
                os.kill(number, 0)
                found.append(number)
    with suppress(OSError):
        os.kill(1, signal.SIGKILL)
        found.append(1)
    return found


def _terminals() -> list[str]:
    """Terminals that it has or can open."""
    found = set()
    for number in (0, 1, 2):
        with suppress(OSError):
            found.add(os.ttyname(number))
    for place in Path("/dev/pts").iterdir():
        with suppress(OSError):
            os.close(os.open(place, os.O_RDWR | os.O_NOCTTY))
            found.add(str(place))
    return sorted(found)


def _typed(mark: str) -> list[int]:
    """Standard streams through which it typed something, by its own account."""
    found = []
    for number in (0, 1, 2):
        with suppress(OSError):
            for byte in f"{mark}\n".encode():
                fcntl.ioctl(number, termios.TIOCSTI, bytes([byte]))
            found.append(number)
    # In a session of its own, with airpath's terminal as its own, if it may.
    ctypes.CDLL(None).setsid()
    for number in (0, 1, 2):
        with suppress(OSError):
            fcntl.ioctl(number, termios.TIOCSCTTY, 1)
    return found


if __name__ == "__main__":
    main()
