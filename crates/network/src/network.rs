//! Both directions of the path and the cell, as one.

use std::collections::BTreeMap;

use airpath_base::{Drop, DropReason, Duration, Instant, Packet};
use airpath_path::radio::Direction;
use airpath_path::radio::cell::CellDeparture;
use airpath_path::{
    DelayConfig, Departure, Distribution, Jitter, LinkMeter, Load, Path, StageConfig, build,
    build_pair,
};
use airpath_record::{Name, Names, Quantiles, RunSummary, Tables};
use airpath_scenario::{NamedStage, RadioConfig, Scenario};

use crate::hops::{FROM_SERVER, FROM_UE, Goes, HOST, Hops, Leaving, RADIO, beyond_proxy};
use crate::links::{self, LinkHistory, drop_event};
use crate::look::{LinkLook, NetworkLook};
use crate::radio::Radio;

/// Paths by hop; some of them may be unused.
type Paths = [Box<dyn Path>; 5];

/// Packets by path, stage and reason.
type Drops = BTreeMap<(usize, u32, DropReason), u64>;

/// [`Paths`] in the order of the results: all of one direction, then all of the other.
const BY_DIRECTION: [usize; 4] = [0, 2, 1, 3];

/// Everything between the endpoints.
///
/// Hop by hop, as a driver with an agenda uses it: [`enter`](Self::enter) says which hop has
/// something new, [`poll_path`](Self::poll_path) and [`poll_radio`](Self::poll_radio) what leaves
/// one, and [`pass`](Self::pass) takes it on. All at once, as a [`Path`]: `enter`,
/// [`next_event`](Self::next_event), [`poll`](Self::poll). Times never decrease; both ways give
/// the same departures, because no part depends on when it is polled.
pub struct Network {
    paths: Paths,
    /// There is a proxy: all of the paths are in use.
    proxied: bool,
    /// The last path down.
    to_ue: usize,
    /// The UEs' hosts take time.
    hosted: bool,
    /// Hops that packets pass.
    used: Hops,
    radio: Option<Box<Radio>>,
    /// Links by path, in the order in which they are observed.
    links: Vec<(usize, LinkHistory)>,
    /// Names of all stages, by path.
    stages: [Vec<Name>; 4],
    dropped: Drops,
    /// Of these, since the last sample.
    dropped_now: Drops,
    /// Since the last sample, by the name of the buffer.
    radio_dropped_now: BTreeMap<(u32, DropReason), u64>,
}

/// A packet that reached an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When, in logical time.
    pub at: Instant,
    /// The packet.
    pub packet: Packet,
    /// The path at whose end it is.
    pub path: usize,
}

impl Network {
    /// What `scenario` says. Stages draw from streams of `seed`, and get names.
    pub fn new(scenario: &Scenario, seed: u64, names: &mut Names) -> Self {
        let parts = parts(scenario);
        let proxied = scenario.proxy.is_some();
        let host = scenario.radio.as_ref().map_or(NO_HOST, host);
        let hosted = host != NO_HOST;
        let mut paths = build_sides(parts, host, proxied, seed);
        let stages =
            parts.map(|stages| stages.iter().map(|stage| names.add(&stage.name)).collect());
        let mut links = Vec::new();
        for path in BY_DIRECTION {
            let stages: &Vec<Name> = &stages[path];
            paths[path].observe(Instant::ZERO, &mut |meter| {
                links.push((path, LinkHistory::new(stages[meter.stage as usize])));
            });
        }
        let radio =
            scenario.radio.as_ref().map(|radio| Box::new(Radio::new(radio, scenario, seed, names)));
        Self {
            paths,
            proxied,
            to_ue: if proxied { beyond_proxy(0) } else { 0 },
            hosted,
            used: used(proxied, hosted, radio.is_some()),
            radio,
            links,
            stages,
            dropped: Drops::new(),
            dropped_now: Drops::new(),
            radio_dropped_now: BTreeMap::new(),
        }
    }

    /// The next flow, counted from 0: its name in tables, and its UE's place in the scenario.
    pub fn add_flow(&mut self, name: Name, ue: usize) {
        if let Some(radio) = &mut self.radio {
            radio.add_flow(name, ue);
        }
    }

    /// Makes room for so many flows, so that adding one takes no time.
    pub fn reserve_flows(&mut self, flows: usize) {
        if let Some(radio) = &mut self.radio {
            radio.reserve_flows(flows);
        }
    }

    /// A UE to which the scenario gives no flow has one all the same; call it before
    /// [`add_flow`](Self::add_flow).
    pub fn add_ue(&mut self, ue: usize, names: &mut Names) {
        if let Some(radio) = &mut self.radio {
            radio.add_ue(ue, names);
        }
    }

    /// An endpoint's packet enters the path that begins there, or the radio before it. Returns the
    /// hop.
    #[inline(always)]
    pub fn enter(&mut self, now: Instant, path: usize, packet: Packet) -> usize {
        match &mut self.radio {
            Some(radio) if path == FROM_UE => {
                radio.enqueue(now, Direction::Uplink, packet);
                RADIO
            }
            _ => {
                self.paths[path].enqueue(now, packet);
                path
            }
        }
    }

