"""What the files of a campaign are named, and what is in them.

A campaign may come from anybody. What is named otherwise is not the campaign's: it is neither read
nor removed. What has other contents is damaged.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from airpath.base.json import parsed
from airpath.base.shapes import MisfitError, fitted
from airpath.campaign.figures import NAMED
from airpath.campaign.work import TABLES
from airpath.runs.document import Source

if TYPE_CHECKING:
    import polars as pl

DOCUMENT = "campaign.json"
MANIFEST = "manifest.json"
PARTS = "parts/"
PIECES = "pieces/"
FAILED = "failed/"

_NUMBER = r"\d{5,18}"
_HASH = "[0-9a-f]{16}"
_NAMES = {
    "": r"campaign\.json|manifest\.json",
    PARTS: rf"{_NUMBER}\.json",
    PIECES: rf"{_NUMBER}-(?:\d{{1,18}}|moved)-{_HASH}\.zip",
    FAILED: r"run-\d{1,18}\.toml",
    **{f"{table}/": rf"part-{_NUMBER}-{_HASH}\.parquet" for table in TABLES},
}
FOLDERS = tuple(_NAMES)
"""Each with its slash; the campaign's own is empty."""
_OWN = re.compile("|".join(f"{folder}(?:{names})" for folder, names in _NAMES.items()))
_ASIDE = re.compile(rf"(?:{_OWN.pattern})\.partial-{_HASH}")

MOST_ROWS_A_BYTE = 4
"""A table has at least ten bytes a row, so that more rows than this were made to fill memory."""


class StoredCampaign(TypedDict):
    """Required content of ``campaign.json``."""

    name: str
    title: str
    text: str
    scenarios: list[str]
    axes: list[str]
    """Names of the columns of the varied keys."""
    sampling: str
    samples: int
    explain: str
    cells: int
    runs: int
    done: int
    failed: int
    complete: bool
    version: str
    core_sha256: str
    started: str


class CampaignDocument(StoredCampaign):
    """Content of ``campaign.json``."""

    file: str
    sampling_seed: int
    seeds: int
    until: dict[str, object] | None
    compare: str
    """The varied key whose values the report compares; empty: the first with few values."""
    against: str
    """The value with which it compares the others; empty: the first."""
    source: Source | None
    command: list[str]
    workers: int
    simulated: int
    recovered: int
    engine_s: float
    wall_s: float
    overhead: float | None


class TableFile(TypedDict):
    """A Parquet file of a partition."""

    name: str
    sha256: str
    bytes: int
    rows: int


class PartDocument(TypedDict):
    """Content of ``parts/NUMBER.json``, which describes a partition."""

    partition: int
    first: int
    """The number of the partition's first run."""
    runs: int
    keys_sha256: str
    files: dict[str, TableFile]
    """The partition's files by table."""


class NamedFile(TableFile):
    """A Parquet file, and its table."""

    table: str


class Manifest(TypedDict):
    """Content of ``manifest.json``, which describes a whole campaign."""

    complete: bool
    runs: int
    failed: int
    files: list[NamedFile]


Document = TypeVar("Document")
_SAID = {
    str: "a string", int: "a whole number from 0 on", bool: "true or false", dict: "an object",
    list: "a list of strings",
}  # fmt: skip
_LARGEST = 2**63 - 1


class DamagedError(ValueError):
    """A file that is not as airpath writes it; the text says in which way."""


def is_own(name: str) -> bool:
    """Whether a campaign has a file of this name, from its folder on."""
    return _OWN.fullmatch(name) is not None


def is_aside(name: str) -> bool:
    """Whether this is such a file under construction, as one that was killed leaves it."""
    return _ASIDE.fullmatch(name) is not None


def campaign_document(data: bytes) -> CampaignDocument:
    """Read ``campaign.json``. Raises ``DamagedError``."""
    document = cast("CampaignDocument", _object(data, StoredCampaign))
    try:
        document["source"] = fitted(document.get("source"), Source | None)
    except MisfitError as error:
        raise DamagedError(f"`source` {error}") from None
    if len(set(document["axes"])) < len(document["axes"]):
        raise DamagedError("`axes` has a duplicate name")
    return document


def part_document(data: bytes, name: str) -> PartDocument:
    """Read ``parts/NUMBER.json``, of which this is the name. Raises ``DamagedError``."""
    part = _object(data, PartDocument)
    if name != f"{PARTS}{part['partition']:05}.json":
        raise DamagedError(f"`partition` is {part['partition']}")
    for table, file in part["files"].items():
        if table not in TABLES:
            raise DamagedError("`files` has a table that no campaign has")
        _check(file, TableFile, f"files.{table}.")
        expected = f"{table}/part-{part['partition']:05}-{file['sha256'][:16]}.parquet"
        if file["name"] != expected or not is_own(expected):
            raise DamagedError(f"`files.{table}.name` is not {expected}")
    return part


def read_rows(data: bytes, table: str, axes: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a table from Parquet, with the columns of what was varied.

    Raises ``DamagedError``.
    """
    import polars as pl

    try:
        rows = pl.scan_parquet(io.BytesIO(data), hive_partitioning=False)
        if rows.select(pl.len()).collect().item() > MOST_ROWS_A_BYTE * len(data):
            raise DamagedError("it claims more rows than a file of its size can hold")
        found = rows.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DamagedError(_first_line(error)) from None
    check_columns(found, table, axes)
    return found


def check_columns(found: pl.DataFrame, table: str, axes: Sequence[str] | None = None) -> None:
    """Refuse rows that do not say which run they are of; with ``axes`` which cell too.

    Raises ``DamagedError``.
    """
    import polars as pl

    needed: dict[str, tuple[Any, ...]] = {"run": (pl.UInt64,)}
    if axes is not None:
        needed |= {"cell": (pl.UInt32,), "scenario": (pl.String,), "seed": (pl.UInt64,)}
        needed |= dict.fromkeys(axes, (pl.Int64, pl.Float64, pl.Boolean, pl.String))
    if table == "runs":
        needed |= dict.fromkeys(("key", "status", "explained"), (pl.String,))
    elif owner := NAMED.get(table):
        needed[owner] = (pl.String,)
    for name, kinds in needed.items():
        if name not in found.columns:
            raise DamagedError(f"it has no column `{name}`")
        if found.schema[name] not in kinds:
            raise DamagedError(f"its column `{name}` is of the type {found.schema[name]}")
        if found[name].null_count():
            raise DamagedError(f"its column `{name}` has nulls, which it must not have")
    if table == "runs" and found["run"].n_unique() < len(found):
        raise DamagedError("it contains the same run twice")


def _object(data: bytes, kind: type[Document]) -> Document:
    try:
        document = parsed(data)
    except (ValueError, RecursionError):
        raise DamagedError("it is not JSON") from None
    _check(document, kind)
    return cast("Document", document)


def _check(value: Any, shape: type, at: str = "") -> None:
    if not isinstance(value, dict):
        raise DamagedError(f"`{at.rstrip('.')}` is not an object" if at else "it is not an object")
    for key, hint in get_type_hints(shape).items():
        if key not in value:
            raise DamagedError(f"`{at}{key}` is missing")
        kind = get_origin(hint) or hint
        right = _is(value[key], kind)
        if kind is list:
            right = right and all(_is(one, get_args(hint)[0]) for one in value[key])
        said = _SAID[kind]
        if not right:
            raise DamagedError(f"`{at}{key}` is not {said}")


def _is(value: Any, kind: type) -> bool:
    if kind is int:
        return type(value) is int and 0 <= value <= _LARGEST
    return isinstance(value, kind)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
