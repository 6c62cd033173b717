//! Traffic: what sends and receives at the two ends of the path, and at a proxy between them.

mod notes;
mod ping;
mod split;
mod tcp;
mod udp;

use airpath_base::{FlowId, Instant, Packet};
use airpath_path::Path;
use airpath_record::{FlowSummary, Name, Names, PingSummary, ProxySummary, Tables};
use airpath_scenario::{Direction, FlowConfig, ProxyConfig, Traffic};

use ping::Ping;
use split::SplitFlow;
use tcp::TcpFlow;
use udp::{Opening, Udp};

use crate::radio::Radio;

/// Both directions: index 0 goes down to the UE, index 1 up. With a proxy they end there, and 2 and
/// 3 go on from it, down and up; without one 2 and 3 are not used.
pub(crate) type Paths = [Box<dyn Path>; 4];

/// The path that begins at the UE.
pub(crate) const FROM_UE: usize = 1;

/// The radio's place beside [`Paths`].
pub(crate) const RADIO: usize = 4;

/// The path that goes on where `direction` ends at the proxy.
pub(crate) const fn beyond_proxy(direction: usize) -> usize {
    direction + 2
}

/// Index into [`Paths`].
pub(crate) const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Down => 0,
        Direction::Up => 1,
    }
}

/// What every flow knows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) flow: FlowId,
    pub(crate) name: Name,
    pub(crate) id: String,
    /// The way of the data, an index into [`Paths`]: where it begins.
    pub(crate) forward: usize,
    pub(crate) direction: &'static str,
    pub(crate) kind: &'static str,
    /// Name of its UE.
    pub(crate) ue: Option<String>,
    pub(crate) start: Instant,
}

/// What a flow may do to the world.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) paths: &'a mut Paths,
    pub(crate) radio: Option<&'a mut Radio>,
    pub(crate) tables: &'a mut Tables,
    pub(crate) ack_table: bool,
    /// Paths into which a packet was sent.
    pub(crate) sent: Sent,
}

/// A set of [`Paths`], and the radio.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent(u8);

impl Sent {
    #[inline]
    pub(crate) fn add(&mut self, path: usize) {
        self.0 |= 1 << path;
    }

    #[inline]
    pub(crate) fn has_radio(self) -> bool {
        self.0 & (1 << RADIO) != 0
    }

    #[inline]
    pub(crate) fn paths(self) -> impl Iterator<Item = usize> {
        let mut left = self.0 & !(1 << RADIO);
        std::iter::from_fn(move || {
            let path = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (path < 8).then_some(path)
        })
    }
}

impl Context<'_> {
    /// Sends a packet into a path; from the UE, by its radio.
    #[inline]
    pub(crate) fn send(&mut self, path: usize, packet: Packet) {
        match &mut self.radio {
            Some(radio) if path == FROM_UE => {
                self.sent.add(RADIO);
                radio.enqueue(self.now, airpath_path::radio::Direction::Uplink, packet);
            }
            _ => {
                self.sent.add(path);
                self.paths[path].enqueue(self.now, packet);
            }
        }
    }
}

/// One flow's results for the summary.
pub(crate) enum Summary {
    Flow(Box<FlowSummary>),
    /// And the proxy's on its way.
    Split(Box<FlowSummary>, Option<Box<ProxySummary>>),
    /// Its row of the `flows` table as well.
    Ping(PingSummary, Box<FlowSummary>),
}

/// A flow, both of its ends.
pub(crate) enum Flow {
    Tcp(Box<TcpFlow>),
    Split(Box<SplitFlow>),
    Ping(Box<Ping>),
    Udp(Box<Udp>),
}

