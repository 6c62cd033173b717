//! Packets as bytes: headers, GTP-U, and the flow that a packet belongs to.

pub(crate) mod flows;
pub(crate) mod gtpu;
pub(crate) mod header;
pub(crate) mod packet;
