//! Where packets are read and written: TUN devices and packet sockets, and the memory in which they
//! wait between.

pub(crate) mod port;
pub(crate) mod slab;
pub(crate) mod tun;
