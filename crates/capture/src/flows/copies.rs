//! Packets that were captured more than once: at several interfaces of a machine (`-i any`), in
//! front of and behind a router or a bridge, or by a switch that mirrors both what enters and what
//! leaves.
//!
//! A copy has the identification, the ends and the beginning of another packet, and was seen at
//! another place: another interface, link-layer address, VLAN, tunnel endpoint, or hop. The n-th
//! such packet at one place is the copy of the n-th one at another place, so a packet that was
//! really retransmitted is kept: it passes each place again. Where copies do not even differ in their
//! place, they cannot be distinguished from duplicates made by the network; but if nearly all
//! packets of a flow are duplicated, in both directions, it is the capture.

use airpath_base::{Duration, Instant};

use crate::decode::hash;
use crate::decode::{IpPacket, TCP, UDP};

/// A packet that comes later than this is no copy: a router's queue is shorter.
const LATEST: Duration = Duration::from_secs(1);

/// A copy of the same frame comes within this time. A deliberate retransmission never does.
const SAME_FRAME: Duration = Duration::from_millis(20);

/// How many packets are remembered: in sets of four.
const SETS: usize = 4096;
const WAYS: usize = 4;

/// Most copies of one frame that are distinguished.
pub(super) const MOST_TIMES: usize = 4;

/// Bytes after the IP header that are compared, and how many are compared in truncated packets.
const BEGINNING: usize = 48;
const SHORT_BEGINNING: usize = 24;

/// A packet that was seen at one place.
#[derive(Clone, Copy, Default)]
struct Sighting {
    packet: u32,
    place: u16,
    /// How often the packet was seen here; 0: the entry is empty.
    times: u16,
    first: Instant,
}

/// What is known of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// The packet was seen at another place before.
    pub(super) is_copy: bool,
    /// How many equal packets were seen at this place, including this one.
    pub(super) times: u16,
    /// The first such packet came so recently that this one may be the same frame.
    pub(super) is_soon: bool,
    /// An equal packet was seen long before: such packets are alike because of their contents.
    pub(super) recurs: bool,
}

impl Sight {
    /// Whether a packet is a copy, if each packet of its flow was captured `times_captured` times.
    #[inline]
    pub(super) fn is_left_out(self, times_captured: u8) -> bool {
        !(self.times - 1).is_multiple_of(times_captured.max(1).into())
    }
}

/// The packets that were seen most recently.
#[derive(Default)]
pub(super) struct Copies {
    sets: Vec<[Sighting; WAYS]>,
}

impl Copies {
    /// Notes a packet that was seen at an interface of the file.
    #[inline]
    pub(super) fn see(&mut self, now: Instant, interface: usize, ip: &IpPacket<'_>) -> Sight {
        if self.sets.is_empty() {
            self.sets = vec![Default::default(); SETS];
        }
        let hash = packet_hash(interface, ip);
        let packet = (hash >> 32) as u32;
        let place = hash::word(ip.place, ip.ttl.into()) as u16;
        let set = &mut self.sets[hash as usize % SETS];
        let (mut here, mut elsewhere, mut recurs, mut began) = (None, 0, false, now);
        for (at, one) in set.iter_mut().enumerate() {
            if one.times == 0 || one.packet != packet {
                continue;
            }
            // Times in a file may go backwards.
            if now.saturating_since(one.first).max(one.first.saturating_since(now)) > LATEST {
                (one.times, recurs) = (0, true);
            } else if one.place == place {
                (here, began) = (Some(at), one.first);
            } else {
                elsewhere = elsewhere.max(one.times);
            }
        }
        let at = here.unwrap_or_else(|| {
            let oldest = set.iter().enumerate().min_by_key(|(_, one)| (one.times > 0, one.first));
            let at = oldest.map_or(0, |(at, _)| at);
            set[at] = Sighting { packet, place, times: 0, first: now };
            at
        });
        let times = set[at].times.saturating_add(1);
        set[at].times = times;
        let is_soon = now.saturating_since(began) <= SAME_FRAME;
        Sight { is_copy: times <= elsewhere, times, is_soon, recurs }
    }
}

/// A hash of what distinguishes packets, wherever they are seen. It excludes the time to live and
/// the traffic class, which routers change, and checksums, which devices fill in.
#[inline]
fn packet_hash(interface: usize, ip: &IpPacket<'_>) -> u64 {
    let (source, destination) = (ip.source, ip.destination);
    let fragment = ip.fragment.map_or(0, |part| part.offset << 1 | u32::from(part.more));
    let kind = u64::from(ip.protocol) | (ip.tunnel as u64) << 8 | (interface as u64) << 16;
    let mut hash = 0x9e37_79b9_7f4a_7c15;
    for part in [
        source as u64 ^ (destination as u64).rotate_left(32),
        (source >> 64) as u64 ^ ((destination >> 64) as u64).rotate_left(32),
        u64::from(ip.id) << 32 | u64::from(ip.length),
        kind ^ u64::from(fragment).rotate_left(40),
    ] {
        hash = hash::word(hash, part);
    }
    let kept = match ip.body.len() {
        BEGINNING.. => BEGINNING,
        SHORT_BEGINNING.. => SHORT_BEGINNING,
        fewer => fewer,
    };
    let mut beginning = [0; BEGINNING];
    beginning[..kept].copy_from_slice(&ip.body[..kept]);
    match ip.protocol {
        TCP => beginning[16..18].fill(0),
        UDP => beginning[6..8].fill(0),
        _ => {}
    }
    beginning[..kept.next_multiple_of(8)]
        .chunks_exact(8)
        .fold(hash, |hash, chunk| hash::word(hash, chunk.try_into().map_or(0, u64::from_le_bytes)))
}
