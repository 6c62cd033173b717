//! Programs inside the host's kernel: some watch its TCP senders, others are congestion controls.
//!
//! `kernel/` holds them in C. `build.rs` has clang compile them, and libbpf loads them for as long as
//! a value here lives: nothing is pinned, so nothing is left of a process that was killed.
//!
//! Without the feature `kernel` the crate is empty, and needs neither clang nor libelf. Tests and
//! fuzzers read records without it.

#[cfg(feature = "kernel")]
mod cubic;
#[cfg(feature = "kernel")]
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
#[cfg(feature = "kernel")]
mod object;
#[cfg(any(feature = "kernel", test, fuzzing))]
mod record;
#[cfg(feature = "kernel")]
mod watch;

#[cfg(feature = "kernel")]
pub use cubic::{Cubic, Generation};
#[cfg(feature = "kernel")]
pub use error::BpfError;
#[cfg(any(feature = "kernel", test, fuzzing))]
pub use record::{Found, Kind, Record};
#[cfg(feature = "kernel")]
pub use watch::Watch;
