"""Files of users, read up to a size: a device may have no end."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from airpath.errors import InputError

MOST_TEXT_BYTES = 4 << 20
"""A scenario, a campaign, a study and a list of subscribers are shorter."""


def read_private(file: Path) -> bytes:
    """What is in a file that others must not read; if they can, that is said on standard error.

    Raises what ``read_within`` raises.
    """
    with file.open("rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            sys.stderr.write(f"warning: other users can read {file}: chmod 600 {file}\n")
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
