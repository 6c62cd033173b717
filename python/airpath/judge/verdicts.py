"""Figures of a judgement, and the faults that they show.

CUBIC on the same path is the reference: it is what most senders use, and its faults are known.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypedDict

from airpath.judge import definition
from airpath.judge.trials import Judgement, Trial
from airpath.runs.results import Run

HIGH_LOSS = 0.10
"""Share of retransmissions above which a sender ignores losses. BBRv3 takes 2 % for too much
(LossThresh, draft-ietf-ccwg-bbr-06), and slow start into a deep buffer costs CUBIC 5 % of a run
this short: twice that is no slow start."""

LOSS_FACTOR = 3.0
"""It must also be this much more than CUBIC's, so that a path which loses is not blamed on it."""

FAIR_FACTOR = 2.0
"""RFC 5348 (1): a flow is reasonably fair if its rate is generally within a factor of two."""

SLOW_FACTOR = 0.5
"""Goodput below this part of CUBIC's is slow: RFC 5348's factor of two again."""

PING_FACTOR = 2.0
"""A ping that waits this much longer than beside CUBIC is harmed; CUBIC fills every buffer."""

PING_MS = 20.0
"""Less harm than that is no harm: a frame of a video at 50 per second."""


class Range(TypedDict):
    """Of the blocks' values: their mean, smallest and largest."""

    mean: float
    min: float
    max: float
    values: list[float]


class Row(TypedDict):
    """A congestion control on a path."""

    path: str
    congestion: str
    goodput_mbps: Range | None
    rtt_ms: Range | None
    """Median of the sample intervals' means."""
    rtt_p95_ms: Range | None
    retransmitted: Range | None
    """Share of the segments sent, over the whole run."""
    ping_ms: Range | None
    ping_p95_ms: Range | None
    ping_lost: Range | None
    """Share of the pings."""
    share: dict[str, Range]
    """Share of both flows' goodput, by the other flow's congestion control."""


class Fault(NamedTuple):
    """What is wrong with a congestion control, on a path."""

    congestion: str
    path: str
    fault: str
    because: str
    criterion: str
    """The criterion of RFC 9743 that it concerns."""


def rows(judgement: Judgement) -> list[Row]:
    """Return a row for each path and congestion control."""
    return [
        _row(judgement, case, one.label)
        for case in definition.CASES
        for one in judgement.candidates
    ]


def _row(judgement: Judgement, case: definition.Case, label: str) -> Row:
    alone = [
        _alone(run)
        for trial, run in judgement.runs.items()
        if (trial.path, trial.tested.label, trial.peer) == (case.path, label, None)
    ]
    others = {peer: peer for peer in judgement.peers if peer in case.peers}
    others |= {definition.ITSELF: label} if definition.ITSELF in case.peers else {}
    shares = {
        name: _range(_shares(judgement, case.path, label, peer)) for name, peer in others.items()
    }

    def of(figure: str) -> Range | None:
        return _range(one[figure] for one in alone if figure in one)

    return {
        "path": case.path,
        "congestion": label,
        "goodput_mbps": of("goodput_mbps"),
        "rtt_ms": of("rtt_ms"),
        "rtt_p95_ms": of("rtt_p95_ms"),
        "retransmitted": of("retransmitted"),
        "ping_ms": of("ping_ms"),
        "ping_p95_ms": of("ping_p95_ms"),
        "ping_lost": of("ping_lost"),
        "share": {name: share for name, share in shares.items() if share is not None},
    }


def _alone(run: Run) -> dict[str, float]:
    """Return the figures of a flow that is alone on its path, and of the pings beside it."""
    found = {"goodput_mbps": goodput(run, "tested")}
    samples = run.samples.filter(flow="tested").drop_nulls("rtt_ms")
    late = samples.filter(samples["time_ns"] > definition.FROM_S * 1e9)["rtt_ms"]
    if len(late):
        found["rtt_ms"] = float(late.quantile(0.5) or 0.0)
        found["rtt_p95_ms"] = float(late.quantile(0.95) or 0.0)
    for flow in run.summary["flows"]:
        sent, again = flow.get("segments_sent"), flow.get("retransmitted_segments")
        if flow["id"] == "tested" and sent and again is not None:
            found["retransmitted"] = again / sent
    for ping in run.summary["pings"]:
        if ping["id"] == "ping" and ping["sent"]:
            found["ping_lost"] = ping["lost"] / ping["sent"]
        if ping["id"] == "ping" and (rtt := ping["rtt_ms"]):
            found["ping_ms"], found["ping_p95_ms"] = rtt["p50"], rtt["p95"]
    return found


