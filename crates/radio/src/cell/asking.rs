//! What the base station knows of what a UE has to send, where packets are accounted for.

/// How far a UE is on its way to grants for what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Asking {
    /// The base station knows of nothing.
    #[default]
    Not,
    /// It saw a scheduling request.
    Requested,
    /// A block had a report of more than was granted.
    Reported,
    /// It knows of more than it has granted.
    Known,
}
