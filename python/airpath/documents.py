"""Types of the documents that Rust makes: summaries, findings, captures, emulations.

Generated from ``crates/schema/documents.schema.json`` by ``make bless``; edit the Rust types.
With several seeds the figures of a summary are means, so that counts in it are ``float``.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from airpath.base.shapes import Length, Range

Interval: TypeAlias = Annotated[list[float], Length(2, 2)]
"""Lower and upper end."""


class Spread(TypedDict, total=False):
    """What an entry of a summary has besides, with several seeds."""

    ci95: dict[str, Interval | dict[str, Interval | None] | None]
    """The figures again, each a 95 % confidence interval; null below two values."""
    values: dict[str, list[float | None] | dict[str, list[float | None]]]
    """The figures again, each a list by seed."""


class AckGaps(TypedDict):
    """Times between acknowledgements that reached a sender."""

    id: str
    """The flow."""
    gap_ms: Quantiles | None
    """Time from one to the next; null if there were fewer than two."""


class AckReport(TypedDict):
    """How acknowledgements arrived."""

    count: int
    """Acknowledgements without payload that acknowledged new data."""
    batches: int
    """Batches: groups of acknowledgements with less than 1 ms between consecutive ones."""
    per_batch: float
    """Mean number of acknowledgements in a batch."""
    batch_interval_ms: float | None
    """Median time from one batch to the next."""
    bytes_per_ack: float
    """Mean amount of data acknowledged by one acknowledgement, in bytes."""


class BesideReport(TypedDict):
    """Frames of one direction that bypassed the model of a gateway or did not pass it."""

    control: int
    """Frames of ARP, neighbour discovery, DHCP or a protocol other than IP, which passed at once.
    """
    group: int
    """Other multicast and broadcast frames, which passed at once."""
    bytes: int
    """Bytes of both, Ethernet headers included."""
    refused: int
    """Frames of both that the kernel refused to send."""
    for_host: int
    """Unicast frames for this host, which did not pass."""
    tagged: int
    """Frames with a VLAN tag, which did not pass."""
    local: int
    """Frames between two stations of one side, which did not pass."""
    joined: int
    """Frames that were lost because the kernel had joined packets in a way that it cannot
    describe.
    """


class Breakdown(TypedDict):
    """Where the time of a flow went, in a run that accounts for it."""

    id: str
    """The flow's name; with the suffix ``@proxy``, that of the proxy's sender."""
    rtt_ms: DelayBreakdown | None
    """RTT as measured by the sender or by the pings; null without a sample."""
    delay_ms: DelayBreakdown | None
    """One-way delay of UDP; null for other flows."""
    goodput_mbps: GoodputBreakdown | None
    """For bulk and file flows: what the path could have carried, and why the flow did not; null
    for other flows, and without a link.
    """


class CaptureReport(TypedDict):
    """What a capture holds.

    Times are in seconds; those with ``time`` in their name count from 1970.
    """

    format: FileFormat
    """Format of the file."""
    compression: Compression | None
    """Compression of the file, if it is compressed."""
    interfaces: list[InterfaceReport]
    """Interfaces at which packets were captured, in file order."""
    packets: int
    """Packets in the file."""
    bytes: int
    """Bytes on the wire, including link-layer headers."""
    cut_packets: int
    """Packets that were truncated by the capture."""
    cut_headers: CutHeaders | None
    """Packets that were truncated within their headers."""
    sorted_packets: int
    """Packets that were a few places off the order of their times in the file, and were sorted.

    A stream is not sorted, because it cannot be read again.
    """
    clock_step_s: float | None
    """Step of the capture's clock, if all times are multiples of one that is longer than a radio
    link's slots: what took less time is not known.
    """
    backward_times: int
    """Packets whose time is before that of the packet before them, apart from those that were
    sorted: the clock was set back, or files were appended.
    """
    largest_step_back_s: float
    """Largest such step back in time."""
    first_time_s: float | None
    """When the first packet was captured."""
    duration_s: float
    """Time from the earliest to the latest packet."""
    skipped: dict[str, int]
    """Packets that belong to no flow, by reason."""
    incomplete_packets: int
    """Fragmented packets of which not every fragment was captured."""
    missed: Missed
    """Packets that the capture itself missed, as far as this can be seen."""
    flows: list[FlowReport]
    """Flows, in the order in which they began; only the largest ones if there are very many."""
    others: Others
    """Flows that are not in ``flows``."""
    damaged: str | None
    """Where and why reading stopped before the end of the file."""


class CellSnapshot(TypedDict):
    """A cell; pairs are downlink and uplink."""

    id: str
    """Name of the cell."""
    prbs: Annotated[list[int], Length(2, 2)]
    """Resource blocks used, retransmissions included."""
    prbs_per_s: Interval
    """Resource blocks per second; 0: the cell has none to share."""


class ChosenCongestion(TypedDict):
    """A congestion control that a user chose, as it was used."""

    flow: str | None
    """The flow that it is for; null: all that have no choice of their own, and programs."""
    name: str
    """Name in the kernel. It differs from that in the object if that one was in use."""
    file: str | None
    """The object file; null: it is one of the host's."""
    sha256: str | None
    """SHA-256 of the object file."""


Column: TypeAlias = bytes
"""64-bit numbers. Whole numbers are exact below 2^53, in nanoseconds a hundred days."""


Compression: TypeAlias = Literal["gzip", "zstd"]
"""Compression format."""


class CutHeaders(TypedDict):
    """Packets that were cut within their headers."""

    packets: int
    """How many packets were truncated within their headers."""
    snap_bytes: int
    """Bytes of each packet that must be captured to have all headers (``tcpdump -s``): link layer,
    tunnels, and the longest TCP header.
    """


class DelayBreakdown(TypedDict):
    """A mean time, and what it was spent on."""

    mean: float
    """Mean over the samples."""
    samples: int
    """Number of samples."""
    parts: list[DelayPart]
    """Parts that are not 0, in a fixed order. Their sum is the mean."""


class DelayPart(TypedDict):
    """One part of a mean time."""

    part: str
    """What the time was spent on."""
    place: str | None
    """Stage or radio buffer: ``down.0.link``, ``radio.ue-0.up``; null for parts that have no
    place.
    """
    ms: float
    """Mean over all samples."""
    share: float
    """Fraction of the mean."""


class DirectionReport(TypedDict):
    """Counters of one direction.

    A packet that entered has left, was dropped, or is still inside the network.
    """

    entered: int
    """Packets that entered."""
    entered_bytes: int
    """Bytes of these packets."""
    left: int
    """Packets that left."""
    writes: int
    """Writes to the kernel: fewer than packets if segments were joined."""
    refused: int
    """Packets that the kernel refused."""
    ignored: int
    """Packets without a destination, which never entered: multicast, unknown addresses."""
    oversized: int
    """Packets that never entered because there was no room for them or for the segments that they
    represented: larger than ``LARGEST_PACKET``, or cut into thousands.
    """
    largest_bytes: int
    """Size of the largest of these in bytes; 0 if there were none."""
    dropped: dict[str, int]
    """Packets dropped, by reason."""
    marked: int
    """Packets marked CE."""
    overrun: int
    """Packets dropped before they could be read, because the ring of a packet socket was full."""
    missed_slots: int
    """Slots of the cell whose packets were written after the slot's end."""
    lateness_us: Lateness | None
    """Lateness of packets; null if none left."""
    host_us: Lateness | None
    """How long the host that receives this direction's data took until its acknowledgement came
    back; null without TCP.
    """


