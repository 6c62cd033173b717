//! Why a library cannot be loaded.

use std::io;

use crate::abi::{ABI, Library};

/// Largest library that is read, in bytes: a hundred times a Rust library with its symbols.
pub(crate) const MOST_BYTES: u64 = 1 << 29;

/// Longest name in tables.
pub(crate) const MOST_NAME: usize = 64;

/// Why a library cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Read(io::Error),
    /// The file is larger than 512 MiB.
    TooLarge,
    /// The file is not ELF.
    NotElf,
    /// The file ends before what its headers name.
    CutOff,
    /// The file is for another processor.
    OtherMachine,
    /// An executable or an object file.
    NotShared,
    /// The dynamic linker refused it, for this reason.
    Refused(String),
    /// The library does not export `airpath_congestion_control`.
    NoSymbol,
    /// The library was built for another version of the interface.
    OtherAbi(u32),
    /// The exported structure has another size.
    OtherSize(u32),
    /// The name is empty, too long, or not printable ASCII.
    BadName,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(error) => write!(to, "cannot be read: {error}"),
            Self::TooLarge => write!(to, "is larger than {} MiB", MOST_BYTES >> 20),
            Self::NotElf => to.write_str("is not an ELF shared object"),
            Self::CutOff => {
                to.write_str("is truncated: its headers refer to bytes beyond the end of the file")
            }
            Self::OtherMachine => to.write_str("is for another kind of processor"),
            Self::NotShared => to.write_str("is ELF, but not a shared object (crate-type cdylib)"),
            Self::Refused(why) => write!(to, "cannot be loaded: {why}"),
            Self::NoSymbol => {
                to.write_str("does not export airpath_congestion_control, which ")?;
                to.write_str("congestion_control!(TYPE) of airpath's template defines")
            }
            Self::OtherAbi(found) => {
                write!(
                    to,
                    "was built for version {found} of the interface, but this airpath has version {ABI}: "
                )?;
                to.write_str("rebuild it with the abi.rs that `airpath new congestion` writes")
            }
            Self::OtherSize(found) => {
                let expected = size_of::<Library>();
                write!(to, "exports {found} bytes instead of {expected}: its interface was changed")
            }
            Self::BadName => write!(to, "has no name of 1 to {MOST_NAME} printable characters"),
        }
    }
}

impl std::error::Error for LoadError {}
