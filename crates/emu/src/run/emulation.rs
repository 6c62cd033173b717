//! Runs a command inside a scenario's network: namespaces, forwarder and programs, all removed
//! afterwards.

use airpath_base::{Duration, Instant};
use airpath_record::{EventRow, RunSummary, Tables};
use airpath_scenario::{EmulationConfig, PacketIo, ProgramConfig, Scenario};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::environment::{EndEnvironment, Environment};
use super::forwarder_thread::{Forwarded, ForwarderThread};
use super::topology::{Ports, Topology};
use crate::clock::timespec;
use crate::forwarder::refuse_proxy;
use crate::host::congestion::CongestionControls;
use crate::host::core_network::refuse_names;
use crate::host::namespace::Namespace;
use crate::host::nat;
use crate::host::session::SubscriberChange;
use crate::host::tunnel::TunnelSetup;
use crate::observation::observer::{Keep, Run, SenderObserver, Shown};
use crate::run::programs::{ProgramReport, Session};
use crate::run::terminal::{Relay, Terminal};
use crate::sys::{Child, Container, Failed, RUNNING, Signals, spawn_contained};
use crate::traffic::{Running, Traffic};
use crate::{
    EmuError, FailedFlow, FlowSockets, Forwarder, Journal, Live, Options, Report, Settings,
};

/// Time from the start of the clock to time 0, in which flows and programs prepare.
const AHEAD: Duration = Duration::from_millis(20);

/// Largest fraction of the time that a flow's thread may wait for a processor. On a busy machine,
/// two processors and ten compilations of lower priority, it was at most 0.7 %.
const MOST_WAITED: f64 = 0.02;

/// Interval at which progress is reported.
pub(super) const PROGRESS: Duration = Duration::from_millis(100);

/// Addresses 10.77.1.1 to 10.77.1.254.
const MOST_UES: usize = 254;

/// The results of a run.
pub struct Ended {
    /// The command's exit code, or that of the first program that failed.
    pub code: i32,
    /// Reports of the programs that ran inside.
    pub programs: Vec<ProgramReport>,
    /// Whether Ctrl-C or a signal to this process asked the programs to end.
    pub interrupted: bool,
    /// Summary of links, radio and flows.
    pub summary: RunSummary,
    /// The result tables.
    pub tables: Tables,
    /// The forwarder's counters.
    pub report: Report,
    /// What is needed to interpret the result.
    pub environment: Environment,
    /// Every packet, if requested.
    pub journal: Option<Journal>,
    /// The part of the scenario that was modelled; the rest was the kernel's.
    pub model: Scenario,
    /// Flows of the scenario that failed.
    pub failed: Vec<FailedFlow>,
    /// Why the result is partial, a sentence each; empty if it is complete.
    pub partial: Vec<String>,
    /// The kernel's report on the scenario's TCP flows.
    pub sockets: Vec<FlowSockets>,
}

impl Ended {
    /// Records a change of a subscriber, at a time of the machine's monotonic clock.
    pub fn record(&mut self, clock_ns: i64, change: SubscriberChange, imsi: &str) {
        let time_ns = clock_ns - self.report.clock_origin_ns as i64;
        let imsi = Some(self.tables.names.add(imsi));
        self.tables.event(EventRow { link: imsi, ..EventRow::new(time_ns, change.kind()) });
    }

    /// Why the run is invalid; `None` if it is valid.
    pub fn invalid(&self, bounds: &EmulationConfig) -> Option<String> {
        let ends = self.environment.ends.iter().map(|end| (end.queue_dropped, &end.name));
        let nats = self.environment.nats.iter().map(|nat| (nat.queue_dropped, &nat.name));
        let lost = ends.chain(nats).find(|&(packets, _)| packets > 0);
        let lost = lost.map(|(packets, name)| {
            format!("{packets} packets of `{name}` were dropped before they could be read")
        });
        lost.or_else(|| self.report.too_late(bounds.lateness_bound))
            .or_else(|| self.report.too_slow_a_host(bounds.host_bound))
            .or_else(|| starved(&self.sockets, self.report.elapsed_s))
    }
}

/// The outcome of the programs of a run; the default if there were none.
#[derive(Default)]
struct Programs {
    code: i32,
    reports: Vec<ProgramReport>,
    interrupted: bool,
}

