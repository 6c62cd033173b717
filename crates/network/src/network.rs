//! Both directions of the path and the cell, joined.

use std::collections::BTreeMap;

use airpath_base::{Direction, Drop, DropReason, Instant, Journey, Journeys, Packet, Site};
use airpath_path::{LinkMeter, Path};
use airpath_queue::Load;
use airpath_record::{Name, Names, Quantiles, RunSummary, Tables};
use airpath_scenario::Scenario;

use crate::capacity::Capacity;
use crate::hop::{Destination, Hop};
use crate::links::{self, LinkHistory, drop_event};
use crate::paths::{PLACES, Paths, RADIO_PLACES, accounts, build_paths, parts};
use crate::radio::{Radio, direction_of};
use crate::snapshot::{LinkSnapshot, NetworkSnapshot};
use crate::ue_hosts::UeHosts;

/// Number of packets dropped, by path, stage and reason.
type Drops = BTreeMap<(Hop, u32, DropReason), u64>;

/// Everything between the endpoints: flows and UEs, packets inside, and rows in the tables.
///
/// A driver moves packets hop by hop with a [`SteppedNetwork`](crate::SteppedNetwork), or polls for
/// everything that is due at once with a [`PolledNetwork`](crate::PolledNetwork). Both give the same
/// departures, because no part depends on when it is polled.
pub struct Network {
    pub(crate) paths: Paths,
    /// Whether downlink and uplink packets pass a host behind the UEs' radios.
    pub(crate) hosted: [bool; 2],
    /// These hosts, without their paths.
    hosts: Option<UeHosts>,
    pub(crate) radio: Option<Box<Radio>>,
    /// Where packets go when they leave each path.
    after: [Destination; 6],
    /// Links by path, in the order in which they are observed.
    links: Vec<(Hop, LinkHistory)>,
    /// Names of all stages, by path.
    stages: [Vec<Name>; 6],
    dropped: Drops,
    /// Drops since the last sample.
    dropped_now: Drops,
    /// Radio drops since the last sample, by the name of the buffer.
    radio_dropped_now: BTreeMap<(u32, DropReason), u64>,
    /// Optional observations.
    observed: Option<Box<Observed>>,
}

/// What is recorded about packets on request.
#[derive(Default)]
struct Observed {
    /// Where packets spend their time.
    journeys: Option<Journeys>,
    /// Packets that entered, and where, until they are [taken](Network::take_entered).
    entered: Option<Vec<(Hop, Packet)>>,
}

impl Network {
    /// Builds the network of `scenario`. `accounted`: every packet that [enters](Self::enter) gets a
    /// journey.
    pub(crate) fn new(scenario: &Scenario, seed: u64, names: &mut Names, accounted: bool) -> Self {
        let journeys = accounted.then(Journeys::default);
        let parts = parts(scenario);
        let proxied = scenario.proxy.is_some();
        let mut hosts = scenario.radio.as_ref().map(|radio| {
            let accounts =
                [Hop::ToUeHost, Hop::FromUeHost].map(|hop| accounts(journeys.as_ref(), hop));
            UeHosts::new(radio, seed, accounts)
        });
        let behind = hosts.as_mut().map_or([None, None], |hosts| std::mem::take(&mut hosts.paths));
        let hosted = [0, 1].map(|direction: usize| behind[direction].is_some());
        let mut paths = build_paths(parts, behind, proxied, seed, journeys.as_ref());
        let [down, up, beyond_down, beyond_up] =
            parts.map(|stages| stages.iter().map(|stage| names.add(&stage.name)).collect());
        let [to_host, from_host] = Direction::BOTH.map(|direction| {
            let stages = hosts.iter().flat_map(|hosts| &hosts.stages[direction]);
            stages.map(|stage| names.add(&stage.name)).collect()
        });
        let stages: [Vec<Name>; 6] = [down, up, beyond_down, beyond_up, to_host, from_host];
        let mut links = Vec::new();
        for hop in Hop::PATHS {
            let stages: &Vec<Name> = &stages[hop.index()];
            paths[hop.index()].observe(Instant::ZERO, &mut |meter| {
                links.push((hop, LinkHistory::new(stages[meter.stage as usize])));
            });
        }
        let mut radio =
            scenario.radio.as_ref().map(|radio| Box::new(Radio::new(radio, scenario, seed, names)));
        if let (Some(radio), Some(journeys)) = (&mut radio, &journeys) {
            radio.account(journeys, RADIO_PLACES);
        }
        Self {
            paths,
            after: after_paths(proxied, radio.is_some()),
            hosted,
            hosts,
            radio,
            links,
            stages,
            dropped: Drops::new(),
            dropped_now: Drops::new(),
            radio_dropped_now: BTreeMap::new(),
            observed: journeys
                .map(|journeys| Box::new(Observed { journeys: Some(journeys), entered: None })),
        }
    }

