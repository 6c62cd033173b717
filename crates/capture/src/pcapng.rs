//! Captures at several places at once: pcapng (draft-ietf-opsawg-pcapng), with one interface for
//! each place.
//!
//! Timestamps are the model's, so that the difference between two places is the delay of the model.
//! Another thread writes the file, so that the capturing thread never waits for a disk. If the disk
//! is too slow or full, packets are dropped and counted.
//!
//! Packets follow an Ethernet header: libpcap reads several interfaces only if their link type has
//! the same number in the file as in the library, which LINKTYPE_RAW does not.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};

use airpath_base::Instant;

use crate::read::pcapng::{ENHANCED_PACKET, IF_NAME, IF_TSRESOL, INTERFACE, MAGIC, SECTION};

/// Bytes that are passed to the writing thread at once, and room for the packet that exceeds them.
const CHUNK: usize = 1 << 20;
const ROOM: usize = CHUNK + (1 << 17);

/// Most chunks that wait for the disk.
const WAITING: usize = 64;

/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
/// if_tsresol: timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Bytes of an Ethernet header. The addresses in it are locally administered and carry no meaning.
pub const HEADER_BYTES: usize = 14;
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Writes packets to a file; the file is complete after [`finish`](Self::finish).
#[derive(Debug)]
pub struct Writer {
    buffer: Vec<u8>,
    /// Packets in `buffer`.
    packets: u64,
    /// Nanoseconds since 1970 at the model's time 0.
    epoch: u64,
    to: SyncSender<Chunk>,
    /// Buffers that were written and can be reused.
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<Captured>,
    dropped: u64,
    /// Whether the capturing thread waits for the disk.
    waits: bool,
}

/// A number of whole blocks.
struct Chunk {
    bytes: Vec<u8>,
    packets: u64,
}

/// How many packets a capture wrote and dropped.
#[derive(Debug, Default)]
pub struct Captured {
    /// Packets in the file.
    pub written: u64,
    /// Packets that are not in the file because the disk was slower than they arrived.
    pub dropped: u64,
    /// Packets that are not in the file because writing had failed.
    pub lost: u64,
    /// Why writing failed: the file ends there, after a whole packet.
    pub failed: Option<io::Error>,
}

impl Writer {
    /// Creates the file, with an interface for each name.
    ///
    /// # Errors
    ///
    /// If the file or its thread cannot be created.
    pub fn create(file: &Path, places: &[String]) -> io::Result<Self> {
        // The file holds other users' traffic: nobody else may read it.
        let file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(file)?;
        let (to, chunks) = sync_channel(WAITING);
        let (back, empty) = channel();
        let writer = thread::Builder::new().spawn(move || {
            let mut written = Written { file, last: (0, 0), length: 0 };
            let mut captured = Captured::default();
            for chunk in &chunks {
                written.add(&chunk, &mut captured);
                // Nobody receives the buffer any more when the capture ends.
                let _ = back.send(chunk.bytes);
            }
            captured
        })?;
        let buffer = Vec::with_capacity(ROOM);
        let (epoch, waits) = (0, false);
        let mut capture = Self { buffer, packets: 0, epoch, to, empty, writer, dropped: 0, waits };
        // Byte order, version 1.0, section length unknown.
        let mut section = MAGIC.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        capture.block(SECTION, &[&section]);
        for place in places {
            let mut interface = ETHERNET.to_le_bytes().to_vec();
            interface.extend([0; 6]);
            option(&mut interface, IF_NAME, place.as_bytes());
            option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
            option(&mut interface, 0, &[]);
            capture.block(INTERFACE, &[&interface]);
        }
        Ok(capture)
    }

    /// Sets the real time of the model's time 0, in nanoseconds since 1970.
    pub fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// From now on the caller waits if the disk is slow, and no packet is dropped.
    pub fn wait_for_the_disk(&mut self) {
        self.waits = true;
    }

    /// Writes a packet of `length` bytes that was at a place; only its headers are kept.
    pub fn headers(&mut self, place: usize, at: Instant, headers: &[u8], length: u32) {
        self.add(place, at, &[], headers, length);
    }

    /// Writes a packet that was at a place. Returns the copy in the buffer, so that the caller can
    /// fill in what is missing.
    pub fn packet(&mut self, place: usize, at: Instant, packet: &[u8]) -> &mut [u8] {
        self.tunnelled(place, at, &[], packet)
    }

    /// Writes a packet that was at a place, in a tunnel with these headers.
    pub fn tunnelled(
        &mut self,
        place: usize,
        at: Instant,
        outer: &[u8],
        packet: &[u8],
    ) -> &mut [u8] {
        self.add(place, at, outer, packet, (outer.len() + packet.len()) as u32)
    }

    fn add(
        &mut self,
        place: usize,
        at: Instant,
        outer: &[u8],
        packet: &[u8],
        length: u32,
    ) -> &mut [u8] {
        if self.buffer.len() >= CHUNK {
            self.flush();
        }
        let time = self.epoch + at.as_nanos();
        let kept = (HEADER_BYTES + outer.len() + packet.len()) as u32;
        let head = [
            (place as u32).to_le_bytes(),
            ((time >> 32) as u32).to_le_bytes(),
            (time as u32).to_le_bytes(),
            kept.to_le_bytes(),
            (HEADER_BYTES as u32 + length).to_le_bytes(),
        ];
        let version = outer.first().or(packet.first()).map_or(0, |first| first >> 4);
        let protocol: [u8; 2] = if version == 6 { [0x86, 0xdd] } else { [8, 0] };
        let parts = [head.as_flattened(), &ADDRESSES, &protocol, outer, packet];
        let block = self.block(ENHANCED_PACKET, &parts);
        self.packets += 1;
        let from = block + 8 + 20 + HEADER_BYTES + outer.len();
        &mut self.buffer[from..from + packet.len()]
    }

