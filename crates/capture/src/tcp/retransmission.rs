//! Why a segment was retransmitted, and whether it was necessary.

use std::collections::VecDeque;

use airpath_base::Duration;

use crate::report::Retransmissions;

/// Most retransmissions that may still prove spurious; a further one displaces the oldest.
const MOST_WAITING: usize = 1024;

/// The shortest time-out, and the shortest silence that can be one: Linux's TCP_RTO_MIN, less the
/// amount by which a timer may be early.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(190);

/// Duplicate acknowledgements that indicate a loss (RFC 5681 3.2).
pub(super) const DUPLICATE_ACKS: u32 = 3;

/// What is known when a segment is retransmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The end of all data that was sent.
    pub(super) highest: u64,
    pub(super) acked: u64,
    /// The highest byte that was selectively acknowledged.
    pub(super) sacked: u64,
    pub(super) duplicate_acks: u32,
    /// The time since this direction's last segment and since its last acknowledgement, whichever
    /// is shorter.
    pub(super) silence: Duration,
    /// Smoothed round-trip time between the ends, if it is known.
    pub(super) srtt: Option<Duration>,
    pub(super) syn: bool,
    pub(super) payload: u64,
    /// How many segments this packet holds.
    pub(super) segments: u64,
    pub(super) timestamp: Option<u32>,
    /// The original was not captured.
    pub(super) original_unseen: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Fast,
    TailLossProbe,
    Timeout,
    Handshake,
    Unclear,
}

/// A segment that was retransmitted.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u64,
    to: u64,
    timestamp: Option<u32>,
    spurious: bool,
    /// No acknowledgement has covered it yet.
    outstanding: bool,
}

#[derive(Clone, Default, Debug)]
pub(super) struct Recovery {
    counts: Retransmissions,
    /// Retransmissions below these belong to the same recovery, or to the same time-out.
    fast_until: u64,
    timeout_until: u64,
    /// The end of the segment that was probed.
    probed: u64,
    waiting: VecDeque<Sent>,
}

impl Recovery {
    pub(super) fn add(&mut self, circumstances: &Circumstances) {
        let kind = self.kind(circumstances);
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.bytes += circumstances.payload;
        counts.segments += circumstances.segments;
        counts.original_unseen += u64::from(circumstances.original_unseen);
        *match kind {
            Kind::Fast => &mut counts.fast,
            Kind::TailLossProbe => &mut counts.tail_loss_probe,
            Kind::Timeout => &mut counts.timeout,
            Kind::Handshake => &mut counts.handshake,
            Kind::Unclear => &mut counts.unclear,
        } += 1;
        let is_acked = circumstances.to <= circumstances.acked;
        if is_acked {
            counts.spurious += 1;
            counts.spurious_by_ack += 1;
        }
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Sent {
            from: circumstances.from,
            to: circumstances.to,
            timestamp: circumstances.timestamp,
            spurious: is_acked,
            outstanding: !is_acked,
        });
    }

    fn kind(&mut self, at: &Circumstances) -> Kind {
        if at.syn {
            return Kind::Handshake;
        }
        let rtt = at.srtt.unwrap_or_default();
        let is_silent = at.silence >= SHORTEST_TIMEOUT && at.silence >= rtt;
        // RFC 8985 7.2: two round trips, and more if only one segment is outstanding.
        let is_tail = at.to == at.highest && at.sacked < at.to && at.to > at.acked;
        if is_tail
            && self.probed < at.highest
            && at.silence * 2 >= rtt * 3
            && at.silence > Duration::ZERO
            && self.timeout_until < at.to
            && self.fast_until < at.to
        {
            self.probed = at.highest;
            return Kind::TailLossProbe;
        }
        if is_silent {
            (self.timeout_until, self.fast_until) = (at.highest, 0);
            return Kind::Timeout;
        }
        if at.from < self.timeout_until {
            return Kind::Timeout;
        }
        let has_evidence = at.sacked > at.to || at.duplicate_acks >= DUPLICATE_ACKS;
        if has_evidence || at.from < self.fast_until {
            self.fast_until = self.fast_until.max(at.highest);
            return Kind::Fast;
        }
        Kind::Unclear
    }

    /// Handles an acknowledgement that advanced from `before` to `acked`; `echo` is the timestamp
    /// that it echoes.
    #[inline]
    pub(super) fn on_acked(&mut self, before: u64, acked: u64, echo: Option<u32>) {
        if !self.waiting.is_empty() {
            self.judge_by_echo(before, acked, echo);
        }
    }

    /// RFC 3522 3.2: the retransmission was spurious if the first acknowledgement of the segment
    /// echoes a timestamp from before it. The echoed timestamp is that of the segment at the
    /// receiver's left edge (RFC 7323 4.3), and says nothing about further segments that the
    /// acknowledgement covers.
    fn judge_by_echo(&mut self, before: u64, acked: u64, echo: Option<u32>) {
        for sent in &mut self.waiting {
            if !sent.outstanding || sent.to > acked {
                continue;
            }
            sent.outstanding = false;
            let (Some(echo), Some(timestamp)) = (echo, sent.timestamp) else { continue };
            let is_at_edge = sent.from <= before && before < sent.to;
            if is_at_edge && echo != 0 && (echo.wrapping_sub(timestamp) as i32) < 0 {
                self.counts.spurious_by_timestamp += 1;
                self.counts.spurious += u64::from(!sent.spurious);
                sent.spurious = true;
            }
        }
    }

    /// The receiver got `[from, to)` twice (RFC 2883 4).
    #[cold]
    pub(super) fn on_duplicate(&mut self, from: u64, to: u64) {
        let sent = self.waiting.iter().rposition(|sent| sent.from < to && from < sent.to);
        let Some(sent) = sent.and_then(|at| self.waiting.remove(at)) else { return };
        self.counts.spurious_by_dsack += 1;
        self.counts.spurious += u64::from(!sent.spurious);
    }

    /// The byte up to which a recovery or a time-out lasts.
    #[inline]
    pub(super) fn until(&self) -> u64 {
        self.fast_until.max(self.timeout_until)
    }

    pub(super) fn counts(&self) -> Retransmissions {
        self.counts
    }
}
