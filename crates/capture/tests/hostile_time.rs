//! Files that demand much time: false lengths, endless headers, searches for gaps and blocks. Each
//! is read twice, as a report with evidence requires, and compared with a plain file.

mod common;

use std::path::PathBuf;

use airpath_capture::{CaptureReport, Detail, Found, Reader, Wanted, analyse, collect, view};
use common::{ACK, FIN, Pcap, SYN, Segment, ipv4, ipv6, udp};

const PACKETS: u64 = 20_000;
/// A packet designed to be slow takes at most this many times as long as a plain one.
const MOST_TIMES: f64 = 30.0;
/// Time added by the machine.
const NOISE_S: f64 = 0.02;

/// Packet `n` of a file.
type Frame<'a> = &'a dyn Fn(u64) -> Vec<u8>;

/// CPU time of this thread, in nanoseconds that it ran (Documentation/scheduler/sched-stats of
/// Linux).
fn processor_time_s() -> f64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    said.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Writes a file of frames and reads it twice; returns its report and the CPU time.
fn read(name: &str, link_type: u32, frame: impl Fn(u64) -> Vec<u8>) -> (CaptureReport, f64) {
    let mut pcap = Pcap::new(link_type);
    for n in 0..PACKETS {
        pcap.frame(n * 10, &frame(n));
    }
    read_bytes(name, &pcap.bytes)
}

fn read_bytes(name: &str, bytes: &[u8]) -> (CaptureReport, f64) {
    let place: PathBuf =
        std::env::temp_dir().join(format!("airpath-hostile-{}-{name}", std::process::id()));
    std::fs::write(&place, bytes).unwrap();
    let before = processor_time_s();
    let report = analyse(Reader::open(&place).unwrap()).unwrap();
    let wanted: Vec<_> = (report.flows.iter().take(16))
        .flat_map(|flow| {
            [Wanted::Segments(flow, true), Wanted::Segments(flow, false), Wanted::Packets(flow)]
        })
        .collect();
    for found in collect(&place, &report, &wanted, usize::MAX).unwrap() {
        if let Found::Segments(segments) = found {
            view(&segments, Some(7), Detail { bins: 8192, packets: 4000 });
        }
    }
    let took = processor_time_s() - before;
    std::fs::remove_file(&place).unwrap();
    (report, took)
}

/// Every second packet acknowledges, with four blocks that begin anywhere.
fn blocks(n: u64) -> Vec<u8> {
    if n.is_multiple_of(2) {
        return Segment::new(true, ACK, (n as u32 + 2) * 1000, 1, 900).packet();
    }
    let at = |k: u64| (n.wrapping_mul(7919 + k) % n) as u32 * 1000;
    let blocks = [0, 1, 2, 3].map(|k| (at(k), at(k).wrapping_add(500_000_000)));
    Segment::new(false, ACK, 1, 1, 0).sack(&blocks).packet()
}