class DirectionSnapshot(TypedDict):
    """Counters of one direction since the start of the run."""

    entered: int
    """Packets that entered."""
    left: int
    """Packets that left."""
    left_bytes: int
    """Sum of the sizes of these packets."""
    refused: int
    """Packets that the kernel refused."""
    dropped: list[tuple[str, int]]
    """Packets dropped, by reason."""
    late_p99_us: float | None
    """Lateness below which 99 % of the packets so far left; null if none left."""
    late_max_us: float | None
    """Largest lateness so far; null if no packet left."""


class Distribution(TypedDict):
    """Samples of a duration, in milliseconds."""

    count: int
    """How many samples there are."""
    min: float
    """Smallest."""
    mean: float
    """Arithmetic mean."""
    p50: float
    """Median."""
    p95: float
    """95th percentile: 95 % of the samples are not above it."""
    max: float
    """Largest."""


class DropSummary(TypedDict):
    """Packets of one flow that one place lost for one reason."""

    place: str
    """Stage or buffer: ``down.1.loss``, ``radio.ue-0.down``."""
    reason: str
    """Why they were lost."""
    flow: str
    """The flow; acknowledgements belong to the flow that they acknowledge."""
    packets: int
    """Number of packets."""


class EchoReport(TypedDict):
    """ICMP messages between two ends."""

    requests: int
    """Echo requests."""
    replies: int
    """Replies to captured requests, each counted once."""
    duplicates: int
    """Replies that arrived again."""
    unasked: int
    """Replies to requests that were not captured."""
    unanswered: int
    """Requests that neither a reply nor an ICMP error answered although there was time."""
    refused: int
    """Requests that an ICMP error answered, such as ``time-exceeded`` to a traceroute."""
    outstanding: int
    """Requests without a reply that were sent so shortly before the end of the capture that their
    reply may have come later.
    """
    rtt_ms: Distribution | None
    """Time from a request to its reply: the round trip between the capture point and the end that
    replies.
    """
    messages: dict[str, int]
    """Other messages, counted by kind, such as ``fragmentation-needed``."""
    mtu_bytes: int | None
    """The smallest MTU that a message reported, in bytes (RFC 1191, RFC 4443 3.2)."""


class EndEnvironment(TypedDict):
    """The namespace of the server or of a UE, and its settings."""

    name: str
    """The end's name, for ``ip netns exec`` and in ``/etc/hosts``."""
    addresses: list[str]
    """IPv4 addresses, and IPv6 addresses if the MTU allows it."""
    mtu: int
    """MTU of its device."""
    congestion: str
    """Congestion control of its routes."""
    route: str
    """Other attributes of its routes."""
    refused: dict[str, str]
    """Sysctls that could not be set, and why."""
    queue_dropped: int
    """Packets that the kernel dropped before the forwarder read them, because its queue was full.
    """
    sysctls: dict[str, str]
    """net.ipv4.tcp_* at the end of the run."""
    counters: dict[str, int]
    """TCP counters of ``nstat`` that are not 0; they started at 0."""
    hystart: dict[str, int]
    """Slow starts that HyStart ended, by test, and the sum of their cwnd; including zeros."""


class Environment(TypedDict):
    """The machine and its settings."""

    kernel: str
    """Kernel release (``uname -r``)."""
    io: str
    """How packets were exchanged with the kernel: ``tun``, ``packet``."""
    user_namespace: bool
    """Whether there was no root: everything is inside a user namespace."""
    real_time: bool
    """Whether the forwarder's thread had real-time scheduling (SCHED_FIFO)."""
    awake: bool
    """Whether idle processors were kept awake."""
    asleep_because: str | None
    """Why they were not, although they should have been."""
    coalesce_bytes: int
    """Bytes passed to the kernel at once; see ``Settings``."""
    spin_us: float
    """Polling time before a departure; see ``Settings``."""
    tcp_cubic: dict[str, str]
    """Parameters of tcp_cubic, which apply to the whole machine."""
    observer: ObserverReport
    """How the senders were observed."""
    slow_starts: list[str]
    """CUBIC with the slow start of a generation, also available to programs: names in the kernel.
    """
    congestion: list[ChosenCongestion]
    """Congestion controls that the user chose instead of the scenario's."""
    ends: list[EndEnvironment]
    """The ends, server first."""
    tunnel: TunnelSetup | None
    """GTP-U between gateway and base station."""
    nats: list[NatReport]
    """NATs of the path that were the kernel's and not the model's, innermost first."""


class Explanation(TypedDict):
    """Everything known about what held a run back."""

    findings: list[Finding]
    """Causes, the largest first; then the bound."""
    tried: list[Tried]
    """All trials, in order."""
    breakdowns: list[Breakdown]
    """Where the time of each flow went, for the first seed."""
    seeds: int
    """Number of paired seeds."""
    runs: int
    """Number of simulations needed."""
    events: int
    """Number of events simulated."""


class FailedFlow(TypedDict):
    """A flow that could not do what it was configured to do."""

    id: str
    """Name of the flow."""
    because: str
    """Why it failed."""


class FairnessSummary(Spread):
    """How evenly the TCP and QUIC flows of one direction share it."""

    id: str
    """down or up."""
    flows: Annotated[float, Range(1)]
    """Number of flows."""
    jain_index: float
    """Jain's index of their goodputs: 1 means even, 1 / flows that one flow got everything (Jain,
    Chiu and Hawe 1984).
    """


FileFormat: TypeAlias = Literal["pcap", "pcapng"]
"""Format of a capture file."""


class Finding(TypedDict):
    """One cause that was tried and confirmed, or a bound."""

    cause: str
    """Stable name of the cause."""
    subject: str
    """Id of the flow or link, or dotted key."""
    confidence: float
    """Fraction of the paired seeds in which the removal helped by more than noise."""
    evidence: str
    """What was observed, and what its removal changed."""
    advice: str | None
    """What to do, and if there are no settings for it, why; ``None`` for a bound."""
    set: list[str] | None
    """The settings of the advice, which were tried."""
    gain: Gain | None
    """What the advice gained. The effect of the removal is in ``Explanation::tried``."""
    costs: list[Gain]
    """What got worse with the advice."""