    /// From now on, keeps packets that enter for [`take_entered`](Self::take_entered).
    pub fn keep_entered(&mut self) {
        self.observed.get_or_insert_default().entered = Some(Vec::new());
    }

    /// Visits the packets that entered since the last call, with the hops at which an endpoint or
    /// the proxy sent them.
    pub fn take_entered(&mut self, visit: &mut dyn FnMut(Hop, &Packet)) {
        let entered = self.observed.as_mut().and_then(|observed| observed.entered.as_mut());
        for (hop, packet) in entered.into_iter().flat_map(|entered| entered.drain(..)) {
            visit(hop, &packet);
        }
    }

    /// Where packets spend their time, if it is recorded.
    #[inline]
    fn journeys(&self) -> Option<&Journeys> {
        self.observed.as_ref()?.journeys.as_ref()
    }

    /// Where the packet spent its time until `now`, when it reached an endpoint or the proxy.
    #[inline]
    pub fn end_journey(&mut self, packet: &Packet, now: Instant) -> Option<Journey> {
        self.journeys()?.end(packet.journey?, now)
    }

    /// The name in tables of a place where time is spent.
    pub fn place(&self, place: Site) -> Option<Name> {
        let (hop, index) = (place.0 / PLACES, (place.0 % PLACES) as usize);
        match Hop::ALL.get(hop as usize)? {
            Hop::Radio => self.radio.as_ref()?.place(index),
            hop => self.stages[hop.index()].get(index).copied(),
        }
    }

    /// What each link and each radio could have carried by `now`, and to whom it belongs.
    pub fn capacities(&mut self, now: Instant, visit: &mut dyn FnMut(&Capacity)) {
        for hop in Hop::PATHS {
            let Some(direction) = hop.direction() else { continue };
            let hosts = self.hosts.as_ref().filter(|_| hop.is_ue_host());
            self.paths[hop.index()].observe(now, &mut |meter| {
                let place = Site(hop.index() as u32 * PLACES + meter.stage);
                // What a shaper has stored can still be carried.
                let bytes = meter.capacity_bytes - meter.stored_bytes;
                let ue = hosts.map(|hosts| hosts.stages[direction][meter.stage as usize].ue);
                visit(&Capacity { place, direction, ue, bytes, busy: None });
            });
        }
        if let Some(radio) = &mut self.radio {
            radio.capacities(now, RADIO_PLACES, visit);
        }
    }

    /// Adds the next flow, counted from 0: its name in tables, and the position of its UE in the
    /// scenario.
    pub fn add_flow(&mut self, name: Name, ue: usize) {
        if let Some(radio) = &mut self.radio {
            radio.add_flow(name, ue);
        }
        if let Some(hosts) = &mut self.hosts {
            hosts.add_flow(ue);
        }
    }

    /// Reserves room for this many flows, so that adding one takes no time.
    pub fn reserve_flows(&mut self, flows: usize) {
        if let Some(radio) = &mut self.radio {
            radio.reserve_flows(flows);
        }
        if let Some(hosts) = &mut self.hosts {
            hosts.reserve_flows(flows);
        }
    }

    /// Includes a UE in the tables even if the scenario gives it no flow; call it before
    /// [`add_flow`](Self::add_flow).
    pub fn add_ue(&mut self, ue: usize, names: &mut Names) {
        if let Some(radio) = &mut self.radio {
            radio.add_ue(ue, names);
        }
    }

    /// Takes a packet from an endpoint. The packet enters the path that begins at the endpoint, or
    /// the UE's host or the radio if one comes before that path. Returns the hop that the packet
    /// entered; `None`: the hop's next event has not changed.
    #[inline(always)]
    pub(crate) fn enter(&mut self, now: Instant, hop: Hop, packet: &Packet) -> Option<Hop> {
        if self.observed.is_some() {
            return self.enter_observed(now, hop, *packet);
        }
        self.enter_unobserved(now, hop, packet)
    }

