//! A scenario as the drivers see it: complete, checked, and independent of TOML.

use std::fmt;
use std::net::Ipv4Addr;

use airpath_base::{Direction, Duration, Rate};
use airpath_path::{LinkConfig, StageConfig};
use airpath_quic::Config as QuicConfig;
use airpath_radio::cell::{CellConfig, UeConfig};
use airpath_radio::ran::RanConfig;
use airpath_tcp::EndpointConfig;

use crate::edit::KeyPath;
use crate::secret::secret_hash;

/// One fully determined experiment (except for the seed, which a run may override).
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Short name: the file's stem, unless the file sets another.
    pub name: String,
    /// One line that describes the scenario to people.
    pub title: String,
    /// Seed, duration and tables.
    pub run: RunConfig,
    /// How packets are moved on the real clock.
    pub emulation: EmulationConfig,
    /// The core network that UEs attach to, in emulation.
    pub core: Option<CoreConfig>,
    /// Stages from the server to the UE, in the order that packets meet them.
    pub down: Vec<NamedStage>,
    /// Stages from the UE to the server, in the order that packets meet them.
    pub up: Vec<NamedStage>,
    /// The TCP proxy among the stages, if there is one.
    pub proxy: Option<ProxyConfig>,
    /// The cell at the UE's end of the path: downlink packets pass it after all stages, uplink
    /// packets before all. Without it the path ends at the UE.
    pub radio: Option<RadioConfig>,
    /// Traffic, in file order; ids are unique.
    pub flows: Vec<FlowConfig>,
    /// Programs that an emulation runs, in file order; names are unique.
    pub programs: Vec<ProgramConfig>,
}

impl Scenario {
    /// The scenario with hashes for secrets, as its resolved text has it.
    pub fn without_secrets(mut self) -> Self {
        if let Some(core) = &mut self.core {
            core.keys = None;
            for usim in &mut core.usims {
                let imsi = usim.imsi.clone();
                let hashed = |name: &str, value: &mut Option<String>| {
                    *value = value.take().map(|value| secret_hash(name, &imsi, &value));
                };
                hashed("key", &mut usim.key);
                hashed("opc", &mut usim.opc);
            }
        }
        self
    }
}

/// Seed, duration and tables.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// Seed of every random stream.
    pub seed: u64,
    /// When the run ends, at the latest.
    pub duration: Duration,
    /// Interval of the `samples` and `links` tables.
    pub sample_interval: Duration,
    /// Write the `acks` table: one row per acknowledgement.
    pub ack_table: bool,
    /// Write the `radio_log` table: what happens on the radio, slot by slot.
    pub radio_log: bool,
}

/// How packets are moved on the real clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulationConfig {
    /// How late 99 % of the packets of each direction may be.
    pub lateness_bound: Duration,
    /// How long 99 % of the acknowledgements may take inside the host that sends the data.
    pub host_bound: Duration,
    /// Bytes of segments that are given to the kernel as one packet; 0: segments are not coalesced.
    pub coalesce_bytes: u32,
    /// How long before a departure the forwarder starts to poll the clock.
    pub spin: Duration,
    /// Keeps idle processors from sleeping.
    pub keep_awake: bool,
    /// GTP-U between gateway and base station; `None`: packets travel without it.
    pub gtpu: Option<GtpuLink>,
    /// How packets get from the kernel to the forwarder and back.
    pub io: PacketIo,
    /// How the kernel's TCP senders are observed.
    pub observer: ObserverKind,
    /// Time between two reads of TCP_INFO.
    pub observer_poll: Duration,
    /// Which slow start the kernel's CUBIC uses.
    pub slow_start: SlowStartOf,
}

/// Which slow start the kernel's CUBIC uses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SlowStartOf {
    /// The slow start of the running kernel.
    #[default]
    Kernel,
    /// The slow start of the flow's profile.
    Profile,
}

/// The link between gateway and base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuLink {
    /// Largest outer packet in bytes that is not fragmented; `None`: as the path's gtpu stage says.
    pub mtu: Option<u32>,
}

/// A core network, and what is on the UEs' USIMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreConfig {
    /// The file that lists the subscribers.
    pub subscribers: String,
    /// The file with the UEs' keys.
    pub keys: Option<String>,
    /// `lte` or `nr`.
    pub access: &'static str,
    /// First address of the pool from which UEs get theirs.
    pub network: Ipv4Addr,
    /// Prefix length of that pool, in bits.
    pub prefix: u8,
    /// Name of the only data network.
    pub apn: String,
    /// How long it takes to set up the RRC connection.
    pub rrc_setup: Duration,
    /// How long attach or registration takes.
    pub attach: Duration,
    /// How long it takes to set up the default bearer or PDU session.
    pub session: Duration,
    /// USIMs, by UE.
    pub usims: Vec<Usim>,
}

/// Identity of a UE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usim {
    /// 14 or 15 digits.
    pub imsi: String,
    /// K, in lower-case hexadecimal digits, or its hash; `None`: the key file has it.
    pub key: Option<String>,
    /// OPc, in the same form as `key`.
    pub opc: Option<String>,
    /// The data network that the UE asks for; `None`: [`CoreConfig::apn`].
    pub apn: Option<String>,
}

