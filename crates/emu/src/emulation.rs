//! A command inside a scenario's network: namespaces, forwarder and programs, and nothing left of
//! them afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use airpath_base::{Duration, Instant};
use airpath_record::{RunSummary, Tables};
use airpath_scenario::{PacketIo, ProgramConfig, ProgramPlace, Scenario};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use serde::Serialize;

use crate::clock::timespec;
use crate::congestion::SlowStarts;
use crate::core_network::{CoreNetwork, refuse_names};
use crate::forwarder::refuse_proxy;
use crate::meter::Metered;
use crate::namespace::{DEVICE, IPV6_MTU, Namespace, Place};
use crate::nat::{self, Nat, NatFacts};
use crate::profile::KernelProfile;
use crate::programs::{At, ProgramReport, Session, c_strings};
use crate::session::UeSession;
use crate::sys::{Child, Container, Failed, RUNNING, Signals, spawn_contained};
use crate::traffic::{Running, Traffic};
use crate::tunnel::TunnelFacts;
use crate::watch::{Run, Watch};
use crate::{
    Clock, EmuError, FailedFlow, Forwarder, Journal, Live, Plan, Report, Settings, UeEnd,
    WatchFacts, real_time_priority,
};

/// Above what the desktop uses, below the kernel's own threads.
const PRIORITY: i32 = 50;

/// From the start of the clock to time 0: flows and programs have that long to get ready.
const AHEAD: Duration = Duration::from_millis(20);

/// How often somebody is told how far a run is.
const PROGRESS: Duration = Duration::from_millis(100);

/// Addresses 10.77.1.1 to 10.77.1.254.
const MOST_UES: usize = 254;

/// Who watches a run.
#[derive(Clone, Debug, Default)]
pub struct Observers {
    /// A pcapng file to be made.
    pub capture: Option<PathBuf>,
    /// Is told what happens.
    pub live: Option<Live>,
}

/// A run that is over.
pub struct Ended {
    /// The command's exit code, or that of the first program that failed.
    pub code: i32,
    /// What ran inside.
    pub programs: Vec<ProgramReport>,
    /// Links, radio.
    pub summary: RunSummary,
    /// Their tables.
    pub tables: Tables,
    /// What the forwarder counted.
    pub report: Report,
    /// What is needed to understand the result.
    pub facts: Facts,
    /// Every packet, if asked for.
    pub journal: Option<Journal>,
    /// What of the scenario the model was; the rest was the kernel's.
    pub model: Scenario,
    /// Flows of the scenario that could not do what they were to do.
    pub failed: Vec<FailedFlow>,
}

impl Ended {
    /// Why the run does not count whose packets may be so late; `None`: it does.
    pub fn invalid(&self, lateness_bound: Duration) -> Option<String> {
        let ends = self.facts.ends.iter().map(|end| (end.queue_dropped, &end.name));
        let nats = self.facts.nats.iter().map(|nat| (nat.queue_dropped, &nat.name));
        let lost = ends.chain(nats).find(|&(packets, _)| packets > 0);
        let lost = lost.map(|(packets, name)| {
            format!("{packets} packets of `{name}` were dropped before they could be read")
        });
        lost.or_else(|| self.report.too_late(lateness_bound))
    }
}

/// The machine, and what it was told.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// `uname -r`.
    pub kernel: String,
    /// How packets came and went: `tun`, `packet`.
    pub io: &'static str,
    /// Without root: everything is inside a user namespace.
    pub user_namespace: bool,
    /// The forwarder's thread was scheduled first in first out.
    pub real_time: bool,
    /// Bytes handed to the kernel at once; see [`Settings`].
    pub coalesce_bytes: usize,
    /// See [`Settings`].
    pub spin_us: f64,
    /// Parameters of tcp_cubic, the same for the whole machine.
    pub tcp_cubic: BTreeMap<String, String>,
    /// How the senders were watched.
    pub watch: WatchFacts,
    /// CUBIC with the slow start of a generation, for programs too: names in the kernel.
    pub slow_starts: Vec<String>,
    /// Server first.
    pub ends: Vec<EndFacts>,
    /// GTP-U between gateway and base station.
    pub tunnel: Option<TunnelFacts>,
    /// The path's NATs, which the kernel was and not the model, innermost first.
    pub nats: Vec<NatFacts>,
}

