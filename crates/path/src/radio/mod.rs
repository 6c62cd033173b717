//! The radio link.

pub mod rlc;
