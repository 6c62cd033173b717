//! What is kept of the scenario's flows while their packets pass: as the simulation defines it
//! (docs/concepts/metrics.md), at the model's times.

use std::sync::PoisonError;

use airpath_base::{Duration, Histogram, Instant};
use airpath_network::{FROM_SERVER, FROM_UE, mbps, steady};
use airpath_record::{FlowSummary, Name, PingRow, PingSummary, Quantiles, RunSummary, Tables};
use airpath_scenario::{Direction, Traffic};

use super::datagram::HEADER_BYTES;
use super::tcp::SenderWindow;
use super::{Scheduled, start_of};
use crate::packet::Layout;
use crate::watch::congestion_name;

/// Accounts of the scenario's flows, in its order: the first numbers of the forwarder's flows.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Vec<Account>);

/// One flow.
#[derive(Debug)]
pub(crate) struct Account {
    scheduled: Scheduled,
    /// The path that its data enters.
    forward: usize,
    start: Instant,
    stop: Option<Instant>,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Tcp(Transfer),
    Ping(Echoes),
    Udp(Stream),
}

#[derive(Debug, Default)]
struct Transfer {
    /// Of a file, in bytes.
    size: Option<u64>,
    delivered: u64,
    written: u64,
    /// End of the measurement, and what had been delivered and written then.
    measured: Option<(Instant, u64, u64)>,
    /// Cumulative delivery at each sample.
    delivery: Vec<(Instant, u64)>,
    /// The last acknowledgement that reached the sender, and the times between them.
    last_ack: Option<Instant>,
    gaps: Histogram,
}

#[derive(Debug, Default)]
struct Echoes {
    probes: Vec<Probe>,
    rtt: Histogram,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    sent_at: Instant,
    rtt: Option<Duration>,
    lost: bool,
}

/// Datagrams of a flow whose time of entering is kept: more than can be under way.
const REMEMBERED: u64 = 1 << 17;

#[derive(Debug, Default)]
struct Stream {
    sent: u64,
    /// When each of the last [`REMEMBERED`] entered: that of number `n` at `n` modulo as many.
    sent_at: Vec<Instant>,
    received: u64,
    /// Of these, before the stop.
    received_in_time: u64,
    lost: u64,
    delay: Histogram,
    last_delay: Option<Duration>,
    /// RFC 3550 6.4.1, in nanoseconds.
    jitter: f64,
    packet_bytes: u32,
}

impl Ledger {
    /// Opens the accounts.
    pub(crate) fn new(scheduled: Vec<Scheduled>) -> Self {
        Self(scheduled.into_iter().map(Account::new).collect())
    }

    /// A packet enters.
    #[inline]
    pub(crate) fn on_sent(&mut self, flow: u32, path: usize, now: Instant) {
        let Some(account) = self.0.get_mut(flow as usize) else { return };
        match &mut account.kept {
            Kept::Ping(echoes) if path == account.forward => echoes.sent(now),
            Kept::Udp(stream) if path == account.forward => stream.sent(now),
            Kept::Tcp(_) | Kept::Ping(_) | Kept::Udp(_) => {}
        }
    }

    /// A packet left; `delivered` is what its receiver has in order by now.
    #[inline]
    pub(crate) fn on_left(
        &mut self,
        flow: u32,
        path: usize,
        at: Instant,
        packet: &[u8],
        delivered: impl FnOnce(usize) -> u64,
    ) {
        let Some(account) = self.0.get_mut(flow as usize) else { return };
        let (is_forward, stop) = (path == account.forward, account.stop);
        match &mut account.kept {
            Kept::Tcp(transfer) if is_forward => {
                transfer.measure_if_due(at, stop);
                transfer.delivered = delivered(path);
                transfer.measure_if_complete(at);
            }
            Kept::Tcp(transfer) => transfer.acknowledged(at),
            Kept::Ping(echoes) if !is_forward => echoes.answered(at, packet),
            Kept::Udp(stream) if is_forward => stream.received(at, packet, stop),
            Kept::Ping(_) | Kept::Udp(_) => {}
        }
    }

    /// A packet was dropped.
    pub(crate) fn on_drop(&mut self, flow: u32, path: usize, packet: &[u8]) {
        let Some(account) = self.0.get_mut(flow as usize) else { return };
        match &mut account.kept {
            Kept::Ping(echoes) => echoes.dropped(packet),
            Kept::Udp(stream) if path == account.forward => stream.lost += 1,
            Kept::Tcp(_) | Kept::Udp(_) => {}
        }
    }

