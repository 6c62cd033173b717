//! The real clock: packets of the host's kernel through the path model.
//!
//! A [`Forwarder`] stands between two TUN devices, usually in two network namespaces. It reads IP
//! packets, lets them pass the same [`Path`](airpath_path::Path)s that the simulator uses, and
//! writes each one when its logical time has come. How much too late that was is measured.
//!
//! Not here: namespaces, addresses and routes, which belong to whoever starts it.
//!
//! ```no_run
//! use airpath_base::Duration;
//! use airpath_emu::{Forwarder, Settings, Tun};
//! use airpath_path::{Delay, Path, Wire};
//!
//! let delay = || -> Box<dyn Path> { Box::new(Delay::new(Wire::new(), Duration::from_millis(10))) };
//! let ends = [Tun::attach("server:air0".parse()?)?, Tun::attach("ue:air0".parse()?)?];
//! let mut forwarder = Forwarder::new(ends, [delay(), delay()], &Settings::default());
//! forwarder.run(&std::io::stdin(), Duration::from_secs(10))?;
//! println!("{:?}", forwarder.report().directions);
//! # Ok::<(), airpath_emu::EmuError>(())
//! ```

mod clock;
mod error;
mod forwarder;
mod header;
mod log;
mod paths;
mod report;
mod slab;
mod sys;
mod tun;

pub use clock::Clock;
pub use error::EmuError;
pub use forwarder::{Forwarder, Settings};
pub use log::{Log, MAGIC, Point, RECORD_BYTES};
pub use paths::paths;
pub use report::{DirectionReport, Lateness, LinkReport, LogReport, Report};
pub use sys::real_time_priority;
pub use tun::{Device, Tun};
