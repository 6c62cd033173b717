//! One direction of a bearer, both ends.

use std::collections::VecDeque;

use airpath_base::{
    Drop, DropReason, Duration, Instant, JourneyId, Journeys, Packet, Site, fast_paths,
};
use airpath_queue::Load;

use super::config::OneWayConfig;
use crate::buffer::{Sdus, Sojourn, Waiting};
use crate::pdcp::{Cause, PdcpOrder, PdcpReceiver, PdcpTransmitter, Release};
use crate::rlc::{
    Outcome, Pdu, Receiver, RlcConfig, Status, Subheaders, Technology, Transmitter, TransportBlock,
    entities, lte_cost, nr_largest_pdu, nr_subheader, sdus_of,
};
use crate::wait_meter::{Wait, WaitMeter};

/// One direction of a bearer: the buffer, PDCP and RLC of the transmitter, RLC and PDCP of the
/// receiver. The two ends share the packets; nothing else passes between them but blocks.
///
/// A caller
/// 1. calls [`on_timer`](OneWay::on_timer) at [`next_timer`](OneWay::next_timer), before anything
///    else at that time;
/// 2. enqueues packets, [`fill`](OneWay::fill)s blocks, and ends each with exactly one
///    [`on_block`](OneWay::on_block) or [`on_loss`](OneWay::on_loss), in any order;
/// 3. in AM, carries the result of [`build_status`](OneWay::build_status) in the other direction
///    and passes it to [`on_status`](OneWay::on_status).
///
/// Every packet is either delivered once, returned by [`poll_drop`](OneWay::poll_drop), or counted
/// in [`load`](OneWay::load).
#[derive(Debug)]
pub struct OneWay {
    source: PdcpTransmitter,
    transmitter: Transmitter,
    receiver: Receiver,
    pdcp: PdcpReceiver,
    sdus: Sdus,
    /// Packets that will enter the buffer, unless they are stored behind the SDUs.
    prepared: VecDeque<Waiting>,
    /// Load of all packets that will enter the buffer, and when the first of them will, if there is
    /// one.
    prepared_load: Load,
    prepared_at: Instant,
    outcome: Outcome,
    technology: Technology,
    /// Technology of the other direction, whose blocks carry this one's STATUS.
    status_technology: Technology,
}

/// What a handover does to packets that the old cell did not deliver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// The buffer is forwarded, in AM together with what was not confirmed (TS 38.300 9.2.3.2.2).
    Buffer,
    /// Nothing is forwarded: everything is lost.
    Nothing,
}

/// Counters of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets marked CE in the buffer.
    pub marked: u64,
    /// RLC data PDUs retransmitted, whole or in part.
    pub retransmitted_pdus: u64,
}

impl OneWay {
    /// An empty direction of a bearer. Its drops are attributed to the `stage`-th stage of the
    /// path.
    pub fn new(config: &OneWayConfig, stage: u32) -> Self {
        let (transmitter, receiver, technology) = entities(&config.rlc);
        Self {
            source: PdcpTransmitter::new(&config.buffer, &config.pdcp),
            transmitter,
            receiver,
            pdcp: PdcpReceiver::new(order(&config.rlc)),
            sdus: Sdus::new(stage),
            prepared: VecDeque::new(),
            prepared_load: Load::default(),
            prepared_at: Instant::ZERO,
            outcome: Outcome::default(),
            technology,
            status_technology: technology,
        }
    }

    /// Sets the technology of the other direction, which carries this one's STATUS in PDUs of its
    /// own size.
    pub(crate) fn answer_in(&mut self, other: &Self) {
        self.status_technology = other.technology;
    }

    /// From now on accounts for packets with a journey.
    pub(crate) fn account(&mut self, journeys: &Journeys, place: Site) {
        self.sdus.account = Some(Box::new(WaitMeter::new(journeys.clone(), place)));
    }

    /// Whether several carriers bring its blocks, if packets are accounted for.
    pub(crate) fn aggregate(&mut self, carriers: bool) {
        if let Some(account) = &mut self.sdus.account {
            account.aggregate(carriers);
        }
    }

    /// Whether packets are accounted for.
    #[inline]
    pub(crate) const fn is_accounted(&self) -> bool {
        self.sdus.account.is_some()
    }

    /// A packet reaches the cell; it may wait for uplink before it is prepared.
    pub(crate) fn arrive(&mut self, now: Instant, id: JourneyId, waits_at_once: bool) {
        if let Some(account) = &mut self.sdus.account {
            account.arrive(now, id, waits_at_once);
        }
    }

