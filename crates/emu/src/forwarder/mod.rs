//! One thread that forwards between the devices of a server and of UEs.

mod bridge;
mod counts;
mod egress;
mod ingress;
mod results;
mod tunnelled;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;

use airpath_base::{Direction, Duration, FlowId, Instant};
use airpath_capture::{Captured, Writer};
use airpath_network::PolledNetwork;
use airpath_record::{Name, Tables};
use airpath_scenario::{EmulationConfig, PacketIo, Scenario};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

pub(crate) use self::bridge::{Attached, Bridge};
use self::counts::DirectionCounts;
use self::results::{Every, SNAPSHOT_INTERVAL};
use crate::clock::{Wheel, timespec};
use crate::device::slab::Slab;
use crate::device::tun::READ_BYTES;
use crate::host::cpu_yield::CpuYield;
use crate::host::session::UeSession;
use crate::host::tunnel::{Batch, Tunnel};
use crate::observation::flow_meters::FlowMeters;
use crate::observation::journal::Journal;
use crate::observation::live::Live;
use crate::offload::coalescer::Coalescer;
use crate::traffic::{Scheduled, ScheduledMeters};
use crate::wire::flows::{Flows, MOST_FLOWS};
use crate::{Clock, EmuError, FramePort, Port};

/// Name of the end opposite the UEs.
const SERVER: &str = "server";

/// Configuration of a forwarder.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sleeps until this long before a departure, then polls. Waking up took up to 50 us on the
    /// machines that were measured.
    pub spin: Duration,
    /// Keeps idle processors from sleeping meanwhile, if permitted; see
    /// [`CpuLatency`](crate::CpuLatency).
    pub keep_awake: bool,
    /// Number of packets for which there is room from the start.
    pub slots: u32,
    /// Bytes passed to the kernel at once, IP header included, when segments of one connection
    /// leave together; 0: each packet is passed alone.
    pub coalesce_bytes: usize,
    /// Whether to keep a [`Journal`].
    pub journal: bool,
    /// How packets are exchanged with the kernel.
    pub io: PacketIo,
    /// Bypasses the model: what is read at one end is written unchanged at the other. For
    /// comparison.
    pub bare: bool,
}

/// A UE's end of the network.
#[derive(Debug)]
pub struct UeEnd {
    /// The UE's name in tables.
    pub name: String,
    /// The UE's device.
    pub tun: Port,
    /// The UE's position in the scenario.
    pub ue: usize,
    /// Addresses routed to the UE. If there is only one UE, everything is.
    pub addresses: Vec<IpAddr>,
}

/// Moves packets between the server's device and those of UEs through a scenario's network, on the
/// real clock.
///
/// The model decides the logical times: a packet enters when it was read, and is written as soon as
/// possible after its departure. Lateness of the forwarder does not change what the model does
/// next, except through the reaction of the endpoints.
pub struct Forwarder {
    clock: Clock,
    /// The server's device, then that of each UE, or one for all UEs.
    devices: Vec<Device>,
    /// The server's end, then those of the UEs.
    ends: Vec<End>,
    /// The bridge that distinguishes real devices, if the UEs share an interface of the host.
    bridge: Option<Bridge>,
    /// Ends of the UEs by address.
    routes: BTreeMap<IpAddr, usize>,
    network: PolledNetwork,
    /// The tunnel between path and cell, if packets really pass one.
    tunnel: Option<Tunnel>,
    /// Sessions of the UEs that attached, by their names in tables.
    sessions: Vec<Name>,
    flows: Flows,
    /// End of the UE for each flow.
    flow_ends: Vec<u16>,
    meters: FlowMeters,
    /// Name in tables for flows that have no row of their own.
    others: Option<Name>,
    /// Meters of the scenario's flows, if they run.
    scheduled: ScheduledMeters,
    counts: [DirectionCounts; 2],
    slab: Slab,
    /// Packets out of the model that have not been written or counted yet.
    left: Vec<Left>,
    tables: Tables,
    samples: Every,
    /// Length of a slot of the cell.
    slot: Option<Duration>,
    journal: Option<Journal>,
    capture: Option<Writer>,
    /// Who sees snapshots, and when to publish one.
    live: Option<(Live, Every)>,
    /// Whether the clock is running.
    begun: bool,
    settings: Settings,
    seed: u64,
}

