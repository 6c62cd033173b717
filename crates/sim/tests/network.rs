//! The network driven hop by hop, as here, and all at once, as on the real clock.

mod common;

use airpath_base::FlowId;
use airpath_base::{Datagram, Duration, Ecn, Histogram, Instant, Packet, Payload, Tunnel};
use airpath_network::{FROM_SERVER, FROM_UE, Network};
use airpath_record::{Quantiles, Tables};
use airpath_scenario::{Direction, Scenario, Source, Traffic, parse, shipped};

const PINGS: &str = "
[[flow]]
kind = \"ping\"
interval_ms = 11
packet_bytes = 1200
[[flow]]
kind = \"ping\"
direction = \"up\"
interval_ms = 7
packet_bytes = 300
";

/// Echoes of a scenario's pings, the network asked for whatever is due.
struct Echoes {
    network: Network,
    /// Of each flow.
    next: Vec<Instant>,
    sent: Vec<u64>,
    rtts: Vec<Histogram>,
}

impl Echoes {
    fn of(scenario: &Scenario, seed: u64) -> Self {
        let mut tables = Tables::default();
        let names: Vec<_> = scenario.flows.iter().map(|f| tables.names.add(&f.id)).collect();
        let mut network = Network::new(scenario, seed, &mut tables.names);
        for (name, flow) in names.into_iter().zip(&scenario.flows) {
            network.add_flow(name, flow.ue);
        }
        let flows = scenario.flows.len();
        let mut echoes = Self {
            network,
            next: vec![Instant::ZERO; flows],
            sent: vec![0; flows],
            rtts: vec![Histogram::new(); flows],
        };
        echoes.run(scenario);
        echoes
    }

    fn run(&mut self, scenario: &Scenario) {
        let end = Instant::ZERO + scenario.run.duration;
        loop {
            let send = self.next.iter().copied().min().unwrap_or(Instant::MAX);
            let due = self.network.next_event().unwrap_or(Instant::MAX);
            let now = send.min(due);
            if now > end {
                return;
            }
            while let Some(arrival) = self.network.poll(now) {
                let flow = arrival.packet.flow.0 as usize;
                let Payload::Datagram(datagram) = arrival.packet.payload else { continue };
                if datagram.reply {
                    self.rtts[flow].record(arrival.at - datagram.sent_at);
                } else {
                    let back = match scenario.flows[flow].direction {
                        Direction::Down => FROM_UE,
                        Direction::Up => FROM_SERVER,
                    };
                    let payload = Payload::Datagram(Datagram { reply: true, ..datagram });
                    self.network.enter(arrival.at, back, Packet { payload, ..arrival.packet });
                }
            }
            for (index, flow) in scenario.flows.iter().enumerate() {
                if self.next[index] == now {
                    self.send(now, index, flow.direction, &flow.traffic);
                }
            }
        }
    }

    fn send(&mut self, now: Instant, index: usize, direction: Direction, traffic: &Traffic) {
        let &Traffic::Ping { interval, packet_bytes, .. } = traffic else { return };
        let datagram = Datagram { sequence: self.sent[index], sent_at: now, reply: false };
        let packet = Packet {
            flow: FlowId(index as u32),
            size: packet_bytes,
            ecn: Ecn::NotEct,
            tunnel: Tunnel::default(),
            payload: Payload::Datagram(datagram),
        };
        let path = match direction {
            Direction::Down => FROM_SERVER,
            Direction::Up => FROM_UE,
        };
        self.network.enter(now, path, packet);
        self.sent[index] += 1;
        self.next[index] = now + interval;
    }
}

#[test]
fn both_clocks_drive_it_alike() {
    for (name, text) in shipped() {
        let source = Source { name, text, directory: None };
        let mut scenario = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
        scenario.flows = common::scenario(PINGS, &[]).flows;
        scenario.run.duration = Duration::from_secs(4);
        let simulated =
            airpath_sim::simulate(&scenario, 3, &mut |_| true).expect("not stopped").summary;
        let echoes = Echoes::of(&scenario, 3);
        for (index, ping) in simulated.pings.iter().enumerate() {
            let words = |rtt: Option<&Quantiles>| {
                rtt.map(|rtt| [rtt.min, rtt.mean, rtt.mdev, rtt.p50, rtt.p99, rtt.max])
            };
            let mine = Quantiles::of(&echoes.rtts[index]);
            assert_eq!(ping.sent, echoes.sent[index], "{name}: {}", ping.id);
            assert_eq!(words(ping.rtt_ms.as_ref()), words(mine.as_ref()), "{name}: {}", ping.id);
        }
    }
}
