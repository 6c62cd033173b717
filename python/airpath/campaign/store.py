"""Where the results of a campaign are: a folder, or an object store by its URL (fsspec).

What exists under its name is complete: a file is written aside, brought to the disk and renamed; an
object appears when it is whole. A store has files of a campaign (``is_own``) and knows no others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from airpath.campaign.files import DOCUMENT, FOLDERS, is_aside, is_own
from airpath.campaign.sampling import missing
from airpath.errors import AirpathError, InputError, reason
from airpath.runs.directories import cannot_write, replaced_file
from airpath.runs.durable import sync

MOST_DOCUMENT_BYTES = 64 << 20
"""Of a document of JSON."""
MOST_BYTES = 4 << 30
"""Of any file."""
_LOCK = ".airpath-lock"


class Store(Protocol):
    """Files by names with slashes."""

    @property
    def place(self) -> str:
        """What messages call it."""

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file. Raises ``AirpathError``."""

    def read(self, name: str) -> bytes | None:
        """Return a file; None if there is none."""

    def names(self, prefix: str) -> list[str]:
        """Names under a prefix that ends in a slash, sorted."""

    def path(self, name: str) -> Path | None:
        """Where a file is on this machine; None if it is elsewhere. Raises ``InputError``."""

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""

    def others(self) -> list[str]:
        """Names beside ``campaign.json`` that a campaign does not have before that."""

    def free_bytes(self) -> int | None:
        """Space that is left; None where it has no bound that can be known."""

    def lock(self) -> None:
        """Keep other campaigns out until ``unlock``. Raises ``AirpathError``."""

    def unlock(self) -> None:
        """Let others in."""


def open_store(place: str | os.PathLike[str]) -> Store:
    """Open a folder, which need not exist, or a URL such as ``s3://bucket/campaign``."""
    text = os.fspath(place)
    if "://" in text and not text.startswith("file://"):
        return _Objects(text)
    return _Folder(Path(text.removeprefix("file://")))