/// One end.
#[derive(Clone, Debug, Serialize)]
pub struct EndFacts {
    /// Its name, for `ip netns exec` and in `/etc/hosts`.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Of its device.
    pub mtu: u32,
    /// Congestion control of its routes.
    pub congestion: String,
    /// Other attributes of its routes.
    pub route: String,
    /// Sysctls that could not be set, and why.
    pub refused: BTreeMap<String, String>,
    /// Packets that the kernel dropped before the forwarder read them: its queue was full.
    pub queue_dropped: u64,
    /// net.ipv4.tcp_*, at the end.
    pub sysctls: BTreeMap<String, String>,
    /// TCP counters of `nstat`, those that are not 0; they began at 0.
    pub counters: BTreeMap<String, u64>,
    /// Of these, slow starts that HyStart ended, by its test, and their cwnd added up; 0 too.
    pub hystart: BTreeMap<&'static str, u64>,
}

/// Namespaces that are set up, and the forwarder between them.
pub struct Emulation {
    /// Server first.
    ends: Vec<(Namespace, KernelProfile)>,
    /// Between the forwarder and the server, innermost first.
    nats: Vec<(Namespace, Nat)>,
    /// Gateway and base station, if GTP-U goes between them.
    nodes: Vec<Namespace>,
    tunnel: Option<TunnelFacts>,
    /// What of the scenario is the model's.
    model: Scenario,
    plane: Plane,
    watch: Watch,
    slow_starts: SlowStarts,
    /// The scenario's flows, if they are to run.
    traffic: Option<Traffic>,
    duration: Duration,
    settings: Settings,
    /// The scenario's.
    programs: Vec<ProgramConfig>,
    io: PacketIo,
}

/// The forwarder's thread.
struct Plane {
    /// Dropped: stop.
    stop: Option<PipeWriter>,
    /// Closed when the thread ends.
    running: PipeReader,
    /// The run's.
    clock: Clock,
    thread: Option<JoinHandle<Result<Forwarded, EmuError>>>,
}

/// What a forwarder leaves.
struct Forwarded {
    summary: RunSummary,
    tables: Tables,
    metered: Metered,
    report: Report,
    journal: Option<Journal>,
    real_time: bool,
}

impl Emulation {
    /// Sets up the scenario's ends, and starts to forward. Time 0 is now.
    ///
    /// # Errors
    ///
    /// What cannot be emulated, or is not allowed.
    pub fn new(scenario: &Scenario, seed: u64, settings: &Settings) -> Result<Self, EmuError> {
        Self::watched(scenario, seed, settings, Observers::default())
    }

    /// Like `new`, with somebody who watches.
    ///
    /// # Errors
    ///
    /// What cannot be emulated, or is not allowed.
    pub fn watched(
        scenario: &Scenario,
        seed: u64,
        settings: &Settings,
        observers: Observers,
    ) -> Result<Self, EmuError> {
        Self::attached(scenario, seed, settings, observers, &[])
    }

