//! A window on the bytes of a file, which only moves forward.

use std::io::{self, Read};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// The bytes from [`at`](Self::at) on, as far as they were requested.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The bytes in the window: `buffer[start..end]`.
    start: usize,
    end: usize,
    at: u64,
    ended: bool,
}

impl Input {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Self {
        Self { source, buffer: vec![0; CHUNK], start: 0, end: 0, at: 0, ended: false }
    }

    /// Position in the file.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Requests this many bytes; whether the file has them.
    #[inline]
    pub(super) fn ask(&mut self, bytes: usize) -> io::Result<bool> {
        if self.end - self.start >= bytes { Ok(true) } else { self.fill(bytes) }
    }

    #[cold]
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes.next_multiple_of(CHUNK), 0);
        }
        while self.end < bytes && !self.ended {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end >= bytes)
    }

    /// The bytes in the window: at least those that were requested, unless the file ends.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Moves past bytes that are in the window.
    #[inline]
    pub(super) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start);
        self.start += bytes;
        self.at += bytes as u64;
    }

    /// Moves past bytes, also past those that were not requested; whether the file has them.
    pub(super) fn skip(&mut self, mut bytes: u64) -> io::Result<bool> {
        while bytes > 0 {
            let there = self.bytes().len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.consume(there);
            bytes -= there as u64;
            if bytes > 0 && !self.ask(1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
