//! Files that demand much memory or time: many flows, many gaps, many fragments, many interfaces.

mod common;

use std::io::{Cursor, Read};
use std::sync::Arc;

use airpath_capture::{CaptureReport, Reader, analyse};
use common::{ACK, FIN, Pcap, SYN, Segment};

/// A capture that is generated while it is read: packets `n` from 0.
struct Endless {
    packets: u64,
    at: u64,
    frame: Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>,
    left: Cursor<Vec<u8>>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.left.read(buffer)?;
        if read > 0 || self.at == self.packets {
            return Ok(read);
        }
        let frame = (self.frame)(self.at);
        let length = frame.len() as u32;
        let words = [(self.at / 1000) as u32, (self.at % 1000) as u32, length, length];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(frame);
        (self.at, self.left) = (self.at + 1, Cursor::new(bytes));
        self.left.read(buffer)
    }
}

fn report(packets: u64, frame: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static) -> CaptureReport {
    let left = Cursor::new(Pcap::raw().bytes);
    let source = Endless { packets, at: 0, frame: Arc::new(frame), left };
    analyse(Reader::new(Box::new(source), "endless".to_owned()).unwrap()).unwrap()
}

/// Resident memory of this process, in bytes (proc_pid_statm(5)).
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A single test, because memory is measured for the process: nothing may run beside it.
#[test]
fn memory_is_bounded() {
    const MOST: u64 = 200 << 20;
    let with_client = |packet: Vec<u8>, n: u64, up: bool| {
        let mut packet = packet;
        let at = if up { 12 } else { 16 };
        packet[at..at + 4].copy_from_slice(&(0x0a00_0000 + n as u32).to_be_bytes());
        packet
    };

    // A new flow in every packet.
    let flows = report(300_000, move |n| {
        with_client(
            Segment::new(true, SYN, n as u32, 0, 0).options(&common::SYN_OPTIONS).packet(),
            n,
            true,
        )
    });
    assert_eq!((flows.flows.len(), flows.others.flows), (10_000, 290_000));
    drop(flows);
    assert!(resident() < MOST, "{} MB for flows", resident() >> 20);

    // Data that nobody acknowledges, in many flows.
    let unacknowledged = report(1_000_000, move |n| {
        let segment = Segment::new(true, ACK, (n / 5000 * 10) as u32, 1, 10);
        with_client(segment.packet(), n % 5000, true)
    });
    assert_eq!(unacknowledged.flows.len(), 5000);
    drop(unacknowledged);
    assert!(resident() < MOST, "{} MB for data", resident() >> 20);

    // A gap in front of every segment, and gaps that are split in two.
    let gaps = report(300_000, |n| {
        let number = (n + 10) * 1000 - if n % 2 == 0 { 0 } else { 1500 };
        Segment::new(true, ACK, number as u32, 1, 10).packet()
    });
    let sent = &gaps.flows[0].tcp.as_ref().unwrap().from_client;
    assert_eq!(sent.data_packets, 300_000);
    assert!(sent.retransmissions.packets + sent.out_of_order_packets >= 149_000);

    // Fragments of packets whose other fragments never come.
    let fragments = report(300_000, |n| {
        let mut packet = Segment::new(true, ACK, 1, 1, 100).packet();
        packet[4..6].copy_from_slice(&(n as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&[0x20, 0]);
        packet
    });
    assert_eq!(fragments.skipped.values().sum::<u64>(), 300_000);

    // Successive connections on the same ports.
    let connections = report(300_000, |n| {
        let flags = if n % 2 == 0 { SYN } else { ACK | FIN };
        Segment::new(true, flags, (n / 2 * 100_000 + n % 2) as u32, 1, 0).packet()
    });
    assert_eq!(connections.flows.len() as u64 + connections.others.flows, 150_000);
    drop((gaps, fragments, connections));
    assert!(resident() < MOST, "{} MB in the end", resident() >> 20);
}
