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


# After a silence of the uplink all acknowledgements of 80 ms leave in one slot, and the kernel takes
# some 7 us for each: the rates over NR are such that two processors do it within the bound.
ROWS = (
    Row("wire", "a wire", "wire", ("path.down.0.rate_mbps=20", "run.duration_s=12")),
    Row("wire-slow", "the same at 10 Mb/s", "wire", ("run.duration_s=12",)),
    Row(
        "lte",
        "LTE, one UE down and another up",
        "lte-20",
        ("run.duration_s=8",),
        seeds=16,
    ),
    Row(
        "nr",
        "NR n78 at the cell's edge",
        "nr-n78",
        ("run.duration_s=6", "radio.channel.sinr_db=2", "emulation.lateness_bound_ms=1"),
        seeds=8,
    ),
    Row(
        "drx",
        "DRX: pings, then a download",
        "nr-drx",
        ("run.duration_s=16", "radio.channel.sinr_db=8", "emulation.lateness_bound_ms=1"),
        seeds=6,
    ),
    Row(
        "bufferbloat",
        "a deep buffer, 0.9 s",
        "bufferbloat",
        ("run.duration_s=20", "path.down.0.queue_packets=150"),
        seeds=2,
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
    Row("trace", "a trace", "trace-driven", ("run.duration_s=20",), seeds=2),
    Row("hspa", "HSPA: an object and pings", "umts-hspa", ("run.duration_s=15",)),
)

FOUND: dict[str, str] = {
    "wire-slow": (
        "HyStart's train of acknowledgements, which may be 2 ms apart: at 10 Mb/s one for each "
        "segment comes every 1.2 ms, one for two every 2.4 ms. Which of the two a receiver "
        "sends when the train is due most likely hangs on when its window begins to grow, "
        "hence on its estimate of the round trip in whole milliseconds. The kernel's runs end at "
        "59 or at 88 and 89 segments, the simulation at 59, and with a reader that takes no time "
        "at 88."
    ),
    "lte": (
        "the end of slow start, and what follows from it. Both sides have the same few ends: "
        "some 167, 354, 614 and 1340 segments. Which one it is hangs on less than a "
        "millisecond: the kernel's receiver sizes its window by what is read in a round trip, "
        "and over LTE the first rounds last 40 ms to within what a host takes, where its "
        "clock has whole milliseconds. If the window grows in the second round, every burst "
        "is acknowledged, else a slot's segments together (tracepoint `tcp:tcp_rcvbuf_grow`, "
        "captures at the UE); other grants follow, and HyStart starts from another smallest "
        "round trip. Since processors stay awake the kernel's downloads leave at 1160 to 1350 "
        "segments in seven runs of ten, the simulated ones at 1350 to 1370 in four and at 167 in "
        "five, whatever constant times their hosts take, or if they read a longer burst for "
        "longer; why is not known. Means over a few seeds are means of a lottery."
    ),
    "nr": (
        "how often the uplink falls silent for retxBSR-Timer, 80 ms. When a grant carries "
        "just what was reported and acknowledgements have come in the meantime, nothing "
        "triggers another buffer status report (TS 38.321 5.4.5). That takes acknowledgements "
        "of one slot that are ready at both sides of a slot's edge, hence hosts that are late "
        "by parts of a slot, as a virtual machine is. With a `radio.host_jitter_ms` of 0.3 "
        "instead of 0.03 the simulation has it as often as the kernel (row drx: 6 to 8 times "
        "a run, where the kernel had it 6 to 13 times in an hour of 99 % within 910 us, the "
        "plain simulation once). Slow start ends at some 700 or 1100 to 1180 segments simulated; "
        "in the kernel too while its hosts were late, and at 1270 to 1370 since processors stay "
        "awake, as over LTE."
    ),
    "drx": (
        "as over NR above. Until the first such silence the two windows are the same: slow "
        "start ends at 1399 segments simulated, and at 1376 to 1400 in the kernel."
    ),
    "asymmetric": (
        "until the upload starts both sides deliver the same to the byte, and the same within "
        "1 % for 12 s. Then a full queue drops other packets: who finds its last place is "
        "decided by the microseconds that the simulated endpoints do not take, and a loss of "
        "the upload comes a second later. Longer runs average that out, single ones of 20 s "
        "do not."
    ),
}
"""Why a row differs, by name: what was looked at, and what it is."""
