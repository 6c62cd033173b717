//! Which causes a run suggests, the most significant first. Nothing is judged here: the weight of a
//! symptom is measured by removing its cause.

mod forwarding;
mod hosts;
mod path;
mod radio;
mod sizes;
mod traffic;

use crate::candidate::Candidate;
use crate::observed::Observed;

pub(crate) use forwarding::ring_size;
pub(crate) use path::managed;
pub(crate) use radio::{everywhere, managed as managed_buffer, rlc_of};

/// Everything that one run suggests. Faults come before behaviour.
pub(crate) fn candidates(observed: &Observed<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    path::add(observed, &mut all);
    forwarding::add(observed, &mut all);
    sizes::add(observed, &mut all);
    hosts::add(observed, &mut all);
    traffic::add(observed, &mut all);
    radio::add(observed, &mut all);
    all.sort_by_key(|candidate: &Candidate| candidate.cause.class());
    all
}
