"""The machine as far as emulation has to know it; a test puts another one in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
"""linux/capability.h."""


@dataclass(frozen=True)
class Machine:
    """Files below ``root``, programs in the PATH."""

    root: Path = Path("/")

    def read(self, path: str) -> str | None:
        """Return what a file says, without white space around it; None if it cannot be read."""
        try:
            return self.at(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None

    def at(self, path: str) -> Path:
        """Return where a file of the machine is."""
        return self.root / path.lstrip("/")

    def sysctl(self, name: str) -> str | None:
        """Return a sysctl; None if this kernel has none of that name."""
        return self.read(f"/proc/sys/{name.replace('.', '/')}")

    def which(self, program: str) -> str | None:
        """Return where a program is."""
        return shutil.which(program)

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a program to see what comes of it."""
        return subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603

    def python(self) -> str:
        """Return the interpreter, as AppArmor sees it."""
        return str(Path(sys.executable).resolve())

    def has_one_user(self) -> bool:
        """Whether this is a user namespace in which there is nobody but root, who is the caller."""
        words = (self.read("/proc/self/uid_map") or "").split()
        return len(words) == 3 and words[2] == "1"

    def may_make_namespaces(self) -> bool:
        """Whether this process has what namespaces and their interfaces take."""
        for line in (self.read("/proc/self/status") or "").splitlines():
            if line.startswith("CapEff:"):
                has = int(line.split()[1], 16)
                return all(has >> bit & 1 for bit in (CAP_NET_ADMIN, CAP_SYS_ADMIN))
        return os.geteuid() == 0
