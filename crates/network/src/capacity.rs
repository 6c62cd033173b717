//! What the places of a network could have carried.

use airpath_base::{Direction, Duration, Site};

/// What one place could have carried since the start of the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Capacity {
    /// A link, or a direction of a UE's radio.
    pub place: Site,
    /// Which way.
    pub direction: Direction,
    /// Whose radio it is, by its place in the scenario; `None`: everybody's.
    pub ue: Option<usize>,
    /// At its rate, or at the radio's MCS; a shaper's tokens count when they are used, or lost.
    pub bytes: f64,
    /// How long something waited there; `None` for a link, which carries at its rate then.
    pub busy: Option<Duration>,
}
