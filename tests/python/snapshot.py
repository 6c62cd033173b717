"""Snapshots of emulations that were not."""

from __future__ import annotations

from typing import Any, cast

from airpath.documents import Snapshot


def radio(**counts: Any) -> dict[str, Any]:
    """One direction of a UE."""
    keys = (
        *("bytes", "queue_packets", "queue_bytes", "prbs", "blocks", "mcs_sum", "first_errors"),
        *("harq_retransmissions", "lost_blocks", "rlc_retransmissions", "scheduling_requests"),
        *("buffer_status_reports", "grants", "random_accesses", "awake_s"),
    )
    return {**dict.fromkeys(keys, 0), "dropped": [], **counts}


def snapshot(time_s: float, **changes: Any) -> Snapshot:
    """A snapshot of which only a part is said."""
    direction: dict[str, Any] = {
        **dict.fromkeys(("entered", "left", "left_bytes", "refused"), 0),
        **{"dropped": [], "late_p99_us": None, "late_max_us": None},
    }
    whole: Any = {
        "time_s": time_s,
        "directions": [direction, direction],
        "links": [],
        "cells": [],
        "ues": [],
        "flows": [],
        "other_flows": 0,
        "mobility": [],
        **changes,
    }
    return cast("Snapshot", whole)
