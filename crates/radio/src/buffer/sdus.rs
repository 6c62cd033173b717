//! SDUs from their first transmission until they are delivered or dropped, known to both ends.

use std::collections::VecDeque;
use std::ops::Range;

use airpath_base::{Drop, DropReason, Duration, Ecn, Histogram, Instant, Packet, push_tightly};
use airpath_queue::Load;

use crate::wait_meter::{BlockTimes, WaitMeter};

/// A ring of SDUs by COUNT, and the load inside the bearer.
///
/// Behind the SDUs there may be packets that are not SDUs yet: those that wait in the buffer,
/// followed by those that are being prepared for it. Each packet is then copied once, and stays in
/// place.
#[derive(Debug)]
pub(crate) struct Sdus {
    ring: VecDeque<Sdu>,
    /// How many entries of the ring have a COUNT.
    begun: usize,
    /// How many entries after those wait.
    waiting: usize,
    /// COUNT of `ring[0]`.
    base: u64,
    drops: VecDeque<Drop>,
    stage: u32,
    pub(crate) sojourn: Sojourn,
    /// Where time is spent; `None` if it is not accounted for.
    pub(crate) account: Option<Box<WaitMeter>>,
}

/// Time from entering the buffer until leaving the receiver, over all delivered packets.
#[derive(Clone, Debug, Default)]
pub struct Sojourn {
    /// Packets and bytes delivered.
    pub delivered: Load,
    /// Sum of the times.
    pub sum: Duration,
    /// Distribution of the times; `None` before the first packet.
    pub histogram: Option<Histogram>,
}

impl Sojourn {
    #[inline]
    fn record(&mut self, packet: &Packet, time: Duration) {
        self.delivered.add(packet);
        self.sum += time;
        self.histogram.get_or_insert_with(Histogram::new).record(time);
    }

    /// Records the same `time` for all of these packets.
    #[inline(never)]
    fn record_alike(&mut self, packets: Load, time: Duration) {
        if packets.packets == 0 {
            return;
        }
        self.delivered = self.delivered + packets;
        self.sum += time * packets.packets;
        self.histogram.get_or_insert_with(Histogram::new).record_times(time, packets.packets);
    }
}

/// A packet, and when it entered the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: Packet,
    pub(crate) arrived: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sdu {
    pub(crate) packet: Packet,
    /// When it entered the buffer.
    pub(crate) arrived: Instant,
    /// Size in bytes, PDCP header included.
    pub(crate) size: u32,
    pub(crate) fate: Fate,
    /// The transmitter no longer needs it.
    confirmed: bool,
}

impl Sdu {
    /// A packet that waits, without a header.
    #[inline]
    fn waiting(arrived: Instant, packet: &Packet) -> Self {
        let (size, fate) = (packet.size, Fate::Awaited);
        Self { packet: *packet, arrived, size, fate, confirmed: false }
    }

    /// Whether it is delivered or dropped, and confirmed.
    #[inline]
    fn is_over(&self) -> bool {
        self.confirmed && matches!(self.fate, Fate::Delivered | Fate::Lost)
    }
}

/// The state of an SDU at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Not complete.
    Awaited,
    /// Complete; PDCP waits for others.
    Held,
    /// Delivered to the upper layer.
    Delivered,
    /// Dropped.
    Lost,
}

