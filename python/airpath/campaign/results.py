"""A campaign, finished or still running: its tables as polars frames."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.base.later import Chart, later
from airpath.campaign.files import (
    DOCUMENT,
    MANIFEST,
    PARTS,
    CampaignDocument,
    DamagedError,
    campaign_document,
    read_rows,
)
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
        return open_store(text).read(DOCUMENT) is not None
    return (Path(text) / DOCUMENT).is_file()


def open_campaign(place: str | os.PathLike[str]) -> Campaign:
    """Open a campaign, complete or not. Raises ``InputError`` if there is none."""
    store = open_store(place)
    document = read_document(store)
    if document is None:
        text = os.fspath(place)
        if Path(text, "summary.json").is_file():
            raise InputError(
                f"{text} is a run directory, not a campaign folder: `airpath report A B` shows "
                "runs side by side, and `airpath query` reads their tables"
            )
        raise InputError(
            f"{text} is not a campaign folder: `airpath sweep CAMPAIGN.toml` writes one"
        )
    return Campaign(os.fspath(place), store, document)


def read_document(store: Store) -> CampaignDocument | None:
    """What ``campaign.json`` says; None if there is none. Raises ``InputError``."""
    data = store.read(DOCUMENT)
    try:
        return None if data is None else campaign_document(data)
    except DamagedError as error:
        raise InputError(
            f"{store.place} has a damaged {DOCUMENT}: {error}; `airpath sweep CAMPAIGN` creates one"
        ) from None


def newest_campaign(parent: Path) -> Path:
    """Return the campaign in there that was started or finished last."""
    found = [
        (about.stat().st_mtime_ns, about.parent.name) for about in parent.glob("*/campaign.json")
    ]
    if not found:
        raise InputError(f"no campaign found in {parent}/: `airpath sweep CAMPAIGN` writes one")
    return parent / max(found)[1]


class Campaign:
    """The results of a campaign. A missing table raises ``MissingTableError``."""

    def __init__(self, place: str, store: Store, document: CampaignDocument) -> None:
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
        """Names of the columns of the varied keys."""
        return list(self.document["axes"])

    @property
    def cell_columns(self) -> list[str]:
        """The scenario and the varied keys."""
        return ["scenario", *self.axes]

    @property
    def complete(self) -> bool:
        """Whether every run is done."""
        return self.store.read(MANIFEST) is not None and bool(self.document["complete"])

    @cached_property
    def files(self) -> dict[str, list[str]]:
        """Names of the Parquet files of each table, in the campaign's order, without pieces."""
        found: dict[str, list[str]] = {}
        for name in self.store.names(PARTS):
            try:
                part = read_part(self.store, name, check=False)
            except DamagedError as error:
                raise InputError(
                    f"{self.store.place}/{name} is damaged: {error}; --resume rebuilds it"
                ) from None
            for table, file in part["files"].items():
                found.setdefault(table, []).append(file["name"])
        return found

    def tables(self) -> list[str]:
        """Names of the tables that have rows."""
        return [name for name in TABLES if name in self.files]

    def table(self, name: str) -> pl.DataFrame:
        """Return a table, as far as it is written.

        One row per run, flow, group, ping, link or finding; the first columns are the run's
        number, ``cell``, ``scenario``, ``seed`` and the varied keys.
        """
        import polars as pl

        if name not in self.files:
            raise MissingTableError(
                f"the campaign has no table '{name}'; available: {', '.join(self.tables())}"
            )
        frames = []
        for file in self.files[name]:
            data = self.store.read(file)
            if data is None:
                raise InputError(f"{self.store.place}/{file} is missing; --resume rebuilds it")
            try:
                frames.append(read_rows(data, name, self.axes))
            except DamagedError as error:
                raise InputError(f"{self.store.place}/{file} is damaged: {error}") from None
        try:
            return pl.concat(frames, rechunk=True)
        except pl.exceptions.PolarsError:
            raise InputError(
                f"{self.store.place} is damaged: not all files of {name} have the same columns"
            ) from None

    def plot(self, kind: str | None = None, **options: Any) -> Chart:
        """Draw a chart of the campaign; ``options`` are those of ``airpath.plot``."""
        chart: Chart = later("plot")(self, kind, **options)
        return chart

    def report(self, output: str | os.PathLike[str] = "report.html") -> Path:
        """Write the campaign's report, as ``airpath report`` does, and return its path."""
        later("write_campaign_report")(self, Path(output))
        return Path(output)

    def _repr_html_(self) -> str:
        """The view in a notebook: what was run, the best and the worst, and a picture."""
        return str(later("campaign_view")(self))

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name in TABLES:
            return self.table(name)
        raise AttributeError(f"'Campaign' object has no attribute '{name}'")
