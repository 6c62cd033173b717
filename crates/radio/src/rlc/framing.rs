//! Sizes of headers according to the specifications.

use super::config::{LteUmSn, NrAmSn, NrUmSn, UmtsPdu};

/// The largest value of an LI, which has 11 bits (TS 36.322 6.2.2.5): a longer element can only be
/// the last of its PDU.
const MAX_LI: u32 = 2047;

/// NR's data PDUs (TS 38.322 6.2.2.3, 6.2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NrFraming {
    Um(NrUmSn),
    Am(NrAmSn),
}

impl NrFraming {
    /// Header bytes of a PDU that begins at byte `start` of its SDU.
    pub(crate) const fn header(self, start: u32, whole: bool) -> u32 {
        // A segment other than the first has an SO field of 2 bytes.
        let offset = if start > 0 { 2 } else { 0 };
        offset
            + match self {
                // TS 38.322 6.2.2.3: a whole SDU has no SN.
                Self::Um(_) if whole => 1,
                Self::Um(NrUmSn::Bits6) => 1,
                Self::Um(NrUmSn::Bits12) => 2,
                // TS 38.322 6.2.2.4
                Self::Am(NrAmSn::Bits12) => 2,
                Self::Am(NrAmSn::Bits18) => 3,
            }
    }
}

/// MAC subheaders of RLC data PDUs in NR (TS 38.321 6.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Subheaders {
    /// The L field has 8 bits if the PDU has fewer than 256 bytes, otherwise 16.
    #[default]
    Shortest,
    /// The L field always has 16 bits.
    Long,
}

impl Subheaders {
    /// The longest RLC PDU that fits into `room` bytes of a MAC PDU.
    pub(crate) const fn largest_pdu(self, room: u32) -> u32 {
        match self {
            Self::Shortest => nr_largest_pdu(room),
            Self::Long if room > 65_535 + 3 => 65_535,
            Self::Long => room.saturating_sub(3),
        }
    }

    /// Bytes of the subheader of a PDU of `pdu` bytes.
    pub(crate) const fn bytes(self, pdu: u32) -> u32 {
        match self {
            Self::Shortest => nr_subheader(pdu),
            Self::Long => 3,
        }
    }
}

/// The longest RLC PDU that fits into `room` bytes of an NR MAC PDU (TS 38.321 6.1.2, 6.2.1).
pub(crate) const fn nr_largest_pdu(room: u32) -> u32 {
    if room >= 256 + 3 {
        let most = room - 3;
        if most > 65_535 { 65_535 } else { most }
    } else {
        let most = room.saturating_sub(2);
        if most > 255 { 255 } else { most }
    }
}

/// Bytes of the MAC subheader, with an L field of 8 or 16 bits (TS 38.321 6.1.2).
pub(crate) const fn nr_subheader(pdu: u32) -> u32 {
    if pdu < 256 { 2 } else { 3 }
}

/// The longest RLC PDU that fits into `room` bytes of an LTE MAC PDU: it fills the MAC PDU, so its
/// subheader is the last and has no L field (TS 36.321 6.1.2).
pub(crate) const fn lte_largest_pdu(room: u32) -> u32 {
    let most = room.saturating_sub(1);
    if most > 32_767 { 32_767 } else { most }
}

/// How much of `room` a PDU takes, including its subheader. If the rest has no room for an L field,
/// it is padding (TS 36.321 6.1.2: one or two bytes of padding are subheaders in front).
pub(crate) fn lte_cost(pdu: u32, room: u32) -> u32 {
    if pdu + 1 == room {
        return room;
    }
    // F, and an L field of 7 or 15 bits (TS 36.321 6.2.1)
    let subheader = if pdu < 128 { 2 } else { 3 };
    (pdu + subheader).min(room)
}

/// A data PDU of LTE or UMTS under construction: a fixed header, an LI for each element except the
/// last, then the elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LtePacking {
    fixed: u32,
    largest: u32,
    /// Bits of an LI with its E bit.
    li_bits: u32,
    /// The longest element that an LI can represent.
    max_li: u32,
    /// Bytes of data.
    pub(crate) len: u32,
    elements: u32,
    last_element: u32,
}

