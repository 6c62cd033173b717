//! Why a run has no results.

/// Why a run has no results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// `progress` asked for the run to stop.
    ByCaller,
    /// A congestion control from outside cannot go on, for this reason.
    ByCongestionControl(String),
}
