//! The send buffer: how much the application has written.

use std::collections::VecDeque;

use crate::{EndpointConfig, SendMemoryConfig};

/// Most payload of unsent data per overhead: that of an IP packet.
const LARGEST: u64 = 65_160;

/// A growing buffer has room for at least this window, in segments (RFC 6928 2).
const LEAST_WINDOW: u32 = 10;

/// How much the application may write ahead of what is acknowledged.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// The buffer's size; if it grows, its largest.
    size: u64,
    /// How many times cwnd it grows to; `None`: it does not grow.
    factor: Option<u32>,
    /// Without memory accounting: room for `factor` times the largest cwnd so far, or the full
    /// size.
    room: u64,
    mss: u32,
    memory: Option<Memory>,
}

/// A buffer accounted in memory, and the application that waits for it.
#[derive(Debug)]
struct Memory {
    config: SendMemoryConfig,
    /// What the application has written, as an offset.
    written: u64,
    /// Ends of the pieces in which it was written, except for those already sent.
    ends: VecDeque<u64>,
    /// The application found the buffer full and waits to be woken.
    waits: bool,
    /// Something was acknowledged, which may have made room for a waiting application.
    freed: bool,
    /// The size to which the buffer has grown.
    size: u64,
    /// How much must be free before a waiting application is woken.
    wakes_at: u64,
}

/// Offsets in the stream. The SYN is byte 0, data begins at byte 1, and a FIN takes the byte after the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    /// First byte not acknowledged (SND.UNA).
    pub(super) una: u64,
    /// Next byte to send for the first time (SND.NXT).
    pub(super) nxt: u64,
    /// End of the data that the application has offered; some of it may still wait for the buffer.
    pub(super) offered: u64,
}

/// Input of a write to a buffer that is accounted in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    /// Bursts of which some data is outstanding.
    pub(super) bursts: u32,
    /// Largest window of the peer so far, in bytes.
    pub(super) peer_window: u64,
    /// How much is sent as soon as it is written, if nothing waits, and in bursts of what size;
    /// `None`: each piece is sent as a whole.
    pub(super) leaves: u64,
    pub(super) burst: Option<u64>,
}

/// What a writing application did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    /// It did not write.
    None,
    /// It wrote behind data that was waiting to be sent.
    Behind,
    /// It wrote, and less than a segment was waiting.
    Ahead,
}

impl SendBuffer {
    /// A buffer for a sender that starts with this cwnd, in segments.
    pub(super) fn new(config: &EndpointConfig, factor: Option<u32>, cwnd: f64) -> Self {
        let size = config.send_buffer;
        let start = config.initial_window;
        let memory = config.send_memory.map(|memory| Memory::new(memory, start, size, factor));
        let mut buffer = Self { size, factor, room: size, mss: config.mss, memory };
        buffer.note_window(cwnd);
        buffer
    }

    /// End of what the buffer holds.
    #[inline]
    pub(super) fn written(&self, stream: Offsets) -> u64 {
        if let Some(memory) = &self.memory {
            return memory.written.min(stream.offered);
        }
        let size = self.size.min(self.room.max(stream.nxt - stream.una));
        stream.offered.min(stream.una.saturating_add(size))
    }

    /// Notes a cwnd, which may be larger than ever. Linux: the buffer has room for twice cwnd, so
    /// that it holds what recovery needs; it never shrinks.
    pub(super) fn note_window(&mut self, cwnd: f64) {
        if let Some(factor) = self.factor {
            self.room = cwnd as u64 * u64::from(factor) * u64::from(self.mss);
        }
    }