    #[cold]
    fn enter_observed(&mut self, now: Instant, hop: Hop, mut packet: Packet) -> Option<Hop> {
        if let Some(observed) = &mut self.observed {
            observed.on_entered(now, hop, &mut packet);
        }
        self.enter_unobserved(now, hop, &packet)
    }

    #[inline(always)]
    fn enter_unobserved(&mut self, now: Instant, hop: Hop, packet: &Packet) -> Option<Hop> {
        let first = match &mut self.radio {
            Some(_) if hop == Hop::FromUe && self.hosted[Direction::Uplink] => Hop::FromUeHost,
            Some(radio) if hop == Hop::FromUe => {
                radio.enqueue(now, Direction::Uplink, packet);
                return Some(Hop::Radio);
            }
            _ => hop,
        };
        self.paths[first.index()].enter(now, packet).then_some(first)
    }

    /// Moves a packet that left a hop to its destination. A packet for an endpoint has already
    /// arrived.
    #[inline(always)]
    pub(crate) fn forward(&mut self, now: Instant, to: Destination, packet: &Packet) {
        match (to, &mut self.radio) {
            (Destination::Radio(direction), Some(radio)) => radio.enqueue(now, direction, packet),
            (Destination::Path(hop), _) => self.paths[hop.index()].enqueue(now, packet),
            (Destination::Proxy(direction), _) => {
                self.paths[Hop::from_proxy(direction).index()].enqueue(now, packet);
            }
            (Destination::Radio(_) | Destination::Endpoint(_), _) => {}
        }
    }

    /// When a hop may next yield something.
    #[inline(always)]
    pub(crate) fn next_of(&self, hop: Hop) -> Option<Instant> {
        match self.paths.get(hop.index()) {
            Some(path) => path.next_event(),
            None => self.radio.as_deref()?.next_event(),
        }
    }

    /// Where packets go that leave a path.
    #[inline]
    pub(crate) fn after_path(&self, path: Hop) -> Destination {
        self.after[path.index()]
    }

    /// Where packets go that leave the radio.
    #[inline]
    pub(crate) fn after_radio(&self, direction: Direction) -> Destination {
        match direction {
            Direction::Downlink if self.hosted[direction] => Destination::Path(Hop::ToUeHost),
            Direction::Downlink => Destination::Endpoint(Direction::Downlink),
            Direction::Uplink => Destination::Path(Hop::FromUe),
        }
    }

    /// What is inside: entered, and neither left nor dropped.
    pub fn load(&self) -> Load {
        let radio = self.radio.as_ref().map_or_else(Load::default, |radio| radio.load());
        self.paths.iter().fold(radio, |sum, path| sum + path.load())
    }

    /// Advances the links of a path to `now` and visits their meters.
    pub fn observe(&mut self, path: Hop, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.paths[path.index()].observe(now, visit);
    }

    /// Packets that are due by `now` enter the radio's buffers, or are dropped. Otherwise they do when a
    /// buffer is next used, which is too late for a sample.
    pub fn settle(&mut self, now: Instant) {
        if let Some(radio) = &mut self.radio {
            radio.settle(now);
        }
    }

    /// Counts the packets dropped since the last call, and visits each with its direction and the
    /// name of the place where it was dropped.
    pub fn drain_drops(&mut self, on_drop: &mut dyn FnMut(Direction, Name, &Drop)) {
        for (direction, hops) in [
            (Direction::Downlink, [Hop::FromServer, Hop::ProxyToUe, Hop::ToUeHost]),
            (Direction::Uplink, [Hop::FromUeHost, Hop::FromUe, Hop::ProxyToServer]),
        ] {
            for hop in hops {
                while let Some(drop) = self.paths[hop.index()].poll_drop() {
                    forget(self.journeys(), &drop);
                    *self.dropped_now.entry((hop, drop.stage, drop.reason)).or_default() += 1;
                    on_drop(direction, self.stages[hop.index()][drop.stage as usize], &drop);
                }
            }
        }
        let Some(radio) = &mut self.radio else { return };
        let journeys = self.observed.as_ref().and_then(|observed| observed.journeys.as_ref());
        while let Some((drop, link)) = radio.poll_drop() {
            forget(journeys, &drop);
            *self.radio_dropped_now.entry((link.0, drop.reason)).or_default() += 1;
            on_drop(direction_of(&drop), link, &drop);
        }
    }