class FlowReport(TypedDict):
    """One flow at one point of the path.

    The client is the end that opened it, or else the end that sent first.
    """

    id: int
    """Number of the flow, from 0, in the order in which flows began."""
    protocol: str
    """``tcp``, ``udp``, ``icmp``, or the number of an IP protocol."""
    client: str
    """Address of the client."""
    client_port: int
    """Port of the client; 0 where there is none."""
    server: str
    """Address of the server."""
    server_port: int
    """Port of the server; 0 where there is none."""
    interface: int
    """Index of the interface at which the flow was captured."""
    tunnel: Tunnel
    """The encapsulation of the flow's packets."""
    teids: Annotated[list[int | None], Length(2, 2)]
    """GTP-U tunnel endpoint identifiers of the client's and the server's packets."""
    times_captured: Annotated[list[int], Length(2, 2)]
    """How many identical copies of each packet of the client, and of the server, were captured at
    the flow's point: a mirror port may copy one direction only.

    Copies are left out (they count as skipped), unless the capture was a stream, which cannot be
    read again.
    """
    same_as: list[int]
    """Other flows of the list with the same ends and times: the same packets at other points."""
    start_s: float
    """Time of the flow's first packet, after the capture's first."""
    duration_s: float
    """Time from the flow's first to its last packet."""
    from_client: Volume
    """What the client sent."""
    from_server: Volume
    """What the server sent."""
    tcp: TcpReport | None
    """What the TCP headers show."""
    udp: UdpReport | None
    """What the UDP headers show, and the headers of known protocols behind them."""
    icmp: EchoReport | None
    """What the ICMP messages show."""
    icmp_errors: IcmpErrors | None
    """ICMP errors about the flow's packets, whoever sent them."""


class FlowSnapshot(TypedDict):
    """What the packets of one flow show, since its first one."""

    id: str
    """Name of the flow, e.g. ``tcp ue:40312 server:5201``."""
    direction: str
    """down or up: the direction of most of its data."""
    bytes: int
    """Payload that arrived; for TCP, in order."""
    retransmissions: int
    """Segments retransmitted."""
    rtt_ms: float | None
    """Mean of the round trips since the last sample; null if there are none."""
    cwnd_segments: int | None
    """The sender's congestion window, if the kernel is observed."""


class FlowSockets(TypedDict):
    """Both ends of a flow."""

    id: str
    """Name of the flow."""
    sender: SocketState | None
    """The sender's connection; null if there was none."""
    receiver: SocketState | None
    """The receiver's connection; null if there was none."""
    sender_waited_ms: float | None
    """How long the writing thread was ready to run while others had the processor; null if the
    kernel does not report it.
    """
    receiver_waited_ms: float | None
    """How long the reading thread was ready to run while others had the processor; null if the
    kernel does not report it.
    """


class FlowSummary(Spread):
    """One TCP, QUIC or UDP flow."""

    id: str
    """Name of the flow."""
    kind: str
    """bulk, file, quic, udp (ping in the table only); others: the flows of an emulation that have
    no row of their own, combined.
    """
    direction: str
    """down or up."""
    ue: str | None
    """Name of the flow's UE; null without a radio."""
    congestion: str | None
    """Congestion control; null for UDP."""
    profile: str | None
    """Endpoint profile; null without TCP."""
    bytes_delivered: float
    """In-order payload that arrived, in bytes."""
    goodput_mbps: float | None
    """In-order payload over the time from start to end; null if it never started."""
    written_mbps: float | None
    """Payload that the application wrote to TCP over the same time."""
    rtt_ms: Quantiles | None
    """RTT as the sender measured it; null without a sample."""
    self_inflicted_delay_ms: float | None
    """95th percentile of the RTT less its minimum: the delay that the flow, together with what
    shares its queues, causes itself; null without a sample.
    """
    power: float | None
    """Goodput divided by mean RTT, in Mb/s per second (Kleinrock's power); null without a sample.
    """
    segments_sent: float
    """Segments or packets sent."""
    retransmitted_segments: float | None
    """Retransmissions; null without TCP."""
    rto_count: float | None
    """Retransmission time-outs; null without TCP."""
    undo_count: float | None
    """Reductions of cwnd that were undone; null without TCP."""
    tail_loss_probes: float | None
    """Tail loss probes; null without TCP."""
    ecn_reductions: float | None
    """Reductions of cwnd for ECN marks; null without TCP."""
    steady_mbps: float | None
    """Median of the goodput over 1 s in the second half; null for less than 5 s."""
    converged_after_s: float | None
    """First time at which the goodput over 1 s reaches 90 % of ``steady_mbps``."""
    completed_s: float | None
    """For file flows and QUIC flows with a size: time from the start to the last byte; null if it
    did not complete.
    """
    slow_start_exit: SlowStartExit | None
    """End of the first slow start."""
    limited_s: LimitSeconds | None
    """Time limited by each limit; null for UDP."""
    packets_sent: float | None
    """Datagrams that the sender sent; null for TCP."""
    packets_lost: float | None
    """Datagrams lost; for QUIC, packets that the sender declared lost; null for TCP."""
    delay_ms: Quantiles | None
    """One-way delay; null for TCP."""
    jitter_ms: float | None
    """Interarrival jitter (RFC 3550 6.4.1); null for TCP."""


class Gain(TypedDict):
    """A figure before and after."""

    metric: Metric
    """The figure's name in ``--json``, with its unit."""
    flow: str
    """Id of the flow, or a direction."""
    before: float | None
    """Mean over the seeds without the change; null for a completion time if in some seed the
    transfer did not complete within the run.
    """
    after: float | None
    """Mean over the seeds with the change; null likewise."""
    ci95: Interval | None
    """95 % confidence interval of ``after``."""
    seeds: int
    """Number of paired seeds."""


class GatewayReport(TypedDict):
    """Frames that bypassed the model of a gateway, and the stations that it saw."""

    beside: dict[str, BesideReport]
    """By direction: ``down``, ``up``."""
    stations: list[Station]
    """The stations on the UEs' side, at most 4096."""


class GoodputBreakdown(TypedDict):
    """What the path could have carried while a flow was measured, and how it was used."""

    capacity: float
    """Capacity of the path's slowest link, or of the radio, in Mb/s."""
    place: str | None
    """That link or radio: ``down.0.link``, ``radio.ue-0.down``."""
    goodput: float
    """Goodput of the flow in Mb/s."""
    parts: list[GoodputPart]
    """Parts that are not 0, in a fixed order. Their sum plus the goodput is the capacity."""


class GoodputPart(TypedDict):
    """One part of the capacity that did not become goodput."""

    part: str
    """What used this part of the capacity, or why it was not used."""
    mbps: float
    """Size of the part in Mb/s."""
    share: float
    """Fraction of the capacity."""


class GroupSummary(Spread):
    """Sums over the flows of one ``[[flow]]`` with ``streams``."""

    id: str
    """The id of the ``[[flow]]``; its flows are ``ID.1``, ``ID.2`` and so on."""
    kind: str
    """bulk, file, quic or udp."""
    direction: str
    """down or up."""
    streams: float
    """Number of flows."""
    bytes_delivered: float
    """In-order payload of all of them that arrived, in bytes."""
    goodput_mbps: float | None
    """Sum of their goodputs; null if none started."""
    jain_index: float | None
    """Jain's index of their goodputs, without flows that did not start. Null if nothing arrived."""


