//! The receiving half of explicit congestion notification.

use airpath_base::{Ecn, Flags, Segment};

/// Echoes congestion until the sender has reacted (RFC 3168 6.1.3).
#[derive(Debug)]
pub(super) struct Echo {
    enabled: bool,
    echoing: bool,
    pub(super) counters: CeCounters,
}

/// Data that arrived with the CE mark: the counters of accurate ECN (RFC 9768 3.2.1), starting at
/// 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CeCounters {
    /// Packets that arrived marked (r.cep).
    pub packets: u64,
    /// Payload bytes of these packets.
    pub bytes: u64,
}

/// How a segment changed the echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    None,
    Began,
    Ended,
}

impl Echo {
    pub(super) fn new() -> Self {
        Self { enabled: false, echoing: false, counters: CeCounters::default() }
    }

    pub(super) fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Counts an arriving segment of any kind.
    #[inline]
    pub(super) fn count(&mut self, segment: &Segment, ecn: Ecn) {
        if ecn == Ecn::Ce {
            self.counters.packets += 1;
            self.counters.bytes += u64::from(segment.len);
        }
    }

    /// A segment with new data arrived: duplicates do not count (6.1.5).
    #[inline]
    pub(super) fn on_segment(&mut self, segment: &Segment, ecn: Ecn) -> Change {
        if !self.enabled {
            return Change::None;
        }
        let before = self.echoing;
        // 6.1.3: a marked packet with CWR starts a new echo.
        self.echoing = ecn == Ecn::Ce || before && !segment.flags.has(Flags::CWR);
        match (before, self.echoing) {
            (false, true) => Change::Began,
            (true, false) => Change::Ended,
            _ => Change::None,
        }
    }

    /// Flags of an outgoing acknowledgement.
    #[inline]
    pub(super) fn flags(&self) -> Flags {
        if self.echoing { Flags::ACK.with(Flags::ECE) } else { Flags::ACK }
    }
}