    /// Ends a sample interval: writes the rows of links and radio, and the drops counted since the
    /// last one.
    pub fn sample(&mut self, now: Instant, tables: &mut Tables) {
        if let Some(radio) = &mut self.radio {
            radio.write_mobility(tables);
        }
        for ((link, reason), packets) in std::mem::take(&mut self.radio_dropped_now) {
            tables.event(drop_event(now, Name(link), reason, packets));
        }
        let dropped = std::mem::take(&mut self.dropped_now);
        for (&(hop, stage, reason), &packets) in &dropped {
            *self.dropped.entry((hop, stage, reason)).or_default() += packets;
            let link = self.stages[hop.index()][stage as usize];
            tables.event(drop_event(now, link, reason, packets));
        }
        let mut histories = self.links.iter_mut();
        for hop in Hop::PATHS {
            self.paths[hop.index()].observe(now, &mut |meter| {
                if let Some((hop, link)) = histories.next() {
                    let here = |key: &(Hop, u32, DropReason)| (key.0, key.1) == (*hop, meter.stage);
                    let lost = dropped.iter().filter(|(key, _)| here(key)).map(|(_, n)| n).sum();
                    link.sample(now, meter.into(), lost, tables);
                }
            });
        }
        if let Some(radio) = &mut self.radio {
            radio.sample(now, tables);
        }
    }

    /// An empty snapshot, with all names.
    pub fn snapshot(&mut self, now: Instant, names: &Names) -> NetworkSnapshot {
        let mut snapshot = NetworkSnapshot::default();
        for hop in Hop::PATHS {
            self.paths[hop.index()]
                .observe(now, &mut |meter| snapshot.links.push(LinkSnapshot::of(meter)));
        }
        if let Some(radio) = &mut self.radio {
            radio.name_all(now, names, &mut snapshot);
        }
        snapshot
    }

    /// Updates a snapshot.
    pub fn update(&mut self, now: Instant, snapshot: &mut NetworkSnapshot) {
        let mut links = snapshot.links.iter_mut();
        for hop in Hop::PATHS {
            self.paths[hop.index()].observe(now, &mut |meter| {
                if let Some(link) = links.next() {
                    link.update(meter);
                }
            });
        }
        if let Some(radio) = &mut self.radio {
            radio.update(now, snapshot);
        }
    }

    /// Ends the run at `now`: summarises links and radio over the whole run.
    pub fn summarise(&mut self, now: Instant, summary: &mut RunSummary) {
        let seconds = now.as_secs_f64();
        for hop in Hop::PATHS {
            let dropped = &self.dropped;
            self.paths[hop.index()].observe(now, &mut |meter| {
                let here = dropped
                    .iter()
                    .filter(|((at, stage, _), _)| *at == hop && *stage == meter.stage)
                    .map(|((_, _, reason), &packets)| (*reason, packets));
                let delay = Quantiles::of(&meter.sojourn);
                summary.links.push(links::summary(&meter.name, seconds, meter.into(), delay, here));
            });
        }
        if let Some(radio) = &mut self.radio {
            radio.summarise(now, summary);
        }
    }
}

impl Observed {
    fn on_entered(&mut self, now: Instant, hop: Hop, packet: &mut Packet) {
        if let Some(journeys) = &self.journeys {
            packet.journey = journeys.begin(now);
        }
        if let Some(entered) = &mut self.entered {
            entered.push((hop, *packet));
        }
    }
}

/// Where packets go that leave each of the paths.
fn after_paths(proxied: bool, radio: bool) -> [Destination; 6] {
    use Direction::{Downlink, Uplink};
    let at_ue = match radio {
        true => Destination::Radio(Downlink),
        false => Destination::Endpoint(Downlink),
    };
    let mut after = [Destination::Endpoint(Uplink); 6];
    after[Hop::FromServer.index()] = if proxied { Destination::Proxy(Downlink) } else { at_ue };
    after[Hop::ProxyToUe.index()] = if proxied { at_ue } else { Destination::Endpoint(Downlink) };
    after[Hop::ToUeHost.index()] = Destination::Endpoint(Downlink);
    after[Hop::FromUeHost.index()] = Destination::Radio(Uplink);
    if proxied {
        after[Hop::FromUe.index()] = Destination::Proxy(Uplink);
    }
    after
}

/// Removes the journey of a packet that was dropped.
fn forget(journeys: Option<&Journeys>, drop: &Drop) {
    if let (Some(journeys), Some(id)) = (journeys, drop.packet.journey) {
        journeys.forget(id);
    }
}
