//! PDCP's receiving side: in-order delivery without duplicates.

use std::ops::Range;

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

    /// PDCP data PDUs arrived one after the other: has the effect of [`receive`](Self::receive) for
    /// each.
    #[inline]
    pub(crate) fn receive_run(
        &mut self,
        now: Instant,
        mut counts: Range<u64>,
        cause: Cause,
        sdus: &mut Sdus,
        deliver: &mut impl FnMut(Instant, &Packet),
    ) {
        let ordered = match self.order {
            PdcpOrder::Restored(_) => true,
            PdcpOrder::FromBelow => cause == Cause::Reception,
            PdcpOrder::Ignored => false,
        };
        // Nothing is held or awaited.
        if ordered && self.timer.is_none() && [self.deliv, self.next] == [counts.start; 2] {
            counts.start += sdus.deliver_run(now, counts.clone(), deliver);
            (self.deliv, self.next) = (counts.start, counts.start);
        }
        for count in counts {
            self.receive(now, count, cause, sdus, deliver);
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

#[cfg(test)]
mod tests {
    use airpath_base::{Ecn, FlowId, Payload, Tunnel};
    use proptest::prelude::*;

    use super::*;
    use crate::buffer::Waiting;

    const SDUS: u64 = 40;

    /// A receiver, its SDUs, and what it has delivered.
    fn new(order: PdcpOrder) -> (PdcpReceiver, Sdus, Vec<(Instant, u32)>) {
        let mut sdus = Sdus::new(0);
        for size in 0..SDUS as u32 {
            let (ecn, tunnel, payload) = (Ecn::NotEct, Tunnel::default(), Payload::Opaque(0));
            let packet = Packet { flow: FlowId(0), size, ecn, tunnel, journey: None, payload };
            sdus.push(&Waiting { packet, arrived: Instant::ZERO }, size);
        }
        (PdcpReceiver::new(order), sdus, Vec::new())
    }

    fn order() -> impl Strategy<Value = PdcpOrder> {
        let timer = proptest::option::of(Just(Duration::from_millis(20)));
        prop_oneof![
            timer.prop_map(PdcpOrder::Restored),
            Just(PdcpOrder::Ignored),
            Just(PdcpOrder::FromBelow),
        ]
    }

    proptest! {
        #[test]
        fn a_run_is_received_as_its_sdus_are_one_by_one(
            order in order(),
            runs in proptest::collection::vec((0u64..4, 1u64..6, 0u8..8, any::<bool>()), 0..30),
        ) {
            let ((mut one, mut sdus, mut up), (mut other, mut others, mut other_up)) =
                (new(order), new(order));
            let mut next = 0;
            for (time, (ahead, len, kind, late)) in (1..).zip(runs) {
                let now = Instant::ZERO + Duration::from_millis(time);
                let start = if late { 0 } else { next + ahead.saturating_sub(2) };
                let run = start.min(SDUS)..(start + len).min(SDUS);
                next = next.max(run.end);
                let cause = if kind == 0 { Cause::Reestablishment } else { Cause::Reception };
                if kind == 1 {
                    sdus.lose(now, run.start, DropReason::RadioLink);
                    others.lose(now, run.start, DropReason::RadioLink);
                }
                let (up, other_up) = (&mut up, &mut other_up);
                let deliver = &mut |at, packet: &Packet| up.push((at, packet.size));
                one.receive_run(now, run.clone(), cause, &mut sdus, deliver);
                let deliver = &mut |at, packet: &Packet| other_up.push((at, packet.size));
                for count in run {
                    other.receive(now, count, cause, &mut others, deliver);
                }
                prop_assert_eq!((one.next, one.deliv, one.timer), (other.next, other.deliv, other.timer));
                prop_assert!((0..SDUS).all(|count| sdus.fate(count) == others.fate(count)));
                prop_assert_eq!((sdus.sojourn.delivered, sdus.sojourn.sum), (others.sojourn.delivered, others.sojourn.sum));
            }
            prop_assert_eq!(up, other_up);
        }
    }
}
