//! Reasons for a missing result.

use airpath_sim::Stopped;
use serde_json::{Value, json};

/// Why there is no result.
pub(crate) enum Failure {
    /// The scenario cannot be run, because of these problems.
    Problems(Value),
    /// The host stopped it.
    Stopped,
    /// The request is invalid.
    Error(String),
}

impl Failure {
    /// The document for the host.
    pub(crate) fn document(self) -> Value {
        match self {
            Self::Problems(problems) => problems,
            Self::Stopped => json!({ "stopped": true }),
            Self::Error(message) => json!({ "error": message }),
        }
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::ByCaller => Self::Stopped,
            Stopped::ByCongestionControl(why) => Self::Error(why),
        }
    }
}
