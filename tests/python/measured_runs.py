"""Directories of measurements that never ran: a plan, and records with the figures of a test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from airpath.measure import result
from airpath.measure.document import Figures, Record
from airpath.measure.measurement import PHASES, PLAN, Course, MeasureOptions
from airpath.measure.plan import Phase, Plan
from airpath.runs.directories import PendingDirectory

Values = dict[str, Any]


def record(phase: Phase, values: Values) -> Record:
    """A record with these figures; ``rtt_ms`` is that of each probe."""
    figures: Figures | None = None
    rate = values.get("steady_mbps", 10.0)
    if phase.kind == "tcp":
        carried = round(rate * phase.duration_s / 8e-6)
        figures = {
            "goodput_mbps": rate,
            "steady_mbps": rate,
            "ramp_s": 0.5,
            "retransmitted_segments": values.get("retransmitted", 0),
            "segments": 10_000,
            "limited": {},
            "loaded_ms": values.get("loaded_ms", 40.0),
            "congestion": "cubic",
            "carried_bytes": carried,
        }
    trips = [values.get("rtt_ms", 20.0)] * 10
    probes = None
    if phase.probe_gap_s is not None:
        probes = {"sent_s": list(range(10)), "rtt_ms": trips, "out_ms": [0.0] * 10}
    return cast(
        Record,
        {
            "number": phase.number,
            "started_s": float(phase.number),
            "ended_s": float(phase.number + 1),
            "figures": figures,
            "samples": None,
            "seconds": [],
            "probes": probes,
            "mtu": None,
            "shown": None,
            "udp": None,
            "responses": None,
            "errors": [],
        },
    )


def written(
    place: Path,
    plan: Plan,
    values: Callable[[Phase], Values],
    *,
    server: str = "server",
    limit_mbps: float | None = None,
) -> Path:
    """Write the directory of a measurement in which each phase had these figures."""
    course = Course(plan, [record(one, values(one)) for one in plan.phases], "the plan is done")
    welcome = SimpleNamespace(
        limits=SimpleNamespace(rate_mbps=limit_mbps), you=("192.0.2.1", 1), host={}
    )
    session: Any = SimpleNamespace(
        welcome=welcome, near=("192.0.2.1", 1), handshake_ms=None, unprobed=None
    )
    options = MeasureOptions(host=server, port=5212, token="")
    with PendingDirectory(place, numbered=False) as pending:
        table = {"server": server, **plan.to_json()}
        (pending.path / PLAN).write_text(json.dumps(table))
        lines = [json.dumps(one) + "\n" for one in course.records]
        (pending.path / PHASES).write_text("".join(lines))
        sessions = (session, None)
        identifier, began = "0123456789ab", time.monotonic()
        result._written(pending, course, sessions, options, identifier, [], began)
    return place
