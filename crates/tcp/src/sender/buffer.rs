//! The send buffer: how much the application has written.

use crate::{EndpointConfig, SendMemoryConfig};

/// Most payload of what is written and not sent yet, for one overhead: an IP packet's.
const LARGEST: u64 = 65_160;

/// Most memory that is free at once: above it the products below would not fit.
const MOST_FREE: u64 = 1 << 47;

/// How much the application may write ahead of what is acknowledged.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Its size, or the most that it grows to.
    size: u64,
    /// It grows with cwnd to this many times cwnd.
    factor: Option<u32>,
    mss: u32,
    memory: Option<Memory>,
}

/// A buffer counted in memory, and the application that waits for it.
#[derive(Debug)]
struct Memory {
    config: SendMemoryConfig,
    /// What the application has written, as an offset.
    written: u64,
    /// It found the buffer full and waits to be woken.
    waits: bool,
    /// The largest cwnd so far, which the two below go by.
    largest_window: f64,
    /// What the buffer has grown to.
    size: u64,
    /// As much has to be free before an application that waits is woken.
    wakes_at: u64,
}

/// What a sender has to say to its buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// First byte not acknowledged, next byte to send, end of what the application offers.
    pub(super) una: u64,
    pub(super) nxt: u64,
    pub(super) offered: u64,
    /// Bursts of which something is outstanding.
    pub(super) bursts: u32,
    /// Largest cwnd so far, in segments.
    pub(super) largest_window: f64,
}

impl SendBuffer {
    pub(super) fn new(config: &EndpointConfig, factor: Option<u32>) -> Self {
        let size = config.send_buffer;
        let memory = config.send_memory.map(|config| Memory::new(config, size, factor));
        Self { size, factor, mss: config.mss, memory }
    }

    /// End of what it holds.
    #[inline]
    pub(super) fn written(&self, stream: Stream) -> u64 {
        if let Some(memory) = &self.memory {
            return memory.written.min(stream.offered);
        }
        let size = match self.factor {
            None => self.size,
            // Linux: twice cwnd, so that what recovery needs is there; it never shrinks.
            Some(factor) => {
                let wanted = stream.largest_window as u64 * u64::from(factor) * u64::from(self.mss);
                self.size.min(wanted.max(stream.nxt - stream.una))
            }
        };
        stream.offered.min(stream.una.saturating_add(size))
    }

    /// Room was made, or more is offered: the application writes, if it may.
    #[inline]
    pub(super) fn fill(&mut self, stream: Stream) {
        if self.memory.is_some() {
            self.write(stream);
        }
    }

    fn write(&mut self, stream: Stream) {
        let Some(memory) = &mut self.memory else { return };
        if stream.largest_window > memory.largest_window {
            memory.grow(stream.largest_window, self.size, self.factor);
        }
        let overhead = u64::from(memory.config.burst_overhead);
        let unsent = memory.written.saturating_sub(stream.nxt);
        let used = memory.written.saturating_sub(stream.una)
            + overhead * (u64::from(stream.bursts) + unsent.div_ceil(LARGEST));
        // Seen with Linux 6.18: a writer that waits sees no room before a third of the buffer is free.
        let free = memory.size.saturating_sub(used);
        if free == 0 || (memory.waits && free < memory.wakes_at) {
            return;
        }
        let room = free.min(MOST_FREE) * LARGEST / (LARGEST + overhead);
        memory.written = stream.offered.min(memory.written.saturating_add(room.max(1)));
        memory.waits = memory.written < stream.offered;
    }
}

impl Memory {
    fn new(config: SendMemoryConfig, most: u64, factor: Option<u32>) -> Self {
        let (written, waits, size, wakes_at) = (1, false, 0, 0);
        let mut memory = Self { config, written, waits, largest_window: 0.0, size, wakes_at };
        memory.grow(0.0, most, factor);
        memory
    }

    /// cwnd is larger than it was before.
    fn grow(&mut self, largest_window: f64, most: u64, factor: Option<u32>) {
        self.largest_window = largest_window;
        self.size = factor.map_or(most, |factor| {
            let segments = largest_window as u64 * u64::from(factor);
            most.min(segments * u64::from(self.config.segment))
        });
        self.wakes_at = self.size / u64::from(self.config.wake_divisor.max(1));
    }
}
