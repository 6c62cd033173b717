//! PDCP's transmitting side: RLC takes SDUs from it, first those to be retransmitted, then those in
//! the buffer.

use std::collections::VecDeque;

use airpath_base::{DropReason, Instant};

use super::config::{PdcpConfig, StatusReport};
use crate::buffer::{Buffer, BufferConfig, Fate, Sdus};

/// Provides SDUs to RLC.
#[derive(Debug)]
pub(crate) struct PdcpTransmitter {
    pub(crate) buffer: Buffer,
    /// SDUs from an RLC entity that was re-established, by COUNT.
    recovered: VecDeque<u64>,
    recovered_bytes: u64,
    header_bytes: u32,
    status_report: StatusReport,
}

impl PdcpTransmitter {
    pub(crate) fn new(buffer: &BufferConfig, pdcp: &PdcpConfig) -> Self {
        Self {
            buffer: Buffer::new(buffer, pdcp.discard),
            recovered: VecDeque::new(),
            recovered_bytes: 0,
            header_bytes: pdcp.header_bytes,
            status_report: pdcp.status_report,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.recovered.is_empty() && self.buffer.load().packets == 0
    }

    /// Bytes of PDCP data PDUs that wait (TS 38.323 5.6, TS 36.323 4.5).
    pub(crate) fn bytes(&self) -> u64 {
        let load = self.buffer.load();
        load.bytes + load.packets * u64::from(self.header_bytes) + self.recovered_bytes
    }

    /// The next SDU to transmit and its size.
    ///
    /// It gets its COUNT now: an SDU dropped earlier leaves no gap (the note in TS 38.323 5.3
    /// leaves this to the implementation).
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, sdus: &mut Sdus) -> Option<(u64, u32)> {
        if let Some(count) = self.recovered.pop_front() {
            let size = sdus.size(count).expect("an unconfirmed SDU is known");
            self.recovered_bytes -= u64::from(size);
            return Some((count, size));
        }
        self.buffer.begin(now, self.header_bytes, sdus)
    }

    /// Does what [`next`](Self::next) does for several SDUs, as long as `takes` accepts the next
    /// one by COUNT and size, others wait behind it, and nothing will happen to it before.
    #[inline]
    pub(crate) fn next_run(&mut self, sdus: &mut Sdus, takes: impl FnMut(u64, u32) -> bool) {
        if self.recovered.is_empty() {
            self.buffer.begin_run(self.header_bytes, sdus, takes);
        }
    }

    /// The COUNT that [`PdcpTransmitter::next`] would return.
    pub(crate) fn next_count(&self, sdus: &Sdus) -> u64 {
        self.recovered.front().copied().unwrap_or_else(|| sdus.next_count())
    }

    /// PDCP re-establishment or data recovery of an AM bearer (TS 38.323 5.1.2, 5.5, TS 36.323
    /// 5.2.1.1): everything from the first unconfirmed SDU on is retransmitted, in order; with a
    /// status report, except what the receiver has.
    pub(crate) fn recover(&mut self, sdus: &mut Sdus) {
        self.forget_recovered();
        // The ring begins with the first unconfirmed SDU.
        for count in sdus.base()..sdus.next_count() {
            let spared = match sdus.fate(count) {
                Fate::Lost => true,
                Fate::Held | Fate::Delivered => self.status_report == StatusReport::Required,
                Fate::Awaited => false,
            };
            if spared {
                sdus.confirm(count);
            } else {
                sdus.unconfirm(count);
                self.recovered.push_back(count);
                self.recovered_bytes += u64::from(sdus.size(count).unwrap_or(0));
            }
        }
    }

    /// Nothing is forwarded: everything that waits or was in transit is lost.
    pub(crate) fn abandon(&mut self, now: Instant, sdus: &mut Sdus) {
        self.forget_recovered();
        self.buffer.clear(now, DropReason::Handover, sdus);
        self.lose_unconfirmed(now, sdus);
    }

    /// What was in transit is lost.
    pub(crate) fn lose_unconfirmed(&mut self, now: Instant, sdus: &mut Sdus) {
        for count in sdus.base()..sdus.next_count() {
            if sdus.fate(count) == Fate::Awaited {
                sdus.lose(now, count, DropReason::Handover);
            }
            sdus.confirm(count);
        }
    }

    fn forget_recovered(&mut self) {
        self.recovered.clear();
        self.recovered_bytes = 0;
    }
}
