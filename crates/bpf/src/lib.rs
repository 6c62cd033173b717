//! Programs inside the host's kernel: some watch its TCP senders, others are congestion controls.
//!
//! `kernel/` holds them in C. `build.rs` has clang compile them, and libbpf loads them for as long as
//! a value here lives: nothing is pinned, so nothing is left of a process that was killed.
//!
//! Without the feature `kernel` the crate is empty, and needs neither clang nor libelf.
#![cfg(feature = "kernel")]

mod cubic;
mod error;
mod object;
mod record;
mod watch;

pub use cubic::{Cubic, Generation};
pub use error::BpfError;
pub use record::{Found, Kind, Record};
pub use watch::Watch;