impl LtePacking {
    /// LTE: a PDU of at most `largest` bytes, with LIs of 11 bits (TS 36.322 6.2.1.3, 6.2.1.4).
    pub(crate) const fn new(fixed: u32, largest: u32) -> Self {
        Self { fixed, largest, li_bits: 12, max_li: MAX_LI, len: 0, elements: 0, last_element: 0 }
    }

    /// UMTS: LIs have 7 bits in PDUs of up to 126 bytes, otherwise 15 (TS 25.322 9.2.2.8). The LI
    /// of an SDU that ends with its PDU counts as free, as does that of padding.
    pub(crate) const fn umts(framing: UmtsFraming, fixed: u32, largest: u32) -> Self {
        let longest = match framing.pdu {
            UmtsPdu::Fixed { bytes } => bytes,
            UmtsPdu::Flexible { most } => most,
        };
        let li_bits = if longest <= 126 { 8 } else { 16 };
        let max_li = (1 << (li_bits - 1)) - 1;
        Self { fixed, largest, li_bits, max_li, len: 0, elements: 0, last_element: 0 }
    }

    /// Largest size in bytes of a further element.
    pub(crate) const fn room(&self) -> u32 {
        if self.last_element > self.max_li {
            return 0;
        }
        let header = self.fixed + (self.li_bits * self.elements).div_ceil(8);
        self.largest.saturating_sub(header + self.len)
    }

    /// Adds an element of at most [`LtePacking::room`] bytes.
    pub(crate) const fn add(&mut self, bytes: u32) {
        self.len += bytes;
        self.elements += 1;
        self.last_element = bytes;
    }

    /// Bytes of the whole PDU.
    pub(crate) const fn bytes(&self) -> u32 {
        let indicators = self.elements.saturating_sub(1);
        self.fixed + (self.li_bits * indicators).div_ceil(8) + self.len
    }
}

/// Fixed part of an LTE UM header (TS 36.322 6.2.1.3).
pub(crate) const fn lte_um_fixed(sn: LteUmSn) -> u32 {
    match sn {
        LteUmSn::Bits5 => 1,
        LteUmSn::Bits10 => 2,
    }
}

/// Fixed part of an LTE AMD PDU (TS 36.322 6.2.1.4).
pub(crate) const LTE_AM_FIXED: u32 = 2;

/// Fixed part of an LTE AMD PDU segment, with LSF and SO (TS 36.322 6.2.1.5).
pub(crate) const LTE_SEGMENT_FIXED: u32 = 4;

/// Fixed part of UMTS's AMD PDU: D/C, SN, P, HE (TS 25.322 9.2.1.4).
pub(crate) const UMTS_AM_FIXED: u32 = 2;

/// Fixed part of a segment of one. RLC has no such thing: MAC-ehs and MAC-is segment PDUs, which
/// takes a TSN and SI (TS 25.321 9.2.2).
pub(crate) const UMTS_SEGMENT_FIXED: u32 = 3;

/// Sizes of UMTS's AMD PDUs in their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UmtsFraming {
    pub(crate) pdu: UmtsPdu,
    /// MAC header per block, or per PDU of flexible size.
    pub(crate) mac_header: u32,
}

impl UmtsFraming {
    /// The longest PDU that fits into `room` bytes of a block; 0 if none does.
    pub(crate) const fn largest(self, room: u32, first: bool) -> u32 {
        match self.pdu {
            UmtsPdu::Fixed { bytes } if self.cost(bytes, first) <= room => bytes,
            UmtsPdu::Fixed { .. } => 0,
            UmtsPdu::Flexible { most } => {
                let room = room.saturating_sub(self.mac_header);
                if most <= room { most } else { room }
            }
        }
    }

    /// How much of a block a PDU takes, including padding. The MAC header counts with the `first`
    /// PDU of a block, and with each of flexible size.
    pub(crate) const fn cost(self, pdu: u32, first: bool) -> u32 {
        match self.pdu {
            UmtsPdu::Fixed { bytes } if first => bytes + self.mac_header,
            UmtsPdu::Fixed { bytes } => bytes,
            UmtsPdu::Flexible { .. } => pdu + self.mac_header,
        }
    }
}

