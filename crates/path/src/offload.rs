//! Devices whose offload breaks packets: wrong checksums, and segments joined to more than an MTU.

use std::collections::VecDeque;

use airpath_base::{Drop, DropReason, Duration, FlowId, Instant, Packet};
use airpath_queue::Load;

use crate::filter::Filter;
use crate::{Departure, LinkMeter, Path};

/// A device that writes wrong checksums into packets of at least this many bytes. The receiver
/// would discard them; they are dropped here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongChecksums(pub(crate) u32);

impl Filter for WrongChecksums {
    fn apply(&mut self, _at: Instant, packet: &mut Packet) -> Result<(), DropReason> {
        if packet.size >= self.0 { Err(DropReason::Checksum) } else { Ok(()) }
    }
}

/// Bytes of IPv4 and TCP headers (RFC 791 3.1, RFC 9293 3.1), which segments that are joined share.
const HEADERS: u32 = 40;
/// Largest IP packet in bytes (RFC 791 3.1).
const LARGEST: u32 = 65_535;

/// A device that joins consecutive segments of a connection (GRO, LRO), before a hop that drops
/// packets larger than its MTU.
///
/// The first packet that finds the device idle begins a window. Packets that arrive within the window
/// are forwarded at its end, in order of arrival. Segments of a flow are joined if they have the same
/// size; the last one may be shorter. All segments of a packet that is too large are dropped.
#[derive(Debug)]
pub(crate) struct Joined<P> {
    pub(crate) upstream: P,
    window: Duration,
    mtu: u32,
    min_bytes: u32,
    /// End of the window, if there is one.
    ends: Option<Instant>,
    /// Packets that arrived in the window, each with the index of its group, if it has one.
    held: Vec<(Packet, Option<usize>)>,
    groups: Vec<Group>,
    ready: VecDeque<Departure>,
    load: Load,
    stage: u32,
    drops: VecDeque<Drop>,
}

/// Segments that are joined.
#[derive(Clone, Copy, Debug)]
struct Group {
    flow: FlowId,
    segment_bytes: u32,
    bytes: u32,
    segments: u32,
    /// Whether another segment may follow.
    is_open: bool,
}

impl Group {
    /// Adds a segment, if it may follow.
    fn add(&mut self, bytes: u32) -> bool {
        let joined = self.bytes + bytes.saturating_sub(HEADERS);
        self.is_open &= bytes <= self.segment_bytes && joined <= LARGEST;
        if !self.is_open {
            return false;
        }
        self.bytes = joined;
        self.segments += 1;
        self.is_open = bytes == self.segment_bytes;
        true
    }
}

impl<P: Path> Joined<P> {
    /// The `stage`-th stage of its direction, after `upstream`.
    pub(crate) fn new(upstream: P, window: Duration, mtu: u32, min_bytes: u32, stage: u32) -> Self {
        Self {
            upstream,
            // What arrives at one instant is joined, whoever polls in between.
            window: window.max(Duration::from_nanos(1)),
            mtu,
            min_bytes,
            ends: None,
            held: Vec::new(),
            groups: Vec::new(),
            ready: VecDeque::new(),
            load: Load::default(),
            stage,
            drops: VecDeque::new(),
        }
    }

    fn pull(&mut self, until: Instant) {
        while let Some(Departure { at, packet }) = self.upstream.poll(until) {
            self.close(at);
            self.ends.get_or_insert(at + self.window);
            self.load.add(&packet);
            let group = self.group_for(&packet);
            self.held.push((packet, group));
        }
        self.close(until);
    }

    /// The group that a packet joins, or begins.
    fn group_for(&mut self, packet: &Packet) -> Option<usize> {
        let (flow, bytes) = (packet.flow, packet.size);
        let last = self.groups.iter().rposition(|group| group.flow == flow);
        if bytes < self.min_bytes {
            if let Some(last) = last {
                self.groups[last].is_open = false;
            }
            return None;
        }
        if let Some(last) = last
            && self.groups[last].add(bytes)
        {
            return Some(last);
        }
        let group = Group { flow, segment_bytes: bytes, bytes, segments: 1, is_open: true };
        self.groups.push(group);
        Some(self.groups.len() - 1)
    }

    /// Forwards the packets of a window that has ended by `now`, or drops them.
    fn close(&mut self, now: Instant) {
        let Some(at) = self.ends.filter(|&ends| ends <= now) else { return };
        self.ends = None;
        for (packet, group) in self.held.drain(..) {
            let group = group.map(|group| self.groups[group]);
            if group.is_some_and(|group| group.segments > 1 && group.bytes > self.mtu) {
                self.load.remove(&packet);
                let (stage, reason) = (self.stage, DropReason::TooBig);
                self.drops.push_back(Drop { at, packet, stage, reason });
            } else {
                self.ready.push_back(Departure { at, packet });
            }
        }
        self.groups.clear();
    }
}

impl<P: Path> Path for Joined<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.upstream.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        // Packets still upstream change nothing before the window ends.
        let ready = self.ready.front().map(|departure| departure.at);
        ready.or(self.ends).or_else(|| self.upstream.next_event())
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        self.pull(now);
        if self.ready.front()?.at > now {
            return None;
        }
        let departure = self.ready.pop_front()?;
        self.load.remove(&departure.packet);
        Some(departure)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.upstream.poll_drop().or_else(|| self.drops.pop_front())
    }

    fn load(&self) -> Load {
        self.upstream.load() + self.load
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.upstream.observe(now, visit);
    }
}
