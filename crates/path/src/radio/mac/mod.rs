//! The UE's MAC procedures (TS 38.321, TS 36.321) as pure state machines.
//!
//! Each takes `now`, answers at once, and says when it next wants to be asked. What repeats is
//! computed ([`Occasions`]), never counted: a UE with nothing pending costs nothing.
//!
//! Time 0 is the beginning of SFN 0.

pub mod bsr;
pub mod drx;
pub mod grants;
pub mod sr;

mod occasions;

pub use occasions::{Occasions, SFN_PERIOD};

use airpath_base::Instant;

/// The earlier of two times, where `None` is never.
fn earliest(first: Option<Instant>, second: Option<Instant>) -> Option<Instant> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        (first, second) => first.or(second),
    }
}
