"""Which commit of airpath's source is running, and whether its files were changed."""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airpath.runs.document import Source

_PACKAGE = Path(__file__).parents[1]
_SECONDS = 10.0


@lru_cache(maxsize=1)
def source() -> Source | None:
    """Return the commit of the work tree that airpath runs from, or that its wheel was built from.

    Files that git does not follow are not counted. None without git, or without either.
    """
    from airpath import _core

    tree = _PACKAGE.parents[1]
    described = _git_describes(tree) if (tree / ".git").exists() else _core.__commit__
    found = re.fullmatch(r"([0-9a-f]{40})(-dirty)?", described or "")
    if found is None:
        return None
    return {"commit": found[1], "clean": found[2] is None}


def _git_describes(tree: Path) -> str | None:
    """Return the commit of HEAD, with ``-dirty`` where a file differs from it."""
    describe = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    words = ["git", "-C", str(tree), *describe]
    # A hook of git may set these for another tree.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    try:
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=True, timeout=_SECONDS, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
