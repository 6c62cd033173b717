//! !~ Captures: packets with the place and the time at which they were seen, written and read. ==>
//! Writing and reading captures: packets with the place and the time at which they were seen.
//! [`Writer`] writes one pcapng file with an interface for each place, [`ModelWriter`] one of what
//! a simulation sends. ==> [`Writer`] writes a pcapng file with an interface for each place,
//! [`ModelWriter`] one with the packets of a simulation.
//! [`Reader`] reads what other tools wrote, and [`analyse`] says what its flows did. ==> [`Reader`]
//! reads captures of other tools, and [`analyse`] reports what the flows in them did.
//! the caller has the packets and says when they passed, or a file does. ==> packets and their
//! times come from the caller or from a file.

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
