//! Bearers: a buffer, PDCP and RLC, in both directions, between a UE and its base station.
//!
//! A [`Bearer`] carries packets in blocks that a MAC requests and that HARQ may lose or reorder;
//! the STATUS of one direction travels in the blocks of the other. Slots, HARQ, the scheduler and
//! buffer status reports are not part of it.

mod config;
mod one_way;
#[cfg(test)]
mod tests;

use airpath_base::{Direction, Instant, Journeys, Packet, Site};

pub use config::OneWayConfig;
pub use one_way::{Counters, Forwarding, OneWay};

use crate::rlc::TransportBlock;

/// Both directions of a bearer.
///
/// ```
/// use airpath_base::{Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
/// use airpath_base::Direction;
/// use airpath_radio::bearer::*;
/// use airpath_radio::buffer::*;
/// use airpath_radio::pdcp::*;
/// use airpath_radio::rlc::*;
///
/// let arq = ArqConfig {
///     t_poll_retransmit: Duration::from_millis(45),
///     poll_pdu: None,
///     poll_bytes: None,
///     t_status_prohibit: Duration::ZERO,
///     max_retx_threshold: 8,
/// };
/// let one_way = OneWayConfig {
///     rlc: RlcConfig::Nr {
///         mode: NrMode::Am {
///             sn: NrAmSn::Bits18,
///             t_reassembly: Duration::from_millis(40),
///             arq,
///         },
///         release: Release::InOrder { t_reordering: Some(Duration::from_millis(100)) },
///     },
///     pdcp: PdcpConfig { header_bytes: 3, discard: None, status_report: StatusReport::Required },
///     buffer: BufferConfig {
///         packets: None,
///         bytes: Some(1 << 20),
///         discipline: Discipline::DropTail,
///         ecn: EcnConfig::default(),
///     },
/// };
/// let mut bearer = Bearer::new(&one_way, &one_way, 0);
/// let packet = Packet {
///     flow: FlowId(0),
///     size: 1500,
///     ecn: Ecn::NotEct,
///     tunnel: Tunnel::default(),
///     journey: None,
///     payload: Payload::Opaque(1),
/// };
/// bearer.down.enqueue(Instant::ZERO, &packet);
///
/// let mut block = TransportBlock::new();
/// bearer.fill(Direction::Downlink, Instant::ZERO, 4_000, &mut block);
/// // MAC 3, RLC 3, PDCP 3
/// assert_eq!(block.bytes(), 1_509);
/// let mut delivered = Vec::new();
/// bearer.on_block(Direction::Downlink, Instant::from_nanos(500_000), &block, &mut |at, packet| {
///     delivered.push((at, *packet));
/// });
/// assert_eq!(delivered, [(Instant::from_nanos(500_000), packet)]);
/// // The last PDU of a buffer polls: a STATUS waits to go up.
/// assert_eq!(bearer.buffered_bytes(Direction::Uplink, Instant::from_nanos(500_000)), 3);
/// ```
#[derive(Debug)]
pub struct Bearer {
    /// From the base station to the UE.
    pub down: OneWay,
    /// From the UE to the base station.
    pub up: OneWay,
}

impl Bearer {
    /// An empty bearer. Its drops are attributed to the `stage`-th stage of each direction.
    pub fn new(down: &OneWayConfig, up: &OneWayConfig, stage: u32) -> Self {
        let (mut down, mut up) = (OneWay::new(down, stage), OneWay::new(up, stage));
        down.answer_in(&up);
        up.answer_in(&down);
        Self { down, up }
    }

    /// From now on accounts for packets with a journey: the downlink is the first place, the uplink
    /// the next one.
    pub(crate) fn account(&mut self, journeys: &Journeys, first: Site) {
        self.down.account(journeys, first);
        self.up.account(journeys, Site(first.0 + 1));
    }

    /// Whether several carriers bring the blocks of each direction.
    pub(crate) fn aggregate(&mut self, (down, up): (bool, bool)) {
        self.down.aggregate(down);
        self.up.aggregate(up);
    }