/// A single test, because time is measured for the process.
#[test]
fn time_is_bounded() {
    let (plain, base) =
        read("plain", 101, |n| Segment::new(true, ACK, n as u32 * 100, 1, 100).packet());
    assert_eq!(plain.packets, PACKETS);
    let in_time = |name: &str, took: f64| {
        let most = MOST_TIMES * base + NOISE_S;
        assert!(took <= most, "{name}: {took:.2} s, and a plain file {base:.2} s");
    };

    let extensions = |n: u64| {
        // Hop-by-hop options whose next header is hop-by-hop again, to the end of the packet.
        let mut body = [0u8; 8].repeat(180);
        let last = body.len() - 8;
        body[last] = if n.is_multiple_of(2) { 0 } else { 6 };
        ipv6(0, &body)
    };
    let tunnels = |_: u64| {
        let segment = Segment::new(true, ACK, 1, 1, 0).packet();
        (0..40).fold(segment, |inside, _| ipv4([10, 9, 0, 1], [10, 9, 0, 2], 4, &inside))
    };
    let gtp_u = |_: u64| {
        // GTP-U extension headers that each announce another one.
        let chain = [1, 0, 0, 0x85].repeat(300);
        let length = (chain.len() as u16 + 4).to_be_bytes();
        let header = [0x34, 255, length[0], length[1], 0, 0, 0, 7, 0, 0, 0, 0x85];
        let datagram = udp([2152, 2152], &[&header[..], &chain].concat());
        ipv4([10, 9, 0, 1], [10, 9, 0, 2], 17, &datagram)
    };
    let options = |n: u64| {
        // Options of length 0 and 255, and a list of options that never ends.
        let kinds: [&[u8]; 3] = [&[5, 0], &[8, 255], &[254, 2]];
        let bytes = kinds[n as usize % 3].repeat(20);
        Segment::new(true, ACK, n as u32, 1, 0).options(&bytes).packet()
    };
    let vlans = |_: u64| [&[2u8; 12][..], &[0x81, 0, 0, 1].repeat(350), &[8, 0]].concat();
    let fragments = |n: u64| {
        // Fragments that all belong to the same packets, in the wrong order.
        let mut packet = Segment::new(true, ACK, 1, 1, 1000).packet();
        packet[4..6].copy_from_slice(&((n % 64) as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&(0x2000 | (8000 - (n % 8000)) as u16).to_be_bytes());
        packet
    };
    let lengths = |n: u64| {
        let mut packet = Segment::new(true, ACK, 1, 1, 100).packet();
        let length = [0, 1, 19, 20, 39, 0xffff][n as usize % 6] as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[32] = ((n % 16) as u8) << 4;
        packet
    };
    let ports = |n: u64| {
        let flags = if n.is_multiple_of(2) { SYN } else { ACK | FIN };
        Segment::new(true, flags, (n / 2 * 100_000 + n % 2) as u32, 1, 0).packet()
    };
    let gaps = |n: u64| Segment::new(true, ACK, (PACKETS - n) as u32 * 3000, 1, 10).packet();
    let forward = |n: u64| Segment::new(true, ACK, n as u32 * 3000, 1, 10).packet();
    let again = |n: u64| {
        // Small segments, and then large ones that each retransmit 300 of them.
        let half = PACKETS / 2;
        if n < half {
            Segment::new(true, ACK, n as u32 * 10, 1, 10).packet()
        } else {
            Segment::new(true, ACK, (n - half) as u32, 1, 3000).packet()
        }
    };
    let flows = |n: u64| {
        let mut packet = Segment::new(true, SYN, 1, 0, 0).packet();
        packet[12..16].copy_from_slice(&(0x0b00_0000 + n as u32).to_be_bytes());
        packet
    };
    let frames: [(&str, u32, Frame<'_>); 13] = [
        ("extensions", 101, &extensions),
        ("tunnels", 101, &tunnels),
        ("gtp-u", 101, &gtp_u),
        ("options", 101, &options),
        ("vlans", 1, &vlans),
        ("fragments", 101, &fragments),
        ("lengths", 101, &lengths),
        ("ports", 101, &ports),
        ("gaps", 101, &gaps),
        ("forward", 101, &forward),
        ("again", 101, &again),
        ("flows", 101, &flows),
        ("blocks", 101, &blocks),
    ];
    for (name, link_type, frame) in frames {
        let (report, took) = read(name, link_type, frame);
        assert_eq!(report.packets, PACKETS, "{name}");
        in_time(name, took);
    }

    // Lengths in the file format itself: of a packet, of a block, of an option.
    let frame = Segment::new(true, ACK, 1, 1, 100).packet();
    let good = Pcap::raw().frame(0, &frame).bytes.clone();
    for length in [0u32, 1, 0x7fff_ffff, 0xffff_ffff] {
        for at in [32, 36] {
            let mut bytes = good.repeat(1);
            bytes.extend(&good[24..]);
            bytes[24 + 16 + frame.len() + at - 24..][..4].copy_from_slice(&length.to_le_bytes());
            let (report, took) = read_bytes("length", &bytes);
            assert!(report.packets >= 1);
            in_time("length", took);
        }
    }
}
