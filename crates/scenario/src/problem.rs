//! What is wrong with a scenario, and where.

use std::fmt;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A place in a file.
    File {
        /// The file's display name.
        name: Arc<str>,
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
    },
    /// A `--set` argument.
    Set {
        /// `KEY=VALUE`, as given.
        text: Arc<str>,
    },
}

/// One thing that is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub origin: Origin,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is known.
    pub help: Option<String>,
}

/// Why a scenario was refused: every problem that was found, in file order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(problems))]
pub struct ScenarioError {
    /// At least one.
    pub problems: Vec<Problem>,
}

/// Problems as they are found.
#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    /// A problem without a hint.
    pub(crate) fn add(&mut self, origin: &Origin, message: impl Into<String>) {
        self.push(origin, message.into(), None);
    }

    /// A problem and what would be right.
    pub(crate) fn add_with_help(
        &mut self,
        origin: &Origin,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(origin, message.into(), Some(help.into()));
    }

    /// Nothing was found so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What was found, in file order; `Ok` if nothing.
    pub(crate) fn finish(mut self) -> Result<(), ScenarioError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by(|a, b| a.origin.cmp(&b.origin));
        Err(ScenarioError { problems: self.found })
    }

    fn push(&mut self, origin: &Origin, message: String, help: Option<String>) {
        let problem = Problem { origin: origin.clone(), message, help };
        // What several tables take over from one is said once.
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Set { text } => write!(f, "--set {text}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}: {}", self.origin, self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}

fn render(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}
