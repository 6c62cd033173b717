//! Both directions of the path and the cell, joined.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Direction, Drop, DropReason, Instant, Journey, Journeys, Packet, Site};
use airpath_path::{Departure, LinkMeter, Path};
use airpath_queue::Load;
use airpath_radio::cell::CellDeparture;
use airpath_record::{Name, Names, Quantiles, RunSummary, Tables};
use airpath_scenario::Scenario;

use crate::capacity::Capacity;
use crate::hop::{Destination, Hop, HopDeparture, HopSet};
use crate::links::{self, LinkHistory, drop_event};
use crate::paths::{PLACES, Paths, RADIO_PLACES, accounts, build_paths, parts, used};
use crate::radio::{Radio, direction_of};
use crate::snapshot::{LinkSnapshot, NetworkSnapshot};
use crate::ue_hosts::UeHosts;

/// Number of packets dropped, by path, stage and reason.
type Drops = BTreeMap<(Hop, u32, DropReason), u64>;

/// Everything between the endpoints.
///
/// A driver with an event queue goes hop by hop: [`enter`](Self::enter) returns the hop whose next
/// event may have changed, [`poll_path`](Self::poll_path) and [`poll_radio`](Self::poll_radio)
/// return what leaves a hop, and [`forward`](Self::forward) takes it to the next. A driver may also
/// take everything at once, as with a [`Path`](airpath_path::Path): `enter`,
/// [`next_event`](Self::next_event), [`poll`](Self::poll). Times never decrease; both ways give the
/// same departures, because no part depends on when it is polled.
pub struct Network {
    paths: Paths,
    /// Whether downlink and uplink packets pass a host behind the UEs' radios.
    hosted: [bool; 2],
    /// These hosts, without their paths.
    hosts: Option<UeHosts>,
    /// Hops that packets pass.
    used: HopSet,
    radio: Option<Box<Radio>>,
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

/// A packet that reached an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When it arrived, in logical time.
    pub at: Instant,
    /// The packet, with the marks that stages have set.
    pub packet: Packet,
    /// The direction in which it went.
    pub direction: Direction,
}

impl Network {
    /// Builds the network of `scenario`. Stages draw from streams of `seed`; their names are added
    /// to `names`.
    pub fn new(scenario: &Scenario, seed: u64, names: &mut Names) -> Self {
        Self::build(scenario, seed, names, None)
    }

    /// Like [`new`](Self::new), but every packet that [`enter`](Self::enter)s gets a journey, which
    /// [`end_journey`](Self::end_journey) returns.
    pub fn accounted(scenario: &Scenario, seed: u64, names: &mut Names) -> Self {
        Self::build(scenario, seed, names, Some(Journeys::default()))
    }

