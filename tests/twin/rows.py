"""The rows of the page: scenarios, short, and what was found where the two sides differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One scenario as both sides run it."""

    name: str
    shape: str
    """What it is an example of."""
    scenario: str
    sets: tuple[str, ...] = ()
    seeds: int = 1


ROWS = (
    Row("wire", "a wire", "wire", ("path.down.0.rate_mbps=20", "run.duration_s=12")),
    Row(
        "lte",
        "LTE, one UE down and another up",
        "lte-20",
        ("run.duration_s=12", "emulation.lateness_bound_ms=1"),
    ),
    Row(
        "nr",
        "NR n78 at the cell's edge",
        "nr-n78",
        ("run.duration_s=10", "radio.channel.sinr_db=5"),
    ),
    Row("drx", "DRX: pings, then a download", "nr-drx", ("run.duration_s=16",)),
    Row(
        "bufferbloat",
        "a deep buffer, 0.9 s",
        "bufferbloat",
        ("run.duration_s=20", "path.down.0.queue_packets=150"),
    ),
    Row("codel", "the same with CoDel", "codel", ("run.duration_s=20",), seeds=2),
    Row("loss", "random loss", "random-loss", ("run.duration_s=15",), seeds=3),
    Row(
        "asymmetric",
        "3G's shape, both ways busy",
        "asymmetric-3g",
        ("run.duration_s=20", "flow.1.start_s=5", "flow.1.duration_s=8"),
    ),
    Row("trace", "a trace", "trace-driven", ("run.duration_s=20",)),
    Row("hspa", "HSPA: an object and pings", "umts-hspa", ("run.duration_s=15",)),
)

FOUND: dict[str, str] = {}
"""Why a row differs, by name: what was looked at, and what it is."""
