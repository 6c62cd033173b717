//! One UE: its bearer, its two links, its uplink access.

use airpath_base::{Direction, Duration, Instant, Memo, Stream};

use super::access::UplinkAccess;
use super::carrier::Carrier;
use super::config::{CellConfig, UeConfig};
use super::departure::UeIndex;
use super::link::Link;
use super::meter::{AccessCounters, UeMeter};
use super::output::Output;
use super::presence::Presence;
use crate::bearer::{Bearer, OneWay};
use airpath_queue::Load;

/// A UE, and the base station's state for it.
#[derive(Debug)]
pub(super) struct Ue {
    pub(super) index: u32,
    pub(super) presence: Presence,
    /// The memo holds the time at which the bearer's next timer expires; [`Instant::MAX`]: none
    /// runs.
    pub(super) bearer: Memo<Bearer, Instant>,
    pub(super) down: Link,
    pub(super) up: Link,
    pub(super) access: UplinkAccess,
    /// Processing time in the UE from the end of a slot to RLC.
    pub(super) processing: Duration,
    /// The earliest change of DRX in the event queue; only used while there is a log.
    pub(super) drx_log_due: Option<Instant>,
}

impl Ue {
    /// A UE on its `visit`-th return, 0 if it was present from the start: its channel is the same
    /// as always in this cell, everything else is drawn again.
    pub(super) fn new(
        index: u32,
        config: &UeConfig,
        cell: &CellConfig,
        carrier: &Carrier,
        (seed, visit): (u64, u32),
    ) -> Self {
        let stream = |name: &str| match visit {
            1.. if !name.ends_with("channel") => {
                Stream::new(seed, &format!("ue.{index}.visit.{visit}.{name}"))
            }
            _ => Stream::new(seed, &format!("ue.{index}.{name}")),
        };
        let down = (Direction::Downlink, cell.base_station.downlink + carrier.dci_lead());
        let up = (Direction::Uplink, config.processing.uplink);
        let mut up = Link::new(&config.uplink, up, cell, carrier, &stream);
        up.grant =
            config.configured.filter(|_| carrier.has_standing_grants()).map(|grant| grant.bytes);
        let (downlink, uplink) = (&config.downlink, &config.uplink);
        let mut bearer = Bearer::new(&downlink.bearer, &uplink.bearer, 0);
        bearer.down.set_subheaders(downlink.subheaders);
        bearer.up.set_subheaders(uplink.subheaders);
        Self {
            index,
            presence: Presence::default(),
            bearer: Memo::new(bearer),
            down: Link::new(&config.downlink, down, cell, carrier, &stream),
            up,
            access: UplinkAccess::new(config, &stream),
            processing: config.processing.downlink,
            drx_log_due: None,
        }
    }

    pub(super) fn link(&mut self, direction: Direction) -> &mut Link {
        match direction {
            Direction::Downlink => &mut self.down,
            Direction::Uplink => &mut self.up,
        }
    }

    /// Processes arrivals by `now` and expired timers of the bearer, each at its own time: a timer
    /// precedes an arrival at the same time. Returns whether a timer expired.
    pub(super) fn settle(&mut self, now: Instant, out: &mut Output) -> bool {
        let mut timers = false;
        if !self.bearer.rests(now) {
            while let Some(at) = self.next_bearer_timer().filter(|&at| at <= now) {
                self.admit(|arrival| arrival < at);
                let ue = self.index;
                self.bearer.touch().on_timer(at, &mut |direction, at, packet| {
                    out.depart(direction, ue, at, packet);
                });
                timers = true;
            }
        }
        debug_assert!(self.bearer.next_timer().is_none_or(|at| at > now), "UE {}", self.index);
        self.admit(|arrival| arrival <= now);
        timers
    }

