"""Types of what a measurement keeps: a record of each phase, and the section ``measured``."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from airpath.base.shapes import Length, Range

Positive = Annotated[float, Range(0.0)]
"""At least 0."""
Bounds = Annotated[list[float], Length(2, 2)]
"""The low and the high end of an interval."""


class Ecn(TypedDict):
    """Explicit congestion notification (RFC 3168) of a phase's streams."""

    negotiated: bool
    """Whether all of them agreed on it."""
    arrives: bool
    """Whether data arrived with ECT or CE at the receiver of each; if not, something clears the
    field on the way (bleaching), or the sender does not set it."""
    marked_segments: int
    """Segments of which receivers said that they arrived with CE."""


class Figures(TypedDict):
    """Figures of a TCP phase, all its streams together."""

    goodput_mbps: Positive
    """Payload that arrived over the whole phase, per second."""
    steady_mbps: Positive
    """The rate after slow start; that of the phase's second half if it still grew."""
    ramp_s: Positive | None
    """When the rate had stopped growing; null: it still grew when the phase ended."""
    retransmitted_segments: int | None
    """null: the sender did not say."""
    segments: int
    """Segments sent, known retransmissions included."""
    limited: dict[str, Positive]
    """Shares of the sender's busy time that Linux counts as limited by ``receive_window`` and
    ``send_buffer`` (tcp_info)."""
    loaded_ms: Positive | None
    """Median RTT of the probes that were sent once the rate was steady."""
    congestion: str | None
    """The sender's congestion control."""
    carried_bytes: int
    ecn: NotRequired[Ecn]


class Samples(TypedDict):
    """Columns, one value each 100 ms; of several streams the sums and the largest RTT."""

    time_s: list[float]
    """Since the start of the phase."""
    delivered_bytes: list[int]
    cwnd_segments: list[int | None]
    ssthresh_segments: list[int | None]
    srtt_ms: list[float | None]
    inflight_segments: list[int | None]


class Trips(TypedDict):
    """Probes, in the order in which they were sent."""

    sent_s: list[float]
    """Since the start of the measurement."""
    rtt_ms: list[float | None]
    """null: lost."""
    out_ms: list[float | None]
    """On the way to the server, by two clocks: only its variation means something. null also for
    ICMP echoes."""


class Mtu(TypedDict):
    """The largest IP packet that passed with DF set."""

    path_bytes: int | None
    """null: not even the smallest one passed."""
    too_large_bytes: int | None
    """The smallest size that did not pass."""
    too_large_sent: int
    """Probes of that size with DF set; none of them arrived."""
    black_hole: bool
    """Larger ones are lost without an ICMP error."""
    icmp: list[str]


Fraction = Annotated[float, Range(0.0, 1.0)]


class Likely(TypedDict):
    """A cause that a capture makes likely, in the words of the diagnosis."""

    cause: str
    cost: Fraction | None
    """Share of the rate, or of the round trip, that it takes away; null: unknown."""
    evidence: str
    advice: str


class Shown(TypedDict):
    """What a capture of a phase's streams shows."""

    probabilities: dict[str, Fraction]
    """By cause, that it costs a seventh or more; ``any``: that anything does."""
    causes: Annotated[list[Likely], Length(0, 100)]


class Udp(TypedDict):
    """UDP at a rate, as its receiver saw it."""

    sent_mbps: Positive
    """UDP payload that was sent, per second; a late sender sends less than it was to."""
    received_mbps: Positive
    size_bytes: int
    """UDP payload of a datagram."""
    sent: int
    """Datagrams."""
    lost: int
    """Datagrams that did not arrive (RFC 7680)."""
    duplicates: int
    reordered: int
    """Datagrams that arrived after a later one (RFC 4737 3.3)."""
    discarded: int
    """Lost datagrams that the receiver's own socket discarded, because its host was too slow."""
    loss_bursts: int
    """Runs of datagrams that were lost one after the other (loss periods, RFC 3357)."""
    longest_burst: int
    jitter_ms: Positive
    """Interarrival jitter at the end (RFC 3550 6.4.1)."""
    delay_ms: dict[str, Positive]
    """One-way delay beyond the least of the phase (RFC 5481 4.2): p50, p95, p99 and max."""


class Responses(TypedDict):
    """What load-bearing phases showed of responsiveness, once the rate was steady.

    The first three columns have a value for each new connection with one request.
    """

    sent_s: list[float]
    """Since the start of the measurement."""
    tcp_ms: list[Positive | None]
    """The TCP handshake; null: it took longer than 3 s."""
    request_ms: list[Positive | None]
    """The request and its answer of one byte."""
    loaded_ms: list[Positive | None]
    """The sender's smoothed RTT, each 100 ms and of each connection with load."""


