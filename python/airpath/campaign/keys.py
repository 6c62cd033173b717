"""The key of a run: what tells whether it is there already."""

from __future__ import annotations

import hashlib


def key_of(sha256: str, seed: int, version: str, core: str) -> str:
    """32 hexadecimal digits: equal for equal scenario, seed, version and core.

    ``sha256`` is the hash of the whole scenario, ``core`` that of the compiled module.
    """
    return hashlib.sha256(f"{sha256}\n{seed}\n{version}\n{core}".encode()).hexdigest()[:32]
