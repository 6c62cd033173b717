//! SACK compression: of the acknowledgements that only report data above a gap, few are sent.

use airpath_base::{Duration, Instant};

use crate::SackCompressionConfig;

/// Decides which acknowledgements of out-of-order data are sent at once.
///
/// This is what Linux does since 4.18 (E. Dumazet, "tcp: add SACK compression", 2018; ip-sysctl:
/// `tcp_comp_sack_delay_ns`): a sender that relies on three duplicates still gets them.
#[derive(Debug)]
pub(super) struct Compression {
    config: SackCompressionConfig,
    /// RCV.NXT that `sent` refers to.
    nxt: u64,
    /// Acknowledgements sent at once since RCV.NXT moved.
    sent: u32,
    /// Acknowledgements held back since the last one was sent.
    kept: u32,
    /// When an acknowledgement is sent for those held back.
    until: Option<Instant>,
}

/// Number of duplicates that make a sender retransmit (RFC 5681 3.2).
const DUPLICATES: u32 = 3;

/// The fraction of a round trip that an acknowledgement waits: 5 %.
const SHARE: u64 = 20;

impl Compression {
    pub(super) const fn new(config: SackCompressionConfig) -> Self {
        Self { config, nxt: 0, sent: 0, kept: 0, until: None }
    }

    /// Data arrived above a gap at `nxt`: returns whether it is acknowledged at once. `rtt` is the
    /// shortest known. `crowded`: there are so many ranges that one of them could be missing from
    /// the options of the next acknowledgements, each of which reports three; then what was held
    /// back is sent, as in Linux since 5.8.
    pub(super) fn admits(
        &mut self,
        now: Instant,
        nxt: u64,
        rtt: Option<Duration>,
        crowded: bool,
    ) -> bool {
        let SackCompressionConfig { delay, acks, slack } = self.config;
        if delay == Duration::ZERO || self.kept >= acks {
            return true;
        }
        if self.counts(nxt) {
            return true;
        }
        let Some(rtt) = rtt.filter(|_| !crowded || self.kept == 0) else { return true };
        self.kept += 1;
        self.until.get_or_insert(now + delay.min(rtt / SHARE) + slack);
        false
    }

    /// An acknowledgement of `nxt` is due while a gap remains: returns whether it counts as one of
    /// those sent at once.
    pub(super) const fn counts(&mut self, nxt: u64) -> bool {
        if self.nxt != nxt {
            (self.nxt, self.sent) = (nxt, 0);
        }
        let counts = self.sent < DUPLICATES;
        self.sent += counts as u32;
        counts
    }

    /// When an acknowledgement is due for those that were held back.
    pub(super) const fn timer(&self) -> Option<Instant> {
        self.until
    }

    /// An acknowledgement is sent.
    pub(super) const fn on_sent(&mut self) {
        (self.kept, self.until) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: SackCompressionConfig = SackCompressionConfig {
        delay: Duration::from_millis(1),
        acks: 44,
        slack: Duration::from_micros(100),
    };
    const RTT: Option<Duration> = Some(Duration::from_millis(40));

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn three_go_out_and_then_one_in_a_millisecond() {
        let mut compression = Compression::new(LINUX);
        assert!((0..3).all(|n| compression.admits(at(n), 5, RTT, false)));
        assert!((3..9).all(|n| !compression.admits(at(n), 5, RTT, false)));
        assert_eq!(compression.timer(), Some(at(1103)), "from the first that was kept back");
        compression.on_sent();
        assert_eq!(compression.timer(), None);
        assert!(!compression.admits(at(1200), 5, RTT, false));
        assert!(compression.admits(at(1300), 6, RTT, false), "the gap has another place");
    }

    #[test]
    fn it_waits_a_twentieth_of_a_round_trip_at_most() {
        let mut compression = Compression::new(LINUX);
        let rtt = Some(Duration::from_millis(2));
        let _ = (0..4).map(|_| compression.admits(at(0), 5, rtt, false)).count();
        assert_eq!(compression.timer(), Some(at(200)));
    }

    #[test]
    fn no_more_than_the_limit_is_kept_back() {
        let mut compression = Compression::new(LINUX);
        let sent: Vec<bool> = (0..48).map(|_| compression.admits(at(0), 5, RTT, false)).collect();
        assert_eq!(sent.iter().position(|&sent| !sent), Some(3));
        assert_eq!(sent.iter().filter(|&&sent| !sent).count(), 44);
        assert!(sent[47]);
    }

    #[test]
    fn what_was_kept_back_goes_out_before_it_is_forgotten() {
        let mut compression = Compression::new(LINUX);
        let _ = (0..3).map(|_| compression.admits(at(0), 5, RTT, true)).count();
        assert!(!compression.admits(at(1), 5, RTT, true), "nothing was kept back");
        assert!(compression.admits(at(2), 5, RTT, true));
        compression.on_sent();
        assert!(!compression.admits(at(3), 5, RTT, false));
        assert!(!compression.admits(at(4), 5, RTT, false));
        assert!(compression.admits(at(5), 5, RTT, true));
    }

    #[test]
    fn without_a_delay_or_a_round_trip_nothing_is_kept_back() {
        let mut never = Compression::new(SackCompressionConfig { delay: Duration::ZERO, ..LINUX });
        assert!((0..9).all(|n| never.admits(at(n), 5, RTT, false)));
        let mut unknown = Compression::new(LINUX);
        assert!((0..9).all(|n| unknown.admits(at(n), 5, None, false)));
    }
}