impl Sdus {
    pub(crate) fn new(stage: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            begun: 0,
            waiting: 0,
            base: 0,
            drops: VecDeque::new(),
            stage,
            sojourn: Sojourn::default(),
            account: None,
        }
    }

    /// The COUNT that the next SDU will have (TX_NEXT, TS 38.323 7.1).
    pub(crate) fn next_count(&self) -> u64 {
        self.base + self.begun as u64
    }

    /// The smallest COUNT that is still known.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Begins the first transmission of a packet that waited elsewhere.
    #[inline]
    pub(crate) fn push(&mut self, waiting: &Waiting, size: u32) -> u64 {
        debug_assert_eq!(self.begun, self.ring.len(), "packets wait here, or elsewhere");
        let count = self.next_count();
        let sdu = Sdu { size, ..Sdu::waiting(waiting.arrived, &waiting.packet) };
        push_tightly(&mut self.ring, sdu);
        self.begun += 1;
        count
    }

    /// A packet will enter the buffer at `at`.
    #[inline]
    pub(crate) fn prepare(&mut self, at: Instant, packet: &Packet) {
        push_tightly(&mut self.ring, Sdu::waiting(at, packet));
    }

    /// The first packet that is being prepared.
    #[inline]
    pub(crate) fn first_prepared(&self) -> Option<&Sdu> {
        self.ring.get(self.begun + self.waiting)
    }

    /// Moves packets that are being prepared into the buffer, one after the other, as long as it
    /// admits them.
    #[inline]
    pub(crate) fn admit_prepared(&mut self, mut admits: impl FnMut(Instant, &Packet) -> bool) {
        let Self { ring, begun, waiting, account, .. } = self;
        let mut admitted = 0;
        for sdu in ring.range(*begun + *waiting..) {
            if !admits(sdu.arrived, &sdu.packet) {
                break;
            }
            if let (Some(account), Some(id)) = (&mut *account, sdu.packet.journey) {
                account.enter(sdu.arrived, id);
            }
            admitted += 1;
        }
        *waiting += admitted;
    }

    /// Counts a packet as inside.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, packet: &Packet) {
        if let (Some(account), Some(id)) = (&mut self.account, packet.journey) {
            account.enter(now, id);
        }
    }

    /// Removes the first packet that is being prepared.
    pub(crate) fn take_prepared(&mut self) -> Option<Waiting> {
        let Sdu { packet, arrived, .. } = self.ring.remove(self.begun + self.waiting)?;
        Some(Waiting { packet, arrived })
    }

    /// Drops the first packet that is being prepared, at the time at which it would enter.
    #[cold]
    pub(crate) fn drop_prepared(&mut self, reason: DropReason) {
        if let Some(Waiting { packet, arrived }) = self.take_prepared() {
            self.enter(arrived, &packet);
            self.drop(arrived, packet, reason);
        }
    }

    /// When packets that are being prepared will enter the buffer.
    pub(crate) fn prepared_mut(&mut self) -> impl Iterator<Item = (&mut Instant, &Packet)> {
        self.ring.range_mut(self.begun + self.waiting..).map(|sdu| (&mut sdu.arrived, &sdu.packet))
    }

    /// Adds a packet that waits in the buffer.
    pub(crate) fn wait(&mut self, arrived: Instant, packet: &Packet) {
        self.ring.insert(self.begun + self.waiting, Sdu::waiting(arrived, packet));
        self.waiting += 1;
    }

    /// Begins the first transmission of the first waiting packet, with a header: returns its COUNT,
    /// and the SDU.
    #[inline]
    pub(crate) fn begin(&mut self, header_bytes: u32) -> Option<(u64, &Sdu)> {
        let count = self.next_count();
        if self.waiting == 0 {
            return None;
        }
        let sdu = self.ring.get_mut(self.begun)?;
        sdu.size += header_bytes;
        self.begun += 1;
        self.waiting -= 1;
        Some((count, sdu))
    }

    /// Begins the first transmission of waiting packets, one after the other, as long as `takes`
    /// accepts them by COUNT and size; the last waiting packet stays. Returns what began, without
    /// headers.
    #[inline]
    pub(crate) fn begin_run(
        &mut self,
        header_bytes: u32,
        mut takes: impl FnMut(u64, u32) -> bool,
    ) -> Load {
        let counts = self.next_count()..;
        let behind = self.begun + self.waiting.saturating_sub(1);
        let mut run = Load::default();
        for (count, sdu) in counts.zip(self.ring.range_mut(self.begun..behind)) {
            let size = sdu.size + header_bytes;
            if !takes(count, size) {
                break;
            }
            sdu.size = size;
            run.add(&sdu.packet);
        }
        self.begun += run.packets as usize;
        self.waiting -= run.packets as usize;
        run
    }

    /// Drops all waiting packets.
    pub(crate) fn drop_waiting(&mut self, at: Instant, reason: DropReason) {
        let waiting = self.begun..self.begun + std::mem::take(&mut self.waiting);
        let waiting: Vec<Packet> = self.ring.drain(waiting).map(|sdu| sdu.packet).collect();
        waiting.into_iter().for_each(|packet| self.drop(at, packet, reason));
    }

    /// The SDU with this COUNT; `None` if it is forgotten.
    #[inline]
    pub(crate) fn get(&self, count: u64) -> Option<&Sdu> {
        self.ring.get(self.index(count)?)
    }

    #[inline]
    fn get_mut(&mut self, count: u64) -> Option<&mut Sdu> {
        let index = self.index(count)?;
        self.ring.get_mut(index)
    }

    /// Index in the ring; waiting packets have no COUNT.
    #[inline]
    fn index(&self, count: u64) -> Option<usize> {
        usize::try_from(count.checked_sub(self.base)?).ok().filter(|&index| index < self.begun)
    }

    #[inline]
    pub(crate) fn size(&self, count: u64) -> Option<u32> {
        self.get(count).map(|sdu| sdu.size)
    }

    #[inline]
    pub(crate) fn fate(&self, count: u64) -> Fate {
        self.get(count).map_or(Fate::Lost, |sdu| sdu.fate)
    }

    /// PDCP has received the SDU, and waits for others.
    #[inline]
    pub(crate) fn hold(&mut self, count: u64) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.fate = Fate::Held;
        }
    }

    /// Delivers the packet at `at`, unless it was delivered or dropped before.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        at: Instant,
        count: u64,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let Some(index) = self.index(count) else { return };
        let Some(sdu) = self.ring.get_mut(index) else { return };
        if matches!(sdu.fate, Fate::Delivered | Fate::Lost) {
            return;
        }
        sdu.fate = Fate::Delivered;
        self.sojourn.record(&sdu.packet, at.saturating_since(sdu.arrived));
        if let (Some(account), Some(id)) = (&mut self.account, sdu.packet.journey) {
            account.deliver(at, id);
        }
        deliver(at, &sdu.packet);
        self.forget();
    }

    /// Delivers these packets at `at`, up to the first that PDCP has seen before; returns how many.
    #[inline]
    pub(crate) fn deliver_run(
        &mut self,
        at: Instant,
        counts: Range<u64>,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) -> u64 {
        let Some(first) = self.index(counts.start) else { return 0 };
        let end = self.begun.min(first + (counts.end - counts.start) as usize);
        let Self { ring, sojourn, account, .. } = self;
        let mut delivered = 0;
        // Packets that entered together took the same time.
        let (mut entered, mut alike) = (at, Load::default());
        for sdu in ring.range_mut(first..end) {
            if sdu.fate != Fate::Awaited {
                break;
            }
            sdu.fate = Fate::Delivered;
            if sdu.arrived != entered {
                sojourn.record_alike(alike, at.saturating_since(entered));
                (entered, alike) = (sdu.arrived, Load::default());
            }
            alike.add(&sdu.packet);
            if let (Some(account), Some(id)) = (&mut *account, sdu.packet.journey) {
                account.deliver(at, id);
            }
            deliver(at, &sdu.packet);
            delivered += 1;
        }
        sojourn.record_alike(alike, at.saturating_since(entered));
        self.forget();
        delivered
    }

    /// The SDU will not be delivered. It is reported only once.
    pub(crate) fn lose(&mut self, at: Instant, count: u64, reason: DropReason) {
        let Some(sdu) = self.get_mut(count) else { return };
        if matches!(sdu.fate, Fate::Delivered | Fate::Lost) {
            return;
        }
        sdu.fate = Fate::Lost;
        let packet = sdu.packet;
        self.drop(at, packet, reason);
        self.forget();
    }

    /// The transmitter no longer needs the SDU.
    #[inline]
    pub(crate) fn confirm(&mut self, count: u64) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.confirmed = true;
        }
        self.forget();
    }

    /// The transmitter no longer needs these SDUs; the caller will [forget](Self::forget_run) them.
    #[inline]
    pub(crate) fn note_confirmed(&mut self, counts: Range<u64>) {
        // SDUs below the base are already forgotten.
        let index = |count: u64| count.saturating_sub(self.base) as usize;
        let known = index(counts.start).min(self.begun)..index(counts.end).min(self.begun);
        self.ring.range_mut(known).for_each(|sdu| sdu.confirmed = true);
    }

    /// The transmitter will retransmit the SDU.
    pub(crate) fn unconfirm(&mut self, count: u64) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.confirmed = false;
        }
    }

    /// Drops a packet that is inside.
    #[inline]
    pub(crate) fn drop(&mut self, at: Instant, packet: Packet, reason: DropReason) {
        if let (Some(account), Some(id)) = (&mut self.account, packet.journey) {
            account.forget(at, id);
        }
        self.drops.push_back(Drop { at, packet, stage: self.stage, reason });
    }

    /// The last bytes of these SDUs were sent for the first time.
    pub(crate) fn sent(&mut self, now: Instant, counts: Range<u64>) {
        for count in counts {
            let journey = self.get(count).and_then(|sdu| sdu.packet.journey);
            if let (Some(account), Some(id)) = (&mut self.account, journey) {
                account.sent(now, id);
            }
        }
    }

    /// Some bytes of this SDU, if it is one, have been sent, but not the last.
    pub(crate) fn begun(&mut self, now: Instant, count: u64) {
        let journey = self.get(count).and_then(|sdu| sdu.packet.journey);
        if let (Some(account), Some(id)) = (&mut self.account, journey) {
            account.begun(now, id);
        }
    }

    /// A block brought bytes of this SDU.
    pub(crate) fn received(&mut self, now: Instant, count: u64, block: BlockTimes) {
        let journey = self.get(count).and_then(|sdu| sdu.packet.journey);
        if let (Some(account), Some(id)) = (&mut self.account, journey) {
            account.received(now, id, block);
        }
    }

    /// The ECN codepoint that an SDU has when it arrives at the receiver.
    pub(crate) fn mark(&mut self, count: u64, ecn: Ecn) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.packet.ecn = ecn;
        }
    }

    /// SDUs for which PDCP waits for others.
    pub(crate) fn held(&self) -> Load {
        let mut load = Load::default();
        for sdu in self.ring.range(..self.begun) {
            if sdu.fate == Fate::Held {
                load.add(&sdu.packet);
            }
        }
        load
    }

    /// SDUs that have been neither delivered nor dropped.
    pub(crate) fn undelivered(&self) -> Load {
        let mut load = Load::default();
        for sdu in self.ring.range(..self.begun) {
            if matches!(sdu.fate, Fate::Awaited | Fate::Held) {
                load.add(&sdu.packet);
            }
        }
        load
    }

    /// Packets dropped and not polled yet.
    pub(crate) fn uncollected(&self) -> Load {
        let mut load = Load::default();
        self.drops.iter().for_each(|drop| load.add(&drop.packet));
        load
    }

    #[inline]
    pub(crate) fn has_drops(&self) -> bool {
        !self.drops.is_empty()
    }

    pub(crate) fn poll_drop(&mut self) -> Option<Drop> {
        self.drops.pop_front()
    }

    /// Removes SDUs about which nothing more can happen.
    #[inline]
    pub(crate) fn forget(&mut self) {
        while self.ring.front().is_some_and(Sdu::is_over) {
            self.ring.pop_front();
            self.begun -= 1;
            self.base += 1;
        }
    }

    /// Like [`forget`](Self::forget), efficient for many SDUs.
    #[inline]
    pub(crate) fn forget_run(&mut self) {
        let over = self.ring.iter().take_while(|sdu| sdu.is_over()).count();
        self.ring.drain(..over);
        self.begun -= over;
        self.base += over as u64;
    }
}