class _Folder:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = None
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} exists and is not a directory")

    @property
    def place(self) -> str:
        return str(self.folder)

    def write(self, name: str, data: bytes) -> None:
        path = self._own(name)
        try:
            if os.path.lexists(path):
                self.path(name)
            if not path.parent.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                sync(path.parent.parent)
        except OSError as error:
            raise cannot_write(path, error) from None
        with replaced_file(path) as aside:
            aside.write_bytes(data)

    def read(self, name: str) -> bytes | None:
        path = self._own(name)
        most = MOST_DOCUMENT_BYTES if name.endswith(".json") else MOST_BYTES
        try:
            # What is no regular file may have no end, or wait for somebody.
            with open(path, "rb", opener=_plainly) as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise InputError(f"{path} is not a file")
                if about.st_size > most:
                    raise InputError(f"{path} is larger than {most >> 20} MiB")
                return file.read(about.st_size)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise InputError(f"{path} is a symbolic link, but must be a file") from None
            raise AirpathError(f"cannot read {path}: {reason(error)}") from None
        except MemoryError:
            raise AirpathError(f"cannot read {path}: out of memory") from None

    def path(self, name: str) -> Path | None:
        path = self._own(name)
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise InputError(f"{path} is not a file")
        except OSError as error:
            raise InputError(f"cannot read {path}: {reason(error)}") from None
        return path

    def names(self, prefix: str) -> list[str]:
        return [name for name in self._names(prefix) if is_own(name)]

    def remove(self, name: str) -> None:
        path = self._own(name)
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            pass
        except OSError as error:
            raise cannot_write(path, error) from None

    def others(self) -> list[str]:
        try:
            names = [entry.name for entry in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise AirpathError(f"cannot read {self.folder}: {reason(error)}") from None
        return sorted(
            name
            for name in names
            if name not in (DOCUMENT, _LOCK) and not (is_aside(name) and name.startswith(DOCUMENT))
        )

    def _own(self, name: str) -> Path:
        """Where a file of the campaign is, in a folder that is its own."""
        if not is_own(name):
            raise InputError(f"{name!r} is not a file of a campaign")
        self._check_folder(name.rpartition("/")[0])
        return self.folder / name

    def _check_folder(self, name: str) -> None:
        if name and (self.folder / name).is_symlink():
            raise InputError(
                f"{self.folder / name} is a symbolic link, but must be a folder of the campaign"
            )

    def _names(self, prefix: str) -> list[str]:
        """Names of all files under a prefix, whosever they are; without links."""
        self._check_folder(prefix.rstrip("/"))
        try:
            with os.scandir(self.folder / prefix) as entries:
                return sorted(
                    f"{prefix}{entry.name}"
                    for entry in entries
                    if entry.is_file(follow_symlinks=False)
                )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise AirpathError(f"cannot read {self.folder / prefix}: {reason(error)}") from None

    def free_bytes(self) -> int | None:
        place = self.folder.absolute()
        while not place.exists():
            place = place.parent
        return shutil.disk_usage(place).free

    def lock(self) -> None:
        # Who may write here may have put a link, or a pipe, where the lock is to be.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / _LOCK, flags, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Nobody else is at work: what is not whole was left by one that was killed.
            for name in (name for folder in FOLDERS for name in self._names(folder)):
                if is_aside(name):
                    (self.folder / name).unlink(missing_ok=True)
        except BlockingIOError:
            raise AirpathError(f"another campaign is running in {self.folder}") from None
        except OSError as error:
            # A file system without locks keeps nobody out.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise cannot_write(self.folder, error) from None

    def unlock(self) -> None:
        """Let others in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _plainly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


class _Objects:
    """Objects under a URL."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ModuleNotFoundError:
            raise missing("fsspec", f"the URL {url}") from None
        self._url = url.rstrip("/")
        try:
            # Nothing is remembered of what was listed: others write too.
            self._files, self._root = fsspec.core.url_to_fs(self._url, use_listings_cache=False)
        except ImportError as error:
            raise InputError(f"cannot open {url}: {error}") from None
        except (ValueError, TypeError) as error:
            raise InputError(f"cannot open {url}: {error}") from None

    @property
    def place(self) -> str:
        return self._url

    def write(self, name: str, data: bytes) -> None:
        self._call(lambda: self._files.pipe_file(self._own(name), data), "write", name)

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self._call(lambda: self._files.cat_file(self._own(name)), "read", name))
        except FileNotFoundError:
            return None

    def names(self, prefix: str) -> list[str]:
        self._files.invalidate_cache()
        try:
            found = self._call(
                lambda: self._files.ls(f"{self._root}/{prefix}".rstrip("/"), detail=False),
                "list",
                prefix,
            )
        except FileNotFoundError:
            return []
        ends = (str(one).rstrip("/").rpartition("/")[2] for one in found)
        return sorted(name for end in ends if is_own(name := f"{prefix}{end}"))

    def path(self, name: str) -> Path | None:  # noqa: ARG002
        return None

    def others(self) -> list[str]:
        # A prefix is no folder: what else begins with it may be anything.
        return []

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._call(lambda: self._files.rm_file(self._own(name)), "remove", name)

    def free_bytes(self) -> int | None:
        return None

    def lock(self) -> None:
        """Object stores have no locks."""

    def unlock(self) -> None:
        """Object stores have no locks."""

    def _own(self, name: str) -> str:
        if not is_own(name):
            raise InputError(f"{name!r} is not a file of a campaign")
        return f"{self._root}/{name}"

    def _call(self, call: Any, what: str, name: str) -> Any:
        try:
            return call()
        except FileNotFoundError:
            raise
        except Exception as error:
            # Each kind of store has errors of its own.
            raise AirpathError(f"cannot {what} {self._url}/{name}: {error}") from None
