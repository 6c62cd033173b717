//! A possible cause, and how to remove it.

use airpath_scenario::{Edit, Parsed};

use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::subject::{Subject, named};

/// A possible cause that one run suggests.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Candidate {
    /// The possible cause.
    pub(crate) cause: Cause,
    /// What it concerns: one thing, or the queues that are managed together.
    pub(crate) subjects: Vec<Subject>,
    /// What makes it worth trying.
    pub(crate) evidence: Vec<Evidence>,
    /// Alternative edits that remove it, in order: the first that the scenario accepts and that
    /// changes it is used.
    pub(crate) removals: Vec<Vec<Edit>>,
}

impl Candidate {
    /// A candidate about one thing.
    pub(crate) fn new(
        cause: Cause,
        subject: Subject,
        evidence: Vec<Evidence>,
        removals: Vec<Vec<Edit>>,
    ) -> Self {
        Self { cause, subjects: vec![subject], evidence, removals }
    }

    /// Both at once: their edits combined, except for those that keep the other one as it is.
    pub(crate) fn with(&self, own: &[Edit], other: &Self, others: &[Edit]) -> Self {
        let changes = |edit: &&Edit| edit.setting.text() != Some(DROP_TAIL);
        Self {
            cause: self.cause,
            subjects: [&self.subjects[..], &other.subjects].concat(),
            evidence: [&self.evidence[..], &other.evidence].concat(),
            removals: vec![own.iter().chain(others).filter(changes).cloned().collect()],
        }
    }

    /// The candidate in words: `policer (down.1.policer)`.
    pub(crate) fn told(&self) -> String {
        format!("{} ({})", self.cause, named(&self.subjects))
    }

    /// The first subject, which stands for all.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subjects[0]
    }

    /// Whether both are the same cause of the same thing.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.cause == other.cause && self.subjects == other.subjects
    }
}

/// The name of no AQM in scenarios.
pub(crate) const DROP_TAIL: &str = "drop-tail";

/// Edits that a scenario accepts, and the scenario with them.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The edits.
    pub(crate) edits: Vec<Edit>,
    /// The scenario with them.
    pub(crate) parsed: Parsed,
}

/// Why none of the alternatives can be tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoChange {
    /// The scenario already has these settings.
    AlreadySo,
    /// The scenario refuses them.
    Refused(String),
}

/// The first of the alternatives that `question` accepts and that changes `base`.
///
/// # Errors
///
/// [`NoChange`] if there is none.
pub(crate) fn change(
    question: &Parsed,
    base: &Parsed,
    alternatives: &[Vec<Edit>],
) -> Result<Change, NoChange> {
    let (mut refused, mut so) = (None, alternatives.is_empty());
    for edits in alternatives {
        match question.document.with(edits) {
            Ok(parsed) if parsed.scenario != base.scenario => {
                return Ok(Change { edits: edits.clone(), parsed });
            }
            Ok(_) => so = true,
            Err(error) => refused = Some(error.to_string()),
        }
    }
    // If one alternative is already satisfied, another may not even have its keys.
    Err(refused.filter(|_| !so).map_or(NoChange::AlreadySo, NoChange::Refused))
}
