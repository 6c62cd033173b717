"""A campaign that was run, or that runs: its tables as polars frames."""

from __future__ import annotations

import io
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.campaign.partitions import read_part
from airpath.campaign.store import Store, open_store
from airpath.campaign.work import TABLES
from airpath.errors import InputError, MissingTableError

if TYPE_CHECKING:
    import polars as pl


def is_campaign(place: str | os.PathLike[str]) -> bool:
    """Whether a folder or a URL has a campaign."""
    text = os.fspath(place)
    if "://" in text:
        return open_store(text).read("campaign.json") is not None
    return (Path(text) / "campaign.json").is_file()


def open_campaign(place: str | os.PathLike[str]) -> Campaign:
    """Open a campaign, complete or not. Raises ``InputError`` if there is none."""
    store = open_store(place)
    data = store.read("campaign.json")
    try:
        document = json.loads(data or b"")
        document["axes"], document["runs"]
    except (ValueError, KeyError, TypeError):
        told = "is no campaign" if data is None else "has a damaged campaign.json"
        raise InputError(f"{os.fspath(place)} {told}; `airpath sweep CAMPAIGN` makes one") from None
    return Campaign(os.fspath(place), store, document)


def newest_campaign(parent: Path) -> Path:
    """Return the campaign in there that was begun or finished last."""
    found = [
        (about.stat().st_mtime_ns, about.parent.name) for about in parent.glob("*/campaign.json")
    ]
    if not found:
        raise InputError(f"there is no campaign in {parent}; `airpath sweep CAMPAIGN` makes one")
    return parent / max(found)[1]


class Campaign:
    """The results of a campaign. Tables that it does not have raise ``MissingTableError``."""

    def __init__(self, place: str, store: Store, document: dict[str, Any]) -> None:
        self.place = place
        """Its folder or URL."""
        self.store = store
        self.document = document
        """What ``campaign.json`` says."""

    def __repr__(self) -> str:
        done, runs = self.document["done"], self.document["runs"]
        return f"Campaign({self.place!r}, {done} of {runs} runs)"

    @property
    def axes(self) -> list[str]:
        """Names of the columns of what was varied."""
        return list(self.document["axes"])

    @property
    def cell_columns(self) -> list[str]:
        """The scenario and what was varied."""
        return ["scenario", *self.axes]

    @property
    def complete(self) -> bool:
        """Whether every run is there."""
        return self.store.read("manifest.json") is not None and bool(self.document["complete"])

    @cached_property
    def files(self) -> dict[str, list[str]]:
        """Names of the Parquet files of each table, in the campaign's order, without pieces."""
        found: dict[str, list[str]] = {}
        for name in self.store.names("parts/"):
            part = read_part(self.store, name, check=False)
            for table, file in part["files"].items() if part is not None else ():
                found.setdefault(table, []).append(file["name"])
        return found

    def tables(self) -> list[str]:
        """Names of the tables that have rows."""
        return [name for name in TABLES if name in self.files]

    def table(self, name: str) -> pl.DataFrame:
        """Return a table: what is written of it so far.

        One row a run, flow, group, ping, link or finding; the first columns are the run's number,
        ``cell``, ``scenario``, ``seed`` and what was varied.
        """
        import polars as pl

        if name not in self.files:
            raise MissingTableError(
                f"the campaign has no table '{name}'; there are: {', '.join(self.tables())}"
            )
        folder = "://" not in self.place
        frames = []
        for file in self.files[name]:
            if folder:
                frames.append(pl.read_parquet(Path(self.place.removeprefix("file://")) / file))
            else:
                frames.append(pl.read_parquet(io.BytesIO(self.store.read(file) or b"")))
        return pl.concat(frames, rechunk=True)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name in TABLES:
            return self.table(name)
        raise AttributeError(f"'Campaign' object has no attribute '{name}'")
