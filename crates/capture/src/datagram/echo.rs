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
                let Some(number) = number() else { return };
                if self.waiting.len() == MOST_WAITING {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((number, from, now, false));
            }
            (true, 0) | (false, 129) => {
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

    pub(crate) fn report(&self) -> EchoReport {
        EchoReport {
            requests: self.requests,
            replies: self.replies,
            duplicates: self.duplicates,
            unasked: self.unasked,
            unanswered: self.requests - self.replies,
            rtt_ms: Distribution::of(&self.rtt),
            messages: self.messages.names.clone(),
            mtu_bytes: self.messages.mtu,
        }
    }
}
