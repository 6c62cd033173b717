//! One UE: its bearer, its two links, its uplink access.

use airpath_base::{Direction, Duration, Instant, Memo, Stream};

use super::access::UplinkAccess;
use super::carrier::Carrier;
use super::carrier_id::{CarrierId, LinkId, secondary_ids};
use super::config::{CellConfig, UeConfig, UeLinkConfig};
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
    /// Links on secondary carriers.
    pub(super) secondary: Vec<SecondaryLinks>,
    pub(super) access: UplinkAccess,
    /// Processing time in the UE from the end of a slot to RLC.
    pub(super) processing: Duration,
    /// The earliest change of DRX in the event queue; only used while there is a log.
    pub(super) drx_log_due: Option<Instant>,
}

/// Both directions of a UE on a secondary carrier.
#[derive(Debug)]
pub(super) struct SecondaryLinks {
    pub(super) down: Link,
    pub(super) up: Link,
    /// Whether it may be granted uplink.
    pub(super) sends: bool,
}

impl Ue {
    /// A UE on its `visit`-th return, 0 if it was present from the start: its channel is the same
    /// as always in this cell, everything else is drawn again.
    pub(super) fn new(
        index: u32,
        config: &UeConfig,
        cell: &CellConfig,
        carriers: &[&Carrier],
        (seed, visit): (u64, u32),
    ) -> Self {
        let stream = |name: &str| match visit {
            1.. if !name.ends_with("channel") => {
                Stream::new(seed, &format!("ue.{index}.visit.{visit}.{name}"))
            }
            _ => Stream::new(seed, &format!("ue.{index}.{name}")),
        };
        let (&carrier, others) = carriers.split_first().expect("a primary carrier");
        let down = (Direction::Downlink, cell.base_station.downlink + carrier.dci_lead());
        let up = (Direction::Uplink, config.processing.uplink);
        let least = |link: &UeLinkConfig| link.bearer.rlc.least_block();
        let up_radio = (&config.uplink.radio(), least(&config.uplink));
        let mut up = Link::new(up_radio, up, cell, carrier, &stream);
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
            down: Link::new((&downlink.radio(), least(downlink)), down, cell, carrier, &stream),
            up,
            secondary: secondary(config, cell, others, &stream),
            access: UplinkAccess::new(config, &stream),
            processing: config.processing.downlink,
            drx_log_due: None,
        }
    }

    #[inline]
    pub(super) fn link(&mut self, id: LinkId) -> &mut Link {
        match (id.carrier.secondary(), id.direction) {
            (None, Direction::Downlink) => &mut self.down,
            (None, Direction::Uplink) => &mut self.up,
            (Some(index), Direction::Downlink) => &mut self.secondary[index].down,
            (Some(index), Direction::Uplink) => &mut self.secondary[index].up,
        }
    }

    #[inline]
    pub(super) fn link_ref(&self, id: LinkId) -> &Link {
        match (id.carrier.secondary(), id.direction) {
            (None, Direction::Downlink) => &self.down,
            (None, Direction::Uplink) => &self.up,
            (Some(index), Direction::Downlink) => &self.secondary[index].down,
            (Some(index), Direction::Uplink) => &self.secondary[index].up,
        }
    }

    /// The secondary carriers that it uses.
    #[inline]
    pub(super) fn secondary_carriers(&self) -> impl Iterator<Item = CarrierId> + use<> {
        secondary_ids(self.secondary.len())
    }

    /// Whether it uses a carrier in this direction.
    pub(super) fn uses(&self, id: LinkId) -> bool {
        match (id.carrier.secondary(), id.direction) {
            (None, _) => true,
            (Some(index), Direction::Downlink) => index < self.secondary.len(),
            (Some(index), Direction::Uplink) => {
                self.secondary.get(index).is_some_and(|links| links.sends)
            }
        }
    }

    /// Whether it has several carriers, down and up.
    pub(super) fn aggregates(&self) -> (bool, bool) {
        (!self.secondary.is_empty(), self.secondary.iter().any(|links| links.sends))
    }

    /// Links on all carriers, both directions.
    #[inline]
    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        let secondary = self.secondary.iter().flat_map(|links| [&links.down, &links.up]);
        [&self.down, &self.up].into_iter().chain(secondary)
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
        // A packet that one carrier's slot lets in would not wake the others.
        let alone = self.down.active && self.secondary.is_empty();
        let idle = !alone && self.bearer.down.queued().packets == 0;
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
        let (mut radio, mut capacity_bytes) = (link.counters, link.capacity.until(now));
        for links in &self.secondary {
            let link = match direction {
                Direction::Downlink => &links.down,
                Direction::Uplink => &links.up,
            };
            radio.add(&link.counters);
            capacity_bytes += link.capacity.until(now);
        }
        let counters = one_way.counters();
        UeMeter {
            ue: UeIndex(self.index),
            direction,
            radio,
            access,
            queued,
            sojourn: one_way.sojourn(),
            marked: counters.marked,
            rlc_retransmissions: counters.retransmitted_pdus,
            awake,
            capacity_bytes,
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

/// The links of a UE on secondary carriers.
fn secondary(
    config: &UeConfig,
    cell: &CellConfig,
    carriers: &[&Carrier],
    stream: &impl Fn(&str) -> Stream,
) -> Vec<SecondaryLinks> {
    let mut before = config.downlink.harq.processes.max(config.uplink.harq.processes).max(1);
    let mut all = Vec::new();
    let each = config.secondary.iter().zip(carriers).zip(&cell.secondary).zip(1..);
    for (((own, carrier), cell), number) in each {
        let name = |name: &str| stream(&format!("carrier.{number}.{name}"));
        let link = |direction, radio, bearer: &UeLinkConfig| {
            let least = bearer.bearer.rlc.least_block();
            let direction = (direction, Duration::ZERO);
            Link::new((radio, least), direction, cell, carrier, &name)
        };
        let mut links = SecondaryLinks {
            down: link(Direction::Downlink, &own.downlink, &config.downlink),
            up: link(Direction::Uplink, &own.uplink, &config.uplink),
            sends: own.sends,
        };
        links.down.processes_before = before;
        links.up.processes_before = before;
        before += own.downlink.harq.processes.max(own.uplink.harq.processes).max(1);
        all.push(links);
    }
    all
}

/// Most bytes of RLC and MAC headers per packet, and per block (a segment's header, a STATUS).
const PACKET_HEADERS: u64 = 6;
const BLOCK_HEADERS: u64 = 12;
