//! The receiving side of an AM entity: reassembly and STATUS reports.

mod fast_path;

use airpath_base::{Duration, Instant, is_planted};

use super::assembler::{Assembler, Outcome};
use super::block::{Nack, Pdu, Status};
use super::framing::StatusFraming;
use super::reassembly::{Placed, Reassembly, Unit};
use crate::buffer::Sdus;

/// The receiving side of TS 38.322 5.2.3.2, 5.3.4 and TS 36.322 5.1.3.2, 5.2.3.
///
/// Names are NR's: `reassembly.base()` is RX_Next (VR(R)).
#[derive(Debug)]
pub(crate) struct AmReceiver {
    order: Order,
    framing: StatusFraming,
    /// AM_Window_Size.
    window: u64,
    /// t-Reassembly (t-Reordering).
    t_reassembly: Duration,
    t_status_prohibit: Duration,
    reassembly: Reassembly,
    /// RX_Next_Highest (VR(H)).
    next_highest: u64,
    /// RX_Highest_Status (VR(MS)).
    highest_status: u64,
    /// t-Reassembly and RX_Next_Status_Trigger (VR(X)).
    timer: Option<(Instant, u64)>,
    /// SNs of polls that must not be answered yet.
    delayed_polls: Vec<u64>,
    /// Whether a STATUS is due.
    triggered: bool,
    /// End of t-StatusProhibit.
    prohibited_until: Option<Instant>,
}

/// Which layer restores the order of SDUs.
#[derive(Debug)]
pub(crate) enum Order {
    /// NR: PDCP. SDUs are delivered as they complete.
    Above,
    /// LTE: RLC.
    Here(Assembler),
}

impl AmReceiver {
    pub(crate) fn new(
        order: Order,
        framing: StatusFraming,
        window: u64,
        t_reassembly: Duration,
        t_status_prohibit: Duration,
    ) -> Self {
        Self {
            order,
            framing,
            window,
            t_reassembly,
            t_status_prohibit,
            reassembly: Reassembly::default(),
            next_highest: 0,
            highest_status: 0,
            timer: None,
            delayed_polls: Vec::new(),
            triggered: false,
            prohibited_until: None,
        }
    }

    pub(crate) fn on_pdu(&mut self, now: Instant, pdu: &Pdu, sdus: &Sdus, outcome: &mut Outcome) {
        self.end_prohibition(now);
        // TS 38.322 5.2.3.2.2: outside the window, or received before.
        let next = self.reassembly.base();
        if let Some(unit) = self.reassembly.take_in_order(pdu) {
            if self.highest_status == next {
                self.highest_status += 1;
            }
            match &mut self.order {
                Order::Above => outcome.complete.push(unit.sdu),
                Order::Here(assembler) => assembler.feed(unit, sdus, outcome),
            }
        } else if pdu.sn < next
            || pdu.sn >= next + self.window
            || self.place(pdu, outcome) == Placed::Duplicate
        {
            self.triggered |= pdu.poll;
            return;
        } else {
            // TS 38.322 5.2.3.2.3
            self.highest_status = self.reassembly.first_incomplete(self.highest_status);
            self.advance(sdus, outcome);
        }
        self.next_highest = self.next_highest.max(pdu.sn + 1);
        if pdu.poll || is_planted("answer every PDU") {
            self.delayed_polls.push(pdu.sn);
        }
        self.answer_polls();
        if self.timer.is_some_and(|(_, trigger)| self.is_settled(trigger)) {
            self.timer = None;
        }
        if self.timer.is_none() && self.must_wait(self.reassembly.base()) {
            self.timer = Some((now + self.t_reassembly, self.next_highest));
        }
    }

