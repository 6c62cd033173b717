//! Packets that were captured more than once: copies are left out, and real retransmissions stay.

mod common;

use std::path::PathBuf;

use airpath_capture::{CaptureReport, Found, Reader, Skipped, Wanted, analyse, collect};
use common::{ACK, Pcap, SYN, SYN_OPTIONS, Segment, ethernet, ipv6, udp};
use proptest::prelude::*;

const SEGMENTS: u32 = 30;
const MSS: u32 = 1000;

/// IPv4 packets with and without individual identifications, or IPv6 packets, which have none.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Version {
    V4,
    V4Unnumbered,
    V6,
}

/// A link layer, and what differs where a packet is seen a second time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Seen {
    /// `-i any`: in at one interface, out at another.
    Cooked,
    /// `-i any` of newer versions.
    Cooked2,
    /// A bridge and its port: another VLAN tag.
    Vlan,
    /// In front of and behind a router.
    Router,
    /// A mirrored port: the same frame.
    Mirror,
    /// Within GTP-U, to another node and its tunnel.
    GtpU,
}

const PLACES: [Seen; 6] =
    [Seen::Cooked, Seen::Cooked2, Seen::Vlan, Seen::Router, Seen::Mirror, Seen::GtpU];

impl Seen {
    fn link_type(self) -> u32 {
        match self {
            Self::Cooked => 113,
            Self::Cooked2 => 276,
            _ => 1,
        }
    }

    /// The frame of a packet that is seen first (0) and then (1).
    fn frame(self, packet: &[u8], time: usize) -> Vec<u8> {
        let kind: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let second = time as u8;
        match self {
            Self::Cooked => {
                let mut frame = vec![0, 4 * second, 0, 1, 0, 6, 2, 0, 0, 0, 0, second, 0, 0];
                frame.extend(kind.to_be_bytes());
                [frame, packet.to_vec()].concat()
            }
            Self::Cooked2 => {
                let mut frame = kind.to_be_bytes().to_vec();
                frame.extend([
                    0,
                    0,
                    0,
                    0,
                    0,
                    2 + second,
                    0,
                    1,
                    4 * second,
                    6,
                    2,
                    0,
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                ]);
                [frame, packet.to_vec()].concat()
            }
            Self::Vlan if time == 1 => {
                let tagged = [&[0, 7], &kind.to_be_bytes()[..], packet].concat();
                ethernet(0x8100, &tagged)
            }
            Self::Router => {
                let mut packet = packet.to_vec();
                let ttl = if kind == 0x0800 { 8 } else { 7 };
                packet[ttl] -= second;
                let mut frame = ethernet(kind, &packet);
                frame[5] += second;
                frame
            }
            Self::GtpU => {
                let mut header = vec![0x30, 255];
                header.extend((packet.len() as u16).to_be_bytes());
                header.extend([0, 0, 0, 1 + second]);
                let datagram = udp([2152, 2152], &[&header[..], packet].concat());
                ethernet(
                    0x0800,
                    &common::ipv4([10, 9, 0, 1], [10, 9, 0, 2 + second], 17, &datagram),
                )
            }
            Self::Vlan | Self::Mirror => ethernet(kind, packet),
        }
    }
}

