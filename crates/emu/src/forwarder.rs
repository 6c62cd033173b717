//! One thread between the TUN devices of a server and of UEs.

mod through;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;

use airpath_base::{
    DropReason, Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel as Tunnelling,
};
use airpath_network::{FROM_SERVER, FROM_UE, Goes, Leaving, Network};
use airpath_record::{RunSummary, Tables};
use airpath_scenario::{EmulationConfig, PacketIo, Scenario};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::capture::Capture;
use crate::clock::timespec;
use crate::flows::{Flows, Key};
use crate::header;
use crate::journal::{Entry, Journal};
use crate::live::{DirectionLook, Live, Snapshot};
use crate::log::{Log, Point};
use crate::meter::{Metered, Meters};
use crate::outbox::{Outbox, Writing, Written};
use crate::packet::{Layout, Offload};
use crate::report::{AckGaps, DirectionReport, Lateness, LinkReport, LogReport, Report};
use crate::segments::Segments;
use crate::session::UeSession;
use crate::share::Share;
use crate::slab::{SLOT_BYTES, Slab};
use crate::traffic::{Ledger, Scheduled};
use crate::tun::READ_BYTES;
use crate::tunnel::{Batch, Tunnel};
use crate::{Clock, EmuError, Port};

/// Reads from one device before departures have their turn again.
const BATCH: usize = 16;

const DIRECTIONS: [&str; 2] = ["down", "up"];

/// Nobody looks more often.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How a forwarder works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sleeps until this long before a departure, then asks again and again. Waking up took up to
    /// 50 us on the machines that were measured.
    pub spin: Duration,
    /// Packets for which there is room from the start.
    pub slots: u32,
    /// Bytes of what is handed to the kernel at once, IP header included, when segments of one
    /// connection leave together; 0: each packet alone.
    pub coalesce_bytes: usize,
    /// Records of the packet log; 0: none.
    pub log_records: usize,
    /// Keeps a [`Journal`].
    pub journal: bool,
    /// How packets come and go.
    pub io: PacketIo,
    /// Runs the scenario's flows; an [`Emulation`](crate::Emulation) does.
    pub flows: bool,
    /// No model: what is read at one end is written at the other as it is. For comparison.
    pub bare: bool,
}

/// A UE's end of the network.
#[derive(Debug)]
pub struct UeEnd {
    /// Its name in tables.
    pub name: String,
    /// Its device.
    pub tun: Port,
    /// Its place in the scenario.
    pub ue: usize,
    /// What leads to it. If there is one UE, everything does.
    pub addresses: Vec<IpAddr>,
}

/// Moves packets between the server's device and those of UEs through a scenario's network, on the
/// real clock.
///
/// The model decides about logical times: a packet enters when it was read, and is written as
/// soon as possible after its departure. What the forwarder does late does not change what the
/// model does next, but for what the endpoints make of it.
pub struct Forwarder {
    clock: Clock,
    /// The server's, then those of the UEs.
    ends: Vec<End>,
    /// Ends of the UEs by address.
    routes: BTreeMap<IpAddr, usize>,
    network: Network,
    /// Between the path and the cell, if packets travel there for real.
    tunnel: Option<Tunnel>,
    flows: Flows,
    /// Ends of the UEs by flow.
    flow_ends: Vec<usize>,
    meters: Meters,
    /// Of the scenario's flows, if they run.
    ledger: Ledger,
    ways: [Way; 2],
    slab: Slab,
    tables: Tables,
    sample_interval: Duration,
    sampled_at: Instant,
    /// Of the cell.
    slot: Option<Duration>,
    log: Option<Log>,
    journal: Option<Journal>,
    capture: Option<Capture>,
    live: Option<Live>,
    published_at: Instant,
    /// The clock runs.
    begun: bool,
    settings: Settings,
    seed: u64,
}

/// One end.
struct End {
    tun: Port,
    outbox: Outbox,
    name: String,
    ue: usize,
}

/// One direction.
struct Way {
    entered: u64,
    entered_bytes: u64,
    left_bytes: u64,
    /// Packets that lead nowhere, or that the model is not to see.
    ignored: u64,
    written: Written,
    marked: u64,
    dropped: BTreeMap<DropReason, u64>,
    /// Slots after whose end their packets were written.
    missed_slots: u64,
    missed_slot: Option<u64>,
    /// Packets that nobody read in time.
    overrun: u64,
}

