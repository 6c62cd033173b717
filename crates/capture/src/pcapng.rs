//! A capture at several places at once: pcapng (draft-ietf-opsawg-pcapng), one interface a place.
//!
//! Times are the model's, so that the difference between two places is what the model did. Another
//! thread writes the file: who captures never waits for a disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use airpath_base::Instant;

/// Bytes that are handed to the writing thread at once.
const CHUNK: usize = 1 << 20;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// LINKTYPE_RAW: an IP packet, its version in its first bits.
const RAW_IP: u16 = 101;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Timestamps are 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes packets; the file is complete after [`finish`](Self::finish).
#[derive(Debug)]
pub struct Writer {
    buffer: Vec<u8>,
    /// Nanoseconds since 1970 at the model's time 0.
    epoch: u64,
    to: Sender<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Makes the file, with an interface of each name.
    ///
    /// # Errors
    ///
    /// When the file or its thread cannot be made.
    pub fn create(file: &Path, places: &[String]) -> io::Result<Self> {
        let file = File::create(file)?;
        let (to, chunks) = channel();
        let writer = thread::Builder::new().spawn(move || write_all(file, &chunks))?;
        let mut capture = Self { buffer: Vec::with_capacity(2 * CHUNK), epoch: 0, to, writer };
        // Byte order, version 1.0, length of the section unknown.
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        capture.block(SECTION, &[&section]);
        for place in places {
            let mut interface = RAW_IP.to_le_bytes().to_vec();
            interface.extend([0; 6]);
            option(&mut interface, IF_NAME, place.as_bytes());
            option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
            option(&mut interface, 0, &[]);
            capture.block(INTERFACE, &[&interface]);
        }
        Ok(capture)
    }

    /// The model's time 0 is so many nanoseconds after 1970.
    pub fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// A packet was at a place. Returns the capture's copy of it, for what is still to be filled in.
    pub fn packet(&mut self, place: usize, at: Instant, packet: &[u8]) -> &mut [u8] {
        self.tunnelled(place, at, &[], packet)
    }

    /// A packet was at a place, in a tunnel with these headers.
    pub fn tunnelled(
        &mut self,
        place: usize,
        at: Instant,
        outer: &[u8],
        packet: &[u8],
    ) -> &mut [u8] {
        if self.buffer.len() >= CHUNK {
            self.flush();
        }
        let time = self.epoch + at.as_nanos();
        let length = ((outer.len() + packet.len()) as u32).to_le_bytes();
        let head = [
            (place as u32).to_le_bytes(),
            ((time >> 32) as u32).to_le_bytes(),
            (time as u32).to_le_bytes(),
            length,
            length,
        ];
        let block = self.block(PACKET, &[head.as_flattened(), outer, packet]);
        let from = block + 8 + 20 + outer.len();
        &mut self.buffer[from..from + packet.len()]
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// When it could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        drop(self.to);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn flush(&mut self) {
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(2 * CHUNK));
        // Without a writer its error comes from `finish`.
        let _ = self.to.send(full);
    }

    /// Appends a block, padded to 32 bits, its length before and after; where it begins.
    fn block(&mut self, kind: u32, parts: &[&[u8]]) -> usize {
        let from = self.buffer.len();
        let body: usize = parts.iter().map(|part| part.len()).sum();
        let length = (12 + body.next_multiple_of(4)) as u32;
        self.buffer.extend(kind.to_le_bytes());
        self.buffer.extend(length.to_le_bytes());
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.buffer.resize(from + length as usize - 4, 0);
        self.buffer.extend(length.to_le_bytes());
        from
    }
}

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    block.resize(block.len().next_multiple_of(4), 0);
}

fn write_all(mut file: File, chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    chunks.iter().try_for_each(|chunk| file.write_all(&chunk))
}

#[cfg(test)]
mod tests {
    use airpath_base::Duration;

    use super::*;

    #[test]
    fn blocks_are_as_the_draft_has_them() {
        let file = std::env::temp_dir().join(format!("airpath-{}.pcapng", std::process::id()));
        let places = ["server".to_owned(), "ue".to_owned()];
        let mut capture = Writer::create(&file, &places).unwrap();
        capture.begin(1 << 32);
        let at = Instant::ZERO + Duration::from_nanos(7);
        capture.packet(1, at, &[1, 2, 3, 4, 0])[4] = 5;
        capture.finish().unwrap();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        // 4.1: type, length, byte-order magic, version, section length -1, length.
        assert_eq!([word(0), word(4), word(8), word(12)], [SECTION, 28, 0x1a2b_3c4d, 1]);
        assert_eq!([word(16), word(20), word(24)], [u32::MAX, u32::MAX, 28]);
        // 4.2: LINKTYPE_RAW; if_name; if_tsresol; end of options.
        assert_eq!([word(28), word(36), word(44)], [INTERFACE, 101, 6 << 16 | 2]);
        assert_eq!(&bytes[48..54], b"server");
        assert_eq!([word(56), word(60), word(64)], [1 << 16 | 9, 9, 0]);
        // 4.3: interface, time, lengths, data in 32-bit words.
        let packet = bytes.len() - 40;
        let fields: Vec<u32> = (0..7).map(|index| word(packet + 4 * index)).collect();
        assert_eq!(fields, [PACKET, 40, 1, 1, 7, 5, 5]);
        assert_eq!(&bytes[packet + 28..packet + 36], &[1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(word(packet + 36), 40);
    }
}
