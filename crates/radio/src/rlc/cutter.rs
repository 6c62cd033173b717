//! Cuts new data into the data fields of PDUs: one SDU or segment in NR, several in LTE.

use airpath_base::Instant;

use super::framing::{LtePacking, NrFraming};
use crate::buffer::Sdus;
use crate::pdcp::PdcpTransmitter;

/// Cuts SDUs, and remembers the one that is partly sent.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    count: u64,
    size: u32,
    /// Bytes already cut off.
    cut: u32,
}

/// A data field that was cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// COUNT of the SDU that contains the first byte.
    pub(crate) sdu: u64,
    pub(crate) sdu_size: u32,
    /// Offset in that SDU at which it begins.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// Whether the last byte ends an SDU.
    pub(crate) ends_sdu: bool,
    /// Bytes of the PDU, including the header.
    pub(crate) pdu_bytes: u32,
}

impl Cutter {
    /// Whether there is nothing to cut.
    pub(crate) fn is_empty(&self, source: &PdcpTransmitter) -> bool {
        self.open.is_none() && source.is_empty()
    }

    /// Whether an SDU is partly cut.
    pub(crate) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// COUNT of the SDU that is partly cut.
    pub(crate) fn open_count(&self) -> Option<u64> {
        self.open.map(|open| open.count)
    }

    /// Bytes of RLC SDUs and segments that were not sent yet, with PDCP headers.
    pub(crate) fn bytes(&self, source: &PdcpTransmitter) -> u64 {
        self.open.map_or(0, |open| u64::from(open.size - open.cut)) + source.bytes()
    }

    /// One SDU or segment for a PDU of at most `largest` bytes.
    #[inline]
    pub(crate) fn nr(
        &mut self,
        now: Instant,
        framing: NrFraming,
        largest: u32,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
    ) -> Option<Cut> {
        let start = self.open.map_or(0, |open| open.cut);
        // The shortest segment carries one byte.
        if largest <= framing.header(start, false) {
            return None;
        }
        let open = self.next(now, source, sdus)?;
        let whole = start == 0 && open.size + framing.header(0, true) <= largest;
        let header = framing.header(start, whole);
        let len = (open.size - start).min(largest - header);
        let ends_sdu = self.take(open, len);
        Some(Cut {
            sdu: open.count,
            sdu_size: open.size,
            offset: start,
            len,
            ends_sdu,
            pdu_bytes: header + len,
        })
    }

    /// As many bytes as fit into the empty PDU `packing` (TS 36.322 4.2.1.2.2, 4.2.1.3.2, TS 25.322
    /// 4.2.1.3).
    pub(crate) fn lte(
        &mut self,
        now: Instant,
        mut packing: LtePacking,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
    ) -> Option<Cut> {
        let mut cut: Option<Cut> = None;
        let mut follows = None;
        while packing.room() > 0 {
            // The elements of a PDU are consecutive in COUNT.
            if follows.is_some_and(|count| count != source.next_count(sdus)) {
                break;
            }
            if self.open.is_none() {
                let whole = Self::lte_whole(&mut packing, source, sdus, &mut cut);
                if whole > 0 {
                    // The next SDU follows those, unless it is a different one.
                    follows = Some(sdus.next_count());
                    continue;
                }
            }
            let Some(open) = self.next(now, source, sdus) else { break };
            follows = Some(open.count + 1);
            let len = (open.size - open.cut).min(packing.room());
            packing.add(len);
            let ends_sdu = self.take(open, len);
            let cut = cut.get_or_insert(Cut {
                sdu: open.count,
                sdu_size: open.size,
                offset: open.cut,
                len: 0,
                ends_sdu,
                pdu_bytes: 0,
            });
            cut.ends_sdu = ends_sdu;
        }
        let mut cut = cut?;
        cut.len = packing.len;
        cut.pdu_bytes = packing.bytes();
        Some(cut)
    }

    /// Does what [`lte`](Self::lte) does as long as there are only whole SDUs, which is the usual
    /// case; returns how many.
    #[inline]
    fn lte_whole(
        packing: &mut LtePacking,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
        cut: &mut Option<Cut>,
    ) -> u64 {
        let mut taken = 0;
        source.next_run(sdus, |sdu, sdu_size| {
            let room = packing.room();
            let takes = room > 0 && sdu_size <= room;
            if takes {
                packing.add(sdu_size);
                let (offset, len, pdu_bytes) = (0, 0, 0);
                let first = Cut { sdu, sdu_size, offset, len, ends_sdu: true, pdu_bytes };
                cut.get_or_insert(first).ends_sdu = true;
                taken += 1;
            }
            takes
        });
        taken
    }

    /// RLC is re-established: another entity continues what was begun.
    pub(crate) fn reset(&mut self) {
        self.open = None;
    }

    #[inline]
    fn next(
        &mut self,
        now: Instant,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
    ) -> Option<Open> {
        self.open.or_else(|| {
            let (count, size) = source.next(now, sdus)?;
            Some(Open { count, size, cut: 0 })
        })
    }

    /// Cuts `len` bytes off; returns true if that was the end of the SDU.
    #[inline]
    fn take(&mut self, mut open: Open, len: u32) -> bool {
        open.cut += len;
        let ends = open.cut == open.size;
        self.open = (!ends).then_some(open);
        ends
    }
}

#[cfg(test)]
mod tests {
    use airpath_base::{Duration, Ecn, FlowId, Packet, Payload, Tunnel};
    use proptest::prelude::*;

    use super::super::framing::LTE_AM_FIXED;
    use super::*;
    use crate::buffer::{BufferConfig, Discipline, EcnConfig};
    use crate::pdcp::{PdcpConfig, StatusReport};

    /// SDUs that wait elsewhere than behind the SDUs, as with a discard timer, are cut one by one.
    fn source(discard: Option<Duration>) -> (PdcpTransmitter, Sdus, Cutter) {
        let (discipline, ecn) = (Discipline::DropTail, EcnConfig::default());
        let buffer = BufferConfig { packets: None, bytes: None, discipline, ecn };
        let pdcp = PdcpConfig { header_bytes: 2, discard, status_report: StatusReport::Required };
        (PdcpTransmitter::new(&buffer, &pdcp), Sdus::new(0), Cutter::default())
    }

    proptest! {
        #[test]
        fn a_run_is_cut_as_one_by_one(
            steps in proptest::collection::vec(
                (proptest::collection::vec(prop_oneof![1u32..60, 1_400u32..2_200], 0..6), 3u32..9_000),
                1..40,
            ),
        ) {
            let mut both = [None, Some(Duration::from_millis(100_000))].map(source);
            let now = Instant::ZERO;
            for (sizes, largest) in steps {
                let [run, single] = both.each_mut().map(|(source, sdus, cutter)| {
                    for &size in &sizes {
                        let (flow, ecn, tunnel) = (FlowId(0), Ecn::NotEct, Tunnel::default());
                        let payload = Payload::Opaque(1);
                        let packet = Packet { flow, size, ecn, tunnel, journey: None, payload };
                        source.buffer.push(now, &packet, sdus);
                    }
                    let packing = LtePacking::new(LTE_AM_FIXED, largest);
                    let cut = cutter.lte(now, packing, source, sdus);
                    (cut, cutter.open_count(), cutter.bytes(source), sdus.next_count())
                });
                prop_assert_eq!(run, single);
            }
        }
    }
}