    /// Like `watched`, with UEs that have attached: one session for each that has an end, or none.
    ///
    /// # Errors
    ///
    /// What cannot be emulated, or is not allowed.
    pub fn attached(
        scenario: &Scenario,
        seed: u64,
        settings: &Settings,
        observers: Observers,
        sessions: &[UeSession],
    ) -> Result<Self, EmuError> {
        refuse_proxy(scenario)?;
        let mut model = scenario.clone();
        let nats = nat::take_out(&mut model)?;
        let ues = ues(scenario);
        refuse_names(scenario, &ues, nats.len())?;
        sessions.iter().for_each(|session| session.cap(&mut model));
        let session = |ue: usize| sessions.iter().find(|session| session.ue == ue);
        if ues.len() > MOST_UES {
            return Err(EmuError::Ues { ues: ues.len(), most: MOST_UES });
        }
        let slow_starts = SlowStarts::load(scenario.emulation.slow_start)?;
        let names = slow_starts.names();
        let profile = KernelProfile::of(scenario, None, names)?;
        let profiles = ues.iter().map(|(ue, _)| KernelProfile::of(scenario, Some(*ue), names));
        let profiles = profiles.collect::<Result<Vec<_>, EmuError>>()?;
        let mtu = profiles.iter().fold(profile.mtu, |mtu, profile| mtu.max(profile.mtu));
        let io = settings.io;
        let core = CoreNetwork::new(scenario, nats, &profile, (mtu, io), &ues, sessions)?;
        let CoreNetwork { server, server_port, nats, nodes, tunnel, facts } = core;
        // All ends alike.
        let io = server_port.io();
        let mut ends = vec![(server, profile)];
        let mut ue_ends = Vec::new();
        for (index, ((ue, name), profile)) in ues.into_iter().zip(profiles).enumerate() {
            let index = index as u8;
            let place =
                session(ue).map_or(Place::ue(index), |session| Place::Ue(index, session.address));
            let (mut namespace, tun) = Namespace::new(&name, place, &profile, io)?;
            namespace.ue = Some(ue);
            let addresses = vec![place.v4().into(), place.v6().into()];
            ue_ends.push(UeEnd { name, tun, ue, addresses });
            ends.push((namespace, profile));
        }
        let watch = {
            let emulation = &scenario.emulation;
            let namespaces: Vec<&Namespace> = ends.iter().map(|(namespace, _)| namespace).collect();
            let (watching, poll) = (emulation.watch, emulation.watch_poll);
            Watch::start(watching, poll, scenario.run.ack_table, &namespaces)?
        };
        let traffic = settings.flows.then(|| Traffic::open(scenario, &ends)).transpose()?;
        let scheduled = traffic.as_ref().map(Traffic::scheduled);
        let sessions = sessions.to_vec();
        // What the UEs need until they have a session passes before time 0.
        let ahead = AHEAD
            + sessions.iter().map(|session| session.established).max().unwrap_or(Duration::ZERO);
        let plane = Plane::start(&model, settings, ahead, move |scenario, settings| {
            let names: Vec<_> = ue_ends.iter().map(|end| (end.name.clone(), end.ue)).collect();
            let mut forwarder = Forwarder::new(server_port, ue_ends, scenario, seed, settings)?;
            forwarder.schedule(scheduled.unwrap_or_default());
            forwarder.note_sessions(sessions.iter().filter_map(|session| {
                let (name, _) = names.iter().find(|(_, ue)| *ue == session.ue)?;
                Some((name.as_str(), session))
            }));
            let (tunnel, interface) = tunnel.unzip();
            observers.capture.map_or(Ok(()), |file| forwarder.capture(&file, interface))?;
            tunnel.into_iter().for_each(|tunnel| forwarder.set_tunnel(tunnel));
            if let Some(live) = observers.live {
                forwarder.show(live);
            }
            Ok(forwarder)
        })?;
        let (duration, settings) = (scenario.run.duration, *settings);
        let programs = scenario.programs.clone();
        let tunnel = facts;
        Ok(Self {
            ends,
            nats,
            nodes,
            tunnel,
            model,
            plane,
            watch,
            slow_starts,
            traffic,
            duration,
            settings,
            programs,
            io,
        })
    }

    /// Runs the programs until the command ends.
    ///
    /// # Errors
    ///
    /// When they cannot be started, or the forwarder fails.
    pub fn run(mut self, plan: &Plan) -> Result<Ended, EmuError> {
        let mut running = self.start_traffic()?;
        let ran = self.run_programs(plan);
        self.conclude(ran, running.as_mut())
    }

    /// Runs the scenario's flows alone, until they are done or the scenario's time is over.
    /// `progress` is told the time now and then, and stops the run by returning false.
    ///
    /// # Errors
    ///
    /// When the forwarder fails, or the run was stopped.
    pub fn run_flows(
        mut self,
        progress: &mut dyn FnMut(Instant) -> bool,
    ) -> Result<Ended, EmuError> {
        let mut running = self.start_traffic()?;
        let done = running.as_ref().map_or(Ok(()), |running| self.wait_for(running, progress));
        self.conclude(done.map(|()| (0, Vec::new())), running.as_mut())
    }

    fn start_traffic(&mut self) -> Result<Option<Running>, EmuError> {
        let clock = self.plane.clock;
        self.traffic.take().map(|traffic| traffic.start(clock)).transpose()
    }

