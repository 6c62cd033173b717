r"""What ``airpath measure`` sends: phases, treatments, and randomised paired blocks.

A treatment is one change at one end: pacing, more streams, another congestion control. Each block
has every treatment once, in random order, so that a drift of the radio cell hits all treatments
alike (randomised complete blocks, Fisher 1935), and what a treatment changes is judged within
blocks. A plan follows from its seed, and its JSON is what ``--resume`` reads.

    plan = draw(1, usual({"cubic", "bbr"}, "cubic"), ["down"], time_s=60, data_bytes=500_000_000)
    print("\n".join(plan.lines()))
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, get_args

from airpath.base.shapes import Length, MisfitError, Range, fitted
from airpath.base.text import milliseconds, size
from airpath.errors import AirpathError, InputError
from airpath.measure.stream import Options

Direction = Literal["down", "up"]
Kind = Literal["idle", "tcp", "udp", "mtu"]
Far = Literal["airpath", "iperf3", "ping"]
"""What the far end runs: ``airpath serve``, ``iperf3 -s``, or nothing: it only answers pings."""
Probing = Literal["stamp", "echo", "none"]
"""What probes the path: STAMP, ICMP echo, or nothing, because no echo comes back."""

VERSION = 1
BASE, ALSO = "base", "also"
KEEP_ALIVE_S = 0.02
"""Time between keep-alive datagrams: shorter than the inactivity timer of DRX (TS 38.331,
drx-InactivityTimer: at least 1 ms, in networks commonly 10 to 100 ms)."""
STAMP_BYTES = 160
"""An authenticated STAMP packet (RFC 8762 4.2.2: 112 bytes) with UDP and IPv6 headers."""
OVERHEAD = 1.10
"""Bytes on the path per byte of payload, at most as planned: headers (5 % with an MSS of 1,000
bytes), acknowledgements (2 %) and retransmissions."""
LEAST_BLOCKS = 2
LEAST_WINDOW_BYTES = 4 << 20
LEAST_TCP_S = 3.0
"""A TCP phase that is shorter is mostly slow start."""
USUAL_TCP_S = 4.0
_SHORT_TCP_S = (2.0, 1.0, 0.5)
MOST_FIRST_S = 10.0
MOST_PHASES = 2000
"""With which a plan is still read and printed."""
_LEAST_TCP_BYTES = 100_000
_USEFUL_TCP_BYTES = 1_000_000
"""Rather than having less in each phase, there are fewer blocks."""
UDP_SHARES = {"udp-50": 0.5, "udp-95": 0.95, "udp-115": 1.15}
"""UDP treatments: below, at and above the rate found, as shares of it. 95 % leaves a twentieth for
what the rate drifts; at 115 % a seventh of what is sent does not fit."""
UDP_BYTES = 1280
"""Length of a UDP treatment's IP datagrams: every path carries them (RFC 8200 5)."""
_UDP_S, _LEAST_UDP_S, _UDP_DATAGRAMS = 0.6, 0.2, 10_000
"""Length of a UDP phase: shorter on fast paths, where this many datagrams show a loss of 0.1 %."""
MOST_UDP_MBPS = 200.0
"""Rate that both ends still send and receive: 20,000 datagrams per second take a fifth of a core of
2020 at each end."""
_UDP_AFTER_S = 0.5
"""How long a receiver waits for the last datagrams (`datagrams._SILENCE_S`)."""
_UDP_BLOCKS = 2
_UDP_SHARE = 0.15
"""Share of the time and of the data that UDP may take: less than a treatment of TCP has."""
_UDP_MARGIN = 2.0
"""The rate found may exceed the one for which the plan is drawn; a UDP phase is shorter then."""
_MTU_S = 1.0
_MTU_BYTES = 250_000
_IDLE_S = 1.5
_IDLE_PAIRS = 4
_IDLE_SHARE = 0.2
_IDLE_PARTS = 8
"""Without transfers an idle phase takes an eighth of a short time: two pairs, and as much again."""
_IDLE_GAP_S = 0.15
_QUIET_S = 4.0
_TCP_GAP_S = 0.05
_REQUEST_GAP_S, _REQUEST_BYTES, _REQUEST_SHARE = 0.1, 1000, 0.05
"""Requests take at most 5 % of the rate (PTC of draft-ietf-ippm-responsiveness-09)."""
_PAUSE_S = 0.3
_MOST_PAUSE_S = 3.0
_USUAL_TRIPS, _LEAST_TRIPS = 60, 45
"""Lengths in round trips: slow start to a BDP of 1,000 segments takes 7, a recovery of CUBIC some
tens."""
PAUSE_TRIPS = 5
"""Round trips between two phases of TCP in which none is measured."""


