"""Types of a run's figures: of one seed, as the core makes them (crates/record, ``summary.rs``).

The document of a run (``summary.py``) has the same sections. Of several seeds every figure in it is
a mean, hence what is counted is a ``float`` here too.

What is read from a run directory is checked against these types (``base/shapes.py``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from airpath.base.shapes import Length, Range

Positive: TypeAlias = Annotated[float, Range(0.0)]
"""At least 0."""
Interval: TypeAlias = Annotated[list[float], Length(2, 2)]
"""Lower and upper end."""
Direction: TypeAlias = Literal["down", "up"]
Metric: TypeAlias = Literal[
    "goodput_mbps", "completed_s", "rtt_ms.p95", "rtt_ms.p50", "rtt_ms.mean", "answered_share",
    "delay_ms.p95", "jain_index", "retransmitted_share",
]  # fmt: skip
"""A figure that a change is judged by."""


class Quantiles(TypedDict):
    """A distribution in milliseconds."""

    min: float
    mean: float
    mdev: float
    """Standard deviation."""
    p50: float
    p95: float
    p99: float
    max: float


class SlowStartExit(TypedDict):
    """The end of the first slow start."""

    time_s: float
    """Since the flow's start."""
    cwnd_segments: float
    reason: str
    bdp_fraction: float | None
    """cwnd over the bandwidth-delay product; null without a link."""
    min_rtt_ms: float
    round_rtt_ms: float | None
    """The RTT that was compared with the smallest; null if the reason is not a delay."""


class LimitSeconds(TypedDict):
    """Time at each limit of a sender."""

    cwnd: float
    pacing: float
    receive_window: float
    send_buffer: float
    application: float


class _Spread(TypedDict, total=False):
    ci95: dict[str, Interval | dict[str, Interval | None] | None]
    """Of several seeds: the figures again, each an interval; null below two values."""
    values: dict[str, list[float | None] | dict[str, list[float | None]]]
    """And each a list, by seed."""


class FlowFigures(_Spread):
    """One TCP or UDP flow; null is what a flow of its kind does not have."""

    id: str
    kind: str
    """``bulk``, ``file`` or ``udp``; ``others``: flows of an emulation without own rows."""
    direction: str
    """``down`` or ``up``."""
    ue: str | None
    congestion: str | None
    profile: str | None
    bytes_delivered: float
    goodput_mbps: float | None
    """Null if it never started."""
    written_mbps: float | None
    rtt_ms: Quantiles | None
    self_inflicted_delay_ms: float | None
    power: float | None
    segments_sent: float
    retransmitted_segments: float | None
    rto_count: float | None
    undo_count: float | None
    tail_loss_probes: float | None
    ecn_reductions: float | None
    steady_mbps: float | None
    converged_after_s: float | None
    completed_s: float | None
    slow_start_exit: SlowStartExit | None
    limited_s: LimitSeconds | None
    packets_sent: float | None
    packets_lost: float | None
    delay_ms: Quantiles | None
    jitter_ms: float | None


class PingFigures(_Spread):
    """One ping flow."""

    id: str
    sent: float
    lost: float
    rtt_ms: Quantiles | None


class LinkFigures(_Spread):
    """One link."""

    id: str
    throughput_mbps: float
    capacity_mbps: float
    utilisation: float
    queue_delay_ms: Quantiles | None
    dropped_packets: dict[str, float]
    """By reason."""


class FairnessFigures(_Spread):
    """How evenly the TCP flows of one direction share it."""

    id: str
    """``down`` or ``up``."""
    flows: Annotated[float, Range(1.0)]
    jain_index: float


class ProxyFigures(_Spread):
    """A TCP flow at the proxy on its way."""

    id: str
    proxy: str
    direction: str
    congestion: str
    profile: str
    bytes_received: float
    bytes_acked: float
    buffered_bytes_max: float
    rtt_ms: Quantiles | None
    segments_sent: float
    retransmitted_segments: float
    rto_count: float
    undo_count: float
    tail_loss_probes: float
    ecn_reductions: float
    slow_start_exit: SlowStartExit | None
    limited_s: LimitSeconds


class RadioFigures(_Spread):
    """One direction of one UE of a radio."""

    id: str
    """UE and direction: ``phone.down``."""
    throughput_mbps: float
    prbs_per_s: float
    mcs_mean: float | None
    bler: float | None
    harq_retransmissions: float
    lost_blocks: float
    rlc_retransmissions: float
    padding: float | None
    grants: float
    scheduling_requests: float
    buffer_status_reports: float
    random_accesses: float
    marked_packets: float
    awake: float
    """Share of the run in DRX Active Time; 1 without DRX."""


class DropFigures(TypedDict):
    """Packets of one flow that one place lost for one reason."""

    place: str
    """Stage or buffer: ``down.1.loss``, ``radio.ue-0.down``."""
    reason: str
    flow: str
    packets: float


class GroupFigures(_Spread):
    """The flows that one ``[[flow]]`` with ``streams`` stands for, together."""

    id: str
    kind: str
    direction: str
    streams: float
    bytes_delivered: float
    goodput_mbps: float | None
    jain_index: float | None