impl Flow {
    /// The flow whose name was the `index`th to be added.
    pub(crate) fn new(
        config: &FlowConfig,
        index: u32,
        ue: Option<&String>,
        proxy: Option<&ProxyConfig>,
        seed: u64,
        names: &mut Names,
    ) -> Self {
        let identity = Identity {
            flow: FlowId(index),
            name: Name(index),
            id: config.id.clone(),
            forward: self::index(config.direction),
            direction: match config.direction {
                Direction::Down => "down",
                Direction::Up => "up",
            },
            kind: config.traffic.kind(),
            ue: ue.cloned(),
            start: Instant::ZERO + config.start,
        };
        let flow = match &config.traffic {
            Traffic::Bulk { tcp, duration } => TcpFlow::bulk(identity, tcp, seed, *duration),
            Traffic::File { tcp, size } => TcpFlow::file(identity, tcp, seed, *size),
            Traffic::Ping { interval, packet_bytes, count } => {
                let ping = Ping::new(identity, *interval, *packet_bytes, *count);
                return Self::Ping(Box::new(ping));
            }
            Traffic::Udp { rate, packet_bytes, duration, receiver_opens } => {
                let opening = if *receiver_opens { Opening::ByReceiver } else { Opening::Done };
                let udp = Udp::new(identity, *rate, *packet_bytes, *duration, opening);
                return Self::Udp(Box::new(udp));
            }
        };
        match proxy {
            None => Self::Tcp(Box::new(flow)),
            Some(proxy) => {
                let ends = match config.direction {
                    Direction::Down => &proxy.down,
                    Direction::Up => &proxy.up,
                };
                let name = names.add(&format!("{}@proxy", config.id));
                Self::Split(Box::new(SplitFlow::new(flow, ends, name, seed)))
            }
        }
    }

    /// A packet of this flow left `path`, one of [`Paths`].
    #[inline]
    pub(crate) fn on_packet(&mut self, path: usize, packet: &Packet, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.on_packet(path, packet, context),
            Self::Split(flow) => flow.on_packet(path, packet, context),
            Self::Ping(flow) => flow.on_packet(path % 2, packet, context),
            Self::Udp(flow) => flow.on_packet(packet, context),
        }
    }

    /// Its packets pass a proxy as if it were not there.
    #[inline]
    pub(crate) fn passes_proxy(&self) -> bool {
        !matches!(self, Self::Split(_))
    }

    /// A packet of this flow was dropped.
    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        match self {
            Self::Tcp(_) | Self::Split(_) => {}
            Self::Ping(flow) => flow.on_drop(packet),
            Self::Udp(flow) => flow.on_drop(packet),
        }
    }

    /// Its time has come; it may be early.
    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.on_wake(context),
            Self::Split(flow) => flow.on_wake(context),
            Self::Ping(flow) => flow.on_wake(context),
            Self::Udp(flow) => flow.on_wake(context),
        }
    }

    /// When it wants [`Flow::on_wake`].
    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match self {
            Self::Tcp(flow) => flow.next_wake(),
            Self::Split(flow) => flow.next_wake(),
            Self::Ping(flow) => flow.next_wake(),
            Self::Udp(flow) => flow.next_wake(),
        }
    }

    /// It will not send or wait for anything more.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.is_done(),
            Self::Split(flow) => flow.is_done(),
            Self::Ping(flow) => flow.is_done(),
            Self::Udp(flow) => flow.is_done(),
        }
    }

    /// A sample interval ends.
    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.sample(context),
            Self::Split(flow) => flow.sample(context),
            Self::Ping(_) => {}
            Self::Udp(flow) => flow.sample(context),
        }
    }

    /// The run ends at `context.now`.
    pub(crate) fn finish(self, context: &mut Context<'_>) -> Summary {
        match self {
            Self::Tcp(flow) => Summary::Flow(Box::new(flow.finish(context))),
            Self::Split(flow) => {
                let (flow, proxy) = flow.finish(context.now);
                Summary::Split(Box::new(flow.finish(context)), proxy.map(Box::new))
            }
            Self::Ping(flow) => flow.finish(context),
            Self::Udp(flow) => Summary::Flow(Box::new(flow.finish(context.now))),
        }
    }
}

/// Goodput in Mb/s; `None` over no time.
pub(crate) fn mbps(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6)
}
