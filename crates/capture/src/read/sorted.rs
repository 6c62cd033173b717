//! Packets in the order of their times, where a file has them a few places off it.
//!
//! Several processors or queues of a network card capture at the same time, and write what they
//! have when they have it. Each packet has its right time, but not its place.

use std::collections::BTreeMap;

use airpath_base::Duration;

use crate::CaptureError;

/// How many places a packet may be off. The budget of a NAPI poll in Linux is 64 packets.
const PLACES: usize = 64;

/// A packet that is earlier by more than this shows that the clock was set back: what waits
/// together in queues of one host was captured within much less.
const LONGEST: Duration = Duration::from_secs(1);

/// A packet that waits for its place.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) time: u64,
    pub(super) frame: u64,
    pub(super) interface: usize,
    pub(super) length: u32,
    pub(super) data: Vec<u8>,
}

/// The packets between the file and the caller.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    waiting: BTreeMap<(u64, u64), Waiting>,
    /// The first packet after the clock was set back: those that wait leave first.
    behind: Option<Waiting>,
    /// Time of the last packet that left since the clock was set back.
    left: u64,
    /// The packet that the caller has.
    pub(super) current: Waiting,
    /// Nothing more comes, or reading failed, which is told after what came before.
    is_over: bool,
    pub(super) failure: Option<CaptureError>,
}

impl Sorted {
    /// Whether another packet must be read before the next one can leave.
    pub(super) fn needs_more(&self) -> bool {
        !self.is_over && self.behind.is_none() && self.waiting.len() < PLACES
    }

    /// Adds the next packet of the file; `None` at its end.
    pub(super) fn add(&mut self, next: Result<Option<Waiting>, CaptureError>) {
        let packet = match next {
            Ok(Some(packet)) => packet,
            Ok(None) => return self.is_over = true,
            Err(error) => {
                (self.is_over, self.failure) = (true, Some(error));
                return;
            }
        };
        let newest = self.waiting.last_key_value().map_or(0, |(&(time, _), _)| time);
        let is_back =
            packet.time < self.left || packet.time.saturating_add(LONGEST.as_nanos()) < newest;
        if is_back {
            self.behind = Some(packet);
        } else {
            self.waiting.insert((packet.time, packet.frame), packet);
        }
    }

    /// Moves the next packet to `current`; false at the end.
    pub(super) fn advance(&mut self) -> bool {
        if self.waiting.is_empty()
            && let Some(first) = self.behind.take()
        {
            self.left = 0;
            self.waiting.insert((first.time, first.frame), first);
        }
        let Some((_, next)) = self.waiting.pop_first() else { return false };
        self.left = next.time;
        self.current = next;
        true
    }
}