IcmpErrors = TypedDict(
    "IcmpErrors",
    {
        "messages": "dict[str, int]",
        "mtu_bytes": "int | None",
        "from": "str",
    },
)
"""ICMP errors that quote packets of a flow."""


class InFlight(TypedDict):
    """Bytes sent and not acknowledged."""

    mean: float
    """Mean over the packets with data."""
    max: int
    """The most."""


class InterfaceReport(TypedDict):
    """An interface at which packets were captured."""

    name: str | None
    """The interface's name in the file."""
    link_type: int
    """LINKTYPE_ number of the interface's packets."""
    link: str | None
    """The link type in words; ``None`` if its packets cannot be read."""
    packets: int
    """Packets of this interface in the file."""
    dropped: int
    """Packets that the interface or its system dropped, according to the file."""


class Lateness(TypedDict):
    """Time of writing minus logical time of departure, in microseconds."""

    p50: float
    """Median."""
    p99: float
    """99th percentile."""
    p99_9: float
    """99.9th percentile."""
    max: float
    """Largest."""


class LimitSeconds(TypedDict):
    """Time limited by each limit, in seconds."""

    cwnd: float
    """By the congestion window."""
    pacing: float
    """By pacing: the time until the next segment may be sent.

    0 for QUIC and in an emulation, where it counts with cwnd.
    """
    receive_window: float
    """By the peer's window; for QUIC, by flow control (RFC 9000 4)."""
    send_buffer: float
    """By the sender's own buffer."""
    application: float
    """By the application, which had nothing to send."""


class LimitsReport(TypedDict):
    """What limited the sender, in seconds from its first data to the last acknowledgement."""

    path_s: float
    """Data was outstanding and none of the other limits applied: the path, or the congestion
    window.
    """
    receive_window_s: float
    """The receive window had no room for one more segment."""
    nothing_to_send_s: float
    """All data was acknowledged, and no new data had been sent."""
    recovery_s: float
    """Lost data, and what was sent before the loss was repaired, was not yet acknowledged."""


class LinkReport(TypedDict):
    """Counters of a stage with a rate."""

    id: str
    """Name of the stage."""
    packets: int
    """Packets that left it."""
    bytes: int
    """Bytes of these packets."""
    capacity_bytes: float
    """Bytes that it could have carried."""


class LinkSnapshot(TypedDict):
    """A link of the path."""

    id: str
    """Name of the stage."""
    bytes: int
    """Bytes that left."""
    queue_packets: int
    """Packets that wait."""
    queue_bytes: int
    """Bytes that wait."""


class LinkSummary(Spread):
    """What a stage with a rate, or a buffer of the radio, carried."""

    id: str
    """Name of the stage or buffer."""
    throughput_mbps: float
    """Rate of departures over the whole run, headers included."""
    capacity_mbps: float
    """Rate at which packets could have left."""
    utilisation: float
    """Throughput divided by capacity."""
    queue_delay_ms: Quantiles | None
    """Time from arrival to departure; null if nothing left."""
    dropped_packets: dict[str, float]
    """Dropped packets by reason."""


Metric: TypeAlias = Literal[
    "goodput_mbps",
    "completed_s",
    "rtt_ms.p95",
    "rtt_ms.p50",
    "rtt_ms.mean",
    "answered_share",
    "delay_ms.p95",
    "jain_index",
    "retransmitted_share",
]
"""A measured quantity with its unit."""


class Missed(TypedDict):
    """Evidence that the capture lacks packets that passed."""

    dropped_packets: int
    """Dropped packets, according to the file."""
    acks_of_unseen: int
    """Acknowledgements of bytes that the capture does not hold."""
    unseen_bytes: int
    """Bytes that were acknowledged and that the capture does not hold."""
    flows: int
    """TCP flows with such acknowledgements."""


class NatReport(TypedDict):
    """What a NAT did in a run."""

    name: str
    """The NAT's name, for ``ip netns exec``."""
    stage: str
    """The stage in ``[[path.up]]`` that the kernel replaced."""
    address: str
    """The address visible from outside."""
    timeout_s: float
    """Lifetime of a binding without packets, in seconds."""
    inward_refreshes: bool
    """Whether packets from outside refresh it."""
    no_binding: int
    """Packets from outside for which there was no binding."""
    queue_dropped: int
    """Packets dropped before the forwarder read them."""


class ObserverReport(TypedDict):
    """How a run's senders were observed, for the provenance."""

    by: str
    """The method: bpf, poll or none."""
    because: str | None
    """Why BPF was not used, although nothing else was requested."""
    poll_ms: float | None
    """Time between two reads of TCP_INFO in milliseconds; null for BPF."""
    records: int
    """Number of reads of TCP_INFO, or of BPF records."""
    lost_records: int
    """Records lost for lack of room: if there are any, rows are missing."""
    sockets: int
    """Ends of connections that were seen."""
    unmatched_sockets: int
    """Ends whose flow the model does not know."""
    forgotten_sockets: int
    """Ends that were forgotten because there were too many: their windows and events are not in
    the tables.
    """
    crowded_records: int
    """Records of ends for which there was no room because so many others were open."""


class Others(TypedDict):
    """Flows that have no row of their own."""

    flows: int
    """How many flows these are."""
    packets: int
    """Packets of these flows."""
    bytes: int
    """IP bytes of these flows."""
    retransmissions: int
    """Retransmitted packets of these flows."""


class Packets(TypedDict):
    """Every packet of a flow.

    Times are nanoseconds after the capture's first packet. The lists have the same length.
    """

    time_ns: bytes
    """When each packet passed."""
    frame: bytes
    """Frame number of each packet in the file, from 1."""
    from_client: bytes
    """Whether the client sent each packet."""
    size: bytes
    """IP length of each packet, in bytes."""
    echo: bytes
    """For an echo request or reply, its sequence number (RFC 792)."""
    cut: bool
    """The flow has more packets than were kept."""


class Parity(TypedDict):
    """The result of a replay."""

    left: int
    """Packets that left."""
    dropped: int
    """Packets that were dropped."""
    same: bool
    """Whether nothing differs."""
    first_difference: str | None
    """The first packet that differs; also ``None`` if only the numbers of packets differ."""


class PingSummary(Spread):
    """One ping flow."""

    id: str
    """Name of the flow."""
    sent: float
    """Requests sent."""
    lost: float
    """Requests whose packet or reply was dropped."""
    rtt_ms: Quantiles | None
    """RTT of the answered requests; null without a reply."""


