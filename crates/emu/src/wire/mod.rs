//! Packets as bytes: headers, and the flow of a packet.

pub(crate) mod flows;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod packet;
