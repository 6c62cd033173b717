//! From packets to flows, and what is reported of each flow.

mod clock;
mod copies;
mod flow;
mod key;
mod packets;
mod segments;
mod table;
mod walk;

pub use packets::Packets;
#[cfg(any(test, fuzzing))]
pub(crate) use segments::collect_from;
pub use segments::{Found, Segments, Wanted, collect, segments};

use std::collections::BTreeMap;

use airpath_base::{Duration, Instant};

use crate::CaptureError;
use crate::decode::icmp::IcmpError;
use crate::decode::{
    Fragments, ICMP_V4, ICMP_V6, IpPacket, Skipped, TCP, TO_WINDOW, TcpHeader, UDP, decode,
    headers_need, link_type_name,
};
use crate::read::{Packet, Reader};
use crate::report::{CaptureReport, CutHeaders, InterfaceReport};
use clock::Clock;
use copies::{Copies, Sight};
use key::Key;
use table::{Finished, Repeated, Table};

/// About 100 ms of work, even without compiler optimisation.
const PACKETS_BETWEEN_QUESTIONS: u64 = 1 << 16;

/// Reads a capture to its end and reports what it holds.
///
/// # Errors
///
/// If the capture cannot be read, or is broken before its first packet. If it is broken later, the
/// report covers what comes before, and `damaged` says where.
pub fn analyse(reader: Reader) -> Result<CaptureReport, CaptureError> {
    let report = analyse_while(reader, || true)?;
    Ok(report.expect("nothing ended it"))
}

/// Like [`analyse`], but stops when `keep_on`, which is called from time to time, returns false;
/// the result is then `None`.
///
/// # Errors
///
/// As [`analyse`].
pub fn analyse_while(
    reader: Reader,
    mut keep_on: impl FnMut() -> bool,
) -> Result<Option<CaptureReport>, CaptureError> {
    let again = reader.file().cloned();
    let Some((mut report, mut repeated)) = read_once(reader, Repeated::default(), &mut keep_on)?
    else {
        return Ok(None);
    };
    let Some(file) = again else { return Ok(Some(report)) };
    // Whether packets are out of order, and whether indistinguishable ones are copies, is known
    // only at the end.
    let backward = report.backward_times;
    let open = || if backward > 0 { Reader::open_sorted(&file) } else { Reader::open(&file) };
    if backward > 0 {
        let found = read_once(open()?, Repeated::default(), &mut keep_on)?;
        let Some(sorted) = found else { return Ok(None) };
        (report, repeated) = sorted;
    }
    if !repeated.is_empty() {
        let Some((once, _)) = read_once(open()?, repeated, &mut keep_on)? else { return Ok(None) };
        report = once;
    }
    report.sorted_packets = backward - report.backward_times.min(backward);
    Ok(Some(report))
}

/// Reads a capture to its end, leaving out copies in the flows that were `repeated`. Returns the
/// flows that turned out to be so.
fn read_once(
    mut reader: Reader,
    repeated: Repeated,
    keep_on: &mut impl FnMut() -> bool,
) -> Result<Option<(CaptureReport, Repeated)>, CaptureError> {
    let mut analysis = Analysis { repeated, ..Analysis::default() };
    let mut link_types: Vec<u16> = Vec::new();
    let damaged = loop {
        if analysis.packets.is_multiple_of(PACKETS_BETWEEN_QUESTIONS) && !keep_on() {
            return Ok(None);
        }
        match reader.packet() {
            Ok(Some(packet)) => {
                let interface = packet.interface;
                let link_type = match link_types.get(interface) {
                    Some(&known) => known,
                    None => {
                        let (frame, time, length) = (packet.frame, packet.time, packet.length);
                        let data = packet.data.to_vec();
                        link_types = reader.interfaces().iter().map(|one| one.link_type).collect();
                        let packet = Packet { frame, interface, time, length, data: &data };
                        analysis.add(&packet, link_types[interface]);
                        continue;
                    }
                };
                analysis.add(&packet, link_type);
            }
            Ok(None) => break None,
            Err(error) if analysis.packets == 0 => return Err(error),
            Err(error) => break Some(error),
        }
    };
    let (mut report, repeated) = analysis.finish(&reader);
    if let Some(error) = damaged {
        report.note_damage(&error);
    }
    Ok(Some((report, repeated)))
}

