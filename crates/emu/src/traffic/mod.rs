//! The scenario's own flows over the kernel's TCP and UDP: sockets at both ends, and threads of this
//! process.
//!
//! A socket belongs to the network namespace in which it was made, so nothing is started inside.
//! The forwarder counts what passes, in [`ScheduledMeters`]; a sender reports what only the kernel
//! knows.

mod datagram;
mod meters;
mod options;
mod pace;
mod quic;
mod tcp;

use std::fs::File;
use std::io::{self, PipeWriter};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use airpath_base::{Direction, Instant};
use airpath_scenario::{FlowConfig, Scenario, Traffic as Kind};
use airpath_tcp::ReaderConfig;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, bind, ipproto, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::Serialize;

use crate::host::namespace::Namespace;
use crate::host::profile::KernelProfile;
use crate::wire::flows::Key;
use crate::wire::packet::{ICMP_V4, TCP, UDP};
use crate::{Clock, EmuError, real_time_priority};

pub(crate) use meters::ScheduledMeters;
pub use options::{FlowSockets, SocketState};
pub(crate) use quic::QuicSample;
pub(crate) use tcp::{SenderState, SenderWindow};

use pace::Pace;
use quic::QuicMeter;

/// Below the forwarder, above everything else: a thread that is preempted while it reads holds the
/// socket, and hence its acknowledgements.
const PRIORITY: i32 = 40;

/// Port of the first flow; the others follow. They are below those that the kernel assigns to
/// programs.
const SERVER_PORT: u16 = 10_000;
const UE_PORT: u16 = 20_000;
const MOST_FLOWS: usize = 10_000;

/// A flow of the scenario, and how its packets are identified.
#[derive(Clone, Debug)]
pub(crate) struct Scheduled {
    pub(crate) config: FlowConfig,
    /// Name of its UE; `None` without a radio.
    pub(crate) ue: Option<String>,
    pub(crate) key: Key,
    /// The state of its sending socket.
    pub(crate) sender: Arc<Mutex<SenderState>>,
    /// What the ends of a QUIC flow report.
    pub(crate) quic: Option<Arc<Mutex<QuicMeter>>>,
}

impl Scheduled {
    /// Whether it is a TCP flow whose reader takes everything at once.
    pub(crate) fn reads_at_once(&self) -> bool {
        match &self.config.traffic {
            Kind::Bulk { tcp, .. } | Kind::File { tcp, .. } => {
                matches!(tcp.receiver.reader, ReaderConfig::AtOnce)
            }
            Kind::Ping { .. } | Kind::Udp { .. } | Kind::Quic { .. } => false,
        }
    }
}

/// Open sockets, and what to do with them.
pub(crate) struct Traffic {
    scheduled: Vec<Scheduled>,
    jobs: Vec<Job>,
}

/// Flows in progress.
pub(crate) struct Running {
    /// Dropping it says that the run is over.
    over: Option<PipeWriter>,
    scheduled: Vec<Scheduled>,
    /// See [`Pace`].
    almost_over: Arc<AtomicBool>,
    /// Set if the kernel does not do what a flow requires.
    differs: Arc<AtomicBool>,
    threads: Vec<(Job, JoinHandle<Result<(), Failure>>)>,
    /// Flows that had failed before the network ended: others fail from now on for that reason.
    ending: Option<Vec<bool>>,
}

/// A flow that could not do what it was configured to do.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedFlow {
    /// Name of the flow.
    pub id: String,
    /// Why it failed.
    pub because: String,
}

/// The task of one thread.
struct Job {
    flow: String,
    /// Whether the run waits for it.
    decides: bool,
    /// The namespace in which it runs.
    place: File,
    work: Option<Work>,
}