    /// An acknowledgement arrived.
    #[inline]
    pub(super) fn note_acknowledgement(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.freed = true;
        }
    }

    /// Whether an application waits and something was acknowledged since it last looked for room;
    /// returns true only once.
    #[inline]
    pub(super) fn takes_freed(&mut self) -> bool {
        let freed = |memory: &mut Memory| std::mem::take(&mut memory.freed) && memory.waits;
        self.memory.as_mut().is_some_and(freed)
    }

    /// Whether idleness is noticed when the application writes again, not when its data has been
    /// sent.
    pub(super) const fn tells_idleness(&self) -> bool {
        self.memory.is_some()
    }

    /// Grows the buffer for a waiting application, to as many times `cwnd` as configured.
    pub(super) fn grow(&mut self, cwnd: u32) {
        if let Some(memory) = &mut self.memory {
            memory.grow(cwnd, self.size, self.factor);
        }
    }

    /// Room was made, or more data is offered: the application writes, if it may.
    #[inline]
    pub(super) fn fill(&mut self, stream: Offsets, writing: &Writing) -> Write {
        match &mut self.memory {
            None => Write::None,
            Some(memory) => memory.write(stream, writing, u64::from(self.mss)),
        }
    }

    /// How many of the `unsent` bytes from `nxt` on belong to the piece in which they were written.
    /// Seen with Linux 6.18: a burst that carries the rest of a piece does not wait for more.
    #[inline]
    pub(super) fn first_piece(&mut self, nxt: u64, unsent: u64) -> u64 {
        let Some(memory) = &mut self.memory else { return unsent };
        while memory.ends.front().is_some_and(|&end| end <= nxt) {
            memory.ends.pop_front();
        }
        memory.ends.front().map_or(unsent, |&end| unsent.min(end - nxt))
    }

    /// Whether the buffer is accounted in memory.
    #[inline]
    pub(super) const fn is_memory(&self) -> bool {
        self.memory.is_some()
    }
}

impl Memory {
    fn new(config: SendMemoryConfig, initial_window: u32, most: u64, factor: Option<u32>) -> Self {
        let (written, size, wakes_at, ends) = (1, 0, 0, VecDeque::new());
        let mut memory = Self { config, written, ends, waits: false, freed: false, size, wakes_at };
        memory.grow(initial_window, most, factor);
        memory
    }

    fn write(&mut self, stream: Offsets, writing: &Writing, mss: u64) -> Write {
        let Writing { bursts, peer_window, leaves, burst } = *writing;
        let overhead = u64::from(self.config.burst_overhead);
        // Seen with Linux 6.18: at most half of the largest window, in whole segments.
        let piece = (LARGEST.min(peer_window / 2) / mss).max(1) * mss;
        let before = self.written;
        let unsent = before.saturating_sub(stream.nxt);
        let used = before.saturating_sub(stream.una)
            + overhead * (u64::from(bursts) + unsent.div_ceil(piece));
        // Seen with Linux 6.18: a waiting writer sees no room before a third of the buffer is free.
        let free = self.size.saturating_sub(used);
        if free == 0 || (self.waits && free < self.wakes_at) {
            self.waits = before < stream.offered;
            return Write::None;
        }
        // Seen with Linux 6.18: room is checked before each piece, not for each byte of it, and
        // what has been sent of the last piece is filled up again. While bursts smaller than a
        // piece are sent there is always such a remainder, so everything that the windows allow is
        // written.
        let burst = burst.filter(|&burst| burst < piece);
        let (refilled, own) = match (unsent, burst) {
            (0, Some(burst)) => (leaves, overhead * (leaves / burst.max(1))),
            (0, None) => (leaves.min(piece), 0),
            (unsent, _) => (piece.saturating_sub(unsent), 0),
        };
        let pieces = match free.saturating_sub(refilled + own).div_ceil(piece + overhead) {
            0 => u64::from(unsent == 0),
            pieces => pieces,
        };
        let room = pieces.saturating_mul(piece).saturating_add(refilled);
        self.written = stream.offered.min(before.saturating_add(room));
        self.waits = self.written < stream.offered;
        self.cut(before, stream.nxt, piece, refilled);
        match self.written > before {
            false => Write::None,
            true if unsent < mss => Write::Ahead,
            true => Write::Behind,
        }
    }

    /// Cuts what was written from `before` on into pieces: it fills up the last piece, part of
    /// which may have been sent, and continues with new ones. Of the first new piece, `leaves`
    /// bytes are sent meanwhile.
    fn cut(&mut self, before: u64, nxt: u64, piece: u64, leaves: u64) {
        let mut from = before;
        if before > nxt && self.ends.pop_back().is_some() {
            from = self.ends.back().map_or(nxt, |&end| end.max(nxt));
        } else if before <= nxt {
            from = from.saturating_add(leaves);
        }
        loop {
            from = self.written.min(from.saturating_add(piece));
            self.ends.push_back(from);
            if from == self.written {
                break;
            }
        }
    }

    /// Makes room for a window of this many segments.
    fn grow(&mut self, cwnd: u32, most: u64, factor: Option<u32>) {
        let wanted = factor.map_or(most, |factor| {
            let segments = u64::from(cwnd.max(LEAST_WINDOW)) * u64::from(factor);
            most.min(segments * u64::from(self.config.segment))
        });
        if wanted > self.size {
            self.size = wanted;
            self.wakes_at = wanted / u64::from(self.config.wake_divisor.max(1));
        }
    }
}
