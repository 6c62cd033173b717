"""Types of an emulation's results, as the core produces them (crates/emu, crates/network).

The run's document has parts of it in its section ``emulation``, its provenance the environment.
"""

from __future__ import annotations

from typing import TypedDict

from airpath.runs.document import Quantiles


class Lateness(TypedDict):
    """Time of writing minus logical time of departure, in microseconds."""

    p50: float
    p99: float
    p99_9: float
    max: float


class DirectionReport(TypedDict):
    """What the forwarder counted in one direction.

    Each packet that entered has left, was dropped, or is still inside.
    """

    entered: int
    entered_bytes: int
    left: int
    writes: int
    """Writes to the kernel: fewer, if segments were put together."""
    refused: int
    """Packets that the kernel would not take."""
    ignored: int
    """Packets that led nowhere, and never entered."""
    oversized: int
    """Packets that never entered, because there was no room for them."""
    largest_bytes: int
    dropped: dict[str, int]
    """By reason."""
    marked: int
    overrun: int
    """Packets that were dropped before they could be read."""
    missed_slots: int
    lateness_us: Lateness | None
    host_us: Lateness | None
    """From the hand-over of data to its acknowledgement, of flows whose readers read at once."""


class TunnelReport(TypedDict):
    """GTP-U in one direction."""

    sent: int
    sends: int
    received: int
    refused: int
    ignored: int
    lost: int
    lateness_us: Lateness | None
    transit_us: Lateness | None


class LinkReport(TypedDict):
    """What a stage with a rate carried."""

    id: str
    packets: int
    bytes: int
    capacity_bytes: float


class AckGaps(TypedDict):
    """When acknowledgements reached a sender."""

    id: str
    gap_ms: Quantiles | None


class Report(TypedDict):
    """What the forwarder counted."""

    elapsed_s: float
    clock_origin_ns: int
    """CLOCK_MONOTONIC at the start of the run."""
    directions: dict[str, DirectionReport]
    """``down`` and ``up``."""
    tunnel: dict[str, TunnelReport] | None
    inside: int
    flows: int
    other_flows: int
    more_flows: bool
    gone: list[list[object]]
    """Ends whose devices are not there any more, and since when, in seconds."""
    missed_rtts: int
    links: list[LinkReport]
    ack_gaps: list[AckGaps]


class ObserverReport(TypedDict):
    """How the senders were observed."""

    by: str
    """``bpf``, ``poll`` or ``none``."""
    because: str | None
    """Why not by BPF, although no other method was requested."""
    poll_ms: float | None
    records: int
    lost_records: int
    sockets: int
    unmatched_sockets: int
    forgotten_sockets: int
    crowded_records: int


class EndEnvironment(TypedDict):
    """The namespace of the server or of a UE, and the kernel settings there."""

    name: str
    addresses: list[str]
    mtu: int
    congestion: str
    route: str
    refused: dict[str, str]
    """Sysctls that could not be set, and why."""
    queue_dropped: int
    sysctls: dict[str, str]
    counters: dict[str, int]
    hystart: dict[str, int]


class TunnelSession(TypedDict):
    """A UE's tunnels."""

    ue: str
    teid_up: int
    teid_down: int
    qfi: int | None


class TunnelSetup(TypedDict):
    """The link between gateway and base station."""

    interface: str
    """``s1u`` or ``n3``."""
    mtu: int
    gateway: str
    base_station: str
    sessions: list[TunnelSession]


class NatReport(TypedDict):
    """A NAT of the path, which the kernel was."""

    name: str
    stage: str
    address: str
    timeout_s: float
    inward_refreshes: bool
    no_binding: int
    queue_dropped: int


class Environment(TypedDict):
    """The machine and its settings."""

    kernel: str
    io: str
    user_namespace: bool
    real_time: bool
    awake: bool
    """Idle processors did not sleep."""
    asleep_because: str | None
    coalesce_bytes: int
    spin_us: float
    tcp_cubic: dict[str, str]
    observer: ObserverReport
    slow_starts: list[str]
    ends: list[EndEnvironment]
    """The server's first."""
    tunnel: TunnelSetup | None
    nats: list[NatReport]


