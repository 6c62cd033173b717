"""From the records of a measurement to rates, effects and causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from airpath.causes.tools import Pinged, Told
from airpath.measure.causes import LEAST_RATE_MBPS, Named, Seen, Sparse, name
from airpath.measure.effects import Effect, effects
from airpath.measure.intervals import anytime
from airpath.measure.outcome import LEAST_REPLIES
from airpath.measure.placement import Servers
from airpath.measure.plan import BASE, Phase, Plan
from airpath.measure.udp import phases_together

if TYPE_CHECKING:
    from airpath.analysis.statistics import Interval
    from airpath.measure.document import Figures, Record, Trips

IDLE = "idle"
_LEAST_LOSS = 1e-5
_LEAST_MS = 1e-3


@dataclass(frozen=True)
class Analysis:
    """Causes, effects and rates of a measurement."""

    named: dict[str, list[Named]]
    """Causes by direction."""
    effects: dict[str, dict[str, dict[str, Effect]]]
    """By direction (or ``idle``), figure and treatment."""
    rates: dict[str, Interval]
    """The steady rate of ``base`` in Mb/s, by direction."""
    seen: dict[str, Seen]


def analyse(
    plan: Plan,
    records: Sequence[Record],
    servers: Servers | None = None,
    opened_ms: float | None = None,
    *,
    unopened: bool = False,
) -> Analysis:
    """Analyse the phases that ran; any phase may be missing.

    ``servers`` says what the servers allow, ``opened_ms`` how long the first connection took to
    open, ``unopened`` that none opened.
    """
    phases = {one.number: one for one in plan.phases}
    pairs = [(phases[one["number"]], one) for one in records]
    directions = [way for way in ("down", "up") if any(_tcp(one, way) for one in plan.phases)]
    found = Analysis({}, {IDLE: {"rtt_ms.mean": _idle(pairs)}}, {}, {})
    # Without transfers only the idle path has causes.
    for direction in directions or [IDLE]:
        seen = replace(
            _seen(direction, pairs, found.effects[IDLE]["rtt_ms.mean"]),
            servers=servers or Servers(),
            opened_ms=opened_ms,
            unopened=unopened,
        )
        found.seen[direction] = seen
        found.named[direction] = name(seen)
        if direction == IDLE:
            continue
        found.effects[direction] = {
            "steady_mbps": dict(seen.rate),
            "retransmitted_share": dict(seen.loss),
            "rtt_ms.p50": dict(seen.loaded_ms),
        }
        if rates := base_rates(pairs, direction):
            found.rates[direction] = anytime(rates)
    return found


Pair = tuple[Phase, "Record"]


def base_rates(pairs: Sequence[Pair], direction: str) -> list[float]:
    """The steady rate of each base phase so far."""
    return [
        one["steady_mbps"]
        for phase, one in _figures(pairs, direction)
        if phase.treatment.name == BASE
    ]


def rate_found(pairs: Sequence[Pair], direction: str) -> float:
    """Mean steady rate of the fastest treatment so far, in Mb/s; 0 if nothing was carried."""
    rates: dict[str, list[float]] = {}
    for phase, one in _figures(pairs, direction):
        if phase.treatment.other:
            continue
        rates.setdefault(phase.treatment.name, []).append(one["steady_mbps"])
    return max((sum(each) / len(each) for each in rates.values()), default=0.0)


def base_values(pairs: Sequence[Pair], direction: str) -> dict[str, dict[int, float]]:
    """Figures of base phases by block, in a direction or of the idle path."""
    if direction == IDLE:
        means = ((p, _mean(_trips(one["probes"]))) for p, one in pairs if p.kind == "idle")
        return {"rtt_ms.mean": _by_block(means, _LEAST_MS)}
    own = list(_figures(pairs, direction))
    return {
        "steady_mbps": _by_block(((p, one["steady_mbps"]) for p, one in own), LEAST_RATE_MBPS),
        "goodput_mbps": _by_block(((p, one["goodput_mbps"]) for p, one in own), LEAST_RATE_MBPS),
        "retransmitted_share": _by_block(((p, loss_of(one)) for p, one in own), 0.0),
        "rtt_ms.p50": _by_block(((p, one["loaded_ms"]) for p, one in own), _LEAST_MS),
    }


def _by_block(values: Iterable[tuple[Phase, float | None]], floor: float) -> dict[int, float]:
    return {
        phase.block: max(floor, value)
        for phase, value in values
        if value is not None and phase.treatment.name == BASE
    }


def _tcp(phase: Phase, direction: str) -> bool:
    return phase.kind == "tcp" and phase.direction == direction


def _figures(pairs: Sequence[Pair], direction: str) -> Iterator[tuple[Phase, Figures]]:
    for phase, one in pairs:
        if _tcp(phase, direction) and one["figures"] is not None:
            yield phase, one["figures"]


def _blocks(values: Iterator[tuple[Phase, float | None]]) -> list[dict[str, float]]:
    """By block what each treatment had."""
    blocks: dict[int, dict[str, float]] = {}
    for phase, value in values:
        if value is not None:
            blocks.setdefault(phase.block, {})[phase.treatment.name] = value
    return list(blocks.values())


def _idle(pairs: Sequence[Pair]) -> dict[str, Effect]:
    means = ((phase, _mean(_trips(one["probes"]))) for phase, one in pairs if phase.kind == "idle")
    return effects(_blocks(means), BASE, _LEAST_MS)


def _both(probes: Sequence[Trips | None]) -> list[tuple[float, float]]:
    """Round trip, and the part of it to the server, of each probe that was answered."""
    return [
        (trip, out)
        for one in probes
        if one is not None
        for trip, out in zip(one["rtt_ms"], one["out_ms"], strict=True)
        if trip is not None and out is not None
    ]


def _out_share(longer: Sequence[Trips | None], shorter: Sequence[Trips | None]) -> float | None:
    """Share of the difference of two median round trips that arises on the way to the server.

    0 if the first is not longer; None if the other end does not stamp what arrives.
    """
    sides = [_both(longer), _both(shorter)]
    if not all(sides):
        return None
    (long, long_out), (short, short_out) = (np.median(one, axis=0) for one in sides)
    return float((long_out - short_out) / (long - short)) if long > short else 0.0


def _waits(probes: Sequence[Trips | None]) -> tuple[float, float, float] | None:
    """The smallest RTT, and the mean wait on the way to the server and back, in ms.

    A wait is the time by which a packet takes longer than the fastest one of its direction.
    """
    both = _both(probes)
    if len(both) < LEAST_REPLIES:
        return None
    trips, out = np.array(both).T
    back = trips - out
    waits = [(_mean(list(one)) or 0.0) - float(one.min()) for one in (out, back)]
    return float(trips.min()), waits[0], waits[1]


def _least(probes: Sequence[Trips | None]) -> float | None:
    """The smallest RTT, if there are enough."""
    trips = [trip for one in probes for trip in _trips(one)]
    return min(trips) if len(trips) >= LEAST_REPLIES else None


def _lost(probes: Sequence[Trips | None]) -> tuple[int, int, int]:
    """Probes that were lost, the most of them in a row, and probes in all."""
    lost = sent = longest = 0
    for one in probes:
        run = 0
        for trip in [] if one is None else one["rtt_ms"]:
            run = run + 1 if trip is None else 0
            longest = max(longest, run)
            lost += trip is None
            sent += 1
    return lost, longest, sent


def _mean(values: Sequence[float]) -> float | None:
    """The mean without the largest tenth, which a handover or a lost packet may have made.

    Waits for DRX or grants spread evenly over a cycle: their mean varies less than their median.
    """
    if len(values) < LEAST_REPLIES:
        return None
    return float(np.mean(sorted(values)[: len(values) - len(values) // 10]))


def _trips(probes: Trips | None) -> list[float]:
    return [] if probes is None else [one for one in probes["rtt_ms"] if one is not None]


def loss_of(one: Figures) -> float | None:
    """Retransmissions over segments sent; None if the sender did not count them."""
    again = one["retransmitted_segments"]
    return None if again is None else again / max(1, one["segments"])


def _seen(direction: str, pairs: Sequence[Pair], idle: Mapping[str, Effect]) -> Seen:
    own = list(_figures(pairs, direction))
    base = [one for phase, one in own if phase.treatment.name == BASE]
    loaded = [one["loaded_ms"] for one in base if one["loaded_ms"] is not None]
    sparse = [
        one["probes"]
        for phase, one in pairs
        if phase.kind == "idle" and phase.treatment.name == BASE
    ]
    awake = [
        one["probes"] for phase, one in pairs if phase.kind == "idle" and phase.treatment.keep_alive
    ]
    beside = [
        one["probes"]
        for phase, one in pairs
        if _tcp(phase, direction) and phase.treatment.name == BASE
    ]
    mtu = next(
        (
            one["mtu"]
            for phase, one in pairs
            if phase.kind == "mtu" and phase.direction == direction
        ),
        None,
    )
    longest = max(
        (phase for phase, _ in own if phase.treatment.name == BASE),
        key=lambda phase: phase.duration_s,
        default=None,
    )
    record = next((one for phase, one in pairs if phase is longest), None)
    figures = None if record is None else record["figures"]
    trips = [trip for probes in sparse for trip in _trips(probes)]
    return Seen(
        direction=direction,
        rate=effects(_blocks((p, one["steady_mbps"]) for p, one in own), BASE, LEAST_RATE_MBPS),
        goodput=effects(_blocks((p, one["goodput_mbps"]) for p, one in own), BASE, LEAST_RATE_MBPS),
        congestion=base[0]["congestion"] if base else None,
        sparse=Sparse(
            median_ms=float(np.median(trips)) if trips else None,
            waits=_waits(sparse),
            least_ms=_least(sparse),
            lost=_lost(sparse),
        ),
        idle_out=_out_share(sparse, awake),
        loaded_out=_out_share(beside, sparse),
        loss=effects(_blocks((p, loss_of(one)) for p, one in own), BASE, _LEAST_LOSS),
        loaded_ms=effects(_blocks((p, one["loaded_ms"]) for p, one in own), BASE, _LEAST_MS),
        idle_ms=idle,
        base_rate_mbps=float(np.mean([one["steady_mbps"] for one in base])) if base else 0.0,
        base_loss=_mean_loss(base),
        base_loaded_ms=float(np.median(loaded)) if loaded else None,
        limited=_mean_shares([one["limited"] for one in base]),
        ramp_s=None if figures is None else figures["ramp_s"],
        missed_s=0.0 if figures is None or longest is None else missed(figures, longest),
        phase_s=0.0 if longest is None else longest.duration_s,
        first_ms=_first(pairs),
        mtu=mtu,
        shown=[
            each
            for phase, one in pairs
            if _tcp(phase, direction) and one["shown"]
            for each in one["shown"].values()
        ],
        udp={
            one["treatment"]: one
            for one in phases_together(pairs)
            if one["direction"] == direction and not one["discarded"]
        },
        told=None if record is None else _told(record, sparse),
    )


def missed(figures: Figures, phase: Phase) -> float:
    """Seconds at the steady rate that would carry what the ramp of a phase did not."""
    steady = max(figures["steady_mbps"], LEAST_RATE_MBPS)
    return max(0.0, phase.duration_s * (1 - figures["goodput_mbps"] / steady))


def _mean_loss(phases: Sequence[Figures]) -> float | None:
    known = [loss for one in phases if (loss := loss_of(one)) is not None]
    return float(np.mean(known)) if known else None


def _mean_shares(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = sorted({each for one in shares for each in one})
    return {each: float(np.mean([one.get(each, 0.0) for one in shares])) for each in names}


def _first(pairs: Sequence[Pair]) -> float | None:
    """The RTT of the first probe after a phase's silence; None if it was lost."""
    for phase, one in pairs:
        if phase.quiet_s and one["probes"] is not None and one["probes"]["rtt_ms"]:
            return one["probes"]["rtt_ms"][0]
    return None


def _told(record: Record, sparse: Sequence[Trips | None]) -> Told | None:
    """The seconds of a phase as iperf3, ss and ping would give them."""
    streams = [
        np.array([[np.nan if value is None else value for value in row] for row in one])
        for one in record["seconds"]
        if len(one) >= 2
    ]
    if not streams or not sum(float(one[:, 0].sum()) for one in streams):
        return None
    figures = record["figures"]
    limited = {} if figures is None else dict(figures["limited"])
    return Told(streams, limited, _pinged(record["probes"] or next(iter(sparse), None)))


def _pinged(probes: Trips | None) -> Pinged | None:
    trips = _trips(probes)
    if probes is None or len(trips) < LEAST_REPLIES:
        return None
    least, middle, high, most = (float(one) for one in np.quantile(trips, [0, 0.5, 0.95, 1]))
    lost = 1 - len(trips) / len(probes["rtt_ms"])
    return Pinged(lost, (max(least, _LEAST_MS), middle, high, most))
