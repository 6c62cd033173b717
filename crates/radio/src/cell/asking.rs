//! What the base station knows about a UE's data, if packets are accounted for.

/// How far a UE has got towards grants for its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Asking {
    /// The base station knows of no data.
    #[default]
    Not,
    /// The base station received a scheduling request.
    Requested,
    /// A block contained a report of more data than was granted.
    Reported,
    /// The base station knows of more data than it has granted.
    Known,
}
