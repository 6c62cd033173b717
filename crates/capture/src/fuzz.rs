//! Bodies of this crate's fuzz targets (`fuzz/`): no input makes anything panic, and what was
//! parsed matches the bytes. Tests replay the corpora. Not part of the library.

use std::io::Cursor;

use airpath_base::Direction;

use crate::flows::collect_from;
use crate::gtpu::{self, Gpdu, Header};
use crate::{Detail, FlowReport, Found, Packets, Reader, Segments, Wanted, analyse, view};

/// Fuzzes the parsing of a datagram on S1-U or N3.
pub fn gtpu(datagram: &[u8]) {
    let Some(Gpdu { teid, qfi, packet }) = gtpu::read(datagram) else { return };
    let end = 8 + usize::from(u16::from_be_bytes([datagram[2], datagram[3]]));
    assert!(datagram[8..end].ends_with(packet), "the packet ends where the length says");
    assert!(qfi.is_none_or(|qfi| qfi < 64));
    for direction in [Direction::Downlink, Direction::Uplink] {
        let again = [Header::new(teid, qfi, direction, packet.len()).bytes(), packet].concat();
        assert_eq!(gtpu::read(&again), Some(Gpdu { teid, qfi, packet }));
    }
}

/// Fuzzes the analysis of a capture file.
pub fn capture(file: &[u8]) {
    let source = Box::new(Cursor::new(file.to_vec()));
    let report = match Reader::new(source, "capture".to_owned()).and_then(analyse) {
        Ok(report) => report,
        Err(error) => return assert!(error.to_string().starts_with("capture: ")),
    };
    let skipped: u64 = report.skipped.values().sum();
    let flows = report.flows.iter().map(|flow| flow.from_client.packets + flow.from_server.packets);
    assert_eq!(report.packets, skipped + report.others.packets + flows.sum::<u64>());
    assert_eq!(report.packets, report.interfaces.iter().map(|one| one.packets).sum::<u64>());
    for stream in report.flows.iter().filter_map(|flow| flow.tcp.as_ref()) {
        for stream in [&stream.from_client, &stream.from_server] {
            let sent = stream.retransmissions;
            let kinds =
                sent.fast + sent.tail_loss_probe + sent.timeout + sent.handshake + sent.unclear;
            assert_eq!(sent.packets, kinds);
            assert!(sent.spurious <= sent.packets && sent.original_unseen <= sent.packets);
            assert!(stream.acked_bytes <= stream.data_bytes + stream.unseen_bytes);
        }
    }
}

/// Most flows of a file that are read again.
const MOST_FLOWS: usize = 8;
/// Most packets that are kept of each flow: few, so that some flows have more.
const MOST_PACKETS: usize = 24;

/// Fuzzes a second reading of a capture file: its flows packet by packet, and as they are drawn.
pub fn second_reading(file: &[u8]) {
    let open = || Reader::new(Box::new(Cursor::new(file.to_vec())), "capture".to_owned());
    let Ok(report) = open().and_then(analyse) else { return };
    let flows = &report.flows[..report.flows.len().min(MOST_FLOWS)];
    let wanted: Vec<_> = (flows.iter())
        .flat_map(|flow| {
            [Wanted::Segments(flow, true), Wanted::Segments(flow, false), Wanted::Packets(flow)]
        })
        .collect();
    let reader = open().expect("it was open before");
    let found = collect_from(reader, &wanted, MOST_PACKETS).expect("it was read before");
    assert_eq!(found.len(), wanted.len());
    for (wanted, found) in wanted.iter().zip(&found) {
        match (wanted, found) {
            (Wanted::Segments(flow, _), Found::Segments(segments)) => {
                check_segments(flow, segments);
            }
            (Wanted::Packets(flow), Found::Packets(packets)) => check_packets(flow, packets),
            _ => panic!("another answer than was asked for"),
        }
    }
}

