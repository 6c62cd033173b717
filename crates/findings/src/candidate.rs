//! A possible cause, and how to remove it.

use airpath_scenario::{Parsed, Source, parse};

use crate::cause::Cause;

/// A possible cause that one run suggests.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The possible cause.
    pub cause: Cause,
    /// What it concerns: id of the flow, name of the stage or dotted key.
    pub subject: String,
    /// What makes it worth trying, as a sentence.
    pub evidence: String,
    /// Alternative settings that remove it, in order: the first that the scenario accepts and that
    /// changes it is used.
    pub removals: Vec<Vec<String>>,
}

/// Separates the names of subjects that are removed together.
const AND: &str = " and ";

impl Candidate {
    /// Both at once: their settings combined, except for those that keep the other one as it is.
    pub(crate) fn with(&self, own: &[String], other: &Self, others: &[String]) -> Self {
        let kept = |sets: &[String]| -> Vec<String> {
            let keeps = |one: &&String| one.ends_with("\"drop-tail\"");
            sets.iter().filter(|one| !keeps(one)).cloned().collect()
        };
        Self {
            cause: self.cause,
            subject: format!("{}{AND}{}", self.subject, other.subject),
            evidence: format!("{} {}", self.evidence, other.evidence),
            removals: vec![[kept(own), kept(others)].concat()],
        }
    }

    /// The subjects, one by one.
    pub(crate) fn subjects(&self) -> Vec<&str> {
        self.subject.split(AND).collect()
    }

    /// The candidate in words: `policer of down.1.policer`.
    pub(crate) fn told(&self) -> String {
        format!("{} ({})", self.cause, self.subject)
    }
}

/// Settings that a scenario accepts, and the scenario with them.
#[derive(Clone, Debug)]
pub struct Change {
    /// `KEY=VALUE`, as for `--set`.
    pub sets: Vec<String>,
    /// The scenario with them.
    pub parsed: Parsed,
}

/// Why none of the alternatives can be tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoChange {
    /// The scenario already has these settings.
    AlreadySo,
    /// The scenario refuses them.
    Refused(String),
}

/// The first of the alternatives that is accepted and changes something.
///
/// # Errors
///
/// [`NoChange`] if there is none.
pub fn change(
    source: &Source<'_>,
    given: &[String],
    base: &Parsed,
    alternatives: &[Vec<String>],
) -> Result<Change, NoChange> {
    let (mut refused, mut so) = (None, alternatives.is_empty());
    for sets in alternatives {
        let all: Vec<String> = given.iter().chain(sets).cloned().collect();
        match parse(source, &all) {
            Ok(parsed) if parsed.scenario != base.scenario => {
                return Ok(Change { sets: sets.clone(), parsed });
            }
            Ok(_) => so = true,
            Err(error) => refused = Some(error.to_string()),
        }
    }
    // If one alternative is already satisfied, another may not even have its keys.
    Err(refused.filter(|_| !so).map_or(NoChange::AlreadySo, NoChange::Refused))
}
