//! One direction of a UE.

use std::collections::VecDeque;

use airpath_base::{Direction, Duration, Instant, Memo, Stream};

use super::asking::Asking;
use super::carrier::{Carrier, CarrierLink};
use super::config::{CellConfig, UeRadioConfig};
use super::mcs_choice::McsChoice;
use super::meter::{Capacity, RadioCounters};
use crate::channel::{Channel, Quality};
use crate::harq::{Attempt, Harq, HarqTiming, ProcessId, Reception};
use crate::mac::bsr::BsrReport;
use crate::rlc::TransportBlock;
use crate::rrc::umts::Fach;

/// One direction.
#[derive(Debug)]
pub(super) struct Link {
    /// Time that the transmitter prepares a packet before it enters the buffer.
    pub(super) processing: Duration,
    channel: Channel,
    /// A copy of the channel for measurements, which may be ahead of the original in time.
    measured: Channel,
    /// SINR of the channel when the last block was sent, in dB.
    pub(super) sinr_db: f64,
    /// The MCS of new blocks. The memo holds the time at which a new report applies; feedback makes
    /// it unknown.
    choice: Memo<McsChoice, Instant>,
    pub(super) harq: Harq<MacPdu>,
    /// HARQ processes of the carriers before this one.
    pub(super) processes_before: u8,
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
    pub(super) grant: Option<u32>,
    /// Bytes of the smallest block that can hold a PDU.
    least_block: u32,
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

impl Link {
    /// A link whose blocks have at least `least_block` bytes.
    pub(super) fn new(
        (config, least_block): (&UeRadioConfig, u32),
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
        let harq = Harq::new(config.harq, cell.bler, stream(&format!("{side}.harq")));
        Self {
            processing,
            choice: Memo::new(McsChoice::new(
                config,
                least_block,
                &channel,
                carrier.link(direction),
            )),
            measured: channel.clone(),
            channel,
            sinr_db: f64::NEG_INFINITY,
            harq,
            processes_before: 0,
            synchronous: matches!(config.harq.timing, HarqTiming::Synchronous { .. }),
            arriving: VecDeque::new(),
            pool: Vec::new(),
            asking: Asking::default(),
            active: false,
            wait: None,
            grant: None,
            least_block,
            counters: RadioCounters::default(),
            capacity: Capacity::default(),
            capacity_mcs: None,
        }
    }

    /// The channel as measured by the UE.
    pub(super) fn measure(&mut self, now: Instant) -> Quality {
        self.measured.quality(now)
    }

    /// The MCS of a new block in the current slot.
    #[inline]
    pub(super) fn mcs(&self) -> u8 {
        self.choice.mcs
    }

    /// The time until which this MCS is known to stay.
    #[inline]
    pub(super) fn mcs_stays_until(&self) -> Option<Instant> {
        self.choice.known()
    }

    /// The MCS of a new block at `now`.
    #[inline]
    pub(super) fn choose_mcs(&mut self, now: Instant, carrier: &CarrierLink, slot: Duration) -> u8 {
        if !self.choice.rests(now) {
            self.apply_report(now, carrier, slot);
        }
        self.mcs()
    }

    #[inline(never)]
    fn apply_report(&mut self, now: Instant, carrier: &CarrierLink, slot: Duration) {
        let mcs = self.choice.change(|choice| {
            let next = choice.apply_report(now, carrier);
            (choice.mcs, Some(next))
        });
        if self.capacity_mcs != Some(mcs) {
            self.capacity_mcs = Some(mcs);
            let most = carrier.mean_slot_bytes(mcs);
            let part = self
                .grant
                .map_or(1.0, |grant| f64::from(grant) / f64::from(carrier.most_bytes(mcs).max(1)));
            self.capacity.set(now, most * part.min(1.0), slot);
        }
    }

    /// Feedback of an initial transmission affects the MCS.
    pub(super) fn adapt(&mut self, acknowledged: bool) {
        self.choice.touch().adaptation.on_feedback(acknowledged);
    }

    /// The MCS of a block on a common channel: the first that can hold it.
    pub(super) fn common_mcs(&mut self, now: Instant, fach: &Fach, carrier: &CarrierLink) -> u8 {
        let mcs = self.choice.touch().choose_for(fach.bytes, carrier);
        let block = self.bounded_block(fach.bytes, carrier.most_bytes(mcs));
        self.capacity.set(now, f64::from(block), fach.downlink.period());
        self.capacity_mcs = None;
        mcs
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
        self.sinr_db = sinr_db;
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

    /// Number of a process among those of all carriers, for DRX.
    pub(super) const fn number(&self, process: ProcessId) -> u8 {
        process.0 + self.processes_before
    }

    /// Returns a block to the pool.
    pub(super) fn recycle(&mut self, mut block: TransportBlock) {
        block.clear();
        self.pool.push(block);
    }
}
