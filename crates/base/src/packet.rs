//! Packets: a small value in simulation, a handle to real bytes in emulation.

use crate::{Instant, JourneyId};

/// Index of a flow within a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u32);

/// ECN codepoint of the IP header (RFC 3168 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The endpoints do not support ECN.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint 0.
    Ect0,
    /// ECN-capable transport, codepoint 1 (L4S).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The codepoint in the lowest two bits of the type of service.
    #[inline]
    pub const fn from_bits(service: u8) -> Self {
        match service & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits of the codepoint.
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }
}

/// One IP packet.
///
/// Path stages use everything except `payload`, which is for the endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The flow to which the packet belongs.
    pub flow: FlowId,
    /// Size in bytes, IP header included, as the endpoints know it.
    pub size: u32,
    /// ECN codepoint; a stage may change it to `Ce`.
    pub ecn: Ecn,
    /// The packet's encapsulation while it is in a tunnel.
    pub tunnel: Tunnel,
    /// The journey under which its time is accounted for ([`Journeys`](crate::Journeys)); `None`:
    /// it is not accounted for. No header carries it.
    pub journey: Option<JourneyId>,
    /// What the endpoints read.
    pub payload: Payload,
}

impl Packet {
    /// Bytes that a link sends: the packet's size plus its tunnel headers.
    #[inline]
    pub const fn wire_size(&self) -> u32 {
        self.size + self.tunnel.header_bytes as u32
    }
}

/// What a tunnel adds to a packet. The default is no tunnel.
///
/// It is packed into three bytes, so that the journey fits into the same words of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(Rust, packed)]
pub struct Tunnel {
    /// Bytes of the outer headers, all fragments together.
    pub header_bytes: u16,
    /// Outer fragments besides the first. They travel one after another, and each can be lost.
    pub further_fragments: u8,
}

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// A TCP segment.
    Tcp(Segment),
    /// A ping or a UDP datagram.
    Datagram(Datagram),
    /// Nothing that airpath's endpoints read: the driver's own handle.
    Opaque(u64),
}

/// A datagram of a `ping` or `udp` flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Number of the datagram, from 0.
    pub sequence: u64,
    /// When its sender sent it; for a reply, when the request was sent.
    pub sent_at: Instant,
    /// True for a reply.
    pub reply: bool,
}

/// TCP control flags that the endpoints use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u8);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// Synchronise.
    pub const SYN: Self = Self(1);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(2);
    /// The sender has finished.
    pub const FIN: Self = Self(4);
    /// ECN echo.
    pub const ECE: Self = Self(8);
    /// Congestion window reduced.
    pub const CWR: Self = Self(16);
    /// Push: receive offload delivers what it holds.
    pub const PSH: Self = Self(32);

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Most SACK blocks that fit beside the timestamps option (RFC 2018 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// One received range `[start, end)`, in bytes above the cumulative acknowledgement: one word, with
/// the start in the lower half.
///
/// The start of a D-SACK block (RFC 2883) below the acknowledgement wraps around, and is therefore
/// huge.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlock(u64);

impl SackBlock {
    const EMPTY: Self = Self(0);

    /// A block from stream offsets: differences are modulo 2^32, as on the wire.
    const fn new(ack: u64, start: u64, end: u64) -> Self {
        Self(start.wrapping_sub(ack) & 0xffff_ffff | end.wrapping_sub(ack) << 32)
    }

    const fn range(self, ack: u64) -> (u64, u64) {
        let start = ack.wrapping_add(self.0 as i32 as i64 as u64);
        (start, ack.wrapping_add((self.0 as i64 >> 32) as u64))
    }
}

/// Up to [`MAX_SACK_BLOCKS`] blocks, most recently received first (RFC 2018 4).
///
/// Unused blocks are empty, `[0, 0)`: a separate count would make every packet larger by a word.
///
/// They are stored as words, so that a copy reads the same words that were written: the processor
/// need not wait for them to reach the cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlocks {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
}

impl SackBlocks {
    /// No blocks.
    pub const NONE: Self = Self { blocks: [SackBlock::EMPTY; MAX_SACK_BLOCKS] };

    /// Adds `[start, end)`, in stream offsets, for a segment that acknowledges `ack`; an empty
    /// range is ignored.
    ///
    /// Returns false if the option is full.
    pub fn push(&mut self, ack: u64, start: u64, end: u64) -> bool {
        let len = self.len();
        let Some(slot) = self.blocks.get_mut(len) else {
            return false;
        };
        if start != end {
            *slot = SackBlock::new(ack, start, end);
        }
        true
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.iter().take_while(|&&block| block != SackBlock::EMPTY).count()
    }

