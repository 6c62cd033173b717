"""Make what was written outlast a power cut, before it has its name."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def sync_tree(directory: Path) -> None:
    """Bring every file and directory in there to the disk, itself last. Raises ``OSError``."""
    for place, _, files in os.walk(directory, topdown=False):
        for name in files:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                sync(path)
        sync(Path(place))


def sync(path: Path) -> None:
    """Bring a file, or a directory's entries, to the disk. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot do this to a directory.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