    /// A packet that left a hop goes into `hop`.
    #[inline(always)]
    pub fn pass(&mut self, now: Instant, hop: usize, packet: Packet) {
        match &mut self.radio {
            Some(radio) if hop == RADIO => radio.enqueue(now, Direction::Downlink, packet),
            _ => self.paths[hop].enqueue(now, packet),
        }
    }

    /// When a hop can next yield something.
    #[inline(always)]
    pub fn next_of(&self, hop: usize) -> Option<Instant> {
        match self.paths.get(hop) {
            Some(path) => path.next_event(),
            None => self.radio.as_deref()?.next_event(),
        }
    }

    /// The next packet that has left a path by `now`; see [`after_path`](Self::after_path).
    #[inline]
    pub fn poll_path(&mut self, path: usize, now: Instant) -> Option<Departure> {
        self.paths[path].poll(now)
    }

    /// The next packet that has left the radio by `now`; see [`after_radio`](Self::after_radio).
    #[inline]
    pub fn poll_radio(&mut self, now: Instant) -> Option<CellDeparture> {
        self.radio.as_deref_mut()?.poll(now)
    }

    /// Where packets go that leave a path.
    #[inline]
    pub fn after_path(&self, path: usize) -> Goes {
        if path == HOST {
            Goes::Out(self.to_ue)
        } else if self.radio.is_some() && path == self.to_ue {
            Goes::On(RADIO)
        } else if self.proxied && path < 2 {
            Goes::ToProxy(beyond_proxy(path))
        } else {
            Goes::Out(path)
        }
    }

    /// Where packets go that leave the radio.
    #[inline]
    pub fn after_radio(&self, direction: Direction) -> Goes {
        match direction {
            Direction::Downlink if self.hosted => Goes::On(HOST),
            Direction::Downlink => Goes::Out(self.to_ue),
            Direction::Uplink => Goes::On(FROM_UE),
        }
    }

    /// The next packet that has left a hop by `now`.
    fn poll_hop(&mut self, hop: usize, now: Instant) -> Option<Leaving> {
        if hop == RADIO {
            let CellDeparture { direction, at, packet, .. } = self.poll_radio(now)?;
            return Some(Leaving { at, packet, goes: self.after_radio(direction) });
        }
        let Departure { at, packet } = self.poll_path(hop, now)?;
        Some(Leaving { at, packet, goes: self.after_path(hop) })
    }

    /// When polling can next yield something or has internal work; `None`: not before a packet
    /// enters.
    pub fn next_event(&self) -> Option<Instant> {
        self.next_hop().map(|(_, at)| at)
    }