/// What was opened, or the step that failed with the kernel's error.
type Opened<T> = Result<T, (&'static str, io::Error)>;

type Work = Box<dyn FnOnce(&Pace) -> Result<(), Failure> + Send>;

/// Why a flow failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// A step, with the kernel's error.
    #[error("{0}: {1}")]
    Step(&'static str, #[source] io::Error),
    /// A connection does not have what was requested.
    #[error("{option}: {asked} was requested, but the kernel has {got}")]
    Differs { option: &'static str, asked: String, got: String },
    /// The machine is too slow.
    #[error("rate not reached: {got_mbps:.3} of {asked_mbps} Mb/s were sent")]
    Rate { asked_mbps: f64, got_mbps: f64 },
}

/// One end of a flow: its namespace, and its address.
#[derive(Clone, Copy)]
struct End<'a> {
    namespace: &'a Namespace,
    profile: &'a KernelProfile,
    address: SocketAddrV4,
}

impl Traffic {
    /// Opens the sockets of all flows of a run with this seed; `ends` begins with the server.
    ///
    /// # Errors
    ///
    /// If the kernel cannot send something, or does not permit it.
    pub(crate) fn open(
        scenario: &Scenario,
        seed: u64,
        ends: &[(Namespace, KernelProfile)],
    ) -> Result<Self, EmuError> {
        let flows = scenario.flows.len();
        if flows > MOST_FLOWS {
            return Err(EmuError::Flows { flows, most: MOST_FLOWS });
        }
        let mut traffic = Self { scheduled: Vec::new(), jobs: Vec::new() };
        for (index, config) in (0..).zip(&scenario.flows) {
            let ue = scenario.radio.as_ref().map(|radio| radio.ues[config.ue].clone());
            let place = ue.as_ref().map_or(1, |ue| {
                let found = ends.iter().position(|(end, _)| end.name == *ue);
                found.expect("every UE that has a flow has an end")
            });
            traffic.add(config, seed, ue, index, place, ends)?;
        }
        Ok(traffic)
    }

    /// The flows, for the forwarder.
    pub(crate) fn scheduled(&self) -> Vec<Scheduled> {
        self.scheduled.clone()
    }

    /// Starts the threads. Times are those of `clock`.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub(crate) fn start(self, clock: Clock) -> Result<Running, EmuError> {
        let (over, stop) = io::pipe().map_err(EmuError::Wait)?;
        let ending = Arc::new(AtomicBool::new(false));
        let pace = Pace { clock, over: Arc::new(over), ending: Arc::clone(&ending) };
        let differs = Arc::new(AtomicBool::new(false));
        let (scheduled, threads) = (self.scheduled, Vec::new());
        let mut running = Running {
            over: Some(stop),
            scheduled,
            almost_over: ending,
            differs: Arc::clone(&differs),
            threads,
            ending: None,
        };
        for mut job in self.jobs {
            let work = job.work.take().expect("a job is begun once");
            let place = job.place.try_clone().map_err(EmuError::Wait)?;
            let (pace, differs) = (pace.clone(), Arc::clone(&differs));
            let inside = move || {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(place.as_fd(), network)
                    .map_err(|error| Failure::Step("entering a network namespace", error.into()))?;
                // If it is not permitted, lateness shows the effect.
                let _ = real_time_priority(PRIORITY);
                let done = work(&pace);
                if let Err(Failure::Differs { .. }) = done {
                    differs.store(true, Ordering::Relaxed);
                }
                done
            };
            let thread = thread::Builder::new().name("airpath-flow".to_owned()).spawn(inside);
            running.threads.push((job, thread.map_err(EmuError::Wait)?));
        }
        Ok(running)
    }

    fn add(
        &mut self,
        config: &FlowConfig,
        seed: u64,
        ue: Option<String>,
        index: u16,
        place: usize,
        ends: &[(Namespace, KernelProfile)],
    ) -> Result<(), EmuError> {
        let ports = (SERVER_PORT + index, UE_PORT + index);
        let end = |place: usize, port| {
            let (namespace, profile) = &ends[place];
            let address = SocketAddrV4::new(namespace.role.v4(), port);
            End { namespace, profile, address }
        };
        let (server, phone) = (end(0, ports.0), end(place, ports.1));
        let [sender, receiver] = match config.direction {
            Direction::Downlink => [server, phone],
            Direction::Uplink => [phone, server],
        };
        let state = Arc::new(Mutex::new(SenderState::default()));
        let mut quic = None;
        let (protocol, jobs) = match &config.traffic {
            Kind::Bulk { tcp, .. } | Kind::File { tcp, .. } => {
                sender.profile.names.of(&config.id, &tcp.sender)?;
                (TCP, tcp::open(config, tcp, sender, receiver, &state))
            }
            Kind::Ping { packet_bytes, .. } => {
                fits(config, *packet_bytes, sender)?;
                (ICMP_V4, datagram::open_ping(config, index, sender, receiver))
            }
            Kind::Udp { packet_bytes, .. } => {
                fits(config, *packet_bytes, sender)?;
                (UDP, datagram::open_udp(config, sender, receiver))
            }
            Kind::Quic { quic: settings, size, duration } => {
                fits(config, u32::from(settings.initial_mtu) + airpath_quic::HEADER_BYTES, sender)?;
                let transfer = quic::Transfer { size: *size, duration: *duration };
                let meter = quic.insert(QuicMeter::new(config, transfer));
                (UDP, quic::open(config, settings, transfer, seed, [server, phone], meter))
            }
        };
        let flow = config.id.clone();
        self.jobs.extend(jobs.map_err(|(step, source)| EmuError::Socket { flow, step, source })?);
        let ports =
            if protocol == ICMP_V4 { (identifier(index), identifier(index)) } else { ports };
        let key = Key::planned(place, protocol, ports.1, ports.0);
        let config = config.clone();
        self.scheduled.push(Scheduled { config, ue, key, sender: state, quic });
        Ok(())
    }
}

