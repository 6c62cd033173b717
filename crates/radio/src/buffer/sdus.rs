//! SDUs between their first transmission and the end of their story, known to both ends.

use std::collections::VecDeque;
use std::ops::Range;

use airpath_base::{Drop, DropReason, Duration, Histogram, Instant, Packet};
use airpath_queue::Load;

use crate::wait_meter::{BlockTimes, WaitMeter};

/// A ring of SDUs by COUNT, and the account of what is inside the bearer.
#[derive(Debug)]
pub(crate) struct Sdus {
    ring: VecDeque<Sdu>,
    /// COUNT of `ring[0]`.
    base: u64,
    /// Packets that entered, and were neither delivered nor dropped.
    pub(crate) inside: Load,
    drops: VecDeque<Drop>,
    stage: u32,
    pub(crate) sojourn: Sojourn,
    /// `None`: nobody accounts for where time is spent.
    pub(crate) account: Option<Box<WaitMeter>>,
}

/// Time from a packet's entering the buffer to its leaving the receiver, over all delivered.
#[derive(Clone, Debug, Default)]
pub struct Sojourn {
    /// Packets and bytes delivered.
    pub delivered: Load,
    /// Sum of the times.
    pub sum: Duration,
    /// Distribution; `None` before the first packet.
    pub histogram: Option<Histogram>,
}

impl Sojourn {
    #[inline]
    fn record(&mut self, packet: &Packet, time: Duration) {
        self.delivered.add(packet);
        self.sum += time;
        self.histogram.get_or_insert_with(Histogram::new).record(time);
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
    arrived: Instant,
    /// Bytes, PDCP header included.
    pub(crate) size: u32,
    pub(crate) fate: Fate,
    /// The transmitter needs it no more.
    confirmed: bool,
}

/// How far the receiver is with an SDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Not complete.
    Awaited,
    /// Complete; PDCP waits for others.
    Held,
    /// Handed up.
    Delivered,
    /// Dropped.
    Lost,
}

impl Sdus {
    pub(crate) fn new(stage: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            base: 0,
            inside: Load::default(),
            drops: VecDeque::new(),
            stage,
            sojourn: Sojourn::default(),
            account: None,
        }
    }

    /// The COUNT that the next SDU will have (TX_NEXT, TS 38.323 7.1).
    pub(crate) fn next_count(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// The first COUNT that is still known.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// A first transmission begins.
    #[inline]
    pub(crate) fn push(&mut self, waiting: &Waiting, size: u32) -> u64 {
        let count = self.next_count();
        let Waiting { packet, arrived } = *waiting;
        self.ring.push_back(Sdu { packet, arrived, size, fate: Fate::Awaited, confirmed: false });
        count
    }

    /// `None`: all is said about it.
    #[inline]
    pub(crate) fn get(&self, count: u64) -> Option<&Sdu> {
        self.ring.get(usize::try_from(count.checked_sub(self.base)?).ok()?)
    }

    #[inline]
    fn get_mut(&mut self, count: u64) -> Option<&mut Sdu> {
        self.ring.get_mut(usize::try_from(count.checked_sub(self.base)?).ok()?)
    }

    #[inline]
    pub(crate) fn size(&self, count: u64) -> Option<u32> {
        self.get(count).map(|sdu| sdu.size)
    }

    #[inline]
    pub(crate) fn fate(&self, count: u64) -> Fate {
        self.get(count).map_or(Fate::Lost, |sdu| sdu.fate)
    }

    /// PDCP has it, and waits for others.
    #[inline]
    pub(crate) fn hold(&mut self, count: u64) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.fate = Fate::Held;
        }
    }

    /// Hands the packet up at `at`, unless its story has ended.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        at: Instant,
        count: u64,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let Some(index) = count.checked_sub(self.base) else { return };
        // The ring is in memory.
        let Some(sdu) = self.ring.get_mut(index as usize) else { return };
        if matches!(sdu.fate, Fate::Delivered | Fate::Lost) {
            return;
        }
        sdu.fate = Fate::Delivered;
        self.sojourn.record(&sdu.packet, at.saturating_since(sdu.arrived));
        if let (Some(account), Some(id)) = (&mut self.account, sdu.packet.journey) {
            account.deliver(at, id);
        }
        self.inside.remove(&sdu.packet);
        deliver(at, &sdu.packet);
        self.forget();
    }

    /// It will not be delivered. Says nothing twice.
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

    /// The transmitter needs it no more.
    #[inline]
    pub(crate) fn confirm(&mut self, count: u64) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.confirmed = true;
            self.forget();
        }
    }

    /// The transmitter will send it again.
    pub(crate) fn unconfirm(&mut self, count: u64) {
        if let Some(sdu) = self.get_mut(count) {
            sdu.confirmed = false;
        }
    }

    /// A packet that is inside is dropped.
    #[inline]
    pub(crate) fn drop(&mut self, at: Instant, packet: Packet, reason: DropReason) {
        if let (Some(account), Some(id)) = (&mut self.account, packet.journey) {
            account.forget(at, id);
        }
        self.inside.remove(&packet);
        self.drops.push_back(Drop { at, packet, stage: self.stage, reason });
    }

    /// The last bytes of these SDUs are sent for the first time.
    pub(crate) fn sent(&mut self, now: Instant, counts: Range<u64>) {
        for count in counts {
            let journey = self.get(count).and_then(|sdu| sdu.packet.journey);
            if let (Some(account), Some(id)) = (&mut self.account, journey) {
                account.sent(now, id);
            }
        }
    }

    /// Bytes of this SDU have been sent, if it is one, and not the last of them.
    pub(crate) fn begun(&mut self, now: Instant, count: u64) {
        let journey = self.get(count).and_then(|sdu| sdu.packet.journey);
        if let (Some(account), Some(id)) = (&mut self.account, journey) {
            account.begun(now, id);
        }
    }

    /// A block has brought bytes of this SDU.
    pub(crate) fn received(&mut self, now: Instant, count: u64, block: BlockTimes) {
        let journey = self.get(count).and_then(|sdu| sdu.packet.journey);
        if let (Some(account), Some(id)) = (&mut self.account, journey) {
            account.received(now, id, block);
        }
    }

    pub(crate) fn poll_drop(&mut self) -> Option<Drop> {
        self.drops.pop_front()
    }

    #[inline]
    fn forget(&mut self) {
        while self
            .ring
            .front()
            .is_some_and(|sdu| sdu.confirmed && matches!(sdu.fate, Fate::Delivered | Fate::Lost))
        {
            self.ring.pop_front();
            self.base += 1;
        }
    }
}
