"""Write directories and files aside, then rename: what exists under its name is complete."""

from __future__ import annotations

import datetime
import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from airpath.errors import AirpathError, InputError, reason
from airpath.runs.construction import MARKER, Partial, remove_leftovers
from airpath.runs.durable import sync, sync_tree

_ATTEMPTS = 5
_RESERVE = ".airpath-reserve"
_RESERVED_BYTES = 1 << 20


class PendingDirectory:
    """A directory under construction beside its final place.

    Use as a context manager: leaving it without ``commit`` removes every trace. What killed runs
    left beside it is removed first.
    """

    def __init__(self, out: Path, *, numbered: bool) -> None:
        """Prepare ``out``; if ``numbered``, fall back to ``out-2``, ``out-3``, … when it exists."""
        if out.name in ("", ".."):
            raise InputError(f"'{out}' cannot become a run directory; choose another")
        self.out = out
        self._numbered = numbered
        self._made_parents: list[Path] = []
        self._partial: Partial | None = None
        self.committed = False
        """Whether it has a name."""

    @property
    def path(self) -> Path:
        """Where to write."""
        return self._under_construction().path

    def __enter__(self) -> PendingDirectory:
        if not self._numbered:
            refuse_occupied(self.out)
        remove_leftovers(self.out.parent)
        try:
            self._partial = self._make()
        except OSError as error:
            self._remove()
            raise cannot_write(self.out, error) from None
        if not self._numbered:
            self._refuse_rivals()
        _reserve(self.path / _RESERVE)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.committed:
            self._remove()

    def commit(self) -> Path:
        """Bring everything to the disk, rename it into place and return the final path.

        If somebody has made ``out`` in the meantime, the result is kept beside it, and
        ``AirpathError`` says where.
        """
        final = self._name(self.out, numbered=self._numbered)
        if final != self.out and not self._numbered:
            raise AirpathError(f"another process created {self.out}; the run is in {final}")
        return final

    def keep_failed(self) -> Path | None:
        """Keep what is there as ``NAME.failed`` and return the path; None if there is nothing."""
        path = self._under_construction().path
        self.free_reserve()
        if [entry.name for entry in path.iterdir()] == [MARKER]:
            return None
        return self._name(self.out.with_name(f"{self.out.name}.failed"), numbered=True)

    def free_reserve(self) -> None:
        """Give back the space that is kept for the documents: they come now."""
        (self.path / _RESERVE).unlink(missing_ok=True)

    def _name(self, out: Path, *, numbered: bool) -> Path:
        partial = self._under_construction()
        try:
            self.free_reserve()
            sync_tree(partial.path)
        except OSError as error:
            raise cannot_write(self.out, error) from None
        final = self._rename(partial.path, out, numbered=numbered)
        self.committed = True
        try:
            # Not before: another run with this ``out`` sees either this one at work, or its result.
            partial.unmark(final)
            sync(final)
            for parent in (final.parent, *(made.parent for made in self._made_parents)):
                sync(parent)
        except OSError as error:
            raise cannot_write(final, error) from None
        finally:
            partial.release()
        return final

    def _under_construction(self) -> Partial:
        if self._partial is None:
            raise RuntimeError("inside the context only")
        return self._partial

    def _rename(self, path: Path, out: Path, *, numbered: bool) -> Path:
        target, attempt = out, 1
        while True:
            try:
                if (numbered or attempt > 1) and target.exists():
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                # POSIX: replaces an empty directory, refuses any other.
                path.rename(target)
            except OSError as error:
                taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
                if not taken:
                    raise cannot_write(target, error) from None
                attempt += 1
                target = out.with_name(f"{out.name}-{attempt}")
            else:
                return target

    def _make(self) -> Partial:
        for _ in range(_ATTEMPTS):
            # Another run that fails takes the parents away that it had made.
            with suppress(FileNotFoundError):
                self._make_parents()
                return Partial.make(self.out)
        self._make_parents()
        return Partial.make(self.out)

    def _refuse_rivals(self) -> None:
        """Refuse a second run with this ``out``; of two that begin together one goes on."""
        for _ in range(_ATTEMPTS):
            rival = self._under_construction().rival(self.out)
            if rival is None:
                break
            import secrets

            self._remove()
            time.sleep(0.01 + secrets.randbelow(90) / 1000)
            try:
                self._partial = self._make()
            except OSError as error:
                raise cannot_write(self.out, error) from None
        else:
            self._remove()
            raise InputError(f"another run is writing {self.out}, in {rival}; choose another --out")
        try:
            # It may have been made since.
            refuse_occupied(self.out)
        except AirpathError:
            self._remove()
            raise

    def _make_parents(self) -> None:
        missing = [parent for parent in self.out.parents if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
            self._made_parents.append(parent)

    def _remove(self) -> None:
        if self._partial is not None:
            shutil.rmtree(self._partial.path, ignore_errors=True)
            self._partial.release()
            self._partial = None
        for parent in reversed(self._made_parents):
            with suppress(OSError):
                parent.rmdir()
        self._made_parents.clear()


def _reserve(file: Path) -> None:
    """Keep space for the documents, so that a full disk loses tables and not what they are."""
    # A disk that has not even this is full already.
    with suppress(OSError), file.open("xb") as reserved:
        os.posix_fallocate(reserved.fileno(), 0, _RESERVED_BYTES)


def default_name(stem: str, identifier: str) -> str:
    """Name for a run directory that a person tells from others: scenario, local date, short id."""
    now = datetime.datetime.now().astimezone()
    return f"{stem}-{now:%Y-%m-%d-%H%M}-{identifier[:6]}"


def newest_run(parent: Path) -> Path:
    """Return the run directory in there that was finished last."""
    try:
        found = [
            (record.stat().st_mtime_ns, record.parent.name)
            for record in parent.glob("*/provenance.json")
            if (record.parent / "summary.json").is_file()
        ]
    except OSError as error:
        raise AirpathError(f"cannot read {parent}: {reason(error)}") from None
    if not found:
        raise InputError(f"there is no run in {parent}; `airpath run SCENARIO` creates one")
    return parent / max(found)[1]


def refuse_occupied(out: Path) -> None:
    """Raise ``InputError`` if ``out`` exists and is anything but an empty directory."""
    try:
        if not (out.exists() or out.is_symlink()):
            return
        if not out.is_dir():
            raise InputError(f"{out} exists and is not a directory")
        if any(out.iterdir()):
            raise InputError(f"{out} exists and is not empty; choose another --out or remove it")
    except OSError as error:
        raise cannot_write(out, error) from None


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Yield a path aside to write to; on success it replaces ``path``, else it is removed.

    What is no file, such as ``/dev/stdout``, is written to as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    aside: Path | None = None
    try:
        aside = _new_file(path)
        yield aside
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        if aside is not None:
            with suppress(OSError):
                aside.unlink()


def _new_file(path: Path) -> Path:
    """Make an empty file beside ``path`` that nobody else has."""
    while True:
        # A name has at most 255 bytes, a character at most four.
        aside = path.with_name(f"{path.name[:48]}.partial-{os.urandom(8).hex()}")
        with suppress(FileExistsError):
            aside.open("xb").close()
            return aside


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
