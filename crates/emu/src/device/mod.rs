//! Reading and writing packets: TUN devices and packet sockets, and the memory in which packets
//! wait in between.

pub(crate) mod port;
pub(crate) mod slab;
pub(crate) mod tun;
