//! The radio link: so far its channel.

pub mod channel;
mod decibel;