#[derive(Default)]
struct Analysis {
    table: Table,
    copies: Copies,
    repeated: Repeated,
    fragments: Fragments,
    skipped: BTreeMap<Skipped, u64>,
    packets: u64,
    bytes: u64,
    cut: u64,
    headers: CutHeaders,
    backward: u64,
    step_back: Duration,
    first: Option<Instant>,
    clock: Clock,
    earliest: Instant,
    latest: Instant,
    last: Instant,
}

impl Analysis {
    #[inline]
    fn add(&mut self, packet: &Packet<'_>, link_type: u16) {
        self.packets += 1;
        self.bytes += u64::from(packet.length);
        if self.first.is_none() {
            (self.first, self.earliest) = (Some(packet.time), packet.time);
        }
        if packet.time < self.last {
            self.backward += 1;
            self.step_back = self.step_back.max(self.last.saturating_since(packet.time));
        }
        self.last = packet.time;
        self.clock.add(packet.time);
        self.earliest = self.earliest.min(packet.time);
        self.latest = self.latest.max(packet.time);
        let decoded = decode(link_type, packet.data, packet.length);
        if packet.data.len() < packet.length as usize {
            self.cut += 1;
            if let Some(bytes) = headers_need(link_type, packet.data, &decoded) {
                self.headers.packets += 1;
                self.headers.snap_bytes = self.headers.snap_bytes.max(bytes as u64);
            }
        }
        let decoded = decoded.and_then(|ip| {
            let sight = self.copies.see(packet.time, packet.interface, &ip);
            // No two fragments are alike.
            if sight.is_copy || (ip.fragment.is_some() && sight.times > 1) {
                return Err(Skipped::Copy);
            }
            self.add_ip(packet, &ip, sight)
        });
        if let Err(skipped) = decoded {
            *self.skipped.entry(skipped).or_default() += 1;
        }
    }

    #[inline]
    fn add_ip(
        &mut self,
        packet: &Packet<'_>,
        ip: &IpPacket<'_>,
        sight: Sight,
    ) -> Result<(), Skipped> {
        let Some(fragment) = ip.fragment else { return self.add_whole(packet, ip, sight) };
        let point = (packet.interface as u64) << 8 | ip.tunnel as u64;
        let whole = self.fragments.add(ip, fragment, point).ok_or(Skipped::Fragment)?;
        let body = &whole.header[..whole.kept];
        let (length, body_length) = (whole.length, whole.body_length);
        let whole = IpPacket { fragment: None, length, body_length, body, ..*ip };
        self.add_whole(packet, &whole, sight)
    }

    #[inline]
    fn add_whole(
        &mut self,
        packet: &Packet<'_>,
        ip: &IpPacket<'_>,
        sight: Sight,
    ) -> Result<(), Skipped> {
        let (now, epoch) = (packet.time, self.first.unwrap_or(packet.time));
        let ports = ports(ip)?;
        let header = match ip.protocol {
            TCP => Some(tcp_header(ip)?),
            _ => None,
        };
        let (key, from) = Key::of(ip, ports, packet.interface);
        if sight.times > 1 && sight.is_left_out(self.repeated.times(&key)[from]) {
            return Err(Skipped::Copy);
        }
        let mut index = self.table.flow(&key, now, from, header.is_some(), epoch);
        let most_outstanding = self.table.most_outstanding();
        if let Some(header) = &header {
            let flow = self.table.at(index);
            if flow.tcp.as_ref().is_some_and(|tcp| tcp.is_succeeded_by(from, header)) {
                self.table.end(index, epoch);
                index = self.table.flow(&key, now, from, true, epoch);
            }
        }
        let flow = self.table.at(index);
        flow.count(now, from, ip.length, ip.teid);
        if sight.times > 1 || sight.recurs {
            flow.note_again(from, sight);
        }
        if let (Some(header), Some(tcp)) = (&header, &mut flow.tcp) {
            tcp.on_segment(now, from, header, most_outstanding);
            if tcp.is_over() && !flow.is_over {
                self.table.note_over(index, epoch);
            }
        } else if ip.protocol == UDP {
            let udp = flow.udp.get_or_insert_default();
            udp.on_datagram(now, from, ip.body, ip.body_length);
        } else if ip.protocol == ICMP_V4 || ip.protocol == ICMP_V6 {
            flow.echoes.get_or_insert_default().on_message(now, from, ip);
            self.note_error(packet.interface, ip);
        }
        Ok(())
    }