/// A packet that left the model.
#[derive(Clone, Copy, Debug)]
struct Left {
    at: Instant,
    direction: Direction,
    /// Index of the end to which it goes.
    end: usize,
    flow: FlowId,
    slot: u32,
}

/// A device from which packets are read, and to which they are written.
struct Device {
    /// Name of the end or of the interface.
    name: String,
    port: Port,
    /// When the device was found to be gone.
    gone: Option<Instant>,
    /// When the device last went down.
    down: Option<Instant>,
}

/// One end.
struct End {
    /// Index of the end's device.
    device: usize,
    coalescer: Coalescer,
    name: String,
    ue: usize,
}

impl Device {
    fn new(name: &str, port: Port) -> Self {
        Self { name: name.to_owned(), port, gone: None, down: None }
    }
}

impl Settings {
    /// The settings for a scenario's configuration.
    pub fn of(config: &EmulationConfig) -> Self {
        let coalesce_bytes = config.coalesce_bytes as usize;
        let EmulationConfig { spin, keep_awake, io, .. } = *config;
        Self { spin, keep_awake, coalesce_bytes, io, ..Self::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spin: Duration::from_micros(60),
            keep_awake: true,
            slots: 8192,
            coalesce_bytes: 0,
            journal: false,
            io: PacketIo::Auto,
            bare: false,
        }
    }
}

impl Forwarder {
    /// A forwarder between a server and UEs, at least one.
    ///
    /// # Errors
    ///
    /// If there is a TCP proxy in the path: the kernel's packets would have to be answered by
    /// airpath's endpoints.
    pub fn new(
        server: impl Into<Port>,
        ues: Vec<UeEnd>,
        scenario: &Scenario,
        seed: u64,
        settings: &Settings,
    ) -> Result<Self, EmuError> {
        let mut devices = vec![Device::new(SERVER, server.into())];
        let mut names = Vec::new();
        let mut routes = BTreeMap::new();
        for UeEnd { name, tun, ue, addresses } in ues {
            routes.extend(addresses.into_iter().map(|address| (address, devices.len())));
            devices.push(Device::new(&name, tun));
            names.push((name, ue));
        }
        let ends = Self::ends(names, |ue| ue + 1, settings);
        Self::between(devices, ends, routes, None, (scenario, seed, settings))
    }

    /// A forwarder between two interfaces of the host: the server's, and that of all UEs. `ues` has
    /// the name of each UE and its position in the scenario.
    ///
    /// # Errors
    ///
    /// If there is a TCP proxy in the path.
    pub(crate) fn gateway(
        [server, inside]: [(&str, FramePort); 2],
        ues: Vec<(String, usize)>,
        bridge: Bridge,
        model: (&Scenario, u64, &Settings),
    ) -> Result<Self, EmuError> {
        let device = |(name, port)| Device::new(name, Port::Frames(port));
        let devices = vec![device(server), device(inside)];
        let ends = Self::ends(ues, |_| 1, model.2);
        Self::between(devices, ends, BTreeMap::new(), Some(bridge), model)
    }

    /// The ends of the server and of UEs, by name and position in the scenario. `device` returns
    /// the index of each UE's device.
    fn ends(
        ues: Vec<(String, usize)>,
        device: impl Fn(usize) -> usize,
        settings: &Settings,
    ) -> Vec<End> {
        let end = |device, name, ue| End {
            device,
            coalescer: Coalescer::new(settings.coalesce_bytes),
            name,
            ue,
        };
        let ues =
            ues.into_iter().enumerate().map(|(index, (name, ue))| end(device(index), name, ue));
        std::iter::once(end(0, SERVER.to_owned(), 0)).chain(ues).collect()
    }

