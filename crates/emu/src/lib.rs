//! The real clock: packets of the host's kernel through a scenario's network.
//!
//! [`Emulation`] runs a program inside: namespaces for the server and the UEs, joined by a
//! [`Forwarder`] that reads IP packets from their TUN devices, lets them pass the same
//! [`Network`](airpath_network::Network) that the simulator uses, and writes each one when its
//! logical time has come. How much too late that was is measured.
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

mod awake;
mod clock;
mod congestion;
mod core_network;
mod emulation;
mod error;
mod flows;
mod forwarder;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod gtpu;
mod header;
mod journal;
mod live;
mod log;
mod meter;
mod namespace;
mod nat;
mod outbox;
mod output;
mod packet;
mod port;
mod profile;
mod programs;
mod report;
mod segments;
mod session;
mod share;
mod slab;
mod sys;
mod traffic;
mod tun;
mod tunnel;
mod watch;

pub use awake::Awake;
pub use clock::Clock;
pub use emulation::{Emulation, Ended, Facts, Observers};
pub use error::EmuError;
pub use forwarder::{Forwarder, Settings, UeEnd};
pub use journal::{Entry, Journal, Parity};
pub use live::{DirectionLook, FlowLook, Live, Snapshot};
pub use log::{Log, MAGIC, Point, RECORD_BYTES};
pub use nat::NatFacts;
pub use output::Written;
pub use port::{PacketPort, Port};
pub use programs::{Identity, Plan, ProgramReport};
pub use report::{AckGaps, DirectionReport, Lateness, LinkReport, LogReport, Report};
pub use session::UeSession;
pub use slab::SLOT_BYTES as LARGEST_PACKET;
pub use sys::{enter_user_namespace, real_time_priority};
pub use traffic::{FailedFlow, FlowSockets, SocketFacts};
pub use tun::{Device, Tun};
pub use tunnel::{TunnelFacts, TunnelReport, TunnelSession};
pub use watch::WatchFacts;
