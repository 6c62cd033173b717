"""The rows of the page: short scenarios, and what was found where the two sides differ."""

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


# After an idle uplink all acknowledgements of 80 ms leave in one slot, and the kernel takes some
# 7 us for each. The rates over NR are low enough for two processors to do this within the bound.
ROWS = (
    Row("wire", "a wire", "wire", ("path.down.0.rate_mbps=20", "run.duration_s=12")),
    Row("wire-slow", "a wire at 10 Mb/s", "wire", ("run.duration_s=12",)),
    Row(
        "lte",
        "LTE, one UE downloads, another uploads",
        "lte-20",
        ("run.duration_s=8",),
        # Bimodal; see FOUND.
        seeds=32,
    ),
    Row(
        "lte-buffer",
        "LTE with a fixed receive buffer",
        "lte-20",
        ("run.duration_s=8", "flow.0.buffer.receive_tuning=false"),
        seeds=8,
    ),
    Row(
        "nr",
        "NR n78 at the cell edge",
        "nr-n78",
        ("run.duration_s=6", "radio.channel.sinr_db=2", "emulation.lateness_bound_ms=1"),
        seeds=8,
    ),
    Row(
        "drx",
        "DRX: pings, then a download",
        "nr-drx",
        (
            "run.duration_s=16",
            "radio.channel.sinr_db=8",
            "emulation.lateness_bound_ms=1",
            "flow.0.direction=up",
        ),
        seeds=6,
    ),
    Row(
        "bufferbloat",
        "a deep buffer, 0.9 s",
        "bufferbloat",
        ("run.duration_s=20", "path.down.0.queue_packets=150"),
        seeds=4,
    ),
    Row("codel", "a deep buffer with CoDel", "codel", ("run.duration_s=20",), seeds=2),
    Row("loss", "random loss", "random-loss", ("run.duration_s=15",), seeds=3),
    Row(
        "asymmetric",
        "3G-like asymmetry, both directions busy",
        "asymmetric-3g",
        ("flow.1.start_s=5", "flow.1.duration_s=48", "flow.2.interval_ms=100"),
        seeds=8,
    ),
    Row("trace", "a trace", "trace-driven", ("run.duration_s=20",), seeds=2),
    Row("hspa", "HSPA: an object and pings", "umts-hspa", ("run.duration_s=15",)),
)

FOUND: dict[str, str] = {
    "wire-slow": (
        "HyStart's train of acknowledgements, which may be 2 ms apart: at 10 Mb/s one per segment "
        "arrives every 1.2 ms, one per two segments every 2.4 ms. A receiver sends one per segment "
        "while its window grows. Which segment makes it grow depends on an estimate of the round "
        "trip in whole milliseconds, and therefore on the phase of a clock (ADR 152)."
    ),
    "lte": (
        "chance, through the receiver's dynamic right-sizing: with a fixed receive buffer, in the "
        "row below, both sides end at the same windows and agree in every figure. Slow start ends "
        "at some 164 to 366 segments or at some 1340 (occasionally one round later). "
        "Linux 6.18 compares the time since the last round, in microseconds, with a round trip in "
        "whole milliseconds (tracepoint `tcp:tcp_rcvbuf_grow`). Over a radio both are whole slots, "
        "so a few microseconds decide whether the window grows now or with the next read. Besides, "
        "the reader, awake some 15 us after a slot's first segments, finds one burst or two "
        "(`tcp:tcp_probe`, `tcp:tcp_rcv_space_adjust`). As long as the window grows "
        "each burst is acknowledged, and one acknowledgement fewer leaves room in a grant for one "
        "of the next slot, whose round trip is 8 ms shorter: HyStart compares with that. Of 32 "
        "simulated runs 12 end early, of as many emulated ones 9 (seeds 1 to 16 twice); most "
        "seeds do either. A reader that blocks in recv instead of poll changes nothing."
    ),
    "nr": (
        "how often the uplink falls silent for retxBSR-Timer, 80 ms. When a grant carries "
        "exactly what was reported and acknowledgements have arrived in the meantime, nothing "
        "triggers another buffer status report (TS 38.321 5.4.5). That depends on how many "
        "acknowledgements a slot causes, and therefore on how many of its bursts a reader finds "
        "at a time (ADR 106)."
    ),
    "drx": "as over NR above.",
    "bufferbloat": (
        "how recovery ends. A full queue drops a few segments at a time; whether the last of them "
        "lies just below or just above the recovery point depends on when recovery began. Above "
        "it, recovery ends and begins again at the same instant and cwnd is reduced once more, on "
        "both sides by the same rule."
    ),
    "asymmetric": (
        "until the upload starts both sides deliver the same bytes, and for 12 s they agree "
        "within 1 %. Then a full queue drops different packets: microseconds that the simulated "
        "endpoints do not take decide which packet gets the last place, and a loss of the upload "
        "comes a second later. Simulated runs that start a few milliseconds apart differ as much: "
        "1.84 to 2.25 Mb/s in 60 s, 1.98 in the mean of 24."
    ),
}
"""Why a row differs, by its name."""
