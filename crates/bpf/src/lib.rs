//! Programs inside the host's kernel: some observe its TCP senders, others are congestion controls.
//!
//! Their C sources are in `kernel/`. `build.rs` compiles them with clang, and libbpf loads them for
//! as long as a value here lives. Nothing is pinned, so a killed process leaves nothing behind.
//!
//! Without the feature `kernel` the crate is empty and needs neither clang nor libelf. Tests and
//! fuzzers read records without it.
//!
//! It may use: nothing of airpath. Start reading at `kernel/` and at `record.rs`.

#[cfg(feature = "kernel")]
mod congestion;
#[cfg(feature = "kernel")]
mod cubic;
#[cfg(feature = "kernel")]
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
#[cfg(feature = "kernel")]
mod object;
#[cfg(feature = "kernel")]
mod observer;
#[cfg(any(feature = "kernel", test, fuzzing))]
mod record;

#[cfg(feature = "kernel")]
pub use congestion::{CongestionControl, CongestionError};
#[cfg(feature = "kernel")]
pub use cubic::{Cubic, Generation};
#[cfg(feature = "kernel")]
pub use error::{BpfError, Refusal};
#[cfg(feature = "kernel")]
pub use observer::SenderObserver;
#[cfg(any(feature = "kernel", test, fuzzing))]
pub use record::{Detector, Found, Kind, Record};
