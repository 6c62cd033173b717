//! Bodies of the fuzz targets of this crate (`fuzz/`): whatever bytes come in, nothing panics, and what
//! was understood means what the bytes say. Tests replay the corpora. No part of the library.

use std::io::Cursor;

use airpath_base::Direction;

use crate::gtpu::{self, Gpdu, Header};
use crate::{Reader, analyse};

/// A datagram on S1-U or N3.
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

/// A file of packets.
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

#[cfg(test)]
mod tests {
    use airpath_testing::replay;

    #[test]
    fn corpora_are_survived() {
        replay("gtpu", super::gtpu);
        replay("capture", super::capture);
    }
}
