//! Writing and reading captures: packets with the place and the time at which they were seen.
//!
//! [`Writer`] writes a pcapng file with an interface for each place, [`ModelWriter`] one with the
//! packets of a simulation. [`Reader`] reads captures of other tools, and [`analyse`] reports what
//! the flows in them did. Nothing here opens a socket or reads a clock: packets and their times
//! come from the caller or from a file.
//!
//! It may use: `base`, `metrics`. Start reading at [`Writer`] and at [`analyse`].
//!
//! ```
//! use airpath_base::{Duration, Instant};
//! use airpath_capture::{Reader, Writer, analyse};
//!
//! let file = std::env::temp_dir().join(format!("airpath-example-{}.pcapng", std::process::id()));
//! let mut capture = Writer::create(&file, &["server".to_owned(), "ue".to_owned()])?;
//! capture.packet(1, Instant::ZERO + Duration::from_millis(20), &[0x45, 0, 0, 20]);
//! assert_eq!(capture.finish().written, 1);
//!
//! let report = analyse(Reader::open(&file)?)?;
//! assert_eq!((report.packets, report.interfaces[1].packets), (1, 1));
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod column;
mod datagram;
mod decode;
mod distribution;
mod error;
mod flows;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod gtpu;
mod model;
mod pcapng;
mod read;
mod report;
mod tcp;
mod view;

pub use column::{Column, Rough};
pub use datagram::{
    EchoReport, IcmpErrors, QuicReport, SequenceReport, SpinReport, UdpReport, UdpStreamReport,
};
pub use decode::{Skipped, Tunnel, link_type_name};
pub use error::CaptureError;
pub use flows::{Found, Packets, Segments, Wanted, analyse, analyse_while, collect, segments};
pub use model::{ModelFlow, ModelWriter};
pub use pcapng::{Captured, HEADER_BYTES, Writer};
pub use read::{Compression, FileFormat, Interface, Packet, Reader};
pub use report::{
    AckReport, CaptureReport, CutHeaders, Distribution, FlowReport, InFlight, InterfaceReport,
    LimitsReport, Missed, Others, Retransmissions, SendingReport, SlowStart, Stalls, StreamReport,
    SynOptions, TcpReport, Volume, WindowReport,
};
pub use view::{Detail, View, view};