class ProgramReport(TypedDict):
    """A program, and what happened to it."""

    kind: str
    """``command``, ``server`` (of ``Options::servers``), or ``program`` of the scenario."""
    name: str
    """``command``, ``server-0``, or its name in the scenario."""
    at: str
    """The end where it ran."""
    command: str
    """The command as given."""
    started_s: float | None
    """Start in seconds since the start of the run; null: the run was over before."""
    listening_s: float | None
    """When it listened for connections; null: this was not waited for, or in vain."""
    silent: bool
    """Whether it was waited for, but did not listen in time."""
    ended_s: float | None
    """When it ended; null: it was stopped with the run."""
    code: int | None
    """Exit code, or 128 plus the number of a signal; null: it was stopped with the run."""
    written: Annotated[list[Written], Length(2, 2)] | None
    """Standard output and standard error, if they are written to files."""
    said: str | None
    """The last line of standard error, otherwise of standard output; null: there is none."""


class ProxySummary(Spread):
    """A TCP flow at the proxy in its path.

    What reaches the proxy is sent on over another connection.
    """

    id: str
    """The flow's name."""
    proxy: str
    """The proxy's name, e.g. ``down.1.proxy``."""
    direction: str
    """down or up."""
    congestion: str
    """Congestion control of the proxy's sender."""
    profile: str
    """Profile of the proxy's ends."""
    bytes_received: float
    """In-order payload that reached the proxy."""
    bytes_acked: float
    """The part of it that the next end has acknowledged."""
    buffered_bytes_max: float
    """Largest difference of the two at any time."""
    rtt_ms: Quantiles | None
    """RTT as the proxy's sender measured it; null without a sample."""
    segments_sent: float
    """Segments that the proxy sent, retransmissions included."""
    retransmitted_segments: float
    """Segments that the proxy retransmitted."""
    rto_count: float
    """Retransmission time-outs."""
    undo_count: float
    """Reductions of cwnd that were undone."""
    tail_loss_probes: float
    """Tail loss probes sent (RFC 8985 7)."""
    ecn_reductions: float
    """Reductions of cwnd for ECN marks."""
    slow_start_exit: SlowStartExit | None
    """End of the first slow start, since the flow's start."""
    limited_s: LimitSeconds
    """Time limited by each limit of the proxy's sender; ``application`` is the wait for incoming
    data.
    """


class Quantiles(TypedDict):
    """A distribution in milliseconds."""

    min: float
    """Smallest."""
    mean: float
    """Arithmetic mean."""
    mdev: float
    """Standard deviation."""
    p50: float
    """Median."""
    p95: float
    """95th percentile."""
    p99: float
    """99th percentile."""
    max: float
    """Largest."""


class QuicReport(TypedDict):
    """A QUIC connection, as far as its headers show it (RFC 8999, RFC 9000)."""

    versions: list[str]
    """Versions of the long headers, in order of appearance: ``1``, ``2``, ``draft-29``, or the
    number in hexadecimal.
    """
    original_destination_id: str | None
    """The destination connection ID that the client made up for its first packet, in hexadecimal.
    """
    client_id: str | None
    """The connection IDs that the client and the server chose for themselves."""
    server_id: str | None
    """See ``client_id``."""
    packets: dict[str, int]
    """Datagrams by the type of their first packet."""
    server_side_ms: float | None
    """Time from the client's first packet to the server's first one: the round trip on the
    server's side of the capture point.
    """
    client_side_ms: float | None
    """Time from the server's first packet to the client's answer to it: the round trip on the
    client's side of the capture point.
    """
    handshake_ms: float | None
    """Time from the client's first packet to its first one with a short header."""
    spin: SpinReport
    """The latency spin bit (RFC 9000 17.4)."""


class RadioSnapshot(TypedDict):
    """One direction of a UE."""

    bytes: int
    """Bytes delivered."""
    queue_packets: int
    """Packets that wait."""
    queue_bytes: int
    """Bytes that wait."""
    prbs: int
    """Resource blocks used."""
    blocks: int
    """New transport blocks."""
    mcs_sum: int
    """Sum of their MCS indices."""
    first_errors: int
    """Blocks whose first transmission failed."""
    harq_retransmissions: int
    """Retransmitted transport blocks (TS 38.321 5.3.2, 5.4.2)."""
    lost_blocks: int
    """Blocks that HARQ gave up."""
    rlc_retransmissions: int
    """Retransmitted RLC PDUs."""
    scheduling_requests: int
    """Scheduling requests (up)."""
    buffer_status_reports: int
    """Buffer status reports (up)."""
    grants: int
    """Grants for new data (up)."""
    random_accesses: int
    """Random access procedures (up)."""
    awake_s: float
    """Time in DRX Active Time, in seconds."""
    dropped: list[tuple[str, int]]
    """Dropped packets by reason."""


class RadioSummary(Spread):
    """One direction of one UE of a radio."""

    id: str
    """UE and direction: ``phone.down``."""
    throughput_mbps: float
    """Rate of packets delivered by the radio."""
    prbs_per_s: float
    """Resource blocks per second, retransmissions included."""
    mcs_mean: float | None
    """Mean MCS index of new blocks; null without one."""
    bler: float | None
    """Fraction of new blocks whose first transmission failed; null without one."""
    harq_retransmissions: float
    """Retransmitted transport blocks."""
    lost_blocks: float
    """Blocks that HARQ gave up."""
    rlc_retransmissions: float
    """Retransmitted RLC PDUs."""
    padding: float | None
    """Fraction of the new blocks' bytes that was padding; null without one."""
    grants: float
    """Grants for new data; zero in the downlink."""
    scheduling_requests: float
    """Scheduling requests sent; zero in the downlink."""
    buffer_status_reports: float
    """Buffer status reports sent; zero in the downlink."""
    random_accesses: float
    """Random access procedures begun; zero in the downlink."""
    marked_packets: float
    """Packets marked CE in the buffer."""
    awake: float
    """Fraction of the run spent in DRX Active Time; 1 without DRX."""


class Report(TypedDict):
    """The report of a whole run."""

    elapsed_s: float
    """Elapsed time on the clock in seconds."""
    clock_origin_ns: int
    """CLOCK_MONOTONIC at the start of the run, in nanoseconds."""
    directions: dict[str, DirectionReport]
    """Counters by direction: ``down``, ``up``."""
    tunnel: dict[str, TunnelReport] | None
    """GTP-U between gateway and base station by direction, if there was any."""
    inside: int
    """Packets inside when the run ended."""
    flows: int
    """Flows that were seen."""
    other_flows: int
    """Flows whose packets are counted in the row ``others``, all or some."""
    more_flows: bool
    """Whether there were more flows than could be distinguished."""
    gone: list[tuple[str, float]]
    """Ends whose devices disappeared, and when, in seconds."""
    missed_rtts: int
    """Round trips that are in no flow's distribution, because too many flows had some at the same
    time.
    """
    links: list[LinkReport]
    """Links, in order of direction and stage."""
    gateway: GatewayReport | None
    """Frames that bypassed the model, if the run had a gateway."""
    ack_gaps: list[AckGaps]
    """Acknowledgement gaps of the scenario's TCP flows, if they ran."""


