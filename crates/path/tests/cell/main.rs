//! The cell: closed forms of rates and delays, and the laws.

mod common;
mod delays;
mod errors;
mod laws;
mod rates;
mod sleep;