impl Running {
    /// Whether every flow that ends by itself has ended, or one differs from what was requested.
    pub(crate) fn is_done(&self) -> bool {
        self.differs.load(Ordering::Relaxed)
            || self.threads.iter().all(|(job, thread)| !job.decides || thread.is_finished())
    }

    /// The network is about to end.
    pub(crate) fn brace(&mut self) {
        self.almost_over.store(true, Ordering::Relaxed);
        self.ending = Some(self.threads.iter().map(|(_, thread)| !thread.is_finished()).collect());
    }

    /// Ends all flows; returns those that failed while there was a network.
    ///
    /// # Errors
    ///
    /// If a connection differs from what was requested.
    pub(crate) fn finish(&mut self) -> Result<Vec<FailedFlow>, EmuError> {
        self.almost_over.store(true, Ordering::Relaxed);
        drop(self.over.take());
        let (mut failed, mut differs) = (Vec::new(), None);
        let ending = self.ending.take().unwrap_or_default();
        for (index, (job, thread)) in self.threads.drain(..).enumerate() {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let Err(failure) = done else { continue };
            let with_network = ending.get(index).copied().unwrap_or(false);
            let flow = job.flow;
            match failure {
                Failure::Step(..) if with_network => {}
                Failure::Differs { .. } => {
                    differs =
                        differs.or(Some(EmuError::Differs { flow, said: failure.to_string() }));
                }
                Failure::Step(..) | Failure::Rate { .. } => {
                    failed.push(FailedFlow { id: flow, because: failure.to_string() });
                }
            }
        }
        differs.map_or(Ok(failed), Err)
    }

    /// The kernel's state of the TCP flows' connections.
    pub(crate) fn sockets(&self) -> Vec<FlowSockets> {
        let is_tcp = |flow: &&Scheduled| {
            matches!(flow.config.traffic, Kind::Bulk { .. } | Kind::File { .. })
        };
        let tcp = self.scheduled.iter().filter(is_tcp);
        tcp.map(|flow| {
            let state = flow.sender.lock().unwrap_or_else(PoisonError::into_inner);
            let [sender, receiver] = state.sockets.clone();
            let waited = |of: usize| state.waited[of].map(|time| time.as_secs_f64() * 1e3);
            FlowSockets {
                id: flow.config.id.clone(),
                sender,
                receiver,
                sender_waited_ms: waited(0),
                receiver_waited_ms: waited(1),
            }
        })
        .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to receive the error.
        let _ = self.finish();
    }
}

impl Failure {
    fn differs(option: &'static str, asked: impl ToString, got: impl ToString) -> Self {
        Self::Differs { option, asked: asked.to_string(), got: got.to_string() }
    }
}

impl Job {
    fn new(
        flow: &FlowConfig,
        end: End<'_>,
        decides: bool,
        work: impl FnOnce(&Pace) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Self, (&'static str, io::Error)> {
        let place = end.namespace.file.try_clone().map_err(|error| ("a descriptor", error))?;
        Ok(Self { flow: flow.id.clone(), decides, place, work: Some(Box::new(work)) })
    }
}

impl End<'_> {
    /// Opens a socket at an end, bound to its address.
    fn socket(
        self,
        kind: SocketType,
        protocol: Option<Protocol>,
    ) -> Result<OwnedFd, (&'static str, io::Error)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = || {
            let socket = socket_with(AddressFamily::INET, kind, flags, protocol)?;
            bind(&socket, &self.address)?;
            rustix::io::Result::Ok(socket)
        };
        let opened = self.namespace.within(open);
        let opened = opened.map_err(|error| ("a namespace", io::Error::other(error)))?;
        opened.map_err(|error| ("a socket", error.into()))
    }

    fn tcp_socket(self) -> Result<OwnedFd, (&'static str, io::Error)> {
        self.socket(SocketType::STREAM, Some(ipproto::TCP))
    }
}

/// When a flow starts on the clock of the run.
fn start_of(flow: &FlowConfig) -> Instant {
    Instant::ZERO + flow.start
}

/// Identifier of the echo requests of a flow.
const fn identifier(index: u16) -> u16 {
    SERVER_PORT + index
}

/// Refuses packets that would be fragmented: the model has no fragments of what endpoints send.
fn fits(flow: &FlowConfig, bytes: u32, sender: End<'_>) -> Result<(), EmuError> {
    let mtu = sender.profile.mtu;
    if bytes <= mtu {
        return Ok(());
    }
    Err(EmuError::Packet { flow: flow.id.clone(), bytes, mtu })
}
