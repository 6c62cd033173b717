//! ICMP: pings, matched by identifier and sequence number (RFC 792, RFC 4443 4), and other
//! messages.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Instant, SparseHistogram};

use super::report::EchoReport;
use crate::decode::{IpPacket, icmp};
use crate::distribution::Distribution;

/// Most requests that wait for a reply; a further request displaces the oldest.
const MOST_WAITING: usize = 1024;

/// Messages counted by name, and the smallest MTU that any of them reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    pub(crate) names: BTreeMap<&'static str, u64>,
    pub(crate) mtu: Option<u32>,
}

impl Messages {
    pub(crate) fn add(&mut self, name: &'static str, mtu: Option<u32>) {
        *self.names.entry(name).or_default() += 1;
        self.mtu = self.mtu.into_iter().chain(mtu).min();
    }
}

/// The ICMP messages between two ends, with one identifier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes {
    requests: u64,
    replies: u64,
    duplicates: u64,
    unasked: u64,
    /// Requests that an ICMP error answered.
    refused: u64,
    /// The end that asks.
    asker: Option<usize>,
    /// Sequence number, the end that sent the request, when, and whether it was answered.
    waiting: VecDeque<(u16, usize, Instant, bool)>,
    rtt: SparseHistogram,
    messages: Messages,
}

impl Echoes {
    /// Handles a message from one end.
    pub(crate) fn on_message(&mut self, now: Instant, from: usize, packet: &IpPacket<'_>) {
        let (v4, body) = (packet.v4, packet.body);
        let &[kind, code, ..] = body else { return };
        let number = || Some(u16::from_be_bytes([*body.get(6)?, *body.get(7)?]));
        match (v4, kind) {
            (true, 8) | (false, 128) => {
                self.requests += 1;
                self.asker.get_or_insert(from);
                let Some(number) = number() else { return };
                if self.waiting.len() == MOST_WAITING {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((number, from, now, false));
            }
            (true, 0) | (false, 129) => {
                self.asker.get_or_insert(1 - from);
                let Some(number) = number() else { return };
                // Sequence numbers wrap after 65535: the reply answers the newest request with its
                // number.
                let asked = self.waiting.iter_mut().rev();
                let asked = asked.into_iter().find(|one| (one.0, one.1) == (number, 1 - from));
                match asked {
                    None => self.unasked += 1,
                    Some((.., true)) => self.duplicates += 1,
                    Some((_, _, at, answered)) => {
                        *answered = true;
                        self.replies += 1;
                        self.rtt.record(now.saturating_since(*at));
                    }
                }
            }
            _ => self.messages.add(icmp::name(v4, kind, code), icmp::mtu(packet)),
        }
    }

    /// Handles an ICMP error about a request, which it quotes from its ICMP header on.
    pub(crate) fn on_error(&mut self, quoted: &[u8]) {
        let &[8 | 128, _, _, _, _, _, high, low, ..] = quoted else { return };
        let number = u16::from_be_bytes([high, low]);
        let asked = self.waiting.iter_mut().rev().find(|one| one.0 == number && !one.3);
        if let Some(one) = asked {
            (one.3, self.refused) = (true, self.refused + 1);
        }
    }

    /// The end that asks, whichever packet of it came first.
    pub(crate) fn asker(&self) -> Option<usize> {
        self.asker
    }

    /// Reports the echoes of a capture that ended at `end`.
    pub(crate) fn report(&self, end: Instant) -> EchoReport {
        // A reply may take as long as the longest round trip; where none ever came, none is due.
        let longest = self.rtt.max().unwrap_or_default();
        let is_open = |&&(_, _, at, answered): &&(u16, usize, Instant, bool)| {
            !answered && end.saturating_since(at) < longest
        };
        let outstanding = self.waiting.iter().filter(is_open).count() as u64;
        let unanswered = self.requests.saturating_sub(self.replies + self.refused);
        EchoReport {
            refused: self.refused,
            outstanding: outstanding.min(unanswered),
            requests: self.requests,
            replies: self.replies,
            duplicates: self.duplicates,
            unasked: self.unasked,
            unanswered: unanswered.saturating_sub(outstanding),
            rtt_ms: Distribution::of(&self.rtt),
            messages: self.messages.names.clone(),
            mtu_bytes: self.messages.mtu,
        }
    }
}
