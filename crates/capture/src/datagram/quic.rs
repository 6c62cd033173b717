//! QUIC as far as its headers are in the clear: versions, connection IDs, packet types, the spin
//! bit (RFC 8999, RFC 9000 17, RFC 9369 3.2).

use std::collections::BTreeMap;

use airpath_base::{Duration, Instant};

use super::report::QuicReport;
use super::spin::Spin;

/// QUIC must begin within this many datagrams of a flow.
pub(super) const MOST_BEFORE: u64 = 4;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
/// RFC 9000 17.2.
const LONGEST_ID: usize = 20;
const MOST_VERSIONS: usize = 4;
const VERSION_2: u32 = 0x6b33_43cf;

/// The fields of a long header.
#[derive(Clone, Copy, Debug)]
struct LongHeader<'a> {
    version: u32,
    kind: &'static str,
    destination: &'a [u8],
    source: &'a [u8],
}

#[derive(Clone, Debug, Default)]
pub(super) struct Quic {
    versions: Vec<u32>,
    /// The end that sent the first long header.
    client: Option<usize>,
    original: Option<Vec<u8>>,
    ids: [Option<Vec<u8>>; 2],
    packets: BTreeMap<&'static str, u64>,
    client_began: Option<Instant>,
    server_began: Option<Instant>,
    client_answered: Option<Instant>,
    /// When the client sent its first packet with a short header.
    client_done: Option<Instant>,
    spin: Spin,
}

/// Whether a datagram begins a connection or continues its handshake.
#[inline]
pub(super) fn begins(payload: &[u8]) -> bool {
    read_long(payload).is_some_and(|header| header.version == 0 || is_known(header.version))
}

impl Quic {
    pub(super) fn on_datagram(&mut self, now: Instant, from: usize, payload: &[u8]) {
        let Some(&first) = payload.first() else { return };
        if first & LONG != 0 {
            let Some(header) = read_long(payload) else { return };
            self.on_long(now, from, &header);
        } else if first & FIXED != 0 {
            *self.packets.entry("short").or_default() += 1;
            if Some(from) == self.client {
                self.client_done.get_or_insert(now);
            }
            self.spin.add(now, from, first & SPIN != 0);
        }
    }

    fn on_long(&mut self, now: Instant, from: usize, header: &LongHeader<'_>) {
        *self.packets.entry(header.kind).or_default() += 1;
        if header.version != 0
            && !self.versions.contains(&header.version)
            && self.versions.len() < MOST_VERSIONS
        {
            self.versions.push(header.version);
        }
        let client = *self.client.get_or_insert(from);
        if from == client {
            self.client_began.get_or_insert(now);
            if self.server_began.is_some() {
                self.client_answered.get_or_insert(now);
            } else if self.original.is_none() {
                self.original = Some(header.destination.to_vec());
            }
        } else {
            self.server_began.get_or_insert(now);
        }
        if header.version != 0 {
            self.ids[from] = Some(header.source.to_vec());
        }
    }

    pub(super) fn report(&self, client: usize) -> QuicReport {
        let client = self.client.unwrap_or(client);
        let millis = |from: Option<Instant>, to: Option<Instant>| {
            let passed: Duration = to?.saturating_since(from?);
            Some(passed.as_millis_f64())
        };
        let id = |id: &Option<Vec<u8>>| {
            let id = id.as_ref().filter(|id| !id.is_empty())?;
            Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
        };
        QuicReport {
            versions: self.versions.iter().map(|&version| version_name(version)).collect(),
            original_destination_id: id(&self.original),
            client_id: id(&self.ids[client]),
            server_id: id(&self.ids[1 - client]),
            packets: self.packets.clone(),
            server_side_ms: millis(self.client_began, self.server_began),
            client_side_ms: millis(self.server_began, self.client_answered),
            handshake_ms: millis(self.client_began, self.client_done),
            spin: self.spin.report(client),
        }
    }
}

fn read_long(payload: &[u8]) -> Option<LongHeader<'_>> {
    let &[first, a, b, c, d, length, ..] = payload else { return None };
    let version = u32::from_be_bytes([a, b, c, d]);
    if first & LONG == 0 || version != 0 && first & FIXED == 0 {
        return None;
    }
    let length = usize::from(length);
    let destination = payload.get(6..6 + length)?;
    let source_length = usize::from(*payload.get(6 + length)?);
    let source = payload.get(7 + length..7 + length + source_length)?;
    if length > LONGEST_ID || source_length > LONGEST_ID {
        return None;
    }
    // RFC 9000 17.2, RFC 9369 3.2.
    let kinds = if version == VERSION_2 {
        ["retry", "initial", "0-rtt", "handshake"]
    } else {
        ["initial", "0-rtt", "handshake", "retry"]
    };
    let kind =
        if version == 0 { "version-negotiation" } else { kinds[usize::from(first >> 4 & 3)] };
    Some(LongHeader { version, kind, destination, source })
}

/// IANA's registry of QUIC versions, drafts, the versions reserved to be refused (RFC 9000 15), and
/// the prefixes that Google and Facebook have used.
fn is_known(version: u32) -> bool {
    version == 1
        || version == VERSION_2
        || version >> 8 == 0x00ff_0000
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
        || version >> 16 == 0x5130
        || version >> 8 == 0x00fa_ceb0
}

fn version_name(version: u32) -> String {
    match version {
        1 => "1".to_owned(),
        VERSION_2 => "2".to_owned(),
        draft if draft >> 8 == 0x00ff_0000 => format!("draft-{}", draft & 0xff),
        other => format!("{other:#010x}"),
    }
}
