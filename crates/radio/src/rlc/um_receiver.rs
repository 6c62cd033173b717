//! The receiving side of an UM entity.

use airpath_base::{Duration, Instant};

use super::assembler::{Assembler, Outcome};
use super::block::Pdu;
use super::reassembly::{Placed, Reassembly};
use crate::buffer::Sdus;

/// NR: reassembles segmented SDUs (TS 38.322 5.2.2.2). Whole ones pass through.
///
/// `reassembly.base()` is RX_Next_Reassembly.
#[derive(Debug)]
pub(crate) struct NrUmReceiver {
    reassembly: Reassembly,
    /// UM_Window_Size (TS 38.322 7.2).
    window: u64,
    t_reassembly: Duration,
    /// RX_Next_Highest.
    next_highest: u64,
    /// t-Reassembly and RX_Timer_Trigger.
    timer: Option<(Instant, u64)>,
}

impl NrUmReceiver {
    pub(crate) fn new(window: u64, t_reassembly: Duration) -> Self {
        Self {
            reassembly: Reassembly::default(),
            window,
            t_reassembly,
            next_highest: 0,
            timer: None,
        }
    }

    pub(crate) fn on_pdu(&mut self, now: Instant, pdu: &Pdu, outcome: &mut Outcome) {
        // TS 38.322 5.2.2.2.2: a PDU without an SN is an SDU.
        if pdu.is_whole() {
            outcome.complete.push(pdu.sdu);
            return;
        }
        if pdu.sn < self.reassembly.base() {
            outcome.lost.push(pdu.sdu);
            return;
        }
        // TS 38.322 5.2.2.2.3
        if self.reassembly.place(pdu) == Placed::Complete {
            outcome.complete.push(pdu.sdu);
        }
        if pdu.sn >= self.next_highest {
            self.next_highest = pdu.sn + 1;
            let lowest = self.next_highest.saturating_sub(self.window);
            if lowest > self.reassembly.base() {
                self.advance_to(lowest, outcome);
            }
        }
        let next = self.reassembly.first_incomplete(self.reassembly.base());
        self.advance_to(next, outcome);
        let next = self.reassembly.base();
        if let Some((_, trigger)) = self.timer
            && (trigger <= next || trigger == next + 1 && !self.reassembly.has_gap(next))
        {
            self.timer = None;
        }
        if self.timer.is_none() {
            self.start_timer(now);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// t-Reassembly expired (TS 38.322 5.2.2.2.4).
    pub(crate) fn on_timer(&mut self, at: Instant, outcome: &mut Outcome) {
        let Some((_, trigger)) = self.timer.take() else { return };
        let next = self.reassembly.first_incomplete(trigger.max(self.reassembly.base()));
        self.advance_to(next, outcome);
        self.start_timer(at);
    }

    /// TS 38.322 5.1.2.
    pub(crate) fn reestablish(&mut self, next: u64) {
        self.reassembly.reset(next);
        self.next_highest = next;
        self.timer = None;
    }

    fn start_timer(&mut self, at: Instant) {
        let next = self.reassembly.base();
        if self.next_highest > next + 1
            || self.next_highest == next + 1 && self.reassembly.has_gap(next)
        {
            self.timer = Some((at + self.t_reassembly, self.next_highest));
        }
    }

    /// Discards the segments of incomplete units below `sn`.
    fn advance_to(&mut self, sn: u64, outcome: &mut Outcome) {
        while self.reassembly.base() < sn {
            outcome.lost.extend(self.reassembly.partial_at_base());
            self.reassembly.pop();
        }
    }
}

/// LTE: puts PDUs in order, and reassembles SDUs (TS 36.322 5.1.2.2).
///
/// `reassembly.base()` is VR(UR).
#[derive(Debug)]
pub(crate) struct LteUmReceiver {
    reassembly: Reassembly,
    assembler: Assembler,
    /// UM_Window_Size (TS 36.322 7.2).
    window: u64,
    t_reordering: Duration,
    /// VR(UH).
    highest: u64,
    /// t-Reordering and VR(UX).
    timer: Option<(Instant, u64)>,
}

impl LteUmReceiver {
    pub(crate) fn new(window: u64, t_reordering: Duration) -> Self {
        Self {
            reassembly: Reassembly::default(),
            assembler: Assembler::default(),
            window,
            t_reordering,
            highest: 0,
            timer: None,
        }
    }

    pub(crate) fn on_pdu(&mut self, now: Instant, pdu: &Pdu, sdus: &Sdus, outcome: &mut Outcome) {
        // TS 36.322 5.1.2.2.2
        if pdu.sn < self.reassembly.base() || self.reassembly.place(pdu) == Placed::Duplicate {
            // What it carried is lost, whole or not.
            self.late(pdu, sdus, outcome);
            return;
        }
        // TS 36.322 5.1.2.2.3
        if pdu.sn >= self.highest {
            self.highest = pdu.sn + 1;
            self.advance_to(self.highest.saturating_sub(self.window), sdus, outcome);
        }
        let next = self.reassembly.first_incomplete(self.reassembly.base());
        self.advance_to(next, sdus, outcome);
        if self.timer.is_some_and(|(_, trigger)| trigger <= next) {
            self.timer = None;
        }
        if self.timer.is_none() {
            self.start_timer(now);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// t-Reordering expired (TS 36.322 5.1.2.2.4).
    pub(crate) fn on_timer(&mut self, at: Instant, sdus: &Sdus, outcome: &mut Outcome) {
        let Some((_, trigger)) = self.timer.take() else { return };
        let next = self.reassembly.first_incomplete(trigger.max(self.reassembly.base()));
        self.advance_to(next, sdus, outcome);
        self.start_timer(at);
    }

    /// Delivers what is complete (TS 36.322 5.4), and discards the rest.
    pub(crate) fn reestablish(&mut self, next: u64, sdus: &Sdus, outcome: &mut Outcome) {
        self.advance_to(self.highest, sdus, outcome);
        self.reassembly.reset(next);
        self.assembler.reset();
        self.highest = next;
        self.timer = None;
    }

    fn start_timer(&mut self, at: Instant) {
        if self.highest > self.reassembly.base() {
            self.timer = Some((at + self.t_reordering, self.highest));
        }
    }

    fn advance_to(&mut self, sn: u64, sdus: &Sdus, outcome: &mut Outcome) {
        while self.reassembly.base() < sn {
            if let Some(unit) = self.reassembly.pop() {
                self.assembler.feed(unit, sdus, outcome);
            }
        }
    }

    /// A PDU that arrived after it was given up.
    fn late(&mut self, pdu: &Pdu, sdus: &Sdus, outcome: &mut Outcome) {
        sdus_of(pdu, sdus, |count| outcome.lost.push(count));
    }
}

/// Visits the SDUs of which a PDU carries bytes.
pub(crate) fn sdus_of(pdu: &Pdu, sdus: &Sdus, mut visit: impl FnMut(u64)) {
    let mut count = pdu.sdu;
    let mut rest = pdu.sdu_size - pdu.sdu_offset;
    // Bytes before `start` belong to other PDUs.
    let mut at = 0;
    while at < pdu.end {
        if at + rest > pdu.start {
            visit(count);
        }
        at += rest;
        count += 1;
        let Some(size) = sdus.size(count) else { return };
        rest = size;
    }
}
