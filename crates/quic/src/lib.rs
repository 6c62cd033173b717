//! QUIC endpoints for both clocks: a stack that others wrote, behind one small trait.
//!
//! A stack that does no I/O and takes the time as an argument runs in virtual time without a change.
//! [`Endpoint`] is what a driver needs of one end of a connection; `quinn` (feature `quinn`)
//! implements it with quinn-proto and rustls. Its handshake, acknowledgements, loss detection,
//! congestion control, pacing and encryption are those that programs use; its random numbers come
//! from a named stream.
//!
//! It may use: `base`. Start reading at [`Endpoint`].

mod config;
mod endpoint;
#[cfg(feature = "quinn")]
mod quinn;

pub use config::{AckFrequency, Config, Congestion};
pub use endpoint::{Endpoint, Limited, Window};
#[cfg(feature = "quinn")]
pub use quinn::{connect, listen};

/// Bytes of IPv4 and UDP headers in front of a datagram.
pub const HEADER_BYTES: u32 = 28;