@dataclass(frozen=True)
class Treatment:
    """One change for the time of a phase; ``base`` leaves both systems as they are."""

    name: str
    options: Options = field(default_factory=Options)
    streams: int = 1
    keep_alive: bool = False
    """Whether datagrams every ``KEEP_ALIVE_S`` keep the radio awake."""
    pace_share: float | None = None
    """Pacing at this share of the steady rate of earlier base phases; resolved when the phase
    starts. With UDP: sending at this share of the rate found, that of the fastest treatment."""
    other: bool = False
    """Whether the phase is with the other server."""

    def to_json(self) -> dict[str, object]:
        """Return the treatment as a JSON table."""
        return {
            "name": self.name,
            "options": self.options.to_json(),
            "streams": self.streams,
            "keep_alive": self.keep_alive,
            "pace_share": self.pace_share,
            "other": self.other,
        }


@dataclass(frozen=True)
class Phase:
    """A part of a measurement during which nothing is changed."""

    number: int
    block: int
    """Paired phases have the same block number; -1 for an ``mtu`` phase."""
    kind: Kind
    direction: Direction | None
    """None for ``idle``."""
    treatment: Treatment
    duration_s: float
    most_bytes: int
    """Payload that the phase may carry at most: ``tcp`` application data, otherwise IP datagrams.
    All phases together, headers included, stay within the plan's ``data_bytes``."""
    probe_gap_s: float | None = None
    """Mean time between STAMP probes. The times between probes are exponential, so that each state
    of DRX is sampled as often as it occurs (RFC 2330 11.1.1)."""
    quiet_s: float = 0.0
    """Silence before the phase. The first probe after it shows a promotion of the RRC state."""
    request_gap_s: float | None = None
    """Time between new connections with a request beside a ``tcp`` phase (responsiveness)."""
    size_bytes: int | None = None
    """Length of each IP datagram of a ``udp`` phase."""

    @property
    def name(self) -> str:
        """The id of the phase's flow or ping: ``7-down-paced``."""
        return f"{self.number}-{self.direction or self.kind}-{self.treatment.name}"

    @property
    def is_captured(self) -> bool:
        """Whether its packets are judged; the first transfer, which is in no block, is not."""
        return self.treatment.name == BASE and self.block >= 0

    @property
    def path_bytes(self) -> int:
        """Bytes that the phase puts on the path at most, both directions, headers included."""
        probes = _probe_bytes(self)
        return probes + math.ceil(self.most_bytes * (OVERHEAD if self.kind == "tcp" else 1.0))

    def to_json(self) -> dict[str, object]:
        """Return the phase as a JSON table."""
        return {
            "number": self.number,
            "block": self.block,
            "kind": self.kind,
            "direction": self.direction,
            "treatment": self.treatment.to_json(),
            "duration_s": self.duration_s,
            "most_bytes": self.most_bytes,
            "probe_gap_s": self.probe_gap_s,
            "quiet_s": self.quiet_s,
            "request_gap_s": self.request_gap_s,
            "size_bytes": self.size_bytes,
        }