class Record(TypedDict):
    """Record of a phase: ``phases.jsonl`` has one on each line."""

    number: int
    started_s: float
    """Since the start of the measurement."""
    ended_s: float
    figures: Figures | None
    """null: it was no phase of TCP, or it failed."""
    samples: Samples | None
    seconds: Annotated[list[list[list[float | None]]], Length(0, 64)]
    """For each stream and second: bytes, retransmissions, cwnd in bytes, smoothed RTT in ms."""
    probes: Trips | None
    mtu: Mtu | None
    shown: dict[str, Shown] | None
    """What captures at the ``near`` and the ``far`` end show; null: there were none."""
    udp: Udp | None
    responses: Responses | None
    errors: list[str]


class PhaseDocument(TypedDict):
    """A phase as it went."""

    number: int
    block: int
    kind: str
    direction: str | None
    treatment: str
    started_s: float
    ended_s: float
    figures: Figures | None
    udp: Udp | None
    errors: list[str]


class EffectDocument(TypedDict):
    """By which factor a treatment changed a figure, against ``base`` in the same blocks."""

    direction: str
    """down or up; ``idle`` for the path without a transfer."""
    treatment: str
    metric: str
    """``steady_mbps``, ``retransmitted_share``, ``rtt_ms.p50`` (of probes beside a transfer) or
    ``rtt_ms.mean`` (of an idle path, without the largest tenth)."""
    before: float
    """Geometric means over the blocks."""
    after: float
    factor: float
    ci95: Bounds | None
    """Interval of the factor; null if the blocks give no useful estimate of the error."""
    blocks: int


class UdpDocument(TypedDict):
    """UDP phases of a direction and a treatment, together."""

    direction: str
    treatment: str
    """``udp-50``, ``udp-95`` or ``udp-115``: the rate as a percentage of the rate found, which is
    that of the fastest TCP treatment; payload is compared with payload."""
    phases: int
    sent_mbps: float
    """Mean of the phases."""
    received_mbps: float
    sent: int
    lost: int
    lost_share: float
    duplicates: int
    reordered: int
    reordered_share: float
    """Over those that arrived (RFC 4737 4.1)."""
    discarded: int
    loss_bursts: int
    longest_burst: int
    jitter_ms: float
    """Mean of the phases (RFC 3550 6.4.1)."""
    delay_ms: dict[str, float]
    """Means of the phases: one-way delay beyond the least of the phase, p50, p95, p99 and max."""


class ResponsivenessDocument(TypedDict):
    """Round trips per minute under load."""

    direction: str
    definition: str
    """The draft, and which of its cases."""
    connections: int
    """Connections that carry the load."""
    rpm: float
    """Mean of the next two."""
    foreign_rpm: float
    """60,000 over the mean of ``tcp_ms`` and ``request_ms``."""
    loaded_rpm: float
    """60,000 over ``loaded_ms``."""
    tcp_ms: float
    """Mean of the lowest 95 %: the TCP handshake of a new connection."""
    request_ms: float
    """Likewise: a request on it and its answer of one byte."""
    loaded_ms: float
    """Likewise: the sender's smoothed RTT of the connections with load."""
    requests: int
    unanswered: int


class MtuDocument(Mtu):
    """The path MTU of a direction."""

    direction: str


class RateDocument(TypedDict):
    """The steady rate of ``base``."""

    direction: str
    steady_mbps: float
    ci95: Bounds | None
    """Anytime-valid: it holds although it was looked at after each block."""
    ramp_s: float | None
    """How long the rate grew in the longest test; null: until its end."""
    longest_s: float
    """Length of that test."""
    short_test_mbps: float | None
    """Average rate of a test of 10 s, slow start included; null: it is not over by then."""


class LikelyDocument(TypedDict):
    """How likely a cause is by the captures of a direction."""

    direction: str
    cause: str
    probability: float


class Hop(TypedDict):
    """A router between the ends."""

    ttl: int
    """With which a datagram of this host ends there."""
    address: str | None
    """null: it does not say."""


class Nats(TypedDict):
    """NATs between the ends."""

    own: str
    """This host's own address."""
    seen_as: str
    port_kept: bool
    """Whether the control connection has the same port on both sides."""
    least: int
    """The least number of NATs between the ends."""
    most: int | None
    """null: more are possible."""
    reason: str
    hops: list[Hop]
    """The first routers on the way; empty if the address is not translated."""
    binding_s: list[float | None] | None
    """After how many seconds of silence a UDP binding still existed, and after how many it was
    gone; null: not tried."""