/// Sizes of the parts of a STATUS PDU, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusFraming {
    fixed: u32,
    nack: u32,
    offsets: u32,
    /// Bits of a NACK range; `None` if there is none.
    range: Option<u32>,
    /// Most units that one entry can cover.
    most: u32,
}

impl StatusFraming {
    // TS 38.322 6.2.2.5
    pub(crate) const NR_12: Self =
        Self { fixed: 24, nack: 16, offsets: 32, range: Some(8), most: 255 };
    pub(crate) const NR_18: Self =
        Self { fixed: 24, nack: 24, offsets: 32, range: Some(8), most: 255 };
    // TS 36.322 6.2.1.6
    pub(crate) const LTE: Self = Self { fixed: 15, nack: 12, offsets: 30, range: None, most: 1 };
    // TS 25.322 9.2.1.5, 9.2.2.11: D/C and type, SUFIs ACK (4 + 12) and LIST (4 + 4, pairs of SN
    // and a length of 4 bits). Segments of PDUs are handled by the MAC.
    pub(crate) const UMTS: Self = Self { fixed: 28, nack: 16, offsets: 0, range: None, most: 16 };

    /// D/C, CPT, ACK_SN, E1.
    pub(crate) const fn fixed_bits(&self) -> u32 {
        self.fixed
    }

    /// Bits of a NACK for `count` whole units, in as few entries as possible.
    pub(crate) const fn units_bits(&self, count: u32) -> u32 {
        match self.range {
            Some(range) if count > 1 => self.nack + range,
            _ => self.nack,
        }
    }

    /// Bits of a NACK with SOstart and SOend.
    pub(crate) const fn bytes_bits(&self) -> u32 {
        self.nack + self.offsets
    }

    /// Most units that one entry can cover.
    pub(crate) const fn max_range(&self) -> u32 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nr_headers() {
        // TS 38.322 6.2.2.3: SI, with SN and SO only for segments
        let um = NrFraming::Um(NrUmSn::Bits6);
        assert_eq!([um.header(0, true), um.header(0, false), um.header(9, false)], [1, 1, 3]);
        let um = NrFraming::Um(NrUmSn::Bits12);
        assert_eq!([um.header(0, true), um.header(0, false), um.header(9, false)], [1, 2, 4]);
        // TS 38.322 6.2.2.4
        let am = NrFraming::Am(NrAmSn::Bits12);
        assert_eq!([am.header(0, true), am.header(0, false), am.header(9, false)], [2, 2, 4]);
        let am = NrFraming::Am(NrAmSn::Bits18);
        assert_eq!([am.header(0, true), am.header(9, false)], [3, 5]);
    }

    #[test]
    fn the_largest_pdu_fits_and_one_byte_more_does_not() {
        for room in 3..2_000 {
            let nr = nr_largest_pdu(room);
            assert!(nr + nr_subheader(nr) <= room);
            assert!(nr + 1 + nr_subheader(nr + 1) > room, "{room}");
            assert_eq!(lte_cost(lte_largest_pdu(room), room), room);
        }
    }

    #[test]
    fn lte_elements_cost_twelve_bits_each_but_the_last() {
        // TS 36.322 6.2.1.4: an odd number of LIs is padded by 4 bits
        let mut packing = LtePacking::new(LTE_AM_FIXED, 200);
        let mut header = Vec::new();
        for _ in 0..5 {
            packing.add(10);
            header.push(packing.bytes() - packing.len);
        }
        assert_eq!(header, [2, 4, 5, 7, 8]);
        assert_eq!(packing.room(), 200 - 50 - 2 - 8);
        packing.add(1);
        assert_eq!(packing.bytes(), 51 + 2 + 8);
    }

    #[test]
    fn nothing_follows_an_element_too_long_for_an_li() {
        // TS 36.322 6.2.2.5
        let mut packing = LtePacking::new(LTE_AM_FIXED, 9_000);
        packing.add(2_047);
        assert!(packing.room() > 0);
        packing.add(2_048);
        assert_eq!(packing.room(), 0);
    }
}