    fn conclude(
        mut self,
        ran: Result<(i32, Vec<ProgramReport>), EmuError>,
        mut running: Option<&mut Running>,
    ) -> Result<Ended, EmuError> {
        if let Some(running) = &mut running {
            running.brace();
        }
        let forwarded = self.plane.finish();
        // After the forwarder: how flows are cut off is not part of the run.
        let failed = running.map(Running::finish).unwrap_or_default();
        // The forwarder's own failure explains the other one.
        let (forwarded, (code, programs)) = (forwarded?, ran?);
        let Forwarded { mut summary, mut tables, mut metered, report, journal, real_time } =
            forwarded;
        let names: Vec<String> = self.ends.iter().map(|(end, _)| end.name.clone()).collect();
        let mtu: Vec<u32> = self.ends.iter().map(|(_, profile)| profile.mtu).collect();
        let watch = self.watch.finish()?.complete(
            &Run {
                origin_ns: report.clock_origin_ns,
                ends: &names,
                mtu: &mtu,
                addresses: &addresses(&self.ends, &self.nats),
                names: &metered.names,
                flows: &metered.flows,
            },
            &mut metered.samples,
            &mut summary,
            &mut tables,
        );
        metered.record(&summary, &mut tables);
        let machine = (real_time, self.io.name());
        let mut facts = facts(&self.ends, &self.settings, machine, watch, &self.slow_starts)?;
        facts.tunnel = self.tunnel;
        facts.nats = nat_facts(&self.nats)?;
        let model = self.model;
        Ok(Ended { code, programs, summary, tables, report, facts, journal, model, failed })
    }

    /// Until all flows are done, or the time is over.
    fn wait_for(
        &self,
        running: &Running,
        progress: &mut dyn FnMut(Instant) -> bool,
    ) -> Result<(), EmuError> {
        let end = Instant::ZERO + self.duration;
        loop {
            let now = self.plane.clock.now();
            if now >= end || running.is_done() {
                return Ok(());
            }
            if !progress(now) {
                return Err(EmuError::Stopped);
            }
            let pause = timespec((end.saturating_since(now)).min(PROGRESS));
            let mut plane = [PollFd::new(&self.plane.running, PollFlags::IN)];
            match poll(&mut plane, Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Err(EmuError::Forwarder),
                Err(error) => return Err(EmuError::Wait(error.into())),
            }
        }
    }

    fn run_programs(&mut self, plan: &Plan) -> Result<(i32, Vec<ProgramReport>), EmuError> {
        let at = |namespace: &Namespace| At {
            name: namespace.name.clone(),
            network: namespace.file.as_raw_fd(),
        };
        let place = match &plan.place {
            None => &self.ends[1].0,
            Some(name) => self.end(name)?,
        };
        let session = Session::new(plan, &self.programs, at(place), |place| match place {
            ProgramPlace::Server => Ok(at(&self.ends[0].0)),
            ProgramPlace::Ue(ue) => {
                let known = self.ends[1..].iter().find(|(end, _)| end.ue == Some(ue));
                known.map(|(end, _)| at(end)).ok_or(EmuError::Forwarder)
            }
        })?;
        let mut names = Vec::new();
        for (index, (namespace, _)) in self.ends.iter().enumerate() {
            for name in self.names(index) {
                let path = c_strings(&[format!("/run/netns/{name}")])?.remove(0);
                names.push((path, namespace.file.as_raw_fd()));
            }
        }
        for namespace in self.between() {
            let path = c_strings(&[format!("/run/netns/{}", namespace.name)])?.remove(0);
            names.push((path, namespace.file.as_raw_fd()));
        }
        let hosts = self.hosts();
        let origin_ns = self.plane.clock.origin_nanos();
        let container = Container {
            programs: &session.programs,
            command: session.command,
            origin_ns,
            names: &names,
            hosts: hosts.as_bytes(),
        };
        let start = |step: &str, source| EmuError::Start { step: step.to_owned(), source };
        let mut signals = Signals::catch().map_err(|error| start("a pipe", error))?;
        let mut child = spawn_contained(&container)
            .map_err(|error| start("clone (root, or CAP_SYS_ADMIN)", error))?;
        self.wait(&child, &mut signals)?;
        let (code, told) = child.wait().map_err(|Failed { step, program, error }| match step {
            RUNNING => start(&format!("running {}", session.command_of(program)), error),
            step => start(step, error),
        })?;
        Ok(session.end(code, &told, origin_ns))
    }

