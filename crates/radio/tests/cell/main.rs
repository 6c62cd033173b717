//! The cell: closed forms of rates and delays, and its invariants.

#[cfg(debug_assertions)]
mod clear;
mod common;
mod delays;
mod errors;
mod evdo;
mod laws;
mod mobility;
mod rates;
mod sleep;
mod umts;

const fn can_be_sent<T: Send>() {}
/// A run may take place in any thread, and its cell with it.
const _: () = can_be_sent::<airpath_radio::ran::Ran>();