class Retransmissions(TypedDict):
    """Retransmissions, in packets.

    Each packet has exactly one of the five reasons ``fast`` to ``unclear``; several proofs that it
    was spurious may apply.
    """

    packets: int
    """All retransmitted packets."""
    bytes: int
    """Payload of the retransmitted packets."""
    segments: int
    """The retransmitted packets counted in segments of the MSS, where offload had merged them."""
    fast: int
    """Retransmissions after duplicate or selective acknowledgements (RFC 6675, RFC 8985 6)."""
    tail_loss_probe: int
    """Retransmissions of the last segment after a silence (RFC 8985 7)."""
    timeout: int
    """Retransmissions after a time-out, including those that followed from it (RFC 6298 5)."""
    handshake: int
    """Retransmitted SYN or SYN-ACK."""
    unclear: int
    """Retransmissions without an apparent reason."""
    original_unseen: int
    """Retransmissions whose original was lost before the capture point."""
    spurious: int
    """Retransmissions that were not needed."""
    spurious_by_ack: int
    """Proof: the acknowledgement had already passed the capture point."""
    spurious_by_dsack: int
    """Proof: the receiver reports a duplicate (RFC 2883, RFC 3708)."""
    spurious_by_timestamp: int
    """Proof: the acknowledgement echoes the original's timestamp (RFC 3522)."""


Rough: TypeAlias = bytes
"""32-bit numbers."""


class RunSummary(TypedDict):
    """A whole run."""

    seed: int
    """The run's seed."""
    duration_s: float
    """Length on the run's own clock."""
    events: int
    """Events that the driver handled."""
    flows: list[FlowSummary]
    """TCP, QUIC and UDP flows."""
    pings: list[PingSummary]
    """Ping flows."""
    links: list[LinkSummary]
    """Everything with a rate: link stages, and the buffers of a radio."""
    fairness: list[FairnessSummary]
    """How evenly TCP and QUIC flows share, for each direction with two or more of them."""
    proxies: list[ProxySummary]
    """TCP flows at the proxy in their path; empty without a proxy."""
    radio: list[RadioSummary]
    """The radio by UE, downlink before uplink; UEs without traffic are left out."""
    drops: list[DropSummary]
    """Packets lost, by place, reason and flow."""
    breakdowns: NotRequired[list[Breakdown]]
    """Where the time went, by flow; only for a run that accounts for it."""
    groups: NotRequired[list[GroupSummary]]
    """Sums over the flows of each ``[[flow]]`` with ``streams``; left out if there is none."""


class Segments(TypedDict):
    """The data of one end, and the other end's acknowledgements.

    Times are nanoseconds after the capture's first packet. The lists of one group have the same
    length.
    """

    sent_ns: bytes
    """When each segment with payload passed."""
    frame: bytes
    """Frame number of each segment in the file, from 1."""
    offset: bytes
    """First byte of each segment, relative to the first byte of the stream."""
    payload: bytes
    """Bytes after the segment's headers."""
    size: bytes
    """IP length of the segment, in bytes."""
    sent_again: bytes
    """How often the segment was retransmitted before it was acknowledged."""
    is_again: bytes
    """Whether some of the segment's bytes had been sent before."""
    after_gap: bytes
    """Whether the segment begins behind bytes that had not been seen by then."""
    timestamp: bytes
    """Timestamp of the segment (RFC 7323), if it has one."""
    echo: bytes
    """The other end's timestamp that the segment echoes."""
    acked_ns: bytes
    """When the segment was first acknowledged, cumulatively or selectively; none for a
    retransmission.
    """
    ack_ns: bytes
    """When each acknowledgement passed."""
    delivered: bytes
    """Payload that the receiver had acknowledged until then, including data above gaps."""
    ack_offset: bytes
    """Cumulative acknowledgement: all bytes before this one are acknowledged; counted as
    ``offset`` is.
    """
    window: bytes
    """The window as it stands in the header, not scaled."""
    ack_timestamp: bytes
    """Timestamp of the acknowledgement."""
    is_pure: bytes
    """Whether the acknowledgement carries no payload."""
    sack_ns: bytes
    """When each selective acknowledgement (RFC 2018) passed."""
    sack_from: bytes
    """First byte of the selectively acknowledged block; counted as ``offset`` is."""
    sack_to: bytes
    """The byte after the last one of the block."""
    handshake_ns: Annotated[list[int | None], Length(3, 3)]
    """Times of the first SYN, of the answer to it, and of the answer to that."""
    fin_ns: int | None
    """When the end that sends the data sent a FIN."""
    cut: bool
    """The flow has more segments than were kept."""


class SendingReport(TypedDict):
    """How new data left its sender, as far as the capture point shows it."""

    bursts: int
    """Bursts: groups of packets with new data, with less than 0.1 ms between consecutive ones."""
    per_burst: float
    """Mean number of segments in a burst."""
    largest_burst: int
    """Segments in the largest burst."""
    unprompted: float | None
    """Share of the bursts that began 0.5 ms or more after the last acknowledgement, among those
    that began while data was outstanding: a timer (pacing) or the application triggered them.

    ``None`` next to the receiver.
    """


class SequenceReport(TypedDict):
    """Datagrams with sequence numbers.

    Datagrams reported as lost were lost before the capture point.
    """

    header: str
    """Kind of header: ``iperf3``, ``iperf3-64`` (with 64-bit counters), ``rtp``, or ``number``: a
    32-bit number comes first, as with iperf 2 and SRT.
    """
    expected: int
    """How many numbers there are from the first to the highest one."""
    lost: int
    """Numbers that did not arrive."""
    out_of_order: int
    """Datagrams that arrived after later ones."""
    duplicates: int
    """Datagrams that arrived again."""
    longest_gap: int
    """Most consecutive numbers that were missing when a later one arrived."""
    jitter_ms: float | None
    """Interarrival jitter at the end of the flow (RFC 3550 6.4.1); none where the sender's clock
    is not known.
    """
    clock_hz: int | None
    """Frequency of the sender's clock that the jitter is computed with, in Hz."""


class SlowStart(TypedDict):
    """The first round trips that carry data."""

    rounds_bytes: list[int]
    """Maximum of the bytes in flight in each round."""
    rounds_end_s: list[float]
    """When each round ended, after this direction's first data."""
    exit_round: int | None
    """The round (from 0) in which growth ended; ``None`` if it had not ended."""
    exit_s: float | None
    """When growth ended, after this direction's first data."""
    ended_by: str | None
    """What ended growth: ``retransmission``, ``receive-window``, ``sender-idle`` or ``no-growth``.
    """


class SlowStartExit(TypedDict):
    """How slow start ended."""

    time_s: float
    """Time since the flow's start."""
    cwnd_segments: float
    """cwnd at that time, in segments."""
    reason: str
    """Why slow start ended."""
    bdp_fraction: float | None
    """cwnd divided by the bandwidth-delay product, which is the slowest link's capacity until then
    times the smallest RTT; null without a link.
    """
    min_rtt_ms: float
    """Smallest RTT until then."""
    round_rtt_ms: float | None
    """The RTT that was compared with it; null if the reason is not one of delay."""


