//! A TCP connection as seen by an observer anywhere between its ends.

mod acks;
mod bursts;
mod connection;
mod counters;
mod holes;
mod limits;
mod retransmission;
mod round_trips;
mod rounds;
mod stream;
mod window;

pub(crate) use connection::Connection;
pub(crate) use limits::Limit;
