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
    Row("wire-slow", "the same at 10 Mb/s", "wire", ("run.duration_s=12",)),
    Row(
        "lte",
        "LTE, one UE down and another up",
        "lte-20",
        ("run.duration_s=8",),
        seeds=6,
    ),
    Row(
        "nr",
        "NR n78 at the cell's edge",
        "nr-n78",
        ("run.duration_s=6", "radio.channel.sinr_db=5", "emulation.lateness_bound_ms=1"),
        seeds=6,
    ),
    Row(
        "drx",
        "DRX: pings, then a download",
        "nr-drx",
        ("run.duration_s=16", "emulation.lateness_bound_ms=1"),
        seeds=4,
    ),
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
        ("run.duration_s=20", "flow.1.start_s=5", "flow.1.duration_s=8", "flow.2.interval_ms=100"),
        seeds=3,
    ),
    Row("trace", "a trace", "trace-driven", ("run.duration_s=20",)),
    Row("hspa", "HSPA: an object and pings", "umts-hspa", ("run.duration_s=15",)),
)

_EXITS = (
    "the end of slow start, and what follows from it. In LTE both sides are the same, "
    "acknowledgement by acknowledgement, for the first four or five round trips. Then the "
    "kernel's receiver answers up to a slot's segments (10 or 12) with one acknowledgement "
    "probably where its program is reading, the simulated one, whose program takes no time, each "
    "burst of 2 to 4 (`acks` of seed 2). A grant carries so many bytes, hence "
    "acknowledgements; from there the two meet other grants, and HyStart's delay test "
    "starts from another smallest round trip. Putting acknowledgements off "
    "(`tcp_backlog_ack_defer`) is not the cause: the same with 0. "
)

FOUND: dict[str, str] = {
    "wire-slow": "HyStart's train of acknowledgements, which may be 2 ms apart: at 10 Mb/s one for "
    "each segment comes every 1.2 ms, one for two every 2.4 ms. Both receivers acknowledge the "
    "first 22 segments one by one, then every second one. The kernel's window begins to grow with "
    "segment 32, which makes it acknowledge each one again, the simulated one 5 segments later: "
    "so much longer is its estimate of the round trip. The kernel's sender finds the train in "
    "that round, the simulated one not. At 20 Mb/s, where either comes within 2 ms, both leave "
    "slow start with the same window.",
    "lte": f"{_EXITS}Single exits, on both sides: some 100, 165, 365 and 1340 segments.",
    "nr": f"{_EXITS}Of the kernel's runs one in nine ended at the simulated 704 segments.",
    "drx": f"{_EXITS}Simulated, a round reaches 20 ms, twice the smallest, at 99 segments; in the "
    "kernel none does before 1360 to 1470.",
    "asymmetric": "until the upload starts both sides deliver the same to the byte, and the same "
    "within 1 % for 12 s. Then a full queue drops other packets: who finds its last place is "
    "decided by the microseconds that the simulated endpoints do not take, and a loss of the "
    "upload comes a second later. Longer runs average that out, single ones of 20 s do not.",
}
"""Why a row differs, by name: what was looked at, and what it is."""
