//! The transmitting side of an AM entity.

mod fast_path;

use std::collections::VecDeque;

use airpath_base::Instant;

use super::block::{Nack, Pdu, Status, TransportBlock};
use super::config::ArqConfig;
use super::cutter::{Cut, Cutter};
use super::framing::{
    LTE_AM_FIXED, LTE_SEGMENT_FIXED, LtePacking, NrFraming, Subheaders, UMTS_AM_FIXED,
    UMTS_SEGMENT_FIXED, UmtsFraming, lte_cost, lte_largest_pdu,
};
use super::pieces::{Piece, Pieces};
use super::poll::Poll;
use super::sent_unit::SentUnit;
use crate::buffer::Sdus;
use crate::pdcp::PdcpTransmitter;

/// The transmitting side of TS 38.322 5.2.3.1, 5.3 and TS 36.322 5.1.3.1, 5.2.
#[derive(Debug)]
pub(crate) struct AmTransmitter {
    format: Format,
    pub(crate) subheaders: Subheaders,
    /// AM_Window_Size.
    window: u64,
    max_retx_threshold: u32,
    cutter: Cutter,
    /// TX_Next_Ack (VT(A)).
    next_ack: u64,
    /// Units from TX_Next_Ack to TX_Next (VT(S)).
    units: VecDeque<SentUnit>,
    /// Ranges to be retransmitted.
    pending: Pieces,
    poll: Poll,
    /// PDUs retransmitted, in whole or in part.
    pub(crate) retransmitted: u64,
    /// When maxRetxThreshold was first reached.
    pub(crate) failed_at: Option<Instant>,
}

/// The format of PDUs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Nr(NrFraming),
    Lte,
    Umts(UmtsFraming),
}

impl AmTransmitter {
    pub(crate) fn new(format: Format, window: u64, arq: &ArqConfig) -> Self {
        Self {
            format,
            subheaders: Subheaders::default(),
            window,
            max_retx_threshold: arq.max_retx_threshold,
            cutter: Cutter::default(),
            next_ack: 0,
            units: VecDeque::new(),
            pending: Pieces::default(),
            poll: Poll::new(arq),
            retransmitted: 0,
            failed_at: None,
        }
    }

    /// Data available for transmission in bytes (TS 38.322 5.5, TS 36.322 4.5).
    pub(crate) fn bytes(&self, source: &PdcpTransmitter) -> u64 {
        self.pending.bytes() + self.cutter.bytes(source)
    }

    /// COUNT of the SDU that is partly sent.
    pub(crate) fn open_count(&self) -> Option<u64> {
        self.cutter.open_count()
    }

