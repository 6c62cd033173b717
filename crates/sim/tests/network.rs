//! The network driven hop by hop, as in the simulation, and for everything due at once, as on the
//! real clock.

mod common;

use airpath_base::{
    Datagram, Direction, Duration, Ecn, FlowId, Histogram, Instant, Packet, Payload, Tunnel,
};
use airpath_network::{Hop, NetworkSnapshot, PolledNetwork};
use airpath_record::{Quantiles, RunSummary, Tables};
use airpath_scenario::{Scenario, Traffic, shipped};

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

/// Every cell is out of service for a while.
const OUTAGE: &str = "\n[[radio.outage]]\nat_s = 1\nduration_s = 0.7\n";

/// Echoes the pings of a scenario, asking the network for whatever is due.
struct Echoes {
    network: PolledNetwork,
    /// When each flow sends next.
    next: Vec<Instant>,
    sent: Vec<u64>,
    rtts: Vec<Histogram>,
    /// Updated whenever anything happens.
    snapshot: Option<NetworkSnapshot>,
}

impl Echoes {
    fn of(scenario: &Scenario, seed: u64) -> Self {
        Self::observed(scenario, seed, false)
    }

    fn observed(scenario: &Scenario, seed: u64, observed: bool) -> Self {
        let mut tables = Tables::default();
        let names: Vec<_> = scenario.flows.iter().map(|f| tables.names.add(&f.id)).collect();
        let mut network = PolledNetwork::new(scenario, seed, &mut tables.names);
        for (name, flow) in names.into_iter().zip(&scenario.flows) {
            network.add_flow(name, flow.ue);
        }
        let snapshot = observed.then(|| network.snapshot(Instant::ZERO, &tables.names));
        let flows = scenario.flows.len();
        let mut echoes = Self {
            network,
            next: vec![Instant::ZERO; flows],
            sent: vec![0; flows],
            rtts: vec![Histogram::new(); flows],
            snapshot,
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
                    let back = Hop::from_endpoint(scenario.flows[flow].direction.reverse());
                    let payload = Payload::Datagram(Datagram { reply: true, ..datagram });
                    self.network.enter(arrival.at, back, &Packet { payload, ..arrival.packet });
                }
            }
            if let Some(snapshot) = &mut self.snapshot {
                self.network.update(now, snapshot);
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
            journey: None,
            payload: Payload::Datagram(datagram),
        };
        self.network.enter(now, Hop::from_endpoint(direction), &packet);
        self.sent[index] += 1;
        self.next[index] = now + interval;
    }
}

#[test]
fn both_clocks_drive_it_alike() {
    let plain = shipped().iter().map(|&(name, text)| (name, text.to_owned()));
    let cells = shipped().iter().filter(|(_, text)| text.contains("\n[radio]\n"));
    let out = cells.map(|&(name, text)| (name, text.to_owned() + OUTAGE));
    for (name, text) in plain.chain(out) {
        let mut scenario = common::scenario(&text, &[]);
        scenario.flows = common::scenario(PINGS, &[]).flows;
        scenario.run.duration = Duration::from_secs(4);
        let simulated = common::outcome(&scenario, 3).summary;
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

#[test]
fn looking_changes_nothing_and_sees_what_the_summary_sums_up() {
    for (name, text) in shipped() {
        let mut scenario = common::scenario(text, &[]);
        scenario.flows = common::scenario(PINGS, &[]).flows;
        scenario.run.duration = Duration::from_secs(2);
        let mut observed = Echoes::observed(&scenario, 3, true);
        let alone = Echoes::of(&scenario, 3);
        for (one, other) in observed.rtts.iter().zip(&alone.rtts) {
            let all = |rtts: &Histogram| (rtts.count(), rtts.mean(), rtts.deviation(), rtts.max());
            assert_eq!(all(one), all(other), "{name}");
        }
        let end = Instant::ZERO + scenario.run.duration;
        let mut snapshot = observed.snapshot.take().expect("it was watched");
        observed.network.update(end, &mut snapshot);
        let mut summary = RunSummary { duration_s: 2.0, ..RunSummary::default() };
        observed.network.summarise(end, &mut summary);
        let bytes = |id: &str| {
            let link =
                summary.links.iter().find(|link| link.id == id).expect("a link of this name");
            (link.throughput_mbps * 1e6 / 8.0 * 2.0).round() as u64
        };
        for link in &snapshot.links {
            assert_eq!(link.bytes, bytes(&link.id), "{name}: {}", link.id);
        }
        // All pings belong to the first UE.
        let Some(ue) = snapshot.ues.first() else { continue };
        for (direction, radio) in Direction::BOTH.into_iter().zip(&ue.radio) {
            let id = format!("{}.{}", ue.id, direction.name());
            let whole = summary.radio.iter().find(|entry| entry.id == id).expect("a UE with flows");
            assert_eq!(radio.bytes, bytes(&format!("radio.{id}")), "{name}: {id}");
            assert_eq!(radio.harq_retransmissions, whole.harq_retransmissions, "{name}: {id}");
            assert_eq!(radio.prbs, (whole.prbs_per_s * 2.0).round() as u64, "{name}: {id}");
        }
        let prbs = |direction: Direction| {
            snapshot.ues.iter().map(|ue| ue.radio[direction].prbs).sum::<u64>()
        };
        let used = |direction: Direction| {
            snapshot.cells.iter().map(|cell| cell.prbs[direction]).sum::<u64>()
        };
        assert_eq!(Direction::BOTH.map(prbs), Direction::BOTH.map(used), "{name}");
    }
}
