"""The built explorer, for tests that need it: ``tools/setup explorer`` makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath.explorer.server import ASSETS

ROOT = Path(__file__).parents[2]
SOURCES = ["explorer/src", "explorer/build.mjs", "explorer/package-lock.json", "crates/wasm/src"]


def missing() -> str | None:
    """Why the explorer cannot be tested; None if it can."""
    page = ASSETS / "main.js"
    if not page.is_file():
        return "the explorer is not built: tools/setup explorer"
    files = [file for place in SOURCES for file in _files(ROOT / place)]
    newer = [file for file in files if file.stat().st_mtime > page.stat().st_mtime]
    return f"{newer[0].relative_to(ROOT)} is newer: tools/setup explorer" if newer else None


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]


needs_explorer = pytest.mark.skipif(missing() is not None, reason=missing() or "")