    /// Whether something could be sent now.
    pub(crate) fn is_ready(&self, source: &PdcpTransmitter) -> bool {
        !self.pending.is_empty() || !self.is_stalled() && !self.cutter.is_empty(source)
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
            room = self.fill_whole(room, block, source, sdus);
            let largest = match self.format {
                Format::Nr(_) => self.subheaders.largest_pdu(room),
                Format::Lte => lte_largest_pdu(room),
                Format::Umts(pdu) => pdu.largest(room, block.pdus.is_empty()),
            };
            // TS 38.322 5.2.3.1.1: retransmission before new data
            let (mut pdu, bytes, new) = if let Some(piece) = self.pending.first() {
                let Some((pdu, bytes)) = self.again(piece, largest, sdus) else { break };
                (pdu, bytes, 0)
            } else {
                let Some(cut) = self.cut(now, largest, source, sdus) else { break };
                let pdu = self.first_time(&cut);
                (pdu, cut.pdu_bytes, cut.len)
            };
            pdu.poll = self.polls(new, source);
            if pdu.poll {
                self.poll.sent(now, self.next() - 1);
            }
            let first = block.pdus.is_empty();
            block.pdus.push(pdu);
            room -= match self.format {
                Format::Nr(_) => bytes + self.subheaders.bytes(bytes),
                Format::Lte => lte_cost(bytes, room),
                Format::Umts(pdu) => pdu.cost(bytes, first),
            };
        }
        self.guard(now, source);
        room
    }

    /// A STATUS arrived (TS 38.322 5.2.3.1.1, 5.3.2, 5.3.3.3).
    pub(crate) fn on_status(
        &mut self,
        now: Instant,
        status: &Status,
        source: &PdcpTransmitter,
        sdus: &mut Sdus,
    ) {
        let Some(ack_sn) = status.ack_sn.filter(|&sn| sn <= self.next()) else { return };
        let last_nack = status.nacks.last().map_or(0, |nack| match *nack {
            Nack::Units { sn, count } => sn + u64::from(count),
            Nack::Bytes { sn, .. } => sn + 1,
        });
        let mut at = self.next_ack;
        // The unit whose RETX_COUNT this report has already incremented.
        let mut counted = None;
        for nack in &status.nacks {
            match *nack {
                Nack::Units { sn, count } => {
                    self.acknowledge(at, sn, sdus);
                    at = at.max(sn + u64::from(count));
                    for sn in sn..sn + u64::from(count) {
                        self.refuse(now, sn, (0, None), &mut counted);
                    }
                }
                Nack::Bytes { sn, start, end } => {
                    self.acknowledge(at, sn, sdus);
                    at = at.max(sn + 1);
                    self.refuse(now, sn, (start, end), &mut counted);
                }
            }
        }
        self.acknowledge(at, ack_sn, sdus);
        self.advance(sdus);
        self.poll.on_status_below(ack_sn.max(last_nack));
        self.guard(now, source);
    }

    /// t-PollRetransmit.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.poll.timer()
    }

    /// TS 38.322 5.3.3.4
    pub(crate) fn on_timer(&mut self, at: Instant, source: &PdcpTransmitter) {
        if !self.poll.expired(at) {
            return;
        }
        let empty = self.pending.is_empty() && self.cutter.is_empty(source);
        if empty || self.is_stalled() {
            // The highest that was sent, or any unacknowledged one.
            let open = self.units.iter().enumerate().rev().find(|(_, unit)| !unit.acknowledged);
            if let Some((index, _)) = open {
                let sn = self.next_ack + index as u64;
                self.refuse(at, sn, (0, None), &mut None);
            }
        }
        self.guard(at, source);
    }

    /// Ensures that unacknowledged data will be reported: if nothing can be sent and no poll is
    /// pending, t-PollRetransmit runs. The specification needs no such rule as long as the last PDU
    /// polls; it does not poll if the data behind it was discarded later.
    pub(crate) fn guard(&mut self, now: Instant, source: &PdcpTransmitter) {
        if !self.units.is_empty() && self.poll.timer().is_none() && !self.is_ready(source) {
            self.poll.wait(now, self.next() - 1);
        }
    }

    /// TS 38.322 5.1.2, TS 36.322 5.4. Sequence numbers continue instead of restarting at 0.
    pub(crate) fn reestablish(&mut self) -> u64 {
        self.next_ack = self.next();
        self.units.clear();
        self.pending.clear();
        self.cutter.reset();
        self.poll.reset();
        self.failed_at = None;
        self.next_ack
    }

    /// TX_Next (VT(S)).
    fn next(&self) -> u64 {
        self.next_ack + self.units.len() as u64
    }

    /// TS 38.322 5.2.3.1.1: whether the transmitting window is full.
    fn is_stalled(&self) -> bool {
        self.next() >= self.next_ack + self.window && !self.cutter_must_finish()
    }

    /// NR: whether a unit in the window has not been sent completely.
    fn cutter_must_finish(&self) -> bool {
        matches!(self.format, Format::Nr(_)) && self.cutter.is_open()
    }

    fn cut(
        &mut self,
        now: Instant,
        largest: u32,
        source: &mut PdcpTransmitter,
        sdus: &mut Sdus,
    ) -> Option<Cut> {
        if self.is_stalled() {
            return None;
        }
        match self.format {
            Format::Nr(framing) => self.cutter.nr(now, framing, largest, source, sdus),
            Format::Lte => {
                self.cutter.lte(now, LtePacking::new(LTE_AM_FIXED, largest), source, sdus)
            }
            Format::Umts(pdu) => {
                let packing = LtePacking::umts(pdu, UMTS_AM_FIXED, largest);
                self.cutter.lte(now, packing, source, sdus)
            }
        }
    }

    #[inline]
    fn first_time(&mut self, cut: &Cut) -> Pdu {
        let continues = matches!(self.format, Format::Nr(_)) && cut.offset > 0;
        if !continues {
            let (sdu_offset, len) = match self.format {
                Format::Nr(_) => (0, cut.sdu_size),
                Format::Lte | Format::Umts(_) => (cut.offset, cut.len),
            };
            self.units.push_back(SentUnit {
                sdu: cut.sdu,
                sdu_size: cut.sdu_size,
                sdu_offset,
                len,
                sent: 0,
                retx_count: None,
                acknowledged: false,
            });
        }
        let sn = self.next() - 1;
        let unit = self.units.back_mut().expect("just pushed, or begun before");
        let start = unit.sent;
        unit.sent += cut.len;
        unit.pdu(sn, start, unit.sent)
    }

    /// A PDU of at most `largest` bytes with the first bytes to be retransmitted, and its length.
    fn again(&mut self, piece: Piece, largest: u32, sdus: &Sdus) -> Option<(Pdu, u32)> {
        let unit = self.units[(piece.sn - self.next_ack) as usize];
        let (end, bytes) = match self.format {
            Format::Nr(framing) => {
                let whole = piece.start == 0 && piece.end == unit.len;
                let whole = whole && unit.len + framing.header(0, true) <= largest;
                let header = framing.header(piece.start, whole);
                let len = largest.checked_sub(header).filter(|&len| len > 0)?;
                let len = len.min(piece.end - piece.start);
                (piece.start + len, header + len)
            }
            Format::Lte | Format::Umts(_) => {
                let (empty, segment) = match self.format {
                    Format::Umts(pdu) => (
                        LtePacking::umts(pdu, UMTS_AM_FIXED, largest),
                        LtePacking::umts(pdu, UMTS_SEGMENT_FIXED, largest),
                    ),
                    _ => (
                        LtePacking::new(LTE_AM_FIXED, largest),
                        LtePacking::new(LTE_SEGMENT_FIXED, largest),
                    ),
                };
                // TS 36.322 5.2.1: the original PDU if it fits, otherwise a segment of it.
                let whole = (piece.start == 0 && piece.end == unit.len)
                    .then(|| unit.pack(empty, piece, sdus))
                    .filter(|packing| packing.len == unit.len);
                let packing = whole.unwrap_or_else(|| unit.pack(segment, piece, sdus));
                (piece.start + packing.len, packing.bytes())
            }
        };
        if end == piece.start {
            return None;
        }
        self.pending.take_front(end - piece.start);
        self.retransmitted += 1;
        Some((unit.pdu(piece.sn, piece.start, end), bytes))
    }

    /// TS 38.322 5.3.3.2: whether the PDU just assembled polls.
    #[inline]
    fn polls(&mut self, new_bytes: u32, source: &PdcpTransmitter) -> bool {
        let counted = new_bytes > 0 && self.poll.counts_new(new_bytes);
        let nothing_left = self.pending.is_empty() && self.cutter.is_empty(source);
        counted || nothing_left || self.is_stalled() || self.poll.is_forced()
    }

    /// Positive acknowledgement of the units `[from, to)`.
    fn acknowledge(&mut self, from: u64, to: u64, sdus: &mut Sdus) {
        let to = to.min(self.next());
        if from >= to {
            return;
        }
        let whole_sdus = matches!(self.format, Format::Nr(_));
        let indices = (from - self.next_ack) as usize..(to - self.next_ack) as usize;
        let mut new = 0..0;
        for (sn, unit) in (from..).zip(self.units.range_mut(indices)) {
            if unit.acknowledged {
                continue;
            }
            unit.acknowledged = true;
            self.pending.remove(sn);
            if whole_sdus {
                if unit.sdu != new.end {
                    sdus.note_confirmed(new);
                    new = unit.sdu..unit.sdu;
                }
                new.end += 1;
            }
        }
        sdus.note_confirmed(new);
        sdus.forget_run();
    }

    /// Negative acknowledgement: the bytes are considered for retransmission (TS 38.322 5.3.2).
    /// RETX_COUNT of `counted` is not incremented again.
    fn refuse(
        &mut self,
        now: Instant,
        sn: u64,
        (start, end): (u32, Option<u32>),
        counted: &mut Option<u64>,
    ) {
        let Some(index) = sn.checked_sub(self.next_ack) else { return };
        let Some(unit) = self.units.get_mut(index as usize) else { return };
        // What has not been sent yet cannot be retransmitted.
        let end = end.unwrap_or(unit.sent).min(unit.sent);
        if unit.acknowledged || start >= end {
            return;
        }
        let is_new = self.pending.add(Piece { sn, start, end }) > 0;
        if !is_new || *counted == Some(sn) {
            return;
        }
        *counted = Some(sn);
        let count = unit.retx_count.map_or(0, |count| count + 1);
        unit.retx_count = Some(count);
        if count == self.max_retx_threshold {
            self.failed_at.get_or_insert(now);
        }
    }

    /// Moves TX_Next_Ack to the first unacknowledged unit.
    fn advance(&mut self, sdus: &mut Sdus) {
        if matches!(self.format, Format::Nr(_)) {
            let open = self.units.iter().position(|unit| !unit.acknowledged);
            let acknowledged = open.unwrap_or(self.units.len());
            self.units.drain(..acknowledged);
            self.next_ack += acknowledged as u64;
            return;
        }
        while let Some(unit) = self.units.front().filter(|unit| unit.acknowledged).copied() {
            self.units.pop_front();
            self.next_ack += 1;
            unit.confirm(sdus);
        }
        sdus.forget_run();
    }
}
