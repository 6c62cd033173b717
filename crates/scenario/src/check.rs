//! What the tables of a document need of each other, each in a file of its own. The radio's are in
//! [`crate::radio`].

pub(crate) mod endpoint;
pub(crate) mod middleboxes;
pub(crate) mod proxy;
pub(crate) mod queues;
pub(crate) mod stalls;
pub(crate) mod time;
pub(crate) mod tunnels;