impl Settings {
    /// As a scenario says.
    pub fn of(config: &EmulationConfig) -> Self {
        let coalesce_bytes = config.coalesce_bytes as usize;
        Self { spin: config.spin, coalesce_bytes, io: config.io, ..Self::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spin: Duration::from_micros(60),
            slots: 8192,
            coalesce_bytes: 0,
            log_records: 0,
            journal: false,
            io: PacketIo::Auto,
            flows: false,
            bare: false,
        }
    }
}

impl Forwarder {
    /// Between a server and UEs, one at least.
    ///
    /// # Errors
    ///
    /// A TCP proxy in the path: the kernel's packets would have to be answered by our endpoints.
    pub fn new(
        server: impl Into<Port>,
        ues: Vec<UeEnd>,
        scenario: &Scenario,
        seed: u64,
        settings: &Settings,
    ) -> Result<Self, EmuError> {
        refuse_proxy(scenario)?;
        let end = |tun, name: &str, ue| {
            let outbox = Outbox::new(settings.coalesce_bytes);
            End { tun, outbox, name: name.to_owned(), ue }
        };
        let mut ends = vec![end(server.into(), "server", 0)];
        let mut routes = BTreeMap::new();
        for UeEnd { name, tun, ue, addresses } in ues {
            routes.extend(addresses.into_iter().map(|address| (address, ends.len())));
            ends.push(end(tun, &name, ue));
        }
        let mut tables = Tables::default();
        let network = Network::new(scenario, seed, &mut tables.names);
        Ok(Self {
            clock: Clock::new(),
            ends,
            routes,
            network,
            tunnel: None,
            flows: Flows::default(),
            flow_ends: Vec::new(),
            meters: Meters::default(),
            ledger: Ledger::default(),
            ways: [Way::new(), Way::new()],
            slab: Slab::new(settings.slots),
            tables,
            sample_interval: scenario.run.sample_interval,
            sampled_at: Instant::ZERO,
            slot: scenario
                .radio
                .as_ref()
                .and_then(|radio| radio.ran.cells.iter().map(|cell| cell.access.slot()).min()),
            log: (settings.log_records > 0).then(|| Log::new(settings.log_records)),
            journal: settings.journal.then(Journal::default),
            capture: None,
            live: None,
            published_at: Instant::ZERO,
            begun: false,
            settings: *settings,
            seed,
        })
    }

