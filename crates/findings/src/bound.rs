//! What limits a run if nothing else does: stated last, never ranked.

use crate::cause::Cause;
use crate::causes::{mbps, percent};
use crate::finding::Finding;
use crate::observed::Observed;

/// Utilisation from which a link is a bound.
const BUSY: f64 = 0.85;

/// The busiest full link of each direction.
pub(crate) fn bounds(observed: &Observed<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for direction in ["down", "up"] {
        let busiest = observed
            .links(direction)
            .max_by(|one, other| one.utilisation.total_cmp(&other.utilisation))
            .filter(|link| link.utilisation >= BUSY);
        let Some(link) = busiest else { continue };
        let radio = link.id.starts_with("radio.");
        let cause = if radio { Cause::RadioCapacity } else { Cause::LinkCapacity };
        found.push(Finding {
            cause: cause.name(),
            subject: link.id.clone(),
            confidence: 1.0,
            evidence: format!(
                "{} was {} busy: {} of {}.",
                link.id,
                percent(link.utilisation),
                mbps(link.throughput_mbps),
                mbps(link.capacity_mbps)
            ),
            advice: None,
            set: None,
            gain: None,
            costs: Vec::new(),
            score: 0.0,
        });
    }
    found
}
