//! The latency spin bit (RFC 9000 17.4): the client inverts what it receives and the server repeats
//! it, so that the bit changes once per round trip wherever it is observed.

use airpath_base::{Duration, Instant, SparseHistogram};

use super::report::SpinReport;
use crate::distribution::Distribution;

/// Fewest packets with a short header in each direction for a statement about the bit.
const LEAST_PACKETS: u64 = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Spin {
    ends: [Bit; 2],
    rtt: SparseHistogram,
    /// Time from a change at the other end to the change at this one.
    sides: [SparseHistogram; 2],
}

/// The spin bit of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Bit {
    packets: u64,
    value: Option<bool>,
    changes: u64,
    /// When the bit last changed, and how long after the change before.
    changed: Option<Instant>,
    period: Option<Duration>,
    /// The other end's change that was last answered.
    answered: Option<Instant>,
}

impl Spin {
    pub(super) fn add(&mut self, now: Instant, from: usize, value: bool) {
        let other = self.ends[1 - from];
        let bit = &mut self.ends[from];
        bit.packets += 1;
        let Some(before) = bit.value.replace(value) else { return };
        if before == value {
            return;
        }
        let period = bit.changed.map(|changed| now.saturating_since(changed));
        // A packet that the change overtook causes two false changes (RFC 9312 3.8.2.2): a change
        // within an eighth of a period is ignored.
        if let (Some(last), Some(period)) = (bit.period, period)
            && period < last / 8
        {
            bit.value = Some(before);
            return;
        }
        bit.changes += 1;
        // The first change ends an interval that did not begin with a change.
        if let Some(period) = period {
            bit.period = Some(period);
            self.rtt.record(period);
        }
        bit.changed = Some(now);
        if let Some(received) = other.changed
            && bit.answered.replace(received) != Some(received)
        {
            self.sides[from].record(now.saturating_since(received));
        }
    }

    pub(super) fn report(&self, client: usize) -> SpinReport {
        let state = self.state();
        let shown = |samples: &SparseHistogram| {
            (state == "spins").then(|| Distribution::of(samples)).flatten()
        };
        SpinReport {
            state,
            rtt_ms: shown(&self.rtt),
            client_side_ms: shown(&self.sides[client]),
            server_side_ms: shown(&self.sides[1 - client]),
        }
    }

    fn state(&self) -> &'static str {
        let seen: Vec<_> = self.ends.iter().filter(|bit| bit.packets >= LEAST_PACKETS).collect();
        if seen.is_empty() {
            "unseen"
        } else if seen.iter().any(|bit| bit.changes == 0) {
            "constant"
        } else if seen.iter().any(|bit| bit.changes * 4 > bit.packets) {
            "random"
        } else {
            "spins"
        }
    }
}