    /// A sample interval ends; what the senders' sockets said last, by flow.
    pub(crate) fn sample(&mut self, now: Instant) -> Vec<(u32, SenderWindow)> {
        let mut windows = Vec::new();
        for (flow, account) in (0..).zip(&mut self.0) {
            let Kept::Tcp(transfer) = &mut account.kept else { continue };
            // A sender that writes there just now is asked the next time: nobody is waited for.
            if let Ok(state) = account.scheduled.sender.try_lock() {
                transfer.written = state.written;
                windows.extend(state.window.map(|window| (flow, window)));
            }
            transfer.measure_if_due(now, account.stop);
            if now > account.start {
                transfer.delivery.push((now, transfer.delivered));
            }
        }
        windows
    }

    /// Times between the acknowledgements that reached each TCP sender.
    pub(crate) fn ack_gaps(&self) -> Vec<(String, Option<Quantiles>)> {
        let gaps = |account: &Account| match &account.kept {
            Kept::Tcp(transfer) => {
                Some((account.scheduled.config.id.clone(), Quantiles::of(&transfer.gaps)))
            }
            Kept::Ping(_) | Kept::Udp(_) => None,
        };
        self.0.iter().filter_map(gaps).collect()
    }

    /// What the packets that passed say of a flow, with what its own account says.
    pub(crate) fn complete(&self, flow: usize, now: Instant, seen: FlowSummary) -> FlowSummary {
        self.0.get(flow).map_or_else(|| seen.clone(), |account| account.complete(now, &seen))
    }

    /// Ends the pings: their rows.
    pub(crate) fn finish_pings(
        &self,
        now: Instant,
        names: &[Name],
        summary: &mut RunSummary,
        tables: &mut Tables,
    ) {
        for (account, &name) in self.0.iter().zip(names) {
            if let Kept::Ping(echoes) = &account.kept {
                let (ping, flow) = account.finish_ping(echoes, now, name, tables);
                tables.flow(name, &flow);
                summary.pings.push(ping);
            }
        }
    }
}

impl Account {
    fn new(scheduled: Scheduled) -> Self {
        let config = &scheduled.config;
        let start = start_of(config);
        let forward = match config.direction {
            Direction::Down => FROM_SERVER,
            Direction::Up => FROM_UE,
        };
        let (duration, kept) = match config.traffic {
            Traffic::Bulk { duration, .. } => (duration, Kept::Tcp(Transfer::default())),
            Traffic::File { size, .. } => {
                (None, Kept::Tcp(Transfer { size: Some(size), ..Transfer::default() }))
            }
            Traffic::Ping { .. } => (None, Kept::Ping(Echoes::default())),
            Traffic::Udp { duration, packet_bytes, .. } => {
                (duration, Kept::Udp(Stream { packet_bytes, ..Stream::default() }))
            }
        };
        let stop = duration.map(|duration| start + duration);
        Self { scheduled, forward, start, stop, kept }
    }

    fn base(&self) -> FlowSummary {
        let config = &self.scheduled.config;
        FlowSummary {
            id: config.id.clone(),
            kind: config.traffic.kind(),
            direction: if self.forward == FROM_SERVER { "down" } else { "up" },
            ue: self.scheduled.ue.clone(),
            start_ns: self.start.as_nanos() as i64,
            ..FlowSummary::default()
        }
    }

    fn complete(&self, now: Instant, seen: &FlowSummary) -> FlowSummary {
        match &self.kept {
            Kept::Tcp(transfer) => self.complete_transfer(transfer, now, seen),
            Kept::Udp(stream) => self.complete_stream(stream, now),
            Kept::Ping(_) => seen.clone(),
        }
    }

