//! Traffic: what sends and receives at the two ends of the path.

mod ping;
mod tcp;
mod udp;

use airpath_base::{FlowId, Instant, Packet};
use airpath_path::Path;
use airpath_record::{FlowSummary, Name, PingSummary, Tables};
use airpath_scenario::{Direction, FlowConfig, Traffic};

use ping::Ping;
use tcp::TcpFlow;
use udp::{Opening, Udp};

/// Both directions: index 0 goes down to the UE, index 1 up.
pub(crate) type Paths = [Box<dyn Path>; 2];

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
    /// The way of the data, an index into [`Paths`].
    pub(crate) forward: usize,
    pub(crate) direction: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) start: Instant,
}

/// What a flow may do to the world.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) paths: &'a mut Paths,
    pub(crate) tables: &'a mut Tables,
    pub(crate) ack_table: bool,
    /// Directions into which a packet was sent.
    pub(crate) sent: [bool; 2],
}

impl Context<'_> {
    /// Sends a packet down (0) or up (1).
    #[inline]
    pub(crate) fn send(&mut self, direction: usize, packet: Packet) {
        self.sent[direction] = true;
        self.paths[direction].enqueue(self.now, packet);
    }
}

/// One flow's results for the summary.
pub(crate) enum Summary {
    Flow(Box<FlowSummary>),
    /// Its row of the `flows` table as well.
    Ping(PingSummary, Box<FlowSummary>),
}

/// A flow, both of its ends.
pub(crate) enum Flow {
    Tcp(Box<TcpFlow>),
    Ping(Box<Ping>),
    Udp(Box<Udp>),
}

impl Flow {
    pub(crate) fn new(config: &FlowConfig, flow: FlowId, name: Name, seed: u64) -> Self {
        let identity = Identity {
            flow,
            name,
            id: config.id.clone(),
            forward: index(config.direction),
            direction: match config.direction {
                Direction::Down => "down",
                Direction::Up => "up",
            },
            kind: config.traffic.kind(),
            start: Instant::ZERO + config.start,
        };
        match &config.traffic {
            Traffic::Bulk { tcp, duration } => {
                Self::Tcp(Box::new(TcpFlow::bulk(identity, tcp, seed, *duration)))
            }
            Traffic::File { tcp, size } => {
                Self::Tcp(Box::new(TcpFlow::file(identity, tcp, seed, *size)))
            }
            Traffic::Ping { interval, packet_bytes, count } => {
                Self::Ping(Box::new(Ping::new(identity, *interval, *packet_bytes, *count)))
            }
            Traffic::Udp { rate, packet_bytes, duration, receiver_opens } => {
                let opening = if *receiver_opens { Opening::ByReceiver } else { Opening::Done };
                let udp = Udp::new(identity, *rate, *packet_bytes, *duration, opening);
                Self::Udp(Box::new(udp))
            }
        }
    }

    /// A packet of this flow left the path `direction`.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        direction: usize,
        packet: &Packet,
        context: &mut Context<'_>,
    ) {
        match self {
            Self::Tcp(flow) => flow.on_packet(direction, packet, context),
            Self::Ping(flow) => flow.on_packet(direction, packet, context),
            Self::Udp(flow) => flow.on_packet(packet, context),
        }
    }

    /// A packet of this flow was dropped.
    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        match self {
            Self::Tcp(_) => {}
            Self::Ping(flow) => flow.on_drop(packet),
            Self::Udp(flow) => flow.on_drop(packet),
        }
    }

    /// Its time has come; it may be early.
    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.on_wake(context),
            Self::Ping(flow) => flow.on_wake(context),
            Self::Udp(flow) => flow.on_wake(context),
        }
    }

    /// When it wants [`Flow::on_wake`].
    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match self {
            Self::Tcp(flow) => flow.next_wake(),
            Self::Ping(flow) => flow.next_wake(),
            Self::Udp(flow) => flow.next_wake(),
        }
    }

    /// It will not send or wait for anything more.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.is_done(),
            Self::Ping(flow) => flow.is_done(),
            Self::Udp(flow) => flow.is_done(),
        }
    }

    /// A sample interval ends.
    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.sample(context),
            Self::Ping(_) => {}
            Self::Udp(flow) => flow.sample(context),
        }
    }

    /// The run ends at `context.now`.
    pub(crate) fn finish(self, context: &mut Context<'_>) -> Summary {
        match self {
            Self::Tcp(flow) => Summary::Flow(Box::new(flow.finish(context))),
            Self::Ping(flow) => flow.finish(context),
            Self::Udp(flow) => Summary::Flow(Box::new(flow.finish(context.now))),
        }
    }
}

/// Goodput in Mb/s; `None` over no time.
pub(crate) fn mbps(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6)
}
