//! Random captures: transfers with drawn losses, whose truth is known, and drawn packets.

mod common;

use airpath_base::Stream;
use airpath_capture::{Skipped, StreamReport};
use common::{ACK, Pcap, Segment, ipv4, ipv6, udp};
use proptest::prelude::*;

const MSS: usize = 1000;
/// Round-trip times from the capture point to the server, which sends, and to the client, in
/// microseconds.
const TO_SERVER: u64 = 20_000;
const TO_CLIENT: u64 = 30_000;

/// What really happened.
#[derive(Default, Debug)]
struct Truth {
    sent_again: u64,
    overtaken: u64,
    bytes: u64,
    /// Rounds whose first segment arrived. A round that lost it has no round-trip times: the
    /// segments after it are selectively acknowledged first.
    timed: u64,
}

/// A transfer in rounds. In each, a drawn number of segments passes the point; some were lost
/// before it, some are lost after it, and one may be overtaken on its way to it. Each lost segment
/// is retransmitted alone, after its duplicate acknowledgements, until it arrives.
fn transfer(seed: u64, rounds: u64) -> (StreamReport, Truth) {
    let (mut random, mut truth) = (Stream::new(seed, "capture"), Truth::default());
    let mut below = |bound: u64| (random.unit() * bound as f64) as u64;
    let mut pcap = Pcap::raw();
    pcap.handshake();
    let base = 1_u32;
    let (mut next, mut now) = (0_u64, 100_000);
    let number = |segment: u64| base.wrapping_add((segment * MSS as u64) as u32);
    let data = |segment: u64| Segment::new(false, ACK, number(segment), 1, MSS);
    for _ in 0..rounds {
        let count = 5 + below(40);
        let mut order: Vec<u64> = (next..next + count).collect();
        let lost = (below(3) == 0).then(|| next + below(count - 4));
        truth.timed += u64::from(lost != Some(next));
        let lost_before = lost.is_some() && below(2) == 0;
        if lost.is_none() && below(2) == 0 {
            let at = below(count - 2) as usize;
            order.swap(at, at + 1);
            truth.overtaken += 1;
        }
        let mut arrived = vec![];
        for segment in order {
            now += 100;
            if Some(segment) != lost || !lost_before {
                pcap.segment(now, &data(segment));
            }
            if Some(segment) != lost {
                arrived.push((now + TO_CLIENT, segment));
            }
        }
        let mut edge = lost.unwrap_or(next + count);
        let mut last = now;
        for &(at, segment) in &arrived {
            let done = arrived
                .iter()
                .filter(|(time, _)| *time <= at)
                .map(|(_, one)| *one)
                .collect::<Vec<_>>();
            edge = (next..next + count).find(|one| !done.contains(one)).unwrap_or(next + count);
            let acknowledgement = Segment::new(true, ACK, 1, number(edge), 0);
            pcap.segment(
                at,
                &if segment > edge {
                    acknowledgement.sack(&[(number(segment), number(segment + 1))])
                } else {
                    acknowledgement
                },
            );
            last = at;
        }
        now = last + TO_SERVER;
        if let Some(lost) = lost {
            pcap.segment(now, &data(lost));
            truth.sent_again += 1;
            now += TO_CLIENT;
            pcap.segment(now, &Segment::new(true, ACK, 1, number(next + count), 0));
            now += TO_SERVER;
            edge = next + count;
        }
        assert_eq!(edge, next + count);
        next += count;
        truth.bytes += count * MSS as u64;
    }
    (pcap.tcp().from_server, truth)
}

proptest! {
    #[test]
    fn a_transfer_is_seen_as_it_was(seed in any::<u64>(), rounds in 1u64..20) {
        let (seen, truth) = transfer(seed, rounds);
        let sent = seen.retransmissions;
        prop_assert_eq!((sent.packets, sent.fast, sent.spurious), (truth.sent_again, truth.sent_again, 0));
        prop_assert_eq!(seen.out_of_order_packets, truth.overtaken);
        prop_assert_eq!((seen.acked_bytes, seen.unseen_bytes), (truth.bytes, 0));
        // One of the handshake, and those of the data.
        let rtt = seen.rtt_ms.unwrap();
        prop_assert_eq!(rtt.min, 10.0);
        prop_assert_eq!(rtt.count > 1, truth.timed > 0);
        prop_assert!(truth.timed == 0 || (rtt.max - 30.0).abs() < 0.2, "{rtt:?}");
    }

    /// Whatever the packets are, each is counted once.
    #[test]
    fn drawn_packets_are_accounted_for(
        link in prop_oneof![Just(1_u32), Just(101), Just(113), Just(0)],
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..40),
        tcp in prop::collection::vec(tcp(), 0..60),
        shuffled in any::<bool>(),
    ) {
        let mut pcap = Pcap::new(link);
        let mut packets: Vec<Vec<u8>> = frames;
        packets.extend(tcp.iter().enumerate().map(|(n, segment)| match n % 5 {
            0 => segment.packet(),
            1 => ipv6(6, &segment.bytes()),
            2 => ipv4([1; 4], [2; 4], 17, &udp([2152; 2], &[&[0x30, 255, 0, 60, 0, 0, 0, 1][..], &segment.packet()].concat())),
            3 => ipv6(44, &[&[6, 0, 0, 1, 0, 0, 0, 1][..], &segment.bytes()].concat()),
            _ => ipv4([1; 4], [2; 4], 1, &segment.bytes()),
        }));
        if shuffled {
            packets.reverse();
        }
        for (n, packet) in packets.iter().enumerate() {
            let header: &[u8] = match link {
                1 => &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0],
                113 => &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0],
                0 => &[2, 0, 0, 0],
                _ => &[],
            };
            pcap.frame(n as u64 * 700, &[header, packet].concat());
        }
        let report = pcap.report();
        let flows = report.flows.iter().map(|flow| flow.from_client.packets + flow.from_server.packets);
        let skipped = report.skipped.values().sum::<u64>();
        prop_assert_eq!(packets.len() as u64, flows.sum::<u64>() + skipped);
        prop_assert_eq!(report.skipped.get(&Skipped::LinkType), None);
        for tcp in report.flows.iter().filter_map(|flow| flow.tcp.as_ref()) {
            for stream in [&tcp.from_client, &tcp.from_server] {
                let sent = stream.retransmissions;
                prop_assert!(sent.packets + stream.out_of_order_packets <= stream.data_packets + 200);
                prop_assert!(stream.acked_bytes <= stream.data_bytes + stream.unseen_bytes);
            }
        }
    }
}

fn tcp() -> impl Strategy<Value = Segment> {
    let numbers = (0u32..8000, 0u32..8000, 0u16..200);
    (any::<bool>(), any::<u8>(), numbers, 0usize..60, prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(up, flags, (sequence, acknowledgement, window), payload, options)| {
            Segment::new(up, flags, sequence, acknowledgement, payload)
                .window(window)
                .options(&options)
        })
}