class DelayPart(TypedDict):
    """One part of a mean time."""

    part: str
    place: str | None
    """Stage or radio buffer; null for what has no place."""
    ms: float
    share: float


class DelayBreakdown(TypedDict):
    """A mean time in milliseconds, and what it was spent on."""

    mean: float
    samples: int
    parts: list[DelayPart]


class GoodputPart(TypedDict):
    """One part of the capacity that was no goodput."""

    part: str
    mbps: float
    share: float


class GoodputBreakdown(TypedDict):
    """What the path could have carried, in Mb/s, and what became of it."""

    capacity: float
    place: str | None
    """The slowest link, or the radio."""
    goodput: float
    parts: list[GoodputPart]


class Breakdown(TypedDict):
    """Where the time of a flow went."""

    id: str
    rtt_ms: DelayBreakdown | None
    delay_ms: DelayBreakdown | None
    """One-way, of UDP."""
    goodput_mbps: GoodputBreakdown | None


class _Groups(TypedDict, total=False):
    groups: list[GroupFigures]
    """Missing where no flow has ``streams``."""
    breakdowns: list[Breakdown]
    """Missing where nobody accounts for where the time goes."""


class Figures(_Groups):
    """What flows, links and a radio came to."""

    flows: list[FlowFigures]
    pings: list[PingFigures]
    links: list[LinkFigures]
    fairness: list[FairnessFigures]
    proxies: list[ProxyFigures]
    radio: list[RadioFigures]


class CoreSummary(Figures):
    """What the core says of one seed."""

    seed: int
    duration_s: float
    """How long it lasted, on the clock of its driver."""
    events: int
    drops: list[DropFigures]


class Gain(TypedDict):
    """A figure before and after a change, of all seeds that were paired."""

    metric: Metric
    """As in the document: ``goodput_mbps``, ``rtt_ms.p95``."""
    flow: str
    before: float | None
    """None: a transfer did not complete within the run, so that it has no completion time."""
    after: float | None
    ci95: Interval | None
    """Of ``after``: lower and upper end."""
    seeds: int


class Finding(TypedDict):
    """A cause that was taken away and then missed, or what bounds the run."""

    cause: str
    subject: str
    """Id of a flow or link, or a dotted key."""
    confidence: float
    """Share of the paired seeds in which the removal helped by more than noise."""
    evidence: str
    advice: str | None
    set: list[str] | None
    """The advice as ``KEY=VALUE``."""
    gain: Gain | None
    """What the advice obtained."""
    costs: list[Gain]


class Tried(TypedDict):
    """A change that was tried, or why not: what took a cause away, and advice that fell short."""

    cause: str
    subject: str
    set: list[str]
    outcome: str
    score: float | None
    """Logarithm of the best improvement; None if it was not tried."""
    gain: Gain | None
    """The figure that changed most; None if it was not tried."""


class Explanation(TypedDict):
    """What held a scenario back."""

    findings: list[Finding]
    tried: list[Tried]
    breakdowns: list[Breakdown]
    """Of the first seed."""
    seeds: int
    runs: int
    events: int


class VariantFigure(TypedDict):
    """A figure of one variant."""

    mean: float | None
    """None: a transfer did not complete within the run."""
    ci95: list[float] | None
    values: list[float | None]
    """By seed."""
    change: float | None
    change_ci95: list[float] | None


class VariantRow(TypedDict):
    """One figure of every variant; the scenario as it is comes first."""

    flow: str
    metric: str
    more_is_better: bool
    cells: list[VariantFigure | None]
    winner: int | None


class Variants(TypedDict):
    """Variants of a scenario on common seeds."""

    scenario: str
    version: str
    seeds: list[int]
    variants: list[list[str]]
    """What each sets; the first is the scenario as it is."""
    rows: list[VariantRow]


Seed: TypeAlias = Annotated[int, Range(0, 2**64 - 1)]


class _Seeds(TypedDict, total=False):
    repeat: int
    seeds: list[Seed]


class RunHead(_Seeds):
    """A run as a whole; with several seeds there are ``repeat`` and ``seeds``."""

    id: str
    version: str
    seed: int
    scenario_sha256: str
    wall_s: Positive
    duration_s: Positive
    events: int
    partial: list[str]


class Explained(TypedDict):
    """How findings were obtained."""

    budget: str
    seeds: int
    runs: int
    events: int
    because: str | None
    """Why nothing could be tried; null: something could."""


class _Emulated(TypedDict, total=False):
    emulation: dict[str, Any]
    """Of an emulated run alone."""


class RunDocument(Figures, _Emulated):
    """What ``--json`` prints and ``summary.json`` holds."""

    run: RunHead
    findings: list[Finding]
    tried: list[Tried]
    explained: Explained | None


class ScenarioRecord(TypedDict):
    """Which scenario was run."""

    name: str
    title: str | None
    sha256: str


class Provenance(TypedDict):
    """What ``provenance.json`` holds, as far as it is read again."""

    id: str
    driver: str | None
    """``simulate`` or ``emulate``."""
    version: str
    core_sha256: str | None
    scenario: ScenarioRecord
    seeds: Annotated[list[Seed], Length(1, 100_000)]
    command: list[str] | None
    started: str | None
    """ISO 8601, UTC."""
    python: str | None
    platform: dict[str, str | None] | None