    fn between(
        devices: Vec<Device>,
        ends: Vec<End>,
        routes: BTreeMap<IpAddr, usize>,
        bridge: Option<Bridge>,
        (scenario, seed, settings): (&Scenario, u64, &Settings),
    ) -> Result<Self, EmuError> {
        refuse_proxy(scenario)?;
        let mut tables = Tables::default();
        let mut network = PolledNetwork::new(scenario, seed, &mut tables.names);
        network.reserve_flows(MOST_FLOWS as usize);
        Ok(Self {
            clock: Clock::new(),
            devices,
            ends,
            bridge,
            routes,
            network,
            tunnel: None,
            sessions: Vec::new(),
            flows: Flows::default(),
            flow_ends: Vec::with_capacity(MOST_FLOWS as usize),
            others: None,
            meters: FlowMeters::default(),
            scheduled: ScheduledMeters::default(),
            counts: [DirectionCounts::new(), DirectionCounts::new()],
            slab: Slab::new(settings.slots),
            left: Vec::with_capacity(settings.slots as usize),
            tables,
            samples: Every::new(scenario.run.sample_interval),
            slot: scenario
                .radio
                .as_ref()
                .and_then(|radio| radio.ran.cells.iter().map(|cell| cell.access.slot()).min()),
            journal: settings.journal.then(Journal::default),
            capture: None,
            live: None,
            begun: false,
            settings: *settings,
            seed,
        })
    }

