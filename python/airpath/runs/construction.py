"""Directories under construction: whose they are, and which of them a dead process has left.

Each has a name that nobody else chose, and holds a marker file that its maker keeps locked. Only
what has the marker, and a lock that can be had, is a leftover. The kernel releases the lock when
its holder dies, whatever PID namespace or container it lived in (docs/adr/0026).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARKER = ".airpath-partial"
"""In a directory under construction; a finished one has none."""

_KIND = "airpath: a directory under construction"
_MARKER_BYTES = 4096
_NAME = re.compile(r".+\.partial-[0-9a-f]{16}", re.DOTALL)


@dataclass(frozen=True)
class Partial:
    """A directory that this process made, and its locked marker."""

    path: Path
    lock: int
    """Descriptor of the marker."""

    @classmethod
    def make(cls, out: Path) -> Partial:
        """Make one beside ``out``, for ``out``. Raises ``OSError``."""
        path = _new_directory(out)
        try:
            return cls(path, _mark(path, out))
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise

    def unmark(self, final: Path) -> None:
        """Make it, in its final place, a directory like any other."""
        (final / MARKER).unlink()

    def release(self) -> None:
        """Give the lock back."""
        # A child of fork() has the descriptor as well, and would keep the lock.
        with suppress(OSError):
            fcntl.flock(self.lock, fcntl.LOCK_UN)
        os.close(self.lock)

    def rival(self, out: Path) -> Path | None:
        """Return a directory in which somebody else, alive, makes ``out`` too."""
        for path in _candidates(out.parent):
            if path.name == self.path.name or _target(path) != out.name:
                continue
            lock = _had_lock(path)
            if lock is None:
                return path
            os.close(lock)
        return None


def remove_leftovers(parent: Path) -> list[Path]:
    """Remove directories that killed runs left under construction in there; those removed."""
    removed = []
    for path in _candidates(parent):
        if _target(path) is None or (lock := _had_lock(path)) is None:
            continue
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)
        removed.append(path)
    return sorted(removed)


def _new_directory(out: Path) -> Path:
    while True:
        # A name has at most 255 bytes, a character at most four.
        path = out.with_name(f"{out.name[:48]}.partial-{os.urandom(8).hex()}")
        with suppress(FileExistsError):
            path.mkdir()
            return path


def _mark(path: Path, out: Path) -> int:
    """Write the marker; it appears under its name when it is locked, not before."""
    aside = path / f"{MARKER}-unlocked"
    lock = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(lock, json.dumps({"kind": _KIND, "for": out.name}).encode())
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # A file system without locks: nobody else can have it either, so nothing is removed there.
        pass
    aside.rename(path / MARKER)
    return lock


def _candidates(parent: Path) -> list[Path]:
    """Directories, not links to any, that are named as those under construction are."""
    try:
        with os.scandir(parent) as entries:
            return [
                parent / entry.name
                for entry in entries
                if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _target(path: Path) -> str | None:
    """Name of what the directory is to be; None if no marker of ours is there."""
    with suppress(OSError, ValueError):
        marker = _open_marker(path)
        try:
            said = json.loads(os.read(marker, _MARKER_BYTES))
        finally:
            os.close(marker)
        if isinstance(said, dict) and said.get("kind") == _KIND:
            return str(said.get("for"))
    return None


def _had_lock(path: Path) -> int | None:
    """Take the marker's lock; None if somebody has it."""
    try:
        marker = _open_marker(path)
    except OSError:
        return None
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its maker may have finished in the meantime.
        if os.path.samestat(os.fstat(marker), (path / MARKER).lstat()):
            return marker
    except OSError:
        pass
    os.close(marker)
    return None


def _open_marker(path: Path) -> int:
    marker = os.open(path / MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(marker).st_mode):
        os.close(marker)
        raise OSError
    return marker
