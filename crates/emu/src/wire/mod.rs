//! Packets as bytes: headers, and the flow that a packet belongs to.

pub(crate) mod flows;
pub(crate) mod header;
pub(crate) mod packet;