@dataclass(frozen=True)
class Plan:
    """All phases of a measurement, in the order in which they run."""

    seed: int
    phases: list[Phase]
    data_bytes: int
    """The bytes that both directions may carry together."""
    time_s: float
    dropped: list[str] = field(default_factory=list)
    """Treatments that time or data do not allow."""
    pause_s: float = _PAUSE_S
    """Time after a phase with load, in which connections close and queues drain."""

    def duration_s(self) -> float:
        """Return how long the measurement takes, in seconds, pauses included."""
        return sum(
            one.quiet_s + one.duration_s + _after_s(one.kind, self.pause_s) for one in self.phases
        )

    def most_bytes(self, rate_mbps: float | None = None) -> int:
        """Return how many bytes the plan puts on the path at most, in both directions together.

        ``rate_mbps`` is the most that the path carries, where that is known.
        """
        return sum(_bytes_at(one, rate_mbps) for one in self.phases)

    def allowance(self, number: int, spent_bytes: int) -> int:
        """Return the bytes that a phase may carry, after ``spent_bytes`` on the path.

        What earlier phases left over goes to the later ones of TCP in proportion to their duration,
        and is never less than nothing: the total stays within ``data_bytes``.
        """
        phase = next(one for one in self.phases if one.number == number)
        if phase.kind == "udp":
            return max(0, min(phase.most_bytes, self.data_bytes - spent_bytes))
        if phase.kind != "tcp":
            return phase.most_bytes
        later = [one for one in self.phases if one.number >= number]
        fixed = sum(_fixed_bytes(one) for one in later)
        weight = sum(one.duration_s for one in later if one.kind == "tcp")
        left = (self.data_bytes - spent_bytes - fixed) / OVERHEAD
        return max(0, math.floor(left * phase.duration_s / weight))

    def blocks(self, direction: Direction) -> int:
        """Return the number of TCP blocks in a direction."""
        return len({o.block for o in self.phases if o.kind == "tcp" and o.direction == direction})

    def lines(self, rate_mbps: float | None = None) -> list[str]:
        """Describe for ``--plan`` what is sent, for how long and how much at most."""
        told = [
            f"{len(self.phases)} phases, {_seconds(self.duration_s())}, at most "
            f"{size(self.most_bytes(rate_mbps))}{_assumed(rate_mbps)} of {size(self.data_bytes)}; "
            f"seed {self.seed}"
        ]
        for direction in get_args(Direction):
            told += self._blocks_told(direction)
        if any(one.duration_s < LEAST_TCP_S for one in self.phases if one.kind == "tcp"):
            told.append(
                f"TCP phases are shorter than {LEAST_TCP_S:g} s and may not reach the steady rate: "
                "allow more with --time and --data"
            )
        if self.dropped:
            told.append(
                f"Left out, because {_seconds(self.time_s)} and {size(self.data_bytes)} are too "
                f"little: {', '.join(self.dropped)}"
            )
        return told + [_line(one, rate_mbps) for one in self.phases]

    def _blocks_told(self, direction: Direction) -> list[str]:
        count = self.blocks(direction)
        if not count:
            return []
        way = "Downlink" if direction == "down" else "Uplink"
        names = sorted({o.treatment.name for o in self.phases if o.kind == "tcp"})
        return [f"{way}: {count} blocks, each with {', '.join(names)} once in random order"]

    def to_json(self) -> dict[str, object]:
        """Return the plan as a JSON table."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "data_bytes": self.data_bytes,
            "time_s": self.time_s,
            "pause_s": self.pause_s,
            "dropped": list(self.dropped),
            "phases": [one.to_json() for one in self.phases],
        }

    @staticmethod
    def from_json(table: Any) -> Plan:
        """Read what ``to_json`` made. Raises ``InputError`` that names the damaged field."""
        try:
            data = fitted(table, _PlanTable)
            if data["version"] != VERSION:
                raise MisfitError(f"is {data['version']}; this airpath reads {VERSION}", "version")
            phases = [_phase(one, index) for index, one in enumerate(data["phases"])]
        except MisfitError as fault:
            raise InputError(f"the measurement plan is damaged: {fault}") from None
        plan = Plan(
            data["seed"],
            phases,
            data["data_bytes"],
            data["time_s"],
            data["dropped"],
            data["pause_s"],
        )
        if plan.most_bytes() > plan.data_bytes:
            raise InputError(
                f"the measurement plan is damaged: its phases carry {plan.most_bytes()} bytes; "
                f"expected at most data_bytes = {plan.data_bytes}"
            )
        return plan


def usual(
    available: Collection[str], system: str | None = None, window_bytes: int = 16 << 20
) -> tuple[Treatment, ...]:
    """Return the usual treatments, most important first.

    ``available`` are the congestion controls that both ends have, ``system`` is the sender's own.
    ``window_bytes`` is the largest buffer that both ends may set; below ``LEAST_WINDOW_BYTES`` it
    would be smaller than what Linux tunes by itself, and no treatment.
    """
    other = next((o for o in ("bbr", "reno", "cubic") if o in available and o != system), None)
    chosen = [Treatment(BASE), Treatment("paced", pace_share=0.85)]
    if other is not None:
        chosen.append(Treatment(other, Options(congestion=other)))
    chosen += [
        Treatment("streams-4", streams=4),
        Treatment("mss-1000", Options(mss_bytes=1000)),
    ]
    if window_bytes >= LEAST_WINDOW_BYTES:
        chosen.insert(-1, Treatment("window", Options(window_bytes=window_bytes)))
    return tuple(chosen)


OTHER_SERVER = Treatment(ALSO, other=True)
"""Nothing is changed but the server."""


@dataclass(frozen=True)
class Known:
    """What is known of a path before its plan is drawn."""

    rate_mbps: float | None = None
    """The rate of the path, or a limit; None: unknown."""
    rtt_ms: float | None = None
    """The RTT beside a transfer; None: unknown, which counts as slow."""
    probing: Probing = "stamp"
    pause_trips: int = PAUSE_TRIPS
    """How many round trips the far end needs between two phases."""


NOTHING_KNOWN = Known()


def draw(
    seed: int,
    treatments: Sequence[Treatment],
    directions: Sequence[Direction],
    time_s: float,
    data_bytes: int,
    known: Known = NOTHING_KNOWN,
) -> Plan:
    """Draw a plan that keeps within ``time_s`` and ``data_bytes``.

    Phases last as many round trips as slow start and recovery take.

    ``treatments`` is in order of importance and has ``base`` first: where two blocks with phases
    of ``LEAST_TCP_S`` do not fit, the last is left out, then the one before it. If the rate of the
    path is known, a phase counts as fitting only if the data also suffices for it at this rate.
    Where ``base`` and one other treatment do not fit either, phases are shorter.
    Raises ``InputError`` if two blocks of 0.5 s phases do not fit.
    """
    _check_request(treatments, directions, time_s, data_bytes)
    generator = random.Random(f"airpath measure {seed}")  # noqa: S311
    probing = known.probing
    others = [one for one in treatments if one.other]
    start = _before_tcp(time_s, generator, probing, others=others)
    lengths = _Lengths.of(known.rtt_ms, known.pause_trips)
    used_s = sum(one.quiet_s + one.duration_s + _PAUSE_S for one in start)
    left_bytes = data_bytes - sum(one.path_bytes for one in start)
    counts = (len(treatments), len(directions))
    room = _Room(counts, lengths, time_s - used_s, left_bytes, known.rate_mbps)
    shape = room.shape()
    if shape is None:
        raise InputError(
            f"{_seconds(time_s)} and {size(data_bytes)} are too little for {LEAST_BLOCKS} blocks "
            f"of {_SHORT_TCP_S[-1]:g} s phases: allow more with --time and --data"
        )
    udp: list[dict[str, int]] = []
    if probing == "stamp":
        shape, udp = _with_udp(room, shape, _UDP_SHARE * time_s, _UDP_SHARE * data_bytes)
    kept = treatments[: shape.treatments]
    phases = start + _blocks(kept, directions, shape, udp, generator)
    if probing == "none":
        phases = [replace(one, probe_gap_s=None) for one in phases]
    phases = [replace(one, number=number) for number, one in enumerate(phases)]
    most = max(one.streams for one in kept)
    gap_s = _request_gap_s(known.rate_mbps) if probing == "stamp" else None
    phases = [
        replace(one, request_gap_s=gap_s)
        if one.kind == "tcp"
        and (one.treatment.streams == most > 1 or (most == 1 and one.treatment.name == BASE))
        else one
        for one in phases
    ]
    dropped = [one.name for one in treatments[shape.treatments :]]
    dropped += ["udp"] if probing == "stamp" and not udp else []
    phases = _with_data(phases, data_bytes)
    return Plan(seed, phases, data_bytes, time_s, dropped, lengths.pause_s)


def draw_idle(seed: int, time_s: float, data_bytes: int, probing: Probing = "echo") -> Plan:
    """Draw a plan without transfers: phases without load fill ``time_s``.

    Raises ``InputError`` if two blocks do not fit into time and data.
    """
    _check_limits(time_s, data_bytes)
    seeded, each_s = f"airpath measure {seed}", _rounded(min(_IDLE_S, time_s / _IDLE_PARTS))
    *start, first, second = _before_tcp(time_s, random.Random(seeded), probing, (1, each_s))  # noqa: S311
    used_s = sum(one.quiet_s + one.duration_s + _PAUSE_S for one in start) + first.quiet_s
    used_bytes = sum(one.path_bytes for one in start)
    pair_s = first.duration_s + second.duration_s + 2 * _PAUSE_S
    pair_bytes = first.path_bytes + second.path_bytes
    pairs = min(
        MOST_PHASES // 4,
        math.floor((time_s - used_s) / pair_s),
        (data_bytes - used_bytes) // pair_bytes,
    )
    if pairs < LEAST_BLOCKS:
        raise InputError(
            f"{_seconds(time_s)} and {size(data_bytes)} are too little for {LEAST_BLOCKS} blocks "
            "of idle phases: allow more with --time and --data"
        )
    phases = _before_tcp(time_s, random.Random(seeded), probing, (pairs, each_s))  # noqa: S311
    phases = [replace(one, number=number) for number, one in enumerate(phases)]
    return Plan(seed, phases, data_bytes, time_s)


class _Lengths(NamedTuple):
    """How long TCP phases of a path last, and pauses between phases, in seconds."""

    usual_s: float
    least_s: float
    pause_s: float

    @classmethod
    def of(cls, rtt_ms: float | None, pause_trips: int) -> _Lengths:
        """On a path with this RTT."""
        if rtt_ms is None:
            return cls(USUAL_TCP_S, LEAST_TCP_S, _PAUSE_S)
        trips = [one * rtt_ms / 1000 for one in (_USUAL_TRIPS, _LEAST_TRIPS, pause_trips)]
        return cls(
            min(USUAL_TCP_S, max(_SHORT_TCP_S[0], trips[0])),
            min(LEAST_TCP_S, max(_SHORT_TCP_S[0], trips[1])),
            min(_MOST_PAUSE_S, _PAUSE_S + trips[2]),
        )

    def shortened(self) -> _Lengths:
        """Lengths of phases that give up a tenth for UDP: 40 round trips are left."""
        return _Lengths(0.9 * self.usual_s, 0.9 * self.least_s, self.pause_s)


@dataclass(frozen=True)
class _Shape:
    """How many treatments and blocks there are, and how long phases last."""

    treatments: int
    blocks: int
    duration_s: float
    first_s: float
    """Length of the first base phase of a direction: it shows slow ramps and sets the pacing."""
    udp_s: float = _UDP_S

    def parts(self) -> tuple[int, int, bool]:
        """Treatments, blocks, and whether the first phase is a longer one."""
        return self.treatments, self.blocks, self.first_s > self.duration_s


def _shape(
    counts: tuple[int, int], lengths: _Lengths, seconds: float, carried_s: float, most: int
) -> _Shape | None:
    """As many treatments as possible; then phases of the usual length; then blocks.

    ``counts``: treatments and directions.

    The first base phase takes the time of two, unless that costs a treatment. Where not even two
    treatments fit, phases are shorter than ``LEAST_TCP_S``.
    """
    treatments, directions = counts
    usual_lengths = ((lengths.usual_s, 1), (lengths.least_s, 1), (lengths.least_s, 0))
    tries = [(count, *one) for count in range(treatments, 1, -1) for one in usual_lengths]
    tries += [(count, s, 0) for s in _SHORT_TCP_S for count in range(treatments, 1, -1)]
    for count, least, more in tries:
        pauses = count * directions * lengths.pause_s
        block_s = count * directions * least
        blocks = math.floor((seconds - more * directions * least) / (block_s + pauses))
        blocks = min(
            blocks,
            max(LEAST_BLOCKS, most // (count * directions)),
            _floor((carried_s - more * directions * least) / block_s),
        )
        if blocks >= LEAST_BLOCKS:
            available = min(seconds - blocks * pauses, carried_s) / directions
            return _fill(count, blocks, more, available, lengths)
    return None


@dataclass(frozen=True)
class _Room:
    """Time and data for phases with load; ``counts``: treatments and directions."""

    counts: tuple[int, int]
    lengths: _Lengths
    seconds: float
    left_bytes: int
    rate_mbps: float | None

    def shape(self, less_s: float = 0.0, less_bytes: int = 0) -> _Shape | None:
        """The TCP phases for which there is room beside something else."""
        lengths = self.lengths.shortened() if less_s else self.lengths
        left_bytes = self.left_bytes - less_bytes
        most = min(MOST_PHASES // 2, left_bytes // _USEFUL_TCP_BYTES)
        carried_s = _seconds_of(left_bytes, self.rate_mbps)
        return _shape(self.counts, lengths, self.seconds - less_s, carried_s, most)


def _with_udp(
    room: _Room, shape: _Shape, most_s: float, most_bytes: float
) -> tuple[_Shape, list[dict[str, int]]]:
    """Shorten the TCP phases for blocks of UDP, as long as none of them is lost.

    For each block of UDP: the bytes of each of its phases. They suffice for the rate, and for a
    higher one where no TCP phase is shorter for it: the first transfer may have found too little.
    """
    length_s = udp_s(room.rate_mbps)
    for blocks in range(_UDP_BLOCKS, 0, -1):
        count = blocks * room.counts[1]
        used_s = count * len(UDP_SHARES) * (length_s + _after_s("udp", room.lengths.pause_s))
        budgets = {most_bytes / count}
        if room.rate_mbps is not None:
            rates = _UDP_MARGIN * sum(UDP_SHARES.values()) * room.rate_mbps
            budgets.add(rates * length_s / 8e-6)
        found: tuple[_Shape, float] | None = None
        for budget in sorted(budgets):
            other = room.shape(used_s, math.ceil(count * budget))
            fits = used_s <= most_s and count * budget <= most_bytes
            if not fits or other is None or other.parts() != shape.parts():
                break
            if found is None or other == found[0]:
                found = other, budget
        if found is not None:
            other, budget = found
            whole = sum(UDP_SHARES.values())
            each = {name: math.floor(budget * part / whole) for name, part in UDP_SHARES.items()}
            return replace(other, udp_s=length_s), [each] * blocks
    return shape, []


def udp_s(rate_mbps: float | None) -> float:
    """Length of a UDP phase on a path of this rate, in seconds."""
    if rate_mbps is None:
        return _UDP_S
    wanted_s = _UDP_DATAGRAMS * UDP_BYTES * 8e-6 / rate_mbps
    return _rounded(min(_UDP_S, max(_LEAST_UDP_S, wanted_s)))


def _after_s(kind: Kind, pause_s: float) -> float:
    """Time after a phase, before the next one begins."""
    return {"tcp": pause_s, "udp": _UDP_AFTER_S + pause_s}.get(kind, _PAUSE_S)


def _fill(count: int, blocks: int, more: int, seconds: float, lengths: _Lengths) -> _Shape:
    """Use up the time: phases grow by a quarter at most, the first one further."""
    duration = min(1.25 * max(lengths.usual_s, _SHORT_TCP_S[0]), seconds / (count * blocks + more))
    first = min(MOST_FIRST_S, seconds - duration * (count * blocks - 1))
    return _Shape(count, blocks, _rounded(duration), _rounded(max(first, duration)))


def _floor(value: float) -> int:
    return MOST_PHASES if value > MOST_PHASES else math.floor(value)


def _seconds_of(data_bytes: int, rate_mbps: float | None) -> float:
    """How many seconds of TCP phases the data suffices for."""
    if rate_mbps is None:
        return math.inf
    one = Phase(0, 0, "tcp", "down", Treatment(BASE), _SHORT_TCP_S[-1], 0, _TCP_GAP_S)
    one = replace(one, request_gap_s=_request_gap_s(rate_mbps))
    probes = _probe_bytes(one) / one.duration_s
    return data_bytes / (rate_mbps / 8e-6 * OVERHEAD + probes)


def _request_gap_s(rate_mbps: float | None) -> float:
    if rate_mbps is None:
        return _REQUEST_GAP_S
    return max(_REQUEST_GAP_S, _REQUEST_BYTES * 8e-6 / (_REQUEST_SHARE * rate_mbps))


def _rounded(seconds: float) -> float:
    return math.floor(seconds * 100) / 100


def _before_tcp(
    time_s: float,
    generator: random.Random,
    probing: Probing,
    idle: tuple[int, float] | None = None,
    others: Sequence[Treatment] = (),
) -> list[Phase]:
    """Phases of the path MTU, then those without load.

    ``idle`` is how many pairs of the latter there are, and how long each phase lasts; ``others``
    are treatments with another server. An echo is as long as its request, so it does not show the
    MTU of a single direction downwards.
    """
    if probing == "none":
        return []
    plain = Treatment(BASE)
    phases = [
        Phase(0, -1, "mtu", direction, plain, _MTU_S, _MTU_BYTES)
        for direction in get_args(Direction)
        if probing == "stamp" or direction == "up"
    ]
    each_one = [plain, Treatment("keep-alive", keep_alive=True), *others]
    usual_s = _rounded(min(_IDLE_S, time_s * _IDLE_SHARE / (2 * _IDLE_PAIRS)))
    pairs, each = idle or (_IDLE_PAIRS, usual_s)
    for block in range(pairs):
        order = generator.sample(each_one, len(each_one))
        begins = next(one for one in order if not one.other)
        for treatment in order:
            first = block == 0 and treatment is begins
            quiet = min(_QUIET_S, time_s / 10) if first else 0.0
            phases.append(
                Phase(0, block, "idle", None, treatment, each, 0, _IDLE_GAP_S, _rounded(quiet))
            )
    return phases


def _blocks(
    treatments: Sequence[Treatment],
    directions: Sequence[Direction],
    shape: _Shape,
    udp: Sequence[Mapping[str, int]],
    generator: random.Random,
) -> list[Phase]:
    """Blocks of TCP, each followed by one of UDP as long as there are any.

    ``udp``: for each block the bytes of each treatment.
    """
    phases: list[Phase] = []
    for block in range(shape.blocks):
        for direction in generator.sample(list(directions), len(directions)):
            order = generator.sample(list(treatments), len(treatments))
            if block == 0:
                # Its steady rate sets the pacing.
                order.sort(key=lambda treatment: treatment.name != BASE)
            for place, treatment in enumerate(order):
                first = block == 0 and place == 0
                length = shape.first_s if first else shape.duration_s
                phases.append(Phase(0, block, "tcp", direction, treatment, length, 0, _TCP_GAP_S))
            most = udp[block] if block < len(udp) else {}
            for name in generator.sample(list(most), len(most)):
                treatment = Treatment(name, pace_share=UDP_SHARES[name])
                phase = Phase(0, block, "udp", direction, treatment, shape.udp_s, most[name])
                phases.append(replace(phase, size_bytes=UDP_BYTES))
    return phases


def _with_data(phases: list[Phase], data_bytes: int) -> list[Phase]:
    """Share the data among the TCP phases, by their duration."""
    left = (data_bytes - sum(_fixed_bytes(one) for one in phases)) / OVERHEAD
    seconds = sum(one.duration_s for one in phases if one.kind == "tcp")
    shared = []
    for one in phases:
        if one.kind == "tcp":
            # A byte less, because the overhead of each phase is rounded up.
            most = math.floor(left * one.duration_s / seconds) - 1
            if most < _LEAST_TCP_BYTES:
                raise InputError(
                    f"--data of {size(data_bytes)} leaves less than {size(_LEAST_TCP_BYTES)} "
                    "for a TCP phase: allow more data, or reduce --time"
                )
            shared.append(replace(one, most_bytes=most))
        else:
            shared.append(one)
    return shared


def _probe_bytes(phase: Phase) -> int:
    """Most bytes of probes, both directions: beyond the mean, five standard deviations."""
    packets = 0.0
    if phase.probe_gap_s is not None:
        mean = phase.duration_s / phase.probe_gap_s
        packets += mean + 5 * math.sqrt(mean) + 1
    if phase.treatment.keep_alive:
        packets += phase.duration_s / KEEP_ALIVE_S + 1
    gap_s = phase.request_gap_s
    requests = 0 if gap_s is None else math.ceil(phase.duration_s / gap_s) + 1
    return math.ceil(packets) * 2 * STAMP_BYTES + requests * _REQUEST_BYTES


def _fixed_bytes(phase: Phase) -> int:
    return _probe_bytes(phase) + (0 if phase.kind == "tcp" else phase.most_bytes)


def _bytes_at(phase: Phase, rate_mbps: float | None) -> int:
    if rate_mbps is None or phase.kind not in ("tcp", "udp"):
        return phase.path_bytes
    rate = rate_mbps
    if phase.treatment.pace_share is not None:
        rate *= phase.treatment.pace_share
    carried = math.ceil(rate * phase.duration_s / 8e-6 * OVERHEAD)
    return min(phase.path_bytes, carried + _probe_bytes(phase))


def _check_request(
    treatments: Sequence[Treatment],
    directions: Sequence[Direction],
    time_s: float,
    data_bytes: int,
) -> None:
    names = [one.name for one in treatments]
    if len(names) < 2 or names[0] != BASE or len(set(names)) != len(names):
        raise ValueError("treatments must be base and at least one other, without duplicates")
    if not directions or len(set(directions)) != len(directions):
        raise ValueError("directions must not have duplicates")
    _check_limits(time_s, data_bytes)


def _check_limits(time_s: float, data_bytes: int) -> None:
    if not math.isfinite(time_s) or not 0 < time_s <= 86_400:
        raise InputError(f"--time is {time_s:g} s; expected at most one day")
    if data_bytes < 1:
        raise InputError(f"--data is {data_bytes} bytes; expected at least 1")


def _line(phase: Phase, rate_mbps: float | None) -> str:
    way = {"down": "down", "up": "up", None: ""}[phase.direction]
    what = phase.kind if phase.kind == "mtu" else phase.treatment.name
    text = f"{phase.number:4}  {phase.kind:4}  {way:4}  {what:12}  {phase.duration_s:5.2f} s"
    text += f"  at most {size(_bytes_at(phase, rate_mbps))}"
    remarks = _remarks(phase)
    return text + (f"  ({', '.join(remarks)})" if remarks else "")


def _remarks(phase: Phase) -> list[str]:
    options, treatment = phase.treatment.options, phase.treatment
    remarks = []
    if phase.quiet_s:
        remarks.append(f"after {_seconds(phase.quiet_s)} of silence")
    if treatment.keep_alive:
        remarks.append(f"a datagram every {milliseconds(KEEP_ALIVE_S * 1000)}")
    if phase.kind == "idle" and phase.probe_gap_s is not None:
        remarks.append(f"a probe every {milliseconds(phase.probe_gap_s * 1000)} on average")
    if treatment.pace_share is not None:
        found = "rate found" if phase.kind == "udp" else "steady rate"
        remarks.append(f"{treatment.pace_share:.0%} of the {found}".replace("%", " %"))
    if phase.request_gap_s is not None:
        gap = milliseconds(phase.request_gap_s * 1000)
        remarks.append(f"a new connection with a request every {gap}")
    if treatment.other:
        remarks.append("with the other server")
    if treatment.streams > 1:
        remarks.append(f"{treatment.streams} streams")
    if options.congestion is not None:
        remarks.append(f"congestion control {options.congestion}")
    if options.mss_bytes is not None:
        remarks.append(f"MSS of {options.mss_bytes} bytes")
    if options.window_bytes is not None:
        remarks.append(f"buffers of {size(options.window_bytes)}")
    return remarks


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value < 999.5 else f"{value:.0f} s"


def _assumed(rate_mbps: float | None) -> str:
    return "" if rate_mbps is None else f" at {rate_mbps:g} Mb/s"


class _TreatmentTable(TypedDict):
    name: str
    options: dict[str, object]
    streams: Annotated[int, Range(1, 64)]
    keep_alive: bool
    pace_share: Annotated[float, Range(0.01, 10)] | None
    other: NotRequired[bool]


class _PhaseTable(TypedDict):
    number: Annotated[int, Range(0, MOST_PHASES)]
    block: Annotated[int, Range(-1, MOST_PHASES)]
    kind: Literal["idle", "tcp", "udp", "mtu"]
    direction: Literal["down", "up"] | None
    treatment: _TreatmentTable
    duration_s: Annotated[float, Range(0.01, 86_400)]
    most_bytes: Annotated[int, Range(0)]
    probe_gap_s: Annotated[float, Range(0.001, 3600)] | None
    quiet_s: Annotated[float, Range(0, 3600)]
    request_gap_s: Annotated[float, Range(0.01, 3600)] | None
    size_bytes: Annotated[int, Range(28, 65_535)] | None


class _PlanTable(TypedDict):
    version: int
    seed: Annotated[int, Range(0)]
    data_bytes: Annotated[int, Range(1)]
    time_s: Annotated[float, Range(0.01, 86_400)]
    pause_s: Annotated[float, Range(0, 60)]
    dropped: Annotated[list[str], Length(0, 1000)]
    phases: Annotated[list[_PhaseTable], Length(1, MOST_PHASES)]


def _phase(table: _PhaseTable, index: int) -> Phase:
    """Make a phase of its table. Raises ``MisfitError`` where fields contradict each other."""
    place = f"phases[{index}]"
    if table["number"] != index:
        raise MisfitError(f"is {table['number']}; expected {index}", f"{place}.number")
    if (table["direction"] is None) != (table["kind"] == "idle"):
        raise MisfitError(f"does not suit kind {table['kind']}", f"{place}.direction")
    udp = table["kind"] == "udp"
    for key, given in (
        ("size_bytes", table["size_bytes"]),
        ("treatment.pace_share", table["treatment"]["pace_share"]),
    ):
        if (udp and given is None) or (not udp and key == "size_bytes" and given is not None):
            raise MisfitError(f"does not suit kind {table['kind']}", f"{place}.{key}")
    one = table["treatment"]
    try:
        options = Options.from_json(one["options"])
    except (AirpathError, MisfitError) as error:
        raise MisfitError(f"is wrong: {error}", f"{place}.treatment.options") from None
    treatment = Treatment(
        one["name"], options, one["streams"], one["keep_alive"], one["pace_share"],
        one.get("other", False),
    )  # fmt: skip
    return Phase(
        table["number"],
        table["block"],
        table["kind"],
        table["direction"],
        treatment,
        table["duration_s"],
        table["most_bytes"],
        table["probe_gap_s"],
        table["quiet_s"],
        table["request_gap_s"],
        table["size_bytes"],
    )