    /// UEs have attached before time 0: their names, and what they got.
    pub(crate) fn note_sessions<'a>(
        &mut self,
        sessions: impl Iterator<Item = (&'a str, &'a UeSession)> + Clone,
    ) {
        let zero = sessions.clone().map(|(_, session)| session.established).max();
        let zero = zero.unwrap_or(Duration::ZERO);
        sessions.for_each(|(ue, session)| session.write(ue, zero, &mut self.tables));
    }

    /// Between path and cell packets go through a tunnel, and come back from it.
    pub(crate) fn set_tunnel(&mut self, tunnel: Tunnel) {
        self.tunnel = Some(tunnel);
    }

    /// Writes what passes to a pcapng file: at each end; what enters and leaves the cell at the base
    /// station (`radio`); and in the tunnel (`n3` or `s1u`).
    ///
    /// # Errors
    ///
    /// When the file cannot be made.
    pub fn capture(&mut self, file: &Path, tunnel: Option<&str>) -> Result<(), EmuError> {
        let mut places: Vec<String> = self.ends.iter().map(|end| end.name.clone()).collect();
        if self.slot.is_some() {
            places.push("radio".to_owned());
        }
        places.extend(tunnel.map(str::to_owned));
        let name = file.display().to_string();
        let failed = |source| EmuError::Capture { file: name, source };
        self.capture = Some(Capture::create(file, &places).map_err(failed)?);
        Ok(())
    }

    /// Shows what happens there, from now on.
    pub fn show(&mut self, live: Live) {
        self.live = Some(live);
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    ///
    /// When the file could not be written.
    pub fn end_capture(&mut self) -> Result<(), EmuError> {
        let failed = |source| EmuError::Capture { file: "capture".to_owned(), source };
        self.capture.take().map_or(Ok(()), |capture| capture.finish().map_err(failed))
    }

    /// The scenario's flows will run: they are known before their first packet.
    pub(crate) fn schedule(&mut self, scheduled: Vec<Scheduled>) {
        for flow in &scheduled {
            self.flows.number(flow.key);
            self.add_flow(flow.key, flow.config.id.clone());
            if let Some(journal) = &mut self.journal {
                journal.schedule(self.ends[flow.key.end].ue);
            }
        }
        self.ledger = Ledger::new(scheduled);
    }

    /// Starts the clock: time 0 is that far ahead.
    pub(crate) fn begin(&mut self, ahead: Duration) -> Clock {
        self.clock = Clock::ahead(ahead);
        self.begun = true;
        if let Some(capture) = &mut self.capture {
            capture.begin(self.clock.epoch_nanos());
        }
        self.clock
    }

    /// Forwards for `duration`, or until `stop` can be read or is closed. Time 0 is now, unless
    /// the clock runs already.
    ///
    /// # Errors
    ///
    /// When a device goes away.
    pub fn run(&mut self, stop: &impl AsFd, duration: Duration) -> Result<(), EmuError> {
        let files: Vec<_> = self.ends.iter().map(|end| end.tun.file()).collect();
        let mut wanted: Vec<_> =
            files.iter().map(|file| PollFd::new(file, PollFlags::IN)).collect();
        wanted.push(PollFd::new(stop, PollFlags::IN));
        let sockets = self.tunnel.as_ref().map(Tunnel::sockets).transpose()?;
        let sockets = sockets.iter().flatten();
        wanted.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let mut batch = Batch::new();
        let mut buffer = vec![0; READ_BYTES];
        if !self.begun {
            self.begin(Duration::ZERO);
        }
        let end = self.clock.now() + duration;
        let (mut share, mut awake_since) = (Share::default(), self.clock.now());
        loop {
            let now = self.clock.now();
            self.deliver(now);
            if self.tunnel.as_ref().is_some_and(Tunnel::expects_any) {
                self.receive(&mut batch);
            }
            self.sample_if_due(now);
            if now >= end {
                return Ok(());
            }
            let due = self.network.next_event().unwrap_or(end).min(end);
            let due = due.min(self.sampled_at + self.sample_interval);
            let before = self.clock.now();
            let pause = due.saturating_since(before).saturating_sub(self.settings.spin);
            match poll(&mut wanted, Some(&timespec(pause))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(EmuError::Wait(error.into())),
            }
            let after = self.clock.now();
            share.worked(before.saturating_since(awake_since));
            share.waited(after.saturating_since(before), pause);
            if share.is_due() {
                Clock::sleep(share.take());
            }
            awake_since = self.clock.now();
            if wanted[self.ends.len() + 1..].iter().any(|socket| !socket.revents().is_empty()) {
                self.receive(&mut batch);
            }
            for (place, wanted) in wanted.iter().enumerate() {
                if wanted.revents().is_empty() {
                    continue;
                }
                match place.cmp(&self.ends.len()) {
                    Ordering::Less => self.admit(place, &mut buffer)?,
                    Ordering::Equal => {
                        // What is in the tunnel is in no buffer of the model.
                        self.receive(&mut batch);
                        return Ok(());
                    }
                    Ordering::Greater => {}
                }
            }
        }
    }

    /// What has happened so far.
    pub fn report(&mut self) -> Report {
        let now = self.clock.now();
        self.drain_drops();
        for (place, end) in self.ends.iter_mut().enumerate() {
            self.ways[usize::from(place > 0)].overrun += end.tun.take_dropped();
        }
        let mut links = Vec::new();
        for path in [FROM_SERVER, FROM_UE] {
            self.network.observe(path, now, &mut |meter| {
                links.push(LinkReport {
                    id: meter.name.clone(),
                    packets: meter.departed.packets,
                    bytes: meter.departed.bytes,
                    capacity_bytes: meter.capacity_bytes,
                });
            });
        }
        Report {
            elapsed_s: now.as_secs_f64(),
            clock_origin_ns: self.clock.origin_nanos(),
            directions: DIRECTIONS.into_iter().zip(self.ways.iter().map(Way::report)).collect(),
            tunnel: self
                .tunnel
                .as_ref()
                .map(|tunnel| DIRECTIONS.into_iter().zip(tunnel.report()).collect()),
            inside: self.network.load().packets,
            flows: self.flow_ends.len(),
            links,
            log: self.log.as_ref().map(|log| {
                let (records, lost) = log.counts();
                LogReport { records, lost }
            }),
            ack_gaps: {
                let gaps = self.ledger.ack_gaps().into_iter();
                gaps.map(|(id, gap_ms)| AckGaps { id, gap_ms }).collect()
            },
        }
    }

    /// The packet log, if one was ordered.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// The journal, if one was ordered.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Ends the run: its tables and its summary.
    pub fn finish(self) -> (RunSummary, Tables) {
        let (summary, mut tables, metered) = self.end();
        metered.record(&summary, &mut tables);
        (summary, tables)
    }

    /// Ends the run; flows and samples are not in the tables yet.
    pub(crate) fn end(mut self) -> (RunSummary, Tables, Metered) {
        let now = self.clock.now();
        self.drain_drops();
        self.sample(now);
        let entered = self.ways.iter().map(|way| way.entered).sum();
        let mut summary = RunSummary {
            seed: self.seed,
            simulated_s: now.as_secs_f64(),
            events: entered,
            ..RunSummary::default()
        };
        self.network.summarise(now, &mut summary);
        let Self { meters, ledger, tables, flows, .. } = &mut self;
        let complete = |flow, seen| ledger.complete(flow, now, seen);
        let metered = meters.summarise(&mut summary, flows.keys(), &complete);
        ledger.finish_pings(now, &meters.names(), &mut summary, tables);
        (summary, self.tables, metered)
    }

    /// Takes packets in.
    #[inline]
    fn admit(&mut self, end: usize, buffer: &mut [u8]) -> Result<(), EmuError> {
        for _ in 0..BATCH {
            let Some((offload, packet)) = self.ends[end].tun.read(buffer)? else {
                return Ok(());
            };
            if self.settings.bare {
                let said = offload.bytes();
                let other = &self.ends[usize::from(end == 0)].tun;
                let refused = other.write(&[IoSlice::new(&said), IoSlice::new(packet)]).is_err();
                self.ways[usize::from(end > 0)].written.refused += u64::from(refused);
                continue;
            }
            let now = self.clock.now();
            // What was due before comes first: the model's times never decrease.
            if self.network.next_event().is_some_and(|due| due <= now) {
                self.deliver(now);
            }
            self.take(now, end, offload, packet);
        }
        Ok(())
    }

    /// A packet of the kernel's enters, or the segments that it stands for.
    #[inline]
    fn take(&mut self, now: Instant, end: usize, offload: Offload, packet: &[u8]) {
        let direction = usize::from(end > 0);
        let Some(flow) = self.flow(end, packet) else {
            self.ways[direction].ignored += 1;
            return;
        };
        let ecn = header::ecn(packet);
        let segments = Segments::of(packet, offload);
        let count = segments.map_or(1, |segments| segments.count());
        for index in 0..count {
            let slot = self.slab.vacant();
            let room = self.slab.slot(slot);
            let length = match segments {
                Some(segments) => segments.write(packet, index, room),
                None if packet.len() <= SLOT_BYTES => {
                    room[..packet.len()].copy_from_slice(packet);
                    packet.len()
                }
                None => {
                    self.ways[direction].ignored += 1;
                    return;
                }
            };
            let slot = self.slab.keep(length, offload.checksum);
            let size = length as u32;
            let payload = Payload::Opaque(u64::from(slot));
            if let Some(log) = &mut self.log {
                log.push(now, now, direction, Point::In, self.slab.bytes(slot));
            }
            if let Some(journal) = &mut self.journal {
                let ue = self.ends[self.flow_ends[flow.0 as usize]].ue;
                journal.push(Entry::Entered { at: now, path: direction, flow, ue, size, ecn });
            }
            if let Some(capture) = &mut self.capture {
                capture.packet(end, now, self.slab.bytes(slot), offload.checksum);
            }
            self.meters.on_sent(flow.0, direction, now, self.slab.bytes(slot));
            self.ledger.on_sent(flow.0, direction, now);
            let way = &mut self.ways[direction];
            way.entered += 1;
            way.entered_bytes += u64::from(size);
            let packet = Packet { flow, size, ecn, tunnel: Tunnelling::default(), payload };
            self.network.enter(now, direction, packet);
        }
    }

    /// The flow of a packet that comes from `end`; `None` if it leads nowhere.
    #[inline]
    fn flow(&mut self, end: usize, packet: &[u8]) -> Option<FlowId> {
        let layout = Layout::of(packet)?;
        let up = end > 0;
        let destination = header::destination(packet, &layout);
        if destination.is_multicast() {
            return None;
        }
        let ue_end = match (up, self.ends.len()) {
            (true, _) => end,
            (false, 2) => 1,
            (false, _) => *self.routes.get(&destination)?,
        };
        let key = Key::of(packet, &layout, ue_end, up);
        let (flow, new) = self.flows.number(key);
        if new {
            let id = key.name(&self.ends[ue_end].name);
            self.add_flow(key, id);
        }
        Some(flow)
    }

    /// The next flow.
    fn add_flow(&mut self, key: Key, id: String) {
        let (name, ue) = (self.tables.names.add(&id), self.ends[key.end].ue);
        self.network.add_ue(ue, &mut self.tables.names);
        self.network.add_flow(name, ue);
        self.meters.add(name, id, key.protocol);
        self.flow_ends.push(key.end);
    }

    /// Lets out what is due.
    #[inline]
    fn deliver(&mut self, now: Instant) {
        if let Some(journal) = &mut self.journal {
            journal.asked(now);
        }
        while let Some((path, Leaving { at, packet, .. })) = self.poll(now) {
            let Payload::Opaque(handle) = packet.payload else { continue };
            let (slot, flow, direction) = (handle as u32, packet.flow, path);
            let bytes = self.slab.packet(slot);
            let way = &mut self.ways[direction];
            if packet.ecn == Ecn::Ce && header::ecn(bytes) != Ecn::Ce {
                header::mark_congestion(bytes);
                way.marked += 1;
            }
            way.note_slot(self.slot, at, now);
            way.left_bytes += u64::from(packet.size);
            self.meters.on_left(flow.0, direction, at, bytes);
            let meters = &self.meters;
            let delivered = |path| meters.delivered(flow.0, path);
            self.ledger.on_left(flow.0, direction, at, bytes, delivered);
            if let Some(log) = &mut self.log {
                log.push(self.clock.now(), at, direction, Point::Out, bytes);
            }
            if let Some(journal) = &mut self.journal {
                let size = packet.size;
                journal.push(Entry::Left { at, path: direction, flow, size });
            }
            let place = if direction == FROM_UE { 0 } else { self.flow_ends[flow.0 as usize] };
            if let Some(capture) = &mut self.capture {
                capture.packet(place, at, self.slab.bytes(slot), self.slab.checksum(slot));
            }
            let End { tun, outbox, .. } = &mut self.ends[place];
            let (clock, slab, written) = (&self.clock, &mut self.slab, &mut way.written);
            outbox.push(flow, slot, at, &mut Writing { tun, clock, slab, written });
        }
        for (place, End { tun, outbox, .. }) in self.ends.iter_mut().enumerate() {
            let written = &mut self.ways[usize::from(place == 0)].written;
            let (clock, slab) = (&self.clock, &mut self.slab);
            outbox.flush(&mut Writing { tun, clock, slab, written });
        }
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.flush(&self.clock, &mut self.slab);
        }
        self.drain_drops();
        debug_assert_eq!(
            self.slab.occupied() as u64,
            self.network.load().packets,
            "what is in the slab is inside the network"
        );
    }

    /// The next packet that has reached an end, and the path at whose end that is. What goes from
    /// hop to hop goes on, or into the tunnel.
    #[inline]
    fn poll(&mut self, now: Instant) -> Option<(usize, Leaving)> {
        loop {
            let leaving = self.network.poll_leaving(now)?;
            match leaving.goes {
                Goes::Out(path) => return Some((path, leaving)),
                Goes::On(hop) | Goes::ToProxy(hop) if self.tunnel.is_some() => {
                    self.hand(leaving.at, hop, &leaving.packet);
                }
                Goes::On(hop) | Goes::ToProxy(hop) => {
                    self.capture_at_cell(leaving.at, &leaving.packet);
                    self.network.pass(leaving.at, hop, leaving.packet);
                }
            }
        }
    }

    /// A packet passes the base station.
    #[inline]
    fn capture_at_cell(&mut self, at: Instant, packet: &Packet) {
        let (Some(capture), Payload::Opaque(slot)) = (&mut self.capture, packet.payload) else {
            return;
        };
        let slot = slot as u32;
        capture.packet(self.ends.len(), at, self.slab.bytes(slot), self.slab.checksum(slot));
    }

    fn drain_drops(&mut self) {
        let Self { network, slab, log, journal, ways, clock, meters, ledger, .. } = self;
        network.drain_drops(&mut |path, drop| {
            let Payload::Opaque(handle) = drop.packet.payload else { return };
            let (slot, reason) = (handle as u32, drop.reason);
            if let Some(log) = log {
                log.push(clock.now(), drop.at, path, Point::Dropped(reason), slab.bytes(slot));
            }
            if let Some(journal) = journal {
                let (flow, size) = (drop.packet.flow, drop.packet.size);
                journal.push(Entry::Dropped { at: drop.at, path, flow, size, reason });
            }
            meters.on_drop(drop.packet.flow.0, path);
            ledger.on_drop(drop.packet.flow.0, path, slab.bytes(slot));
            *ways[path].dropped.entry(reason).or_default() += 1;
            slab.release(slot);
        });
    }

    fn sample(&mut self, now: Instant) {
        self.publish(now);
        let seconds = now.saturating_since(self.sampled_at).as_secs_f64();
        self.sampled_at = now;
        self.network.sample(now, &mut self.tables);
        for (flow, window) in self.ledger.sample(now) {
            self.meters.sender(flow, window);
        }
        self.meters.sample(now, seconds);
    }

    fn publish(&mut self, now: Instant) {
        if now.saturating_since(self.published_at) < LOOK_INTERVAL {
            return;
        }
        let Some(live) = &self.live else { return };
        self.published_at = now;
        let Self { network, tables, meters, ways, .. } = self;
        live.publish(|snapshot| {
            let look = snapshot.get_or_insert_with(|| Snapshot {
                network: network.look(now, &tables.names),
                ..Snapshot::default()
            });
            look.time_s = now.as_secs_f64();
            network.update(now, &mut look.network);
            meters.update(&mut look.flows);
            for (way, look) in ways.iter().zip(&mut look.directions) {
                way.update(look);
            }
        });
    }

    fn sample_if_due(&mut self, now: Instant) {
        if now.saturating_since(self.sampled_at) >= self.sample_interval {
            self.sample(now);
        }
    }
}

