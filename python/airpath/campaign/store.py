"""Where the results of a campaign are: a folder, or an object store by its URL (fsspec).

What exists under its name is complete: a file is written aside, brought to the disk and renamed; an
object appears when it is whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from airpath.campaign.sampling import missing
from airpath.errors import AirpathError, InputError
from airpath.runs.directories import cannot_write, replaced_file
from airpath.runs.durable import sync

ASIDE = ".partial-"
"""In the name of a file that is not whole yet."""


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

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""

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

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} exists and is not a directory")

    @property
    def place(self) -> str:
        return str(self.path)

    def write(self, name: str, data: bytes) -> None:
        path = self.path / name
        try:
            if not path.parent.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                sync(path.parent.parent)
        except OSError as error:
            raise cannot_write(path, error) from None
        with replaced_file(path) as aside:
            aside.write_bytes(data)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise AirpathError(f"cannot read {self.path / name}: {error.strerror}") from None

    def names(self, prefix: str) -> list[str]:
        try:
            with os.scandir(self.path / prefix) as entries:
                return sorted(
                    f"{prefix}{entry.name}"
                    for entry in entries
                    if entry.is_file() and ASIDE not in entry.name
                )
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self.path / name).unlink()

    def free_bytes(self) -> int | None:
        place = self.path.absolute()
        while not place.exists():
            place = place.parent
        return shutil.disk_usage(place).free

    def lock(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Who may write here may have put a link, or a pipe, where the lock is to be.
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._lock = os.open(self.path / ".airpath-lock", flags, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Nobody else is at work: what is not whole was left by one that was killed.
            for left in self.path.glob(f"**/*{ASIDE}*"):
                left.unlink(missing_ok=True)
        except BlockingIOError:
            raise AirpathError(f"another campaign is at work in {self.path}") from None
        except OSError as error:
            # A file system without locks keeps nobody out.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise cannot_write(self.path, error) from None

    def unlock(self) -> None:
        """Let others in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


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
        self._call(lambda: self._files.pipe_file(f"{self._root}/{name}", data), "write", name)

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(
                self._call(lambda: self._files.cat_file(f"{self._root}/{name}"), "read", name)
            )
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
        return sorted(f"{prefix}{end}" for end in ends if end)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._call(lambda: self._files.rm_file(f"{self._root}/{name}"), "remove", name)

    def free_bytes(self) -> int | None:
        return None

    def lock(self) -> None:
        """Object stores have no locks."""

    def unlock(self) -> None:
        """Object stores have no locks."""

    def _call(self, call: Any, what: str, name: str) -> Any:
        try:
            return call()
        except FileNotFoundError:
            raise
        except Exception as error:
            # Each kind of store has errors of its own.
            raise AirpathError(f"cannot {what} {self._url}/{name}: {error}") from None
