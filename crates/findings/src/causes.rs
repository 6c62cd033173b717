//! Which causes a run gives reason to try, most telling first. Nothing is judged here: what a
//! symptom is worth is measured by taking its cause away.

mod hosts;
mod path;
mod radio;
mod text;
mod traffic;

use crate::candidate::Candidate;
use crate::facts::Facts;

pub(crate) use radio::everywhere;
pub(crate) use text::{bytes, mbps, ms, percent};

/// Everything that one run gives reason to try. Faults come before behaviour.
pub(crate) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut all = Vec::new();
    path::add(facts, &mut all);
    hosts::add(facts, &mut all);
    traffic::add(facts, &mut all);
    radio::add(facts, &mut all);
    all.sort_by_key(|candidate: &Candidate| candidate.cause.class());
    all
}

/// `KEY=VALUE`.
pub(crate) fn set(key: impl std::fmt::Display, value: impl std::fmt::Display) -> String {
    format!("{key}={value}")
}
