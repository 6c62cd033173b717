//! PDCP's receiving side: in-order delivery without duplicates.

mod fast_path;

use airpath_base::{DropReason, Duration, Instant, Packet};

use crate::buffer::{Fate, Sdus};

/// The receiving side of TS 38.323 5.2.2.1 and TS 36.323 5.1.2.1. COUNT does not wrap.
#[derive(Debug)]
pub(crate) struct PdcpReceiver {
    order: PdcpOrder,
    /// RX_NEXT.
    next: u64,
    /// RX_DELIV.
    deliv: u64,
    /// t-Reordering and RX_REORD.
    timer: Option<(Instant, u64)>,
}

/// How packets are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PdcpOrder {
    /// NR, in order; `None`: t-Reordering is infinity.
    Restored(Option<Duration>),
    /// NR, as they arrive.
    Ignored,
    /// LTE: RLC has restored the order, except while it is re-established.
    FromBelow,
}

/// Why RLC delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// RLC received something, or waited long enough.
    Reception,
    /// RLC is being re-established.
    Reestablishment,
}

impl PdcpReceiver {
    pub(crate) fn new(order: PdcpOrder) -> Self {
        Self { order, next: 0, deliv: 0, timer: None }
    }

    /// From now on another cell's RLC delivers.
    pub(crate) fn set_order(&mut self, order: PdcpOrder) {
        self.order = order;
    }

    /// Whether the receiver waits for a gap until t-Reordering expires.
    pub(crate) const fn gives_up(&self) -> bool {
        matches!(self.order, PdcpOrder::Restored(Some(_)))
    }

    /// A PDCP data PDU arrived.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        count: u64,
        cause: Cause,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        if sdus.fate(count) != Fate::Awaited {
            return;
        }
        if count < self.deliv {
            // It arrives after it was given up.
            sdus.lose(now, count, DropReason::RadioLink);
            return;
        }
        self.next = self.next.max(count + 1);
        match self.order {
            PdcpOrder::Ignored => {
                sdus.deliver(now, count, deliver);
                return;
            }
            PdcpOrder::FromBelow if cause == Cause::Reception => {
                // TS 36.323 5.1.2.1.2: everything stored below it is delivered first.
                self.deliver_below(now, count, sdus, deliver);
                sdus.deliver(now, count, deliver);
                self.deliv = count + 1;
                self.deliver_consecutive(now, sdus, deliver);
                return;
            }
            PdcpOrder::FromBelow | PdcpOrder::Restored(_) => {}
        }
        if count == self.deliv {
            sdus.deliver(now, count, deliver);
            self.deliv += 1;
            self.deliver_consecutive(now, sdus, deliver);
        } else {
            sdus.hold(count);
        }
        if self.timer.is_some_and(|(_, reord)| self.deliv >= reord) {
            self.timer = None;
        }
        self.start_timer(now);
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// t-Reordering expired (TS 38.323 5.2.2.2).
    pub(crate) fn on_timer(
        &mut self,
        at: Instant,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let Some((_, reord)) = self.timer.take() else { return };
        self.deliver_below(at, reord, sdus, deliver);
        self.deliver_consecutive(at, sdus, deliver);
        self.start_timer(at);
    }

    /// Delivers everything that is stored, in order (TS 38.323 5.1.2 for UM).
    pub(crate) fn flush(
        &mut self,
        now: Instant,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        self.timer = None;
        self.next = sdus.next_count();
        self.deliver_below(now, self.next, sdus, deliver);
    }

    #[inline]
    fn start_timer(&mut self, now: Instant) {
        if let PdcpOrder::Restored(Some(t_reordering)) = self.order
            && self.timer.is_none()
            && self.deliv < self.next
        {
            self.timer = Some((now + t_reordering, self.next));
        }
    }

    fn deliver_below(
        &mut self,
        at: Instant,
        count: u64,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        for count in self.deliv.max(sdus.base())..count {
            if sdus.fate(count) == Fate::Held {
                sdus.deliver(at, count, deliver);
            }
        }
        self.deliv = self.deliv.max(count);
    }

    #[inline]
    fn deliver_consecutive(
        &mut self,
        at: Instant,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        while sdus.fate(self.deliv) == Fate::Held {
            sdus.deliver(at, self.deliv, deliver);
            self.deliv += 1;
        }
    }
}