    /// Whether there are no blocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.blocks[0] == SackBlock::EMPTY
    }

    /// The blocks as stream offsets, for a segment that acknowledges `ack`.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let told = self.blocks.iter().take_while(|&&block| block != SackBlock::EMPTY);
        told.map(move |block| block.range(ack))
    }
}

/// A TCP segment. Sequence numbers are 64-bit stream offsets (the SYN is byte 0), so that the
/// model need not handle wrapping; everything else has its width on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Offset of the first byte.
    pub seq: u64,
    /// Next byte expected; valid with [`Flags::ACK`].
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// The timestamps option, if present.
    pub timestamps: Option<Timestamps>,
    /// Window field as on the wire, before scaling.
    pub window: u16,
    /// Control flags.
    pub flags: Flags,
    /// Window scale of a SYN (RFC 7323 2.2), `None` if not offered.
    pub window_scale: Option<u8>,
    /// For a SYN: whether it has the option "SACK permitted" (RFC 2018 2).
    pub sack_permitted: bool,
    /// Whether the sender has sent it before. No header carries this: it is for drivers and
    /// captures.
    pub retransmission: bool,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

impl Segment {
    /// A blank segment, to be filled in.
    pub const BLANK: Self = Self {
        seq: 0,
        ack: 0,
        len: 0,
        timestamps: None,
        window: 0,
        flags: Flags::NONE,
        window_scale: None,
        sack_permitted: false,
        retransmission: false,
        sack: SackBlocks::NONE,
    };

    /// Offset after the last byte; SYN and FIN count one each.
    pub const fn end(&self) -> u64 {
        self.seq + self.sequence_len() as u64
    }

    /// Length in sequence space.
    pub const fn sequence_len(&self) -> u32 {
        self.len + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }

    /// The timestamp that the peer echoes, if there is one.
    #[inline]
    pub const fn echo(&self) -> Option<u32> {
        match self.timestamps {
            Some(Timestamps { echo, .. }) => echo,
            None => None,
        }
    }
}

/// The timestamps option (RFC 7323 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// TSval: microseconds of the sender's clock, modulo 2^32.
    pub value: u32,
    /// TSecr: the peer's value; `None` in a first SYN, which has nothing to echo.
    pub echo: Option<u32>,
}

/// A packet that a stage dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drop {
    /// When it was dropped, in logical time.
    pub at: Instant,
    /// The dropped packet.
    pub packet: Packet,
    /// Where it was dropped: the stage's position in its direction of the path.
    pub stage: u32,
    /// Why it was dropped.
    pub reason: DropReason,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropReason {
    /// Dropped by a loss stage.
    Loss,
    /// A queue had no room for the packet, in packets or in bytes.
    QueueFull,
    /// Dropped by active queue management.
    Aqm,
    /// It waited longer than PDCP's discard timer allows (TS 38.323 5.3).
    Discarded,
    /// Lost by the radio link: in unacknowledged mode, or because retransmission was given up.
    RadioLink,
    /// Lost in a handover: what was in the old cell was not forwarded.
    Handover,
    /// Larger than a hop's MTU, and must not be fragmented.
    TooBig,
    /// Wrong checksum: the receiver discarded it.
    Checksum,
    /// Exceeded the tokens in a policer's bucket.
    Policed,
    /// There is no live NAT binding for it.
    NoBinding,
    /// A firewall has not recently seen a packet of its flow from the inside.
    Blocked,
    /// The receive ring of a host was full.
    RingFull,
}

impl DropReason {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::QueueFull => "queue_full",
            Self::Aqm => "aqm",
            Self::Discarded => "discarded",
            Self::RadioLink => "radio_link",
            Self::Handover => "handover",
            Self::TooBig => "too_big",
            Self::Checksum => "checksum",
            Self::Policed => "policed",
            Self::NoBinding => "no_binding",
            Self::Blocked => "blocked",
            Self::RingFull => "ring_full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_small() {
        // Rings hold packets by value: every hop pays for growth.
        assert!(size_of::<Packet>() <= 80, "{} bytes", size_of::<Packet>());
    }

    #[test]
    fn sack_blocks_survive_the_trip_even_below_the_ack() {
        let mut sack = SackBlocks::NONE;
        assert!(sack.push(5_000_000_000, 5_000_001_448, 5_000_002_896));
        assert!(sack.push(5_000_000_000, 4_999_998_552, 5_000_000_000));
        assert!(sack.push(5_000_000_000, 6_000_000_000, 6_000_000_000), "nothing is no block");
        assert_eq!((sack.len(), sack.is_empty(), SackBlocks::NONE.is_empty()), (2, false, true));
        let blocks: Vec<_> = sack.iter(5_000_000_000).collect();
        assert_eq!(blocks, [(5_000_001_448, 5_000_002_896), (4_999_998_552, 5_000_000_000)]);
    }
}
