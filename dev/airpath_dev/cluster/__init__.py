"""Campaigns on real schedulers: ``make cluster``."""

import hashlib
from pathlib import Path


def tables(place: Path) -> dict[str, str]:
    """Return the SHA-256 of each table file of a campaign, by its relative path."""
    return {
        str(file.relative_to(place)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(place.glob("*/*.parquet"))
    }
