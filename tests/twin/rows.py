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
        ("run.duration_s=6", "radio.channel.sinr_db=5"),
        seeds=6,
    ),
    Row("drx", "DRX: pings, then a download", "nr-drx", ("run.duration_s=16",), seeds=4),
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

# Inferred from the counts of requests and reports; not isolated by an experiment.
_UPLINK = (
    "the way of the acknowledgements up. The simulated UE answers in no time, so that the "
    "acknowledgements of a slot are all there at its end; the kernel's come some tens of "
    "microseconds apart, across slots, and what of them a grant carries is another part"
)

FOUND: dict[str, str] = {
    "wire-slow": "HyStart's train of acknowledgements, which may be 2 ms apart: at 10 Mb/s one for "
    "each segment comes every 1.2 ms, one for two every 2.4 ms. Both receivers acknowledge the "
    "first 22 segments one by one, then every second one. The kernel's window begins to grow with "
    "segment 32, which makes it acknowledge each one again, the simulated one 5 segments later: "
    "so much longer is its estimate of the round trip. The kernel's sender finds the train in "
    "that round, the simulated one not. At 20 Mb/s, where either comes within 2 ms, both leave "
    "slow start with the same window.",
    "lte": "the end of slow start, and what follows from it. What "
    "differs before it is "
    f"{_UPLINK}. Until the end of slow start the smallest RTT is 40 ms simulated and 32 ms "
    "emulated, and HyStart's delay test starts from it: "
    "45 ms against 36 ms. The upload agreed within 1 % in two runs, spacing of acknowledgements "
    "apart, and in the third left slow start elsewhere: such exits are decided by microseconds.",
    "nr": f"{_UPLINK}: in 10 s some 670 scheduling requests and 1500 buffer status reports "
    "simulated, 100 and 900 emulated. It moves the end of slow start from run to run (1370 "
    "segments simulated; 683 and 1347 in two emulated runs), and spreads the round trips.",
    "drx": f"{_UPLINK}: some 220 scheduling requests simulated, 100 emulated. How many "
    "acknowledgements a slot makes decides the simulated goodput as well: 233 Mb/s where the "
    "receiver acknowledges without aggregation.",
    "codel": "not the cause yet. Windows, medians and the end of slow start agree; the 95th "
    "percentile is that of the few round trips after slow start, in which CoDel drops other "
    "packets on the two sides.",
    "bufferbloat": "which packets a full queue drops: who finds its last place is decided by the "
    "microseconds that the simulated endpoints do not take. Until then cwnd and RTT are the same "
    "within 1 %.",
    "asymmetric": "until the upload starts both sides deliver the same to the byte, and the same "
    "within 1 % for 12 s. Then a full queue drops other packets: who finds its last place is "
    "decided by the microseconds that the simulated endpoints do not take, and a loss of the "
    "upload comes a second later. Longer runs average that out, single ones of 20 s do not.",
}
"""Why a row differs, by name: what was looked at, and what it is."""
