//! Other traffic.

use airpath_scenario::Traffic;

use super::{mbps, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::observed::{Observed, direction_name};

/// Below this utilisation no link is too small for all. A radio that grants coarsely is full from
/// here on.
const BUSY: f64 = 0.4;

/// UDP does not give way, so with other traffic it is cross traffic. TCP that shares is not.
pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let datagrams = |traffic: &Traffic| matches!(traffic, Traffic::Udp { .. });
    if observed.scenario.flows.iter().all(|flow| datagrams(&flow.traffic)) {
        return;
    }
    for flow in &observed.scenario.flows {
        let Traffic::Udp { rate, .. } = &flow.traffic else { continue };
        let way = direction_name(flow.direction);
        if observed.links(way).all(|link| link.utilisation < BUSY) {
            continue;
        }
        all.push(Candidate {
            cause: Cause::CrossTraffic,
            subject: flow.id.clone(),
            evidence: format!(
                "{} sends {} and does not give way to other traffic.",
                flow.id,
                mbps(rate.bps() as f64 / 1e6)
            ),
            removals: vec![vec![set(format!("flow.{}.enabled", flow.index), false)]],
        });
    }
}
