//! What is wrong with a scenario, and where.

use std::fmt;
use std::sync::Arc;

use crate::secret::redacted;

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
    /// A setting on top of the file.
    Set {
        /// `KEY=VALUE`, as given.
        text: Arc<str>,
        /// The option or argument that gave it, such as `--set`.
        option: Arc<str>,
    },
}

/// One problem: what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the problem is.
    pub origin: Origin,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is known.
    pub help: Option<String>,
    /// For an unknown key: the keys that exist.
    pub allowed: Option<String>,
}

/// Most problems that a message lists; a file of another kind has thousands.
const TOLD: usize = 20;

/// Most characters of an argument that a message shows.
const MOST_SHOWN: usize = 200;

/// Most characters of a message: what it quotes of the input may be as long as the input.
const MOST_TOLD: usize = 1000;

/// Most problems that are kept; the rest are only counted.
const KEPT: usize = 1000;

/// Why a scenario was refused: every problem found, in file order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(problems, *more))]
pub struct ScenarioError {
    /// The problems, at least one.
    pub problems: Vec<Problem>,
    /// How many more problems were found.
    pub more: usize,
}

/// Collects problems as they are found.
#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// Adds a problem without a hint.
    pub(crate) fn add(&mut self, origin: &Origin, message: impl Into<String>) {
        self.push(origin, message.into(), None, None);
    }

    /// Adds a problem with a hint at what would be right.
    pub(crate) fn add_with_help(
        &mut self,
        origin: &Origin,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(origin, message.into(), Some(help.into()), None);
    }

    /// Adds an unknown key, with a hint and the keys that exist, which are listed once.
    pub(crate) fn add_unknown(
        &mut self,
        origin: &Origin,
        message: String,
        help: Option<String>,
        allowed: String,
    ) {
        self.push(origin, message, help, Some(allowed));
    }

    /// Counts a problem if no more problems are kept, and returns whether it did.
    pub(crate) fn only_counts(&mut self) -> bool {
        let full = self.found.len() >= KEPT;
        self.more += usize::from(full);
        full
    }

    /// True if nothing has been found so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// `Ok` if there are no problems, otherwise all of them in file order.
    pub(crate) fn finish(mut self) -> Result<(), ScenarioError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by(|a, b| a.origin.cmp(&b.origin));
        Err(ScenarioError { problems: self.found, more: self.more })
    }

    fn push(
        &mut self,
        origin: &Origin,
        message: String,
        help: Option<String>,
        allowed: Option<String>,
    ) {
        if self.only_counts() {
            return;
        }
        // A message may quote the input.
        let shown = |text: String| shortened(redacted(&text));
        let (message, help) = (shown(message), help.map(shown));
        let problem = Problem { origin: origin.clone(), message, help, allowed };
        // Several tables may inherit the same problem from one: report it once.
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }
}

/// The text without its middle, if it is too long.
fn shortened(text: String) -> String {
    let Some(more) = text.chars().count().checked_sub(MOST_TOLD + 1) else { return text };
    let head: String = text.chars().take(MOST_TOLD * 3 / 4).collect();
    let tail: String = text.chars().skip(MOST_TOLD * 3 / 4 + 1 + more).collect();
    format!("{head}…{tail}")
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Set { text, option } => match text.char_indices().nth(MOST_SHOWN) {
                Some((end, _)) => write!(f, "{option} {}…", &text[..end]),
                None => write!(f, "{option} {text}"),
            },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, self.allowed.as_deref())
    }
}

impl Problem {
    fn write(&self, f: &mut impl fmt::Write, allowed: Option<&str>) -> fmt::Result {
        write!(f, "error: {}: {}", self.origin, self.message)?;
        match (&self.help, allowed) {
            (None, None) => Ok(()),
            (Some(help), None) => write!(f, "\n  {help}"),
            (None, Some(allowed)) => write!(f, "\n  allowed here: {allowed}"),
            (Some(help), Some(allowed)) => {
                let between = if help.ends_with('?') { "" } else { ";" };
                write!(f, "\n  {help}{between} allowed here: {allowed}")
            }
        }
    }
}

fn render(problems: &[Problem], more: usize) -> String {
    let mut text = String::new();
    let mut said: Vec<&str> = Vec::new();
    for problem in problems.iter().take(TOLD) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Repeating the same list a hundred times would hide what is wrong.
        let allowed = problem.allowed.as_deref().filter(|allowed| !said.contains(allowed));
        said.extend(allowed);
        problem.write(&mut text, allowed).expect("a string takes everything");
    }
    let left_out = problems.len().saturating_sub(TOLD) + more;
    if left_out > 0 {
        text.push_str(&format!("\nerror: {left_out} more not shown"));
    }
    text
}
