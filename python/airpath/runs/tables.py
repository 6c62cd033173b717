"""Names of the result tables, and reading them back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base import forked
from airpath.errors import InputError, reason

if TYPE_CHECKING:
    import polars as pl

    from airpath import _core

TABLES = (
    "flows", "samples", "links", "acks", "pings", "events", "rtt_histogram", "proxies", "radio",
    "radio_log", "groups",
)  # fmt: skip
"""``acks`` exists only if the scenario sets ``run.ack_table``, ``groups`` only with a flow that has
``streams``, ``proxies`` only with a proxy, ``radio`` only with a radio, ``radio_log`` only if
``run.radio_log`` is set."""

NS_PER_S = 1_000_000_000


def read_table(directory: Path, name: str) -> pl.DataFrame | None:
    """Read a table of a run directory; None if the run has no such table."""
    forked.check()
    import polars as pl

    path = directory / f"{name}.parquet"
    if not path.exists():
        return None
    try:
        # By its name polars would take `a[1]` for a pattern and `~` for a home directory.
        with path.open("rb") as file:
            return pl.read_parquet(file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from None
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}") from None


def result_table(result: _core.Result, name: str) -> pl.DataFrame | None:
    """Return a table of a simulator result as a frame, without a copy."""
    forked.check()
    import polars as pl

    try:
        return pl.DataFrame(result.table(name))
    except KeyError:
        return None