def goodput(run: Run, flow: str) -> float:
    """Return a flow's goodput in Mb/s from ``FROM_S`` to the end."""
    samples = run.samples.filter(flow=flow)
    before = samples.filter(samples["time_ns"] <= definition.FROM_S * 1e9)
    # Both only grow.
    first, last = (max([0, *each["delivered_bytes"].to_list()]) for each in (before, samples))
    delivered = last - first
    return float(delivered) * 8 / 1e6 / (definition.DURATION_S - definition.FROM_S)


def _shares(judgement: Judgement, path: str, label: str, peer: str) -> list[float]:
    """Return a congestion control's share in each block, from whichever side it was run."""
    found = []
    for trial, run in judgement.runs.items():
        if trial.path != path or not _is_between(trial, label, peer):
            continue
        tested, other = goodput(run, "tested"), goodput(run, "peer")
        if tested + other > 0:
            mine = tested if trial.tested.label == label else other
            found.append(mine / (tested + other))
    return found


def _is_between(trial: Trial, label: str, peer: str) -> bool:
    if trial.peer is None:
        return False
    return sorted((trial.tested.label, trial.peer.label)) == sorted((label, peer))


def _range(values: Iterable[float]) -> Range | None:
    found = list(values)
    if not found:
        return None
    return {
        "mean": statistics.fmean(found), "min": min(found), "max": max(found), "values": found,
    }  # fmt: skip


def faults(found: Sequence[Row]) -> list[Fault]:
    """Return what every block shows of a congestion control's faults."""
    cubic = {row["path"]: row for row in found if row["congestion"] == "cubic"}
    return [fault for row in found for fault in _faults(row, cubic.get(row["path"]))]


def _faults(row: Row, cubic: Row | None) -> Iterable[Fault]:
    who, path = row["congestion"], row["path"]
    if cubic is not None and cubic is not row:
        yield from _beside_cubics_row(row, cubic)
    for peer, share in row["share"].items():
        most = FAIR_FACTOR / (1 + FAIR_FACTOR)
        told = f"it has {_percent(share)} of the goodput"
        if peer == definition.ITSELF:
            if share["min"] > most or share["max"] < 1 - most:
                yield Fault(who, path, "is unfair to itself", told, "5.1.4")
        elif peer != who:
            if share["min"] > most:
                yield Fault(who, path, f"takes the rate of {peer}", told, "5.2.1")
            elif share["max"] < 1 - most:
                yield Fault(who, path, f"yields to {peer}", told, "5.2.1")


def _beside_cubics_row(row: Row, cubic: Row) -> Iterable[Fault]:
    who, path = row["congestion"], row["path"]
    lost, theirs = row["retransmitted"], cubic["retransmitted"]
    if lost and theirs and lost["min"] > max(HIGH_LOSS, LOSS_FACTOR * theirs["max"]):
        told = f"it retransmits {_percent(lost)} of its segments, CUBIC {_percent(theirs)}"
        yield Fault(who, path, "does not back off for losses", told, "5.1.3")
    rate, usual = row["goodput_mbps"], cubic["goodput_mbps"]
    if rate and usual and rate["max"] < SLOW_FACTOR * usual["min"]:
        told = f"it has {rate['mean']:.3g} Mb/s, CUBIC {usual['mean']:.3g} Mb/s"
        yield Fault(who, path, "is slow", told, "5.1")
    ping, beside = row["ping_p95_ms"], cubic["ping_p95_ms"]
    if ping and beside and ping["min"] > max(PING_FACTOR * beside["max"], beside["max"] + PING_MS):
        told = f"pings take {ping['mean']:.0f} ms (p95), beside CUBIC {beside['mean']:.0f} ms"
        yield Fault(who, path, "delays others", told, "5.1.2")
    gone, usually = row["ping_lost"], cubic["ping_lost"]
    if gone and usually and gone["min"] > max(HIGH_LOSS, LOSS_FACTOR * usually["max"]):
        told = f"{_percent(gone)} of the pings are lost, beside CUBIC {_percent(usually)}"
        yield Fault(who, path, "makes others lose packets", told, "5.1.3")


def _percent(share: Range) -> str:
    return f"{100 * share['mean']:.3g} %"
