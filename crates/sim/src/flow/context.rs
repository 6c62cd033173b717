//! What every flow knows of itself, what it may do to the world, and what it leaves.

use airpath_base::{Direction, FlowId, Instant, Journey, Packet};
use airpath_network::{Hop, HopSet, Network};
use airpath_record::{FlowSummary, Name, PingSummary, ProxySummary, Tables};

/// What every flow knows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) flow: FlowId,
    pub(crate) name: Name,
    pub(crate) id: String,
    /// In which direction its data goes.
    pub(crate) direction: Direction,
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
    /// Hops that may be due at another time, because a packet was sent into them.
    pub(crate) sent: HopSet,
}

impl Context<'_> {
    /// Sends a packet into the path that begins here.
    #[inline]
    pub(crate) fn send(&mut self, hop: Hop, packet: &Packet) {
        if let Some(hop) = self.network.enter(self.now, hop, packet) {
            self.sent.add(hop);
        }
    }

    /// Where a packet that has arrived spent its time; `None`: nobody accounts for it.
    #[inline]
    pub(crate) fn end_journey(&mut self, packet: &Packet) -> Option<Journey> {
        self.network.end_journey(packet, self.now)
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

impl Identity {
    /// The path that its data enters at the sender.
    pub(crate) const fn forward(&self) -> Hop {
        Hop::from_endpoint(self.direction)
    }

    /// The path back, from its receiver.
    pub(crate) const fn back(&self) -> Hop {
        Hop::from_endpoint(self.direction.reverse())
    }

    /// The rows of its summary that say which flow it is.
    pub(crate) fn summary(&self) -> FlowSummary {
        FlowSummary {
            id: self.id.clone(),
            kind: self.kind,
            direction: self.direction.name(),
            ue: self.ue.clone(),
            start_ns: self.start.as_nanos() as i64,
            ..FlowSummary::default()
        }
    }
}