class FailedFlow(TypedDict):
    """A flow of the scenario that failed."""

    id: str
    because: str


class SocketState(TypedDict):
    """What the kernel says of one end's connection, just after its handshake."""

    congestion: str
    mss_bytes: int
    cwnd_segments: int
    receive_buffer_bytes: int
    send_buffer_bytes: int
    window_clamp_bytes: int


class FlowSockets(TypedDict):
    """Both ends of a TCP flow; null: it had no connection."""

    id: str
    sender: SocketState | None
    receiver: SocketState | None
    sender_waited_ms: float | None
    """How long the thread that writes was ready while others had the processor."""
    receiver_waited_ms: float | None
    """The same of the thread that reads."""


class Parity(TypedDict):
    """The outcome of a replay on the virtual clock."""

    left: int
    dropped: int
    same: bool
    first_difference: str | None


class StoredDirection(TypedDict):
    """What is read again of a direction's report."""

    lateness_us: Lateness | None


class StoredEmulation(TypedDict):
    """What is read again of the section ``emulation`` of a summary; it has more."""

    valid: bool
    invalid_because: str | None
    directions: dict[str, StoredDirection]
    parity: Parity | None
    ack_gaps: dict[str, Quantiles | None] | None


class Written(TypedDict):
    """What a program wrote to one of its streams."""

    kept_bytes: int
    dropped_bytes: int
    dropped_because: str | None


class ProgramReport(TypedDict):
    """A program that ran."""

    kind: str
    """``command``, ``server`` or ``program``."""
    name: str
    at: str
    command: str
    started_s: float | None
    listening_s: float | None
    silent: bool
    ended_s: float | None
    code: int | None
    written: list[Written] | None
    said: str | None


class Dropped(TypedDict):
    """The part of a stream that is not kept."""

    bytes: int
    because: str | None


class DirectionSnapshot(TypedDict):
    """What went in one direction, since the start of the run."""

    entered: int
    left: int
    left_bytes: int
    refused: int
    dropped: list[tuple[str, int]]
    late_p99_us: float | None
    late_max_us: float | None


class LinkSnapshot(TypedDict):
    """A link of the path."""

    id: str
    bytes: int
    queue_packets: int
    queue_bytes: int


class CellSnapshot(TypedDict):
    """A cell, down and up."""

    id: str
    prbs: list[int]
    prbs_per_s: list[float]


class RadioSnapshot(TypedDict):
    """One direction of a UE."""

    bytes: int
    queue_packets: int
    queue_bytes: int
    prbs: int
    blocks: int
    mcs_sum: int
    first_errors: int
    harq_retransmissions: int
    lost_blocks: int
    rlc_retransmissions: int
    scheduling_requests: int
    buffer_status_reports: int
    grants: int
    random_accesses: int
    awake_s: float
    dropped: list[tuple[str, int]]


class UeSnapshot(TypedDict):
    """The state of one UE, with its counters in both directions."""

    id: str
    cell: str
    rrc: str
    drx: str | None
    radio: list[RadioSnapshot]
    """Down and up."""


class FlowSnapshot(TypedDict):
    """What the packets of one flow say."""

    id: str
    direction: str
    bytes: int
    retransmissions: int
    rtt_ms: float | None
    cwnd_segments: int | None


class Snapshot(TypedDict):
    """Counters since the start of the run, and states of this instant."""

    time_s: float
    directions: list[DirectionSnapshot]
    """Down and up."""
    links: list[LinkSnapshot]
    cells: list[CellSnapshot]
    ues: list[UeSnapshot]
    mobility: list[tuple[str, int]]
    """What happened to UEs between cells, by name in the ``events`` table."""
    flows: list[FlowSnapshot]
    other_flows: int