    /// Until the first process has ended. Signals are passed on.
    fn wait(&self, child: &Child, signals: &mut Signals) -> Result<(), EmuError> {
        loop {
            let [ended, plane, signal] = {
                let mut wanted = [
                    PollFd::new(&child.pidfd, PollFlags::IN),
                    PollFd::new(&self.plane.running, PollFlags::IN),
                    PollFd::new(signals, PollFlags::IN),
                ];
                match poll(&mut wanted, None) {
                    Ok(_) => {}
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(EmuError::Wait(error.into())),
                }
                wanted.map(|wanted| !wanted.revents().is_empty())
            };
            if ended {
                return Ok(());
            }
            if plane {
                return Err(EmuError::Forwarder);
            }
            if signal && let Some(signal) = signals.next() {
                child.signal(signal);
            }
        }
    }

    fn end(&self, name: &str) -> Result<&Namespace, EmuError> {
        let found = self
            .ends
            .iter()
            .enumerate()
            .find(|(index, _)| self.names(*index).iter().any(|known| known == name));
        let between = || self.between().find(|node| node.name == name);
        let found = found.map(|(_, (end, _))| end).or_else(between);
        found.ok_or_else(|| {
            let ends = self.ends.iter().map(|(end, _)| end);
            let known: Vec<&str> =
                ends.chain(self.between()).map(|end| end.name.as_str()).collect();
            EmuError::Place { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// What is neither the server nor a UE.
    fn between(&self) -> impl Iterator<Item = &Namespace> {
        self.nats.iter().map(|(nat, _)| nat).chain(&self.nodes)
    }

    /// Names of an end; the first UE is also `ue`, unless another one is.
    fn names(&self, index: usize) -> Vec<String> {
        let mut names = vec![self.ends[index].0.name.clone()];
        if index == 1 && self.ends.iter().all(|(end, _)| end.name != "ue") {
            names.push("ue".to_owned());
        }
        names
    }

    /// The host's, and the names of the ends.
    fn hosts(&self) -> String {
        let mut hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        if !hosts.is_empty() && !hosts.ends_with('\n') {
            hosts.push('\n');
        }
        for (index, (namespace, profile)) in self.ends.iter().enumerate() {
            let names = self.names(index).join(" ");
            hosts += &format!("{} {names}\n", namespace.place.v4());
            if profile.mtu >= IPV6_MTU {
                hosts += &format!("{} {names}\n", namespace.place.v6());
            }
        }
        hosts
    }
}

impl Plane {
    fn start(
        scenario: &Scenario,
        settings: &Settings,
        ahead: Duration,
        make: impl FnOnce(&Scenario, &Settings) -> Result<Forwarder, EmuError> + Send + 'static,
    ) -> Result<Self, EmuError> {
        let pipe = || io::pipe().map_err(EmuError::Wait);
        let ((stopped, stop), (mut running, mut ready)) = (pipe()?, pipe()?);
        let (scenario, settings) = (scenario.clone(), *settings);
        let work = move || {
            let mut forwarder = make(&scenario, &settings)?;
            // Both where they are allowed; lateness tells the rest.
            let locked = mlockall(MlockAllFlags::CURRENT).is_ok();
            let real_time = real_time_priority(PRIORITY).is_ok();
            // The pipe is closed when this thread ends.
            let clock = forwarder.begin(ahead);
            ready.write_all(&clock.origin_nanos().to_ne_bytes()).map_err(EmuError::Wait)?;
            let done = forwarder.run(&stopped, Duration::MAX);
            if locked {
                let _ = munlockall();
            }
            done?;
            forwarder.end_capture()?;
            let report = forwarder.report();
            let journal = forwarder.journal().cloned();
            let (summary, tables, metered) = forwarder.end();
            Ok(Forwarded { summary, tables, metered, report, journal, real_time })
        };
        let thread = thread::Builder::new().name("airpath-forward".to_owned()).spawn(work);
        let thread = Some(thread.map_err(EmuError::Wait)?);
        let mut origin = [0; 8];
        let is_running = running.read_exact(&mut origin).is_ok();
        let clock = Clock::since(u64::from_ne_bytes(origin));
        let mut plane = Self { stop: Some(stop), running, clock, thread };
        // Without a forwarder its thread knows why.
        if is_running { Ok(plane) } else { plane.finish().and(Err(EmuError::Forwarder)) }
    }

    fn finish(&mut self) -> Result<Forwarded, EmuError> {
        drop(self.stop.take());
        let thread = self.thread.take().ok_or(EmuError::Forwarder)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether root here is nobody elsewhere: the first user namespace maps all numbers.
fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().nth(2).is_some_and(|count| count != "4294967295")
}

/// What is needed to understand a result.
fn facts(
    ends: &[(Namespace, KernelProfile)],
    settings: &Settings,
    (real_time, io): (bool, &'static str),
    watch: WatchFacts,
    slow_starts: &SlowStarts,
) -> Result<Facts, EmuError> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let ends = ends.iter().map(|(namespace, profile)| {
        let (sysctls, counters, queue_dropped) = namespace.within(|| {
            let mut sysctls = texts("/proc/sys/net/ipv4");
            sysctls.retain(|name, _| name.starts_with("tcp_"));
            (sysctls, counters(), queue_dropped())
        })?;
        let mut addresses = vec![namespace.place.v4().to_string()];
        if profile.mtu >= IPV6_MTU {
            addresses.push(namespace.place.v6().to_string());
        }
        Ok(EndFacts {
            name: namespace.name.clone(),
            addresses,
            mtu: profile.mtu,
            congestion: profile.congestion.clone(),
            route: profile.route.clone(),
            refused: namespace.refused.iter().cloned().collect(),
            queue_dropped,
            sysctls,
            hystart: hystart(&counters),
            counters,
        })
    });
    Ok(Facts {
        kernel: read("/proc/sys/kernel/osrelease"),
        io,
        user_namespace: in_user_namespace(),
        real_time,
        coalesce_bytes: settings.coalesce_bytes,
        spin_us: settings.spin.as_nanos() as f64 / 1e3,
        tcp_cubic: texts("/sys/module/tcp_cubic/parameters"),
        watch,
        slow_starts: slow_starts.names().ours.values().cloned().collect(),
        ends: ends.collect::<Result<_, EmuError>>()?,
        tunnel: None,
        nats: Vec::new(),
    })
}

fn nat_facts(nats: &[(Namespace, Nat)]) -> Result<Vec<NatFacts>, EmuError> {
    let each = nats.iter().enumerate().map(|(index, (namespace, nat))| {
        let outermost = index + 1 == nats.len();
        namespace.within(|| nat.facts(index, outermost, queue_dropped()))
    });
    each.collect()
}

/// The UEs' ends by address. Behind NATs the server sees theirs, which is that of one UE if there is
/// no other; it keeps the UE's ports.
fn addresses(
    ends: &[(Namespace, KernelProfile)],
    nats: &[(Namespace, Nat)],
) -> BTreeMap<IpAddr, usize> {
    let ues = ends.iter().enumerate().skip(1);
    let outermost = (!nats.is_empty() && ends.len() == 2).then(|| (nat::outermost_v4().into(), 1));
    let own = ues.flat_map(|(index, (end, _))| {
        [(end.place.v4().into(), index), (end.place.v6().into(), index)]
    });
    own.chain(outermost).collect()
}

/// The counters of HyStart.
fn hystart(counters: &BTreeMap<String, u64>) -> BTreeMap<&'static str, u64> {
    let names = [
        "TCPHystartTrainDetect",
        "TCPHystartTrainCwnd",
        "TCPHystartDelayDetect",
        "TCPHystartDelayCwnd",
    ];
    names.map(|name| (name, counters.get(name).copied().unwrap_or(0))).into()
}

/// UEs: place in the scenario, and name. Without a radio there is one.
fn ues(scenario: &Scenario) -> Vec<(usize, String)> {
    match &scenario.radio {
        None => vec![(0, "ue".to_owned())],
        Some(radio) => radio.ues.iter().cloned().enumerate().collect(),
    }
}

/// Files of a directory and what they say, on one line each.
fn texts(directory: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            let words: Vec<&str> = text.split_whitespace().collect();
            Some((entry.file_name().to_string_lossy().into_owned(), words.join(" ")))
        })
        .collect()
}

/// Of the device in the calling thread's network namespace: `drop` of what it should have sent.
fn queue_dropped() -> u64 {
    const COLUMN: usize = 11;
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let device = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    device.and_then(|counts| counts.split_whitespace().nth(COLUMN)?.parse().ok()).unwrap_or(0)
}

/// TCP counters of the calling thread's network namespace.
pub(crate) fn counters() -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for file in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            if !pair[0].starts_with("Tcp") {
                continue;
            }
            let numbers = names.zip(values).filter_map(|(name, value)| {
                Some((name.to_owned(), value.parse::<u64>().ok().filter(|&value| value > 0)?))
            });
            counters.extend(numbers);
        }
    }
    counters
}