    /// One direction.
    pub const fn direction(&mut self, direction: Direction) -> &mut OneWay {
        match direction {
            Direction::Downlink => &mut self.down,
            Direction::Uplink => &mut self.up,
        }
    }

    /// Bytes that a buffer status report for this direction covers: data, and the other direction's
    /// STATUS (TS 38.322 5.5, TS 36.322 4.5).
    #[inline]
    pub fn buffered_bytes(&self, direction: Direction, now: Instant) -> u64 {
        let (data, reverse) = match direction {
            Direction::Downlink => (&self.down, &self.up),
            Direction::Uplink => (&self.up, &self.down),
        };
        data.buffered_bytes() + u64::from(reverse.status_bytes(now).unwrap_or(0))
    }

    /// Whether a transmission opportunity would be used.
    #[inline]
    pub fn is_ready(&self, direction: Direction, now: Instant) -> bool {
        let (data, reverse) = match direction {
            Direction::Downlink => (&self.down, &self.up),
            Direction::Uplink => (&self.up, &self.down),
        };
        data.is_ready() || reverse.status_bytes(now).is_some()
    }

    /// Fills `room_bytes` of a MAC PDU; returns the bytes used. The block must be empty.
    #[inline]
    pub fn fill(
        &mut self,
        direction: Direction,
        now: Instant,
        room_bytes: u32,
        block: &mut TransportBlock,
    ) -> u32 {
        debug_assert!(block.is_empty(), "a block is filled once");
        // TS 38.322 5.2.3.1.1, TS 36.322 5.1.3.1.1: control PDUs before data PDUs
        let used =
            self.direction(direction.reverse()).build_status(now, room_bytes, &mut block.status);
        block.bytes += used;
        used + self.direction(direction).fill(now, room_bytes - used, block)
    }

    /// HARQ delivered a block of this direction.
    #[inline]
    pub fn on_block(
        &mut self,
        direction: Direction,
        now: Instant,
        block: &TransportBlock,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        self.direction(direction.reverse()).on_status(now, &block.status);
        self.direction(direction).on_block(now, block, deliver);
    }

    /// Whether a direction has a drop that was not polled yet.
    #[inline]
    pub(crate) fn has_drops(&self) -> bool {
        self.down.has_drops() || self.up.has_drops()
    }

    /// HARQ gave up a block of this direction.
    pub fn on_loss(&mut self, direction: Direction, now: Instant, block: &TransportBlock) {
        self.direction(direction).on_loss(now, block);
    }

    /// When [`on_timer`](Bearer::on_timer) has something to do.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let ([a, b, c, d], [e, f, g, h]) = (self.down.timers(), self.up.timers());
        Instant::earliest([a, b, c, d, e, f, g, h])
    }

    /// Handles the timers that expired by `now`.
    pub fn on_timer(
        &mut self,
        now: Instant,
        deliver: &mut impl FnMut(Direction, Instant, &Packet),
    ) {
        self.down.on_timer(now, &mut |at, packet| deliver(Direction::Downlink, at, packet));
        self.up.on_timer(now, &mut |at, packet| deliver(Direction::Uplink, at, packet));
    }

    /// Handover or recovery: see [`OneWay::reestablish`]. Forwarding applies to the downlink; the
    /// uplink's buffer is in the UE, and moves with it.
    pub fn reestablish(
        &mut self,
        now: Instant,
        forwarding: Forwarding,
        deliver: &mut impl FnMut(Direction, Instant, &Packet),
    ) {
        let down = &mut |at, packet: &Packet| deliver(Direction::Downlink, at, packet);
        self.down.reestablish(now, forwarding, down);
        let up = &mut |at, packet: &Packet| deliver(Direction::Uplink, at, packet);
        self.up.reestablish(now, Forwarding::Buffer, up);
    }

    /// Changes to the other radio technology: see [`OneWay::change_to`].
    pub fn change_to(&mut self, down: &OneWayConfig, up: &OneWayConfig) {
        self.down.change_to(&down.rlc);
        self.up.change_to(&up.rlc);
        self.down.answer_in(&self.up);
        self.up.answer_in(&self.down);
    }
}
