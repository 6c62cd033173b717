//! Reading the packets of a capture, one after another.

mod input;
mod interface;
mod order;
mod pcap;
pub(crate) mod pcapng;
mod sorted;
mod source;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use airpath_base::Instant;
use serde::Serialize;

use crate::CaptureError;
use input::Input;
pub use interface::Interface;
use order::ByteOrder;
use sorted::{Sorted, Waiting};
pub use source::Compression;

/// Largest packet, and largest block of the kinds that are parsed.
const MOST_BYTES: usize = 16 << 20;

/// Most interfaces in all sections together.
const MOST_INTERFACES: usize = 4096;

/// Reads packets in file order.
///
/// Memory use does not grow with the file: a packet is valid until the next one is requested.
pub struct Reader {
    name: String,
    /// The file, if it can be opened again.
    file: Option<PathBuf>,
    input: Input,
    compression: Option<Compression>,
    format: Format,
    interfaces: Vec<Interface>,
    /// Bytes of the last packet's record, which are skipped before the next packet.
    done: usize,
    /// Time of the last packet, for packets that have none.
    time: u64,
    /// Number of the last packet in the file.
    frame: u64,
    /// Present if packets leave in the order of their times.
    sorted: Option<Box<Sorted>>,
}

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Number of the packet in the file, from 1.
    pub frame: u64,
    /// Index of its interface in [`Reader::interfaces`].
    pub interface: usize,
    /// When the packet was captured, since 1970.
    pub time: Instant,
    /// Length of the packet when it was captured, in bytes.
    pub length: u32,
    /// The captured bytes, from the link-layer header on.
    pub data: &'a [u8],
}

/// Format of a capture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    /// One interface, one link type.
    Pcap,
    /// Sections with interfaces.
    Pcapng,
}

