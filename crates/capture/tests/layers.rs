//! What precedes the TCP header: link layers, tunnels, extension headers, fragments.

mod common;

use airpath_base::Direction;
use airpath_capture::gtpu::Header;
use airpath_capture::{FlowReport, Skipped, Tunnel};
use common::{ACK, CLIENT, Pcap, SERVER, SYN, Segment, ethernet, ipv4, ipv6, udp};

const IP: u16 = 0x0800;

/// A handshake, data in both directions and the acknowledgements.
fn segments() -> Vec<Segment> {
    let syn = |up, flags, ack| Segment::new(up, flags, 0, ack, 0).options(&common::SYN_OPTIONS);
    vec![
        syn(true, SYN, 0),
        syn(false, SYN | ACK, 1),
        Segment::new(true, ACK, 1, 1, 700),
        Segment::new(false, ACK, 1, 701, 900),
        Segment::new(true, ACK, 701, 901, 0),
    ]
}

/// The flow of the segments in frames that `around` makes of packets.
fn flow(link_type: u32, around: impl Fn(&[u8], bool) -> Vec<u8>) -> FlowReport {
    let mut pcap = Pcap::new(link_type);
    for (n, segment) in segments().iter().enumerate() {
        pcap.frame(n as u64 * 1000, &around(&segment.packet(), segment.up));
    }
    let mut flow = pcap.flow();
    (flow.tunnel, flow.teids) = (Tunnel::None, [None; 2]);
    flow
}

fn plain() -> FlowReport {
    flow(101, |packet, _| packet.to_vec())
}

#[track_caller]
fn same(link_type: u32, around: impl Fn(&[u8], bool) -> Vec<u8>) {
    assert_eq!(format!("{:?}", flow(link_type, around)), format!("{:?}", plain()));
}

#[test]
fn the_plain_flow_is_what_was_sent() {
    let flow = plain();
    assert_eq!((flow.client.as_str(), flow.client_port), ("10.0.0.1", CLIENT.1));
    assert_eq!((flow.server.as_str(), flow.server_port), ("10.0.0.2", SERVER.1));
    assert_eq!((flow.from_client.packets, flow.from_server.packets), (3, 2));
    assert_eq!((flow.from_client.bytes, flow.from_server.bytes), (840, 1000));
    let tcp = flow.tcp.unwrap();
    assert_eq!((tcp.from_client.acked_bytes, tcp.from_server.acked_bytes), (700, 900));
}

#[test]
fn link_layers() {
    let tagged = |tags: &[u16], packet: &[u8]| {
        let mut body = Vec::new();
        for tag in tags.iter().skip(1).chain([&IP]) {
            body.extend([0, 7]);
            body.extend(tag.to_be_bytes());
        }
        ethernet(tags[0], &[&body, packet].concat())
    };
    same(1, |packet, _| ethernet(IP, packet));
    same(1, |packet, _| tagged(&[0x8100], packet));
    same(1, |packet, _| tagged(&[0x88a8, 0x8100], packet));
    same(1, |packet, _| tagged(&[0x9100, 0x8100, 0x8100], packet));
    // PPPoE session, PPP of IPv4; two MPLS labels.
    same(1, |packet, _| ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 0, 0, 0x21], packet].concat()));
    same(1, |packet, _| ethernet(0x8847, &[&[0, 1, 0, 9, 0, 2, 1, 9], packet].concat()));
    same(113, |packet, _| [&[0; 14][..], &[8, 0], packet].concat());
    same(113, |packet, _| [&[0; 14][..], &[0x81, 0, 0, 7, 8, 0], packet].concat());
    same(276, |packet, _| [&[8, 0][..], &[0; 18], packet].concat());
    same(0, |packet, _| [&[2, 0, 0, 0], packet].concat());
    same(108, |packet, _| [&[0, 0, 0, 2], packet].concat());
    same(9, |packet, _| [&[0xff, 3, 0, 0x21], packet].concat());
    for raw in [12, 14, 101, 228] {
        same(raw, |packet, _| packet.to_vec());
    }
}

fn g_pdu(qfi: Option<u8>, up: bool, packet: &[u8]) -> Vec<u8> {
    let direction = if up { Direction::Uplink } else { Direction::Downlink };
    let header = Header::new(if up { 1 } else { 2 }, qfi, direction, packet.len());
    let datagram = udp([2152, 2152], &[header.bytes(), packet].concat());
    ipv4([10, 9, 0, 1], [10, 9, 0, 2], 17, &datagram)
}

fn vxlan(port: u16, packet: &[u8]) -> Vec<u8> {
    let body = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(IP, packet)].concat();
    ipv4([10, 9, 0, 1], [10, 9, 0, 2], 17, &udp([55_555, port], &body))
}

