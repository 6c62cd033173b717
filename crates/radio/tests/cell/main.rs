//! The cell: closed forms of rates and delays, and its invariants.

mod carriers;
mod common;
mod delays;
mod errors;
mod evdo;
#[cfg(debug_assertions)]
mod fast_paths;
mod laws;
mod mobility;
mod openair;
mod rates;
mod sleep;
mod split;
mod umts;

const fn can_be_sent<T: Send>() {}
/// A run may take place in any thread, and its cell with it.
const _: () = can_be_sent::<airpath_radio::ran::Ran>();