class EcnDocument(Ecn):
    """All phases of a direction with the server; ``arrives`` if it did in any of them."""

    direction: str
    near_setting: int | None
    """net.ipv4.tcp_ecn of this host: 0 off, 1 asks for it, 2 agrees if the peer asks."""
    far_setting: int | None


class PlacementDocument(TypedDict):
    """Whether the server's place limits a direction, judged against the other server."""

    direction: str
    verdict: str
    """``cause``; ``none``: the other server gains less than a seventh; ``open``: undecided."""
    said: str


class AlsoDocument(TypedDict):
    """The other server (``--also``)."""

    server: str
    near_seen_as: str | None
    """The near end's address as this server sees it."""
    family: str
    """``IPv4`` or ``IPv6``."""
    host: dict[str, str | int | list[str]]
    """What the other server says of its machine."""
    limit_mbps: float | None
    placement: list[PlacementDocument]


class Measured(TypedDict):
    """Plan, course and figures of a measurement."""

    server: str
    """The far end, as it was given."""
    far: Literal["airpath", "iperf3", "ping"]
    """What it runs: ``airpath serve``, ``iperf3 -s``, or nothing: it answers pings."""
    unprobed: str | None
    """Why no probes show round trips; null: there are probes."""
    handshake_ms: Positive | None
    """The least RTT of TCP handshakes; null: not measured."""
    near_seen_as: str | None
    """The near end's address as the server sees it; null: unknown."""
    nat: bool | None
    """Whether that is another one than the near end's own; null: unknown."""
    nats: Nats | None
    host: dict[str, str | int | list[str]]
    """The server's machine, as far as it is known."""
    also: NotRequired[AlsoDocument]
    """Absent without another server."""
    ecn: NotRequired[list[EcnDocument]]
    limit_mbps: float | None
    """Rate that the server allows a session; null: no limit."""
    seed: int
    stopped: str
    """Why the measurement ended: the end of its plan, or the interval asked for."""
    carried_bytes: int
    """Payload of TCP that arrived, both directions together."""
    phases: list[PhaseDocument]
    effects: list[EffectDocument]
    rates: list[RateDocument]
    mtu: list[MtuDocument]
    captured: list[str]
    """Ends at which transfers were captured: ``near``, ``far``."""
    udp: list[UdpDocument]
    responsiveness: list[ResponsivenessDocument]
    undecided: list[str]
    """Directions whose intervals leave open whether anything but the capacity limits the rate."""
    likeliest: list[LikelyDocument]
    """Where captures show that something limits TCP, but not what."""
    time_s: float
    data_bytes: int
    """Limits that the plan was drawn for."""
    left_out: list[str]
    """Treatments for which there was not enough time or data."""
    not_in_twin: list[str]
    """Named causes for which the twin has no place."""
    twin_score: float | None
    """Agreement of the twin's transfer with the measured one, 1 for equal figures."""


Columns = dict[str, type[int] | type[float] | type[str]]
Rows = tuple[Columns, list[tuple[object, ...]]]
"""Columns of a table, and its rows."""


def phase_rows(measured: Measured) -> Rows:
    """The phases that ran, one row each; a phase without a transfer has no figures."""
    names: Columns = {
        "number": int, "block": int, "kind": str, "direction": str, "treatment": str,
        "started_s": float, "ended_s": float, "goodput_mbps": float, "steady_mbps": float,
        "ramp_s": float, "loaded_ms": float, "segments": int, "retransmitted_segments": int,
        "carried_bytes": int, "errors": str,
    }  # fmt: skip
    rows = []
    for one in measured["phases"]:
        figures = one["figures"]
        known = {**one, **(figures or {}), "errors": "; ".join(one["errors"]) or None}
        rows.append(tuple(known.get(name) for name in names))
    return names, rows


def effect_rows(measured: Measured) -> Rows:
    """The effects of the treatments, one row each; ``low`` and ``high`` bound ``factor``."""
    names: Columns = {
        "direction": str, "treatment": str, "metric": str, "before": float, "after": float,
        "factor": float, "low": float, "high": float, "blocks": int,
    }  # fmt: skip
    rows = []
    for one in measured["effects"]:
        low, high = one["ci95"] or (None, None)
        known = {**one, "low": low, "high": high}
        rows.append(tuple(known.get(name) for name in names))
    return names, rows