#[test]
fn tunnels() {
    same(101, |packet, up| g_pdu(None, up, packet));
    same(101, |packet, up| g_pdu(Some(9), up, packet));
    same(1, |packet, up| ethernet(IP, &g_pdu(Some(9), up, packet)));
    same(101, |packet, up| g_pdu(None, up, &g_pdu(Some(1), up, packet)));
    same(101, |packet, _| vxlan(4789, packet));
    same(101, |packet, up| vxlan(8472, &g_pdu(Some(9), up, packet)));
    // Geneve with an option of 8 bytes: a frame, and a packet.
    let geneve = |kind: u16, body: &[u8]| {
        let [high, low] = kind.to_be_bytes();
        let header = [2, 0, high, low, 0, 0, 7, 0, 1, 1, 1, 1, 1, 1, 1, 1];
        let body = [&header[..], body].concat();
        ipv4([10, 9, 0, 1], [10, 9, 0, 2], 17, &udp([55_555, 6081], &body))
    };
    same(101, |packet, _| geneve(0x6558, &ethernet(IP, packet)));
    same(101, |packet, _| geneve(IP, packet));
    same(101, |packet, _| ipv4([10, 9, 0, 1], [10, 9, 0, 2], 4, packet));
    same(101, |packet, _| ipv6(4, packet));
}

#[test]
fn extension_headers_of_gtp_u_are_passed_over() {
    same(101, |packet, _| {
        // A sequence number, a PDCP PDU number and a PDU session container (TS 29.281 5.2).
        let options = [0, 7, 0, 0xc0, 1, 0, 9, 0x85, 1, 0x10, 9, 0];
        let mut header = vec![0x36, 255];
        header.extend((options.len() as u16 + packet.len() as u16).to_be_bytes());
        header.extend([0, 0, 0, 1]);
        let datagram = udp([40_000, 2152], &[&header, &options[..], packet].concat());
        ipv4([10, 9, 0, 1], [10, 9, 0, 2], 17, &datagram)
    });
}

#[test]
fn what_uses_a_tunnels_port_and_is_none_is_udp() {
    let mut pcap = Pcap::raw();
    for (n, body) in [
        &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0][..],
        b"hello",
        &[0x30, 255, 0, 2, 0, 0, 0, 1, 1, 1],
    ]
    .iter()
    .enumerate()
    {
        let ports = [1000 + n as u16, 2152];
        pcap.frame(0, &ipv4(CLIENT.0, SERVER.0, 17, &udp(ports, body)));
    }
    let flows = pcap.report().flows;
    assert!(flows.iter().all(|flow| flow.protocol == "udp" && flow.tunnel == Tunnel::None));
    assert_eq!(flows.len(), 3);
}

#[test]
fn a_flow_inside_and_outside_a_tunnel_is_found_to_be_one() {
    let mut pcap = Pcap::raw();
    for (n, segment) in segments().iter().enumerate() {
        pcap.frame(n as u64 * 1000, &g_pdu(Some(9), segment.up, &segment.packet()));
        pcap.frame(n as u64 * 1000 + 100, &segment.packet());
    }
    let flows = pcap.report().flows;
    assert_eq!(
        flows.iter().map(|flow| flow.tunnel).collect::<Vec<_>>(),
        [Tunnel::GtpU, Tunnel::None]
    );
    assert_eq!((flows[0].teids, flows[1].teids), ([Some(1), Some(2)], [None; 2]));
    assert_eq!((flows[0].same_as.as_slice(), flows[1].same_as.as_slice()), (&[1][..], &[0][..]));
    let counts = |flow: &FlowReport| format!("{:?} {:?}", flow.from_client, flow.from_server);
    assert_eq!(counts(&flows[0]), counts(&flows[1]));
}

#[test]
fn extension_headers_of_ipv6() {
    let figures = |flow: FlowReport| {
        let tcp = flow.tcp.unwrap();
        (flow.client, tcp.from_client.acked_bytes, tcp.from_server.acked_bytes, tcp.handshake_ms)
    };
    let with = |headers: &dyn Fn(&[u8]) -> Vec<u8>| {
        let mut pcap = Pcap::raw();
        for (n, segment) in segments().iter().enumerate() {
            let mut packet = headers(&segment.bytes());
            if !segment.up {
                let source: Vec<u8> = packet[8..24].to_vec();
                packet.copy_within(24..40, 8);
                packet[24..40].copy_from_slice(&source);
            }
            pcap.frame(n as u64 * 1000, &packet);
        }
        figures(pcap.flow())
    };
    let expected = ("fd00::1".to_owned(), 700, 900, Some(2.0));
    assert_eq!(with(&|tcp| ipv6(6, tcp)), expected);
    // Hop-by-hop, routing, destination options of 16 bytes, an atomic fragment.
    let headers = [
        &[43, 0, 1, 4, 0, 0, 0, 0][..],
        &[60, 0, 0, 0, 0, 0, 0, 0],
        &[44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 9],
    ]
    .concat();
    assert_eq!(with(&|tcp| ipv6(0, &[&headers, tcp].concat())), expected);
    // A chain that claims to be longer than the packet, and one that never ends.
    let mut pcap = Pcap::raw();
    pcap.frame(0, &ipv6(60, &[6, 200, 1, 4, 0, 0, 0, 0]));
    pcap.frame(0, &ipv6(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(100)));
    let skipped = pcap.report().skipped;
    assert_eq!(skipped.get(&Skipped::Malformed), Some(&1));
    assert_eq!(skipped.get(&Skipped::TooDeep), Some(&1));
}

