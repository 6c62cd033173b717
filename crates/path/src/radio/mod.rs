//! The radio link: channel, link adaptation, HARQ.

pub mod adaptation;
pub mod channel;
mod decibel;
pub mod harq;
