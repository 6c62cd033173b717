//! The laboratory for programs that are not linked with it: a request in JSON goes in, a document in
//! JSON and tables as Arrow IPC come out.
//!
//! Built for `wasm32-unknown-unknown` it is the engine of the explorer, which uses it through the
//! functions of `exports.rs`. [`answer`] is the same on every platform, and `tests/parity.rs`
//! checks that both builds give the same bytes.
//!
//! It may use: `base`, `findings`, `scenario`, `sim`. Start reading at [`answer`].

mod answer;
#[cfg(target_family = "wasm")]
mod exports;
mod failure;
mod packets;
mod parsed;
mod request;
mod tables;

pub use answer::{Answer, answer};
pub use request::{Host, Progress};
