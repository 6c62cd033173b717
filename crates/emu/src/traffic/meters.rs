//! Meters of the scenario's flows, fed with passing packets: figures as the simulation defines them
//! (docs/concepts/metrics.md), at the model's times.

use std::sync::{Arc, Mutex, PoisonError};

use airpath_base::{Direction, Histogram, Instant};
use airpath_metrics::{DatagramMeter, EchoMeter, SendTimes, TransferMeter, write_histogram};
use airpath_record::{FlowSummary, Name, Quantiles, RunSummary, Tables};
use airpath_scenario::Traffic;

use super::datagram::HEADER_BYTES;
use super::quic::{QuicMeter, QuicSample};
use super::tcp::SenderWindow;
use super::{Scheduled, start_of};
use crate::observation::observer::congestion_name;
use crate::wire::packet::Layout;

/// Meters of the scenario's flows, in its order: they have the first numbers of the forwarder's
/// flows.
#[derive(Debug, Default)]
pub(crate) struct ScheduledMeters(Vec<ScheduledMeter>);

/// The meter of one flow.
#[derive(Debug)]
struct ScheduledMeter {
    scheduled: Scheduled,
    /// The direction of its data.
    forward: Direction,
    start: Instant,
    meter: Meter,
}

#[derive(Debug)]
enum Meter {
    Tcp(Transfer),
    Ping(EchoMeter),
    Udp(Datagrams),
    /// A QUIC flow, which its ends measure because its packets are encrypted.
    Quic(Arc<Mutex<QuicMeter>>),
}

/// The meter of a TCP flow.
#[derive(Debug)]
struct Transfer {
    meter: TransferMeter,
    /// When the last acknowledgement reached the sender, and the times between them.
    last_ack: Option<Instant>,
    gaps: Histogram,
}

/// The meter of a UDP flow. Its packets contain their number, not the time at which they were sent.
#[derive(Debug)]
struct Datagrams {
    meter: DatagramMeter,
    sent_at: SendTimes,
}

impl ScheduledMeters {
    /// One meter per flow.
    pub(crate) fn new(scheduled: Vec<Scheduled>) -> Self {
        Self(scheduled.into_iter().map(ScheduledMeter::new).collect())
    }

    /// A packet enters.
    #[inline]
    pub(crate) fn on_sent(&mut self, flow: u32, direction: Direction, now: Instant) {
        let Some(flow) = self.0.get_mut(flow as usize) else { return };
        let is_forward = direction == flow.forward;
        match &mut flow.meter {
            Meter::Ping(echoes) if is_forward => echoes.on_sent(now),
            Meter::Udp(datagrams) if is_forward => datagrams.on_sent(now),
            Meter::Tcp(_) | Meter::Ping(_) | Meter::Udp(_) | Meter::Quic(_) => {}
        }
    }

    /// A packet left; `delivered` is what its receiver now has in order.
    #[inline]
    pub(crate) fn on_left(
        &mut self,
        flow: u32,
        direction: Direction,
        at: Instant,
        packet: &[u8],
        delivered: impl FnOnce() -> u64,
    ) {
        let Some(flow) = self.0.get_mut(flow as usize) else { return };
        let is_forward = direction == flow.forward;
        match &mut flow.meter {
            Meter::Tcp(transfer) if is_forward => transfer.meter.on_delivered(at, delivered()),
            Meter::Tcp(transfer) => transfer.on_acknowledgement(at),
            Meter::Ping(echoes) if !is_forward => {
                if let Some(number) = request_number(echoes, packet) {
                    echoes.on_reply(number, at);
                }
            }
            Meter::Udp(datagrams) if is_forward => {
                let sent_at = datagrams.sent_at(packet);
                datagrams.meter.on_received(at, sent_at);
            }
            Meter::Ping(_) | Meter::Udp(_) | Meter::Quic(_) => {}
        }
    }

