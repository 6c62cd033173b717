//! A scenario as the drivers see it: complete, checked, without a trace of TOML.

use std::net::Ipv4Addr;

use airpath_base::{Direction, Duration, Rate};
use airpath_path::{LinkConfig, StageConfig};
use airpath_radio::cell::{CellConfig, UeConfig};
use airpath_radio::ran::RanConfig;
use airpath_tcp::EndpointConfig;

/// One fully determined experiment (but for the seed, which a run may override).
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Short name: the file's stem, unless the file says otherwise.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Clock, seed, tables.
    pub run: RunConfig,
    /// The real clock.
    pub emulation: EmulationConfig,
    /// What UEs attach to, in emulation.
    pub core: Option<CoreConfig>,
    /// From the server to the UE, in the order that packets meet the stages.
    pub down: Vec<NamedStage>,
    /// From the UE to the server.
    pub up: Vec<NamedStage>,
    /// The TCP proxy between them, if there is one.
    pub proxy: Option<ProxyConfig>,
    /// The cell at the UE's end of the path: packets down pass it after all stages, packets up
    /// before all. Without it the path ends at the UE.
    pub radio: Option<RadioConfig>,
    /// Traffic, in file order; ids are unique.
    pub flows: Vec<FlowConfig>,
    /// What an emulation runs, in file order; names are unique.
    pub programs: Vec<ProgramConfig>,
}

/// Clock, seed, tables.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// Seed of every random stream.
    pub seed: u64,
    /// The run ends then, at the latest.
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
    /// What 99 % of the packets of each direction may be late.
    pub lateness_bound: Duration,
    /// What 99 % of the acknowledgements may take inside the host that has the data.
    pub host_bound: Duration,
    /// Bytes of segments that are handed to the kernel as one; 0: none are.
    pub coalesce_bytes: u32,
    /// Time before a departure in which the clock is watched.
    pub spin: Duration,
    /// Idle processors do not sleep.
    pub keep_awake: bool,
    /// Packets travel as GTP-U between gateway and base station.
    pub gtpu: Option<GtpuLink>,
    /// How packets come and go.
    pub io: PacketIo,
    /// How the kernel's TCP senders are observed.
    pub observer: ObserverKind,
    /// Time between two looks at TCP_INFO.
    pub observer_poll: Duration,
    /// Whose slow start CUBIC has.
    pub slow_start: SlowStartOf,
}

/// Whose slow start the kernel's CUBIC has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SlowStartOf {
    /// Its own.
    #[default]
    Kernel,
    /// That of the flow's profile.
    Profile,
}

/// The link between gateway and base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuLink {
    /// Largest outer packet that is not fragmented; `None`: as the path's gtpu stage says.
    pub mtu: Option<u32>,
}

/// A core network, and what the UEs' USIMs say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreConfig {
    /// The file of the subscribers.
    pub subscribers: String,
    /// The file with the keys of UEs.
    pub keys: Option<String>,
    /// `lte` or `nr`.
    pub access: &'static str,
    /// First address of the pool.
    pub network: Ipv4Addr,
    /// Its length in bits.
    pub prefix: u8,
    /// The data network there is.
    pub apn: String,
    /// Until the RRC connection is there.
    pub rrc_setup: Duration,
    /// Attach or registration.
    pub attach: Duration,
    /// Default bearer or PDU session.
    pub session: Duration,
    /// By UE.
    pub usims: Vec<Usim>,
}

/// Identity of a UE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usim {
    /// 14 or 15 digits.
    pub imsi: String,
    /// K, in small hexadecimal digits, or its hash; `None`: it is in the file with the keys.
    pub key: Option<String>,
    /// OPc, likewise.
    pub opc: Option<String>,
    /// The data network that it asks for; `None`: the one there is.
    pub apn: Option<String>,
}

/// How an emulation gets packets from the kernel and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketIo {
    /// The first of the others that this machine has.
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
    /// Nothing starts after it before somebody listens; the run does not wait for its end.
    pub service: bool,
    /// Its end is the end of the run, whatever else still runs.
    pub ends_run: bool,
}

/// An end of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramPlace {
    /// Beyond the path.
    Server,
    /// Index in [`RadioConfig::ues`]; 0 without a radio.
    Ue(usize),
}

/// How the kernel's TCP senders are observed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ObserverKind {
    /// By BPF, else by asking.
    #[default]
    Auto,
    /// By BPF: every acknowledgement.
    Bpf,
    /// By asking for TCP_INFO.
    Poll,
    /// Not at all.
    None,
}

/// A stage and the name it has in tables and in its random stream.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedStage {
    /// `down.0.link`: direction, position, kind.
    pub name: String,
    /// What it is.
    pub stage: StageConfig,
}

