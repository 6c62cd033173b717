//! A TCP connection as an observer sees it who stands anywhere between its ends.

mod acks;
mod connection;
mod holes;
mod retransmission;
mod rounds;
mod stream;
mod window;

pub(crate) use connection::Connection;