    /// A packet was dropped.
    pub(crate) fn on_drop(&mut self, flow: u32, direction: Direction, packet: &[u8]) {
        let Some(flow) = self.0.get_mut(flow as usize) else { return };
        match &mut flow.meter {
            Meter::Ping(echoes) => {
                if let Some(number) = request_number(echoes, packet) {
                    echoes.on_lost(number);
                }
            }
            Meter::Udp(datagrams) if direction == flow.forward => datagrams.meter.on_lost(),
            Meter::Tcp(_) | Meter::Udp(_) | Meter::Quic(_) => {}
        }
    }

    /// Ends a sample interval; returns the last state of the senders' sockets, by flow.
    pub(crate) fn sample(&mut self, now: Instant) -> Vec<(u32, SenderWindow)> {
        let mut windows = Vec::new();
        for (number, flow) in (0..).zip(&mut self.0) {
            let Meter::Tcp(transfer) = &mut flow.meter else { continue };
            // A sender that is writing to it is skipped until the next time: this does not wait.
            if let Ok(state) = flow.scheduled.sender.try_lock() {
                windows.extend(state.window.map(|window| (number, window)));
            }
            transfer.meter.sample(now);
        }
        windows
    }

    /// What the interval that ends now shows of the QUIC flows, by flow.
    pub(crate) fn sample_quic(&mut self, now: Instant) -> Vec<(u32, QuicSample)> {
        let quic = (0..).zip(&self.0).filter_map(|(number, flow)| match &flow.meter {
            Meter::Quic(meter) => Some((number, meter)),
            Meter::Tcp(_) | Meter::Ping(_) | Meter::Udp(_) => None,
        });
        let sample = |meter: &Mutex<QuicMeter>| {
            meter.lock().unwrap_or_else(PoisonError::into_inner).sample(now)
        };
        quic.map(|(number, meter)| (number, sample(meter))).collect()
    }

    /// Times between the acknowledgements that reached each TCP sender.
    pub(crate) fn ack_gaps(&self) -> Vec<(String, Option<Quantiles>)> {
        let gaps = |flow: &ScheduledMeter| match &flow.meter {
            Meter::Tcp(transfer) => {
                Some((flow.scheduled.config.id.clone(), Quantiles::of(&transfer.gaps)))
            }
            Meter::Ping(_) | Meter::Udp(_) | Meter::Quic(_) => None,
        };
        self.0.iter().filter_map(gaps).collect()
    }

    /// Combines what the passing packets show of a flow with the results of its own meter.
    pub(crate) fn complete(&mut self, flow: usize, now: Instant, seen: FlowSummary) -> FlowSummary {
        match self.0.get_mut(flow) {
            Some(flow) => flow.complete(now, seen),
            None => seen,
        }
    }

    /// Ends the flows that the packets do not show: writes the rows of the pings, and the RTTs of
    /// the QUIC flows.
    pub(crate) fn finish(
        &self,
        now: Instant,
        names: &[Name],
        summary: &mut RunSummary,
        tables: &mut Tables,
    ) {
        for (flow, &name) in self.0.iter().zip(names) {
            if let Meter::Ping(echoes) = &flow.meter {
                let (ping, flow) = echoes.finish(now, name, flow.identity(), tables);
                tables.flow(name, &flow);
                summary.pings.push(ping);
            }
            if let Meter::Quic(meter) = &flow.meter {
                let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
                write_histogram(meter.rtt(), name, tables);
            }
        }
    }
}

impl ScheduledMeter {
    fn new(scheduled: Scheduled) -> Self {
        let config = &scheduled.config;
        let start = start_of(config);
        let forward = config.direction;
        let meter = match config.traffic {
            Traffic::Bulk { duration, .. } => {
                Meter::Tcp(Transfer::new(TransferMeter::bulk(start, duration)))
            }
            Traffic::File { size, .. } => {
                Meter::Tcp(Transfer::new(TransferMeter::file(start, size)))
            }
            Traffic::Ping { .. } => Meter::Ping(EchoMeter::new()),
            Traffic::Quic { .. } => {
                Meter::Quic(scheduled.quic.clone().expect("set when the sockets were opened"))
            }
            Traffic::Udp { duration, packet_bytes, .. } => {
                let payload_bytes = packet_bytes.saturating_sub(HEADER_BYTES);
                let meter = DatagramMeter::new(start, duration, payload_bytes);
                Meter::Udp(Datagrams { meter, sent_at: SendTimes::default() })
            }
        };
        Self { scheduled, forward, start, meter }
    }

