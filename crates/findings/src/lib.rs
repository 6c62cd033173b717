//! What limits a run, found by experiment.
//!
//! A symptom only decides what is tried first. The cause is removed, the scenario runs again with
//! the same seeds, and the change is measured. Advice is tried in the same way before it is given.
//! Budgets are counted in runs, so an explanation is a pure function of scenario, settings and
//! seed.
//!
//! This crate knows neither files nor Python.
//!
//! It may use: `base`, `path`, `quic`, `radio`, `tcp`, `record`, `scenario`, `sim`. Start reading at
//! [`explain`], then at `causes.rs`.

mod advise;
pub mod batch;
mod beside;
mod bound;
mod by_name;
mod candidate;
mod cause;
mod causes;
pub mod compare;
mod cures;
mod doubt;
mod evidence;
mod explain;
mod finding;
mod guide;
mod measure;
mod observed;
mod price;
mod subject;
mod text;
mod trial;
pub mod variants;
mod words;

pub use cause::{Cause, Class};
pub use explain::{Budget, Question, explain};
pub use finding::{Explanation, Finding, Gain, Tried};
pub use guide::causes_markdown;
pub use measure::{Incomplete, Measure, Metric, measures, with_costs};
