//! The records that `kernel/observer.bpf.c` writes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `struct record`, without the fields that only the C side needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub time_ns: u64,
    /// The socket's cookie, which is unique since the machine started.
    pub cookie: u64,
    /// Index of the socket's network namespace in the given list.
    pub end: u32,
    /// Why the record was written.
    pub kind: Kind,
    /// Whether the connection uses IPv6.
    pub v6: bool,
    /// The socket's port; 0 once it is closed.
    pub local_port: u16,
    /// The other end's port.
    pub remote_port: u16,
    /// The other end's address.
    pub remote: IpAddr,
    /// Payload bytes acknowledged since the connection began, counting the SYN as one byte.
    pub acked_bytes: u64,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow start threshold in segments; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT in microseconds; 0 before the first sample.
    pub srtt_us: u32,
    /// RACK.rtt (RFC 8985 5.2) in microseconds: that of the delivered segment that was sent last.
    pub rtt_us: u32,
    /// Smallest RTT in microseconds; `None` before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Pipe (RFC 6675 2) in segments.
    pub in_flight: u32,
    /// Segments marked lost.
    pub lost: u32,
    /// Segments delivered since the connection began.
    pub delivered: u32,
    /// cwnd before the last reduction.
    pub prior_cwnd: u32,
    /// RTO in jiffies.
    pub rto_ticks: u32,
    /// Data segments sent, retransmissions included.
    pub sent: u32,
    /// Segments retransmitted.
    pub retransmitted: u32,
    /// Retransmission time-outs; only since Linux 6.7.
    pub timeouts: u32,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// What HyStart found.
    pub found: Found,
    /// The reference RTT of a delay test in microseconds; 0 if there is none. In conservative slow
    /// start: cssBaselineMinRtt.
    pub base_rtt_us: u32,
    /// The round's smallest RTT so far in microseconds; 0 if there is none.
    pub round_rtt_us: u32,
    /// What may end slow start before a loss.
    pub detector: Detector,
    /// RTT samples of the round, at most eight.
    pub samples: u8,
    /// Length so far of the ACK train that began with the round, in microseconds.
    pub train_us: Option<u32>,
    /// Length in microseconds above which an ACK train ends slow start. The kernel keeps no such
    /// value: it is computed.
    pub longest_train_us: Option<u32>,
    /// The window that the peer last advertised, in bytes.
    pub peer_window: u32,
    /// Name of the congestion control, padded with zeros.
    pub congestion: [u8; 16],
}

/// Why a record was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A segment arrived, and is not processed yet.
    Ack,
    /// The congestion state is about to change.
    Congestion {
        /// The old state.
        before: u8,
        /// The new state: 2 is CWR, 3 fast recovery, 4 after a time-out.
        after: u8,
    },
    /// The connection is established.
    Begin,
    /// The connection is closed.
    End,
}

/// What may end slow start before a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detector {
    /// Nothing that is known here.
    None,
    /// HyStart: the kernel's own, or one of airpath's.
    Hystart,
    /// HyStart++ (RFC 9406).
    PlusPlus,
    /// HyStart++ in conservative slow start.
    Css,
}

/// What a congestion control's HyStart found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing yet, or there is no HyStart.
    Nothing,
    /// An end of slow start whose reason is not known.
    Something,
    /// A long ACK train.
    AckTrain,
    /// A rise of the round's RTT.
    Delay,
    /// A fall of the smallest RTT.
    FallingMinimum,
    /// A rise of the RTT that lasted through conservative slow start (RFC 9406).
    Css,
}

/// TCP_INFINITE_SSTHRESH
const INFINITE: u32 = 0x7fff_ffff;
/// Value for no ACK train.
const ABSENT: u32 = u32::MAX;

impl Record {
    /// Size of `struct record` in bytes.
    pub(crate) const BYTES: usize = 152;
    /// Offset of the kind.
    pub(crate) const KIND: usize = 100;

    /// Parses a record; `None` if the bytes are not one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.get(..Self::BYTES)?.try_into().ok()?;
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("in range"));
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("in range"));
        let short = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("in range"));
        let v6 = bytes[104] != 0;
        let address: [u8; 16] = bytes[112..128].try_into().expect("in range");
        let [a, b, c, d] = [address[0], address[1], address[2], address[3]];
        let ssthresh = word(32);
        Some(Self {
            time_ns: long(0),
            cookie: long(8),
            acked_bytes: long(16),
            end: word(24),
            cwnd: word(28),
            ssthresh: (ssthresh < INFINITE).then_some(ssthresh),
            srtt_us: word(36),
            rtt_us: word(40),
            min_rtt_us: Some(word(44)).filter(|&rtt| rtt < u32::MAX),
            in_flight: word(48),
            lost: word(52),
            delivered: word(56),
            prior_cwnd: word(60),
            rto_ticks: word(64),
            sent: word(68),
            retransmitted: word(72),
            timeouts: word(76),
            mss: word(80),
            base_rtt_us: word(84),
            round_rtt_us: word(88),
            peer_window: word(92),
            local_port: short(96),
            remote_port: short(98),
            kind: match bytes[Self::KIND] {
                0 => Kind::Ack,
                1 => Kind::Congestion { before: bytes[101], after: bytes[102] },
                2 => Kind::Begin,
                3 => Kind::End,
                _ => return None,
            },
            found: match bytes[103] {
                0 => Found::Nothing,
                2 => Found::AckTrain,
                3 => Found::Delay,
                4 => Found::FallingMinimum,
                5 => Found::Css,
                _ => Found::Something,
            },
            detector: match bytes[105] {
                1 => Detector::Hystart,
                2 => Detector::PlusPlus,
                3 => Detector::Css,
                _ => Detector::None,
            },
            samples: bytes[106],
            train_us: Some(word(144)).filter(|&train| train < ABSENT),
            longest_train_us: Some(word(148)).filter(|&train| train < ABSENT),
            v6,
            remote: if v6 {
                Ipv6Addr::from(address).into()
            } else {
                Ipv4Addr::new(a, b, c, d).into()
            },
            congestion: bytes[128..144].try_into().expect("in range"),
        })
    }

    /// The congestion control's name.
    pub fn congestion(&self) -> &str {
        let length = self.congestion.iter().position(|&byte| byte == 0).unwrap_or(16);
        std::str::from_utf8(&self.congestion[..length]).unwrap_or("")
    }
}
