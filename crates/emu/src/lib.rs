//! The real clock: packets of the host's kernel through a scenario's network.
//!
//! [`Emulation`] runs programs inside namespaces for the server and the UEs. A [`Forwarder`]
//! connects these: it reads IP packets from their devices, passes them through the same
//! [`Network`](airpath_network::Network) that the simulator uses, and writes each one when its
//! logical time has come. It measures how late that was. Only this crate reads a clock and makes
//! system calls.
//!
//! It may use: `base`, `path`, `quic`, `radio`, `tcp`, `record`, `metrics`, `capture`, `bpf`,
//! `scenario`, `network`. Start reading at [`Emulation`], then at [`Forwarder`].
//!
//! ```no_run
//! use airpath_base::Duration;
//! use airpath_emu::{Forwarder, Settings, Tun, UeEnd};
//! use airpath_scenario::{Source, parse};
//!
//! let text = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 20\n[[flow]]\nkind = \"ping\"\n";
//! let scenario = parse(&Source { name: "wire", text, directory: None }, &[])?.scenario;
//! let server = Tun::attach(&"server:air0".parse()?)?;
//! let tun = Tun::attach(&"ue:air0".parse()?)?;
//! let ue = UeEnd { name: "ue".to_owned(), tun: tun.into(), ue: 0, addresses: Vec::new() };
//! let mut forwarder = Forwarder::new(server, vec![ue], &scenario, 1, &Settings::default())?;
//! forwarder.run(&std::io::stdin(), Duration::from_secs(10))?;
//! println!("{:?}", forwarder.report().directions);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod device;
mod error;
mod forwarder;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod host;
mod observation;
mod offload;
mod run;
mod sys;
mod traffic;
mod wire;

pub use clock::Clock;
pub use device::port::{FramePort, PacketPort, Port};
pub use device::slab::SLOT_BYTES as LARGEST_PACKET;
pub use device::tun::{Device, Tun};
pub use error::EmuError;
pub use forwarder::{Forwarder, Settings, UeEnd};
pub use host::congestion::{Choice, ChosenCongestion, Source, check_congestion};
pub use host::cpu_latency::CpuLatency;
pub use host::nat::NatReport;
pub use host::session::{SubscriberChange, UeSession};
pub use host::tunnel::{TunnelReport, TunnelSession, TunnelSetup};
pub use observation::journal::{Entry, Journal, Parity};
pub use observation::lateness::Lateness;
pub use observation::live::{DirectionSnapshot, FlowSnapshot, Live, Snapshot};
pub use observation::observer::ObserverReport;
pub use run::emulation::{Emulation, Ended};
pub use run::environment::Environment;
pub use run::gateway::{Gateway, GatewayOptions};
pub use run::options::{Identity, Options};
pub use run::output::Written;
pub use run::programs::ProgramReport;
pub use run::report::{
    AckGaps, BesideReport, DirectionReport, GatewayReport, LinkReport, Report, Station,
};
pub use sys::{enter_user_namespace, real_time_priority};
pub use traffic::{FailedFlow, FlowSockets, SocketState};