    /// If a message is an ICMP error, notes it at the flow that it is about.
    fn note_error(&mut self, interface: usize, ip: &IpPacket<'_>) {
        let Some(error) = IcmpError::read(ip) else { return };
        let Ok(ports) = ports(&error.quoted) else { return };
        let (key, _) = Key::of(&error.quoted, ports, interface);
        if let Some(flow) = self.table.known(&key) {
            flow.note_error(&error, || key::address(ip.source, ip.v4));
        }
    }

    fn finish(self, reader: &Reader) -> (CaptureReport, Repeated) {
        let epoch = self.first.unwrap_or_default();
        let Finished { flows, others, mut missed, repeated } =
            self.table.finish(epoch, self.latest, &self.repeated);
        let interfaces: Vec<_> = reader
            .interfaces()
            .iter()
            .map(|interface| InterfaceReport {
                name: interface.name.clone(),
                link_type: interface.link_type,
                link: link_type_name(interface.link_type),
                packets: interface.packets,
                dropped: interface.dropped,
            })
            .collect();
        missed.dropped_packets =
            interfaces.iter().fold(0, |sum, interface| interface.dropped.saturating_add(sum));
        let report = CaptureReport {
            format: reader.format(),
            compression: reader.compression(),
            interfaces,
            packets: self.packets,
            bytes: self.bytes,
            cut_packets: self.cut,
            cut_headers: (self.headers.packets > 0).then_some(self.headers),
            sorted_packets: 0,
            clock_step_s: self.clock.step().map(Duration::as_secs_f64),
            backward_times: self.backward,
            largest_step_back_s: self.step_back.as_secs_f64(),
            first_time_s: self.first.map(Instant::as_secs_f64),
            duration_s: self.latest.saturating_since(self.earliest).as_secs_f64(),
            skipped: self.skipped,
            incomplete_packets: self.fragments.incomplete(),
            missed,
            flows,
            others,
            damaged: None,
        };
        (report, repeated)
    }
}

/// The ports of a packet; for an echo, its identifier twice.
#[inline]
fn ports(ip: &IpPacket<'_>) -> Result<[u16; 2], Skipped> {
    let half =
        |at: usize| ip.body.get(at..at + 2).map(|half| u16::from_be_bytes([half[0], half[1]]));
    match ip.protocol {
        TCP | UDP => Ok([half(0).ok_or(Skipped::Truncated)?, half(2).ok_or(Skipped::Truncated)?]),
        // Echo request and reply (RFC 792, RFC 4443 4).
        ICMP_V4 if matches!(ip.body.first(), Some(0 | 8)) => Ok([half(4).unwrap_or_default(); 2]),
        ICMP_V6 if matches!(ip.body.first(), Some(128 | 129)) => {
            Ok([half(4).unwrap_or_default(); 2])
        }
        _ => Ok([0; 2]),
    }
}

#[inline]
fn tcp_header(ip: &IpPacket<'_>) -> Result<TcpHeader, Skipped> {
    TcpHeader::read(ip.body, ip.body_length).ok_or(if ip.body.len() < TO_WINDOW {
        Skipped::Truncated
    } else {
        Skipped::Malformed
    })
}
