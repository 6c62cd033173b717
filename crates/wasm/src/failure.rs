//! Why there is no result.

use airpath_sim::Stopped;
use serde_json::{Value, json};

/// Why there is no result.
pub(crate) enum Failure {
    /// The scenario cannot be run: its problems.
    Problems(Value),
    /// The host asked for an end.
    Stopped,
    /// The request asks for what there is not.
    Error(String),
}

impl Failure {
    /// What the host is told.
    pub(crate) fn document(self) -> Value {
        match self {
            Self::Problems(problems) => problems,
            Self::Stopped => json!({ "stopped": true }),
            Self::Error(message) => json!({ "error": message }),
        }
    }
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}