    /// Closes the file and returns the counts.
    pub fn finish(mut self) -> Captured {
        let chunk = Chunk { bytes: std::mem::take(&mut self.buffer), packets: self.packets };
        // Now there is time to wait. Without the writing thread the chunk is lost.
        let unsent = self.to.send(chunk).err().map_or(0, |unsent| unsent.0.packets);
        drop(self.to);
        let captured = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Captured { dropped: self.dropped, lost: captured.lost + unsent, ..captured }
    }

    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.buffer);
        let chunk = Chunk { bytes, packets: std::mem::take(&mut self.packets) };
        let sent = if self.waits {
            self.to.send(chunk).map_err(|unsent| TrySendError::Disconnected(unsent.0))
        } else {
            self.to.try_send(chunk)
        };
        match sent {
            // Each buffer is allocated once; the first ones when they are needed.
            Ok(()) => {
                self.buffer = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(ROOM));
            }
            Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) => {
                self.dropped += chunk.packets;
                self.buffer = chunk.bytes;
            }
        }
        self.buffer.clear();
    }

    /// Appends a block, padded to 32 bits, with its length before and after; returns where it
    /// begins.
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

/// The file as written so far.
struct Written {
    file: File,
    /// Where the last chunk begins, and how many packets it has.
    last: (u64, u64),
    length: u64,
}

impl Written {
    /// Writes a chunk; after a failure it writes nothing more.
    fn add(&mut self, chunk: &Chunk, captured: &mut Captured) {
        if captured.failed.is_none() {
            match self.file.write_all(&chunk.bytes) {
                Ok(()) => {
                    self.last = (self.length, chunk.packets);
                    self.length += chunk.bytes.len() as u64;
                    captured.written += chunk.packets;
                    return;
                }
                Err(error) => captured.failed = Some(error),
            }
            // Only whole blocks stay, and removing the last chunk makes room for whatever else is
            // to be written to a full disk. Devices and pipes cannot be truncated.
            let (from, packets) = self.last;
            if from > 0 && self.file.set_len(from).is_ok() {
                captured.written -= packets;
                captured.lost += packets;
            }
        }
        captured.lost += chunk.packets;
    }
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
        let captured = capture.finish();
        assert_eq!((captured.written, captured.dropped, captured.lost), (1, 0, 0));
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        // 4.1: type, length, byte-order magic, version, section length -1, length.
        assert_eq!([word(0), word(4), word(8), word(12)], [SECTION, 28, 0x1a2b_3c4d, 1]);
        assert_eq!([word(16), word(20), word(24)], [u32::MAX, u32::MAX, 28]);
        // 4.2: LINKTYPE_ETHERNET; if_name; if_tsresol; end of options.
        assert_eq!([word(28), word(36), word(44)], [INTERFACE, 1, 6 << 16 | 2]);
        assert_eq!(&bytes[48..54], b"server");
        assert_eq!([word(56), word(60), word(64)], [1 << 16 | 9, 9, 0]);
        // 4.3: interface, time, lengths, data in 32-bit words.
        let packet = bytes.len() - 52;
        let fields: Vec<u32> = (0..7).map(|index| word(packet + 4 * index)).collect();
        assert_eq!(fields, [ENHANCED_PACKET, 52, 1, 1, 7, 19, 19]);
        assert_eq!(&bytes[packet + 28..packet + 40], &ADDRESSES);
        assert_eq!(&bytes[packet + 40..packet + 48], &[8, 0, 1, 2, 3, 4, 5, 0]);
        assert_eq!(word(packet + 48), 52);
    }

    /// Writes packets to a place that is slow or fails.
    fn fill(file: &Path, packets: u64) -> Captured {
        let mut capture = Writer::create(file, &["ue".to_owned()]).unwrap();
        for _ in 0..packets {
            capture.packet(0, Instant::ZERO, &[0x45; 1500]);
        }
        capture.finish()
    }

    #[test]
    fn a_full_disk_ends_the_file_and_nothing_else() {
        let captured = fill(Path::new("/dev/full"), 5000);
        assert_eq!(
            (captured.written, captured.written + captured.dropped + captured.lost),
            (0, 5000)
        );
        assert!(captured.lost > 0);
        let failed = captured.failed.map(|error| error.kind());
        assert_eq!(failed, Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn a_slow_disk_leaves_packets_out_and_no_memory_is_taken() {
        let pipe = std::env::temp_dir().join(format!("airpath-{}.pipe", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        // The reader takes the beginning of the file, and then nothing until all packets were
        // written.
        let (full, is_full) = channel::<()>();
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut file = File::open(pipe).unwrap();
                let _ = is_full.recv();
                io::copy(&mut file, &mut io::sink()).unwrap()
            }
        });
        let mut capture = Writer::create(&pipe, &["ue".to_owned()]).unwrap();
        let packets = 200_000;
        for _ in 0..packets {
            capture.packet(0, Instant::ZERO, &[0x45; 1500]);
        }
        drop(full);
        let captured = capture.finish();
        reader.join().unwrap();
        std::fs::remove_file(&pipe).unwrap();
        assert!(captured.lost == 0 && captured.failed.is_none(), "{captured:?}");
        assert_eq!(captured.written + captured.dropped, packets);
        // At most 66 chunks of a mebibyte: those that wait, one that is being written, and the last
        // one.
        let most = 66 * CHUNK as u64 / 1500;
        assert!(captured.dropped > 0 && captured.written <= most, "{captured:?}");
    }
}
