//! What the parts of a network could have carried.

use airpath_base::{Direction, Duration, Site};

/// What one link or radio could have carried since the start of the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Capacity {
    /// The link, or the direction of a UE's radio.
    pub place: Site,
    /// The direction in which it carries.
    pub direction: Direction,
    /// The UE whose radio it is, by its position in the scenario; `None`: it is shared by all.
    pub ue: Option<usize>,
    /// Bytes at its rate, or at the radio's MCS; a shaper's tokens count when they are used, or
    /// lost.
    pub bytes: f64,
    /// How long packets waited there; `None` for a link, which then carries at its rate.
    pub busy: Option<Duration>,
}