/// How an emulation exchanges packets with the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketIo {
    /// The first of the others that this machine supports.
    #[default]
    Auto,
    /// TUN devices.
    Tun,
    /// AF_PACKET sockets on veth pairs.
    Packet,
}

impl PacketIo {
    /// Name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tun => "tun",
            Self::Packet => "packet",
        }
    }
}

/// A program inside an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramConfig {
    /// Unique name.
    pub name: String,
    /// Where it runs.
    pub place: ProgramPlace,
    /// For `/bin/sh -c`.
    pub command: String,
    /// When it starts.
    pub start: Duration,
    /// Programs after it start only once somebody listens; the run does not wait for its end.
    pub service: bool,
    /// When it ends the run ends, whatever else still runs.
    pub ends_run: bool,
}

/// An end of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPlace {
    /// The host beyond the path.
    Server,
    /// A UE, by its index in [`RadioConfig::ues`]; 0 without a radio.
    Ue(usize),
}

/// How the kernel's TCP senders are observed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ObserverKind {
    /// By BPF if possible, otherwise by reading TCP_INFO.
    #[default]
    Auto,
    /// By BPF: every acknowledgement.
    Bpf,
    /// By reading TCP_INFO at intervals.
    Poll,
    /// Not at all.
    None,
}

/// Which stage of the file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageId {
    /// Direction of the packets that pass it.
    pub direction: Direction,
    /// Position in the file, counted from 0; stages that are not enabled count too.
    pub index: usize,
    /// Kind of stage, as the file has it.
    pub kind: &'static str,
}

impl StageId {
    /// The path of the stage's table: `path.down.0`.
    pub fn key(&self) -> KeyPath {
        KeyPath::new(&format!("path.{}", self.direction)).at(self.index)
    }
}

/// `down.0.link`: direction, position, kind.
impl fmt::Display for StageId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}.{}", self.direction, self.index, self.kind)
    }
}

/// A stage and its name, which tables and its random stream use.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedStage {
    /// Which stage it is.
    pub id: StageId,
    /// The id as text: `down.0.link`.
    pub name: String,
    /// The stage's configuration.
    pub stage: StageConfig,
}

impl NamedStage {
    /// A stage with its name.
    pub fn new(id: StageId, stage: StageConfig) -> Self {
        Self { id, name: id.to_string(), stage }
    }

    /// Stages with their names, in the form that [`build_pair`](airpath_path::build_pair) takes.
    pub fn named(stages: &[Self]) -> impl Iterator<Item = (&str, &StageConfig)> {
        stages.iter().map(|stage| (stage.name.as_str(), &stage.stage))
    }
}

/// A TCP proxy (RFC 3135 2.4) among the stages of both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyConfig {
    /// The ends that serve flows whose data goes down.
    pub down: ProxyEnds,
    /// The ends that serve flows whose data goes up.
    pub up: ProxyEnds,
}

/// One direction of a proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyEnds {
    /// Which stage of the file it is.
    pub id: StageId,
    /// The id as text, for tables: `down.1.proxy`.
    pub name: String,
    /// How many stages of this direction come before it.
    pub stages_before: usize,
    /// Name of the profile that the ends are based on.
    pub profile: String,
    /// The configuration of both ends: the one that receives what a flow sends in this direction,
    /// and the one that sends it on. The driver reads from the first what it writes to the second.
    pub endpoint: EndpointConfig,
}

/// Cells and their UEs.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Name of the preset that the first cell is based on.
    pub preset: String,
    /// Names of the cells: the first cell, then its neighbours in file order.
    pub cells: Vec<String>,
    /// Names of the UEs, one or more, in file order; unique.
    pub ues: Vec<String>,
    /// What lies between each UE's radio and its TCP, in the order of `ues`.
    pub hosts: Vec<UeHostConfig>,
    /// The configuration of cells and UEs, in the order of these names.
    pub ran: RanConfig,
}

impl RadioConfig {
    /// A radio with one cell and its UEs.
    pub fn alone(preset: &str, cell: &CellConfig, ues: &[(&str, UeConfig)]) -> Self {
        let configs: Vec<_> = ues.iter().map(|(_, config)| config.clone()).collect();
        Self {
            preset: preset.to_owned(),
            cells: vec!["cell-0".to_owned()],
            ues: ues.iter().map(|&(name, _)| name.to_owned()).collect(),
            hosts: vec![UeHostConfig::default(); ues.len()],
            ran: RanConfig::alone(cell, &configs),
        }
    }
}

/// What lies between a UE's radio and its TCP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UeHostConfig {
    /// The link's two directions, down and up.
    pub link: [HostLinkConfig; 2],
    /// Delay of downlink packets from the end of that link to TCP.
    pub delay: Duration,
    /// Mean of the exponentially distributed part that is added to `delay`.
    pub jitter: Duration,
}

