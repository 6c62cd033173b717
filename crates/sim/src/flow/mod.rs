//! Traffic: what sends and receives at the two ends of the path, and at a proxy between them.

mod notes;
mod ping;
mod split;
mod tcp;
mod udp;

use airpath_base::{FlowId, Instant, Packet};
use airpath_network::{FROM_SERVER, FROM_UE, Hops, Network};
use airpath_record::{FlowSummary, Name, Names, PingSummary, ProxySummary, Tables};
use airpath_scenario::{Direction, FlowConfig, ProxyConfig, Traffic};

use ping::Ping;
use split::SplitFlow;
use tcp::TcpFlow;
use udp::{Opening, Udp};

/// The path that begins where data of `direction` does.
pub(crate) const fn index(direction: Direction) -> usize {
    match direction {
        Direction::Down => FROM_SERVER,
        Direction::Up => FROM_UE,
    }
}

/// What every flow knows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) flow: FlowId,
    pub(crate) name: Name,
    pub(crate) id: String,
    /// The way of the data: the path on which it begins.
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
    pub(crate) network: &'a mut Network,
    pub(crate) tables: &'a mut Tables,
    pub(crate) ack_table: bool,
    /// Hops into which a packet was sent.
    pub(crate) sent: Hops,
}

impl Context<'_> {
    /// Sends a packet into the path that begins here.
    #[inline]
    pub(crate) fn send(&mut self, path: usize, packet: Packet) {
        self.sent.add(self.network.enter(self.now, path, packet));
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

    /// A packet of this flow reached the end of `path`.
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
