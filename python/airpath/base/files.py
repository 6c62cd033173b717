"""Files of users, read up to a size: a device may have no end."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from airpath.base.text import printable
from airpath.errors import InputError, reason

MOST_TEXT_BYTES = 4 << 20
"""A scenario, a campaign, a study and a list of subscribers are shorter."""


def read_private(file: Path) -> bytes:
    """What is in a file that others must not read; if they can, that is said on standard error.

    Raises what ``read_within`` raises.
    """
    with file.open("rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            sys.stderr.write(printable(f"warning: other users can read {file}: chmod 600 {file}\n"))
        return read_within(opened, str(file))


def read_within(file: Path | BinaryIO, name: str | None = None) -> bytes:
    """What is in a file, which is read once: it may be a pipe.

    Raises ``InputError`` if that is more than ``MOST_TEXT_BYTES``, where the file is called
    ``name``, and ``OSError`` if it cannot be read.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return read_within(opened, name or str(file))
    data = file.read(MOST_TEXT_BYTES + 1)
    if len(data) > MOST_TEXT_BYTES:
        raise InputError(f"{name} is larger than {MOST_TEXT_BYTES >> 20} MiB")
    return data


def open_regular(path: Path) -> BinaryIO:
    """Open a file of a directory that somebody else may have made.

    It must be a regular file: a link leads elsewhere, a device may have no end, and a pipe waits.
    Raises ``InputError``, and ``FileNotFoundError`` if there is none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "it is a link" if path.is_symlink() else reason(error)
        raise InputError(f"cannot read {path}: {what}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"cannot read {path}: it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, most_bytes: int) -> bytes:
    """What is in such a file, if that is at most so much."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > most_bytes:
                raise InputError(f"cannot read {path}: it is larger than {most_bytes >> 20} MiB")
            return file.read(most_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from None