    fn complete_transfer(
        &self,
        transfer: &Transfer,
        now: Instant,
        seen: &FlowSummary,
    ) -> FlowSummary {
        let state = self.scheduled.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let (Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. }) =
            &self.scheduled.config.traffic
        else {
            return seen.clone();
        };
        let (end, delivered, written) =
            transfer.measured.unwrap_or((now, transfer.delivered, state.written));
        let seconds = end.saturating_since(self.start).as_secs_f64();
        let steady = steady(self.start, end, &transfer.delivery);
        let goodput_mbps = mbps(delivered, seconds);
        let complete = transfer.size.is_some() && transfer.measured.is_some();
        FlowSummary {
            congestion: Some(state.sockets[0].as_ref().map_or_else(
                || tcp.sender.congestion.name(),
                |socket| congestion_name(&socket.congestion),
            )),
            profile: Some(tcp.profile.clone()),
            end_ns: (seconds > 0.0).then_some(end.as_nanos() as i64),
            goodput_mbps,
            written_mbps: mbps(written, seconds),
            power: goodput_mbps
                .zip(seen.rtt_ms.as_ref())
                .map(|(rate, rtt)| rate / (rtt.mean / 1e3)),
            steady_mbps: steady.map(|(rate, _)| rate),
            converged_after_s: steady.and_then(|(_, after)| after),
            completed_s: complete.then_some(seconds),
            slow_start_exit: seen.slow_start_exit.clone().or_else(|| state.exit.clone()),
            bytes_delivered: transfer.delivered,
            ..self.over(seen)
        }
    }

    /// Who the flow is, over what was seen of it.
    fn over(&self, seen: &FlowSummary) -> FlowSummary {
        let FlowSummary { id, kind, direction, ue, start_ns, .. } = self.base();
        FlowSummary { id, kind, direction, ue, start_ns, ..seen.clone() }
    }

    fn complete_stream(&self, stream: &Stream, now: Instant) -> FlowSummary {
        let end = self.stop.map_or(now, |stop| stop.min(now));
        let seconds = end.saturating_since(self.start).as_secs_f64();
        let sent = stream.sent;
        FlowSummary {
            bytes_delivered: stream.payload(stream.received),
            goodput_mbps: mbps(stream.payload(stream.received_in_time), seconds),
            end_ns: (seconds > 0.0).then_some(end.as_nanos() as i64),
            segments_sent: sent,
            packets_sent: Some(sent),
            packets_lost: Some(stream.lost),
            delay_ms: Quantiles::of(&stream.delay),
            jitter_ms: stream.last_delay.map(|_| stream.jitter / 1e6),
            ..self.base()
        }
    }

    fn finish_ping(
        &self,
        echoes: &Echoes,
        now: Instant,
        flow: Name,
        tables: &mut Tables,
    ) -> (PingSummary, FlowSummary) {
        for (sequence, probe) in (0..).zip(&echoes.probes) {
            tables.ping(PingRow {
                flow,
                sequence,
                sent_ns: probe.sent_at.as_nanos() as i64,
                rtt_ms: probe.rtt.map(Duration::as_millis_f64),
                lost: probe.lost,
            });
        }
        let sent = echoes.probes.len() as u64;
        let lost = echoes.probes.iter().filter(|probe| probe.lost).count() as u64;
        let rtt_ms = Quantiles::of(&echoes.rtt);
        let id = self.scheduled.config.id.clone();
        let summary = FlowSummary {
            end_ns: Some(now.as_nanos() as i64),
            rtt_ms: rtt_ms.clone(),
            segments_sent: sent,
            packets_sent: Some(sent),
            packets_lost: Some(lost),
            ..self.base()
        };
        (PingSummary { id, sent, lost, rtt_ms }, summary)
    }
}

impl Transfer {
    /// The application stopped writing before `now`.
    fn measure_if_due(&mut self, now: Instant, stop: Option<Instant>) {
        if let Some(stop) = stop.filter(|&stop| now > stop)
            && self.measured.is_none()
        {
            self.measured = Some((stop, self.delivered, self.written));
        }
    }

    fn measure_if_complete(&mut self, at: Instant) {
        if self.measured.is_none() && self.size.is_some_and(|size| self.delivered >= size) {
            self.measured = Some((at, self.delivered, self.delivered));
        }
    }

    fn acknowledged(&mut self, at: Instant) {
        if let Some(last) = self.last_ack.replace(at) {
            self.gaps.record(at.saturating_since(last));
        }
    }
}

impl Echoes {
    fn sent(&mut self, now: Instant) {
        self.probes.push(Probe { sent_at: now, rtt: None, lost: false });
    }

    fn answered(&mut self, at: Instant, packet: &[u8]) {
        let Some(probe) = self.probe(packet).filter(|probe| probe.rtt.is_none()) else { return };
        let rtt = at.saturating_since(probe.sent_at);
        probe.rtt = Some(rtt);
        self.rtt.record(rtt);
    }

    fn dropped(&mut self, packet: &[u8]) {
        if let Some(probe) = self.probe(packet) {
            probe.lost = true;
        }
    }

    /// The request of a packet: the youngest with its number.
    fn probe(&mut self, packet: &[u8]) -> Option<&mut Probe> {
        let at = Layout::of(packet)?.ip_bytes + 6;
        let number = u16::from_be_bytes(*packet.get(at..at + 2)?.first_chunk()?);
        let newest = self.probes.len().checked_sub(1)?;
        let ago = usize::from((newest as u16).wrapping_sub(number));
        self.probes.get_mut(newest.checked_sub(ago)?)
    }
}