    /// Expiry of t-Reassembly, or of the prohibition that delays a STATUS.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let prohibited = self.prohibited_until.filter(|_| self.triggered);
        match (self.timer, prohibited) {
            (Some((at, _)), Some(until)) => Some(at.min(until)),
            (timer, until) => timer.map(|(at, _)| at).or(until),
        }
    }

    pub(crate) fn on_timer(&mut self, at: Instant) {
        self.end_prohibition(at);
        // TS 38.322 5.2.3.2.4, TS 36.322 5.1.3.2.4
        if let Some((_, trigger)) = self.timer.filter(|&(due, _)| due <= at) {
            self.timer = None;
            let from = trigger.max(self.reassembly.base());
            self.highest_status = self.reassembly.first_incomplete(from);
            if self.must_wait(self.highest_status) {
                self.timer = Some((at + self.t_reassembly, self.next_highest));
            }
            // TS 38.322 5.3.4: detection of reception failure
            self.triggered = true;
            self.answer_polls();
        }
    }

    /// Handles the expiry of t-StatusProhibit, which is not an event while no STATUS is due.
    fn end_prohibition(&mut self, now: Instant) {
        self.prohibited_until = self.prohibited_until.filter(|&until| until > now);
    }

    /// Bytes of the STATUS PDU that the next opportunity would carry; `None` if none is due.
    #[inline]
    pub(crate) fn status_bytes(&self, now: Instant) -> Option<u32> {
        if self.status_due(now) { Some(self.report_bytes()) } else { None }
    }

    #[inline(never)]
    fn report_bytes(&self) -> u32 {
        self.report(u32::MAX, |_| {}).1.div_ceil(8)
    }

    /// Writes the STATUS that is due, at most `room` bytes; returns its length, or 0.
    pub(crate) fn build_status(&mut self, now: Instant, room: u32, status: &mut Status) -> u32 {
        status.clear();
        let most = room.saturating_mul(8);
        if !self.status_due(now) || most < self.framing.fixed_bits() {
            return 0;
        }
        let (ack_sn, bits) = self.report(most, |nack| status.nacks.push(nack));
        status.ack_sn = Some(ack_sn);
        self.triggered = false;
        // TS 38.322 5.3.4: start t-StatusProhibit
        self.prohibited_until =
            (self.t_status_prohibit > Duration::ZERO).then(|| now + self.t_status_prohibit);
        bits.div_ceil(8)
    }

    /// TS 38.322 5.1.2, TS 36.322 5.4: the next unit is `next`.
    pub(crate) fn reestablish(&mut self, next: u64, sdus: &Sdus, outcome: &mut Outcome) {
        if let Order::Here(assembler) = &mut self.order {
            while self.reassembly.base() < self.next_highest {
                if let Some(unit) = self.reassembly.pop() {
                    assembler.feed(unit, sdus, outcome);
                }
            }
            assembler.reset();
            // The transmitter retransmits it.
            outcome.lost.clear();
        }
        self.reassembly.reset(next);
        self.next_highest = next;
        self.highest_status = next;
        self.timer = None;
        self.delayed_polls.clear();
        self.triggered = false;
        self.prohibited_until = None;
    }

    fn place(&mut self, pdu: &Pdu, outcome: &mut Outcome) -> Placed {
        let placed = self.reassembly.place(pdu);
        if placed == Placed::Complete && matches!(self.order, Order::Above) {
            outcome.complete.push(pdu.sdu);
        }
        placed
    }

    /// Moves RX_Next to the first incomplete unit.
    fn advance(&mut self, sdus: &Sdus, outcome: &mut Outcome) {
        while self.reassembly.complete(self.reassembly.base()).is_some() {
            let unit: Option<Unit> = self.reassembly.pop();
            if let (Order::Here(assembler), Some(unit)) = (&mut self.order, unit) {
                assembler.feed(unit, sdus, outcome);
            }
        }
    }

    /// TS 38.322 5.2.3.2.3: whether t-Reassembly must stop.
    fn is_settled(&self, trigger: u64) -> bool {
        let next = self.reassembly.base();
        let partly = match self.order {
            Order::Above => trigger == next + 1 && !self.reassembly.has_gap(next),
            // TS 36.322 5.1.3.2.3 has no such case.
            Order::Here(_) => false,
        };
        // Below the window, or above it (NR: and not at its end).
        trigger <= next || partly || trigger > next + self.window
    }

    /// Whether something below RX_Next_Highest is missing, from `first` on.
    fn must_wait(&self, first: u64) -> bool {
        match self.order {
            // TS 38.322 5.2.3.2.3
            Order::Above => {
                self.next_highest > first + 1
                    || self.next_highest == first + 1 && self.reassembly.has_gap(first)
            }
            // TS 36.322 5.1.3.2.3
            Order::Here(_) => self.next_highest > first,
        }
    }

    /// TS 38.322 5.3.4, TS 36.322 5.2.3: a poll is answered once reordering below it is done.
    #[inline]
    fn answer_polls(&mut self) {
        if self.delayed_polls.is_empty() {
            return;
        }
        let (settled, window_end) = (self.highest_status, self.reassembly.base() + self.window);
        let waiting = self.delayed_polls.len();
        self.delayed_polls.retain(|&sn| sn >= settled && sn < window_end);
        self.triggered |= self.delayed_polls.len() < waiting;
    }

    #[inline]
    fn status_due(&self, now: Instant) -> bool {
        self.triggered && self.prohibited_until.is_none_or(|until| until <= now)
    }

    /// TS 38.322 5.3.4: negative acknowledgements below RX_Highest_Status, as many as fit into
    /// `most` bits. Returns ACK_SN and the number of bits.
    fn report(&self, most: u32, mut write: impl FnMut(Nack)) -> (u64, u32) {
        let mut bits = self.framing.fixed_bits();
        let mut sn = self.reassembly.base();
        while sn < self.highest_status {
            let Some(missing) = self.reassembly.missing(sn) else {
                // TS 38.322 6.2.2.5: consecutive units in one entry
                let mut count = 1;
                while count < self.framing.max_range()
                    && sn + u64::from(count) < self.highest_status
                    && self.reassembly.missing(sn + u64::from(count)).is_none()
                {
                    count += 1;
                }
                bits += self.framing.units_bits(count);
                if bits > most {
                    return (sn, bits - self.framing.units_bits(count));
                }
                write(Nack::Units { sn, count });
                sn += u64::from(count);
                continue;
            };
            if self.reassembly.complete(sn).is_none() {
                for (start, end) in missing {
                    bits += self.framing.bytes_bits();
                    if bits > most {
                        // What is omitted of this unit will be in the next report.
                        return (sn, bits - self.framing.bytes_bits());
                    }
                    write(Nack::Bytes { sn, start, end });
                }
            }
            sn += 1;
        }
        (sn, bits)
    }
}
