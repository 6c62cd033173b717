//! What a cause concerns.

use std::fmt;

use airpath_base::Direction;
use airpath_scenario::StageId;

use crate::text::listed;

/// What a cause concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// A flow, by its id.
    Flow(String),
    /// A stage of the path, or one end of a proxy.
    Stage(StageId),
    /// What waits for the radio in one direction of a UE.
    RadioBuffer { ue: String, direction: Direction },
    /// A table of the radio, by its name: it is set for every UE.
    Radio(&'static str),
}

impl Subject {
    /// The stage that it is.
    pub(crate) const fn stage(&self) -> Option<StageId> {
        match self {
            Self::Stage(id) => Some(*id),
            _ => None,
        }
    }

    /// The direction of a queue's packets.
    pub(crate) const fn direction(&self) -> Option<Direction> {
        match self {
            Self::Stage(StageId { direction, .. }) | Self::RadioBuffer { direction, .. } => {
                Some(*direction)
            }
            Self::Flow(_) | Self::Radio(_) => None,
        }
    }
}

/// What a cause concerns, in words.
pub(crate) fn named(subjects: &[Subject]) -> String {
    listed(&subjects.iter().map(Subject::to_string).collect::<Vec<_>>())
}

/// The subject's name in tables and documents.
impl fmt::Display for Subject {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(id) => to.write_str(id),
            Self::Stage(id) => id.fmt(to),
            Self::RadioBuffer { ue, direction } => write!(to, "radio.{ue}.{direction}"),
            Self::Radio(table) => write!(to, "radio.{table}"),
        }
    }
}
