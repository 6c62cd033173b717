//! One UE: its bearer, its two links, its uplink access.

use std::collections::VecDeque;

use airpath_base::{Direction, Duration, Instant, Stream};

use super::access::UplinkAccess;
use super::asking::Asking;
use super::carrier::{Carrier, CarrierLink};
use super::config::{CellConfig, UeConfig, UeLinkConfig};
use super::departure::UeIndex;
use super::meter::{AccessCounters, Capacity, RadioCounters, UeMeter};
use super::output::Output;
use super::presence::Presence;
use crate::adaptation::{CqiReport, CqiReporter, LinkAdaptation};
use crate::bearer::{Bearer, OneWay};
use crate::channel::{Channel, Quality};
use crate::harq::{Attempt, Harq, HarqTiming, ProcessId, Reception};
use crate::mac::bsr::BsrReport;
use crate::rlc::TransportBlock;
use crate::rrc::umts::Fach;
use airpath_queue::Load;

/// A UE, and the base station's state for it.
#[derive(Debug)]
pub(super) struct Ue {
    pub(super) index: u32,
    pub(super) presence: Presence,
    pub(super) bearer: Bearer,
    pub(super) down: Link,
    pub(super) up: Link,
    pub(super) access: UplinkAccess,
    /// Processing time in the UE from the end of a slot to RLC.
    pub(super) processing: Duration,
    /// No timer of the bearer expires before this time; zero: one may have started since it was
    /// last checked.
    pub(super) quiet_until: Instant,
    /// The earliest wake-up in the event queue.
    pub(super) armed: Option<Instant>,
    /// The earliest change of DRX in the event queue; only used while there is a log.
    pub(super) drx_log_due: Option<Instant>,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Link {
    /// Time that the transmitter prepares a packet before it enters the buffer.
    pub(super) processing: Duration,
    channel: Channel,
    /// A copy of the channel for measurements, which may be ahead of the original in time.
    measured: Channel,
    reporter: CqiReporter,
    /// The report assumed before the first one: the UE was present before the run began.
    initial: CqiReport,
    adaptation: LinkAdaptation,
    pub(super) harq: Harq<MacPdu>,
    pub(super) synchronous: bool,
    /// Blocks that will be decoded, or are decoded and being processed by the receiver, with the
    /// ends of their slots.
    pub(super) arriving: VecDeque<(Instant, TransportBlock)>,
    /// Blocks for reuse.
    pool: Vec<TransportBlock>,
    /// Why data that is left has not been sent, if packets are accounted for.
    pub(super) asking: Asking,
    /// Whether the scheduler considers it in every slot.
    pub(super) active: bool,
    /// When the scheduler can use it, if nothing happens before.
    pub(super) wait: Option<Instant>,
    /// The serving grant in bytes, if there is one; only used for the capacity.
    grant: Option<u32>,
    /// Bytes of the smallest block that can hold a PDU, and the first MCS that provides it.
    least_block: u32,
    lowest_mcs: u8,
    /// MCS of a new block in the current slot.
    pub(super) mcs: u8,
    /// The MCS is unchanged until this time: there is neither a new report nor feedback.
    mcs_until: Instant,
    pub(super) counters: RadioCounters,
    pub(super) capacity: Capacity,
    capacity_mcs: Option<u8>,
}

/// A block of a HARQ process.
#[derive(Debug, Default)]
pub(super) struct MacPdu {
    pub(super) block: TransportBlock,
    pub(super) report: Option<BsrReport>,
    pub(super) assembled: Instant,
    /// When its last failure became known.
    pub(super) failed: Instant,
    /// Size in bytes, and how many of them are not padding.
    pub(super) size: u32,
    pub(super) used: u32,
    pub(super) prbs: u32,
    pub(super) mcs: u8,
    /// Uplink: whether it was granted by a PDCCH, and not by a configured grant.
    pub(super) granted: bool,
}

/// When a scheduler can use something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Readiness {
    /// In the current slot.
    Now,
    /// From this time on, if nothing happens before.
    At(Instant),
    /// Not until something happens.
    Never,
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
        Self {
            index,
            presence: Presence::default(),
            bearer: Bearer::new(&config.downlink.bearer, &config.uplink.bearer, 0),
            down: Link::new(&config.downlink, down, cell, carrier, &stream),
            up,
            access: UplinkAccess::new(config, &stream),
            processing: config.processing.downlink,
            quiet_until: Instant::ZERO,
            armed: None,
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
        if now >= self.quiet_until {
            while let Some(at) = self.next_bearer_timer().filter(|&at| at <= now) {
                self.admit(|arrival| arrival < at);
                let ue = self.index;
                self.bearer.on_timer(at, &mut |direction, at, packet| {
                    out.depart(direction, ue, at, packet);
                });
                timers = true;
            }
        }
        if timers {
            // They may have started other timers.
            self.quiet_until = Instant::ZERO;
        }
        debug_assert!(self.bearer.next_timer().is_none_or(|at| at > now), "UE {}", self.index);
        self.admit(|arrival| arrival <= now);
        timers
    }

