"""Write directories and files aside, then rename: what exists under its name is complete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from airpath.errors import AirpathError, InputError, reason


class PendingDirectory:
    """A directory under construction beside its final place.

    Use as a context manager: leaving it without ``commit`` removes every trace.
    """

    def __init__(self, out: Path, *, numbered: bool) -> None:
        """Prepare ``out``; if ``numbered``, fall back to ``out-2``, ``out-3``, … when it exists."""
        self.out = out
        self.path = out.with_name(f"{out.name}.partial-{os.getpid()}")
        self._numbered = numbered
        self._made_parents: list[Path] = []
        self._committed = False

    def __enter__(self) -> PendingDirectory:
        if not self._numbered:
            refuse_occupied(self.out)
        try:
            self._make_parents()
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir()
        except OSError as error:
            self._remove()
            raise cannot_write(self.out, error) from None
        return self

    def __exit__(self, *_: object) -> None:
        if not self._committed:
            self._remove()

    def commit(self) -> Path:
        """Rename into place and return the final path."""
        target, attempt = self.out, 1
        while True:
            try:
                if self._numbered and target.exists():
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                # POSIX: replaces an empty directory, refuses any other.
                self.path.rename(target)
            except OSError as error:
                taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
                if not (self._numbered and taken):
                    raise cannot_write(target, error) from None
                attempt += 1
                target = self.out.with_name(f"{self.out.name}-{attempt}")
            else:
                self._committed = True
                return target

    def _make_parents(self) -> None:
        missing = [parent for parent in self.out.parents if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
            self._made_parents.append(parent)

    def _remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        for parent in reversed(self._made_parents):
            with suppress(OSError):
                parent.rmdir()


def remove_leftovers(parent: Path) -> list[Path]:
    """Remove directories that killed runs left under construction in there; those removed."""
    left = [
        path
        for path in parent.glob("*.partial-*")
        if (owner := path.name.rpartition("-")[2]).isdecimal()
        and path.is_dir()
        and not Path(f"/proc/{owner}").exists()
    ]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left


def refuse_occupied(out: Path) -> None:
    """Raise ``InputError`` if ``out`` exists and is anything but an empty directory."""
    try:
        if not out.exists():
            return
        if not out.is_dir():
            raise InputError(f"{out} exists and is not a directory")
        if any(out.iterdir()):
            raise InputError(f"{out} exists and is not empty; name another --out or remove it")
    except OSError as error:
        raise cannot_write(out, error) from None


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Yield a path aside to write to; on success it replaces ``path``, else it is removed."""
    aside = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        yield aside
        aside.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        with suppress(OSError):
            aside.unlink()


def check_file_target(path: Path) -> None:
    """Fail before the work, not after it, if ``path`` cannot become a file."""
    if path.is_dir():
        raise InputError(f"{path} is a directory")
    parent = path.parent
    if not parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {parent}")
    if not os.access(parent, os.W_OK):
        raise AirpathError(f"cannot write {path}: {os.strerror(errno.EACCES)}")


def cannot_write(path: Path, error: OSError) -> AirpathError:
    """One line about a failed write."""
    return AirpathError(f"cannot write {path}: {reason(error)}")
