//! A TCP connection as seen by an observer anywhere between its ends.

mod acks;
mod bursts;
mod connection;
mod holes;
mod limits;
mod retransmission;
mod rounds;
mod stream;
mod window;

pub(crate) use connection::Connection;
pub(crate) use limits::Limit;
