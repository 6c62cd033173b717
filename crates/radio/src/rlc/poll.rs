//! Polling (TS 38.322 5.3.3, TS 36.322 5.2.2).

use airpath_base::{Duration, Instant};

use super::config::ArqConfig;

/// Decides when an AM transmitter requests a STATUS.
#[derive(Debug)]
pub(crate) struct Poll {
    t_poll_retransmit: Duration,
    poll_pdu: Option<u32>,
    poll_bytes: Option<u64>,
    /// PDU_WITHOUT_POLL.
    pdus: u32,
    /// BYTE_WITHOUT_POLL.
    bytes: u64,
    /// POLL_SN.
    sn: Option<u64>,
    /// End of t-PollRetransmit.
    timer: Option<Instant>,
    /// t-PollRetransmit expired: the next PDU polls.
    forced: bool,
}

impl Poll {
    pub(crate) fn new(arq: &ArqConfig) -> Self {
        Self {
            t_poll_retransmit: arq.t_poll_retransmit.max(Duration::from_nanos(1)),
            poll_pdu: arq.poll_pdu,
            poll_bytes: arq.poll_bytes,
            pdus: 0,
            bytes: 0,
            sn: None,
            timer: None,
            forced: false,
        }
    }

    /// Counts a PDU with `bytes` never sent before; returns true if pollPDU or pollByte is reached.
    pub(crate) fn counts_new(&mut self, bytes: u32) -> bool {
        self.pdus += 1;
        self.bytes += u64::from(bytes);
        self.poll_pdu.is_some_and(|limit| self.pdus >= limit)
            || self.poll_bytes.is_some_and(|limit| self.bytes >= limit)
    }

    /// Like [`counts_new`](Self::counts_new), but counts nothing and returns false if one of them
    /// would be reached.
    #[inline]
    pub(crate) fn counts_before_limit(&mut self, bytes: u32) -> bool {
        let (pdus, bytes) = (self.pdus + 1, self.bytes + u64::from(bytes));
        let reached = self.poll_pdu.is_some_and(|limit| pdus >= limit)
            || self.poll_bytes.is_some_and(|limit| bytes >= limit);
        if !reached {
            (self.pdus, self.bytes) = (pdus, bytes);
        }
        !reached
    }

    pub(crate) const fn is_forced(&self) -> bool {
        self.forced
    }

    /// A PDU with a poll is sent; `highest` is the highest SN sent.
    pub(crate) fn sent(&mut self, now: Instant, highest: u64) {
        (self.pdus, self.bytes) = (0, 0);
        self.forced = false;
        self.wait(now, highest);
    }

    /// Starts or restarts t-PollRetransmit, until a STATUS covers `highest`.
    pub(crate) fn wait(&mut self, now: Instant, highest: u64) {
        self.sn = Some(highest);
        self.timer = Some(now + self.t_poll_retransmit);
    }

    /// A STATUS covers everything below `sn` (5.3.3.3).
    pub(crate) fn on_status_below(&mut self, sn: u64) {
        if self.sn.is_some_and(|poll_sn| poll_sn < sn) {
            self.timer = None;
            self.sn = None;
        }
    }

    pub(crate) const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// t-PollRetransmit expired by `at`.
    pub(crate) fn expired(&mut self, at: Instant) -> bool {
        let expired = self.timer.is_some_and(|due| due <= at);
        if expired {
            self.timer = None;
            self.forced = true;
        }
        expired
    }

    pub(crate) fn reset(&mut self) {
        (self.pdus, self.bytes) = (0, 0);
        (self.sn, self.timer, self.forced) = (None, None, false);
    }
}
