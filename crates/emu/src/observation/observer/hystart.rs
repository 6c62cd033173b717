//! HyStart of a sender, in the form of the rows of its acknowledgements.

use super::observed::{Observation, State, What};

/// Smallest cwnd in segments at which HyStart makes its tests.
const LOW_WINDOW: u32 = 16;
/// RTT samples that determine a round's RTT.
pub(super) const SAMPLES: u32 = 8;

/// HyStart's state after an acknowledgement; times in microseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Hystart {
    pub(super) round_min_rtt_us: Option<u32>,
    pub(super) threshold_us: Option<u32>,
    pub(super) samples: Option<u32>,
    pub(super) ack_train_us: Option<u32>,
    pub(super) ack_train_limit_us: Option<u32>,
    pub(super) css: Option<bool>,
}

/// Follows a sender as long as HyStart may end its slow start.
#[derive(Debug, Default)]
pub(super) struct Follower {
    was_active: bool,
}

impl Follower {
    /// The state for a row: until slow start ends, including the acknowledgement that ends it.
    pub(super) fn row(&mut self, seen: &Observation) -> Option<Hystart> {
        let (hystart, active) = hystart(seen)?;
        let was_active = std::mem::replace(&mut self.was_active, active);
        (active || was_active).then_some(hystart)
    }
}

/// The state of HyStart, and whether it may still end slow start.
fn hystart(seen: &Observation) -> Option<(Hystart, bool)> {
    let (found, State { cwnd, ssthresh, .. }) = (&seen.found, seen.state);
    let round = found.round?;
    let nothing = found.what == What::Nothing;
    let Some(css) = round.css else {
        let large = cwnd >= LOW_WINDOW;
        let row = Hystart {
            round_min_rtt_us: found.round_rtt_us.filter(|_| large),
            threshold_us: found.base_rtt_us.map(highest),
            samples: large.then_some(round.samples),
            ack_train_us: round.ack_train_us.filter(|_| large),
            ack_train_limit_us: round.ack_train_limit_us,
            css: None,
        };
        return Some((row, nothing && ssthresh.is_none_or(|ssthresh| cwnd < ssthresh)));
    };
    // RFC 9406 4.3: later slow starts are standard.
    let active = nothing && ssthresh.is_none();
    let threshold = |base| if css { base } else { highest(base) };
    let row = Hystart {
        round_min_rtt_us: found.round_rtt_us.filter(|_| active),
        threshold_us: found.base_rtt_us.filter(|_| active).map(threshold),
        samples: active.then_some(round.samples),
        css: Some(css),
        ..Hystart::default()
    };
    Some((row, active))
}

/// Highest RTT of a round that does not indicate a queue: the smallest one plus an eighth, at least
/// 4 and at most 16 ms (Ha and Rhee 2011, RFC 9406 4.2).
pub(super) fn highest(base_rtt_us: u32) -> u32 {
    base_rtt_us.saturating_add((base_rtt_us / 8).clamp(4_000, 16_000))
}