    /// Notes that UEs have attached before time 0: their names, and what they were assigned.
    pub(crate) fn note_sessions<'a>(
        &mut self,
        sessions: impl Iterator<Item = (&'a str, &'a UeSession)> + Clone,
    ) {
        let zero = sessions.clone().map(|(_, session)| session.established).max();
        let zero = zero.unwrap_or(Duration::ZERO);
        self.sessions =
            sessions.map(|(ue, session)| session.write(ue, zero, &mut self.tables)).collect();
    }

    /// Sends packets between path and cell through a tunnel, and receives them back.
    pub(crate) fn set_tunnel(&mut self, tunnel: Tunnel) {
        self.tunnel = Some(tunnel);
    }

    /// Captures packets in a pcapng file: at each end; packets that enter and leave the cell at the
    /// base station (`radio`); and in the tunnel (`n3` or `s1u`).
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub fn capture(&mut self, file: &Path, tunnel: Option<&str>) -> Result<(), EmuError> {
        let mut places: Vec<String> = self.ends.iter().map(|end| end.name.clone()).collect();
        if self.slot.is_some() {
            places.push("radio".to_owned());
        }
        places.extend(tunnel.map(str::to_owned));
        let name = file.display().to_string();
        let failed = |source| EmuError::Capture { file: name, source };
        self.capture = Some(Writer::create(file, &places).map_err(failed)?);
        Ok(())
    }

    /// Publishes snapshots there from now on.
    pub fn show(&mut self, live: Live) {
        self.live = Some((live, Every::new(SNAPSHOT_INTERVAL)));
    }

    /// Ends the capture, if there is one, and returns its result.
    pub fn end_capture(&mut self) -> Option<Captured> {
        self.capture.take().map(Writer::finish)
    }

    /// Announces the scenario's flows, before their first packet.
    pub(crate) fn schedule(&mut self, scheduled: Vec<Scheduled>) {
        for flow in &scheduled {
            let numbered = self.flows.number(flow.key);
            self.add_flow(numbered.flow, flow.key, Some(flow.config.id.clone()), true);
            if flow.reads_at_once() {
                self.meters.measure_host(numbered.flow.0);
            }
            if let Some(journal) = &mut self.journal {
                journal.schedule(self.ends[flow.key.end].ue);
            }
        }
        self.scheduled = ScheduledMeters::new(scheduled);
    }

    /// Starts the clock: time 0 is `ahead` in the future, and up to 20 ms more; 160 ms if there is
    /// a journal, by which the run is compared with others.
    pub(crate) fn begin(&mut self, ahead: Duration) -> Clock {
        let wheel = self.journal.as_ref().and_then(|_| Wheel::of_kernel());
        self.clock = Clock::ahead(ahead, wheel);
        self.begun = true;
        if let Some(capture) = &mut self.capture {
            capture.begin(self.clock.epoch_nanos());
        }
        self.clock
    }

    /// Forwards for `duration`, or until `stop` becomes readable or is closed. Time 0 is now or up
    /// to 20 ms later, unless the clock is already running.
    ///
    /// # Errors
    ///
    /// If waiting fails, or if both interfaces of a gateway reach the same network. If the device of
    /// an end disappears, that end is silent, and the others continue.
    pub fn run(&mut self, stop: &impl AsFd, duration: Duration) -> Result<(), EmuError> {
        let files: Vec<_> = self.devices.iter().map(|device| device.port.file()).collect();
        let mut wanted: Vec<_> =
            files.iter().map(|file| PollFd::new(file, PollFlags::IN)).collect();
        wanted.push(PollFd::new(stop, PollFlags::IN));
        let sockets = self.tunnel.as_ref().map(Tunnel::sockets).transpose()?;
        let sockets = sockets.iter().flatten();
        wanted.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        // Replaces a device that is gone.
        let (never, _nobody) = io::pipe().map_err(EmuError::Wait)?;
        let mut batch = Batch::new();
        let mut buffer = vec![0; READ_BYTES];
        if !self.begun {
            self.begin(Duration::ZERO);
        }
        let end = self.clock.now() + duration;
        let (mut cpu_yield, mut awake_since) = (CpuYield::default(), self.clock.now());
        loop {
            let now = self.clock.now();
            self.deliver(now);
            if self.tunnel.as_ref().is_some_and(Tunnel::expects_any) {
                self.receive(&mut batch);
            }
            self.sample_if_due(now);
            self.probe_if_due(now);
            if now >= end {
                return Ok(());
            }
            let due = self.network.next_event().unwrap_or(end).min(end);
            let due = due.min(self.samples.next());
            let before = self.clock.now();
            let pause = due.saturating_since(before).saturating_sub(self.settings.spin);
            match poll(&mut wanted, Some(&timespec(pause))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(EmuError::Wait(error.into())),
            }
            let after = self.clock.now();
            cpu_yield.worked(before.saturating_since(awake_since));
            cpu_yield.waited(after.saturating_since(before), pause);
            if cpu_yield.is_due() {
                Clock::sleep(cpu_yield.take());
            }
            awake_since = self.clock.now();
            if wanted[self.devices.len() + 1..].iter().any(|socket| !socket.revents().is_empty()) {
                self.receive(&mut batch);
            }
            for (place, wanted) in wanted.iter_mut().enumerate() {
                if wanted.revents().is_empty() {
                    continue;
                }
                match place.cmp(&self.devices.len()) {
                    Ordering::Less if self.bridge.is_some() => {
                        self.admit_frames(place, &mut buffer)?;
                    }
                    Ordering::Less => self.admit(place, &mut buffer),
                    Ordering::Equal => {
                        // Packets in the tunnel are in no buffer of the model.
                        self.receive(&mut batch);
                        return Ok(());
                    }
                    Ordering::Greater => {}
                }
                let Some(device) = self.devices.get_mut(place) else { continue };
                if wanted.revents().contains(PollFlags::ERR) && device.port.went_down() {
                    device.down = Some(after);
                }
                if device.gone.is_some() {
                    wanted.set_fd(&never);
                }
            }
        }
    }
}

/// Direction of packets from an end: the first end is the server's.
const fn direction_from(end: usize) -> Direction {
    if end == 0 { Direction::Downlink } else { Direction::Uplink }
}

/// Refuses scenarios that no forwarder can run.
pub(crate) fn refuse_proxy(scenario: &Scenario) -> Result<(), EmuError> {
    match &scenario.proxy {
        Some(proxy) => Err(EmuError::Proxy { stage: proxy.down.name.clone() }),
        None => Ok(()),
    }
}