class Snapshot(TypedDict):
    """Counters since the start, and current states."""

    time_s: float
    """Seconds since the start."""
    directions: Annotated[list[DirectionSnapshot], Length(2, 2)]
    """Downlink and uplink."""
    links: list[LinkSnapshot]
    """Links, in order of direction and stage."""
    cells: list[CellSnapshot]
    """Cells in file order; empty without a radio."""
    ues: list[UeSnapshot]
    """UEs in file order."""
    mobility: list[tuple[str, int]]
    """Events of UEs between cells, by name in the ``events`` table."""
    flows: list[FlowSnapshot]
    """Flows that have a row of their own."""
    other_flows: int
    """Number of other flows."""


class SocketState(TypedDict):
    """The state of one end's connection in the kernel, just after its handshake."""

    congestion: str
    """Name of the congestion control (TCP_CONGESTION)."""
    mss_bytes: int
    """The segment size that it advertises, including TCP options."""
    cwnd_segments: int
    """The initial congestion window."""
    receive_buffer_bytes: int
    """SO_RCVBUF as counted by the kernel: twice what was requested."""
    send_buffer_bytes: int
    """SO_SNDBUF as counted by the kernel: twice what was requested."""
    window_clamp_bytes: int
    """TCP_WINDOW_CLAMP in bytes."""


class SpinReport(TypedDict):
    """The latency spin bit."""

    state: str
    """``spins``; ``constant``: an end does not take part; ``random``: it changes every few
    packets, as RFC 9000 17.4 specifies for ends that do not take part; ``unseen``: too few
    short headers.
    """
    rtt_ms: Distribution | None
    """Time between two changes of the bit in one direction: the end-to-end round-trip time."""
    client_side_ms: Distribution | None
    """Time from a change of the server's bit to a change of the client's: the client's side of the
    capture point.
    """
    server_side_ms: Distribution | None
    """Time from a change of the client's bit to a change of the server's: the server's side of the
    capture point.
    """


class Stalls(TypedDict):
    """Times without any packet while data was outstanding.

    Each lasted at least four round trips and 200 ms.
    """

    count: int
    """How many stalls there were."""
    total_s: float
    """Duration of all stalls together."""
    longest_s: float
    """Duration of the longest stall."""
    longest_at_s: float | None
    """Start of the longest stall, after the capture's first packet."""


class Station(TypedDict):
    """A station that was seen on the UEs' side."""

    mac: str
    """MAC address of the station."""
    ue: str
    """UE that the station is behind, unless one of its IP addresses is assigned to another UE."""


class StreamReport(TypedDict):
    """One direction of a TCP connection."""

    options: SynOptions | None
    """Options of the SYN in this direction."""
    data_packets: int
    """Packets with payload."""
    data_bytes: int
    """Payload, including retransmissions."""
    acked_bytes: int
    """Bytes that were acknowledged."""
    goodput_mbps: float | None
    """Acknowledged bytes divided by the time from the first data to the last acknowledgement."""
    rtt_ms: Distribution | None
    """Time from a segment to its acknowledgement, both at the capture point: the round trip on the
    receiver's side of it.
    """
    rtt_timestamps_ms: Distribution | None
    """Round-trip time on the same side from timestamps, which includes retransmitted segments."""
    retransmissions: Retransmissions
    """Retransmitted packets and their reasons."""
    out_of_order_packets: int
    """Packets that arrived after later ones without being retransmissions."""
    out_of_order_ms: float | None
    """The latest of these packets: its time after the first packet that had overtaken it."""
    duplicate_acks: int
    """Duplicate acknowledgements of this direction's data."""
    in_flight_bytes: InFlight | None
    """Bytes sent and not acknowledged, as seen at the capture point."""
    window: WindowReport | None
    """The receive window for this direction."""
    largest_payload_bytes: int
    """Largest payload of a packet."""
    larger_than_mss: int
    """Packets with more payload than the receiver's MSS: captured before segmentation offload
    split them, or after receive offload merged them.

    Sizes and times then differ from those on the wire.
    """
    keep_alives: int
    """Keep-alive probes (RFC 9293 3.8.4)."""
    unanswered_keep_alives: int
    """Keep-alive probes after which nothing came from the other end any more."""
    window_probes: int
    """Segments that probed a closed window (RFC 9293 3.8.6.1); no other count includes them."""
    acks: AckReport | None
    """How the acknowledgements of this direction's data arrived."""
    sending: SendingReport | None
    """How new data was sent, or passed the capture point."""
    limits: LimitsReport | None
    """What limited the sender, and for how long; none where the receiver is much nearer than the
    sender.
    """
    slow_start: SlowStart | None
    """The first round trips of this direction's data; none where the receiver is much nearer than
    the sender.
    """
    acks_of_unseen: int
    """Acknowledgements of bytes that the capture does not hold."""
    unseen_bytes: int
    """Bytes that were acknowledged and that the capture does not hold."""


class SynOptions(TypedDict):
    """Options of a SYN (RFC 9293 3.2, RFC 7323, RFC 2018)."""

    mss: int | None
    """Maximum segment size that this end receives."""
    window_scale: int | None
    """Number of bits by which this end's windows are shifted."""
    sack_permitted: bool
    """Whether this end understands selective acknowledgements."""
    timestamps: bool
    """Whether the SYN has the timestamps option (RFC 7323 3)."""
    cut: bool
    """The capture holds only a part of the options: an option missing here may have been sent."""


class TcpReport(TypedDict):
    """A TCP connection."""

    opening_seen: bool
    """Whether a SYN of the client was captured, which shows that it is the client."""
    handshake_ms: float | None
    """Time from the first SYN to the last segment of the handshake."""
    state: str
    """``open``, ``closed`` by a FIN from each end, or ``reset``."""
    stalls: Stalls
    """Times without a packet while data was outstanding."""
    longest_silence_s: float
    """Longest time without a packet, whether or not data was outstanding; 0 if it is below 200 ms.
    """
    longest_silence_at_s: float | None
    """Start of that time, after the capture's first packet."""
    from_client: StreamReport
    """The client's data, and the server's acknowledgements of it."""
    from_server: StreamReport
    """The server's data, and the client's acknowledgements of it."""


class Tried(TypedDict):
    """Something that was tried, or could not be tried."""

    cause: str
    """The possible cause, or the cause to cure."""
    subject: str
    """The flow, stage or key concerned."""
    set: list[str]
    """The settings."""
    outcome: str
    """The result, or why it was not tried."""
    score: float | None
    """Best improvement, the logarithm of a ratio; ``None`` if it was not tried."""
    gain: Gain | None
    """The figure that changed most; ``None`` if it was not tried."""


Tunnel: TypeAlias = Literal["none", "gtp-u", "vxlan", "geneve", "ip-in-ip"]
"""The encapsulation around the innermost IP packet."""


