//! The radio link: what a UE and its base station do between the path's stages.

pub mod mac;
pub mod rrc;

/// Which way data travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the base station to the UE.
    Downlink,
    /// From the UE to the base station.
    Uplink,
}
