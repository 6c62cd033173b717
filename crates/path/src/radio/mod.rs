//! The radio link: channel, link adaptation, HARQ, schedulers.

pub mod adaptation;
pub mod channel;
mod decibel;
pub mod harq;
pub mod scheduler;