    /// Whether the wake-up in the event queue is the earliest, provided that since then nothing has
    /// happened except what the scheduler checks.
    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        self.is_quiet() && self.next_downlink().is_none()
    }

    /// Whether the UE is armed, apart from packets that are being prepared for the downlink.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let waits = self.down.wait.is_some() || self.up.wait.is_some();
        !waits && self.access.is_always_on() && self.quiet_until > Instant::ZERO
    }

    /// When a packet enters the downlink's buffer that the scheduler would not find there. New
    /// packets behind waiting ones change nothing: they enter when the buffer is next accessed.
    #[inline]
    pub(super) fn next_downlink(&self) -> Option<Instant> {
        let idle = !self.down.active && self.bearer.down.queued().packets == 0;
        self.bearer.down.next_prepared().filter(|_| idle)
    }

    /// When the bearer's next timer expires.
    #[inline]
    pub(super) fn next_bearer_timer(&mut self) -> Option<Instant> {
        let next = self.bearer.next_timer();
        self.quiet_until = next.unwrap_or(Instant::MAX);
        next
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

    /// Moves arrivals that are due into the buffers.
    #[inline]
    pub(super) fn admit(&mut self, is_due: impl Fn(Instant) -> bool) {
        // A packet that enters may have to be discarded after some time.
        if self.bearer.down.admit(&is_due) | self.bearer.up.admit(&is_due) {
            self.quiet_until = Instant::ZERO;
        }
    }
}

/// Most bytes of RLC and MAC headers per packet, and per block (a segment's header, a STATUS).
const PACKET_HEADERS: u64 = 6;
const BLOCK_HEADERS: u64 = 12;

impl Link {
    fn new(
        config: &UeLinkConfig,
        (direction, processing): (Direction, Duration),
        cell: &CellConfig,
        carrier: &Carrier,
        stream: &impl Fn(&str) -> Stream,
    ) -> Self {
        let side = match direction {
            Direction::Downlink => "down",
            Direction::Uplink => "up",
        };
        let channel = Channel::new(&config.channel, stream(&format!("{side}.channel")));
        let tables = &carrier.link(direction).tables;
        let quality = channel.clone().quality(Instant::ZERO);
        let (cqi, mcs) = match quality {
            Quality::Cqi(cqi) => (cqi, None),
            Quality::Mcs(mcs) => (tables.cqi(tables.sinr_db(quality)), Some(mcs)),
            _ => (tables.cqi(tables.sinr_db(quality)), None),
        };
        let least = config.bearer.rlc.least_block();
        let holds = |mcs: &u8| carrier.link(direction).most_bytes(*mcs) >= least;
        let least_block = least;
        let lowest_mcs = (0..carrier.link(direction).highest_mcs()).find(holds);
        let harq = Harq::new(config.harq, cell.bler, stream(&format!("{side}.harq")));
        Self {
            processing,
            reporter: CqiReporter::new(config.report, channel.clone()),
            measured: channel.clone(),
            channel,
            initial: CqiReport { cqi, mcs, measured: Instant::ZERO },
            adaptation: LinkAdaptation::new(config.mcs),
            harq,
            synchronous: matches!(config.harq.timing, HarqTiming::Synchronous { .. }),
            arriving: VecDeque::new(),
            pool: Vec::new(),
            asking: Asking::default(),
            active: false,
            wait: None,
            grant: None,
            least_block,
            lowest_mcs: lowest_mcs.unwrap_or(carrier.link(direction).highest_mcs()),
            mcs: 0,
            mcs_until: Instant::ZERO,
            counters: RadioCounters::default(),
            capacity: Capacity::default(),
            capacity_mcs: None,
        }
    }

    /// The channel as measured by the UE.
    pub(super) fn measure(&mut self, now: Instant) -> Quality {
        self.measured.quality(now)
    }

    /// The MCS of a new block at `now`.
    #[inline]
    pub(super) fn choose_mcs(&mut self, now: Instant, carrier: &CarrierLink, slot: Duration) -> u8 {
        let kept = (now < self.mcs_until).then_some(self.mcs);
        if let (Some(mcs), false) = (kept, cfg!(debug_assertions)) {
            return mcs;
        }
        let mcs = self.choose_mcs_anew(now, carrier, slot);
        debug_assert!(kept.is_none_or(|kept| kept == mcs), "at {now:?}: {kept:?}, not {mcs}");
        mcs
    }

