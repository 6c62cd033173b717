//! The UE's MAC procedures (TS 38.321, TS 36.321) as pure state machines.
//!
//! Each takes `now`, returns at once, and says when it next needs to be called. What repeats is
//! computed ([`Occasions`]), never counted: a UE with nothing pending costs nothing.
//!
//! The procedures do not know each other; their driver carries the messages: a
//! [`bsr::BufferStatus`] that [wants a scheduling request](bsr::BufferStatus::wants_request)
//! triggers an [`sr::SchedulingRequest`], whose [failure](sr::SrEvent::RandomAccess) starts a
//! [`rach::RandomAccess`], and all of them keep [`drx::Drx`] awake.
//!
//! Time 0 is the beginning of SFN 0.

pub mod alignment;
pub mod bsr;
pub mod drx;
pub mod rach;
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
