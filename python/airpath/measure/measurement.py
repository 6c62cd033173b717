"""Run a plan against a server, block by block, until it is done or precise enough."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.files import read_regular
from airpath.base.json import parsed
from airpath.base.shapes import MisfitError, fitted
from airpath.errors import AirpathError, InputError
from airpath.measure.analysis import base_rates, rate_found
from airpath.measure.document import Figures, Nats, Record
from airpath.measure.intervals import anytime, narrow_enough
from airpath.measure.outcome import Outcome, record
from airpath.measure.plan import (
    BASE,
    OTHER_SERVER,
    OVERHEAD,
    Direction,
    Far,
    Known,
    Phase,
    Plan,
    Probing,
    Treatment,
    draw,
    draw_idle,
    usual,
)
from airpath.measure.stream import available, buffer_limit
from airpath.measure.udp import lost_share

if TYPE_CHECKING:
    from airpath.measure.session import Session

PLAN = "plan.json"
PHASES = "phases.jsonl"
CAPTURES = "captures"
_MOST_BYTES = 64 << 20
_LEAST_VALUES = 2
_LEAST_PROBES = 5
_MTU_BYTES = 1500
_UDP_HEADER_BYTES = 48
"""UDP and IPv6; IPv4 has fewer."""
MOST_WINDOW_BYTES = 16 << 20
_SCOUT_S, _SCOUT_GAP_S = 2.0, 0.05
_LEAST_MBPS = 0.01
"""Rate of a path that carries nothing."""
_WAITED = 0.1


@dataclass(frozen=True)
class Server:
    """Where ``airpath serve`` runs, and its token."""

    host: str
    port: int
    token: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Server, duration and limits of a measurement."""

    host: str
    far: Far = "airpath"
    port: int
    token: str
    also: Server | None = None
    """Another server, with which phases without a change alternate."""
    directions: Sequence[Direction] = ("down",)
    time_s: float = 60.0
    data_bytes: int = 500_000_000
    until: float | None = None
    """Stop when half of the interval of the steady rate is at most this share of it."""
    seed: int | None = None
    """Seed of the order of treatments; None: a random one."""
    resume: Path | None = None
    """A measurement whose remaining phases run now."""
    again: Path | None = None
    """A measurement whose plan runs again, within its own limits of time and data."""
    capture: bool = False
    """Keep the captures of this host in the run directory."""
    binding_s: float | None = None
    """Find out how long a UDP binding lives in silence, up to so many seconds; None: do not."""
    out: Path | None = None
    command_line: list[str] | None = None
    progress: Callable[[float], None] = lambda _: None
    say: Callable[[str], None] = lambda _: None

    def with_progress(self, progress: Callable[[float], None]) -> MeasureOptions:
        """The options with a function that learns the share of the work that is done."""
        return replace(self, progress=progress)


@dataclass
class Course:
    """A measurement under way: its plan, and the records so far."""

    plan: Plan
    records: list[Record]
    stopped: str = ""
    """Why it ended; empty while it runs."""
    opened_ms: float | None = None
    """How long its first connection took to open."""
    untransferred: list[str] = field(default_factory=list)
    """Why no transfer is possible, or not in a direction; empty if all are."""
    unopened: bool = False
    """Whether no TCP connection opened."""
    nats: Nats | None = None

    def pairs(self) -> list[tuple[Phase, Record]]:
        """Each record with its phase."""
        phases = {one.number: one for one in self.plan.phases}
        return [(phases[one["number"]], one) for one in self.records]