/// A download in which one segment is retransmitted, 250 ms later and without timestamps, and a
/// ping.
fn packets(version: Version) -> Vec<(u64, Vec<u8>)> {
    let mut sent = vec![
        (0, Segment::new(true, SYN, 0, 0, 0).options(&SYN_OPTIONS)),
        (20_000, Segment::new(false, SYN | ACK, 0, 1, 0).options(&SYN_OPTIONS)),
        (30_000, Segment::new(true, ACK, 1, 1, 0)),
    ];
    for number in 0..SEGMENTS {
        let at = 40_000 + 400 * u64::from(number);
        sent.push((at, Segment::new(false, ACK, 1 + number * MSS, 1, 1000)));
        let acked = if number < 20 { number + 1 } else { 20 };
        sent.push((at + 30_100, Segment::new(true, ACK, 1, 1 + acked * MSS, 0)));
    }
    sent.push((300_000, Segment::new(false, ACK, 1 + 20 * MSS, 1, 1000)));
    sent.push((330_000, Segment::new(true, ACK, 1, 1 + SEGMENTS * MSS, 0)));
    sent.sort_by_key(|&(at, _)| at);
    let mut number = 0;
    let packet = |(at, segment): (u64, Segment)| {
        number += 1;
        let packet = match version {
            Version::V6 => {
                let mut packet = ipv6(6, &segment.bytes());
                if !segment.up {
                    let (one, other) = (packet[8..24].to_vec(), packet[24..40].to_vec());
                    packet[8..24].copy_from_slice(&other);
                    packet[24..40].copy_from_slice(&one);
                }
                packet
            }
            _ => segment.packet(),
        };
        let mut packet = packet;
        if version == Version::V4 {
            packet[5] = number;
        }
        (at, packet)
    };
    sent.into_iter().map(packet).collect()
}

fn file(packets: &[(u64, Vec<u8>)], place: Seen, times: usize, apart: u64, snap: usize) -> Pcap {
    let mut frames = Vec::new();
    for (at, packet) in packets {
        for time in 0..times {
            frames.push((at + time as u64 * apart, place.frame(packet, time)));
        }
    }
    frames.sort_by_key(|&(at, _)| at);
    let mut pcap = Pcap::new(place.link_type());
    pcap.snap = snap;
    for (at, frame) in &frames {
        pcap.frame(*at, frame);
    }
    pcap
}

/// Writes the capture to a file and reads it: indistinguishable copies need a second reading.
fn read(pcap: &Pcap) -> (CaptureReport, Vec<Found>) {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let place: PathBuf =
        std::env::temp_dir().join(format!("airpath-copies-{}-{number}", std::process::id()));
    std::fs::write(&place, &pcap.bytes).unwrap();
    let report = analyse(Reader::open(&place).unwrap()).unwrap();
    let wanted: Vec<_> = report.flows.iter().map(Wanted::Packets).collect();
    let found = collect(&place, &report, &wanted, usize::MAX).unwrap();
    std::fs::remove_file(&place).unwrap();
    (report, found)
}

/// What is reported of the flows, without the fields that tell how often they were captured.
fn figures(report: &CaptureReport) -> String {
    let mut flows = report.flows.clone();
    for flow in &mut flows {
        flow.times_captured = [1; 2];
        flow.teids = [None; 2];
        flow.duration_s = 0.0;
    }
    format!("{flows:#?}")
}

#[test]
fn a_capture_with_two_copies_says_what_one_with_one_says() {
    for version in [Version::V4, Version::V4Unnumbered, Version::V6] {
        let packets = packets(version);
        for place in PLACES {
            for apart in [3, 700] {
                // Duplicate acknowledgements without an identification are all alike, 400 us apart:
                // which of them is the copy cannot be told where nothing else differs.
                if place == Seen::Mirror && version != Version::V4 && apart > 400 {
                    continue;
                }
                let (once, _) = read(&file(&packets, place, 1, 0, usize::MAX));
                let (twice, found) = read(&file(&packets, place, 2, apart, usize::MAX));
                let what = format!("{version:?}, {place:?}, {apart} us");
                assert_eq!(once.skipped.get(&Skipped::Copy), None, "{what}");
                assert_eq!(twice.skipped.get(&Skipped::Copy), Some(&once.packets), "{what}");
                assert_eq!(figures(&twice), figures(&once), "{what}");
                let tcp = twice.flows[0].tcp.as_ref().unwrap();
                assert_eq!(tcp.from_server.retransmissions.packets, 1, "{what}");
                let Found::Packets(kept) = &found[0] else { panic!("packets were wanted") };
                assert_eq!(kept.time_ns.len() as u64, once.packets, "{what}");
            }
        }
    }
}

