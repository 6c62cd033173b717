//! A run between two interfaces of the host: real devices on one side, real servers on the other.
//! Nothing of the host changes, except that both interfaces receive the frames for all stations.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use airpath_base::{Duration, Instant};
use airpath_scenario::{PacketIo, Scenario};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::emulation::{Ended, PROGRESS, ues};
use super::environment::Environment;
use super::forwarder_thread::{Forwarded, ForwarderThread};
use crate::clock::timespec;
use crate::device::slab::SLOT_BYTES;
use crate::forwarder::{Attached, Bridge, refuse_proxy};
use crate::host::congestion::Names;
use crate::host::profile::KernelProfile;
use crate::sys::Signals;
use crate::{EmuError, Forwarder, FramePort, ObserverReport, Options, Settings};

/// Time from the start of the clock to time 0.
const AHEAD: Duration = Duration::from_millis(1);

/// The interfaces and devices on both sides of a gateway, and how long it runs.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The interface on the UEs' side, in the calling thread's network namespace.
    pub inside: String,
    /// The interface on the servers' side.
    pub server: String,
    /// Names of UEs, each with the MAC or IP address of a device that is behind the UE. All other
    /// devices are behind the first UE.
    pub devices: Vec<(String, String)>,
    /// How long the gateway runs; `None`: until a signal.
    pub duration: Option<Duration>,
}

/// A running gateway.
pub struct Gateway {
    model: Scenario,
    forwarder: ForwarderThread,
    settings: Settings,
    signals: Signals,
    duration: Option<Duration>,
}

impl Gateway {
    /// Opens both interfaces and starts forwarding. Of `options` it uses the sessions, the capture,
    /// the live view and the journal. Time 0 is the time at which the last UE has a session.
    ///
    /// # Errors
    ///
    /// If the scenario needs what a gateway does not support, or if an interface cannot be opened.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        mut options: Options,
        gateway: GatewayOptions,
    ) -> Result<Self, EmuError> {
        // Before anything else starts, so that an early signal stops the run as well.
        let signals = Signals::catch();
        let signals =
            signals.map_err(|source| EmuError::Start { step: "a pipe".into(), source })?;
        refuse(scenario)?;
        let ues = ues(scenario);
        let GatewayOptions { inside, server, devices, duration } = gateway;
        let bridge = Bridge::new(assigned(&devices, &ues)?);
        let sessions = std::mem::take(&mut options.sessions);
        let mut model = scenario.clone();
        sessions.iter().for_each(|session| session.cap(&mut model));
        let established = sessions.iter().map(|session| session.established).max();
        let ahead = AHEAD + established.unwrap_or(Duration::ZERO);
        let settings = Settings {
            journal: options.journal,
            io: PacketIo::Packet,
            ..Settings::of(&scenario.emulation)
        };
        // Opened here: a thread that was started elsewhere may be in another namespace.
        let ports = [FramePort::open(&server)?, FramePort::open(&inside)?];
        let path = path_mtu(scenario, &ues)?;
        for (name, port) in [&server, &inside].into_iter().zip(&ports) {
            fits(name, port.mtu()?, path)?;
        }
        let (capture, live) = (options.capture, options.live);
        let names = ues.clone();
        let forwarder =
            ForwarderThread::start(&model, settings, ahead, move |scenario, settings| {
                let [to_server, to_inside] = ports;
                let ports = [(server.as_str(), to_server), (inside.as_str(), to_inside)];
                let ues = names.iter().map(|(ue, name)| (name.clone(), *ue)).collect();
                let model = (scenario, seed, settings);
                let mut forwarder = Forwarder::gateway(ports, ues, bridge, model)?;
                forwarder.note_sessions(sessions.iter().filter_map(|session| {
                    let (_, name) = names.iter().find(|(ue, _)| *ue == session.ue)?;
                    Some((name.as_str(), session))
                }));
                capture.map_or(Ok(()), |file| forwarder.capture(&file, None))?;
                live.into_iter().for_each(|live| forwarder.show(live));
                Ok(forwarder)
            })?;
        Ok(Self { model, forwarder, settings, signals, duration })
    }

    /// Runs until a signal that ends programs, or until the duration is over. `progress` receives
    /// the time at intervals, and stops the run by returning false.
    ///
    /// # Errors
    ///
    /// If the forwarder fails, or `progress` stops the run.
    pub fn run(mut self, progress: &mut dyn FnMut(Instant) -> bool) -> Result<Ended, EmuError> {
        let ran = self.wait(progress);
        let Self { model, mut forwarder, settings, .. } = self;
        // The forwarder's own failure explains the others.
        let forwarded = forwarder.finish()?;
        ran?;
        let Forwarded { summary, mut tables, metered, report, partial, journal, machine } =
            forwarded;
        metered.record(&summary, &mut tables);
        // The senders are on other machines.
        let observer = ObserverReport::new("none", None);
        let machine = (machine, PacketIo::Packet.name());
        let environment = Environment::of_machine(&settings, machine, observer);
        Ok(Ended {
            code: 0,
            programs: Vec::new(),
            summary,
            tables,
            report,
            environment,
            journal,
            model,
            failed: Vec::new(),
            partial,
            sockets: Vec::new(),
            // A signal is the usual end of a gateway.
            interrupted: false,
        })
    }

    fn wait(&mut self, progress: &mut dyn FnMut(Instant) -> bool) -> Result<(), EmuError> {
        let end = self.duration.map(|duration| Instant::ZERO + duration);
        loop {
            let now = self.forwarder.clock.now();
            let left = end.map_or(PROGRESS, |end| end.saturating_since(now));
            if left == Duration::ZERO {
                return Ok(());
            }
            if !progress(now) {
                return Err(EmuError::Stopped);
            }
            let pause = timespec(left.min(PROGRESS));
            let [forwarder, signal] = {
                let mut wanted = [
                    PollFd::new(&self.forwarder.running, PollFlags::IN),
                    PollFd::new(&self.signals, PollFlags::IN),
                ];
                match poll(&mut wanted, Some(&pause)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(EmuError::Wait(error.into())),
                }
                wanted.map(|wanted| !wanted.revents().is_empty())
            };
            if forwarder {
                return Err(EmuError::Forwarder);
            }
            if signal && self.signals.next().is_some_and(Signals::ends) {
                return Ok(());
            }
        }
    }
}

