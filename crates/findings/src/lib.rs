//! What holds a run back, found by experiment.
//!
//! A cause is not read off a symptom: it is taken away, the scenario runs again with the same seeds,
//! and what changed is measured. Symptoms only choose what is tried first. Advice is tried in the
//! same way before it is given. Budgets are counted in runs, so that an explanation is a pure
//! function of scenario, settings and seed.
//!
//! This crate uses `scenario` (settings in, scenarios out) and `sim` (runs); it knows neither files
//! nor Python. Start reading at [`explain`].

pub mod batch;
mod bound;
pub mod candidate;
mod cause;
mod causes;
pub mod compare;
mod cures;
mod explain;
mod facts;
mod finding;
mod measure;

pub use cause::{Cause, Class};
pub use explain::{Budget, Question, explain};
pub use finding::{Explanation, Finding, Gain, Tried};
pub use measure::{Measure, Metric, measures};
