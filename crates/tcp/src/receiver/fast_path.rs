//! Fast paths of a receiver: what the rules come to where a condition holds that is cheap to check.
//! Without them each result is the same.

use airpath_base::{Ecn, Flags, Instant, Segment, fast_paths};

use super::{Receiver, Waiting};
use crate::RttEstimator;

/// The part of an acknowledgement that the next one repeats, as long as only acknowledgements are sent;
/// no timer runs meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated {
    /// The window field.
    pub(crate) window: u16,
    /// Flags that echo congestion.
    pub(crate) flags: Flags,
}

impl Receiver {
    /// Whether the fast paths can be taken in this connection; `echoes`: it echoes congestion.
    pub(super) fn choose_fast_paths(&mut self, echoes: bool) {
        let read = self.delay.hands_up_alone() && self.window.is_read_at_once();
        self.alone = fast_paths() && read && !echoes;
        self.plain = self.alone && self.delay.is_plain() && self.window.is_fixed();
    }

    /// Whether the segment is the next full-sized one of a stream without a gap, and nothing else.
    #[inline(always)]
    pub(super) fn expects(&self, segment: &Segment, ecn: Ecn) -> bool {
        let bare = !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::FIN);
        bare && segment.seq == self.reassembly.nxt
            && segment.len == self.full
            && segment.end() <= self.window.edge()
            && ecn != Ecn::Ce
            && self.reassembly.is_whole()
            && self.fin_at.is_none()
    }

    /// Processes it, when something is learned from it.
    #[inline(never)]
    fn learn_from_expected(&mut self, now: Instant, segment: &Segment, rtt: &RttEstimator) {
        self.delay.note_arrival(now, self.room(), rtt);
        if self.window.read_next(now, segment) {
            self.delay.quicken_once();
        }
        self.delay.decide(now, Waiting { unread: false, ..self.waiting() }, rtt);
    }

    /// Processes an [expected](Self::expects) segment.
    #[inline(always)]
    pub(super) fn on_expected(&mut self, now: Instant, segment: &Segment, rtt: &RttEstimator) {
        self.note_timestamp(now, segment);
        self.reassembly.nxt = segment.end();
        if self.plain {
            self.window.read_at_once(segment.end());
            self.delay.decide(now, Waiting { unread: false, ..self.waiting() }, rtt);
        } else {
            self.learn_from_expected(now, segment, rtt);
        }
    }
}
