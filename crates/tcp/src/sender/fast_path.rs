//! Fast paths of a sender: what the rules come to where a condition holds that is cheap to check.
//! Without them each result is the same.

use airpath_base::{Flags, Instant, Segment, fast_paths};

use super::Sender;
use super::ack::Growth;
use super::recovery::Phase;
use super::timers::Timer;

/// What is known of what a sender does next, until anything but sending happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ahead {
    /// Nothing was ever offered: nothing is sent, nothing is outstanding, no timer runs.
    Silent,
    /// So many full segments of new data may follow, one after another; then cwnd is full.
    Run(u32),
}

impl Sender {
    /// The run that fills cwnd after the next segment, if the peer's window and the send buffer (bytes after
    /// SND.NXT) allow it. With nothing in flight cwnd may change (RFC 5681 4.1), and a pipe of 0 may stay
    /// 0: more duplicate acknowledgements than segments.
    #[inline(always)]
    pub(super) fn run_after_next(
        &self,
        (cwnd, pipe): (u32, u32),
        window: u64,
        unsent: u64,
    ) -> Option<Ahead> {
        let bytes = u64::from(cwnd - pipe) * u64::from(self.mss);
        let allowed = pipe > 0 && window >= bytes && unsent > bytes;
        allowed.then_some(Ahead::Run(cwnd - pipe - 1))
    }

    /// Whether a run of `left` segments is what the rules allow.
    pub(crate) fn allows_run(&self, left: u32) -> bool {
        let bytes = u64::from(left) * u64::from(self.mss);
        self.scoreboard.pipe() + left == self.congestion.segments()
            && self.stream.unsent() > bytes
            && self.usable_window() >= bytes
    }

    /// Whether a [silent](Ahead::Silent) sender learns only of the peer's window: the peer's data
    /// acknowledges nothing, so there is no RTT to measure, no loss to find and nothing to grow by.
    #[inline]
    pub(crate) fn is_news_of_window_only(&self, segment: &Segment) -> bool {
        debug_assert!(!self.bursts.is_deferred(), "nothing is sent");
        // Even if nothing was ever sent, a peer may report congestion.
        let quiet = self.recovery.is_settled() && !self.congestion.is_model_based();
        quiet
            && segment.ack == self.stream.una()
            && segment.len > 0
            && segment.sack.is_empty()
            && !segment.flags.has(Flags::ECE)
    }

    /// Whether everything outstanding was sent once, none of it was SACKed or is lost, and no probe
    /// is outstanding.
    #[inline]
    pub(super) fn is_undisturbed(&self) -> bool {
        fast_paths()
            && self.recovery.is_open()
            && !self.congestion.is_model_based()
            && !self.peer.is_persisting()
            && self.tail_probe.is_quiet()
            && self.scoreboard.is_undisturbed(self.stream.una())
    }

    /// Processes an acknowledgement of new data that carries nothing else, while the sender is
    /// [undisturbed](Self::is_undisturbed).
    #[inline]
    pub(super) fn on_progress(&mut self, now: Instant, segment: &Segment, peer_window: u64) {
        self.take_window(segment, peer_window);
        let acked = self.scoreboard.acknowledge_undisturbed(segment.ack, now);
        let newest = acked.last_sent.map(|sent| now - sent);
        let newest = self.measure(now, segment, &acked, newest);
        self.advance(now, segment.ack);
        self.timers.stop(Timer::Reordering);
        self.follow_recovery(now, segment, &acked);
        let (phase, newly_lost, ecn_echo, rate) = (Phase::Open, 0, false, None);
        self.grow(now, &Growth { phase, acked, newest, newly_lost, ecn_echo, rate });
        self.end_ack(now, acked.segments > 0);
    }
}