/// Namespaces that are set up, and the forwarder between them.
pub struct Emulation {
    topology: Topology,
    tunnel: Option<TunnelSetup>,
    /// The part of the scenario that is modelled.
    model: Scenario,
    forwarder: ForwarderThread,
    observer: SenderObserver,
    congestion: CongestionControls,
    /// The scenario's flows, if they run.
    traffic: Option<Traffic>,
    settings: Settings,
    /// The programs of the scenario.
    programs: Vec<ProgramConfig>,
    options: Options,
    io: PacketIo,
}

impl Emulation {
    /// Sets up the scenario's ends and starts forwarding. Time 0 is now or, if UEs have attached,
    /// the time at which the last UE has a session.
    ///
    /// # Errors
    ///
    /// If something cannot be emulated, or is not permitted.
    pub fn new(scenario: &Scenario, seed: u64, mut options: Options) -> Result<Self, EmuError> {
        refuse_proxy(scenario)?;
        let mut model = scenario.clone();
        let nats = nat::take_out(&mut model)?;
        let ues = ues(scenario);
        refuse_names(scenario, &ues, nats.len())?;
        if ues.len() > MOST_UES {
            return Err(EmuError::Ues { ues: ues.len(), most: MOST_UES });
        }
        let sessions = std::mem::take(&mut options.sessions);
        sessions.iter().for_each(|session| session.cap(&mut model));
        let slow_start = scenario.emulation.slow_start;
        let congestion = CongestionControls::load(slow_start, &options.congestion)?;
        let (topology, ports, tunnel) =
            Topology::new(scenario, nats, ues, congestion.names(), &sessions)?;
        let io = ports.server.io();
        let (capture, live) = (options.capture.take(), options.live.take());
        let observer = observe(scenario, &topology, live.as_ref())?;
        let traffic =
            options.flows.then(|| Traffic::open(scenario, seed, &topology.ends)).transpose()?;
        let scheduled = traffic.as_ref().map(Traffic::scheduled);
        // The time that UEs need until they have a session passes before time 0.
        let established = sessions.iter().map(|session| session.established).max();
        let ahead = AHEAD + established.unwrap_or(Duration::ZERO);
        let Options { journal, bare, .. } = options;
        let settings = Settings { journal, bare, ..Settings::of(&scenario.emulation) };
        let forwarder =
            ForwarderThread::start(&model, settings, ahead, move |scenario, settings| {
                let Ports { server, ues, tunnel } = ports;
                let names: Vec<_> = ues.iter().map(|end| (end.name.clone(), end.ue)).collect();
                let mut forwarder = Forwarder::new(server, ues, scenario, seed, settings)?;
                forwarder.schedule(scheduled.unwrap_or_default());
                forwarder.note_sessions(sessions.iter().filter_map(|session| {
                    let (name, _) = names.iter().find(|(_, ue)| *ue == session.ue)?;
                    Some((name.as_str(), session))
                }));
                let (tunnel, interface) = tunnel.unzip();
                capture.map_or(Ok(()), |file| forwarder.capture(&file, interface))?;
                tunnel.into_iter().for_each(|tunnel| forwarder.set_tunnel(tunnel));
                live.into_iter().for_each(|live| forwarder.show(live));
                Ok(forwarder)
            })?;
        let programs = scenario.programs.clone();
        Ok(Self {
            topology,
            tunnel,
            model,
            forwarder,
            observer,
            congestion,
            traffic,
            settings,
            programs,
            options,
            io,
        })
    }

    /// Runs until the command ends. Without a command, the run ends with the scenario's programs;
    /// without programs, it ends when the flows are done or the scenario's time is over. `progress`
    /// is called only in a run without command and programs: it receives the time at intervals, and
    /// stops the run by returning false.
    ///
    /// # Errors
    ///
    /// If programs cannot be started, the forwarder fails, or the run is stopped.
    pub fn run(mut self, progress: &mut dyn FnMut(Instant) -> bool) -> Result<Ended, EmuError> {
        let clock = self.forwarder.clock;
        let traffic = self.traffic.take();
        let mut running = traffic.map(|traffic| traffic.start(clock)).transpose()?;
        let has_programs = !(self.options.command.is_empty() && self.programs.is_empty());
        let ran = match &running {
            Some(running) if !has_programs => {
                self.wait_for(running, progress).map(|()| Programs::default())
            }
            _ => self.run_programs(),
        };
        self.conclude(ran, running.as_mut())
    }

