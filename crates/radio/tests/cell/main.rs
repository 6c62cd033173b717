//! The cell: closed forms of rates and delays, and the laws.

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
/// A cell runs in whatever thread its run does.
const _: () = can_be_sent::<airpath_radio::ran::Ran>();