class TunnelReport(TypedDict):
    """Report of one direction of the tunnel."""

    sent: int
    """Packets that entered the tunnel."""
    sends: int
    """System calls used to send them."""
    received: int
    """Packets that came out."""
    refused: int
    """Packets that the kernel refused."""
    ignored: int
    """Datagrams that were not a packet of a known tunnel, or that nobody sent there."""
    lost: int
    """Packets that the kernel lost, although later ones came out."""
    lateness_us: Lateness | None
    """Lateness of sending relative to the logical time at which the packet left the model, in us.
    """
    transit_us: Lateness | None
    """Time from that logical time until the packet entered the model again, in us: it includes the
    kernel's time for the packet and for those of its burst before it.
    """


class TunnelSession(TypedDict):
    """A UE's tunnels."""

    ue: str
    """The UE's name."""
    teid_up: int
    """TEID of the gateway, for uplink packets."""
    teid_down: int
    """TEID of the base station, for downlink packets."""
    qfi: int | None
    """QoS flow identifier; ``None`` for LTE."""


class TunnelSetup(TypedDict):
    """The setup of a tunnel, for the provenance."""

    interface: str
    """Name of the interface in both namespaces: ``s1u`` or ``n3``."""
    mtu: int
    """MTU of the link; larger packets were fragmented."""
    gateway: str
    """Address in the namespace ``core``."""
    base_station: str
    """Address in the namespace ``ran``."""
    sessions: list[TunnelSession]
    """One session per UE."""


class UdpReport(TypedDict):
    """A UDP flow."""

    from_client: UdpStreamReport
    """The datagrams that the client sent."""
    from_server: UdpStreamReport
    """The datagrams that the server sent."""
    gtpu: dict[str, int]
    """GTP-U's messages that carry no packet, counted by name, such as ``error-indication``."""
    quic: QuicReport | None
    """What the QUIC headers show, if the flow began as QUIC."""


class UdpStreamReport(TypedDict):
    """One direction of a UDP flow."""

    packets: int
    """Datagrams."""
    payload_bytes: int
    """Bytes after their UDP headers."""
    largest_payload_bytes: int
    """Largest UDP payload of a datagram."""
    rate_mbps: float | None
    """Payload divided by the time from the first datagram to the last."""
    sequence: SequenceReport | None
    """What the sequence numbers in the datagrams show; none where no known header was found."""


class UeSnapshot(TypedDict):
    """The state of one UE, with its counters in both directions."""

    id: str
    """Name of the UE."""
    cell: str
    """The cell that the UE is in, or changes to."""
    rrc: str
    """RRC state; ``handover``: the UE is between cells."""
    drx: str | None
    """DRX state; ``None`` without DRX."""
    radio: Annotated[list[RadioSnapshot], Length(2, 2)]
    """Downlink and uplink."""


class VariantFigure(TypedDict):
    """A figure of one variant."""

    mean: float | None
    """Mean over the seeds; null where a transfer did not complete within the run."""
    ci95: Interval | None
    """95 % confidence interval of the mean; null where no variant's figures differ between seeds.
    """
    values: list[float | None]
    """Values by seed; null where it did not complete."""
    change: float | None
    """Mean relative change against the scenario as it is; null for that one, if that is 0 with any
    seed, and if either did not complete.
    """
    change_ci95: Interval | None
    """95 % confidence interval of the change, from paired seeds; null likewise."""


class VariantRow(TypedDict):
    """One figure of every variant."""

    flow: str
    """Id of the flow, or a direction."""
    metric: Metric
    """The figure's name in ``--json``, with its unit."""
    more_is_better: bool
    """Whether an increase is a gain: true for rates, false for times."""
    cells: list[VariantFigure | None]
    """The scenario as it is, then the variants; null for one without this figure."""
    winner: int | None
    """The best one; 0 is the scenario as it is.

    Null if the best does not differ from every other by more than noise.
    """


class View(TypedDict):
    """One end's data, prepared for drawing."""

    begin_ms: float
    """Time of the first segment or acknowledgement, after the capture's first packet."""
    duration_ms: float
    """Time from the first to the last of them."""
    levels: list[ViewLevel]
    """Levels of bins, the coarsest first."""
    packets: ViewPackets
    """The packets that are drawn one by one."""


class ViewLevel(TypedDict):
    """What happened in each bin; NaN where nothing did.

    Bytes count from the first one of the flow.
    """

    bin_ms: float
    """Width of a bin."""
    low: Rough
    """The lowest and the highest byte that was sent."""
    high: Rough
    acked: Rough
    """Cumulative acknowledgement at the end of the bin, and the window's right edge then."""
    edge: Rough
    again: Rough
    """Segments that were retransmitted."""
    flight: Rough
    """Maximum of the bytes in flight."""
    rtt_low: Rough
    """The shortest and the longest round-trip time that ended in the bin, in ms."""
    rtt_high: Rough
    delivered: Rough
    """Payload that was acknowledged, cumulatively or selectively, in bytes."""
    limit: Rough
    """What limited the sender for most of the bin: 0 path or congestion window, 1 receive window,
    2 nothing to send, 3 recovery.

    Next to the receiver this says nothing.
    """


class ViewPackets(TypedDict):
    """Single packets, complete within the given ranges of time (ms).

    Times are ms after ``begin_ms``. There are at most twice as many acknowledgements as segments,
    and at most as many selective ones.
    """

    ranges: Column
    """Start and end of each range, in pairs."""
    sent: Column
    """When each segment was sent, its first byte, its length, 1 if it was a retransmission, its
    frame number in the file, and its round-trip time in ms (NaN: none).
    """
    offset: Column
    length: Rough
    again: Rough
    frame: Column
    rtt: Rough
    acked_at: Column
    """When each acknowledgement passed, the byte that it acknowledges, and the window's right
    edge.
    """
    acked: Column
    edge: Column
    sack_at: Column
    """Selective acknowledgements: when each passed, the first byte of the block, and the byte
    after its last one.
    """
    sack_from: Column
    sack_to: Column


class Volume(TypedDict):
    """What one end sent."""

    packets: int
    """Packets that passed."""
    bytes: int
    """IP bytes of these packets."""


class WindowReport(TypedDict):
    """The window of a receiver."""

    scale: int | None
    """Number of bits by which windows are shifted; ``None`` without the options of both SYNs (RFC
    7323 2.2): the window in bytes is then unknown.
    """
    max_bytes: int | None
    """Largest window, in bytes."""
    min_bytes: int | None
    """Smallest window after the handshake."""
    limited_s: float | None
    """Time during which the window had no room for one more segment."""
    zero_windows: int
    """How often the window became zero."""


class Written(TypedDict):
    """What happened to one stream of a program."""

    kept_bytes: int
    """Bytes in its file."""
    dropped_bytes: int
    """Bytes that the program wrote beyond that."""
    dropped_because: str | None
    """Why they were dropped."""
