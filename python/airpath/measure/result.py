"""The run directory of a measurement: the format of every run, with the driver ``measure``.

Each TCP phase is a flow, and the probes of each phase are a ping. The scenario is the twin
(`twin.py`), and ``twin.toml`` is the twin without defaults. ``plan.json`` and ``phases.jsonl`` hold
what ``--resume`` reads.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from airpath import scenario as scenarios
from airpath.base.stopping import StoppedError, deferred
from airpath.errors import AirpathError
from airpath.measure import measurement, placement, stream, twin, udp
from airpath.measure.analysis import IDLE, Analysis, analyse
from airpath.measure.causes import CAPACITY, Named, Seen, by_chance, is_decided, leaning
from airpath.measure.control import EndedError, SilenceError, UnansweredError, spelled
from airpath.measure.effects import Effect
from airpath.measure.measurement import PHASES, PLAN, Course, MeasureOptions
from airpath.measure.placement import Servers
from airpath.measure.plain import Iperf3Session, PingSession
from airpath.measure.plan import ALSO, Phase
from airpath.measure.responsiveness import responsiveness
from airpath.measure.session import Session
from airpath.runs import provenance as prov
from airpath.runs.directories import PendingDirectory, default_name
from airpath.runs.results import Run, RunDirectory
from airpath.runs.tables import NS_PER_S, write_table

if TYPE_CHECKING:
    from airpath.analysis.statistics import Interval
    from airpath.documents import (
        Finding,
        FlowSummary,
        Gain,
        LimitSeconds,
        Metric,
        PingSummary,
        Quantiles,
    )
    from airpath.measure.document import (
        AlsoDocument,
        EcnDocument,
        Figures,
        Measured,
        Mtu,
        Nats,
        RateDocument,
        Record,
        Responses,
        ResponsivenessDocument,
        Trips,
        Udp,
    )
    from airpath.runs.document import RunDocument

TWIN = "twin.toml"
SHORT_TEST_S = 10.0
"""What iperf3 takes unless it is told otherwise."""
_RANGE = 1.02
"""Between the bounds of a range of the RTT histogram."""


def measure(options: MeasureOptions) -> Run:
    """Measure, and write the run directory.

    Raises ``StoppedError`` after Ctrl-C, with what was kept.
    """
    with ExitStack() as stack:
        session, other, nats, course, options = _begin(stack, options)
        started, began = time.time_ns(), time.monotonic()
        identifier = hashlib.sha256(
            f"{options.host} {course.plan.seed} {started}".encode()
        ).hexdigest()[:12]
        out = options.out or Path("runs") / default_name("measure", identifier)
        with PendingDirectory(out, numbered=options.out is None) as pending:
            plan = pending.path / PLAN
            table = {
                "server": options.host,
                "far": options.far,
                "opened_ms": course.opened_ms,
                **course.plan.to_json(),
            }
            plan.write_text(json.dumps(table, indent=1), encoding="utf-8")
            interrupted, failed = False, None
            try:
                measurement.run(course, session, options, pending.path / PHASES, other)
                if options.binding_s is not None and nats is not None:
                    options.say(
                        f"NAT binding lifetime: an idle UDP flow, up to {options.binding_s:g} s"
                    )
                    nats["binding_s"] = session.binding(options.binding_s)
            except KeyboardInterrupt:
                interrupted = True
                course.stopped = "it was interrupted"
            except AirpathError as error:
                failed = error
                course.stopped = str(error)
            if not any(one["figures"] or one["probes"] for one in course.records):
                if interrupted:
                    raise KeyboardInterrupt
                raise failed or AirpathError("nothing was measured: see the errors of the phases")
            with deferred():
                partial = _partial(course, interrupted, failed)
                pending.free_reserve()
                course.nats = nats
                run = _written(
                    pending, course, (session, other), options, identifier, partial, began
                )
    if interrupted:
        raise StoppedError(run.directory or out, partial)
    return run


class _Begun(NamedTuple):
    """Sessions and a plan; ``options`` are those that apply to them."""

    session: Session
    other: Session | None
    nats: Nats | None
    course: Course
    options: MeasureOptions


def _begin(stack: ExitStack, options: MeasureOptions) -> _Begun:
    """Connect and draw a plan; by pings alone, if the server does not answer or is lost."""
    began = time.monotonic()
    try:
        session = stack.enter_context(_session(options))
    except UnansweredError as unanswered:
        pings = _by_pings(stack, options, time.monotonic() - began, unanswered)
        pings.course.unopened = not unanswered.opened
        return pings
    other = None
    if options.also is not None:
        also = options.also
        other = stack.enter_context(Session(also.host, also.port, also.token, beside=session))
    nats = session.nats()
    try:
        return _Begun(session, other, nats, measurement.planned(options, session), options)
    except (EndedError, SilenceError) as lost:
        return _by_pings(stack, options, time.monotonic() - began, lost)


def _session(options: MeasureOptions) -> Session:
    """A session with the far end, whatever it runs."""
    if options.far == "ping":
        return PingSession(options.host)
    if options.far == "iperf3":
        explores = options.resume is None
        return Iperf3Session(options.host, options.port, options.say, explores=explores)
    return Session(options.host, options.port, options.token)


def _by_pings(
    stack: ExitStack, options: MeasureOptions, spent_s: float, failed: AirpathError
) -> _Begun:
    """Measure by pings what is left; ``failed`` says why there are no transfers.

    It is raised where nothing answers pings, or where the plan of another measurement is to run.
    """
    if options.far != "airpath" or options.resume is not None or options.again is not None:
        raise failed
    try:
        session = stack.enter_context(PingSession(options.host))
    except AirpathError:
        raise failed from None
    options.say(f"{failed}; only pings follow")
    left_s = max(1.0, options.time_s - spent_s)
    options = replace(options, far="ping", also=None, binding_s=None, time_s=left_s)
    course = measurement.planned(options, session)
    course.untransferred.append(f"no transfer is possible: {failed}")
    return _Begun(session, None, None, course, options)


def _partial(course: Course, interrupted: bool, failed: AirpathError | None) -> list[str]:
    left = len(course.plan.phases) - len(course.records)
    if interrupted:
        return [f"it was interrupted: {left} of {len(course.plan.phases)} phases are missing"]
    if failed is not None:
        return [f"it failed with {left} of {len(course.plan.phases)} phases left: {failed}"]
    if course.untransferred:
        return list(course.untransferred)
    transfers = any(one.kind == "tcp" for one in course.plan.phases)
    if transfers and not any(one["figures"] for one in course.records):
        return [f"no transfer ran: {course.stopped}"]
    return []


def _written(
    pending: PendingDirectory,
    course: Course,
    sessions: tuple[Session, Session | None],
    options: MeasureOptions,
    identifier: str,
    partial: list[str],
    began: float,
) -> Run:
    session, other = sessions
    servers = Servers(
        session.welcome.limits.rate_mbps,
        _spelled(options),
        None if other is None else other.welcome.limits.rate_mbps,
        (_family(session), None if other is None else _family(other)),
    )
    found = analyse(
        course.plan, course.records, servers, course.opened_ms, unopened=course.unopened
    )
    made = _twin(course, found, options.host, session.handshake_ms)
    scenario = scenarios.parse(made.toml, f"twin-of-{identifier}")
    seed = course.plan.seed
    record = prov.provenance(scenario, [seed], options.command_line, identifier)
    record["driver"] = "measure"
    record["partial"] = partial
    record["wall_s"] = round(time.monotonic() - began, 6)
    document = _document(course, found, made, session, options)
    if other is not None:
        document["measured"]["also"] = _also(servers, other, found)
    document["run"] |= {
        "id": identifier,
        "version": record["version"],
        "scenario_sha256": scenario.sha256,
        "wall_s": record["wall_s"],
        "partial": partial,
    }
    _write_tables(pending.path, course, prov.table_metadata(scenario, seed))
    (pending.path / TWIN).write_text(made.toml, encoding="utf-8")
    RunDirectory(pending.path).write(document, record, scenario.resolved_toml)
    final = pending.commit()
    return Run(document, record, scenario.resolved_toml, RunDirectory(final).tables([seed]), final)


def _spelled(options: MeasureOptions) -> str | None:
    """The other server, with its port if that tells it from the first one."""
    also = options.also
    if also is None:
        return None
    return also.host if also.host != options.host else spelled((also.host, also.port))


def _also(servers: Servers, other: Session, found: Analysis) -> AlsoDocument:
    judged = {
        direction: placement.judge(seen.rate, seen.idle_ms, servers)
        for direction, seen in found.seen.items()
    }
    return {
        "server": servers.also or "",
        "near_seen_as": None if other.welcome.you is None else other.welcome.you[0],
        "family": _family(other),
        "host": other.welcome.host,
        "limit_mbps": servers.also_limit_mbps,
        "placement": [
            {"direction": direction, "verdict": one.verdict, "said": one.said}
            for direction, one in judged.items()
            if one is not None
        ],
    }


def _family(session: Session) -> str:
    """The family of the addresses between both ends."""
    address = session.near[0]
    return "IPv6" if ":" in address and not address.startswith("::ffff:") else "IPv4"


def _twin(course: Course, found: Analysis, server: str, handshake_ms: float | None) -> twin.Twin:
    """The twin of the first direction with a transfer, or of the idle path."""
    idle = [
        trip
        for phase, one in course.pairs()
        if phase.kind == "idle" and one["probes"] is not None and not phase.treatment.other
        for trip in one["probes"]["rtt_ms"]
        if trip is not None
    ]
    least = max(0.01, min(idle, default=handshake_ms or 1.0))
    measured = [one for one in found.seen if one in found.rates]
    if not measured:
        return twin.run(twin.Path("down", None, 0.0, least, None, 0.0, []), server)
    direction, seen = measured[0], found.seen[measured[0]]
    rates = [one.after for name, one in seen.rate.items() if name != ALSO]
    path = twin.Path(
        direction,
        max(0.01, seen.base_rate_mbps),
        max(0.01, seen.base_rate_mbps, *rates),
        least,
        seen.base_loaded_ms,
        _loss(seen),
        [one.cause for one in found.named[direction] if one.cause != CAPACITY],
        seen.congestion,
    )
    return twin.run(path, server)


def _loss(seen: Seen) -> float:
    """The share that is lost below the rate, as far as it is known."""
    if (paced := seen.loss.get("paced")) is not None:
        return paced.after
    lost, _, sent = seen.sparse.lost
    return lost / max(1, sent) if seen.base_loss is None else seen.base_loss


def _document(
    course: Course, found: Analysis, made: twin.Twin, session: Session, options: MeasureOptions
) -> RunDocument:
    pairs = course.pairs()
    flows = [flow for pair in pairs if (flow := _flow(*pair)) is not None]
    pings = [
        _ping(phase, one["probes"])
        for phase, one in pairs
        if one["probes"] is not None and one["probes"]["rtt_ms"]
    ]
    return {
        "run": {
            "id": "",
            "version": "",
            "seed": course.plan.seed,
            "scenario_sha256": "",
            "wall_s": 0.0,
            "duration_s": max(one["ended_s"] for one in course.records),
            "events": 0,
            "partial": [],
        },
        "flows": flows,
        "pings": pings,
        "links": [],
        "fairness": [],
        "proxies": [],
        "radio": [],
        "findings": [
            _finding(direction, one) for direction, all_ in found.named.items() for one in all_
        ],
        "tried": [],
        "breakdowns": [],
        "explained": {
            "budget": "measured",
            "seeds": 1,
            "runs": len(course.records),
            "events": 0,
            "because": None if found.rates else "no transfer was measured",
        },
        "measured": _measured(course, found, made, session, options),
    }


def _measured(
    course: Course, found: Analysis, made: twin.Twin, session: Session, options: MeasureOptions
) -> Measured:
    welcome = session.welcome
    you = None if welcome.you is None else welcome.you[0]
    own = session.near[0].removeprefix("::ffff:")
    return {
        "server": options.host,
        "far": options.far,
        "unprobed": session.unprobed,
        "handshake_ms": session.handshake_ms,
        "near_seen_as": you,
        "nat": None if you is None else you.removeprefix("::ffff:") != own,
        "nats": course.nats,
        "host": welcome.host,
        "ecn": _ecn(course, found, welcome.host.get("tcp_ecn")),
        "limit_mbps": welcome.limits.rate_mbps,
        "seed": course.plan.seed,
        "stopped": course.stopped,
        "carried_bytes": sum(
            one["figures"]["carried_bytes"] for one in course.records if one["figures"]
        ),
        "phases": [
            {
                "number": phase.number,
                "block": phase.block,
                "kind": phase.kind,
                "direction": phase.direction,
                "treatment": phase.treatment.name,
                "started_s": one["started_s"],
                "ended_s": one["ended_s"],
                "figures": one["figures"],
                "udp": one["udp"],
                "errors": one["errors"],
            }
            for phase, one in course.pairs()
        ],
        "effects": [
            {
                "direction": direction,
                "treatment": one.treatment,
                "metric": metric,
                "before": one.before,
                "after": one.after,
                "factor": one.factor,
                "ci95": one.interval,
                "blocks": one.blocks,
            }
            for direction, by_metric in found.effects.items()
            for metric, by_treatment in by_metric.items()
            for one in by_treatment.values()
        ],
        "rates": [
            _rate(direction, one, found.seen[direction]) for direction, one in found.rates.items()
        ],
        "mtu": [
            {"direction": phase.direction or "down", **_proven(one["mtu"], found)}
            for phase, one in course.pairs()
            if one["mtu"] is not None
        ],
        "captured": sorted({end for one in course.records for end in one["shown"] or {}}),
        "udp": udp.phases_together(course.pairs()),
        "responsiveness": _responsiveness(course),
        "undecided": _undecided(found),
        "likeliest": [
            {"direction": direction, "cause": cause, "probability": round(sure, 3)}
            for direction in _undecided(found)
            for cause, sure in leaning(found.seen[direction])
        ],
        "time_s": course.plan.time_s,
        "data_bytes": course.plan.data_bytes,
        "left_out": course.plan.dropped,
        "not_in_twin": made.not_in_it,
        "twin_score": made.score,
    }


def _proven(one: Mtu, found: Analysis) -> Mtu:
    """A path MTU without a bound that lost probes explain as well."""
    if any(by_chance(seen, one["too_large_sent"]) for seen in found.seen.values()):
        return {**one, "too_large_bytes": None, "black_hole": False}
    return one


def _ecn(course: Course, found: Analysis, far: object) -> list[EcnDocument]:
    """ECN of the directions that were measured."""
    near = stream.setting("ipv4/tcp_ecn")
    made: list[EcnDocument] = []
    for direction in found.seen:
        every = [
            one["figures"]["ecn"]
            for phase, one in course.pairs()
            if phase.direction == direction
            and not phase.treatment.other
            and one["figures"] is not None
            and "ecn" in one["figures"]
        ]
        if every:
            made.append(
                {
                    "direction": direction,
                    "negotiated": all(one["negotiated"] for one in every),
                    "arrives": any(one["arrives"] for one in every),
                    "marked_segments": sum(one["marked_segments"] for one in every),
                    "near_setting": near,
                    "far_setting": far if isinstance(far, int) else None,
                }
            )
    return made


def _rate(direction: str, one: Interval, seen: Seen) -> RateDocument:
    over = seen.ramp_s is not None and seen.ramp_s < SHORT_TEST_S
    return {
        "direction": direction,
        "steady_mbps": one.mean,
        "ci95": one.bounds,
        "ramp_s": seen.ramp_s,
        "longest_s": seen.phase_s,
        "short_test_mbps": one.mean * (1 - seen.missed_s / SHORT_TEST_S) if over else None,
    }


def _responsiveness(course: Course) -> list[ResponsivenessDocument]:
    """Of each direction with requests beside its transfers."""
    found: dict[tuple[str, int], list[Responses]] = {}
    for phase, one in course.pairs():
        if one["responses"] is not None:
            key = (phase.direction or "down", phase.treatment.streams)
            found.setdefault(key, []).append(one["responses"])
    both = [responsiveness(*key, found[key]) for key in sorted(found)]
    return [one for one in both if one is not None]


def _undecided(found: Analysis) -> list[str]:
    """Directions with transfers of which nothing says what limits the rate."""
    return [one for one, named in found.named.items() if one != IDLE and not is_decided(named)]


def _finding(direction: str, one: Named) -> Finding:
    return {
        "cause": one.cause,
        "subject": direction,
        "confidence": one.confidence,
        "evidence": one.evidence,
        "advice": one.advice,
        "set": None,
        "gain": None if one.effect is None else _gain(direction, one.effect, one.metric),
        "costs": [],
    }


def _gain(direction: str, effect: Effect, metric: Metric) -> Gain:
    interval = effect.interval
    bounds = None if interval is None else [effect.before * each for each in interval]
    return {
        "metric": metric,
        "flow": direction,
        "before": effect.before,
        "after": effect.after,
        "ci95": bounds,
        "seeds": effect.blocks,
    }


def _flow(phase: Phase, one: Record) -> FlowSummary | None:
    """The flow of a phase; None if it had none."""
    if one["figures"] is not None:
        return _tcp_flow(phase, one, one["figures"])
    return None if one["udp"] is None else _udp_flow(phase, one["udp"])


def _udp_flow(phase: Phase, found: Udp) -> FlowSummary:
    carried = (found["sent"] - found["lost"]) * found["size_bytes"]
    return {
        "id": phase.name,
        "kind": "udp",
        "direction": phase.direction or "down",
        "ue": None,
        "congestion": None,
        "profile": None,
        "bytes_delivered": carried,
        "goodput_mbps": found["received_mbps"],
        "written_mbps": None,
        "rtt_ms": None,
        "self_inflicted_delay_ms": None,
        "power": None,
        "segments_sent": 0,
        "retransmitted_segments": None,
        "rto_count": None,
        "undo_count": None,
        "tail_loss_probes": None,
        "ecn_reductions": None,
        "steady_mbps": None,
        "converged_after_s": None,
        "completed_s": None,
        "slow_start_exit": None,
        "limited_s": None,
        "packets_sent": found["sent"],
        "packets_lost": found["lost"],
        "delay_ms": None,
        "jitter_ms": found["jitter_ms"],
    }


def _tcp_flow(phase: Phase, one: Record, found: Figures) -> FlowSummary:
    trips = [] if one["samples"] is None else _known(one["samples"]["srtt_ms"])
    rtt = _quantiles(trips)
    return {
        "id": phase.name,
        "kind": "bulk",
        "direction": phase.direction or "down",
        "ue": None,
        "congestion": found["congestion"],
        "profile": None,
        "bytes_delivered": found["carried_bytes"],
        "goodput_mbps": found["goodput_mbps"],
        "written_mbps": None,
        "rtt_ms": rtt,
        "self_inflicted_delay_ms": None if rtt is None else rtt["p95"] - rtt["min"],
        "power": None if rtt is None else found["goodput_mbps"] / (rtt["mean"] / 1e3),
        "segments_sent": found["segments"],
        "retransmitted_segments": found["retransmitted_segments"],
        "rto_count": None,
        "undo_count": None,
        "tail_loss_probes": None,
        "ecn_reductions": None,
        "steady_mbps": found["steady_mbps"],
        "converged_after_s": found["ramp_s"],
        "completed_s": None,
        "slow_start_exit": None,
        "limited_s": _limited(phase, found),
        "packets_sent": None,
        "packets_lost": None,
        "delay_ms": None,
        "jitter_ms": None,
    }


def _limited(phase: Phase, found: Figures) -> LimitSeconds | None:
    """What limited the sender, in seconds; None if nobody read its TCP_INFO."""
    if not found["limited"]:
        return None
    window_s, buffer_s = (
        phase.duration_s * found["limited"].get(each, 0.0)
        for each in ("receive_window", "send_buffer")
    )
    return {
        "cwnd": max(0.0, phase.duration_s - window_s - buffer_s),
        "pacing": 0.0,
        "receive_window": window_s,
        "send_buffer": buffer_s,
        "application": 0.0,
    }


def _ping(phase: Phase, probes: Trips) -> PingSummary:
    trips = _known(probes["rtt_ms"])
    sent = len(probes["rtt_ms"])
    return {
        "id": phase.name,
        "sent": sent,
        "lost": sent - len(trips),
        "rtt_ms": _quantiles(trips),
    }


def _known(values: Sequence[float | None]) -> list[float]:
    return [one for one in values if one is not None]


def _quantiles(trips: Sequence[float]) -> Quantiles | None:
    if not trips:
        return None
    middle, high, most = (float(one) for one in np.quantile(trips, [0.5, 0.95, 0.99]))
    return {
        "min": min(trips),
        "mean": float(np.mean(trips)),
        "mdev": float(np.std(trips)),
        "p50": middle,
        "p95": high,
        "p99": most,
        "max": max(trips),
    }


def _write_tables(place: Path, course: Course, metadata: dict[str, str]) -> None:
    pairs = course.pairs()
    tables = {
        "flows": _rows(_flow_row(flow, *pair) for pair in pairs if (flow := _flow(*pair))),
        "samples": _rows(row for pair in pairs for row in _sample_rows(*pair)),
        "pings": _rows(row for pair in pairs for row in _ping_rows(*pair)),
        "rtt_histogram": _rows(row for pair in pairs for row in _histogram_rows(*pair)),
        "links": {},
        "events": {},
    }
    for name, columns in tables.items():
        write_table(place, name, columns, metadata)


def _rows(rows: Iterator[dict[str, object]]) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _flow_row(flow: FlowSummary, _: Phase, one: Record) -> dict[str, object]:
    rtt = flow["rtt_ms"]
    limited = flow["limited_s"]
    kept = (
        "kind", "direction", "congestion", "bytes_delivered", "goodput_mbps", "segments_sent",
        "retransmitted_segments", "steady_mbps", "converged_after_s", "self_inflicted_delay_ms",
        "power", "packets_sent", "packets_lost", "jitter_ms",
    )  # fmt: skip
    row: dict[str, object] = {"flow": flow["id"], **{each: dict(flow)[each] for each in kept}}
    row["start_ns"], row["end_ns"] = (
        round(at * NS_PER_S) for at in (one["started_s"], one["ended_s"])
    )
    for each in ("min", "mean", "p50", "p95", "p99"):
        row[f"rtt_ms_{each}"] = None if rtt is None else dict(rtt)[each]
    for each in ("cwnd", "pacing", "receive_window", "send_buffer", "application"):
        row[f"{each}_limited_s"] = None if limited is None else dict(limited)[each]
    return row


def _sample_rows(phase: Phase, one: Record) -> Iterator[dict[str, object]]:
    samples = one["samples"]
    if samples is None:
        return
    before = 0
    for at, time_s in enumerate(samples["time_s"]):
        total = samples["delivered_bytes"][at]
        step_s = time_s - (samples["time_s"][at - 1] if at else 0.0)
        yield {
            "time_ns": round((one["started_s"] + time_s) * NS_PER_S),
            "flow": phase.name,
            "goodput_mbps": (total - before) * 8e-6 / step_s,
            "delivered_bytes": total,
            "cwnd_segments": samples["cwnd_segments"][at],
            "ssthresh_segments": samples["ssthresh_segments"][at],
            "srtt_ms": samples["srtt_ms"][at],
            "inflight_segments": samples["inflight_segments"][at],
        }
        before = total


def _ping_rows(phase: Phase, one: Record) -> Iterator[dict[str, object]]:
    if one["probes"] is None:
        return
    both = zip(one["probes"]["sent_s"], one["probes"]["rtt_ms"], strict=True)
    for at, (sent_s, trip) in enumerate(both):
        yield {
            "flow": phase.name,
            "sequence": at,
            "sent_ns": max(0, round(sent_s * NS_PER_S)),
            "rtt_ms": trip,
            "lost": trip is None,
        }


def _histogram_rows(phase: Phase, one: Record) -> Iterator[dict[str, object]]:
    """Counts of the sender's smoothed RTT, each range 2 % wide."""
    trips = [] if one["samples"] is None else _known(one["samples"]["srtt_ms"])
    if not trips:
        return
    width = math.log(_RANGE)
    for place, number in sorted(
        Counter(math.floor(math.log(trip) / width) for trip in trips).items()
    ):
        yield {
            "flow": phase.name,
            "low_ms": math.exp(place * width),
            "high_ms": math.exp((place + 1) * width),
            "count": number,
        }