impl NamedStage {
    /// Stages with their names, as [`build_pair`](airpath_path::build_pair) takes them.
    pub fn named(stages: &[Self]) -> impl Iterator<Item = (&str, &StageConfig)> {
        stages.iter().map(|stage| (stage.name.as_str(), &stage.stage))
    }
}

/// A TCP proxy (RFC 3135 2.4) that stands somewhere among the stages of both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyConfig {
    /// Its ends for flows down.
    pub down: ProxyEnds,
    /// Its ends for flows up.
    pub up: ProxyEnds,
}

/// A proxy in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyEnds {
    /// Name in tables: `down.1.proxy`, direction and position in the file.
    pub name: String,
    /// How many stages of this direction packets meet before it.
    pub stages_before: usize,
    /// Name of the profile that the ends started from.
    pub profile: String,
    /// The end that receives what a flow sends in this direction, and the one that sends it on.
    /// The driver reads from the one what it offers to the other.
    pub endpoint: EndpointConfig,
}

/// Cells and their UEs.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Name of the preset that the first cell started from.
    pub preset: String,
    /// Names of the cells, the first and its neighbours in file order.
    pub cells: Vec<String>,
    /// Names of the UEs, one or more, in file order; unique.
    pub ues: Vec<String>,
    /// What lies between their radios and their TCP, in the order of these names.
    pub hosts: Vec<UeHostConfig>,
    /// What they are, in the order of these names.
    pub ran: RanConfig,
}

impl RadioConfig {
    /// One cell and its UEs.
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
    /// Down and up.
    pub link: [HostLinkConfig; 2],
    /// Down, from the end of that link to TCP.
    pub delay: Duration,
    /// Mean of the exponential part on top of it.
    pub jitter: Duration,
}

/// One direction of the link between a UE's radio and its host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostLinkConfig {
    /// Its rate and queue, if it limits.
    pub limit: Option<LinkConfig>,
    /// The delay behind them.
    pub delay: Duration,
}

/// What a `[[flow]]` table says, or one of the several streams that it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    /// Its place in the file, counted from 0, those included that are not enabled.
    pub index: usize,
    /// Unique name.
    pub id: String,
    /// The name in the file, where it stands there with `streams`: then this is one of several
    /// equal flows, which follow on each other.
    pub group: Option<String>,
    /// Which way the data goes; for a ping, the way of the request.
    pub direction: Direction,
    /// When it starts.
    pub start: Duration,
    /// Index of its UE in [`RadioConfig::ues`]; 0 without a radio.
    pub ue: usize,
    /// What it does.
    pub traffic: Traffic,
}

/// What a flow does.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Sends as much as TCP allows for a time, as iperf does; `None`: until the run ends.
    Bulk {
        /// Endpoints.
        tcp: TcpConfig,
        /// Time from `start` in which the application writes.
        duration: Option<Duration>,
        /// Bytes of a write: then it completes the one that it is in.
        write: Option<u64>,
    },
    /// Sends this many bytes, then closes.
    File {
        /// Endpoints.
        tcp: TcpConfig,
        /// Bytes, at least 1.
        size: u64,
        /// When the application writes, after `start`, an equal part each time, the last with what
        /// is left; empty: all of it at once.
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
        /// `None`: until the run ends.
        duration: Option<Duration>,
        /// The receiver sends one datagram first, and the sender waits for it.
        receiver_opens: bool,
    },
}

/// Both ends of a TCP flow.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Name of the profile that both started from.
    pub profile: String,
    /// The end that sends data.
    pub sender: EndpointConfig,
    /// The end that receives it.
    pub receiver: EndpointConfig,
    /// Which end sends the SYN: true for the data sender (iperf), false for the receiver (a
    /// download; `iperf3 -R`).
    pub sender_opens: bool,
    /// How long the hosts take to hand up what arrives; `None`: no time.
    pub hand_up: Option<HandUpConfig>,
}

/// How long a host takes to hand up to TCP what arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandUpConfig {
    /// For each aggregate or acknowledgement.
    pub burst: Duration,
    /// More for each segment of it.
    pub segment: Duration,
}

impl Traffic {
    /// Name in scenarios and tables.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::File { .. } => "file",
            Self::Ping { .. } => "ping",
            Self::Udp { .. } => "udp",
        }
    }
}

/// A key of a TCP flow that differs from the flow's profile and that only a simulated endpoint
/// follows: no socket option and no sysctl says the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulatedOnly {
    /// Place of the flow in the file, counted from 0.
    pub flow: usize,
    /// Name of the key.
    pub key: &'static str,
    /// Its value in TOML, text without quotes; empty for none.
    pub value: String,
    /// The profile's value, which is the kernel's if the profile is.
    pub profile_value: String,
}