    /// The fields that identify the flow.
    fn identity(&self) -> FlowSummary {
        let config = &self.scheduled.config;
        FlowSummary {
            id: config.id.clone(),
            kind: config.traffic.kind(),
            direction: config.direction.name(),
            ue: self.scheduled.ue.clone(),
            start_ns: self.start.as_nanos() as i64,
            ..FlowSummary::default()
        }
    }

    fn complete(&mut self, now: Instant, seen: FlowSummary) -> FlowSummary {
        let identity = self.identity();
        let FlowSummary { id, kind, direction, ue, .. } = identity.clone();
        let flow = FlowSummary { id, kind, direction, ue, ..seen };
        let Self { scheduled: Scheduled { config, sender, .. }, meter, .. } = self;
        match (meter, &config.traffic) {
            (Meter::Tcp(transfer), Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. }) => {
                let state = sender.lock().unwrap_or_else(PoisonError::into_inner);
                transfer.meter.on_written(state.written);
                let flow = FlowSummary {
                    congestion: Some(state.sockets[0].as_ref().map_or_else(
                        || tcp.sender.congestion.name(),
                        |socket| congestion_name(&socket.congestion),
                    )),
                    profile: Some(tcp.profile.clone()),
                    limited_s: state.limited.clone(),
                    slow_start_exit: flow.slow_start_exit.clone().or_else(|| state.exit.clone()),
                    ..flow
                };
                transfer.meter.summarise(now, flow)
            }
            (Meter::Udp(datagrams), _) => datagrams.meter.summarise(now, identity),
            (Meter::Quic(meter), Traffic::Quic { quic, .. }) => {
                let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
                meter.summarise(now, quic.congestion.name(), identity)
            }
            _ => flow,
        }
    }
}

impl Transfer {
    fn new(meter: TransferMeter) -> Self {
        Self { meter, last_ack: None, gaps: Histogram::new() }
    }

    fn on_acknowledgement(&mut self, at: Instant) {
        if let Some(last) = self.last_ack.replace(at) {
            self.gaps.record(at.saturating_since(last));
        }
    }
}

impl Datagrams {
    fn on_sent(&mut self, now: Instant) {
        self.meter.on_sent();
        self.sent_at.push(now);
    }

    /// When a packet was sent, by the number in its payload, if there was room for one.
    fn sent_at(&self, packet: &[u8]) -> Option<Instant> {
        let at = Layout::of(packet)?.ip_bytes + 8;
        self.sent_at.of(u32::from_be_bytes(*packet.get(at..at + 4)?.first_chunk()?))
    }
}

