//! What limits a run if nothing else does: stated last, never ranked.

use airpath_base::Direction;

use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::observed::Observed;
use crate::subject::Subject;
use crate::text::{Mbps, Percent};

/// Utilisation from which a link is a bound.
const BUSY: f64 = 0.85;

/// The busiest full link of each direction.
pub(crate) fn bounds(observed: &Observed<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for direction in Direction::BOTH {
        let busiest = observed
            .queues_of(direction)
            .max_by(|(_, one), (_, other)| one.utilisation.total_cmp(&other.utilisation))
            .filter(|(_, link)| link.utilisation >= BUSY);
        let Some((queue, link)) = busiest else { continue };
        let cause = match queue {
            Subject::RadioBuffer { .. } => Cause::RadioCapacity,
            _ => Cause::LinkCapacity,
        };
        let evidence = Evidence::Busy {
            queue: queue.clone(),
            busy: Percent(link.utilisation),
            carried: Mbps(link.throughput_mbps),
            capacity: Mbps(link.capacity_mbps),
        };
        found.push(Finding {
            cause: cause.name(),
            subject: link.id.clone(),
            confidence: 1.0,
            evidence: evidence.to_string(),
            advice: None,
            set: None,
            gain: None,
            costs: Vec::new(),
            score: 0.0,
        });
    }
    found
}