fn check_segments(flow: &FlowReport, found: &Segments) {
    let (sent, acks) = (found.sent_ns.len(), found.ack_ns.len());
    assert!(sent <= MOST_PACKETS && acks <= MOST_PACKETS);
    assert!(flow.tcp.is_some() || sent + acks == 0);
    let lists = [found.frame.len(), found.offset.len(), found.payload.len(), found.size.len()];
    assert_eq!(lists, [sent; 4]);
    let lists = [found.sent_again.len(), found.is_again.len(), found.after_gap.len()];
    assert_eq!(lists, [sent; 3]);
    assert_eq!([found.timestamp.len(), found.echo.len(), found.acked_ns.len()], [sent; 3]);
    assert_eq!([found.delivered.len(), found.ack_offset.len(), found.window.len()], [acks; 3]);
    assert_eq!([found.ack_timestamp.len(), found.is_pure.len()], [acks; 2]);
    let blocks = found.sack_ns.len();
    assert_eq!([found.sack_from.len(), found.sack_to.len()], [blocks; 2]);
    assert!(found.delivered.is_sorted());
    for scale in [0, 14] {
        let drawn = view(found, Some(scale), Detail { bins: 64, packets: 8 });
        assert!(drawn.begin_ms.is_finite() && drawn.duration_ms.is_finite());
        for level in &drawn.levels {
            assert!(level.bin_ms > 0.0);
            assert!(level.delivered.0.iter().all(|bytes| bytes.is_finite()));
        }
        let packets = &drawn.packets;
        assert!(packets.sent.0.len() <= 8 && packets.acked.0.len() <= 16);
        assert!(packets.sack_at.0.len() <= 8);
    }
}

fn check_packets(flow: &FlowReport, found: &Packets) {
    let count = found.time_ns.len();
    assert!(count <= MOST_PACKETS);
    let lists = [found.frame.len(), found.from_client.len(), found.size.len(), found.echo.len()];
    assert_eq!(lists, [count; 4]);
    assert!(found.frame.is_sorted());
    // Where times jump back, packets fall outside the flow's duration.
    let packets = flow.from_client.packets + flow.from_server.packets;
    assert!(!found.cut || count == MOST_PACKETS);
    assert!(packets > 0);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use airpath_testing::replay;
    use proptest::prelude::*;

    #[test]
    fn corpora_are_survived() {
        replay("gtpu", super::gtpu);
        replay("capture", super::capture);
        replay("second_reading", super::second_reading);
    }

    fn corpus() -> Vec<Vec<u8>> {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture");
        let mut files: Vec<_> =
            std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| std::fs::read(file).unwrap()).collect()
    }

    /// Changes to a file: a byte is changed, bytes are cut out, or bytes are inserted elsewhere.
    fn mutations() -> impl Strategy<Value = Vec<(u8, f64, f64, u8)>> {
        prop::collection::vec((0u8..4, 0.0..1.0, 0.0..1.0, any::<u8>()), 1..12)
    }

    proptest! {
        /// Has no coverage guidance as libFuzzer has, but runs wherever tests run.
        #[test]
        fn files_like_the_corpus_are_survived(
            which in any::<prop::sample::Index>(),
            mutations in mutations(),
        ) {
            let corpus = corpus();
            let mut file = which.get(&corpus).clone();
            for (how, at, to, value) in mutations {
                let place = |share: f64| (share * file.len() as f64) as usize;
                let (at, to) = (place(at), place(to));
                let length = usize::from(value).min(file.len() - at);
                match how {
                    0 | 1 if at < file.len() => file[at] = if how == 0 { value } else { file[at] ^ 1 << (value & 7) },
                    2 => drop(file.drain(at..at + length)),
                    _ => {
                        let copy = file[at..at + length].to_vec();
                        file.splice(to..to, copy);
                    }
                }
            }
            super::capture(&file);
            super::second_reading(&file);
        }
    }
}