/// Refuses what needs namespaces.
fn refuse(scenario: &Scenario) -> Result<(), EmuError> {
    refuse_proxy(scenario)?;
    if scenario.emulation.gtpu.is_some() {
        return Err(EmuError::NoGateway(
            "emulation.gtpu needs namespaces, which a gateway does not have: set emulation.gtpu = false",
        ));
    }
    Ok(())
}

/// The MTU of the path: the largest MTU of its ends.
fn path_mtu(scenario: &Scenario, ues: &[(usize, String)]) -> Result<u32, EmuError> {
    let names = Names::default();
    let ends = std::iter::once(None).chain(ues.iter().map(|(ue, _)| Some(*ue)));
    let mut mtu = 0;
    for end in ends {
        mtu = mtu.max(KernelProfile::of(scenario, end, &names)?.mtu);
    }
    Ok(mtu)
}

fn fits(name: &str, mtu: u32, path: u32) -> Result<(), EmuError> {
    if (path..=SLOT_BYTES as u32).contains(&mtu) {
        return Ok(());
    }
    Err(EmuError::InterfaceMtu { name: name.to_owned(), mtu, path, most: SLOT_BYTES })
}

/// UEs' ends by device. The first end is the server's.
fn assigned(
    devices: &[(String, String)],
    ues: &[(usize, String)],
) -> Result<BTreeMap<Attached, usize>, EmuError> {
    let mut assigned = BTreeMap::new();
    for (name, device) in devices {
        let index = ues.iter().position(|(_, known)| known == name).ok_or_else(|| {
            let known: Vec<&str> = ues.iter().map(|(_, name)| name.as_str()).collect();
            EmuError::UnknownUe { name: name.clone(), known: known.join(", ") }
        })?;
        let wrong = |said| EmuError::Attached { name: name.clone(), device: device.clone(), said };
        let attached = device.parse().map_err(|()| {
            wrong("a device is a MAC address such as 02:00:00:00:00:01, or an IP address")
        })?;
        match assigned.entry(attached) {
            Entry::Vacant(free) => free.insert(index + 1),
            Entry::Occupied(_) => return Err(wrong("this device is given twice")),
        };
    }
    Ok(assigned)
}
