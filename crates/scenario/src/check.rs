//! Checks across the tables of a document, one file per subject. Those of the radio are in
//! [`crate::radio`].

pub(crate) mod endpoint;
pub(crate) mod middleboxes;
pub(crate) mod proxy;
pub(crate) mod queues;
pub(crate) mod stalls;
pub(crate) mod time;
pub(crate) mod tunnels;
