//! The peer's receive window, and the probing of a closed window.

use airpath_base::Segment;

/// The window that the peer advertised, in bytes (RFC 9293 3.3.1).
#[derive(Debug, Default)]
pub(super) struct PeerWindow {
    /// SND.WND
    wnd: u64,
    /// The largest window so far: Max(SND.WND).
    max: u64,
    /// Sequence number of the segment that last updated the window (SND.WL1).
    wl1: u64,
    probing: Probing,
}

/// Probing of a closed window (RFC 9293 3.8.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Probing {
    /// The window allows data: no probing.
    #[default]
    No,
    /// The retransmission timer runs as the persist timer.
    Persisting,
    /// The persist timer expired: a probe is sent next.
    ProbeDue,
    /// The window opened again: what the closed window refused is retransmitted next, otherwise it
    /// would leave a gap.
    RepeatDue,
}

impl PeerWindow {
    #[inline]
    pub(super) fn set(&mut self, wnd: u64) {
        self.wnd = wnd;
        self.max = self.max.max(wnd);
    }

    /// Updates the window from a segment (RFC 9293 3.10.7.4, SND.WL1 and SND.WL2), but not from an older
    /// segment. Of two segments with the same numbers, the later one has the larger window, because a
    /// receiver does not shrink the window (3.8.6).
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, una: u64, wnd: u64) {
        let same = segment.seq == self.wl1;
        let newer = segment.ack > una || segment.seq > self.wl1;
        if newer || (same && wnd > self.wnd) {
            self.wl1 = segment.seq;
            self.set(wnd);
        }
    }

    /// SND.WND
    pub(super) const fn wnd(&self) -> u64 {
        self.wnd
    }

    /// The largest window so far; 0: before the handshake.
    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// The usable window (RFC 9293 3.8.6.2.1).
    pub(super) const fn usable(&self, una: u64, nxt: u64) -> u64 {
        (una + self.wnd).saturating_sub(nxt)
    }

    /// The window in whole segments.
    pub(super) fn segments(&self, mss: u32) -> u32 {
        u32::try_from(self.wnd / u64::from(mss)).unwrap_or(u32::MAX)
    }

    pub(super) const fn is_persisting(&self) -> bool {
        matches!(self.probing, Probing::Persisting | Probing::ProbeDue)
    }

    /// Whether a probe, or the retransmission after the last probe, is sent next.
    pub(super) const fn is_probe_due(&self) -> bool {
        matches!(self.probing, Probing::ProbeDue | Probing::RepeatDue)
    }

    /// The window is closed: the persist timer starts.
    pub(super) const fn persist(&mut self) {
        self.probing = Probing::Persisting;
    }

    /// The persist timer expired.
    pub(super) const fn on_persist_timer(&mut self) {
        self.probing = Probing::ProbeDue;
    }

    /// Records that the segment that was due is sent. Returns whether it is a probe.
    pub(super) fn take_probe(&mut self) -> bool {
        debug_assert!(self.is_probe_due(), "{self:?}");
        let probes = self.probing == Probing::ProbeDue;
        self.probing = if probes { Probing::Persisting } else { Probing::No };
        probes
    }

    /// Stops probing: the window has grown, or the peer accepted a probe. `repeats`: the segment
    /// that the closed window refused is retransmitted.
    pub(super) const fn stop_probing(&mut self, repeats: bool) {
        self.probing = if repeats { Probing::RepeatDue } else { Probing::No };
    }
}