/// A packet in two fragments, each a packet of its own.
fn parts(packet: &[u8], id: u8, first: usize) -> [Vec<u8>; 2] {
    let body = &packet[20..];
    let part = |from: usize, to: usize, more: bool| {
        let mut part = packet[..20].to_vec();
        part[2..4].copy_from_slice(&(20 + to as u16 - from as u16).to_be_bytes());
        part[5] = id;
        let field = (from / 8) as u16 | if more { 0x2000 } else { 0 };
        part[6..8].copy_from_slice(&field.to_be_bytes());
        part.extend(&body[from..to]);
        part
    };
    [part(0, first, true), part(first, body.len(), false)]
}

#[test]
fn fragments_make_one_segment_whatever_their_order() {
    for order in [[0, 1], [1, 0]] {
        let mut pcap = Pcap::raw();
        for (n, segment) in segments().iter().enumerate() {
            let packet = segment.packet();
            if segment.payload == 0 {
                pcap.frame(n as u64 * 1000, &packet);
                continue;
            }
            let parts = parts(&packet, n as u8, 400);
            order.iter().for_each(|&part| {
                pcap.frame(n as u64 * 1000, &parts[part]);
            });
        }
        let report = pcap.report();
        assert_eq!(report.skipped.get(&Skipped::Fragment), Some(&2));
        assert_eq!(format!("{:?}", report.flows), format!("{:?}", [plain()]));
    }
}

#[test]
fn fragments_of_a_tunnel_need_only_the_first() {
    let mut pcap = Pcap::raw();
    for (n, segment) in segments().iter().enumerate() {
        let packet = g_pdu(Some(9), segment.up, &segment.packet());
        if segment.payload == 0 {
            pcap.frame(n as u64 * 1000, &packet);
            continue;
        }
        for part in parts(&packet, n as u8, 96) {
            pcap.frame(n as u64 * 1000, &part);
        }
    }
    let mut report = pcap.report();
    assert_eq!(report.skipped.get(&Skipped::Fragment), Some(&2));
    let flow = &mut report.flows[0];
    (flow.tunnel, flow.teids) = (Tunnel::None, [None; 2]);
    assert_eq!(format!("{flow:?}"), format!("{:?}", plain()));
}

#[test]
fn packets_that_were_cut_count_in_full() {
    let with = |snap: usize| {
        let mut pcap = Pcap::new(1);
        pcap.snap = snap;
        for (n, segment) in segments().iter().enumerate() {
            pcap.frame(n as u64 * 1000, &ethernet(IP, &segment.packet()));
        }
        pcap.report()
    };
    assert_eq!(format!("{:?}", with(74).flows), format!("{:?}", with(2000).flows));
    assert_eq!((with(74).cut_packets, with(2000).cut_packets), (2, 0));
    // Without the options the flow and its round trips are there, and the contents of the options
    // are not.
    let tcp = with(54).flows.remove(0).tcp.unwrap();
    assert_eq!((tcp.from_server.acked_bytes, tcp.from_client.options.unwrap().mss), (900, None));
    // Without the header up to its window, nothing can be reported.
    assert_eq!(format!("{:?}", with(50).flows), format!("{:?}", with(54).flows));
    assert_eq!(with(49).skipped.get(&Skipped::Truncated), Some(&5));
}

#[test]
fn what_carries_no_ip_is_counted_by_reason() {
    let mut pcap = Pcap::new(1);
    pcap.frame(0, &ethernet(0x0806, &[0; 28]));
    pcap.frame(0, &ethernet(IP, &[0x75; 40]));
    pcap.frame(0, &ethernet(IP, &[0x44; 40]));
    pcap.frame(0, &[1, 2, 3]);
    let skipped = pcap.report().skipped;
    let expected = [(Skipped::NoIp, 2), (Skipped::Truncated, 1), (Skipped::Malformed, 1)];
    assert_eq!(skipped, expected.into());
    let mut other = Pcap::new(105);
    other.frame(0, &[0; 40]);
    let report = other.report();
    assert_eq!(report.skipped, [(Skipped::LinkType, 1)].into());
    assert_eq!(report.interfaces[0].link, None);
}
