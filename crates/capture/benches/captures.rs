//! The program that `make bench-capture` times. It writes and reads captures of a given size.
//!
//! `captures write FILE PACKETS FLOWS ALIVE` writes a pcap file of TCP downloads, of which ALIVE
//! are alive at once; `captures read FILE` reads it with all figures, and prints what it holds.

#![allow(clippy::print_stdout, reason = "a command line program")]

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use airpath_capture::{Reader, analyse};

/// Bytes of a packet that are captured.
const SNAP: usize = 96;
const MSS: u32 = 1448;
/// Segments in flight.
const WINDOW: u32 = 32;
/// Time between packets, in microseconds.
const INTERVAL: u64 = 10;
/// One segment in this many is lost behind the capture point and retransmitted.
const LOST: u32 = 1000;

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize| words[at].parse().expect("a number");
    match words.first().map(String::as_str) {
        Some("write") => write(Path::new(&words[1]), number(2), number(3), number(4)),
        Some("read") => {
            let reader = Reader::open(Path::new(&words[1])).expect("it was written");
            let report = analyse(reader).expect("it was written");
            let flows = report.flows.len() as u64 + report.others.flows;
            let tcp = report.flows.iter().filter_map(|flow| flow.tcp.as_ref());
            let again = tcp.map(|tcp| tcp.from_server.retransmissions.packets);
            let again = again.sum::<u64>() + report.others.retransmissions;
            println!("{{\"packets\": {}, \"flows\": {flows}, \"again\": {again}}}", report.packets);
            Ok(())
        }
        _ => panic!("write FILE PACKETS FLOWS ALIVE, or read FILE"),
    }
}

/// One download, packet by packet.
struct Download {
    index: u32,
    packets: u64,
    length: u64,
    /// Segments that were sent, and segments that were acknowledged.
    sent: u32,
    acked: u32,
    /// The segment that is missing at the client, and after how many segments it is retransmitted.
    missing: Option<u32>,
}

impl Download {
    /// The next packet: whether it goes up, its numbers in segments, flags, and payload.
    fn next(&mut self) -> (bool, u32, u32, u8, bool) {
        let at = self.packets;
        self.packets += 1;
        match at {
            0 => return (true, 0, 0, SYN, false),
            1 => return (false, 0, 0, SYN | ACK, false),
            2 => return (true, 0, 0, ACK, false),
            _ if at + 2 == self.length => return (false, self.sent, 0, ACK | FIN, false),
            _ if at + 1 == self.length => return (true, 0, self.sent, ACK | FIN, false),
            _ => {}
        }
        if at.is_multiple_of(3) && self.sent > WINDOW {
            self.acked = self.missing.unwrap_or(self.sent - WINDOW);
            return (true, 0, self.acked, ACK, false);
        }
        if let Some(missing) = self.missing
            && self.sent > missing + 2 * WINDOW
        {
            self.missing = None;
            return (false, missing, 0, ACK, true);
        }
        self.sent += 1;
        if self.sent.is_multiple_of(LOST) {
            self.missing = Some(self.sent - 1);
        }
        (false, self.sent - 1, 0, ACK, true)
    }
}

fn write(path: &Path, packets: u64, flows: u64, alive: u64) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&0xa1b2_c3d4_u32.to_le_bytes())?;
    file.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, SNAP as u8, 0, 0, 0, 1, 0, 0, 0])?;
    let length = packets / flows;
    let begin = |index: u64| Download {
        index: index as u32,
        packets: 0,
        length,
        sent: 0,
        acked: 0,
        missing: None,
    };
    let mut downloads: Vec<_> = (0..alive).map(begin).collect();
    let (mut begun, mut at) = (alive, 0);
    for packet in 0..length * flows {
        let micros = packet * INTERVAL;
        let download = &mut downloads[at];
        frame(&mut file, micros, download)?;
        if download.packets == length {
            if begun < flows {
                *download = begin(begun);
                begun += 1;
            } else {
                downloads.swap_remove(at);
            }
        }
        at = if at + 1 < downloads.len() { at + 1 } else { 0 };
    }
    file.flush()
}

fn frame(file: &mut impl Write, micros: u64, download: &mut Download) -> Result<()> {
    let missing = download.missing;
    let (up, sequence, acked, flags, data) = download.next();
    let payload = if data { MSS } else { 0 };
    let begun = u32::from(flags & SYN == 0);
    let mut options = vec![1, 1, 8, 10];
    let now = (micros / 1000) as u32;
    options.extend(now.to_be_bytes());
    options.extend(now.wrapping_sub(30).to_be_bytes());
    if flags & SYN != 0 {
        options = vec![2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    } else if let Some(missing) = missing.filter(|_| up && flags & FIN == 0) {
        options.extend([1, 1, 5, 10]);
        options.extend((1 + (missing + 1) * MSS).to_be_bytes());
        options.extend((1 + (missing + 1 + download.sent - missing - 1) * MSS).to_be_bytes());
    }
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    let bytes = 40 + options.len() as u32 + payload;
    frame.extend((bytes as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let client =
        [10, (download.index >> 16) as u8, (download.index >> 8) as u8, download.index as u8];
    let ends = [(client, 40_000_u16), ([192, 168, 0, 1], 443)];
    let [from, to] = if up { ends } else { [ends[1], ends[0]] };
    frame.extend(from.0);
    frame.extend(to.0);
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    let [mine, other] = if up { [begun, begun + acked * MSS] } else { [begun + sequence * MSS, 1] };
    frame.extend(mine.to_be_bytes());
    frame.extend(other.to_be_bytes());
    frame.extend([(5 + options.len() as u8 / 4) << 4, flags, 1, 245, 0, 0, 0, 0]);
    frame.extend(options);
    let length = frame.len() as u32 + payload;
    frame.resize(length as usize, 0);
    let kept = frame.len().min(SNAP);
    for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, kept as u32, length] {
        file.write_all(&word.to_le_bytes())?;
    }
    file.write_all(&frame[..kept])
}