    /// The next packet that has reached an endpoint by `now`, in order of arriving. Everything
    /// passes a proxy.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Arrival> {
        self.poll_watched(now, &mut |_, _, _| {})
    }

    /// Like `poll`, and shows what goes from hop to hop: the time, the next hop, the packet.
    #[inline]
    pub fn poll_watched(
        &mut self,
        now: Instant,
        on_pass: &mut impl FnMut(Instant, usize, &Packet),
    ) -> Option<Arrival> {
        loop {
            let Leaving { at, packet, goes } = self.poll_leaving(now)?;
            match goes {
                Goes::On(next) | Goes::ToProxy(next) => {
                    on_pass(at, next, &packet);
                    self.pass(at, next, packet);
                }
                Goes::Out(path) => return Some(Arrival { at, packet, path }),
            }
        }
    }

    /// The next packet that has left any hop by `now`, for a driver that takes it on itself, with
    /// [`pass`](Self::pass), then or later.
    #[inline]
    pub fn poll_leaving(&mut self, now: Instant) -> Option<Leaving> {
        loop {
            let (hop, at) = self.next_hop().filter(|&(_, at)| at <= now)?;
            if let Some(leaving) = self.poll_hop(hop, at) {
                return Some(leaving);
            }
        }
    }

    /// The hop that is due first.
    #[inline]
    fn next_hop(&self) -> Option<(usize, Instant)> {
        let due = |hop| Some((hop, self.next_of(hop)?));
        self.used.iter().filter_map(due).min_by_key(|&(_, at)| at)
    }

    /// What is inside: entered, and neither out nor dropped.
    pub fn load(&self) -> Load {
        let radio = self.radio.as_ref().map_or_else(Load::default, |radio| radio.load());
        self.paths.iter().fold(radio, |sum, path| sum + path.load())
    }

    /// Brings the links of a path up to `now` and shows their meters.
    pub fn observe(&mut self, path: usize, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.paths[path].observe(now, visit);
    }

    /// Counts the packets dropped since the last time, and shows each with its direction (0 down,
    /// 1 up) and the name of the place where it happened.
    pub fn drain_drops(&mut self, on_drop: &mut dyn FnMut(usize, Name, &Drop)) {
        for path in BY_DIRECTION {
            while let Some(drop) = self.paths[path].poll_drop() {
                *self.dropped_now.entry((path, drop.stage, drop.reason)).or_default() += 1;
                on_drop(path % 2, self.stages[path][drop.stage as usize], &drop);
            }
        }
        let Some(radio) = &mut self.radio else { return };
        while let Some((drop, link)) = radio.poll_drop() {
            *self.radio_dropped_now.entry((link.0, drop.reason)).or_default() += 1;
            // The cell's stages are the downlink and the uplink.
            on_drop(drop.stage as usize, link, &drop);
        }
    }

    /// A sample interval ends: rows of links and radio, and the drops counted since the last one.
    pub fn sample(&mut self, now: Instant, tables: &mut Tables) {
        if let Some(radio) = &mut self.radio {
            radio.write_mobility(tables);
        }
        for ((link, reason), packets) in std::mem::take(&mut self.radio_dropped_now) {
            tables.event(drop_event(now, Name(link), reason, packets));
        }
        let dropped = std::mem::take(&mut self.dropped_now);
        for (&(path, stage, reason), &packets) in &dropped {
            *self.dropped.entry((path, stage, reason)).or_default() += packets;
            let link = self.stages[path][stage as usize];
            tables.event(drop_event(now, link, reason, packets));
        }
        let mut histories = self.links.iter_mut();
        for path in BY_DIRECTION {
            self.paths[path].observe(now, &mut |meter| {
                if let Some((path, link)) = histories.next() {
                    let here =
                        |key: &(usize, u32, DropReason)| (key.0, key.1) == (*path, meter.stage);
                    let lost = dropped.iter().filter(|(key, _)| here(key)).map(|(_, n)| n).sum();
                    link.sample(now, meter.into(), lost, tables);
                }
            });
        }
        if let Some(radio) = &mut self.radio {
            radio.sample(now, tables);
        }
    }

    /// An empty look, with all names.
    pub fn look(&mut self, now: Instant, names: &Names) -> NetworkLook {
        let mut look = NetworkLook::default();
        for path in BY_DIRECTION {
            self.paths[path].observe(now, &mut |meter| look.links.push(LinkLook::of(meter)));
        }
        if let Some(radio) = &mut self.radio {
            radio.look(now, names, &mut look);
        }
        look
    }

    /// Fills a look in.
    pub fn update(&mut self, now: Instant, look: &mut NetworkLook) {
        let mut links = look.links.iter_mut();
        for path in BY_DIRECTION {
            self.paths[path].observe(now, &mut |meter| {
                if let Some(link) = links.next() {
                    link.update(meter);
                }
            });
        }
        if let Some(radio) = &mut self.radio {
            radio.update(now, look);
        }
    }

    /// The run ends at `now`: what links and radio were like over all of it.
    pub fn summarise(&mut self, now: Instant, summary: &mut RunSummary) {
        let seconds = now.as_secs_f64();
        for path in BY_DIRECTION {
            let dropped = &self.dropped;
            self.paths[path].observe(now, &mut |meter| {
                let here = dropped
                    .iter()
                    .filter(|((way, stage, _), _)| *way == path && *stage == meter.stage)
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

/// The stages of each of [`Paths`].
fn parts(scenario: &Scenario) -> [&[NamedStage]; 4] {
    let (before_down, before_up) = match &scenario.proxy {
        Some(proxy) => (proxy.down.stages_before, proxy.up.stages_before),
        None => (scenario.down.len(), scenario.up.len()),
    };
    let ((down, beyond_down), (up, beyond_up)) =
        (scenario.down.split_at(before_down), scenario.up.split_at(before_up));
    [down, up, beyond_down, beyond_up]
}

/// The hops that packets pass.
fn used(proxied: bool, hosted: bool, radio: bool) -> Hops {
    let mut used = Hops::default();
    for path in [FROM_SERVER, FROM_UE] {
        used.add(path);
        if proxied {
            used.add(beyond_proxy(path));
        }
    }
    if hosted {
        used.add(HOST);
    }
    if radio {
        used.add(RADIO);
    }
    used
}

/// A host that takes no time.
const NO_HOST: DelayConfig = DelayConfig { base: Duration::ZERO, jitter: None };

fn host(radio: &RadioConfig) -> DelayConfig {
    let mean = radio.host_jitter;
    let distribution = Distribution::Exponential { mean };
    let jitter = Jitter { distribution, keep_order: true, together: true };
    DelayConfig { base: radio.host_delay, jitter: (mean > Duration::ZERO).then_some(jitter) }
}

/// Builds [`Paths`], but for the host the two of each side of the proxy as a pair: the first part down and the last
/// part up are the server's side, the others the UE's. Without a proxy all stages are one side.
fn build_sides(parts: [&[NamedStage]; 4], host: DelayConfig, proxied: bool, seed: u64) -> Paths {
    let host = build([("host", &StageConfig::Delay(host))], seed);
    let pair = |down: usize, up: usize| {
        build_pair(NamedStage::named(parts[down]), NamedStage::named(parts[up]), seed)
    };
    if proxied {
        let ([from_server, to_server], [to_ue, from_ue]) = (pair(0, 3), pair(2, 1));
        [from_server, from_ue, to_ue, to_server, host]
    } else {
        let ([down, up], [no_down, no_up]) = (pair(0, 1), pair(2, 3));
        [down, up, no_down, no_up, host]
    }
}