#[test]
fn copies_are_known_in_captures_that_were_cut() {
    for place in PLACES {
        for snap in [64, 68, 96, 128] {
            // Truncated to this length, a packet in GTP-U does not reach the packet inside.
            if place == Seen::GtpU && snap < 70 {
                continue;
            }
            let packets = packets(Version::V4);
            let (twice, _) = read(&file(&packets, place, 2, 3, snap));
            let copies = twice.skipped.get(&Skipped::Copy).copied().unwrap_or(0);
            let unread = twice.skipped.get(&Skipped::Truncated).copied().unwrap_or(0);
            assert_eq!(copies + unread, twice.packets - packets.len() as u64, "{place:?}, {snap}");
        }
    }
}

#[test]
fn what_a_network_duplicates_is_no_copy() {
    let packets = packets(Version::V4);
    let mut pcap = Pcap::new(1);
    for (number, (at, packet)) in packets.iter().enumerate() {
        pcap.frame(*at, &ethernet(0x0800, packet));
        if number % 5 == 0 {
            pcap.frame(at + 2, &ethernet(0x0800, packet));
        }
    }
    let (report, _) = read(&pcap);
    assert_eq!(report.skipped.get(&Skipped::Copy), None);
    assert_eq!(report.flows[0].times_captured, [1; 2]);
}

#[test]
fn datagrams_that_are_alike_are_no_copies() {
    for apart in [100, 600, 15_000, 500_000] {
        let mut pcap = Pcap::raw();
        for number in 0..200 {
            pcap.frame(number * apart, &ipv6(17, &udp([5000, 5001], &[7; 100])));
        }
        let (report, _) = read(&pcap);
        assert_eq!(report.skipped.get(&Skipped::Copy), None, "{apart} us apart");
        assert_eq!(report.flows[0].from_client.packets, 200, "{apart} us apart");
    }
}

#[test]
fn a_packet_and_its_tunnel_are_two_points_and_no_copies() {
    let packets = packets(Version::V4);
    let mut pcap = Pcap::new(1);
    for (at, packet) in &packets {
        pcap.frame(*at, &ethernet(0x0800, packet));
        pcap.frame(at + 5, &Seen::GtpU.frame(packet, 0));
    }
    let (report, _) = read(&pcap);
    assert_eq!(report.skipped.get(&Skipped::Copy), None);
    assert_eq!(report.flows.len(), 2);
    assert_eq!(report.flows[0].same_as, [1]);
}

#[test]
fn a_stream_says_that_its_copies_are_counted() {
    let pcap = file(&packets(Version::V4), Seen::Mirror, 2, 3, usize::MAX);
    let report = pcap.report();
    assert_eq!(report.skipped.get(&Skipped::Copy), None);
    assert_eq!(report.flows[0].times_captured, [2; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Which packets are seen at a second place, and how much later, changes nothing.
    #[test]
    fn some_copies_or_many_are_left_out(
        seen_again in prop::collection::vec((any::<bool>(), 1u64..90_000), 80),
        place in prop::sample::select(vec![
            Seen::Cooked, Seen::Cooked2, Seen::Vlan, Seen::Router, Seen::GtpU,
        ]),
    ) {
        let packets = packets(Version::V4);
        let (once, _) = read(&file(&packets, place, 1, 0, usize::MAX));
        let mut frames: Vec<_> = packets.iter().map(|(at, one)| (*at, place.frame(one, 0))).collect();
        for ((at, packet), (is_seen, late)) in packets.iter().zip(seen_again) {
            if is_seen {
                frames.push((at + late, place.frame(packet, 1)));
            }
        }
        frames.sort_by_key(|&(at, _)| at);
        let mut pcap = Pcap::new(place.link_type());
        for (at, frame) in &frames {
            pcap.frame(*at, frame);
        }
        let (report, _) = read(&pcap);
        let copies = report.skipped.get(&Skipped::Copy).copied().unwrap_or(0);
        prop_assert_eq!(copies, report.packets - once.packets);
        prop_assert_eq!(figures(&report), figures(&once));
    }
}