    /// When the next packet enters the downlink buffer, if the UE has to wake for it. New packets
    /// behind waiting ones enter when the buffer is next accessed, unless RRC measures how much
    /// waits.
    #[inline]
    pub(super) fn next_downlink(&self) -> Option<Instant> {
        let idle = !self.down.active && self.bearer.down.queued().packets == 0;
        self.bearer.down.next_prepared().filter(|_| idle || self.access.measures_volume())
    }

    /// When the bearer's next timer expires.
    #[inline]
    pub(super) fn next_bearer_timer(&mut self) -> Option<Instant> {
        let next = self.bearer.known().unwrap_or_else(|| {
            self.bearer.change(|bearer| {
                let next = bearer.next_timer().unwrap_or(Instant::MAX);
                (next, Some(next))
            })
        });
        (next < Instant::MAX).then_some(next)
    }

    /// Packets in its bearer or being prepared for it, including drops that were not collected yet.
    pub(super) fn load(&self) -> Load {
        let of = |one_way: &OneWay| one_way.load() + one_way.prepared() + one_way.uncollected();
        of(&self.bearer.down) + of(&self.bearer.up)
    }

    /// Packets that wait, including those outside RLC.
    pub(super) fn queued(&self, direction: Direction) -> Load {
        match direction {
            Direction::Downlink => self.bearer.down.queued() + self.bearer.down.prepared(),
            Direction::Uplink => self.bearer.up.queued() + self.bearer.up.prepared(),
        }
    }

    /// The meter of one direction.
    pub(super) fn meter(&mut self, now: Instant, direction: Direction) -> UeMeter<'_> {
        let awake = self.presence.awake(now, &mut self.access);
        let queued = self.queued(direction);
        let (link, one_way, access) = match direction {
            Direction::Downlink => (&self.down, &self.bearer.down, AccessCounters::default()),
            Direction::Uplink => (&self.up, &self.bearer.up, self.access.counters),
        };
        let counters = one_way.counters();
        UeMeter {
            ue: UeIndex(self.index),
            direction,
            radio: link.counters,
            access,
            queued,
            sojourn: one_way.sojourn(),
            marked: counters.marked,
            rlc_retransmissions: counters.retransmitted_pdus,
            awake,
            capacity_bytes: link.capacity.until(now),
        }
    }

    /// Bytes that a buffer status report covers, including those that the UE still prepares.
    pub(super) fn reportable(&self, now: Instant) -> u64 {
        self.bearer.buffered_bytes(Direction::Uplink, now) + self.bearer.up.prepared().bytes
    }

    /// Bytes that a block needs for everything that can be sent, headers included, as precisely as
    /// is known before it is assembled.
    pub(super) fn needed(&self, direction: Direction, now: Instant) -> u64 {
        let packets = match direction {
            Direction::Downlink => self.bearer.down.queued().packets,
            Direction::Uplink => self.bearer.up.queued().packets,
        };
        match self.bearer.buffered_bytes(direction, now) {
            0 => 0,
            bytes => bytes + PACKET_HEADERS * packets + BLOCK_HEADERS,
        }
    }

    /// Whether an uplink block would not be empty.
    pub(super) fn has_uplink(&mut self, now: Instant) -> bool {
        self.admit(|arrival| arrival <= now);
        self.bearer.is_ready(Direction::Uplink, now)
    }

    /// Moves arrivals that are due into the buffers. A packet that enters may start a timer after
    /// which it is discarded, so the bearer's next timer becomes unknown.
    #[inline]
    pub(super) fn admit(&mut self, is_due: impl Fn(Instant) -> bool) {
        if self.bearer.down.next_prepared().is_some_and(&is_due) {
            self.bearer.touch().down.admit(&is_due);
        }
        if self.bearer.up.next_prepared().is_some_and(&is_due) {
            self.bearer.touch().up.admit(&is_due);
        }
    }
}

/// Most bytes of RLC and MAC headers per packet, and per block (a segment's header, a STATUS).
const PACKET_HEADERS: u64 = 6;
const BLOCK_HEADERS: u64 = 12;