def planned(options: MeasureOptions, session: Session) -> Course:
    """A new plan for the rate that a short transfer finds, or that of another measurement."""
    if options.resume is not None:
        return _with_servers(
            resumed(options.resume, options.host, options.far), options, options.resume
        )
    if options.far == "ping":
        left = replace(options, time_s=max(1.0, options.time_s - session.now()))
        return Course(drawn(left, [], Known(probing="echo")), [], opened_ms=session.opened_ms)
    if session.uncaptured:
        if options.capture:
            raise AirpathError(
                f"--capture: this host cannot capture packets ({session.uncaptured})"
            )
        options.say(
            f"this host captures no packets ({session.uncaptured}): causes that no treatment "
            "removes are harder to identify; run airpath as root or with CAP_NET_RAW"
        )
    if options.again is not None:
        course = Course(resumed(options.again).plan, [], opened_ms=session.opened_ms)
        return _with_servers(course, options, options.again)
    host = session.welcome.host
    found = host.get("congestion", [])
    far = found if isinstance(found, list) else []
    probing: Probing = "stamp" if options.far == "airpath" else "echo"
    if session.unprobed:
        probing = "none"
    scouted, untransferred = _scouts(options, session, probing)
    spent = sum(round(OVERHEAD * one["carried_bytes"]) + _after(options, one) for one in scouted)
    rates = [max(one["steady_mbps"], one["goodput_mbps"]) for one in scouted]
    if session.welcome.limits.rate_mbps is not None:
        rates.append(session.welcome.limits.rate_mbps)
    left = replace(
        options,
        directions=[one for one in options.directions if one not in untransferred],
        time_s=max(1.0, options.time_s - session.now()),
        data_bytes=max(1, options.data_bytes - spent),
    )
    system = next((one["congestion"] for one in scouted if one["congestion"]), None)
    treatments = tried(options, usual(_common(far), system, _window(host)), scouted)
    trips = [one["loaded_ms"] for one in scouted if one["loaded_ms"] is not None]
    known = Known(
        max([*rates, _LEAST_MBPS]), max(trips, default=None), probing, session.pause_trips
    )
    plan = drawn(left, treatments, known)
    said = [f"no transfer is possible ({one}): {why}" for one, why in untransferred.items()]
    return Course(plan, [], opened_ms=session.opened_ms, untransferred=said)


def tried(
    options: MeasureOptions, treatments: Sequence[Treatment], scouted: Sequence[Figures]
) -> list[Treatment]:
    """The treatments of a plan, most important first: ``base``, the other server, the rest."""
    base, *rest = worthwhile(treatments, scouted)
    return [base, *([OTHER_SERVER] if options.also is not None else []), *rest]


def _with_servers(course: Course, options: MeasureOptions, directory: Path) -> Course:
    """A course for which the servers of its plan are there."""
    needs = any(one.treatment.other for one in course.plan.phases)
    if needs and options.also is None:
        raise InputError(f"{directory} has phases with a second server: name it with --also")
    if options.also is not None and not needs:
        raise InputError(f"{directory} has no phases with a second server: leave out --also")
    return course


def drawn(
    options: MeasureOptions,
    treatments: Sequence[Treatment],
    known: Known,
) -> Plan:
    """Draw a plan for a path of which this is known."""
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    within = (options.time_s, options.data_bytes)
    if options.far == "ping" or not options.directions:
        return draw_idle(seed, *within, known.probing)
    return draw(seed, treatments, options.directions, *within, known)


def _window(host: Mapping[str, object]) -> int:
    """The largest buffer that both ends may set."""
    limits = [host.get(name) for name in ("receive_set_max", "send_set_max")]
    sizes = [one for one in limits if isinstance(one, int)]
    if os.geteuid() != 0:
        sizes += [most for name in ("rmem_max", "wmem_max") if (most := buffer_limit(name))]
    return min([MOST_WINDOW_BYTES, *sizes])


def _common(far: Sequence[str]) -> set[str]:
    """Congestion controls that both ends have."""
    return set(available()) & set(far)


def worthwhile(treatments: Sequence[Treatment], scouted: Sequence[Figures]) -> list[Treatment]:
    """The treatments that may change something, after a first look in each direction.

    Where large segments do not arrive, only smaller ones do; where they do, these change nothing.
    A larger window is tried where the sender waited for one, or lost nothing.
    """
    if any(one["goodput_mbps"] <= _LEAST_MBPS for one in scouted):
        return [one for one in treatments if one.options.mss_bytes or one.name == BASE]
    waited = any(
        not one["retransmitted_segments"] or max(one["limited"].values(), default=0.0) >= _WAITED
        for one in scouted
    )
    return [
        one
        for one in treatments
        if not one.options.mss_bytes and (waited or not one.options.window_bytes)
    ]


def _scouts(
    options: MeasureOptions, session: Session, probing: Probing
) -> tuple[list[Figures], dict[Direction, str]]:
    """A short transfer in each direction; of the other directions, why there is none.

    Raises ``AirpathError`` if there is nothing else to measure either.
    """
    scouted, failed = [], {}
    for direction in options.directions:
        kept = _scout(options, session, direction)
        if kept["figures"] is not None:
            scouted.append(kept["figures"])
        else:
            failed[direction] = "; ".join(kept["errors"])
    if not scouted and probing == "none":
        raise AirpathError(f"no transfer is possible: {'; '.join(failed.values())}")
    return scouted, failed