impl Stream {
    fn sent(&mut self, now: Instant) {
        let place = (self.sent % REMEMBERED) as usize;
        self.sent += 1;
        match self.sent_at.get_mut(place) {
            Some(sent_at) => *sent_at = now,
            None => self.sent_at.push(now),
        }
    }

    fn received(&mut self, at: Instant, packet: &[u8], stop: Option<Instant>) {
        self.received += 1;
        self.received_in_time += u64::from(stop.is_none_or(|stop| at <= stop));
        let Some(sent_at) = self.sent_at_of(packet) else { return };
        let delay = at.saturating_since(sent_at);
        self.delay.record(delay);
        if let Some(last) = self.last_delay.replace(delay) {
            let difference = delay.as_nanos().abs_diff(last.as_nanos()) as f64;
            self.jitter += (difference - self.jitter) / 16.0;
        }
    }

    /// By the number in its payload, if there was room for one.
    fn sent_at_of(&self, packet: &[u8]) -> Option<Instant> {
        let at = Layout::of(packet)?.ip_bytes + 8;
        let number = u32::from_be_bytes(*packet.get(at..at + 4)?.first_chunk()?);
        let back = u64::from((self.sent as u32).wrapping_sub(number));
        let is_remembered = (1..=REMEMBERED.min(self.sent)).contains(&back);
        let place = (self.sent.wrapping_sub(back) % REMEMBERED) as usize;
        self.sent_at.get(place).copied().filter(|_| is_remembered)
    }

    fn payload(&self, packets: u64) -> u64 {
        packets * u64::from(self.packet_bytes.saturating_sub(HEADER_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn reply(sequence: u16) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).icmpv4_echo_reply(7, sequence);
        builder.write(&mut packet, &[]).unwrap();
        packet
    }

    #[test]
    fn an_echo_finds_its_request_after_the_numbers_wrap() {
        let mut echoes = Echoes::default();
        (0..65_540).for_each(|at| echoes.sent(ms(at)));
        echoes.answered(ms(65_600), &reply(2));
        echoes.answered(ms(65_700), &reply(65_535));
        assert_eq!(echoes.probes[65_538].rtt, Some(Duration::from_millis(62)));
        assert_eq!(echoes.probes[65_535].rtt, Some(Duration::from_millis(165)));
        assert_eq!((echoes.probes[2].rtt, echoes.rtt.count()), (None, 2));
    }

    #[test]
    fn a_bulk_flow_is_measured_when_it_stops_and_a_file_when_it_is_there() {
        let stop = Some(ms(1000));
        let mut bulk = Transfer { delivered: 500, written: 900, ..Transfer::default() };
        bulk.measure_if_due(ms(1000), stop);
        assert_eq!(bulk.measured, None);
        bulk.measure_if_due(ms(1200), stop);
        assert_eq!(bulk.measured, Some((ms(1000), 500, 900)));
        let mut file = Transfer { size: Some(100), delivered: 99, ..Transfer::default() };
        file.measure_if_complete(ms(10));
        assert_eq!(file.measured, None);
        file.delivered = 100;
        file.measure_if_complete(ms(20));
        assert_eq!(file.measured, Some((ms(20), 100, 100)));
    }

    #[test]
    fn of_a_long_flow_the_last_datagrams_are_remembered() {
        let mut stream = Stream::default();
        let count = 3 * REMEMBERED + 7;
        (0..count).for_each(|at| stream.sent(ms(at)));
        let at = |number: u64| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).udp(1, 2);
            builder.write(&mut packet, &(number as u32).to_be_bytes()).unwrap();
            stream.sent_at_of(&packet)
        };
        assert_eq!(at(count - 1), Some(ms(count - 1)));
        assert_eq!(at(count - REMEMBERED), Some(ms(count - REMEMBERED)));
        assert_eq!((at(count - REMEMBERED - 1), at(count)), (None, None));
        assert_eq!((stream.sent, stream.sent_at.len() as u64), (count, REMEMBERED));
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let packet = |number: u32| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).udp(1, 2);
            builder.write(&mut packet, &number.to_be_bytes()).unwrap();
            packet
        };
        let mut stream = Stream { packet_bytes: 32, ..Stream::default() };
        [0, 10].into_iter().for_each(|at| stream.sent(ms(at)));
        stream.received(ms(20), &packet(0), None);
        stream.received(ms(46), &packet(1), Some(ms(40)));
        // Delays of 20 and 36 ms: 16/16.
        assert!((stream.jitter - 1e6).abs() < 1e-6);
        assert_eq!((stream.received, stream.received_in_time), (2, 1));
        assert_eq!(stream.payload(2), 8);
    }
}
