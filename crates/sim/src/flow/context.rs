//! What all flows have in common: their identity, their access to the world, and their results.

use std::collections::BTreeMap;

use airpath_base::{Direction, FlowId, Instant, Journey, Packet};
use airpath_network::{Hop, HopSet, SteppedNetwork};
use airpath_record::{FlowSummary, Name, PingSummary, ProxySummary, Tables};
use airpath_tcp::RouteMetrics;

/// The identity of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) flow: FlowId,
    pub(crate) name: Name,
    pub(crate) id: String,
    /// Direction of its data.
    pub(crate) direction: Direction,
    pub(crate) kind: &'static str,
    /// Name of its UE.
    pub(crate) ue: Option<String>,
    pub(crate) start: Instant,
}

/// Access of a flow to the world.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) network: &'a mut SteppedNetwork,
    pub(crate) tables: &'a mut Tables,
    pub(crate) ack_table: bool,
    /// Hops whose next event may have changed, because a packet was sent into them.
    pub(crate) sent: HopSet,
    /// What the hosts know about each other.
    pub(crate) routes: &'a mut Routes,
}

/// What the sending host of a direction knows about the host at the other end, by direction and UE.
pub(crate) type Routes = BTreeMap<(Direction, Option<String>), RouteMetrics>;

impl Context<'_> {
    /// Sends a packet into the path that begins at `hop`.
    #[inline]
    pub(crate) fn send(&mut self, hop: Hop, packet: &Packet) {
        if let Some(hop) = self.network.enter(self.now, hop, packet) {
            self.sent.add(hop);
        }
    }

    /// Where a packet that has arrived spent its time; `None` if it is not accounted for.
    #[inline]
    pub(crate) fn end_journey(&mut self, packet: &Packet) -> Option<Journey> {
        self.network.end_journey(packet, self.now)
    }
}

/// One flow's results for the summary.
pub(crate) enum Summary {
    Flow(Box<FlowSummary>),
    /// A transfer through a proxy, with the proxy's row.
    Split(Box<FlowSummary>, Option<Box<ProxySummary>>),
    /// A ping, with its row of the `flows` table.
    Ping(PingSummary, Box<FlowSummary>),
}

impl Identity {
    /// Where [`Routes`] has what the flow's sender knows.
    pub(crate) fn route(&self) -> (Direction, Option<String>) {
        (self.direction, self.ue.clone())
    }

    /// The path on which its data leaves the sender.
    pub(crate) const fn forward(&self) -> Hop {
        Hop::from_endpoint(self.direction)
    }

    /// The path back from its receiver.
    pub(crate) const fn back(&self) -> Hop {
        Hop::from_endpoint(self.direction.reverse())
    }

    /// A summary with the fields that identify the flow.
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
