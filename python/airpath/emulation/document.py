"""Types of the section ``emulation`` of a run's document: the core's reports and additions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from airpath.documents import GatewayReport, Lateness, Parity, Quantiles, TunnelSetup

if TYPE_CHECKING:
    from airpath.documents import (
        ChosenCongestion,
        DirectionReport,
        FailedFlow,
        FlowSockets,
        NatReport,
        ObserverReport,
        TunnelReport,
    )
    from airpath.readers.iperf_output import IperfDocument


class PrintedPing(TypedDict):
    """What ping printed."""

    tool: str
    id: str
    sent: int
    lost: int
    rtt_ms: dict[str, float] | None
    remarks: list[str]


class Dropped(TypedDict):
    """The part of a stream that is not kept."""

    bytes: int
    because: str | None


class ProgramEntry(TypedDict):
    """A program that ran: its report, and the files of its output."""

    kind: str
    name: str
    at: str
    command: str
    started_s: float | None
    listening_s: float | None
    silent: bool
    ended_s: float | None
    code: int | None
    said: str | None
    stdout: str | None
    """Path in the run directory; null if the output is not kept in a file."""
    stderr: str | None
    dropped: dict[str, Dropped]
    """Output that was not kept, by stream."""
    printed: NotRequired[PrintedPing | IperfDocument | None]
    """What ping or iperf3 printed."""


class Tunnel(TunnelSetup):
    """The GTP-U tunnels of a run, with their counters."""

    directions: dict[str, TunnelReport] | None


class SessionEntry(TypedDict):
    """A UE's session with the core."""

    ue: str
    imsi: str
    address: str
    apn: str
    qci: int
    qfi: int | None
    ambr_down_mbps: float | None
    ambr_up_mbps: float | None
    attached_ms: float
    established_ms: float


class DeviceEntry(TypedDict):
    """A device that was assigned to a UE, by its MAC or IP address."""

    ue: str
    device: str


class GatewayEntry(GatewayReport):
    """A gateway between two interfaces of the host."""

    inside: str
    """The interface on the UEs' side."""
    server: str
    """The interface on the servers' side."""
    devices: list[DeviceEntry]
    changed: dict[str, list[str]]
    """Offloads that were off during the run, by interface."""


class UserEntry(TypedDict):
    """The user as whom programs ran."""

    name: str
    uid: int
    all_capabilities: bool


class Emulation(TypedDict):
    """The result of an emulation."""

    valid: bool
    invalid_because: str | None
    exit_code: int
    interrupted: bool
    """Whether Ctrl-C or a signal asked the programs to end."""
    command: list[str]
    servers: list[str]
    user: UserEntry
    programs: list[ProgramEntry]
    coalesce_bytes: int
    io: str
    real_time: bool
    processors_awake: bool
    limits: list[str]
    observer: ObserverReport
    hystart: dict[str, dict[str, int]]
    flows: int
    other_flows: int
    more_flows: bool
    inside: int
    directions: dict[str, DirectionReport]
    scenario_flows: bool
    """Whether the flows of the scenario ran."""
    failed_flows: list[FailedFlow]
    sockets: list[FlowSockets]
    ack_gaps: dict[str, Quantiles | None] | None
    parity: Parity | None
    nats: list[NatReport]
    gtpu: Tunnel | None
    slow_starts: list[str]
    congestion: list[ChosenCongestion]
    """Congestion controls that were chosen instead of those of the scenario's flows."""
    not_emulated: list[str]
    sessions: list[SessionEntry]
    gateway: GatewayEntry | None


class StoredDirection(TypedDict):
    """Required content of a stored direction's report."""

    lateness_us: Lateness | None


class StoredEmulation(TypedDict):
    """Required content of a stored section; older versions may lack the rest."""

    valid: bool
    invalid_because: str | None
    directions: dict[str, StoredDirection]
    parity: Parity | None
    ack_gaps: dict[str, Quantiles | None] | None