    /// How long something waited to be sent, until `now`; zero if it is not accounted for.
    pub(crate) fn busy(&self, now: Instant) -> Duration {
        self.sdus.account.as_ref().map_or(Duration::ZERO, |account| account.busy(now))
    }

    /// Notes what packets wait for from now on.
    pub(crate) fn wait(&mut self, now: Instant, state: Wait) {
        if let Some(account) = &mut self.sdus.account {
            account.wait(now, state);
        }
    }

    /// A packet will enter the buffer at `at`, but not before packets that were prepared earlier.
    #[inline]
    pub(crate) fn prepare(&mut self, at: Instant, packet: &Packet) {
        if self.prepared_load.packets == 0 {
            self.prepared_at = at;
        }
        self.prepared_load.add(packet);
        match self.source.buffer.is_behind_sdus() {
            true => self.sdus.prepare(at, packet),
            false => self.prepared.push_back(Waiting { packet: *packet, arrived: at }),
        }
    }

    /// Load of the packets that will enter the buffer.
    #[inline]
    pub(crate) const fn prepared(&self) -> Load {
        self.prepared_load
    }

    /// When the first of these packets will enter.
    #[inline]
    pub(crate) fn next_prepared(&self) -> Option<Instant> {
        match fast_paths() {
            true => (self.prepared_load.packets > 0).then_some(self.prepared_at),
            false => self.first_prepared(),
        }
    }

    /// When the first prepared packet will enter, looked up where it is stored.
    fn first_prepared(&self) -> Option<Instant> {
        match self.source.buffer.is_behind_sdus() {
            true => self.sdus.first_prepared().map(|sdu| sdu.arrived),
            false => self.prepared.front().map(|waiting| waiting.arrived),
        }
    }

    /// Moves prepared packets that are due into the buffer. The [first one](Self::next_prepared)
    /// must be due.
    #[inline(never)]
    pub(crate) fn admit(&mut self, is_due: impl Fn(Instant) -> bool) {
        if self.source.buffer.is_behind_sdus() {
            let entered = self.source.buffer.admit_prepared(&mut self.sdus, is_due);
            self.prepared_load = self.prepared_load - entered;
            self.guard(self.prepared_at);
        } else {
            while let Some(&Waiting { packet, arrived }) =
                self.prepared.front().filter(|waiting| is_due(waiting.arrived))
            {
                self.prepared.pop_front();
                self.prepared_load.remove(&packet);
                self.enqueue(arrived, &packet);
            }
        }
        self.prepared_at = self.first_prepared().unwrap_or(self.prepared_at);
    }

    /// Removes all packets that are being prepared.
    pub(crate) fn take_prepared(&mut self, mut take: impl FnMut(Packet)) {
        self.prepared_load = Load::default();
        self.prepared.drain(..).for_each(|waiting| take(waiting.packet));
        if self.source.buffer.is_behind_sdus() {
            while let Some(waiting) = self.sdus.take_prepared() {
                take(waiting.packet);
            }
        }
    }

    /// Restarts the preparation of these packets in another cell, at `now` or later.
    pub(crate) fn prepare_anew(&mut self, now: Instant) {
        let mut journeys = Vec::new();
        let mut last = now;
        let mut delay = |at: &mut Instant, packet: &Packet| {
            journeys.extend(packet.journey);
            last = last.max(*at);
            *at = last;
        };
        self.prepared.iter_mut().for_each(|waiting| delay(&mut waiting.arrived, &waiting.packet));
        if self.source.buffer.is_behind_sdus() {
            self.sdus.prepared_mut().for_each(|(at, packet)| delay(at, packet));
        }
        self.prepared_at = self.first_prepared().unwrap_or(self.prepared_at);
        journeys.into_iter().for_each(|id| self.arrive(now, id, false));
    }

