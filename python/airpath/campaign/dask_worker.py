"""What a worker of Dask does beside batches: it gets ready, and it parts in silence."""

from __future__ import annotations

import logging
from typing import Any

from airpath.campaign import work
from airpath.runs.provenance import core_hash


def dask_setup(_worker: Any) -> None:
    """Load what every batch needs, before the worker joins. Dask calls this."""
    core_hash()
    work.pack(work.empty_frames())


def part(dask_worker: Any) -> None:
    """Prepare a worker for its end, which is wanted: it says no more to the scheduler.

    A message under way when the connection is closed would print a traceback, though all is well.
    """
    dask_worker.periodic_callbacks["heartbeat"].stop()
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
