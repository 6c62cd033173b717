//! What a sender reports: totals, events and RTT samples. The sender's behaviour does not depend on them.

use std::collections::VecDeque;

use airpath_base::{Duration, Instant};

use crate::event::{Event, EventKind};

/// Totals of the sending half.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SenderCounters {
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Times the retransmission timer expired.
    pub timeouts: u64,
    /// Reductions that were undone.
    pub undos: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Reductions caused by marked packets.
    pub ecn_reductions: u64,
}

/// Totals, events that have not been read yet, and the last RTT sample.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    counters: SenderCounters,
    events: VecDeque<Event>,
    rtt: Option<Duration>,
}

impl Telemetry {
    /// Counts a segment that is sent or retransmitted.
    #[inline]
    pub(super) fn count_segment(&mut self, is_retransmission: bool) {
        self.counters.segments += 1;
        self.counters.retransmitted += u64::from(is_retransmission);
    }

    /// Records an event at `at`, and counts it if there is a total for it.
    pub(crate) fn record(&mut self, at: Instant, kind: EventKind) {
        let counters = &mut self.counters;
        match kind {
            EventKind::RetransmissionTimeout { .. } => counters.timeouts += 1,
            EventKind::Undo { .. } => counters.undos += 1,
            EventKind::TailLossProbe => counters.probes += 1,
            EventKind::Reduction { ecn: true, .. } => counters.ecn_reductions += 1,
            _ => {}
        }
        self.events.push_back(Event { at, kind });
    }

    /// Records the RTT sample of an acknowledgement.
    pub(super) fn note_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    pub(crate) const fn counters(&self) -> SenderCounters {
        self.counters
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event that has not been returned yet.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// RTT sample of the last acknowledgement that gave one; returned once.
    pub(crate) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt.take()
    }
}