    /// A packet enters the buffer, or is dropped.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.sdus.enter(now, packet);
        self.source.buffer.push(now, packet, &mut self.sdus);
        self.guard(now);
    }

    /// Data available for transmission, in bytes: PDCP and RLC data and pending retransmissions (TS
    /// 38.322 5.5, TS 38.323 5.6, TS 36.322 4.5, TS 36.323 4.5). PDCP headers count, RLC and MAC
    /// headers do not (TS 38.321 6.1.3.1, TS 36.321 6.1.3.1). A STATUS is data of the other
    /// direction: [`status_bytes`](OneWay::status_bytes).
    #[inline]
    pub fn buffered_bytes(&self) -> u64 {
        match &self.transmitter {
            Transmitter::Um(transmitter) => transmitter.bytes(&self.source),
            Transmitter::Am(transmitter) => transmitter.bytes(&self.source),
        }
    }

    /// Whether a transmission opportunity would be used; because of the window, this may differ
    /// from whether bytes are buffered.
    pub fn is_ready(&self) -> bool {
        match &self.transmitter {
            Transmitter::Um(transmitter) => transmitter.is_ready(&self.source),
            Transmitter::Am(transmitter) => transmitter.is_ready(&self.source),
        }
    }

    /// Puts data PDUs into `room_bytes` of a MAC PDU; returns the bytes used, MAC subheaders
    /// included. The rest is room for others, or padding.
    #[inline]
    pub fn fill(&mut self, now: Instant, room_bytes: u32, block: &mut TransportBlock) -> u32 {
        block.times.first = now;
        let begun = self.is_accounted().then(|| self.first_unsent());
        let (source, sdus) = (&mut self.source, &mut self.sdus);
        let left = match &mut self.transmitter {
            Transmitter::Um(transmitter) => transmitter.fill(now, room_bytes, block, source, sdus),
            Transmitter::Am(transmitter) => transmitter.fill(now, room_bytes, block, source, sdus),
        };
        if let Some(begun) = begun {
            let end = self.first_unsent();
            self.sdus.sent(now, begun..end);
            self.sdus.begun(now, end);
        }
        let used = room_bytes - left;
        block.bytes += used;
        used
    }

    /// COUNT of the first SDU that has bytes never sent.
    fn first_unsent(&self) -> u64 {
        let open = match &self.transmitter {
            Transmitter::Um(transmitter) => transmitter.open_count(),
            Transmitter::Am(transmitter) => transmitter.open_count(),
        };
        open.unwrap_or_else(|| self.source.next_count(&self.sdus))
    }

    /// HARQ delivered a block.
    #[inline]
    pub fn on_block(
        &mut self,
        now: Instant,
        block: &TransportBlock,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        if self.is_accounted() {
            self.note_received(now, block);
        }
        let mut left = &block.pdus[..];
        while let Some(pdu) = left.first() {
            if let Receiver::Am(receiver) = &mut self.receiver
                && let Some(run) = receiver.take_run(now, left)
            {
                left = &left[(run.end - run.start) as usize..];
                self.pdcp.receive_run(now, run, Cause::Reception, &mut self.sdus, deliver);
                continue;
            }
            left = &left[1..];
            self.on_pdu(now, pdu, deliver);
        }
    }

    /// HARQ delivered a block: processes one of its PDUs.
    fn on_pdu(&mut self, now: Instant, pdu: &Pdu, deliver: &mut impl FnMut(Instant, &Packet)) {
        let Self { receiver, sdus, outcome, .. } = self;
        match receiver {
            Receiver::NrUm(receiver) => receiver.on_pdu(now, pdu, outcome),
            Receiver::LteUm(receiver) => receiver.on_pdu(now, pdu, sdus, outcome),
            Receiver::Am(receiver) => receiver.on_pdu(now, pdu, sdus, outcome),
        }
        self.hand_up(now, Cause::Reception, deliver);
    }

    /// Notes the packets of which a block brings bytes.
    fn note_received(&mut self, now: Instant, block: &TransportBlock) {
        let mut counts = Vec::new();
        for pdu in &block.pdus {
            sdus_of(pdu, &self.sdus, |count| counts.push(count));
        }
        for count in counts {
            self.sdus.received(now, count, block.times);
        }
    }

    /// HARQ gave up a block. In UM its packets are dropped at once, although the receiver learns of
    /// it later, if ever; in AM nothing happens.
    pub fn on_loss(&mut self, now: Instant, block: &TransportBlock) {
        if matches!(self.transmitter, Transmitter::Am(_)) {
            return;
        }
        for pdu in &block.pdus {
            sdus_of(pdu, &self.sdus, |count| self.outcome.lost.push(count));
        }
        self.drop_lost(now);
    }

    /// Visits the packets of which a block in transit carries bytes; one that was delivered or
    /// dropped in the meantime may be left out.
    pub fn packets(&self, block: &TransportBlock, mut visit: impl FnMut(&Packet)) {
        for pdu in &block.pdus {
            sdus_of(pdu, &self.sdus, |count| {
                if let Some(sdu) = self.sdus.get(count) {
                    visit(&sdu.packet);
                }
            });
        }
    }

    /// Length in bytes of the STATUS PDU that this direction's receiver wants to send in the other
    /// one; `None` if there is none.
    #[inline]
    pub fn status_bytes(&self, now: Instant) -> Option<u32> {
        match &self.receiver {
            Receiver::Am(receiver) => receiver.status_bytes(now),
            Receiver::NrUm(_) | Receiver::LteUm(_) => None,
        }
    }

    /// Writes the STATUS PDU that is due, as much of it as fits into `room_bytes`; returns the
    /// bytes used, including the MAC subheader.
    pub fn build_status(&mut self, now: Instant, room_bytes: u32, status: &mut Status) -> u32 {
        let Receiver::Am(receiver) = &mut self.receiver else { return 0 };
        let most = match self.status_technology {
            Technology::Nr => nr_largest_pdu(room_bytes),
            // Data may follow, so its subheader has an L field.
            Technology::Lte => match room_bytes.saturating_sub(2) {
                long if long >= 128 => long - 1,
                short => short,
            },
            Technology::Umts(pdu) => pdu.largest(room_bytes, true),
        };
        match (receiver.build_status(now, most, status), self.status_technology) {
            (0, _) => 0,
            (bytes, Technology::Nr) => bytes + nr_subheader(bytes),
            (bytes, Technology::Lte) => lte_cost(bytes, room_bytes),
            (bytes, Technology::Umts(pdu)) => pdu.cost(bytes, true),
        }
    }

    /// A STATUS PDU arrived at the transmitter.
    pub fn on_status(&mut self, now: Instant, status: &Status) {
        if let Transmitter::Am(transmitter) = &mut self.transmitter {
            transmitter.on_status(now, status, &self.source, &mut self.sdus);
        }
    }

    /// When [`on_timer`](OneWay::on_timer) has something to do.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        Instant::earliest(self.timers())
    }

    /// Timers of the buffer, of RLC at both ends, and of PDCP.
    #[inline]
    pub(super) fn timers(&self) -> [Option<Instant>; 4] {
        let transmitter = match &self.transmitter {
            Transmitter::Um(_) => None,
            Transmitter::Am(transmitter) => transmitter.next_timer(),
        };
        [
            self.source.buffer.next_discard(),
            transmitter,
            self.receiver.next_timer(),
            self.pdcp.next_timer(),
        ]
    }

    /// Handles the timers that expired by `now`, each at its own time and in order.
    pub fn on_timer(&mut self, now: Instant, deliver: &mut impl FnMut(Instant, &Packet)) {
        while let Some(at) = self.next_timer().filter(|&at| at <= now) {
            self.source.buffer.discard(at, &mut self.sdus);
            if let Transmitter::Am(transmitter) = &mut self.transmitter {
                transmitter.on_timer(at, &self.source);
            }
            if self.receiver.next_timer().is_some_and(|due| due <= at) {
                match &mut self.receiver {
                    Receiver::NrUm(receiver) => receiver.on_timer(at, &mut self.outcome),
                    Receiver::LteUm(receiver) => {
                        receiver.on_timer(at, &self.sdus, &mut self.outcome);
                    }
                    Receiver::Am(receiver) => receiver.on_timer(at),
                }
                self.hand_up(at, Cause::Reception, deliver);
            }
            if self.pdcp.next_timer().is_some_and(|due| due <= at) {
                self.pdcp.on_timer(at, &mut self.sdus, deliver);
            }
            self.guard(at);
        }
    }

    /// The next packet that was dropped.
    pub fn poll_drop(&mut self) -> Option<Drop> {
        self.sdus.poll_drop()
    }

    /// Whether a packet was dropped and not polled yet.
    #[inline]
    pub(crate) fn has_drops(&self) -> bool {
        self.sdus.has_drops()
    }

    /// Packets dropped and not [polled](Self::poll_drop) yet.
    pub(crate) fn uncollected(&self) -> Load {
        self.sdus.uncollected()
    }

    /// What is inside: entered, and neither delivered nor dropped.
    pub fn load(&self) -> Load {
        self.queued() + self.sdus.undelivered()
    }

    /// Packets that wait for their first transmission.
    pub const fn queued(&self) -> Load {
        self.source.buffer.load()
    }

    /// Time that delivered packets spent inside.
    pub const fn sojourn(&self) -> &Sojourn {
        &self.sdus.sojourn
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        let retransmitted_pdus = match &self.transmitter {
            Transmitter::Um(_) => 0,
            Transmitter::Am(transmitter) => transmitter.retransmitted,
        };
        Counters { marked: self.source.buffer.marked(), retransmitted_pdus }
    }

    /// When RLC reported that maxRetxThreshold was reached, which RRC treats as a radio link
    /// failure (TS 38.331 5.3.10.3, TS 36.331 5.3.11.3). [`reestablish`](OneWay::reestablish)
    /// clears it.
    pub const fn failed_at(&self) -> Option<Instant> {
        match &self.transmitter {
            Transmitter::Um(_) => None,
            Transmitter::Am(transmitter) => transmitter.failed_at,
        }
    }

    /// Handover or recovery: RLC is re-established at both ends; PDCP continues in AM and restarts
    /// in UM (TS 38.323 5.1.2, TS 36.323 5.2). Blocks filled before are void: the caller must
    /// discard them. The exchange of PDCP status reports takes no time here.
    pub fn reestablish(
        &mut self,
        now: Instant,
        forwarding: Forwarding,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let (next, acknowledged) = match &mut self.transmitter {
            Transmitter::Um(transmitter) => (transmitter.reestablish(), false),
            Transmitter::Am(transmitter) => (transmitter.reestablish(), true),
        };
        match &mut self.receiver {
            Receiver::NrUm(receiver) => receiver.reestablish(next),
            Receiver::LteUm(receiver) => {
                receiver.reestablish(next, &self.sdus, &mut self.outcome);
            }
            Receiver::Am(receiver) => receiver.reestablish(next, &self.sdus, &mut self.outcome),
        }
        self.hand_up(now, Cause::Reestablishment, deliver);
        if acknowledged && forwarding == Forwarding::Buffer {
            self.source.recover(&mut self.sdus);
            return;
        }
        match forwarding {
            Forwarding::Buffer => self.source.lose_unconfirmed(now, &mut self.sdus),
            Forwarding::Nothing => self.source.abandon(now, &mut self.sdus),
        }
        // In AM the COUNTs of lost packets never arrive, and NR's receiver waits for them.
        if !(acknowledged && self.pdcp.gives_up()) {
            self.pdcp.flush(now, &mut self.sdus, deliver);
        }
    }

    /// From now on data PDUs get such MAC subheaders.
    pub fn set_subheaders(&mut self, subheaders: Subheaders) {
        self.transmitter.set_subheaders(subheaders);
    }

    /// Changes to other RLC entities, those of another cell; PDCP, its buffer and pending
    /// retransmissions stay. Only valid after [`reestablish`](OneWay::reestablish), before anything
    /// is filled.
    pub fn change_to(&mut self, rlc: &RlcConfig) {
        let retransmitted = self.counters().retransmitted_pdus;
        (self.transmitter, self.receiver, self.technology) = entities(rlc);
        if let Transmitter::Am(transmitter) = &mut self.transmitter {
            transmitter.retransmitted = retransmitted;
        }
        self.pdcp.set_order(order(rlc));
    }

    /// PDCP processes what RLC delivered or gave up.
    #[inline]
    fn hand_up(&mut self, now: Instant, cause: Cause, deliver: &mut impl FnMut(Instant, &Packet)) {
        let mut complete = &self.outcome.complete[..];
        while let Some(&first) = complete.first() {
            let follows = |&(count, &next): &(u64, &u64)| count == next;
            let run = (first..).zip(complete).take_while(follows).count();
            let counts = first..first + run as u64;
            self.pdcp.receive_run(now, counts, cause, &mut self.sdus, deliver);
            complete = &complete[run..];
        }
        self.outcome.complete.clear();
        self.drop_lost(now);
    }

    #[inline]
    fn drop_lost(&mut self, now: Instant) {
        for &count in &self.outcome.lost {
            self.sdus.lose(now, count, DropReason::RadioLink);
        }
        self.outcome.lost.clear();
    }

    fn guard(&mut self, now: Instant) {
        if let Transmitter::Am(transmitter) = &mut self.transmitter {
            transmitter.guard(now, &self.source);
        }
    }
}

/// Which layer restores the order.
fn order(rlc: &RlcConfig) -> PdcpOrder {
    match *rlc {
        RlcConfig::Nr { release: Release::InOrder { t_reordering }, .. } => {
            PdcpOrder::Restored(t_reordering)
        }
        RlcConfig::Nr { release: Release::OutOfOrder, .. } => PdcpOrder::Ignored,
        RlcConfig::Lte(_) | RlcConfig::Umts(_) => PdcpOrder::FromBelow,
    }
}