    fn run_programs(&self) -> Result<Programs, EmuError> {
        let (topology, options) = (&self.topology, &self.options);
        let command_at = topology.command_at(options.place.as_deref())?;
        let owner = options.identity.user.as_ref().map(|(user, group, _)| (*user, *group));
        let terminal = Terminal::of_programs(!options.command.is_empty(), owner)?;
        let at = |place| topology.program_at(place);
        let mut session = Session::new(options, &self.programs, terminal.as_ref(), command_at, at)?;
        let (names, hosts) = (topology.files()?, topology.hosts());
        let origin_ns = self.forwarder.clock.origin_nanos();
        let mut outputs = std::mem::take(&mut session.outputs);
        let container = Container {
            programs: &session.programs,
            credentials: &session.credentials,
            command: session.command,
            origin_ns,
            names: &names,
            hosts: hosts.as_bytes(),
            address_order: topology.address_order().map(str::as_bytes),
        };
        let start = |step: &str, source| EmuError::Start { step: step.to_owned(), source };
        let mut signals = Signals::catch().map_err(|error| start("a pipe", error))?;
        let mut child = spawn_contained(&container)
            .map_err(|error| start("clone (root, or CAP_SYS_ADMIN)", error))?;
        let mut reading = outputs.start()?;
        // When this is dropped, the terminal has received everything written, and is restored.
        let relayed = terminal.map(Terminal::relay).transpose()?;
        let signalled = self.wait(&child, &mut signals, relayed.as_ref())?;
        let interrupted = signalled || relayed.as_ref().is_some_and(Relay::interrupted);
        let (code, told) = child.wait().map_err(|Failed { step, program, error }| match step {
            RUNNING => start(&format!("running {}", session.command_of(program)), error),
            step => start(step, error),
        })?;
        let (code, reports) = session.end(code, &told, origin_ns, reading.finish());
        Ok(Programs { code, reports, interrupted })
    }

