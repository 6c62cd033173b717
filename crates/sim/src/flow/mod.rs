//! Traffic: senders and receivers at the two ends of the path, and at a proxy between them.

mod context;
mod hand_up;
mod ping;
#[cfg(feature = "quic")]
mod quic;
mod sender;
mod spent;
mod split;
mod tcp;
mod udp;

use airpath_base::{Direction, FlowId, Instant, Packet, Site};
use airpath_record::{Breakdown, Name, Names};
use airpath_scenario::{FlowConfig, ProxyConfig, Traffic};

pub(crate) use self::context::{Context, Identity, Routes, Summary};

use crate::goodput::Activities;

use self::ping::Ping;
#[cfg(feature = "quic")]
use self::quic::QuicFlow;
use self::split::SplitFlow;
use self::tcp::TcpFlow;
use self::udp::{Opening, Udp};

/// A flow with both of its ends.
pub(crate) enum Flow {
    Tcp(Box<TcpFlow>),
    Split(Box<SplitFlow>),
    Ping(Box<Ping>),
    Udp(Box<Udp>),
    #[cfg(feature = "quic")]
    Quic(Box<QuicFlow>),
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
            direction: config.direction,
            kind: config.traffic.kind(),
            ue: ue.cloned(),
            start: Instant::ZERO + config.start,
        };
        let flow = match &config.traffic {
            Traffic::Bulk { tcp, duration, write } => {
                TcpFlow::bulk(identity, tcp, seed, *duration, *write)
            }
            Traffic::File { tcp, size, writes } => {
                TcpFlow::file(identity, tcp, seed, *size, writes)
            }
            Traffic::Ping { interval, packet_bytes, count } => {
                let ping = Ping::new(identity, *interval, *packet_bytes, *count);
                return Self::Ping(Box::new(ping));
            }
            Traffic::Udp { rate, packet_bytes, duration, receiver_opens } => {
                let opening = if *receiver_opens { Opening::ByReceiver } else { Opening::Done };
                let udp = Udp::new(identity, *rate, *packet_bytes, *duration, opening);
                return Self::Udp(Box::new(udp));
            }
            #[cfg(feature = "quic")]
            Traffic::Quic { quic, size, duration } => {
                let quic = QuicFlow::new(identity, quic, seed, *size, *duration);
                return Self::Quic(Box::new(quic));
            }
            #[cfg(not(feature = "quic"))]
            Traffic::Quic { .. } => panic!("{}", crate::support::WITHOUT_QUIC),
        };
        match proxy {
            None => Self::Tcp(Box::new(flow)),
            Some(proxy) => {
                let ends = match config.direction {
                    Direction::Downlink => &proxy.down,
                    Direction::Uplink => &proxy.up,
                };
                let name = names.add(&format!("{}@proxy", config.id));
                Self::Split(Box::new(SplitFlow::new(flow, ends, name, seed)))
            }
        }
    }

    /// A packet of this flow that goes in `direction` reached the proxy. Returns when the flow next
    /// needs [`Flow::on_wake`], [`Instant::MAX`] if never.
    pub(crate) fn on_packet_at_proxy(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) -> Instant {
        if let Self::Split(flow) = self {
            flow.on_packet_at_proxy(direction, packet, context);
        }
        self.next_wake().unwrap_or(Instant::MAX)
    }

    /// A packet of this flow reached the endpoint at the end of `direction`. Returns when the flow
    /// next needs [`Flow::on_wake`], unless that time was known before.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) -> Instant {
        // A separate path: what rarer flows need is not set up for most packets.
        match self {
            Self::Tcp(flow) => flow.on_packet(direction, packet, context),
            _ => self.on_other_packet(direction, packet, context),
        }
    }

    #[inline(never)]
    fn on_other_packet(
        &mut self,
        direction: Direction,
        packet: &Packet,
        context: &mut Context<'_>,
    ) -> Instant {
        match self {
            Self::Tcp(flow) => return flow.on_packet(direction, packet, context),
            Self::Split(flow) => flow.on_packet(direction, packet, context),
            Self::Ping(flow) => flow.on_packet(direction, packet, context),
            Self::Udp(flow) => flow.on_packet(packet, context),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.on_packet(direction, packet, context),
        }
        self.next_wake().unwrap_or(Instant::MAX)
    }

    /// Whether its packets pass a proxy as if there were none.
    #[inline]
    pub(crate) fn ignores_proxy(&self) -> bool {
        !matches!(self, Self::Split(_))
    }

    /// A packet of this flow was dropped.
    pub(crate) fn on_drop(&mut self, packet: &Packet) {
        match self {
            Self::Tcp(_) | Self::Split(_) => {}
            Self::Ping(flow) => flow.on_drop(packet),
            Self::Udp(flow) => flow.on_drop(packet),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.on_drop(packet),
        }
    }

    /// Wakes the flow when it is due; the call may be early.
    pub(crate) fn on_wake(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.on_wake(context),
            Self::Split(flow) => flow.on_wake(context),
            Self::Ping(flow) => flow.on_wake(context),
            Self::Udp(flow) => flow.on_wake(context),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.on_wake(context),
        }
    }

    /// When the flow needs [`Flow::on_wake`].
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match self {
            Self::Tcp(flow) => flow.next_wake(),
            Self::Split(flow) => flow.next_wake(),
            Self::Ping(flow) => flow.next_wake(),
            Self::Udp(flow) => flow.next_wake(),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.next_wake(),
        }
    }

    /// Whether it will not send or wait for anything more.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.is_done(),
            Self::Split(flow) => flow.is_done(),
            Self::Ping(flow) => flow.is_done(),
            Self::Udp(flow) => flow.is_done(),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.is_done(),
        }
    }

    /// Whether its congestion control is to decide now.
    pub(crate) fn decision_due(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.decision_due(),
            Self::Split(flow) => flow.decision_due(),
            Self::Ping(_) | Self::Udp(_) => false,
            #[cfg(feature = "quic")]
            Self::Quic(_) => false,
        }
    }

    /// Lets its congestion control decide.
    pub(crate) fn decide(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.decide(context),
            Self::Split(flow) => flow.decide(context),
            Self::Ping(_) | Self::Udp(_) => {}
            #[cfg(feature = "quic")]
            Self::Quic(_) => {}
        }
    }

    /// Why its congestion control cannot go on, if it cannot.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Tcp(flow) => flow.failure(),
            Self::Split(flow) => flow.failure(),
            Self::Ping(_) | Self::Udp(_) => None,
            #[cfg(feature = "quic")]
            Self::Quic(_) => None,
        }
    }

    /// Ends a sample interval.
    pub(crate) fn sample(&mut self, context: &mut Context<'_>) {
        match self {
            Self::Tcp(flow) => flow.sample(context),
            Self::Split(flow) => flow.sample(context),
            Self::Ping(_) => {}
            Self::Udp(flow) => flow.sample(context),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.sample(context),
        }
    }

    /// Where its time went, and its proxy's; empty if it is not accounted for.
    pub(crate) fn breakdowns(
        &self,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Vec<Breakdown> {
        match self {
            Self::Tcp(flow) => flow.breakdown(name).into_iter().collect(),
            Self::Split(flow) => flow.breakdowns(name),
            Self::Ping(flow) => flow.breakdown(name).into_iter().collect(),
            Self::Udp(flow) => flow.breakdown(name).into_iter().collect(),
            #[cfg(feature = "quic")]
            Self::Quic(_) => Vec::new(),
        }
    }

    /// Whether the end of a transfer's measurement is known.
    #[inline]
    pub(crate) fn is_measured(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.is_measured(),
            Self::Split(flow) => flow.is_measured(),
            Self::Ping(_) | Self::Udp(_) => false,
            #[cfg(feature = "quic")]
            Self::Quic(flow) => flow.is_measured(),
        }
    }

    /// What a transfer's senders did; `None` if it is not accounted for.
    pub(crate) fn activities(&self) -> Option<Activities> {
        match self {
            Self::Tcp(flow) => flow.activities(),
            Self::Split(flow) => flow.activities(),
            Self::Ping(_) | Self::Udp(_) => None,
            #[cfg(feature = "quic")]
            Self::Quic(_) => None,
        }
    }

    /// Ends the run at `context.now`.
    pub(crate) fn finish(self, context: &mut Context<'_>) -> Summary {
        match self {
            Self::Tcp(flow) => Summary::Flow(Box::new(flow.finish(context))),
            Self::Split(flow) => {
                let (flow, proxy) = flow.finish(context.now);
                Summary::Split(Box::new(flow.finish(context)), proxy.map(Box::new))
            }
            Self::Ping(flow) => flow.finish(context),
            Self::Udp(flow) => Summary::Flow(Box::new(flow.finish(context.now))),
            #[cfg(feature = "quic")]
            Self::Quic(flow) => Summary::Flow(Box::new(flow.finish(context))),
        }
    }
}
