//! Congestion control in shared libraries: the C interface, and what loads one.
//!
//! [`abi`] is the whole interface, in one file that a library copies. [`load`] checks a library
//! before and after it is loaded, and returns a factory for TCP endpoints. Loading a library runs its
//! code: whoever calls [`load`] has made sure that a person named the file.
//!
//! It may use: `base`, `tcp`. Start reading at [`load`].

pub mod abi;
mod control;
mod elf;
mod error;
mod library;

pub use control::Limits;
/// The text of [`abi`], for the template of a library.
pub const INTERFACE: &str = include_str!("abi.rs");

pub use error::LoadError;
pub use library::{Loaded, load};