/// A scenario that no forwarder can run.
pub(crate) fn refuse_proxy(scenario: &Scenario) -> Result<(), EmuError> {
    match &scenario.proxy {
        Some(proxy) => Err(EmuError::Proxy { stage: proxy.down.name.clone() }),
        None => Ok(()),
    }
}

impl Way {
    fn new() -> Self {
        Self {
            entered: 0,
            entered_bytes: 0,
            left_bytes: 0,
            ignored: 0,
            written: Written::new(),
            marked: 0,
            dropped: BTreeMap::new(),
            missed_slots: 0,
            missed_slot: None,
            overrun: 0,
        }
    }

    /// A packet that left at `at` is written at `now`.
    #[inline]
    fn note_slot(&mut self, slot: Option<Duration>, at: Instant, now: Instant) {
        let Some(slot) = slot.filter(|&slot| now.saturating_since(at) > slot) else { return };
        let number = Some(at.as_nanos() / slot.as_nanos().max(1));
        if self.missed_slot != number {
            self.missed_slot = number;
            self.missed_slots += 1;
        }
    }

    fn update(&self, look: &mut DirectionLook) {
        let us = |late: Option<Duration>| late.map(|late| late.as_nanos() as f64 / 1e3);
        let Written { lateness, packets, refused, .. } = &self.written;
        look.entered = self.entered;
        (look.left, look.left_bytes, look.refused) = (*packets, self.left_bytes, *refused);
        look.dropped.clear();
        look.dropped.extend(self.dropped.iter().map(|(reason, &packets)| (reason.name(), packets)));
        (look.late_p99_us, look.late_max_us) = (us(lateness.quantile(0.99)), us(lateness.max()));
    }

    fn report(&self) -> DirectionReport {
        DirectionReport {
            entered: self.entered,
            entered_bytes: self.entered_bytes,
            left: self.written.packets,
            writes: self.written.writes,
            refused: self.written.refused,
            ignored: self.ignored,
            dropped: self.dropped.iter().map(|(reason, &n)| (reason.name(), n)).collect(),
            marked: self.marked,
            missed_slots: self.missed_slots,
            overrun: self.overrun,
            lateness_us: Lateness::of(&self.written.lateness),
        }
    }
}
