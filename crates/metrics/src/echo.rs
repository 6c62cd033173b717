//! A flow of echo requests.

use airpath_base::{Duration, Histogram, Instant};
use airpath_record::{FlowSummary, Name, PingRow, PingSummary, Quantiles, Tables};

use crate::write_histogram;

/// Meter of one ping flow: each request, its round trip, and whether it or its reply was dropped.
/// What is still in transit when the run ends is neither answered nor lost.
#[derive(Clone, Debug)]
pub struct EchoMeter {
    requests: Vec<Request>,
    answered: u64,
    lost: u64,
    rtt: Histogram,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    sent_at: Instant,
    rtt: Option<Duration>,
    lost: bool,
}

impl EchoMeter {
    /// A flow without requests yet.
    pub fn new() -> Self {
        Self { requests: Vec::new(), answered: 0, lost: 0, rtt: Histogram::new() }
    }

    /// The next request is sent at `at`; requests are numbered from 0.
    pub fn on_sent(&mut self, at: Instant) {
        self.requests.push(Request { sent_at: at, rtt: None, lost: false });
    }

    /// The reply to a request arrives at `at`. Only the first one counts.
    pub fn on_reply(&mut self, number: u64, at: Instant) {
        let request = self.requests.get_mut(number as usize);
        let Some(request) = request.filter(|request| request.rtt.is_none()) else { return };
        let rtt = at.saturating_since(request.sent_at);
        request.rtt = Some(rtt);
        self.answered += 1;
        self.rtt.record(rtt);
    }

    /// A request, or its reply, was dropped.
    pub fn on_lost(&mut self, number: u64) {
        let request = self.requests.get_mut(number as usize);
        if let Some(request) = request.filter(|request| !request.lost) {
            request.lost = true;
            self.lost += 1;
        }
    }

    /// Requests sent so far, which is the number of the next one.
    pub fn sent(&self) -> u64 {
        self.requests.len() as u64
    }

    /// Number of the newest request with these lowest 16 bits, which are all that an ICMP header
    /// holds (RFC 792).
    pub fn newest(&self, number: u16) -> Option<u64> {
        let newest = self.sent().checked_sub(1)?;
        newest.checked_sub((newest as u16).wrapping_sub(number).into())
    }

    /// Whether nothing is in transit any more.
    pub fn is_settled(&self) -> bool {
        self.answered + self.lost >= self.sent()
    }

    /// Ends the run: writes the flow's rows and adds its figures to what is already known of it.
    pub fn finish(
        &self,
        now: Instant,
        name: Name,
        flow: FlowSummary,
        tables: &mut Tables,
    ) -> (PingSummary, FlowSummary) {
        for (sequence, request) in (0..).zip(&self.requests) {
            tables.ping(PingRow {
                flow: name,
                sequence,
                sent_ns: request.sent_at.as_nanos() as i64,
                rtt_ms: request.rtt.map(Duration::as_millis_f64),
                lost: request.lost,
            });
        }
        write_histogram(&self.rtt, name, tables);
        let (sent, lost, rtt_ms) = (self.sent(), self.lost, Quantiles::of(&self.rtt));
        let flow = FlowSummary {
            end_ns: Some(now.as_nanos() as i64),
            rtt_ms: rtt_ms.clone(),
            segments_sent: sent,
            packets_sent: Some(sent),
            packets_lost: Some(lost),
            ..flow
        };
        (PingSummary { id: flow.id.clone(), sent, lost, rtt_ms }, flow)
    }
}

impl Default for EchoMeter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_reply_finds_its_request_after_the_numbers_wrap() {
        let mut meter = EchoMeter::new();
        assert_eq!(meter.newest(0), None);
        (0..65_540).for_each(|at| meter.on_sent(ms(at)));
        assert_eq!((meter.newest(2), meter.newest(65_535)), (Some(65_538), Some(65_535)));
    }

    #[test]
    fn a_request_is_answered_once_lost_once_or_under_way() {
        let mut meter = EchoMeter::new();
        (0..3).for_each(|at| meter.on_sent(ms(at * 10)));
        meter.on_reply(0, ms(40));
        meter.on_reply(0, ms(50));
        meter.on_lost(2);
        meter.on_lost(2);
        meter.on_reply(9, ms(50));
        assert!(!meter.is_settled());
        let mut tables = Tables::default();
        let (ping, flow) = meter.finish(ms(100), Name(0), FlowSummary::default(), &mut tables);
        assert_eq!((ping.sent, ping.lost), (3, 1));
        assert_eq!(ping.rtt_ms.map(|rtt| (rtt.min, rtt.max)), Some((40.0, 40.0)));
        assert_eq!((flow.packets_lost, flow.end_ns), (Some(1), Some(100_000_000)));
        meter.on_reply(1, ms(90));
        assert!(meter.is_settled());
    }
}