    fn build(
        scenario: &Scenario,
        seed: u64,
        names: &mut Names,
        journeys: Option<Journeys>,
    ) -> Self {
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
            used: used(proxied, hosted, radio.is_some()),
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

    /// A packet from an endpoint enters the path that begins there, or what comes before it: the
    /// UE's host or the radio. Returns the hop; `None`: its next event has not changed.
    #[inline(always)]
    pub fn enter(&mut self, now: Instant, hop: Hop, packet: &Packet) -> Option<Hop> {
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

    /// Takes a packet that left a hop to its destination. At an endpoint it has arrived.
    #[inline(always)]
    pub fn forward(&mut self, now: Instant, to: Destination, packet: &Packet) {
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
    pub fn next_of(&self, hop: Hop) -> Option<Instant> {
        match self.paths.get(hop.index()) {
            Some(path) => path.next_event(),
            None => self.radio.as_deref()?.next_event(),
        }
    }

    /// The next packet that has left a path by `now`; see [`after_path`](Self::after_path). Writes
    /// into `next` when that path may yield something afterwards, [`Instant::MAX`] if never.
    #[inline]
    pub fn poll_path(&mut self, path: Hop, now: Instant, next: &mut Instant) -> Option<Packet> {
        self.paths[path.index()].poll_next(now, next)
    }

    /// Moves the packets that have left a path by `now` into the radio; returns false if there are
    /// none.
    #[inline]
    pub fn pass_to_radio(&mut self, path: Hop, direction: Direction, now: Instant) -> bool {
        let Self { paths, radio: Some(radio), .. } = self else { return false };
        paths[path.index()]
            .poll_all(now, &mut |packet: &Packet| radio.enqueue(now, direction, packet))
    }

    /// The next packet that has left the radio by `now`; see [`after_radio`](Self::after_radio).
    #[inline]
    pub fn poll_radio(&mut self, now: Instant) -> Option<CellDeparture> {
        self.radio.as_deref_mut()?.poll(now)
    }

    /// Takes all packets that have left the radio by `now`, as [`poll_radio`](Self::poll_radio)
    /// would return them one by one. `departed` must be empty.
    #[inline]
    pub fn take_departed(&mut self, now: Instant, departed: &mut VecDeque<CellDeparture>) {
        if let Some(radio) = self.radio.as_deref_mut() {
            radio.take_departed(now, departed);
        }
    }

    /// Where packets go that leave a path.
    #[inline]
    pub fn after_path(&self, path: Hop) -> Destination {
        self.after[path.index()]
    }

    /// Where packets go that leave the radio.
    #[inline]
    pub fn after_radio(&self, direction: Direction) -> Destination {
        match direction {
            Direction::Downlink if self.hosted[direction] => Destination::Path(Hop::ToUeHost),
            Direction::Downlink => Destination::Endpoint(Direction::Downlink),
            Direction::Uplink => Destination::Path(Hop::FromUe),
        }
    }

    /// The next packet that has left a hop by `now`.
    fn poll_hop(&mut self, hop: Hop, now: Instant) -> Option<HopDeparture> {
        if hop == Hop::Radio {
            let CellDeparture { direction, at, packet, .. } = self.poll_radio(now)?;
            return Some(HopDeparture { at, packet, to: self.after_radio(direction) });
        }
        let Departure { at, packet } = self.paths[hop.index()].poll(now)?;
        Some(HopDeparture { at, packet, to: self.after_path(hop) })
    }

    /// When polling may next yield something or has internal work; `None`: not before a packet
    /// enters.
    pub fn next_event(&self) -> Option<Instant> {
        self.next_hop().map(|(_, at)| at)
    }

    /// The next packet that has reached an endpoint by `now`, in order of arrival. Packets pass
    /// through a proxy unchanged.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Arrival> {
        self.poll_traced(now, &mut |_, _, _| {})
    }

    /// Like [`poll`](Self::poll), and visits every packet that goes from hop to hop: the time, the
    /// next hop, the packet.
    #[inline]
    pub fn poll_traced(
        &mut self,
        now: Instant,
        on_hop: &mut impl FnMut(Instant, Hop, &Packet),
    ) -> Option<Arrival> {
        loop {
            let HopDeparture { at, packet, to } = self.poll_departure(now)?;
            if let Destination::Endpoint(direction) = to {
                return Some(Arrival { at, packet, direction });
            }
            if let Some(next) = to.hop() {
                on_hop(at, next, &packet);
            }
            self.forward(at, to, &packet);
        }
    }

    /// The next packet that has left any hop by `now`, for a driver that moves it itself with
    /// [`forward`](Self::forward), at once or later.
    #[inline]
    pub fn poll_departure(&mut self, now: Instant) -> Option<HopDeparture> {
        loop {
            let (hop, at) = self.next_hop().filter(|&(_, at)| at <= now)?;
            if let Some(departure) = self.poll_hop(hop, at) {
                return Some(departure);
            }
        }
    }

    /// The hop that is due first.
    #[inline]
    fn next_hop(&self) -> Option<(Hop, Instant)> {
        let due = |hop| Some((hop, self.next_of(hop)?));
        self.used.iter().filter_map(due).min_by_key(|&(_, at)| at)
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
