//! Files: every form of pcap and pcapng, compressed, truncated, hostile.

mod common;

use std::io::{Read, Write};

use airpath_capture::{CaptureReport, Compression, FileFormat};
use common::{ACK, Pcap, Segment, read};
use proptest::prelude::*;

/// A pcapng file in either byte order.
struct Pcapng {
    bytes: Vec<u8>,
    big: bool,
}

impl Pcapng {
    fn new(big: bool) -> Self {
        let mut file = Self { bytes: Vec::new(), big };
        file.section(big);
        file
    }

    fn half(&self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn word(&self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn section(&mut self, big: bool) {
        self.big = big;
        let body = [&self.word(0x1a2b_3c4d)[..], &self.half(1), &self.half(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body);
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = self.word(12 + body.len().next_multiple_of(4) as u32);
        let kind = self.word(kind);
        self.bytes.extend([kind, length].concat());
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes.extend(length);
    }

    fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [self.half(code), self.half(value.len() as u16)].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn interface(&mut self, link_type: u16, options: &[u8]) {
        let body = [&self.half(link_type)[..], &[0; 6], options].concat();
        self.block(1, &body);
    }

    fn packet(&mut self, interface: u32, stamp: u64, frame: &[u8], options: &[u8]) {
        let length = frame.len() as u32;
        let words = [interface, (stamp >> 32) as u32, stamp as u32, length, length];
        let mut body = words.map(|word| self.word(word)).concat();
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(options);
        self.block(6, &body);
    }
}

fn packet() -> Vec<u8> {
    Segment::new(true, ACK, 1, 1, 100).packet()
}

/// The parts of a report that do not depend on the form of the file.
fn summary(report: &CaptureReport) -> (u64, u64, Option<f64>, f64, String) {
    let flows = format!("{:?}", report.flows);
    (report.packets, report.bytes, report.first_time_s, report.duration_s, flows)
}

fn sample() -> Pcap {
    let mut pcap = Pcap::raw();
    pcap.handshake().segment(50_000, &Segment::new(true, ACK, 1, 1, 1000));
    pcap
}

#[test]
fn units_and_byte_orders_of_pcap_say_the_same() {
    let expected = summary(&sample().report());
    assert_eq!((expected.0, expected.2), (4, Some(0.0)));
    for (magic, nanoseconds) in [(0xa1b2_c3d4_u32, false), (0xa1b2_3c4d, true)] {
        for big in [false, true] {
            let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
            let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
            let mut bytes = [&word(magic)[..], &half(2), &half(4), &[0; 12], &word(101)].concat();
            let little = sample().bytes;
            let mut at = 24;
            while at < little.len() {
                let mut fields = [0, 4, 8, 12].map(|field| {
                    u32::from_le_bytes(little[at + field..at + field + 4].try_into().unwrap())
                });
                fields[1] *= if nanoseconds { 1000 } else { 1 };
                bytes.extend(fields.map(word).concat());
                let kept = fields[2] as usize;
                bytes.extend(&little[at + 16..at + 16 + kept]);
                at += 16 + kept;
            }
            let report = read(&bytes).unwrap();
            assert_eq!(report.format, FileFormat::Pcap);
            assert_eq!(summary(&report), expected, "{magic:x} {big}");
        }
    }
}

#[test]
fn compressed_files_say_the_same() {
    let plain = sample().bytes;
    let expected = summary(&read(&plain).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain[..100]).unwrap();
    let mut members = gzip.finish().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(members.split_off(0), flate2::Compression::fast());
    gzip.write_all(&plain[100..]).unwrap();
    // A file may have several members (RFC 1952 2.2).
    let gzip = read(&gzip.finish().unwrap()).unwrap();
    assert_eq!((gzip.compression, summary(&gzip)), (Some(Compression::Gzip), expected.clone()));
    let zstd = read(&zstd::encode_all(&plain[..], 1).unwrap()).unwrap();
    assert_eq!((zstd.compression, summary(&zstd)), (Some(Compression::Zstd), expected));
}

#[test]
fn what_expands_without_end_is_ended() {
    let header = Pcap::raw().bytes;
    let zeros = header.as_slice().chain(std::io::repeat(0).take(300_000_000));
    let small = zstd::encode_all(zeros, 1).unwrap();
    assert!(small.len() < 1_000_000);
    let report = read(&small).unwrap();
    assert!(report.damaged.unwrap().contains("expands to more than 200 times its size"));
}

#[test]
fn sections_interfaces_and_clocks_of_pcapng() {
    for big in [false, true] {
        let mut file = Pcapng::new(big);
        let options = [file.option(2, b"n3"), file.option(9, &[9]), file.option(0, &[])].concat();
        file.interface(101, &options);
        let offset = if big { 100_i64.to_be_bytes() } else { 100_i64.to_le_bytes() };
        // Units of 2^-10 s, 100 s later.
        let options = [file.option(9, &[0x8a]), file.option(14, &offset)].concat();
        file.interface(1, &options);
        file.packet(0, 5_000_000_001, &packet(), &[]);
        file.packet(1, 512, &common::ethernet(0x800, &packet()), &[]);
        // A custom block is skipped.
        file.block(0xbad, &[1; 1000]);
        // Another section: other byte order, other interfaces, microseconds.
        file.section(!big);
        file.interface(101, &[]);
        file.packet(0, 7_000_000, &packet(), &[]);
        let report = read(&file.bytes).unwrap();
        assert_eq!((report.format, report.packets), (FileFormat::Pcapng, 3));
        let names: Vec<_> = report.interfaces.iter().map(|one| one.name.as_deref()).collect();
        assert_eq!(names, [Some("n3"), None, None]);
        assert_eq!(report.first_time_s, Some(5.000000001));
        let starts: Vec<_> = report.flows.iter().map(|flow| flow.start_s).collect();
        assert_eq!(starts, [0.0, 95.499999999, 1.999999999]);
        assert_eq!(report.backward_times, 1);
        // The same packets at three points: judging by the times of the first and the third, these
        // could be one flow.
        let same: Vec<_> = report.flows.iter().map(|flow| flow.same_as.clone()).collect();
        assert_eq!(same, [vec![], vec![], vec![]] as [Vec<u64>; 3]);
    }
}

#[test]
fn dropped_packets_are_told() {
    let mut file = Pcapng::new(false);
    file.interface(101, &[]);
    file.interface(101, &[]);
    let dropped = file.option(4, &3_u64.to_le_bytes());
    file.packet(0, 0, &packet(), &dropped);
    let counts = [file.option(5, &40_u64.to_le_bytes()), file.option(7, &2_u64.to_le_bytes())];
    let body = [&1_u32.to_le_bytes()[..], &[0; 8], &counts.concat()].concat();
    file.block(5, &body);
    let report = read(&file.bytes).unwrap();
    let dropped: Vec<_> = report.interfaces.iter().map(|one| one.dropped).collect();
    assert_eq!((dropped, report.missed.dropped_packets), (vec![3, 42], 45));
}

#[test]
fn simple_packets_have_no_time() {
    let mut file = Pcapng::new(false);
    file.interface(101, &[]);
    file.packet(0, 9_000_000, &packet(), &[]);
    let body = [&(packet().len() as u32).to_le_bytes()[..], &packet()].concat();
    file.block(3, &body);
    let report = read(&file.bytes).unwrap();
    assert_eq!((report.packets, report.duration_s), (2, 0.0));
}

#[test]
fn what_is_no_capture_is_refused_with_a_line() {
    let refused = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let end = "A capture is a pcap or a pcapng file, which may be compressed with gzip or zstd";
    let empty = "file: this is not a capture: it begins with nothing: it is empty. ";
    assert_eq!(refused(b""), format!("{empty}{end}"));
    let text = "file: this is not a capture: it begins with the bytes 50 49 4e 47. ";
    assert_eq!(refused(b"PING 10.0.0.1"), format!("{text}{end}"));
    let mut file = Pcapng::new(false);
    file.packet(0, 0, &packet(), &[]);
    let line = "file: byte 28: a packet refers to interface 0; the section has 0";
    assert_eq!(refused(&file.bytes), line);
    let mut file = Pcap::raw();
    file.bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2]);
    let line = "file: byte 24: a packet of 33554432 bytes; at most 16 MiB are read";
    assert_eq!(refused(&file.bytes), line);
}

#[test]
fn a_file_that_ends_early_says_where() {
    let whole = sample().bytes;
    let report = read(&whole[..whole.len() - 1]).unwrap();
    let damaged = report.damaged.unwrap();
    let line =
        "after packet 3: file: byte 232: the file ends within a packet or block: 1055 bytes left";
    assert_eq!((report.packets, damaged.as_str()), (3, line));
}

proptest! {
    /// Whatever is cut off or changed, packets are accounted for; a prefix has the packets that it
    /// holds.
    #[test]
    fn a_damaged_file_is_read_as_far_as_it_is_one(
        kept in 0.0..1.0,
        changes in prop::collection::vec((0.0..1.0, any::<u8>()), 0..4),
        big in any::<bool>(),
    ) {
        let mut file = Pcapng::new(big);
        file.interface(101, &[]);
        for n in 0..10 {
            file.packet(0, n, &packet(), &[]);
        }
        let mut bytes = file.bytes;
        bytes.truncate((bytes.len() as f64 * kept) as usize);
        for (at, value) in changes {
            let at = (bytes.len() as f64 * at) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(report) = read(&bytes) {
            let flows = report.flows.iter().map(|flow| flow.from_client.packets + flow.from_server.packets);
            prop_assert_eq!(report.packets, flows.sum::<u64>() + report.skipped.values().sum::<u64>());
            prop_assert!(report.packets <= 10 || report.damaged.is_some());
        }
    }
}