def _scout(options: MeasureOptions, session: Session, direction: Direction) -> Record:
    """A short transfer, which shows the rate and which treatments are worth their time."""
    most = options.data_bytes // 10
    phase = Phase(0, -1, "tcp", direction, Treatment(BASE), _SCOUT_S, most, _SCOUT_GAP_S)
    kept = record(session.run(phase, None, most))
    options.say(f"first look, {told(phase, kept)}")
    session.drain()
    return kept


def resumed(directory: Path, host: str | None = None, far: Far = "airpath") -> Course:
    """Read the plan and the records of a measurement.

    Raises ``InputError`` if they are damaged, or of another server than ``host``.
    """
    try:
        table = parsed(read_regular(directory / PLAN, _MOST_BYTES).decode())
        plan = Plan.from_json(table)
        lines = read_regular(directory / PHASES, _MOST_BYTES).decode().splitlines()
    except FileNotFoundError as missing:
        raise InputError(
            f"{directory} is not a measurement: {missing.filename} is missing"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{directory} is damaged: {error}") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            one: Record = fitted(parsed(line), Record)
        except (ValueError, RecursionError, MisfitError) as error:
            raise InputError(f"{directory / PHASES}:{number} is damaged: {error}") from None
        if not 0 <= one["number"] < len(plan.phases):
            raise InputError(
                f"{directory / PHASES}:{number} is damaged: the plan has no such phase"
            )
        records.append(one)
    if host is not None and table.get("server") != host:
        raise InputError(f"{directory} was measured against {table.get('server')}, not {host}")
    if host is not None and table.get("far", "airpath") != far:
        raise InputError(
            f"{directory} was measured with --far {table.get('far', 'airpath')}, not {far}"
        )
    if host is not None and len(records) == len(plan.phases):
        raise InputError(f"{directory} is complete: it has all {len(records)} phases")
    opened_ms = table.get("opened_ms")
    return Course(plan, records, opened_ms=opened_ms if isinstance(opened_ms, float) else None)


def run(
    course: Course,
    session: Session,
    options: MeasureOptions,
    journal: Path,
    other: Session | None = None,
) -> None:
    """Run the phases that are left; each is kept in the journal as soon as it is over.

    ``other`` is the session with the other server, if phases need it.
    Interrupted, ``course`` has what was measured until then.
    """
    done = {one["number"] for one in course.records}
    left = [one for one in course.plan.phases if one.number not in done]
    begun_s = max((one["ended_s"] for one in course.records), default=0.0)
    time_s = options.time_s if options.again is None else course.plan.time_s
    with journal.open("a", encoding="utf-8") as file:
        for one in course.records:
            file.write(json.dumps(one) + "\n")
        for at, phase in enumerate(left):
            options.progress(at / len(left))
            serving = session
            if other is not None:
                for each in (session, other):
                    each.stay()
                serving = other if phase.treatment.other else session
            if phase.kind in ("idle", "udp") and _is_udp_blocked(course, phase):
                continue
            if session.now() + phase.quiet_s + phase.duration_s > time_s:
                course.stopped = f"its time limit was reached ({time_s:g} s)"
                return
            after = [_in_flight(options, one) for one in course.records]
            # What arrives after this phase must fit, too.
            spent = sum(map(_spent, course.records)) + sum(after) + max(after, default=0)
            most = course.plan.allowance(phase.number, spent)
            outcome = _outcome(course, serving, phase, most)
            if options.capture and outcome.packets:
                _keep(journal.parent / CAPTURES, phase, outcome.packets)
            kept = record(outcome)
            kept["started_s"] += begun_s
            kept["ended_s"] += begun_s
            course.records.append(kept)
            file.write(json.dumps(kept) + "\n")
            file.flush()
            options.say(told(phase, kept))
            if phase.kind == "idle" and _is_udp_blocked(course, phase):
                at_fault = options.also if phase.treatment.other and options.also else options
                what = (
                    f"UDP datagram came back: is UDP port {at_fault.port} of {at_fault.host} open?"
                    if options.far == "airpath"
                    else "ICMP echo came back."
                )
                options.say(f"no {what} Phases that need it are left out")
            if _ends_block(course.plan, phase) and _is_precise(course, options):
                course.stopped = (
                    f"the steady rate has the requested precision ({options.until:.0%})"
                )
                return
            if phase.kind in ("tcp", "udp"):
                serving.drain()
    course.stopped = "the plan is done"


def _keep(place: Path, phase: Phase, packets: bytes) -> None:
    place.mkdir(exist_ok=True)
    file = place / f"{phase.name}.pcap"
    file.touch(0o600, exist_ok=False)
    file.write_bytes(packets)


def _is_udp_blocked(course: Course, phase: Phase) -> bool:
    """Whether probes of the idle path were sent to the phase's server, and none was answered."""
    probes = [
        one["probes"]["rtt_ms"]
        for before, one in course.pairs()
        if before.kind == "idle"
        and one["probes"] is not None
        and before.treatment.other == phase.treatment.other
    ]
    sent = sum(map(len, probes))
    return sent >= _LEAST_PROBES and all(trip is None for one in probes for trip in one)


def _outcome(course: Course, session: Session, phase: Phase, most: int) -> Outcome:
    try:
        pacing = _pacing(course, phase)
    except AirpathError as error:
        return Outcome(phase, session.now(), session.now(), errors=[str(error)])
    return session.run(phase, pacing, most)


def _spent(kept: Record) -> int:
    """Bytes of a phase on the path, with retransmissions beyond those that are planned for."""
    figures, sent = kept["figures"], kept["udp"]
    if sent is not None:
        return sent["sent"] * (sent["size_bytes"] + _UDP_HEADER_BYTES)
    if figures is None:
        return 0
    return max(round(OVERHEAD * figures["carried_bytes"]), _MTU_BYTES * figures["segments"])


def _in_flight(options: MeasureOptions, kept: Record) -> int:
    return 0 if kept["figures"] is None else _after(options, kept["figures"])


def _after(options: MeasureOptions, figures: Figures) -> int:
    """Bytes that still arrive when this end has ended a phase whose sender does not: one RTT's."""
    if options.far == "airpath":
        return 0
    return round(figures["steady_mbps"] * 125 * (figures["loaded_ms"] or 0.0))


def _pacing(course: Course, phase: Phase) -> float | None:
    """The rate of a paced treatment: a share of the steady rate of base phases so far.

    With UDP it is a share of the rate found, the mean of the fastest treatment.
    """
    share = phase.treatment.pace_share
    if share is None:
        return None
    direction = phase.direction or "down"
    if phase.kind == "udp":
        mean = rate_found(course.pairs(), direction)
    else:
        rates = base_rates(course.pairs(), direction)
        mean = sum(rates) / len(rates) if rates else 0.0
    if mean <= 0:
        raise AirpathError(f"{BASE} carried no data, so the rate to pace at is unknown")
    return max(0.01, share * mean)


def _ends_block(plan: Plan, phase: Phase) -> bool:
    later = [one for one in plan.phases if one.number > phase.number and one.kind == "tcp"]
    return phase.kind == "tcp" and all(one.block != phase.block for one in later)


def _is_precise(course: Course, options: MeasureOptions) -> bool:
    if options.until is None:
        return False
    for direction in {one.direction for one in course.plan.phases if one.kind == "tcp"}:
        rates = base_rates(course.pairs(), direction or "down")
        if len(rates) < _LEAST_VALUES or not narrow_enough(anytime(rates), options.until):
            return False
    return True


def told(phase: Phase, kept: Record) -> str:
    """A line of narration."""
    from airpath.base.text import milliseconds, percent, rate

    what = " ".join([phase.kind, *([phase.direction] if phase.direction else [])])
    if phase.kind != "mtu":
        what += f", {phase.treatment.name}"
    if kept["errors"]:
        return f"{what}: {'; '.join(kept['errors'])}"
    said = []
    if kept["figures"] is not None:
        said.append(rate(kept["figures"]["steady_mbps"]))
    trips = [] if kept["probes"] is None else [one for one in kept["probes"]["rtt_ms"] if one]
    if trips:
        said.append(f"RTT {milliseconds(sorted(trips)[len(trips) // 2])}")
    if kept["udp"] is not None:
        said.append(f"{rate(kept['udp']['sent_mbps'])}, {percent(lost_share(kept['udp']))} lost")
    if kept["mtu"] is not None:
        said.append(f"{kept['mtu']['path_bytes']} bytes")
    return f"{what}: {', '.join(said) or 'nothing arrived'}"
