//! What datagrams show: pings, sequence numbers of iperf3 and RTP, QUIC headers and the spin bit.

use std::io::Cursor;

use airpath_capture::{CaptureReport, FlowReport, Found, Reader, Wanted, analyse, collect};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// A capture of raw IP packets, in microseconds.
fn capture(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 1, 0, 101, 0, 0, 0]);
    for (micros, packet) in packets {
        let length = packet.len() as u32;
        let words = [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length, length];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

fn read(packets: &[(u64, Vec<u8>)]) -> CaptureReport {
    let file = capture(packets);
    analyse(Reader::new(Box::new(Cursor::new(file)), "test".to_owned()).unwrap()).unwrap()
}

fn ip(up: bool, protocol: u8, body: &[u8]) -> Vec<u8> {
    let (from, to) = if up { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let length = ((20 + body.len()) as u16).to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &from, &to, body].concat()
}

fn udp(up: bool, payload: &[u8]) -> Vec<u8> {
    let ports: [u16; 2] = if up { [50_000, 443] } else { [443, 50_000] };
    let length = (8 + payload.len()) as u16;
    let head = [ports[0], ports[1], length, 0].map(u16::to_be_bytes);
    ip(up, 17, &[head.as_flattened(), payload].concat())
}

fn only(report: &CaptureReport) -> &FlowReport {
    assert_eq!(report.flows.len(), 1);
    &report.flows[0]
}

fn echo(up: bool, request: bool, number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    ip(up, 1, &[if request { 8 } else { 0 }, 0, 0, 0, 0, 7, high, low])
}

#[test]
fn two_protocols_may_use_the_same_ports() {
    let segment = |n: u8| {
        let head = [0xc3, 0x50, 1, 0xbb, 0, 0, 0, n, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
        ip(true, 6, &[&head[..], &[0; 10]].concat())
    };
    let packets =
        [(0, udp(true, &[0; 30])), (10, segment(1)), (20, segment(11)), (30, udp(true, &[0]))];
    let place = std::env::temp_dir().join(format!("same-ports-{}.pcap", std::process::id()));
    std::fs::write(&place, capture(&packets)).unwrap();
    let report = read(&packets);
    let found = |protocol: &str| {
        let flow = report.flows.iter().find(|flow| flow.protocol == protocol).unwrap();
        let wanted = [Wanted::Segments(flow, true), Wanted::Packets(flow)];
        match &collect(&place, &report, &wanted, 10).unwrap()[..] {
            [Found::Segments(segments), Found::Packets(packets)] => {
                (segments.sent_ns.len(), packets.size.clone())
            }
            _ => panic!("another answer than was asked for"),
        }
    };
    let both = [found("tcp"), found("udp")];
    std::fs::remove_file(&place).unwrap();
    assert_eq!(both, [(2, vec![50, 50]), (0, vec![58, 29])]);
}

#[test]
fn pings_have_round_trips_by_number() {
    let packets = [
        (0, echo(true, true, 1)),
        (10_000, echo(true, true, 2)),
        (30_000, echo(false, false, 2)),
        (50_000, echo(false, false, 1)),
        (51_000, echo(false, false, 1)),
        (60_000, echo(true, true, 3)),
        (70_000, echo(false, false, 9)),
    ];
    let report = read(&packets);
    let icmp = only(&report).icmp.as_ref().unwrap();
    // The third one may still be answered when the capture ends.
    assert_eq!((icmp.requests, icmp.replies, icmp.unanswered), (3, 2, 0));
    assert_eq!((icmp.outstanding, icmp.duplicates, icmp.unasked), (1, 1, 1));
    let rtt = icmp.rtt_ms.unwrap();
    assert_eq!((rtt.count, rtt.min, rtt.max), (2, 20.0, 50.0));
}

#[test]
fn what_routers_say_has_a_name() {
    let report = read(&[(0, ip(false, 1, &[3, 4, 0, 0, 0, 0, 5, 0])), (1, ip(false, 1, &[11, 0]))]);
    let messages = &only(&report).icmp.as_ref().unwrap().messages;
    assert_eq!(messages["fragmentation-needed"], 1);
    assert_eq!(messages["time-exceeded"], 1);
}

fn iperf3(number: u32, micros: u64, wide: bool) -> Vec<u8> {
    let mut payload = vec![0; 200];
    payload[..4].copy_from_slice(&((1_700_000_000 + micros / 1_000_000) as u32).to_be_bytes());
    payload[4..8].copy_from_slice(&((micros % 1_000_000) as u32).to_be_bytes());
    let at = if wide { 12 } else { 8 };
    payload[at..at + 4].copy_from_slice(&number.to_be_bytes());
    udp(true, &payload)
}

#[test]
fn numbers_of_iperf3_tell_what_is_lost_late_and_twice() {
    for wide in [false, true] {
        // 7 and 8 are lost, 12 arrives after 13, and 20 arrives twice.
        let mut order: Vec<u32> = (1..=40).filter(|number| ![7, 8].contains(number)).collect();
        order.swap(9, 10);
        order.insert(19, 20);
        let packets: Vec<_> = (order.iter().enumerate())
            .map(|(place, &number)| {
                (place as u64 * 1000, iperf3(number, u64::from(number) * 1000, wide))
            })
            .collect();
        let report = read(&packets);
        let stream = &only(&report).udp.as_ref().unwrap().from_client;
        assert_eq!((stream.packets, stream.largest_payload_bytes), (39, 200));
        let numbers = stream.sequence.as_ref().unwrap();
        assert_eq!(numbers.header, if wide { "iperf3-64" } else { "iperf3" });
        assert_eq!((numbers.expected, numbers.lost, numbers.longest_gap), (40, 2, 2));
        assert_eq!((numbers.out_of_order, numbers.duplicates), (1, 1), "{numbers:?}");
        assert!(numbers.jitter_ms.is_some_and(|jitter| jitter > 0.0 && jitter < 2.0));
    }
}

#[test]
fn rtp_is_known_by_its_numbers_and_its_clock() {
    // 20 ms of audio at 48 kHz; numbers wrap after 65535; one packet is missing.
    let packets: Vec<_> = (0..100u32)
        .filter(|&index| index != 50)
        .map(|index| {
            let mut payload = vec![0x80, 111];
            payload.extend((65_500_u16.wrapping_add(index as u16)).to_be_bytes());
            payload.extend((index * 960).to_be_bytes());
            payload.extend([1, 2, 3, 4, 0, 0]);
            (u64::from(index) * 20_000, udp(false, &payload))
        })
        .collect();
    let report = read(&packets);
    let udp = only(&report).udp.as_ref().unwrap();
    // The only end that was seen to send is the client.
    let numbers = udp.from_client.sequence.as_ref().unwrap();
    assert_eq!((numbers.header, numbers.clock_hz), ("rtp", Some(48_000)));
    assert_eq!((numbers.expected, numbers.lost, numbers.out_of_order), (100, 1, 0));
    assert!(numbers.jitter_ms.unwrap() < 0.01);
}

#[test]
fn a_number_that_comes_first_tells_what_is_lost() {
    // As in iperf 2 and SRT; a constant is not a sequence number, and neither is a value that goes
    // back far.
    let counts: fn(u32) -> u32 = |index| index;
    let stays: fn(u32) -> u32 = |_| 7;
    let jumps: fn(u32) -> u32 = |index| index * 977 % 5000;
    for (number, expected) in [(counts, Some((60, 7))), (stays, None), (jumps, None)] {
        let packets: Vec<_> = (0..60u32)
            .filter(|index| index % 9 != 4)
            .map(|index| {
                let mut payload = number(index).to_be_bytes().to_vec();
                payload.resize(100, 0);
                (u64::from(index) * 1000, udp(true, &payload))
            })
            .collect();
        let report = read(&packets);
        let numbers = &only(&report).udp.as_ref().unwrap().from_client.sequence;
        let found = numbers.as_ref().map(|one| (one.expected, one.lost));
        assert_eq!(found, expected);
        assert!(numbers.as_ref().is_none_or(|one| one.header == "number"));
    }
}

#[test]
fn what_has_no_numbers_is_not_said_to() {
    let packets: Vec<_> = (0..50u64)
        .map(|index| {
            (index * 1000, udp(true, &index.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()))
        })
        .collect();
    let report = read(&packets);
    let udp = only(&report).udp.as_ref().unwrap();
    assert!(udp.from_client.sequence.is_none() && udp.quic.is_none());
    let rate = udp.from_client.rate_mbps.unwrap();
    assert!((rate - 50.0 * 8.0 * 8.0 / 49_000.0).abs() < 1e-6, "{rate}");
}

/// A long header: type, version, destination, source.
fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut payload = vec![first];
    payload.extend(version.to_be_bytes());
    for id in [destination, source] {
        payload.push(id.len() as u8);
        payload.extend(id);
    }
    payload.resize(1200, 0);
    payload
}

/// A connection over 40 ms, seen 10 ms from the client, with one packet of each end every 5 ms. The
/// client inverts the bit that it received, the server repeats it.
fn quic(spins: bool) -> Vec<(u64, Vec<u8>)> {
    let mut packets = vec![
        (0, udp(true, &long(0xc3, 1, &[9; 8], &[1, 2]))),
        (20_000, udp(false, &long(0xc1, 1, &[1, 2], &[5; 4]))),
        (40_000, udp(true, &long(0xe1, 1, &[5; 4], &[1, 2]))),
    ];
    let bit = |up: bool, micros: u64| {
        // At the client the bit changes every 40 ms; the change is seen 10 ms later, and 30 ms
        // later from the server.
        let late = if up { 10_000 } else { 30_000 };
        spins && (micros + 400_000 - late) / 40_000 % 2 == 1
    };
    for step in 0..100 {
        let micros = 100_000 + step * 5000;
        for up in [true, false] {
            let first = 0x40 | u8::from(bit(up, micros)) << 5;
            packets.push((micros + u64::from(!up), udp(up, &[first, 5, 5, 5, 5, 0, 0])));
        }
    }
    packets
}

#[test]
fn quic_tells_its_handshake_and_spins() {
    let report = read(&quic(true));
    let udp = only(&report).udp.as_ref().unwrap();
    let quic = udp.quic.as_ref().unwrap();
    assert_eq!(quic.versions, ["1"]);
    assert_eq!(quic.original_destination_id.as_deref(), Some("0909090909090909"));
    let ids = (quic.client_id.as_deref(), quic.server_id.as_deref());
    assert_eq!(ids, (Some("0102"), Some("05050505")));
    assert_eq!((quic.packets["initial"], quic.packets["handshake"]), (2, 1));
    assert_eq!((quic.server_side_ms, quic.client_side_ms), (Some(20.0), Some(20.0)));
    assert_eq!(quic.handshake_ms, Some(100.0));
    assert_eq!(quic.spin.state, "spins");
    let (rtt, client, server) =
        (quic.spin.rtt_ms, quic.spin.client_side_ms, quic.spin.server_side_ms);
    assert!((rtt.unwrap().p50 - 40.0).abs() < 0.5, "{rtt:?}");
    assert!((client.unwrap().p50 - 20.0).abs() < 5.1, "{client:?}");
    assert!((server.unwrap().p50 - 20.0).abs() < 5.1, "{server:?}");
}

#[test]
fn a_bit_that_does_not_spin_is_no_round_trip() {
    let report = read(&quic(false));
    let quic = only(&report).udp.as_ref().unwrap().quic.as_ref().unwrap();
    assert_eq!(quic.spin.state, "constant");
    assert!(quic.spin.rtt_ms.is_none());
    // RFC 9000 17.4: ends that do not take part send a random value, for each packet if they like.
    let mut packets = quic_random();
    packets.splice(0..0, quic_opening());
    let report = read(&packets);
    let quic = only(&report).udp.as_ref().unwrap().quic.as_ref().unwrap();
    assert_eq!(quic.spin.state, "random");
    assert!(quic.spin.rtt_ms.is_none());
}

fn quic_opening() -> Vec<(u64, Vec<u8>)> {
    quic(false).into_iter().take(3).collect()
}

fn quic_random() -> Vec<(u64, Vec<u8>)> {
    let mut state = 7u64;
    (0..200)
        .map(|step| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let first = 0x40 | ((state >> 40) as u8 & 1) << 5;
            (100_000 + step * 1000, udp(step % 2 == 0, &[first, 5, 5, 5, 5]))
        })
        .collect()
}

#[test]
fn another_version_has_its_types_and_its_name() {
    // RFC 9369 3.2: an Initial is type 1.
    let packets = [
        (0, udp(true, &long(0xd0, 0x6b33_43cf, &[1; 8], &[]))),
        (1000, udp(false, &long(0x80, 0, &[], &[1; 8]))),
    ];
    let report = read(&packets);
    let quic = only(&report).udp.as_ref().unwrap().quic.as_ref().unwrap();
    assert_eq!(quic.versions, ["2"]);
    assert_eq!((quic.packets["initial"], quic.packets["version-negotiation"]), (1, 1));
    assert_eq!(quic.client_id, None);
}