    #[inline(never)]
    fn choose_mcs_anew(&mut self, now: Instant, carrier: &CarrierLink, slot: Duration) -> u8 {
        let report = self.reporter.report(now, &carrier.tables).unwrap_or(self.initial);
        let mcs = self.adaptation.mcs(&carrier.tables, report).min(carrier.highest_mcs());
        self.mcs = mcs.max(self.lowest_mcs);
        if self.capacity_mcs != Some(self.mcs) {
            self.capacity_mcs = Some(self.mcs);
            let most = carrier.mean_slot_bytes(self.mcs);
            let part = self.grant.map_or(1.0, |grant| {
                f64::from(grant) / f64::from(carrier.most_bytes(self.mcs).max(1))
            });
            self.capacity.set(now, most * part.min(1.0), slot);
        }
        self.mcs_until = self.reporter.next_report(now);
        self.mcs
    }

    /// Feedback of an initial transmission affects the MCS.
    pub(super) fn adapt(&mut self, acknowledged: bool) {
        self.adaptation.on_feedback(acknowledged);
        self.mcs_until = Instant::ZERO;
    }

    /// When a new report applies to the MCS that was chosen last.
    pub(super) const fn next_report(&self) -> Instant {
        self.mcs_until
    }

    /// The MCS of a block on a common channel: the first that can hold it.
    pub(super) fn common_mcs(&mut self, now: Instant, fach: &Fach, carrier: &CarrierLink) -> u8 {
        let holds = |mcs: &u8| carrier.most_bytes(*mcs) >= fach.bytes;
        let mcs = (self.lowest_mcs..carrier.highest_mcs()).find(holds);
        self.mcs_until = Instant::ZERO;
        self.mcs = mcs.unwrap_or(carrier.highest_mcs());
        let block = self.bounded_block(fach.bytes, carrier.most_bytes(self.mcs));
        self.capacity.set(now, f64::from(block), fach.downlink.period());
        self.capacity_mcs = None;
        self.mcs
    }

    /// Size of a block for `bytes`, or for one PDU, but at most `most`.
    pub(super) fn bounded_block(&self, bytes: u32, most: u32) -> u32 {
        bytes.max(self.least_block).min(most)
    }

    /// Stores the readiness; returns whether the scheduler must check it in every slot.
    pub(super) fn note(&mut self, readiness: Readiness) -> bool {
        self.active = readiness == Readiness::Now;
        self.wait = match readiness {
            Readiness::At(at) => Some(at),
            Readiness::Now | Readiness::Never => None,
        };
        self.active
    }

    /// Sends the block of `process`, for the first time or again; returns whether it is decoded.
    pub(super) fn send(
        &mut self,
        process: ProcessId,
        is_new: bool,
        (now, feedback): (Instant, Instant),
        carrier: &CarrierLink,
    ) -> bool {
        let sinr_db = carrier.tables.sinr_db(self.channel.quality(now));
        let attempt = Attempt { now, feedback, sinr_db };
        let MacPdu { size, used, prbs, mcs, .. } = *self.harq.payload(process);
        self.counters.prbs += u64::from(prbs);
        let reception = if is_new {
            self.counters.blocks += 1;
            self.counters.block_bytes += u64::from(size);
            self.counters.used_bytes += u64::from(used);
            self.counters.mcs_sum += u64::from(mcs);
            self.harq.start(process, carrier.block(mcs), attempt)
        } else {
            self.counters.retransmissions += 1;
            self.harq.retransmit(process, attempt)
        };
        let decoded = reception == Reception::Decoded;
        self.counters.first_errors += u64::from(is_new && !decoded);
        let (meant, taken) = (carrier.slots_of(mcs), u32::from(self.harq.transmissions(process)));
        if decoded && taken < meant {
            // The slots that it did not need can carry another block.
            let left = f64::from(meant - taken) / f64::from(meant);
            self.capacity.add(f64::from(size) * left);
        }
        decoded
    }

    /// The block of `process`, sent in a slot from `now` to `end`, was decoded: takes it out of the
    /// process, which may be reused before RLC gets the block.
    pub(super) fn receive(&mut self, process: ProcessId, now: Instant, end: Instant) {
        let spare = self.pool.pop().unwrap_or_default();
        let mut block = core::mem::replace(&mut self.harq.payload_mut(process).block, spare);
        (block.times.from, block.times.until) = (now, end);
        self.arriving.push_back((end, block));
    }

    /// Returns a block to the pool.
    pub(super) fn recycle(&mut self, mut block: TransportBlock) {
        block.clear();
        self.pool.push(block);
    }
}
