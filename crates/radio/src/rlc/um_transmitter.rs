//! The transmitting side of an UM entity.

use airpath_base::Instant;

use super::block::{Pdu, TransportBlock};
use super::config::LteUmSn;
use super::cutter::Cutter;
use super::framing::{LtePacking, NrFraming, Subheaders, lte_cost, lte_largest_pdu, lte_um_fixed};
use crate::buffer::Sdus;
use crate::pdcp::PdcpTransmitter;

/// The transmitting side of TS 38.322 5.2.2.1, TS 36.322 5.1.2.1.
#[derive(Debug)]
pub(crate) struct UmTransmitter {
    format: UmFormat,
    pub(crate) subheaders: Subheaders,
    cutter: Cutter,
    /// TX_Next (VT(US)).
    next: u64,
}

/// The format of PDUs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UmFormat {
    Nr(NrFraming),
    Lte(LteUmSn),
}

impl UmTransmitter {
    pub(crate) fn new(format: UmFormat) -> Self {
        Self { format, subheaders: Subheaders::default(), cutter: Cutter::default(), next: 0 }
    }

    pub(crate) fn bytes(&self, source: &PdcpTransmitter) -> u64 {
        self.cutter.bytes(source)
    }

    /// COUNT of the SDU that is partly sent.
    pub(crate) fn open_count(&self) -> Option<u64> {
        self.cutter.open_count()
    }

    pub(crate) fn is_ready(&self, source: &PdcpTransmitter) -> bool {
        !self.cutter.is_empty(source)
    }

    /// Fills `room` bytes of the block; returns how many are left.
    pub(crate) fn fill(
        &mut self,
        now: Instant,
        mut room: u32,
        block: &mut TransportBlock,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
    ) -> u32 {
        loop {
            let cut = match self.format {
                UmFormat::Nr(framing) => {
                    let largest = self.subheaders.largest_pdu(room);
                    self.cutter.nr(now, framing, largest, source, sdus)
                }
                UmFormat::Lte(sn) => {
                    let packing = LtePacking::new(lte_um_fixed(sn), lte_largest_pdu(room));
                    self.cutter.lte(now, packing, source, sdus)
                }
            };
            let Some(cut) = cut else { break };
            let mut pdu = Pdu {
                sn: self.next,
                sdu: cut.sdu,
                sdu_offset: cut.offset,
                sdu_size: cut.sdu_size,
                start: 0,
                end: cut.len,
                last: true,
                poll: false,
            };
            match self.format {
                UmFormat::Nr(_) => {
                    pdu = Pdu { sdu_offset: 0, start: cut.offset, ..pdu };
                    pdu.end = cut.offset + cut.len;
                    pdu.last = cut.ends_sdu;
                    // TS 38.322 5.2.2.1.1: TX_Next counts only segmented SDUs.
                    self.next += u64::from(cut.ends_sdu && cut.offset > 0);
                    room -= cut.pdu_bytes + self.subheaders.bytes(cut.pdu_bytes);
                }
                UmFormat::Lte(_) => {
                    self.next += 1;
                    room -= lte_cost(cut.pdu_bytes, room);
                }
            }
            block.pdus.push(pdu);
            // Sent completely: whatever happens to it, it is not retransmitted.
            let begun = self.cutter.open_count().unwrap_or_else(|| sdus.next_count());
            (cut.sdu..begun).for_each(|count| sdus.confirm(count));
        }
        room
    }

    /// TS 38.322 5.1.2. Sequence numbers continue instead of restarting at 0.
    pub(crate) fn reestablish(&mut self) -> u64 {
        self.cutter.reset();
        self.next += 1;
        self.next
    }
}