    /// Waits until the first process has ended. Signals are forwarded. Returns whether one of them
    /// asked the programs to end.
    fn wait(
        &self,
        child: &Child,
        signals: &mut Signals,
        terminal: Option<&Relay>,
    ) -> Result<bool, EmuError> {
        let mut ends = false;
        loop {
            let [ended, forwarder, signal] = {
                let mut wanted = [
                    PollFd::new(&child.pidfd, PollFlags::IN),
                    PollFd::new(&self.forwarder.running, PollFlags::IN),
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
                return Ok(ends);
            }
            if forwarder {
                return Err(EmuError::Forwarder);
            }
            if signal && let Some(signal) = signals.next() {
                match (signal, terminal) {
                    (Signals::RESIZED | Signals::CONTINUED, None) => {}
                    (Signals::RESIZED, Some(terminal)) => terminal.resize(),
                    (Signals::CONTINUED, Some(terminal)) => terminal.resume(),
                    _ => {
                        ends |= Signals::ENDING.contains(&signal);
                        child.signal(signal);
                    }
                }
            }
        }
    }

    /// Waits until all flows are done, or the time is over.
    fn wait_for(
        &self,
        running: &Running,
        progress: &mut dyn FnMut(Instant) -> bool,
    ) -> Result<(), EmuError> {
        let end = Instant::ZERO + self.model.run.duration;
        loop {
            let now = self.forwarder.clock.now();
            if now >= end || running.is_done() {
                return Ok(());
            }
            if !progress(now) {
                return Err(EmuError::Stopped);
            }
            let pause = timespec((end.saturating_since(now)).min(PROGRESS));
            let mut forwarder = [PollFd::new(&self.forwarder.running, PollFlags::IN)];
            match poll(&mut forwarder, Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Err(EmuError::Forwarder),
                Err(error) => return Err(EmuError::Wait(error.into())),
            }
        }
    }

    /// Collects the results from the forwarder, the observer, the flows and the machine.
    fn conclude(
        mut self,
        ran: Result<Programs, EmuError>,
        mut running: Option<&mut Running>,
    ) -> Result<Ended, EmuError> {
        if let Some(running) = &mut running {
            running.brace();
        }
        let forwarded = self.forwarder.finish();
        // Before the observer's last observation: no counter is ahead of what it saw.
        let environments = EndEnvironment::of_all(&self.topology);
        // After the forwarder: cutting off flows is not part of the run.
        let failed = running.as_mut().map_or_else(|| Ok(Vec::new()), |running| running.finish());
        let sockets = running.map_or_else(Vec::new, |running| running.sockets());
        // The forwarder's own failure explains the others.
        let (forwarded, ran, failed) = (forwarded?, ran?, failed?);
        let Programs { code, reports: programs, interrupted } = ran;
        let Forwarded { mut summary, mut tables, mut metered, report, partial, journal, machine } =
            forwarded;
        let ends = &self.topology.ends;
        let names: Vec<String> = ends.iter().map(|(end, _)| end.name.clone()).collect();
        let mtu: Vec<u32> = ends.iter().map(|(_, profile)| profile.mtu).collect();
        let (observed, unobserved) = self.observer.finish();
        let observer = observed.complete(
            &Run {
                origin_ns: report.clock_origin_ns,
                ends: &names,
                mtu: &mtu,
                addresses: &self.topology.addresses(),
                names: &metered.names,
                flows: &metered.flows,
            },
            &mut metered.samples,
            &mut summary,
            &mut tables,
        );
        metered.record(&summary, &mut tables);
        let machine = (machine, self.io.name());
        let environment = Environment::gather(
            &self.topology,
            environments?,
            &self.settings,
            machine,
            observer,
            &self.congestion,
        )?;
        let environment = Environment { tunnel: self.tunnel, ..environment };
        let model = self.model;
        let partial = partial.into_iter().chain(unobserved).collect();
        Ok(Ended {
            code,
            programs,
            interrupted,
            summary,
            tables,
            report,
            environment,
            journal,
            model,
            failed,
            partial,
            sockets,
        })
    }
}

/// Why a run is invalid if a flow's thread waited for a processor; `None` if it is valid.
fn starved(sockets: &[FlowSockets], seconds: f64) -> Option<String> {
    sockets.iter().find_map(|flow| {
        let threads = [("writes", flow.sender_waited_ms), ("reads", flow.receiver_waited_ms)];
        let (does, waited) = threads
            .into_iter()
            .filter_map(|(does, waited)| Some((does, waited? / 1e3)))
            .find(|&(_, waited)| waited > MOST_WAITED * seconds)?;
        Some(format!(
            "the thread that {does} for {} waited for a processor for {waited:.2} of {seconds:.1} s",
            flow.id
        ))
    })
}

/// Starts to observe the senders at all ends.
fn observe(
    scenario: &Scenario,
    topology: &Topology,
    live: Option<&Live>,
) -> Result<SenderObserver, EmuError> {
    let EmulationConfig { observer, observer_poll, .. } = scenario.emulation;
    let namespaces: Vec<&Namespace> = topology.ends.iter().map(|(end, _)| end).collect();
    let keep = Keep::for_samples(scenario.run.sample_interval, scenario.run.ack_table);
    let shown = live.map(|live| Shown { windows: live.windows(), addresses: topology.addresses() });
    SenderObserver::start(observer, observer_poll, keep, shown, &namespaces)
}

/// UEs: position in the scenario, and name. Without a radio there is one.
pub(super) fn ues(scenario: &Scenario) -> Vec<(usize, String)> {
    match &scenario.radio {
        None => vec![(0, "ue".to_owned())],
        Some(radio) => radio.ues.iter().cloned().enumerate().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(sender_waited_ms: Option<f64>, receiver_waited_ms: Option<f64>) -> FlowSockets {
        let (sender, receiver) = (None, None);
        let id = "download".to_owned();
        FlowSockets { id, sender, receiver, sender_waited_ms, receiver_waited_ms }
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_spoils_the_run() {
        let said = |flow| starved(&[flow], 10.0);
        assert_eq!(said(flow(None, None)), None);
        assert_eq!(said(flow(Some(199.0), Some(199.0))), None);
        assert!(said(flow(Some(201.0), None)).unwrap().starts_with("the thread that writes"));
        assert!(said(flow(Some(1.0), Some(900.0))).unwrap().contains("waited for a processor"));
    }
}
