//! A sender's stream: how much of it was offered, written, sent and acknowledged.

use super::buffer::{Offsets, SendBuffer, Write, Writing};
use crate::event::SendLimit;

/// A stream, and the buffer between the application and TCP. SND.UNA ≤ SND.NXT ≤ the end of the
/// data written, plus one for a FIN.
#[derive(Debug)]
pub(crate) struct Stream {
    at: Offsets,
    closed: bool,
    buffer: SendBuffer,
}

impl Stream {
    pub(super) const fn new(buffer: SendBuffer) -> Self {
        Self { at: Offsets { una: 1, nxt: 1, offered: 1 }, closed: false, buffer }
    }

    /// First byte not acknowledged (SND.UNA).
    #[inline(always)]
    pub(super) const fn una(&self) -> u64 {
        self.at.una
    }

    /// Next byte to send for the first time (SND.NXT).
    #[inline(always)]
    pub(crate) const fn nxt(&self) -> u64 {
        self.at.nxt
    }

    /// End of what the send buffer holds, as an offset.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.buffer.written(self.at)
    }

    /// Bytes in the send buffer that were never sent.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.written().saturating_sub(self.at.nxt)
    }

    /// Payload bytes acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.at.una.min(self.at.offered) - 1
    }

    /// Whether all data and the FIN were acknowledged.
    pub(crate) const fn is_finished(&self) -> bool {
        self.closed && self.at.una > self.at.offered
    }

    /// Whether the application has offered something, or closed.
    pub(crate) const fn has_work(&self) -> bool {
        self.at.offered > 1 || self.closed
    }

    /// Whether the FIN may be sent after what the buffer holds, and has not been sent yet.
    #[inline]
    pub(super) fn fin_due(&self) -> bool {
        self.closed && self.written() == self.at.offered && self.at.nxt <= self.at.offered
    }

    /// Why nothing is left to send: the buffer is full, or the application has nothing.
    pub(super) fn limit(&self) -> SendLimit {
        if self.written() < self.at.offered {
            SendLimit::SendBuffer
        } else {
            SendLimit::Application
        }
    }

    /// The application offers `bytes` more.
    pub(super) fn offer(&mut self, bytes: u64) {
        debug_assert!(!self.closed, "offered after close");
        if !self.has_work() {
            // What was acknowledged before the first write has freed nothing.
            self.buffer.takes_freed();
        }
        self.at.offered = self.at.offered.saturating_add(bytes);
    }

    /// The application stops: data that the buffer has not taken is withdrawn, and a FIN follows the rest.
    pub(crate) fn close(&mut self) {
        if !self.closed {
            self.at.offered = self.written();
            self.closed = true;
        }
    }

    /// Completes the application's current write of this many bytes, then closes.
    pub(crate) fn close_after_write(&mut self, bytes: u64) {
        if !self.closed {
            let written = (self.written() - 1).checked_next_multiple_of(bytes);
            let end = written.map_or(u64::MAX, |end| end.saturating_add(1));
            self.at.offered = self.at.offered.min(end);
            self.closed = true;
        }
    }

    /// Closes after everything offered has been written.
    pub(crate) const fn close_when_written(&mut self) {
        self.closed = true;
    }

    /// Everything up to `end` has been sent.
    #[inline(always)]
    pub(super) fn send_to(&mut self, end: u64) {
        debug_assert!(end > self.at.nxt, "nothing new is sent up to {end}: {self:?}");
        debug_assert!(end <= self.written() + u64::from(self.closed), "beyond {end}: {self:?}");
        self.at.nxt = end;
    }

    /// Everything up to `ack` is acknowledged.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, ack: u64) {
        debug_assert!(ack > self.at.una && ack <= self.at.nxt, "{ack} acknowledged: {self:?}");
        self.at.una = ack;
    }

    /// The send buffer.
    #[inline]
    pub(super) const fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    /// The send buffer, for changes.
    #[inline]
    pub(super) const fn buffer_mut(&mut self) -> &mut SendBuffer {
        &mut self.buffer
    }

    /// The application writes, if the send buffer has room.
    pub(super) fn write(&mut self, writing: &Writing) -> Write {
        self.buffer.fill(self.at, writing)
    }

    /// How many of the unsent bytes the application wrote in the same piece as the first one.
    #[inline]
    pub(super) fn first_piece(&mut self, unsent: u64) -> u64 {
        self.buffer.first_piece(self.at.nxt, unsent)
    }
}
