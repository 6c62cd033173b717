//! PDCP's receiving side: order, and nothing twice.

use std::ops::Range;

use airpath_base::{DropReason, Duration, Instant, Packet};

use crate::buffer::{Fate, Sdus};

/// TS 38.323 5.2.2.1 and TS 36.323 5.1.2.1. COUNT does not wrap.
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

/// How packets are handed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PdcpOrder {
    /// NR, in order; `None`: t-Reordering is infinity.
    Restored(Option<Duration>),
    /// NR, as they come.
    Ignored,
    /// LTE: RLC has restored it, except while it is re-established.
    FromBelow,
}

/// Why RLC delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It received something, or waited long enough.
    Reception,
    /// It is being re-established.
    Reestablishment,
}

impl PdcpReceiver {
    pub(crate) fn new(order: PdcpOrder) -> Self {
        Self { order, next: 0, deliv: 0, timer: None }
    }

    /// Another cell's RLC delivers from now on.
    pub(crate) fn set_order(&mut self, order: PdcpOrder) {
        self.order = order;
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
            // It comes after it was given up.
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
                // TS 36.323 5.1.2.1.2: everything stored below it goes first.
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

    /// PDCP data PDUs arrived, one after the other: [`receive`](Self::receive) for each.
    #[inline]
    pub(crate) fn receive_run(
        &mut self,
        now: Instant,
        mut counts: Range<u64>,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let restored = matches!(self.order, PdcpOrder::Restored(_));
        // Nothing is held, and nothing is waited for.
        if restored && self.timer.is_none() && [self.deliv, self.next] == [counts.start; 2] {
            counts.start += sdus.deliver_run(now, counts.clone(), deliver);
            (self.deliv, self.next) = (counts.start, counts.start);
        }
        for count in counts {
            self.receive(now, count, Cause::Reception, sdus, deliver);
        }
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

    /// Hands up everything that is stored, in order (TS 38.323 5.1.2 for UM).
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