enum Format {
    Pcap(pcap::Header),
    /// Index of the first interface of this section.
    Pcapng {
        order: ByteOrder,
        interfaces: usize,
    },
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not a capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let file = File::open(path);
        let file =
            file.map_err(|source| CaptureError::Read { name: name.clone(), at: 0, source })?;
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        let reader = Self::new(Box::new(file), name)?;
        Ok(Self { file: is_file.then(|| path.to_owned()), ..reader })
    }

    /// The file that is read, if it can be read again: not a pipe.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// Reads from any source; error messages call it `name`.
    ///
    /// # Errors
    ///
    /// If the source cannot be read, or is not a capture.
    pub fn new(source: Box<dyn Read + Send>, name: String) -> Result<Self, CaptureError> {
        let failed =
            |name: &str, source| CaptureError::Read { name: name.to_owned(), at: 0, source };
        let (source, compression) =
            source::decompressed(source).map_err(|error| failed(&name, error))?;
        let mut input = Input::new(source);
        input.ask(pcap::HEADER_BYTES).map_err(|error| failed(&name, error))?;
        let format = match Format::of(&mut input) {
            Some(format) => format,
            None => return Err(CaptureError::NoCapture { found: beginning(input.bytes()), name }),
        };
        let mut interfaces = Vec::new();
        if let Format::Pcap(header) = &format {
            let link_type = header.link_type;
            interfaces.push(Interface { link_type, ..Interface::default() });
        }
        let file = None;
        Ok(Self {
            name,
            file,
            input,
            compression,
            format,
            interfaces,
            done: 0,
            time: 0,
            frame: 0,
            sorted: None,
        })
    }

    /// Opens a file whose packets may be a few places off the order of their times, to read them in
    /// that order. A clock that was set back stays visible.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`].
    pub fn open_sorted(path: &Path) -> Result<Self, CaptureError> {
        Ok(Self { sorted: Some(Box::default()), ..Self::open(path)? })
    }

    /// The file's format.
    pub fn format(&self) -> FileFormat {
        match self.format {
            Format::Pcap(_) => FileFormat::Pcap,
            Format::Pcapng { .. } => FileFormat::Pcapng,
        }
    }

    /// The file's compression, if it is compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// The interfaces found so far, in all sections; a pcap file has one.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the file cannot be read any further or is broken at this point. There are no further
    /// packets then.
    #[inline]
    pub fn packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        if self.sorted.is_some() {
            return self.sorted_packet();
        }
        self.next_packet()
    }

    /// The next packet in the order of times.
    fn sorted_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let Some(mut sorted) = self.sorted.take() else { return Ok(None) };
        while sorted.needs_more() {
            let next = self.next_packet().map(|next| {
                next.map(|packet| Waiting {
                    time: packet.time.as_nanos(),
                    frame: packet.frame,
                    interface: packet.interface,
                    length: packet.length,
                    data: packet.data.to_vec(),
                })
            });
            sorted.add(next);
        }
        let is_left = sorted.advance();
        let failure = if is_left { None } else { sorted.failure.take() };
        let sorted = self.sorted.insert(sorted);
        let Waiting { time, frame, interface, length, ref data } = sorted.current;
        let time = Instant::ZERO + airpath_base::Duration::from_nanos(time);
        if let Some(error) = failure {
            return Err(error);
        }
        Ok(is_left.then_some(Packet { frame, interface, time, length, data }))
    }

    #[inline]
    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        self.input.consume(std::mem::take(&mut self.done));
        self.frame += 1;
        match self.format {
            Format::Pcap(header) => self.pcap_packet(header),
            Format::Pcapng { .. } => self.pcapng_packet(),
        }
    }

    #[inline]
    fn pcap_packet(&mut self, header: pcap::Header) -> Result<Option<Packet<'_>>, CaptureError> {
        if !self.ask(header.record_bytes)? {
            return self.at_end();
        }
        if header.begins_again(self.input.bytes()) {
            let what = "another pcap file begins here; mergecap joins files, cat does not";
            return Err(self.broken(what.to_owned()));
        }
        let record = header.record(self.input.bytes());
        if record.captured > MOST_BYTES {
            return Err(self.broken(format!("a packet of {} bytes; {MOST}", record.captured)));
        }
        let bytes = header.record_bytes + record.captured;
        if !self.ask(bytes)? {
            return self.at_end();
        }
        self.interfaces[0].packets += 1;
        self.done = bytes;
        let data = &self.input.bytes()[header.record_bytes..bytes];
        let time = Instant::ZERO + airpath_base::Duration::from_nanos(record.time);
        let frame = self.frame;
        Ok(Some(Packet { frame, interface: 0, time, length: record.length, data }))
    }

    fn pcapng_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        loop {
            let Format::Pcapng { order, interfaces } = self.format else { return Ok(None) };
            if !self.ask(12)? {
                return self.at_end();
            }
            let (kind, length) =
                (order.word(self.input.bytes()), order.word(&self.input.bytes()[4..]));
            if kind == pcapng::SECTION {
                self.begin_section()?;
                continue;
            }
            if length < 12 || !length.is_multiple_of(4) {
                let what = "a block's length must be a multiple of 4 and at least 12";
                return Err(self.broken(format!("a block of {length} bytes; {what}")));
            }
            let is_known = matches!(
                kind,
                pcapng::INTERFACE
                    | pcapng::STATISTICS
                    | pcapng::ENHANCED_PACKET
                    | pcapng::SIMPLE_PACKET
                    | pcapng::OBSOLETE_PACKET
            );
            if !is_known {
                if !self.skip(length.into())? {
                    return self.at_end();
                }
                continue;
            }
            let length = length as usize;
            if length > MOST_BYTES {
                return Err(self.broken(format!("a block of {length} bytes; {MOST}")));
            }
            if !self.ask(length)? {
                return self.at_end();
            }
            let Some(found) = self.block(order, interfaces, kind, length)? else {
                self.input.consume(length);
                continue;
            };
            self.done = length;
            self.interfaces[found.interface].packets += 1;
            self.time = found.time;
            let time = Instant::ZERO + airpath_base::Duration::from_nanos(found.time);
            let data = &self.input.bytes()[found.from..found.from + found.captured];
            let (interface, length) = (found.interface, found.length.max(found.captured as u32));
            let frame = self.frame;
            return Ok(Some(Packet { frame, interface, time, length, data }));
        }
    }

    /// Parses the block in the window; returns the packet in it, if there is one.
    fn block(
        &mut self,
        order: ByteOrder,
        first: usize,
        kind: u32,
        length: usize,
    ) -> Result<Option<Found>, CaptureError> {
        let block = &self.input.bytes()[..length - 4];
        let body = &block[8..];
        let word = |at: usize| body.get(at..at + 4).map(|word| order.word(word));
        let short = || self.broken(format!("a block of {length} bytes is too short for its type"));
        let (interface, stamp, captured, original, from) = match kind {
            pcapng::INTERFACE => {
                let interface = pcapng::interface(order, body).ok_or_else(short)?;
                if self.interfaces.len() == MOST_INTERFACES {
                    let what = format!("more than {MOST_INTERFACES} interfaces");
                    return Err(self.broken(what));
                }
                self.interfaces.push(interface);
                return Ok(None);
            }
            pcapng::STATISTICS => {
                let (interface, dropped) = pcapng::statistics(order, body).ok_or_else(short)?;
                if let Some(known) = self.interfaces[first..].get_mut(interface as usize) {
                    // The count starts with the capture.
                    known.dropped = known.dropped.max(dropped);
                }
                return Ok(None);
            }
            pcapng::SIMPLE_PACKET => {
                let original = word(0).ok_or_else(short)?;
                (0, None, (original as usize).min(body.len() - 4), original, 12)
            }
            _ => {
                let head = [word(0), word(4), word(8), word(12), word(16)];
                let [Some(id), Some(high), Some(low), Some(captured), Some(original)] = head else {
                    return Err(short());
                };
                let id =
                    if kind == pcapng::ENHANCED_PACKET { id } else { u32::from(order.half(body)) };
                (id as usize, Some((high, low)), captured as usize, original, 28)
            }
        };
        let here = &self.interfaces[first..];
        if interface >= here.len() {
            let what =
                format!("a packet refers to interface {interface}; the section has {}", here.len());
            return Err(self.broken(what));
        }
        if from + captured > block.len() {
            let what = format!("a packet of {captured} bytes in a block of {length}");
            return Err(self.broken(what));
        }
        let interface = first + interface;
        let dropped = match kind {
            pcapng::ENHANCED_PACKET => {
                let options = &block[(from + captured.next_multiple_of(4)).min(block.len())..];
                pcapng::dropped_before(order, options)
            }
            _ => 0,
        };
        let clock = self.interfaces[interface].clock;
        let time = stamp.map_or(self.time, |(high, low)| clock.nanos(high, low));
        self.interfaces[interface].dropped =
            self.interfaces[interface].dropped.saturating_add(dropped);
        Ok(Some(Found { interface, time, captured, length: original, from }))
    }

    /// Begins the section whose header block is next (4.1).
    fn begin_section(&mut self) -> Result<(), CaptureError> {
        if !self.ask(pcapng::SECTION_BYTES)? {
            return Err(self.broken("a section header that ends early".to_owned()));
        }
        let head = self.input.bytes().first_chunk().expect("they are there");
        let Some(order) = pcapng::byte_order(head) else {
            return Err(self.broken("a section header without a byte-order magic".to_owned()));
        };
        let length = order.word(&head[4..]);
        if length < 28 || !length.is_multiple_of(4) {
            return Err(self
                .broken(format!("a section header of {length} bytes; it must have at least 28")));
        }
        self.skip(length.into())?;
        self.format = Format::Pcapng { order, interfaces: self.interfaces.len() };
        Ok(())
    }

    /// Checks that nothing is left where the file ends.
    #[cold]
    fn at_end(&self) -> Result<Option<Packet<'_>>, CaptureError> {
        match self.input.bytes() {
            [] => Ok(None),
            left => {
                let what =
                    format!("the file ends within a packet or block: {} bytes left", left.len());
                Err(self.broken(what))
            }
        }
    }

    #[inline]
    fn ask(&mut self, bytes: usize) -> Result<bool, CaptureError> {
        self.input.ask(bytes).map_err(|source| self.failed(source))
    }

    fn skip(&mut self, bytes: u64) -> Result<bool, CaptureError> {
        self.input.skip(bytes).map_err(|source| self.failed(source))
    }

    #[cold]
    fn failed(&self, source: io::Error) -> CaptureError {
        CaptureError::Read { name: self.name.clone(), at: self.input.at(), source }
    }

    #[cold]
    fn broken(&self, what: String) -> CaptureError {
        CaptureError::Broken { name: self.name.clone(), at: self.input.at(), what }
    }
}

const MOST: &str = "at most 16 MiB are read";

/// A packet in the block in the window.
struct Found {
    interface: usize,
    time: u64,
    captured: usize,
    length: u32,
    /// Offset of its bytes in the block.
    from: usize,
}

impl Format {
    /// Determines the format and skips a pcap header.
    fn of(input: &mut Input) -> Option<Self> {
        if let Some(header) = input.bytes().first_chunk().and_then(pcap::Header::read) {
            input.consume(pcap::HEADER_BYTES);
            return Some(Self::Pcap(header));
        }
        let head = input.bytes().first_chunk()?;
        // The block's type is the same in both orders.
        if ByteOrder::Little.word(head) != pcapng::SECTION {
            return None;
        }
        Some(Self::Pcapng { order: pcapng::byte_order(head)?, interfaces: 0 })
    }
}

/// Describes how a file begins, in words.
fn beginning(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing: it is empty".to_owned(),
        _ => {
            let first: Vec<_> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("the bytes {}", first.join(" "))
        }
    }
}