/// The request of a packet, or the one to which it replies.
fn request_number(echoes: &EchoMeter, packet: &[u8]) -> Option<u64> {
    let at = Layout::of(packet)?.ip_bytes + 6;
    echoes.newest(u16::from_be_bytes(*packet.get(at..at + 2)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use airpath_base::{Duration, Ecn, FlowId, Packet, Payload, Tunnel};
    use airpath_network::{Hop, PolledNetwork};
    use airpath_scenario::{FlowConfig, Scenario, Source, parse};
    use etherparse::PacketBuilder;

    use super::*;
    use crate::traffic::SenderState;
    use crate::wire::flows::Key;
    use crate::wire::packet::{ICMP_V4, UDP};

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn an_echo_is_known_by_the_number_in_its_header() {
        let mut echoes = EchoMeter::new();
        (0..65_540).for_each(|at| echoes.on_sent(ms(at)));
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).icmpv4_echo_reply(7, 2);
        builder.write(&mut packet, &[]).unwrap();
        assert_eq!(request_number(&echoes, &packet), Some(65_538));
    }

    #[test]
    fn a_datagram_is_known_by_the_number_in_its_payload() {
        let meter = DatagramMeter::new(ms(0), None, 4);
        let mut datagrams = Datagrams { meter, sent_at: SendTimes::default() };
        (0..10).for_each(|at| datagrams.on_sent(ms(at)));
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([1; 4], [2; 4], 64).udp(1, 2);
        builder.write(&mut packet, &7_u32.to_be_bytes()).unwrap();
        assert_eq!(datagrams.sent_at(&packet), Some(ms(7)));
        assert_eq!(datagrams.sent_at(&packet[..packet.len() - 1]), None);
    }

    /// A queue that overflows for a while, with pings passing through it.
    const SCENARIO: &str = "
[run]
duration_s = 6
[[path.down]]
stage = \"link\"
rate_mbps = 4.037
queue_packets = 20
[[path.down]]
stage = \"delay\"
delay_ms = 20
[[path.up]]
stage = \"delay\"
delay_ms = 20
[[flow]]
kind = \"udp\"
rate_mbps = 5
packet_bytes = 1200
start_s = 0.5
duration_s = 3
[[flow]]
kind = \"ping\"
direction = \"down\"
start_s = 0.0007
interval_ms = 30
packet_bytes = 84
count = 90
[[flow]]
kind = \"udp\"
direction = \"up\"
rate_mbps = 0.1
packet_bytes = 200
";

    /// Simulates the kernel's packets of the scenario's flows, through its network and the meters.
    struct Kernel {
        network: PolledNetwork,
        meters: ScheduledMeters,
        packets: BTreeMap<u64, Vec<u8>>,
        next_packet: u64,
    }

    impl Kernel {
        fn send(
            &mut self,
            now: Instant,
            flow: usize,
            direction: Direction,
            number: u64,
            size: u32,
        ) {
            let mut bytes = Vec::new();
            let (server, ue) = ([10, 0, 0, 1], [10, 0, 0, 2]);
            let ip = PacketBuilder::ipv4(server, ue, 64);
            let room = vec![0; (size - HEADER_BYTES) as usize];
            if flow == 1 {
                ip.icmpv4_echo_request(7, number as u16).write(&mut bytes, &room).unwrap();
            } else {
                let mut payload = room;
                payload[..4].copy_from_slice(&(number as u32).to_be_bytes());
                ip.udp(1, 2).write(&mut bytes, &payload).unwrap();
            }
            assert_eq!(bytes.len(), size as usize);
            self.meters.on_sent(flow as u32, direction, now);
            self.packets.insert(self.next_packet, bytes);
            let payload = Payload::Opaque(self.next_packet);
            self.next_packet += 1;
            let (flow, ecn, tunnel) = (FlowId(flow as u32), Ecn::NotEct, Tunnel::default());
            let hop = Hop::from_endpoint(direction);
            self.network.enter(
                now,
                hop,
                &Packet { flow, size, ecn, tunnel, journey: None, payload },
            );
        }

        fn receive(&mut self, now: Instant) {
            while let Some(arrival) = self.network.poll(now) {
                let Payload::Opaque(handle) = arrival.packet.payload else { continue };
                let (flow, bytes) = (arrival.packet.flow.0, self.packets.remove(&handle).unwrap());
                self.meters.on_left(flow, arrival.direction, arrival.at, &bytes, || 0);
                if flow == 1 && arrival.direction == Direction::Downlink {
                    let number = u16::from_be_bytes([bytes[26], bytes[27]]);
                    self.send(arrival.at, 1, Direction::Uplink, number.into(), arrival.packet.size);
                }
            }
            let Self { network, meters, packets, .. } = self;
            network.drain_drops(&mut |direction, _, drop| {
                let Payload::Opaque(handle) = drop.packet.payload else { return };
                let bytes = packets.remove(&handle).unwrap();
                meters.on_drop(drop.packet.flow.0, direction, &bytes);
            });
        }
    }

    fn schedule(config: &FlowConfig) -> Scheduled {
        let protocol = if matches!(config.traffic, Traffic::Ping { .. }) { ICMP_V4 } else { UDP };
        let sender = Arc::new(Mutex::new(SenderState::default()));
        let key = Key::planned(1, protocol, 1, 2);
        Scheduled { config: config.clone(), ue: None, key, sender, quic: None }
    }

    fn run(scenario: &Scenario) -> (Vec<FlowSummary>, Vec<String>) {
        let mut tables = Tables::default();
        let names: Vec<Name> = scenario.flows.iter().map(|f| tables.names.add(&f.id)).collect();
        let mut network = PolledNetwork::new(scenario, 1, &mut tables.names);
        names.iter().for_each(|&name| network.add_flow(name, 0));
        let meters = ScheduledMeters::new(scenario.flows.iter().map(schedule).collect());
        let mut kernel = Kernel { network, meters, packets: BTreeMap::new(), next_packet: 0 };
        let end = Instant::ZERO + scenario.run.duration;
        // When each flow sends next, how many packets it has sent, and the remainder of a
        // nanosecond.
        let mut due: Vec<_> =
            scenario.flows.iter().map(|flow| (Some(start_of(flow)), 0, 0)).collect();
        loop {
            let now = due.iter().filter_map(|&(at, ..)| at).chain(kernel.network.next_event());
            let Some(now) = now.min().filter(|&now| now <= end) else { break };
            kernel.receive(now);
            for (index, (next, sent, carried)) in due.iter_mut().enumerate() {
                if *next != Some(now) {
                    continue;
                }
                let flow = &scenario.flows[index];
                match flow.traffic {
                    Traffic::Udp { rate, packet_bytes, duration, .. } => {
                        kernel.send(now, index, flow.direction, *sent, packet_bytes);
                        let (gap, rest) = rate.transmission_time(packet_bytes, *carried);
                        *carried = rest;
                        let stop = duration.map_or(Instant::MAX, |it| start_of(flow) + it);
                        *next = Some(now + gap).filter(|&at| at < stop);
                    }
                    Traffic::Ping { interval, packet_bytes, count } => {
                        kernel.send(now, index, flow.direction, *sent, packet_bytes);
                        let more = count.is_none_or(|count| *sent + 1 < count);
                        *next = Some(now + interval).filter(|_| more);
                    }
                    Traffic::Bulk { .. } | Traffic::File { .. } | Traffic::Quic { .. } => {
                        unreachable!("neither is in the scenario")
                    }
                }
                *sent += 1;
            }
        }
        kernel.receive(end);
        let mut summary = RunSummary::default();
        kernel.meters.finish(end, &names, &mut summary, &mut tables);
        let flows = [0, 2].map(|flow| kernel.meters.complete(flow, end, FlowSummary::default()));
        (flows.into(), summary.pings.iter().map(|ping| format!("{ping:?}")).collect())
    }

    #[test]
    fn both_clocks_measure_the_same_of_the_same_packets() {
        let source = Source { name: "test", text: SCENARIO, directory: None };
        let scenario = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
        let simulated = airpath_sim::simulate(&scenario, 1, &mut |_| true).unwrap().summary;
        let (flows, pings) = run(&scenario);
        let words = |flows: &[FlowSummary]| -> Vec<String> {
            flows.iter().map(|flow| format!("{flow:?}")).collect()
        };
        assert_eq!(words(&flows), words(&simulated.flows));
        assert!(flows[0].packets_lost > Some(0) && flows[0].jitter_ms > Some(0.0));
        let simulated: Vec<_> = simulated.pings.iter().map(|ping| format!("{ping:?}")).collect();
        assert_eq!(pings, simulated);
        assert!(!pings[0].contains(" lost: 0,"), "some are lost: {}", pings[0]);
    }
}