/// One direction of the link between a UE's radio and its host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostLinkConfig {
    /// Rate and queue, if the link has a rate.
    pub limit: Option<LinkConfig>,
    /// Delay after the queue.
    pub delay: Duration,
}

/// A flow: a `[[flow]]` table, or one of the several streams that it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    /// Position of the table in the file, counted from 0; tables that are not enabled count too.
    pub index: usize,
    /// Unique name.
    pub id: String,
    /// The table's name in the file, if it has `streams`: then this is one of several identical
    /// flows, which follow each other.
    pub group: Option<String>,
    /// Direction of the data; for a ping, that of the request.
    pub direction: Direction,
    /// When it starts.
    pub start: Duration,
    /// Index of the flow's UE in [`RadioConfig::ues`]; 0 without a radio.
    pub ue: usize,
    /// What the flow sends.
    pub traffic: Traffic,
}

impl FlowConfig {
    /// The path of the flow's table: `flow.0`.
    pub fn key(&self) -> KeyPath {
        KeyPath::new("flow").at(self.index)
    }
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Sends as much as TCP allows for a time, as iperf does; `None`: until the run ends.
    Bulk {
        /// Endpoints.
        tcp: TcpConfig,
        /// How long the application writes, from `start`.
        duration: Option<Duration>,
        /// Bytes of a write: when `duration` ends, the write in progress is completed.
        write: Option<u64>,
    },
    /// Sends this many bytes, then closes.
    File {
        /// Endpoints.
        tcp: TcpConfig,
        /// Bytes, at least 1.
        size: u64,
        /// When the application writes, relative to `start`: an equal part each time, the last time
        /// with the remainder; empty: everything at once.
        writes: Vec<Duration>,
    },
    /// Echo requests at an interval.
    Ping {
        /// Time between requests.
        interval: Duration,
        /// IP packet size in bytes.
        packet_bytes: u32,
        /// Stop after this many; `None`: until the run ends.
        count: Option<u64>,
    },
    /// Datagrams at a constant rate.
    Udp {
        /// IP-level rate.
        rate: Rate,
        /// IP packet size in bytes.
        packet_bytes: u32,
        /// How long it sends; `None`: until the run ends.
        duration: Option<Duration>,
        /// The receiver sends one datagram first, and the sender waits for it.
        receiver_opens: bool,
    },
    /// Sends bytes on one stream of a QUIC connection, which the UE opens.
    Quic {
        /// Endpoints.
        quic: QuicConfig,
        /// Bytes, at least 1; then it closes. `None`: as much as it can for `duration`.
        size: Option<u64>,
        /// How long the application writes; `None`: until the run ends.
        duration: Option<Duration>,
    },
}

/// Both ends of a TCP flow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Name of the profile that both ends are based on.
    pub profile: String,
    /// The end that sends data.
    pub sender: EndpointConfig,
    /// The end that receives it.
    pub receiver: EndpointConfig,
    /// Which end sends the SYN: true for the data sender (iperf), false for the receiver (a
    /// download; `iperf3 -R`).
    pub sender_opens: bool,
    /// How long the hosts take to deliver what arrives to TCP; `None`: no time.
    pub hand_up: Option<HandUpConfig>,
}

/// How long a host takes to deliver to TCP what arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandUpConfig {
    /// Time per aggregate or acknowledgement.
    pub burst: Duration,
    /// Additional time per segment.
    pub segment: Duration,
}

impl Traffic {
    /// The ends of a TCP flow.
    pub const fn tcp(&self) -> Option<&TcpConfig> {
        match self {
            Self::Bulk { tcp, .. } | Self::File { tcp, .. } => Some(tcp),
            Self::Ping { .. } | Self::Udp { .. } | Self::Quic { .. } => None,
        }
    }

    /// Name of the sender's congestion control, if it has one.
    pub fn congestion(&self) -> Option<&'static str> {
        match self {
            Self::Bulk { tcp, .. } | Self::File { tcp, .. } => Some(tcp.sender.congestion.name()),
            Self::Quic { quic, .. } => Some(quic.congestion.name()),
            Self::Ping { .. } | Self::Udp { .. } => None,
        }
    }

    /// Number of bytes after which a transfer is complete.
    pub const fn size(&self) -> Option<u64> {
        match self {
            Self::File { size, .. } => Some(*size),
            Self::Quic { size, .. } => *size,
            Self::Bulk { .. } | Self::Ping { .. } | Self::Udp { .. } => None,
        }
    }

    /// Name in scenarios and tables.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::File { .. } => "file",
            Self::Ping { .. } => "ping",
            Self::Udp { .. } => "udp",
            Self::Quic { .. } => "quic",
        }
    }
}

/// A key of a TCP flow that differs from the flow's profile and that only a simulated endpoint
/// follows: it has no equivalent socket option or sysctl.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulatedOnly {
    /// Position of the flow in the file, counted from 0.
    pub flow: usize,
    /// Name of the key.
    pub key: &'static str,
    /// The key's value in TOML, text without quotes; empty for none.
    pub value: String,
    /// The profile's value; a kernel that matches the profile uses it.
    pub profile_value: String,
}
