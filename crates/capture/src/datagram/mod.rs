//! Flows other than TCP: what their datagrams show of rate, loss, delay and round-trip time.

mod echo;
mod quic;
mod report;
mod sequence;
mod spin;

pub(crate) use echo::{Echoes, Messages};
pub use report::{
    EchoReport, IcmpErrors, QuicReport, SequenceReport, SpinReport, UdpReport, UdpStreamReport,
};

use std::collections::BTreeMap;

use airpath_base::Instant;
use airpath_metrics::mbps;

use crate::decode::tunnel;
use quic::Quic;
use sequence::Numbers;

const UDP_BYTES: usize = 8;

/// A UDP flow, with ends 0 and 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct UdpFlow {
    streams: [Stream; 2],
    quic: Option<Box<Quic>>,
    packets: u64,
    /// GTP-U's messages other than packets in a tunnel, by name.
    gtpu: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    packets: u64,
    payload: u64,
    largest: u32,
    first: Option<Instant>,
    last: Instant,
    numbers: Option<Box<Numbers>>,
    /// The flow's first datagrams carry none of the known kinds of sequence numbers.
    is_unnumbered: bool,
}

impl UdpFlow {
    /// Handles a datagram from one end, with its UDP header; it has `length` bytes on the wire.
    #[inline]
    pub(crate) fn on_datagram(&mut self, now: Instant, from: usize, body: &[u8], length: u32) {
        self.packets += 1;
        let payload = body.get(UDP_BYTES..).unwrap_or_default();
        let length = length.saturating_sub(UDP_BYTES as u32);
        if let Some(name) = tunnel::message(body) {
            *self.gtpu.entry(name).or_default() += 1;
        }
        if self.quic.is_none() && self.packets <= quic::MOST_BEFORE && quic::begins(payload) {
            self.quic = Some(Box::default());
        }
        match &mut self.quic {
            Some(quic) => quic.on_datagram(now, from, payload),
            None => self.streams[from].number(now, payload),
        }
        let stream = &mut self.streams[from];
        stream.packets += 1;
        stream.payload += u64::from(length);
        stream.largest = stream.largest.max(length);
        stream.first.get_or_insert(now);
        stream.last = stream.last.max(now);
    }

    /// Reports the flow from the client's point of view.
    pub(crate) fn report(&self, client: usize) -> UdpReport {
        UdpReport {
            from_client: self.streams[client].report(),
            from_server: self.streams[1 - client].report(),
            gtpu: self.gtpu.clone(),
            quic: self.quic.as_ref().map(|quic| quic.report(client)),
        }
    }
}

impl Stream {
    #[inline]
    fn number(&mut self, now: Instant, payload: &[u8]) {
        if self.is_unnumbered {
            return;
        }
        let numbers = self.numbers.get_or_insert_default();
        if !numbers.add(now, payload) {
            (self.numbers, self.is_unnumbered) = (None, true);
        }
    }

    fn report(&self) -> UdpStreamReport {
        let lasted = self.first.map(|first| self.last.saturating_since(first).as_secs_f64());
        UdpStreamReport {
            packets: self.packets,
            payload_bytes: self.payload,
            largest_payload_bytes: self.largest,
            rate_mbps: lasted
                .filter(|&lasted| lasted > 0.0)
                .and_then(|lasted| mbps(self.payload, lasted)),
            sequence: self.numbers.as_ref().and_then(|numbers| numbers.report()),
        }
    }
}
